//! An array of one word per index, zero where nothing is stored: what the maps of references (devices, CPUs,
//! sockets, programs) are made of. A word is read and replaced whole.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use paceline_spec::Errno;

use crate::create::{CreateErrorKind, Request};
use crate::indices::index_of;
use crate::mode::UpdateMode;
use crate::slab::{Shape, Slab};

pub(crate) struct Entries {
    slab: Slab,
    count: usize,
}

impl Entries {
    /// Checks the memory and takes it.
    pub(crate) fn open(request: &Request<'_>) -> Result<Self, CreateErrorKind> {
        Self::with_words(request, 1)
    }

    /// Entries with a second word each, for [`companion`](Self::companion).
    pub(crate) fn with_companions(request: &Request<'_>) -> Result<Self, CreateErrorKind> {
        Self::with_words(request, 2)
    }

    fn with_words(request: &Request<'_>, words: usize) -> Result<Self, CreateErrorKind> {
        let shape = Shape { lanes: 1, cells: request.entries(), words };
        request.check_memory(shape.bytes().map(|bytes| bytes as u64))?;
        Ok(Self { slab: Slab::new(shape)?, count: request.entries() })
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Index of a key, where it is in range.
    pub(crate) fn index(&self, key: &[u8]) -> Option<usize> {
        index_of(key, self.count)
    }

    /// Number of words that are not zero.
    pub(crate) fn set(&self) -> usize {
        (0..self.count).filter(|&index| self.load(index).is_some()).count()
    }

    /// The index for an update: these kinds have all indices from the start, so `NOEXIST` never succeeds.
    pub(crate) fn index_for_update(&self, key: &[u8], mode: UpdateMode) -> Result<usize, Errno> {
        let index = self.index(key).ok_or(Errno::E2BIG)?;
        if mode == UpdateMode::NoExist { Err(Errno::EEXIST) } else { Ok(index) }
    }

    fn word(&self, index: usize) -> Option<&AtomicU64> {
        self.slab.words(0, index).first()
    }

    /// Bytes from the words of one index to those of the next.
    pub(crate) fn stride(&self) -> usize {
        self.slab.stride()
    }

    /// The second word of an index.
    pub(crate) fn companion(&self, index: usize) -> Option<&AtomicU64> {
        self.slab.words(0, index).get(1)
    }

    /// The word of an index, `None` when it is zero or out of range.
    #[inline]
    pub(crate) fn load(&self, index: usize) -> Option<u64> {
        self.word(index).map(|word| word.load(Ordering::Acquire)).filter(|&word| word != 0)
    }

    /// Replaces a word and returns the earlier one, 0 when out of range.
    pub(crate) fn swap(&self, index: usize, value: u64) -> u64 {
        self.word(index).map_or(0, |word| word.swap(value, Ordering::AcqRel))
    }

    /// Replaces a word if the mode allows it; one that is there already may always be stored again.
    pub(crate) fn exchange(&self, index: usize, value: u64, mode: UpdateMode) -> Result<(), Errno> {
        self.replace_if(index, value, |old| if old == value { Ok(()) } else { mode.check(old != 0) })
    }

    /// Replaces a word if the mode allows it, also by itself.
    pub(crate) fn replace(&self, index: usize, value: u64, mode: UpdateMode) -> Result<(), Errno> {
        self.replace_if(index, value, |old| mode.check(old != 0))
    }

    fn replace_if(
        &self,
        index: usize,
        value: u64,
        allow: impl Fn(u64) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let word = self.word(index).ok_or(Errno::E2BIG)?;
        let new = |old| allow(old).is_ok().then_some(value);
        word.fetch_update(Ordering::AcqRel, Ordering::Acquire, new).map(drop).or_else(allow)
    }

    /// Appends the first `size` bytes of the word under a key, as user space reads it.
    pub(crate) fn get(&self, key: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), Errno> {
        let word = self.index(key).and_then(|index| self.load(index)).ok_or(Errno::ENOENT)?;
        Pair::from_word(word).append(out, size);
        Ok(())
    }

    /// Address of a word that is not zero.
    pub(crate) fn address(&self, index: usize) -> Option<NonNull<u8>> {
        self.load(index)?;
        self.slab.cell(0, index)
    }

    /// Whether a range lies in the first `size` bytes of one word.
    pub(crate) fn contains(&self, address: usize, len: usize, size: usize) -> bool {
        self.slab.holds(address, len, 0, size)
    }
}

/// Two 32-bit fields in memory order, as `struct bpf_devmap_val` and `struct bpf_cpumap_val` have them.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) first: u32,
    pub(crate) second: u32,
}

impl Pair {
    /// An entry that is not there.
    pub(crate) const NONE: Self = Self { first: 0, second: 0 };

    /// From a value of 4 or 8 bytes; a missing second field is 0.
    pub(crate) fn from_value(value: &[u8]) -> Self {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
        Self::from_word(u64::from_ne_bytes(bytes))
    }

    pub(crate) fn from_word(word: u64) -> Self {
        let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
        Self { first: u32::from_ne_bytes([a, b, c, d]), second: u32::from_ne_bytes([e, f, g, h]) }
    }

    pub(crate) fn to_word(self) -> u64 {
        let ([a, b, c, d], [e, f, g, h]) = (self.first.to_ne_bytes(), self.second.to_ne_bytes());
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    }

    /// Appends the first `size` bytes.
    pub(crate) fn append(self, out: &mut Vec<u8>, size: usize) {
        out.extend(self.to_word().to_ne_bytes().into_iter().take(size));
    }

    /// A program number from user space, where the kernel takes a descriptor and gives back an id: 0 and below
    /// say that there is none.
    pub(crate) fn with_program_number(self) -> Self {
        let program = i32::from_ne_bytes(self.second.to_ne_bytes());
        if program > 0 { self } else { Self { second: 0, ..self } }
    }
}
