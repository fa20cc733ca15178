//! Perf event arrays (`BPF_MAP_TYPE_PERF_EVENT_ARRAY`). In the kernel an entry is the perf event that a CPU's output
//! goes to. Here programs' output goes to the engine, whatever the index, so there is nothing to store.

use paceline_spec::{Errno, MapFlags};

use crate::create::{CreateErrorKind, REFERENCE_FLAGS, Request};
use crate::indices;
use crate::map_ops::{KeySpace, MapOps};
use crate::mode::UpdateMode;

/// `BPF_F_PRESERVE_ELEMS`: entries outlive the descriptor that set them; without effect here.
const PRESERVE_ELEMS: MapFlags = MapFlags(1 << 11);

pub(crate) struct PerfEventArray {
    entries: usize,
}

impl PerfEventArray {
    /// `max_entries` of 0 stands for one entry per CPU, as in libbpf.
    pub(crate) fn open(request: &mut Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        if request.spec.max_entries == 0 {
            request.spec.max_entries = u32::try_from(request.limits.cpus).unwrap_or(u32::MAX);
        }
        indices::check(request, REFERENCE_FLAGS | PRESERVE_ELEMS)?;
        request.check_value_is_one_of(&[4])?;
        Ok(Box::new(Self { entries: request.entries() }))
    }
}

impl MapOps for PerfEventArray {
    fn user_value_size(&self) -> usize {
        4
    }

    fn get(&self, _key: &[u8], _out: &mut Vec<u8>) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    /// There are no perf events, so no value is the descriptor of one.
    fn set(&self, key: &[u8], _value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        if mode != UpdateMode::Any {
            return Err(Errno::EINVAL);
        }
        indices::index_of(key, self.entries).ok_or(Errno::E2BIG)?;
        Err(Errno::EBADF)
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        indices::index_of(key, self.entries).ok_or(Errno::E2BIG)?;
        Err(Errno::ENOENT)
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::Indices(self.entries)
    }
}
