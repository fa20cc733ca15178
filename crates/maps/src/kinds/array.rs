//! Arrays of values (`kernel/bpf/arraymap.c`).

use std::ptr::NonNull;

use paceline_btf::SpecialField;
use paceline_spec::{Errno, MapFlags};

use crate::create::{ACCESS, CreateErrorKind, NUMA_NODE, Request};
use crate::fill::Fill;
use crate::indices::{check, index_of};
use crate::map_ops::{ArrayLayout, Batches, KeySpace, MapOps};
use crate::mode::{LOCK, UpdateMode};
use crate::slab::{Shape, Slab, WORD, prefetch_bytes};
use crate::timer::Timers;
use crate::walks::{AheadFunction, Walks};
use crate::{spin_lock, words};

/// Largest value: `array_map_alloc_check` refuses what is over `INT_MAX`.
const MAX_VALUE: u32 = i32::MAX as u32;

/// Largest value, rounded up to 8, that a CPU's own memory takes: `PCPU_MIN_UNIT_SIZE`.
pub(crate) const MAX_PER_CPU_VALUE: u32 = 32 << 10;

fn update_check(index: Option<usize>, mode: UpdateMode) -> Result<usize, Errno> {
    let index = index.ok_or(Errno::E2BIG)?;
    if mode == UpdateMode::NoExist { Err(Errno::EEXIST) } else { Ok(index) }
}

/// In `array_map_update_elem` a lock that is not there is the last thing refused.
fn program_update_check(index: Option<usize>, flags: u64) -> Result<usize, Errno> {
    let index = update_check(index, UpdateMode::from_flags(flags & !LOCK)?)?;
    if flags & LOCK == 0 { Ok(index) } else { Err(Errno::EINVAL) }
}

fn new_slab(request: &Request<'_>, lanes: usize) -> Result<Slab, CreateErrorKind> {
    let shape = Shape { lanes, cells: request.entries(), words: words::words_for(request.value_size()) };
    request.check_memory(shape.bytes().map(|bytes| bytes as u64))?;
    Ok(Slab::new(shape)?)
}

/// `BPF_MAP_TYPE_ARRAY`
pub(crate) struct Array {
    slab: Slab,
    entries: usize,
    value_size: usize,
    special: Box<[SpecialField]>,
    timers: Option<Timers>,
}

impl Array {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        check(request, ACCESS | NUMA_NODE | MapFlags::MMAPABLE | MapFlags::INNER_MAP)?;
        request.check_value_at_most(MAX_VALUE)?;
        let slab = new_slab(request, 1)?;
        Ok(Box::new(Self {
            slab,
            entries: request.entries(),
            value_size: request.value_size(),
            special: request.spec.special.clone(),
            timers: Timers::of(&request.spec.special),
        }))
    }
}

impl Array {
    /// The value of an index was replaced.
    fn end_timer(&self, index: usize) {
        if let Some(timers) = &self.timers
            && let Some(value) = self.slab.cell(0, index)
        {
            timers.forget(value.addr().get());
        }
    }
}

impl MapOps for Array {
    fn batches(&self) -> Batches {
        Batches::Update
    }

    #[inline]
    fn lookup(&self, key: &[u8], _cpu: usize) -> Option<NonNull<u8>> {
        self.slab.cell(0, index_of(key, self.entries)?)
    }

    fn ahead_function(&self) -> Option<AheadFunction> {
        Some(AheadFunction::new(self, ahead_of::<Self>, true))
    }

    fn look_up_bytes(&self, _: Fill) -> u64 {
        // All of one CPU's: no count of those in use is kept.
        self.slab.lane_stride() as u64
    }

    fn update(&self, key: &[u8], value: &[u8], flags: u64, _cpu: usize) -> Result<(), Errno> {
        let index = program_update_check(index_of(key, self.entries), flags)?;
        words::fill_around(self.slab.words(0, index), value, &self.special);
        self.end_timer(index);
        Ok(())
    }

    fn change_locked(&self, key: &[u8], value: &[u8], mode: UpdateMode, lock: usize) -> Result<bool, Errno> {
        let index = update_check(index_of(key, self.entries), mode)?;
        let lock = self.slab.half_word(0, index, lock).ok_or(Errno::EINVAL)?;
        spin_lock::hold(lock, || words::fill_around(self.slab.words(0, index), value, &self.special));
        self.end_timer(index);
        Ok(true)
    }

    fn get_locked(&self, key: &[u8], out: &mut Vec<u8>, lock: usize) -> Result<(), Errno> {
        let index = index_of(key, self.entries).ok_or(Errno::ENOENT)?;
        let lock = self.slab.half_word(0, index, lock).ok_or(Errno::EINVAL)?;
        spin_lock::hold(lock, || words::append(out, self.slab.words(0, index), self.value_size));
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.remove(key)
    }

    fn contains(&self, address: usize, len: usize) -> bool {
        self.slab.holds(address, len, 0, self.value_size)
    }

    fn offset_in_value(&self, address: usize) -> Option<usize> {
        self.slab.offset_in_cell(address)
    }

    fn timers(&self) -> Option<&Timers> {
        self.timers.as_ref()
    }

    fn key_at(&self, value: usize) -> Option<Vec<u8>> {
        Some((self.slab.index_of(value)? as u32).to_ne_bytes().to_vec())
    }

    fn user_value_size(&self) -> usize {
        self.value_size
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        let index = index_of(key, self.entries).ok_or(Errno::ENOENT)?;
        words::append(out, self.slab.words(0, index), self.value_size);
        Ok(())
    }

    fn set(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        let index = update_check(index_of(key, self.entries), mode)?;
        words::fill_around(self.slab.words(0, index), value, &self.special);
        self.end_timer(index);
        Ok(())
    }

    fn remove(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::Indices(self.entries)
    }

    fn direct_value(&self, offset: u32) -> Result<NonNull<u8>, Errno> {
        let offset = offset as usize;
        match self.slab.cell(0, 0) {
            Some(_) if offset >= self.value_size => Err(Errno::EINVAL),
            Some(value) if self.entries == 1 => Ok(value.map_addr(|address| address.saturating_add(offset))),
            _ => Err(Errno::ENOTSUPP),
        }
    }

    fn array_layout(&self) -> Option<ArrayLayout> {
        layout(&self.slab, 0)
    }
}

fn layout(slab: &Slab, cpu_stride: usize) -> Option<ArrayLayout> {
    let entries = u32::try_from(slab.shape().cells).ok()?;
    Some(ArrayLayout { base: slab.cell(0, 0)?, stride: slab.stride(), cpu_stride, entries })
}

/// `BPF_MAP_TYPE_PERCPU_ARRAY`
pub(crate) struct PerCpuArray {
    slab: Slab,
    entries: usize,
    value_size: usize,
}

impl PerCpuArray {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        check(request, ACCESS)?;
        request.check_value_at_most(MAX_PER_CPU_VALUE)?;
        let slab = new_slab(request, request.limits.cpus)?;
        Ok(Box::new(Self { slab, entries: request.entries(), value_size: request.value_size() }))
    }
}

/// Appends the words of one element on every CPU.
pub(crate) fn append_all_cpus(slab: &Slab, cell: usize, out: &mut Vec<u8>) {
    for cpu in 0..slab.shape().lanes {
        words::append(out, slab.words(cpu, cell), slab.stride());
    }
}

/// Sets the words of one element on every CPU.
pub(crate) fn fill_all_cpus(slab: &Slab, cell: usize, value: &[u8]) {
    for (cpu, value) in value.chunks_exact(slab.stride()).enumerate() {
        words::fill(slab.words(cpu, cell), value);
    }
}

impl MapOps for PerCpuArray {
    fn batches(&self) -> Batches {
        Batches::Update
    }

    #[inline]
    fn lookup(&self, key: &[u8], cpu: usize) -> Option<NonNull<u8>> {
        self.slab.cell(cpu, index_of(key, self.entries)?)
    }

    fn ahead_function(&self) -> Option<AheadFunction> {
        Some(AheadFunction::new(self, ahead_of::<Self>, true))
    }

    fn look_up_bytes(&self, _: Fill) -> u64 {
        // All of one CPU's: no count of those in use is kept.
        self.slab.lane_stride() as u64
    }

    fn update(&self, key: &[u8], value: &[u8], flags: u64, cpu: usize) -> Result<(), Errno> {
        let index = program_update_check(index_of(key, self.entries), flags)?;
        if cpu >= self.slab.shape().lanes {
            return Err(Errno::EINVAL);
        }
        words::merge(self.slab.words(cpu, index), value);
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.remove(key)
    }

    fn contains(&self, address: usize, len: usize) -> bool {
        self.slab.holds(address, len, 0, self.value_size)
    }

    fn user_value_size(&self) -> usize {
        self.slab.stride() * self.slab.shape().lanes
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        let index = index_of(key, self.entries).ok_or(Errno::ENOENT)?;
        append_all_cpus(&self.slab, index, out);
        Ok(())
    }

    fn set(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        let index = update_check(index_of(key, self.entries), mode)?;
        fill_all_cpus(&self.slab, index, value);
        Ok(())
    }

    fn remove(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::Indices(self.entries)
    }

    fn array_layout(&self) -> Option<ArrayLayout> {
        layout(&self.slab, self.slab.lane_stride())
    }
}

/// # Safety
/// See [`AheadFunction::function`]; the key is a value of 4 bytes.
unsafe extern "C" fn ahead_of<M: MapOps>(context: u64, key: u64, walks: u64) -> u64 {
    // SAFETY: both are guaranteed by the caller.
    let (map, walks) = unsafe { (&*(context as *const M), &*(walks as *const Walks)) };
    let [key, ..] = words::halves_of(key);
    if let Some(value) = map.lookup(&key, walks.cpu()) {
        prefetch_bytes(value.addr().get(), map.user_value_size());
    }
    0
}

// The smallest unit of per-CPU memory is counted in words.
const _: () = assert!((MAX_PER_CPU_VALUE as usize).is_multiple_of(WORD));
