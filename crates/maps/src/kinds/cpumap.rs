//! Maps of CPUs (`kernel/bpf/cpumap.c`). A value is `struct bpf_cpumap_val`, or only its `qsize`: length of the
//! CPU's queue in packets, then the number of a program to run there. An index is a CPU (worker) number.

use paceline_spec::{Errno, XdpAttach};

use crate::create::{CreateErrorKind, NUMA_NODE, Request};
use crate::entries::{Entries, Pair};
use crate::entry_program::{Kept, named};
use crate::map_ops::{KeySpace, MapOps, MapTarget};
use crate::mode::UpdateMode;

/// Longest queue in packets, from `cpu_map_update_elem`.
const MAX_QUEUE: u32 = 16384;

/// `NR_CPUS` of a kernel built for the largest x86-64 machines; the kernel's own limit depends on how it was built.
const MAX_ENTRIES: u32 = 8192;

/// `BPF_MAP_TYPE_CPUMAP`; programs may redirect to its entries but not look at them.
pub(crate) struct CpuMap {
    entries: Entries,
    programs: Kept,
    value_size: usize,
    cpus: usize,
}

impl CpuMap {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        request.check_entries()?;
        request.check_index_key()?;
        request.check_value_is_one_of(&[4, 8])?;
        request.check_flags(NUMA_NODE)?;
        request.check_entries_at_most(MAX_ENTRIES)?;
        let (value_size, cpus) = (request.value_size(), request.limits.cpus);
        let (entries, programs) = (Entries::open(request)?, Kept::default());
        Ok(Box::new(Self { entries, programs, value_size, cpus }))
    }
}

impl MapOps for CpuMap {
    fn user_value_size(&self) -> usize {
        self.value_size
    }

    fn entry_programs(&self) -> Option<&Kept> {
        Some(&self.programs)
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        self.entries.get(key, self.value_size, out)
    }

    /// A queue of 0 empties the entry; `EOVERFLOW` when it is too long, `ENODEV` for a CPU that does not exist, and
    /// `ENOMEM` for a program of another attach type, as in the kernel.
    fn set(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        let index = self.entries.index_for_update(key, mode)?;
        let value = Pair::from_value(value).with_program_number();
        if value.first > MAX_QUEUE {
            return Err(Errno::EOVERFLOW);
        }
        if index >= self.cpus {
            return Err(Errno::ENODEV);
        }
        match value.first {
            0 => self.programs.put(&self.entries, index, Pair::NONE, None),
            _ => {
                let program = named(value, XdpAttach::CpuMap, Errno::ENOMEM)?;
                self.programs.put(&self.entries, index, value, program)
            }
        }
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        let index = self.entries.index(key).ok_or(Errno::EINVAL)?;
        self.programs.put(&self.entries, index, Pair::NONE, None)
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::Entries(&self.entries)
    }

    fn redirect_target(&self, index: u32) -> Option<MapTarget> {
        let value = Pair::from_word(self.entries.load(index as usize)?);
        Some(MapTarget::Cpu { cpu: index, queue_size: value.first, program: value.second })
    }
}
