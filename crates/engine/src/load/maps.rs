//! Comparison of maps with those that a program was verified with.
//!
//! [`check`] is the only binding of a proof to maps. The properties of a map, of its inner maps and of
//! constants that the verifier relies on must be the same; others, such as the name, may differ.

use std::sync::Arc;

use paceline_maps::Map;
use paceline_spec::{InitialValue, MapFlags, MapKind, MapSpec};

use crate::load_error::EngineError;

/// # Errors
/// The first map for which the proof does not hold.
pub(super) fn check(specs: &[MapSpec], maps: &[Arc<Map>]) -> Result<(), EngineError> {
    if specs.len() != maps.len() {
        return Err(EngineError::MapCount { expected: specs.len(), found: maps.len() });
    }
    let differs = |(spec, map): (&MapSpec, &Arc<Map>)| {
        let what = difference(spec, map.spec()).or_else(|| constant_difference(spec, map))?;
        Some(EngineError::Map { name: spec.name.clone(), what })
    };
    specs.iter().zip(maps).find_map(differs).map_or(Ok(()), Err)
}

/// The first property of a map that differs from the verified specification.
fn difference(proven: &MapSpec, made: &MapSpec) -> Option<&'static str> {
    // Each field is named, so that a new field does not compile without a decision here.
    let MapSpec {
        kind,
        key_size,
        value_size,
        max_entries,
        flags,
        special,
        inner,
        // Maps are named by index. Other properties of kinds concern only maps and helpers.
        name: _,
        pinning: _,
        extra: _,
        // The relevant part of a value's type is in `special`.
        key_type: _,
        value_type: _,
        // Contents are compared with the map, below.
        contents: _,
        frozen: _,
    } = proven;
    // Programs index arrays without a check of the length.
    let is_as_long = !kind.is_array() || *max_entries == made.max_entries;
    let fields = [
        (*kind == made.kind, "the kind"),
        (*key_size == made.key_size, "the key size"),
        (*value_size == made.value_size, "the value size"),
        (is_as_long, "the number of entries"),
        (known_flags(*kind, *flags) == known_flags(*kind, made.flags), "what programs may do with it"),
        (*special == made.special, "a lock, timer or the like in its values"),
    ];
    let first = fields.into_iter().find_map(|(is_same, what)| (!is_same).then_some(what));
    first.or_else(|| match (inner, &made.inner) {
        (None, None) => None,
        (Some(proven), Some(made)) => difference(proven, made).map(|_| "the maps in it"),
        _ => Some("the maps in it"),
    })
}

/// The flags that proofs rely on: access by programs, and inner arrays of different lengths.
fn known_flags(kind: MapKind, flags: MapFlags) -> MapFlags {
    let known = MapFlags::RDONLY_PROG | MapFlags::WRONLY_PROG | MapFlags::INNER_MAP;
    // Creation adds the flag.
    let added = if kind.is_read_only() { MapFlags::RDONLY_PROG } else { MapFlags::default() };
    MapFlags(flags.0 & known.0) | added
}

/// The difference of a map whose values the verifier took for constants: it must be read-only, and hold the values of the
/// proof, and zeros elsewhere.
fn constant_difference(proven: &MapSpec, map: &Map) -> Option<&'static str> {
    if !proven.frozen || !proven.flags.contains(MapFlags::RDONLY_PROG) {
        return None;
    }
    // First, because the values of a frozen map do not change.
    if !map.is_frozen() {
        return Some("whether it is frozen");
    }
    let contents = &proven.contents;
    let is_said = |key: &Vec<u8>| contents.iter().any(|(said, _)| said == key);
    let holds = |key: &[u8], bytes: &[u8]| {
        let found = map.lookup(key).ok()?;
        let (start, rest) = found.split_at_checked(bytes.len())?;
        (start == bytes && rest.iter().all(|&byte| byte == 0)).then_some(())
    };
    let said = contents.iter().all(|(key, value)| match value {
        InitialValue::Bytes(bytes) => holds(key, bytes).is_some(),
        InitialValue::Map(_) | InitialValue::Program(_) => false,
    });
    let zero = map.keys().is_ok_and(|mut keys| keys.all(|key| is_said(&key) || holds(&key, &[]).is_some()));
    (!said || !zero).then_some("the contents")
}

#[cfg(test)]
mod tests {
    use paceline_btf::{SpecialField, SpecialKind};
    use paceline_maps::Limits;
    use paceline_spec::Pinning;

    use super::*;

    fn map(spec: &MapSpec) -> Arc<Map> {
        let map = Map::create(spec, &Limits { cpus: 2, memory: 1 << 20 }).unwrap();
        map.fill(&spec.contents).unwrap();
        map
    }

    /// Result of the check for a map of one specification in a proof for another.
    fn what(proven: &MapSpec, made: &MapSpec) -> Option<&'static str> {
        match check(std::slice::from_ref(proven), &[map(made)]) {
            Err(EngineError::Map { what, .. }) => Some(what),
            Err(error) => panic!("{error}"),
            Ok(()) => None,
        }
    }

    fn array() -> MapSpec {
        MapSpec::new("m", MapKind::Array, 4, 32, 4)
    }

    fn timer() -> Box<[SpecialField]> {
        [SpecialField { kind: SpecialKind::Timer, offset: 0, size: 16 }].into()
    }

    fn constant(value: u8) -> MapSpec {
        let contents = vec![(vec![0; 4], InitialValue::Bytes(vec![value, 0, 7]))];
        let flags = MapFlags::RDONLY_PROG;
        MapSpec { contents, flags, frozen: true, ..MapSpec::new("m", MapKind::Array, 4, 8, 1) }
    }

    #[test]
    fn each_field_of_a_specification_is_compared_or_no_matter() {
        let change = |change: fn(&mut MapSpec)| {
            let mut made = array();
            change(&mut made);
            [what(&array(), &made), what(&made, &array())]
        };
        let differs = |what| [Some(what); 2];
        // One line for each, as they come in the structure; the compiler asks `difference` for those that are new.
        assert_eq!(change(|_| ()), [None; 2]);
        assert_eq!(change(|m| m.name = "other".into()), [None; 2]);
        assert_eq!(change(|m| m.kind = MapKind::Hash), differs("the kind"));
        let hash = |key_size| MapSpec { kind: MapKind::Hash, key_size, ..array() };
        assert_eq!(what(&hash(4), &hash(8)), Some("the key size"));
        assert_eq!(change(|m| m.value_size = 24), differs("the value size"));
        assert_eq!(change(|m| m.max_entries = 3), differs("the number of entries"));
        assert_eq!(change(|m| m.flags = MapFlags::RDONLY_PROG), differs("what programs may do with it"));
        assert_eq!(change(|m| m.flags = MapFlags::WRONLY_PROG), differs("what programs may do with it"));
        assert_eq!(change(|m| m.flags = MapFlags::MMAPABLE), [None; 2]);
        let filter = |extra| MapSpec { extra, ..MapSpec::new("m", MapKind::BloomFilter, 0, 4, 8) };
        assert_eq!(what(&filter(1), &filter(2)), None);
        assert_eq!(change(|m| m.pinning = Pinning::ByName), [None; 2]);
        assert_eq!(change(|m| m.key_type = 1), [None; 2]);
        assert_eq!(change(|m| m.value_type = 1), [None; 2]);
        assert_eq!(change(|m| m.special = timer()), differs("a lock, timer or the like in its values"));
        assert_eq!(what(&constant(1), &constant(2)), Some("the contents"));
        assert_eq!(
            what(&constant(1), &MapSpec { frozen: false, ..constant(1) }),
            Some("whether it is frozen")
        );
    }

    #[test]
    fn maps_in_maps_are_compared_as_maps_are() {
        let outer = |inner: MapSpec| MapSpec {
            inner: Some(Box::new(inner)),
            ..MapSpec::new("m", MapKind::ArrayOfMaps, 4, 4, 4)
        };
        let changes: [fn(&mut MapSpec); 6] = [
            |m| m.kind = MapKind::Hash,
            |m| m.value_size = 24,
            |m| m.max_entries = 3,
            |m| m.special = timer(),
            |m| m.flags = MapFlags::INNER_MAP,
            |m| m.flags = MapFlags::RDONLY_PROG,
        ];
        for change in changes {
            let mut other = array();
            change(&mut other);
            assert_eq!(what(&outer(array()), &outer(other.clone())), Some("the maps in it"), "{other:?}");
            assert_eq!(what(&outer(other.clone()), &outer(array())), Some("the maps in it"), "{other:?}");
        }
        assert_eq!(what(&outer(array()), &outer(MapSpec { name: "other".into(), ..array() })), None);
    }

    #[test]
    fn constants_are_those_of_the_proof() {
        let zeros = MapSpec { contents: Vec::new(), ..constant(0) };
        let longer = vec![(vec![0; 4], InitialValue::Bytes(vec![1, 0, 7, 0, 9]))];
        assert_eq!(what(&constant(1), &constant(1)), None);
        assert_eq!(what(&constant(1), &zeros), Some("the contents"));
        assert_eq!(what(&zeros, &constant(1)), Some("the contents"));
        assert_eq!(what(&constant(1), &MapSpec { contents: longer, ..constant(1) }), Some("the contents"));
        // Facts of the proof about an element that no map of this shape has apply to none.
        let elsewhere = vec![(vec![1, 0, 0, 0], InitialValue::Bytes(vec![1]))];
        assert_eq!(what(&MapSpec { contents: elsewhere, ..constant(1) }, &zeros), Some("the contents"));
        let twice = [constant(2).contents, constant(1).contents].concat();
        let twice = MapSpec { contents: twice, ..constant(1) };
        assert_eq!(what(&twice, &twice), Some("the contents"), "two values for one element");
    }

    #[test]
    fn there_are_as_many_maps_as_in_the_proof() {
        assert_eq!(check(&[array()], &[]), Err(EngineError::MapCount { expected: 1, found: 0 }));
    }

    #[test]
    fn creation_may_add_the_flag_of_device_maps() {
        let spec = MapSpec::new("m", MapKind::DevMap, 4, 4, 4);
        assert_eq!(what(&spec, &spec), None);
    }
}
