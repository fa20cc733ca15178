//! Parsing of TOML to a chain file's contents.

use std::collections::BTreeMap;
use std::ops::Range;

use paceline_frame::Verdict;
use toml::de::{DeTable, DeValue};

use super::contents::{
    ChainFile, FileMap, FileObject, FileOrder, FilePort, FileProgram, Located, MapSource, ObjectSource,
    load_order,
};
use super::error::{FileError, FileProblem};
use super::json::json;
use super::places::Places;
use super::typed::{Table, Text, Value, verdict};
use crate::chain_graph::sequence::{Place, Placement, Sequence};
use paceline_spec::graph::{Edges, Next};

const ROOT: &[&str] = &["order", "first", "revision", "objects", "program", "port"];
const OBJECT: &[&str] = &["file", "classic", "filter", "maps"];
const MAP: &[&str] = &["file", "elements", "variables", "from", "map"];
const PROGRAM: &[&str] = &[
    "name", "object", "function", "priority", "actions", "place", "before", "after", "replace", "next", "end",
];
/// Keys of placements.
const PLACES: [&str; 4] = ["place", "before", "after", "replace"];
const PORT: &[&str] = &["in", "out", "drops"];

/// Indices of objects by name.
type Names<'a> = BTreeMap<&'a str, usize>;

/// The key for verdicts without an edge of their own.
const WILDCARD: &str = "wildcard";

impl ChainFile {
    /// Parses a chain file.
    ///
    /// # Errors
    /// [`FileError`] for the first error, with its position.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        read(text)
    }
}

fn read(source: &str) -> Result<ChainFile, FileError> {
    let places = Places::of(source);
    let text = Text { source, places: &places };
    let root = DeTable::parse(source).map_err(|error| {
        text.error(error.span().unwrap_or_default(), FileProblem::Syntax(error.message().to_owned()))
    })?;
    let root = Table::root(text, &root, ROOT)?;
    let objects = read_objects(&root)?;
    let tables = program_tables(&root)?;
    let mut programs = read_programs(&tables, &objects)?;
    for (index, table) in tables.iter().enumerate() {
        let placement = read_placement(table, &programs)?;
        if let Some(program) = programs.get_mut(index) {
            program.placement = placement;
        }
    }
    let order = read_order(&root, &tables, &programs)?;
    let (revision, port) = (root.revision("revision")?, read_port(&root)?);
    Ok(ChainFile { objects, programs, order, revision, port })
}

fn read_objects(root: &Table<'_>) -> Result<Vec<FileObject>, FileError> {
    let value = root.get("objects").ok_or_else(|| root.missing("objects"))?;
    let entries = Table::any(root.text, value, "`objects`")?.entries();
    let tables = entries.iter().map(|(_, value)| Table::of(root.text, value, "an object", OBJECT));
    let tables = tables.collect::<Result<Vec<_>, _>>()?;
    let names: Names<'_> =
        entries.iter().enumerate().map(|(index, (name, _))| (name.value.as_str(), index)).collect();
    let shares = |object: usize, map: &str| {
        let maps = tables.get(object).and_then(|table| table.get("maps"))?;
        Some(matches!(maps.get_ref().get(map)?.get_ref(), DeValue::Table(map) if map.contains_key("from")))
    };
    let read = |((name, _), table): (&(Located<String>, _), &Table<'_>)| {
        let source = match (table.path("file")?, table.path("classic")?, table.text("filter")?) {
            (Some(path), None, None) => ObjectSource::Object(path),
            (None, Some(path), None) => ObjectSource::Classic(path),
            (None, None, Some(expression)) => ObjectSource::Expression(expression),
            (None, None, None) => return Err(table.missing("file`, `classic` or `filter")),
            _ => {
                let several = "an object has one of `file`, `classic` and `filter`";
                return Err(FileError { at: name.at, problem: FileProblem::Conflict(several) });
            }
        };
        let maps = read_maps(table, &names)?;
        for map in &maps {
            if let MapSource::Shared { object, map } = &map.source
                && shares(*object, &map.value) == Some(true)
            {
                let owner = entries.get(*object).map(|(name, _)| name.value.clone()).unwrap_or_default();
                return Err(FileError { at: map.at, problem: FileProblem::SharedAgain(owner) });
            }
        }
        Ok(FileObject { name: name.clone(), source, maps })
    };
    let objects = entries.iter().zip(&tables).map(read).collect::<Result<Vec<_>, _>>()?;
    match in_circle(&objects) {
        Some(object) => {
            let circle = FileProblem::Conflict("objects share maps with each other in a circle");
            Err(FileError { at: object.name.at, problem: circle })
        }
        None => Ok(objects),
    }
}

/// The first object, if any, that shares a map with one that has to be loaded after it.
fn in_circle(objects: &[FileObject]) -> Option<&FileObject> {
    let mut is_loaded = vec![false; objects.len()];
    load_order(objects).into_iter().for_each(|index| is_loaded[index] = true);
    objects.iter().zip(is_loaded).find(|(_, is_loaded)| !is_loaded).map(|(object, _)| object)
}

fn read_maps(object: &Table<'_>, names: &Names<'_>) -> Result<Vec<FileMap>, FileError> {
    let Some(value) = object.get("maps") else { return Ok(Vec::new()) };
    let entries = Table::any(object.text, value, "`maps`")?.entries();
    let read = |(name, value): (Located<String>, &Value<'_>)| {
        let table = Table::of(object.text, value, "a map", MAP)?;
        let source = read_map(&table, &name, names)?;
        Ok(FileMap { name, source })
    };
    entries.into_iter().map(read).collect()
}

fn read_map(table: &Table<'_>, name: &Located<String>, names: &Names<'_>) -> Result<MapSource, FileError> {
    const SOURCES: [&str; 4] = ["file", "elements", "variables", "from"];
    let given: Vec<_> = SOURCES.into_iter().filter(|key| table.get(key).is_some()).collect();
    let conflict = |text| FileError { at: name.at, problem: FileProblem::Conflict(text) };
    if table.get("map").is_some() && table.get("from").is_none() {
        return Err(conflict("`map` says which map of the object that `from` names"));
    }
    match *given.as_slice() {
        [] => Err(table.missing("file`, `elements`, `variables` or `from")),
        ["from"] => {
            let from = table.text("from")?.ok_or_else(|| table.missing("from"))?;
            let object = names.get(from.value.as_str()).copied().ok_or_else(|| {
                let span = table.get("from").map_or(0..0, Value::span);
                table.text.unknown(span, "object", &from.value, names.keys().copied())
            })?;
            let map =
                table.text("map")?.unwrap_or_else(|| Located { at: from.at, value: name.value.clone() });
            Ok(MapSource::Shared { object, map })
        }
        ["file"] => Ok(MapSource::File(table.path("file")?.ok_or_else(|| table.missing("file"))?)),
        [key] => {
            let value = table.get(key).ok_or_else(|| table.missing("elements"))?;
            let (fits, expected) = match (value.get_ref(), key) {
                (DeValue::Array(_), "elements") | (DeValue::Table(_), "variables") => (true, ""),
                (_, "variables") => (false, "a table of names and values"),
                _ => (false, "a list of elements { key = ..., value = ... }"),
            };
            if !fits {
                let problem = FileProblem::Type { key: key.to_owned(), expected };
                return Err(table.text.error(value.span(), problem));
            }
            let json = json(table.text, value)?;
            Ok(MapSource::Inline(table.text.located(value.span(), json)))
        }
        _ => Err(conflict("a map has one of `file`, `elements`, `variables` and `from`")),
    }
}

fn program_tables<'a>(root: &Table<'a>) -> Result<Vec<Table<'a>>, FileError> {
    let value = root.get("program").ok_or_else(|| root.missing("program"))?;
    let DeValue::Array(list) = value.get_ref() else {
        let problem = FileProblem::Type { key: "program".to_owned(), expected: "a list: say [[program]]" };
        return Err(root.text.error(value.span(), problem));
    };
    if list.is_empty() {
        return Err(root.missing("program"));
    }
    list.iter().map(|value| Table::of(root.text, value, "a program", PROGRAM)).collect()
}

fn read_programs(tables: &[Table<'_>], objects: &[FileObject]) -> Result<Vec<FileProgram>, FileError> {
    let mut programs: Vec<FileProgram> = Vec::new();
    for table in tables {
        let name = table.text("name")?.ok_or_else(|| table.missing("name"))?;
        if programs.iter().any(|program| program.name.value == name.value) {
            return Err(FileError { at: name.at, problem: FileProblem::Twice(name.value) });
        }
        let object = table.text("object")?.unwrap_or_else(|| name.clone());
        let index = objects.iter().position(|other| other.name.value == object.value).ok_or_else(|| {
            let names = objects.iter().map(|object| object.name.value.as_str());
            let span = table.get("object").or(table.get("name")).map_or(0..0, Value::span);
            table.text.unknown(span, "object", &object.value, names)
        })?;
        let function = table.text("function")?;
        let (priority, actions) = (table.number("priority")?, table.actions("actions")?);
        programs.push(FileProgram { name, object: index, function, priority, actions, placement: None });
    }
    Ok(programs)
}

/// Reads the placement of a program.
fn read_placement(
    table: &Table<'_>,
    programs: &[FileProgram],
) -> Result<Option<Placement<usize>>, FileError> {
    let text = table.text;
    let mut given = PLACES.into_iter().filter_map(|key| Some((key, table.get(key)?)));
    let Some((key, value)) = given.next() else { return Ok(None) };
    if let Some((_, second)) = given.next() {
        let several = "a program has one of `place`, `before`, `after` and `replace`";
        return Err(text.error(second.span(), FileProblem::Conflict(several)));
    }
    let name = table.text(key)?.ok_or_else(|| table.missing(key))?.value;
    let other = || program_index(text, value.span(), &name, programs);
    Ok(Some(match (key, name.as_str()) {
        ("place", "first") => Placement::At(Place::First),
        ("place", "last") => Placement::At(Place::Last),
        ("place", _) => return Err(text.unknown(value.span(), "place", &name, ["first", "last"])),
        ("before", _) => Placement::At(Place::Before(other()?)),
        ("after", _) => Placement::At(Place::After(other()?)),
        _ => Placement::Replacing(other()?),
    }))
}

/// The programs in file order, with placements applied.
fn placed(tables: &[Table<'_>], programs: &[FileProgram]) -> Result<Vec<usize>, FileError> {
    let mut sequence = Sequence::of((0..programs.len()).collect());
    for (index, (program, table)) in programs.iter().zip(tables).enumerate() {
        let Some(placement) = program.placement else { continue };
        if !sequence.members().contains(&index) {
            let replaced = "a program above replaces it: it has no place";
            return Err(FileError { at: program.name.at, problem: FileProblem::Conflict(replaced) });
        }
        if sequence.settle(&index, placement, None).is_err() {
            let key = PLACES.into_iter().find_map(|key| table.get(key));
            let name = table.text.source.get(key.map_or(0..0, Value::span)).unwrap_or_default();
            let problem = FileProblem::NotThere(name.trim_matches(['"', '\'']).to_owned());
            return Err(table.text.error(key.map_or(0..0, Value::span), problem));
        }
    }
    Ok(sequence.members().to_vec())
}

fn read_order(
    root: &Table<'_>,
    tables: &[Table<'_>],
    programs: &[FileProgram],
) -> Result<FileOrder, FileError> {
    let span = |key: &str| root.get(key).map_or(0..0, Value::span);
    let with_edges = tables.iter().any(|table| table.get("next").or(table.get("end")).is_some());
    let conflict = |span: Range<usize>, text| Err(root.text.error(span, FileProblem::Conflict(text)));
    let order = root.text("order")?;
    let first = root.text("first")?;
    let by_priority = order.as_ref().is_some_and(|order| order.value == "priority");
    if let Some(value) = tables.iter().find_map(|table| PLACES.iter().find_map(|key| table.get(key)))
        && (with_edges || by_priority)
    {
        let text = "`place`, `before`, `after` and `replace` are for chains in the given order";
        return conflict(value.span(), text);
    }
    if let Some(value) = tables.iter().find_map(|table| table.get("priority"))
        && !with_edges
        && !by_priority
    {
        return conflict(value.span(), "`priority` counts with `order = \"priority\"` alone");
    }
    if !with_edges {
        if first.is_some() {
            return conflict(
                span("first"),
                "`first` goes with edges; without, packets enter at the first program",
            );
        }
        return match order.as_ref().map(|order| order.value.as_str()) {
            None | Some("given") => Ok(FileOrder::Given(placed(tables, programs)?)),
            Some("priority") => Ok(FileOrder::Priority),
            Some(other) => Err(root.text.unknown(span("order"), "order", other, ["given", "priority"])),
        };
    }
    if order.is_some() {
        return conflict(span("order"), "`order` is for programs without `next` and `end`");
    }
    for table in tables {
        for key in ["priority", "actions"] {
            if let Some(value) = table.get(key) {
                return conflict(
                    value.span(),
                    "`priority` and `actions` are for chains without `next` and `end`",
                );
            }
        }
    }
    let first = first.map_or(Ok(0), |name| program_index(root.text, span("first"), &name.value, programs))?;
    let edges = tables.iter().map(|table| read_edges(table, programs)).collect::<Result<_, _>>()?;
    Ok(FileOrder::Edges { first, edges })
}

fn read_edges(table: &Table<'_>, programs: &[FileProgram]) -> Result<Edges<usize>, FileError> {
    let text = table.text;
    let mut edges = Edges::NONE;
    for key in ["next", "end"] {
        let Some(value) = table.get(key) else { continue };
        let what = if key == "next" { "`next`" } else { "`end`" };
        for (after, target) in Table::any(text, value, what)?.entries() {
            let DeValue::String(name) = target.get_ref() else {
                let expected = if key == "next" { "the name of a program" } else { "a verdict" };
                return Err(text.error(target.span(), FileProblem::Type { key: after.value, expected }));
            };
            let next = match key {
                "next" => Next::Program(program_index(text, target.span(), name, programs)?),
                _ => Next::End(verdict(text, target.span(), name)?),
            };
            edges = add_edge(edges, &after, next)?;
        }
    }
    Ok(edges)
}

fn add_edge(
    edges: Edges<usize>,
    after: &Located<String>,
    next: Next<usize>,
) -> Result<Edges<usize>, FileError> {
    let failed = |problem| Err(FileError { at: after.at, problem });
    let twice = FileProblem::Conflict("a verdict has `next` or `end`, not both");
    if after.value == WILDCARD {
        return if edges.wildcard().is_some() { failed(twice) } else { Ok(edges.with_wildcard(next)) };
    }
    match Verdict::ALL.into_iter().find(|verdict| verdict.name() == after.value) {
        Some(verdict) if edges.own(verdict).is_some() => failed(twice),
        Some(verdict) => Ok(edges.with(verdict, next)),
        None => {
            let known = Verdict::ALL.map(Verdict::name).into_iter().chain([WILDCARD]);
            failed(FileProblem::unknown("verdict", &after.value, known))
        }
    }
}

fn program_index(
    text: Text<'_>,
    span: Range<usize>,
    name: &str,
    programs: &[FileProgram],
) -> Result<usize, FileError> {
    let index = programs.iter().position(|program| program.name.value == name);
    index.ok_or_else(|| {
        text.unknown(span, "program", name, programs.iter().map(|program| program.name.value.as_str()))
    })
}

fn read_port(root: &Table<'_>) -> Result<FilePort, FileError> {
    let Some(value) = root.get("port") else { return Ok(FilePort::default()) };
    let table = Table::of(root.text, value, "`port`", PORT)?;
    Ok(FilePort { input: table.path("in")?, out: table.path("out")?, drops: table.path("drops")? })
}
