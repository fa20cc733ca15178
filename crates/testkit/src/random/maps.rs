//! The maps of random programs, the same for all of them.

use paceline_isa::Size;
use paceline_spec::{InitialValue, MapFlags, MapKind, MapSpec, ProgramKind};

/// Indices in [`maps`].
pub(super) const CONSTANTS: u8 = 3;
pub(super) const GLOBALS: u8 = 4;
pub(super) const RING: u8 = 9;
pub(super) const EVENTS: u8 = 10;
pub(super) const DEVICES: u8 = 11;
const XDP_PROGRAMS: usize = 12;
const FILTERS: usize = 13;
const INNER_ARRAY: usize = 14;
const INNER_PER_CPU: [usize; 2] = [15, 16];
const INNER_LENGTHS: [usize; 2] = [17, 18];
const INNER_HASH: usize = 19;
const ALIKE: u8 = 20;
const UNLIKE_PER_CPU: u8 = 21;
const UNLIKE_ARRAY: u8 = 22;
const UNLIKE_HASH: u8 = 23;

/// The program array of TC classifiers, which comes last.
const CLASSIFIERS: usize = 24;

/// Size of the map of global variables in bytes. Its last word is for values that the kernel's verifier must not track.
pub(super) const GLOBALS_SIZE: i16 = 48;
/// Offset of that word.
pub(super) const FORGETFUL_WORD: u32 = 40;

/// Entries of the program arrays.
pub(super) const PROGRAMS: u32 = 4;

/// The maps that programs use, by index.
#[must_use]
pub fn maps() -> Vec<MapSpec> {
    let mut constants = map("constants", MapKind::Array, 4, 16, 1);
    constants.flags = MapFlags::RDONLY_PROG;
    constants.frozen = true;
    let bytes = (0..16u8).map(|i| if i % 4 == 0 { i / 4 } else { 0 }).collect();
    constants.contents = vec![(vec![0; 4], InitialValue::Bytes(bytes))];
    let mut trie = map("trie", MapKind::LpmTrie, 8, 8, 16);
    trie.flags = MapFlags::NO_PREALLOC;
    let mut maps = vec![
        map("array", MapKind::Array, 4, 16, 4),
        map("hash", MapKind::Hash, 8, 24, 8),
        map("per_cpu", MapKind::PerCpuArray, 4, 8, 2),
        constants,
        map("globals", MapKind::Array, 4, GLOBALS_SIZE as u32, 1),
        map("per_cpu_hash", MapKind::PerCpuHash, 4, 16, 8),
        // Many more places than keys: the element that a full map evicts differs from the kernel's.
        map("lru", MapKind::LruHash, 4, 16, 256),
        trie,
        map("table", MapKind::Array, 4, 64, 3),
        map("ring", MapKind::RingBuf, 0, 0, 4096),
        map("events", MapKind::PerfEventArray, 4, 4, 0),
        map("devices", MapKind::DevMap, 4, 4, 4),
        map("programs", MapKind::ProgArray, 4, 4, PROGRAMS),
        map("filters", MapKind::ProgArray, 4, 4, PROGRAMS),
    ];
    maps.extend(inner_maps());
    let outer = |name: &str, like: usize, inner: [usize; 2]| {
        let mut outer = map(name, MapKind::ArrayOfMaps, 4, 4, 3);
        outer.inner = maps.get(like).map(|like| Box::new(MapSpec { contents: Vec::new(), ..like.clone() }));
        let element = |(key, index): (u32, usize)| (key.to_ne_bytes().to_vec(), InitialValue::Map(index));
        outer.contents = (0..).zip(inner).map(element).collect();
        outer
    };
    let outers = [
        outer("alike", INNER_ARRAY, [INNER_ARRAY, INNER_ARRAY]),
        outer("unlike_per_cpu", INNER_PER_CPU[1], INNER_PER_CPU),
        outer("unlike_array", INNER_LENGTHS[1], INNER_LENGTHS),
        outer("unlike_hash", INNER_HASH, [INNER_HASH, 1]),
    ];
    maps.extend(outers);
    maps.push(map("classifiers", MapKind::ProgArray, 4, 4, PROGRAMS));
    maps
}

/// The inner maps: arrays of both kinds in two lengths, and a hash.
fn inner_maps() -> [MapSpec; 6] {
    let of_any_length = |entries| MapSpec {
        flags: MapFlags::INNER_MAP,
        ..map(if entries == 1 { "short" } else { "long" }, MapKind::Array, 4, 16, entries)
    };
    [
        map("inner", MapKind::Array, 4, 16, 4),
        map("few_per_cpu", MapKind::PerCpuArray, 4, 8, 1),
        map("many_per_cpu", MapKind::PerCpuArray, 4, 8, 6),
        of_any_length(1),
        of_any_length(6),
        map("inner_hash", MapKind::Hash, 8, 24, 2),
    ]
}

/// Maps of maps, whose inner maps may differ from their template.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outer {
    pub(super) index: u8,
    /// The template as a table.
    pub(super) inner: Table,
}

pub(super) const OUTERS: [Outer; 4] = [
    outer(ALIKE, Table { entries: 4, ..table(14, KeyForm::Number(Size::W), 16, false, false) }),
    outer(UNLIKE_PER_CPU, Table { entries: 6, ..table(16, KeyForm::Number(Size::W), 8, true, false) }),
    outer(UNLIKE_ARRAY, Table { entries: 6, ..table(18, KeyForm::Number(Size::W), 16, false, false) }),
    outer(UNLIKE_HASH, table(19, KeyForm::Number(Size::Dw), 24, false, true)),
];

const fn outer(index: u8, inner: Table) -> Outer {
    Outer { index, inner }
}

/// Whether a map of maps holds arrays shorter than their template. Linux 6.18 assumes that a constant key below the
/// template's length is always found, and removes the program's null check.
#[must_use]
pub fn is_unlike_template(index: usize) -> bool {
    [UNLIKE_PER_CPU, UNLIKE_ARRAY].map(usize::from).contains(&index)
}

/// Program array for programs of a type: programs of different types cannot share one.
pub(super) fn programs_of(kind: ProgramKind) -> i32 {
    jump_map(kind) as i32
}

/// Indices in [`maps`] of the program arrays.
#[must_use]
pub fn jump_maps() -> [usize; 3] {
    [XDP_PROGRAMS, FILTERS, CLASSIFIERS]
}

/// Index of the program array for a type.
#[must_use]
pub fn jump_map(kind: ProgramKind) -> usize {
    match kind {
        ProgramKind::SocketFilter => FILTERS,
        ProgramKind::SchedCls => CLASSIFIERS,
        _ => XDP_PROGRAMS,
    }
}

/// A map with values that programs look up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub(super) index: u8,
    /// How keys are stored.
    pub(super) key: KeyForm,
    pub(super) value: i16,
    pub(super) writable: bool,
    pub(super) per_cpu: bool,
    /// Whether elements can be deleted.
    pub(super) keyed: bool,
    /// For arrays, keys below this are always found; 0 for other maps.
    pub(super) entries: i32,
}

/// Layout of a key on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyForm {
    /// A number of this size, in one store.
    Number(Size),
    /// A prefix: its length in bits, and four bytes.
    Prefix,
}

pub(super) const TABLES: [Table; 8] = [
    Table { entries: 4, ..table(0, KeyForm::Number(Size::W), 16, false, false) },
    table(1, KeyForm::Number(Size::Dw), 24, false, true),
    Table { entries: 2, ..table(2, KeyForm::Number(Size::W), 8, true, false) },
    Table { writable: false, ..table(CONSTANTS, KeyForm::Number(Size::W), 16, false, false) },
    table(5, KeyForm::Number(Size::W), 16, true, true),
    table(6, KeyForm::Number(Size::W), 16, false, true),
    table(7, KeyForm::Prefix, 8, false, true),
    Table { entries: 3, ..table(8, KeyForm::Number(Size::W), 64, false, false) },
];

const fn table(index: u8, key: KeyForm, value: i16, per_cpu: bool, keyed: bool) -> Table {
    Table { index, key, value, writable: true, per_cpu, keyed, entries: 0 }
}

fn map(name: &str, kind: MapKind, key_size: u32, value_size: u32, max_entries: u32) -> MapSpec {
    MapSpec::new(name, kind, key_size, value_size, max_entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_those_maps() {
        let maps = maps();
        for table in TABLES {
            let map = &maps[usize::from(table.index)];
            let key = match table.key {
                KeyForm::Number(size) => size.bytes(),
                KeyForm::Prefix => 8,
            };
            assert_eq!(map.key_size as usize, key, "{}", map.name);
            assert_eq!(map.value_size, table.value as u32, "{}", map.name);
            assert_eq!(map.kind.is_per_cpu(), table.per_cpu, "{}", map.name);
            assert_eq!(map.flags.contains(MapFlags::RDONLY_PROG), !table.writable, "{}", map.name);
        }
        for (index, kind) in
            [(RING, MapKind::RingBuf), (EVENTS, MapKind::PerfEventArray), (DEVICES, MapKind::DevMap)]
        {
            assert_eq!(maps[usize::from(index)].kind, kind);
        }
        assert!(jump_maps().iter().all(|&index| maps[index].kind == MapKind::ProgArray));
    }
}
