//! Links of the cases' programs. The addresses are fictitious, and never accessed.

use paceline_compiler::native::{
    ArrayLink, HelperLink, HostOffsets, Links, LookUpLink, MapLink, ProgArrayLink,
};
use paceline_isa::Names;
use paceline_spec::helper::Helper;
use paceline_spec::{MapKind, MapSpec};

/// Name, kind, key size in bytes, number of entries.
const MAPS: [(&str, MapKind, u32, u32); 5] = [
    ("counts", MapKind::Array, 4, 256),
    ("lanes", MapKind::PerCpuArray, 4, 4),
    ("flows", MapKind::Hash, 4, 16),
    ("jump", MapKind::ProgArray, 4, 8),
    ("pairs", MapKind::Hash, 8, 16),
];

pub(crate) struct Maps;

impl Names for Maps {
    fn map(&self, name: &str) -> Option<i32> {
        MAPS.iter().position(|map| map.0 == name).map(|index| index as i32)
    }

    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }
}

pub(crate) fn specs() -> Vec<MapSpec> {
    let spec = |&(name, kind, key_size, max_entries): &(&str, MapKind, u32, u32)| {
        let value_size = if kind == MapKind::ProgArray { 4 } else { 8 };
        MapSpec::new(name, kind, key_size, value_size, max_entries)
    };
    MAPS.iter().map(spec).collect()
}

pub(crate) fn links() -> Links {
    let map = |(index, (_, kind, key_size, entries)): (usize, &(&str, MapKind, u32, u32))| {
        let base = 0x10_0000_0000 * (index as u64 + 1);
        let cpu_stride = if kind.is_per_cpu() { 4096 } else { 0 };
        let array = matches!(kind, MapKind::Array | MapKind::PerCpuArray);
        MapLink {
            handle: base,
            value: None,
            array: array.then_some(ArrayLink { base: base + 64, stride: 8, cpu_stride, entries: *entries }),
            cpus: kind.is_per_cpu().then_some(2),
            programs: (*kind == MapKind::ProgArray).then_some(ProgArrayLink {
                base: base + 64,
                stride: 16,
                entries: *entries,
            }),
            look_up: (*kind == MapKind::Hash).then_some(LookUpLink {
                address: HELPERS + 1004,
                context: base + 128,
                key_bytes: Some(*key_size as u8),
                member: None,
            }),
        }
    };
    Links {
        helper: |helper, _| Some(HelperLink { address: HELPERS + helper.id.imm() as u64 }),
        kfuncs: Vec::new(),
        maps: MAPS.iter().enumerate().map(map).collect(),
        readable: (HELPERS + 1004, 2),
        host: HostOffsets {
            frame: 0,
            tail_calls: 8,
            max_tail_calls: 33,
            area: 8,
            arriving: 0x400,
            cpu: 40,
            fault: 48,
            counts: 56,
            readable: 64,
        },
        tail_entry: 8,
        no_cpu: HELPERS + 1000,
        find_program: HELPERS + 1001,
        rules: [HELPERS + 1001, HELPERS + 1002, HELPERS + 1003, HELPERS + 1004, HELPERS + 1007],
        enter: HELPERS + 1005,
        end: HELPERS + 1006,
        near: true,
    }
}

const HELPERS: u64 = 0x2000_0000;

/// Name of a relocation's target.
pub(crate) fn name_of(target: u64) -> String {
    match target - HELPERS {
        1000 => "no_cpu".to_owned(),
        1001 => "find_program".to_owned(),
        1002 => "packet_type".to_owned(),
        1003 => "protocol".to_owned(),
        1004 => "look_up_hash".to_owned(),
        id => Helper::from_imm(id as i32).map_or("?", |helper| helper.name).to_owned(),
    }
}
