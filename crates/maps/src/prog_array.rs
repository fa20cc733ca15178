//! Program arrays (`BPF_MAP_TYPE_PROG_ARRAY`), the tables of `bpf_tail_call`.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering;

use paceline_spec::Errno;

use crate::array;
use crate::create::{CreateErrorKind, REFERENCE_FLAGS, Request};
use crate::entries::{Entries, Pair};
use crate::storage::{Mode, Storage};

/// Second half of an entry that is there: 0 is a program number too.
const PRESENT: u32 = 1;

/// An array of programs. An entry is a program's number, given by user space, and beside it a token, given by the
/// engine that runs the programs: whatever it needs to jump there. A new number leaves the entry without a token
/// until the engine gives it one with [`bind`](Self::bind).
pub struct ProgArray {
    programs: Entries,
}

impl ProgArray {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn Storage>, CreateErrorKind> {
        array::check(request, REFERENCE_FLAGS)?;
        request.check_value_is_one_of(&[4])?;
        Ok(Box::new(Self { programs: Entries::with_companions(request)? }))
    }

    /// Number of entries, empty ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.programs.count()
    }

    /// Never true: a map has at least one entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of the program at an index; `None` where `bpf_tail_call` fails.
    #[inline]
    #[must_use]
    pub fn program(&self, index: u32) -> Option<u32> {
        self.programs.load(index as usize).map(|word| Pair::from_word(word).first)
    }

    /// The engine's token at an index; `None` when the entry is empty or not yet bound.
    #[inline]
    #[must_use]
    pub fn token(&self, index: u32) -> Option<NonZeroU64> {
        NonZeroU64::new(self.programs.companion(index as usize)?.load(Ordering::Acquire))
    }

    /// Gives the program at an index a token. `false` when the entry does not hold that program (any more): no
    /// token is left there by this call then.
    ///
    /// # Safety
    /// The engine whose programs use this map trusts tokens, as addresses to jump to perhaps: the token must be one
    /// that it made for this program, and stay good as long as the map may hand it out.
    pub unsafe fn bind(&self, index: u32, program: u32, token: NonZeroU64) -> bool {
        let Some(word) = self.programs.companion(index as usize) else { return false };
        if self.program(index) != Some(program) {
            return false;
        }
        word.store(token.get(), Ordering::Release);
        // User space may have changed the entry in between, and then its clearing of the token came too early.
        let still = self.program(index) == Some(program);
        if !still {
            let _ = word.compare_exchange(token.get(), 0, Ordering::AcqRel, Ordering::Relaxed);
        }
        still
    }

    fn put(&self, index: usize, entry: u64) -> u64 {
        let old = self.programs.swap(index, entry);
        if let Some(token) = self.programs.companion(index) {
            token.store(0, Ordering::Release);
        }
        old
    }
}

impl Storage for ProgArray {
    fn user_value_size(&self) -> usize {
        4
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        let index = self.programs.index(key).ok_or(Errno::ENOENT)?;
        let word = self.programs.load(index).ok_or(Errno::ENOENT)?;
        Pair::from_word(word).append(out, 4);
        Ok(())
    }

    fn set(&self, key: &[u8], value: &[u8], mode: Mode) -> Result<(), Errno> {
        if mode != Mode::Any {
            return Err(Errno::EINVAL);
        }
        let index = self.programs.index(key).ok_or(Errno::E2BIG)?;
        self.put(index, Pair { second: PRESENT, ..Pair::from_value(value) }.to_word());
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        let index = self.programs.index(key).ok_or(Errno::E2BIG)?;
        if self.put(index, 0) == 0 { Err(Errno::ENOENT) } else { Ok(()) }
    }

    fn keys(&self, part: usize, out: &mut Vec<u8>) -> bool {
        self.programs.keys(part, out)
    }

    fn next_key(&self, after: Option<&[u8]>) -> Option<Vec<u8>> {
        self.programs.next_key(after)
    }

    fn prog_array(&self) -> Option<&ProgArray> {
        Some(self)
    }
}
