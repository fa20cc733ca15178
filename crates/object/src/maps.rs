//! The maps of an object, and their positions in it.

use std::collections::{HashMap, HashSet};

use paceline_spec::{MapKind, MapSpec};

/// All maps of an object in libbpf's order: legacy definitions, BTF definitions, then data sections.
#[derive(Debug, Default)]
pub(crate) struct Maps {
    pub(crate) specs: Vec<MapSpec>,
    /// Maps by section and byte offset of their definitions.
    by_place: HashMap<(usize, u64), usize>,
    /// Sections with definitions.
    sections: HashSet<usize>,
    /// Maps that represent a data section.
    by_section: HashMap<usize, usize>,
    /// The kernel configuration map.
    pub(crate) config: Option<usize>,
    /// Maps by the numbers that iproute2's definitions give them.
    pub(crate) by_id: HashMap<u32, usize>,
}

impl Maps {
    /// Adds a map that is defined at an offset of a section.
    pub(crate) fn add_at(&mut self, section: usize, offset: u64, spec: MapSpec) -> usize {
        let index = self.add(spec);
        self.by_place.insert((section, offset), index);
        self.sections.insert(section);
        index
    }

    /// Adds a map that represents a data section.
    pub(crate) fn add_section(&mut self, section: usize, spec: MapSpec) {
        let index = self.add(spec);
        self.by_section.insert(section, index);
    }

    /// Adds the kernel configuration map.
    pub(crate) fn add_config(&mut self, spec: MapSpec) {
        self.config = Some(self.add(spec));
    }

    fn add(&mut self, mut spec: MapSpec) -> usize {
        fill_sizes(&mut spec);
        self.specs.push(spec);
        self.specs.len() - 1
    }

    /// The map defined at an offset of a section.
    pub(crate) fn at(&self, section: usize, offset: u64) -> Option<usize> {
        self.by_place.get(&(section, offset)).copied()
    }

    /// The map that represents a data section.
    pub(crate) fn of_section(&self, section: usize) -> Option<usize> {
        self.by_section.get(&section).copied()
    }

    /// Whether a section has map definitions.
    pub(crate) fn defined_in(&self, section: usize) -> bool {
        self.sections.contains(&section)
    }
}

/// Sets the sizes that a perf event array leaves out to the only ones that there are, as Go's loader does (cilium/ebpf).
fn fill_sizes(spec: &mut MapSpec) {
    if spec.kind == MapKind::PerfEventArray {
        for size in [&mut spec.key_size, &mut spec.value_size] {
            *size = if *size == 0 { 4 } else { *size };
        }
    }
}

/// A map of which only name and kind are known.
pub(crate) fn blank(name: &str, kind: MapKind) -> MapSpec {
    MapSpec::new(name, kind, 0, 0, 0)
}

/// Size of a ring buffer in bytes, rounded up as by libbpf (`adjust_ringbuf_sz`) to a power of two of pages. 0 and sizes that are
/// too large are unchanged, for the kernel's checks to refuse.
pub(crate) fn ring_size(bytes: u32) -> u32 {
    const PAGE: u32 = 4096;
    match bytes {
        0 => 0,
        bytes => bytes
            .div_ceil(PAGE)
            .checked_next_power_of_two()
            .and_then(|n| n.checked_mul(PAGE))
            .unwrap_or(bytes),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn rings_are_a_power_of_two_of_pages() {
        let sizes = [0, 1, 4096, 4097, 12_288, 1 << 20, (1 << 20) + 1, 1 << 31, u32::MAX];
        let made = [0, 4096, 4096, 8192, 16_384, 1 << 20, 1 << 21, 1 << 31, u32::MAX];
        assert_eq!(sizes.map(super::ring_size), made);
    }
}
