//! The directive `map:`, and the elements of maps.

use paceline_btf::TypeId;
use paceline_spec::{InitialValue, MapFlags, MapKind, MapSpec};

use super::data::{parse_data, parse_number};
use super::directive::{Directive, check_name};
use super::error::{DataError, ParseError, Problem};
use super::types::Types;

pub(super) fn map(
    directive: &Directive<'_>,
    earlier: &[MapSpec],
    types: &mut Types,
) -> Result<MapSpec, ParseError> {
    let mut words = directive.value.split_whitespace();
    let name = words.next().ok_or_else(|| directive.error(Problem::Missing("name of the map")))?;
    check_name(directive, name)?;
    if earlier.iter().any(|map| map.name == name) {
        return Err(directive.error(Problem::Twice(format!("map: {name}"))));
    }
    let kind = words.next().ok_or_else(|| directive.error(Problem::Missing("kind of the map")))?;
    let found = MapKind::ALL.iter().copied().find(|k| k.name() == kind);
    let mut map = MapSpec::new(name, found.ok_or_else(|| directive.not_a("kind of map", kind))?, 0, 0, 0);
    while let Some(word) = words.next() {
        if word == "frozen" {
            map.frozen = true;
            continue;
        }
        let value =
            words.next().ok_or_else(|| directive.error(Problem::Missing("value of the last word")))?;
        match word {
            "key" => (map.key_size, map.key_type) = size_or_type(directive, value, types)?,
            "value" => (map.value_size, map.value_type) = size_or_type(directive, value, types)?,
            "entries" => map.max_entries = directive.bits(value, 32)? as u32,
            "extra" => map.extra = directive.bits(value, 64)?,
            "flags" => map.flags = flags(directive, value)?,
            "inner" => map.inner = Some(Box::new(template(directive, value, earlier)?)),
            other => {
                return Err(directive.not_a("word of a map: key, value, entries, flags, extra, inner", other));
            }
        }
    }
    // The kernel requires types for both or for none.
    if map.value_type != 0 && map.key_type == 0 {
        map.key_type = types.of_size(map.key_size);
    }
    if map.key_type != 0 && map.value_type == 0 {
        map.value_type = types.of_size(map.value_size);
    }
    map.find_special_fields(&types.btf);
    for &(line, text) in &directive.block {
        let element = element(text, &map, earlier).map_err(|problem| ParseError { line, problem })?;
        map.contents.push(element);
    }
    Ok(map)
}

/// The size of a key or value, and its type if it is given by name.
fn size_or_type(
    directive: &Directive<'_>,
    text: &str,
    types: &mut Types,
) -> Result<(u32, TypeId), ParseError> {
    let Some(id) = types.named(text) else { return Ok((directive.bits(text, 32)? as u32, 0)) };
    let size = types.btf.size_of(id).ok().and_then(|size| u32::try_from(size).ok());
    Ok((size.ok_or_else(|| directive.not_a("type of a size", text))?, id))
}

/// The template of inner maps: another map without its contents.
fn template(directive: &Directive<'_>, name: &str, earlier: &[MapSpec]) -> Result<MapSpec, ParseError> {
    let found = earlier.iter().find(|map| map.name == name);
    let found = found.ok_or_else(|| directive.error(Problem::NoMap(name.to_owned())))?;
    Ok(MapSpec { contents: Vec::new(), frozen: false, ..found.clone() })
}

fn flags(directive: &Directive<'_>, text: &str) -> Result<MapFlags, ParseError> {
    let named = |word: &str| {
        Some(match word {
            "no_prealloc" => MapFlags::NO_PREALLOC,
            "no_common_lru" => MapFlags::NO_COMMON_LRU,
            "rdonly" => MapFlags::RDONLY,
            "wronly" => MapFlags::WRONLY,
            "zero_seed" => MapFlags::ZERO_SEED,
            "rdonly_prog" => MapFlags::RDONLY_PROG,
            "wronly_prog" => MapFlags::WRONLY_PROG,
            "mmapable" => MapFlags::MMAPABLE,
            "inner_map" => MapFlags::INNER_MAP,
            number => MapFlags(u32::try_from(parse_number(number)?).ok()?),
        })
    };
    text.split('|').try_fold(MapFlags::default(), |flags, word| {
        named(word).map(|flag| flags | flag).ok_or_else(|| directive.not_a("map flag", word))
    })
}

pub(super) fn element(
    text: &str,
    map: &MapSpec,
    maps: &[MapSpec],
) -> Result<(Vec<u8>, InitialValue), Problem> {
    let (key, value) = text.split_once(" = ").ok_or(Problem::NotAnElement)?;
    let key = sized("key", key, map.key_size)?;
    let value = match value.trim().split_once(' ') {
        Some(("program", name)) => InitialValue::Program(name.trim().to_owned()),
        Some(("map", name)) => {
            let index = maps.iter().position(|map| map.name == name.trim());
            InitialValue::Map(index.ok_or_else(|| Problem::NoMap(name.trim().to_owned()))?)
        }
        _ => InitialValue::Bytes(sized("value", value, map.value_size)?),
    };
    Ok((key, value))
}

pub(super) fn sized(what: &'static str, text: &str, expected: u32) -> Result<Vec<u8>, Problem> {
    let data = parse_data(text).map_err(|error: DataError| Problem::Data(error))?;
    if data.len() != expected as usize {
        return Err(Problem::ElementSize { what, found: data.len(), expected });
    }
    Ok(data)
}
