//! Program arrays (`BPF_MAP_TYPE_PROG_ARRAY`), the tables of `bpf_tail_call`.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use paceline_spec::Errno;

use crate::create::{CreateErrorKind, Request};
use crate::entries::{Entries, Pair};

/// Second half of an entry that is there: 0 is a program number too.
const PRESENT: u32 = 1;

/// Owner that keeps a program alive while an entry names it. Its drop must wait for workers that still run the program.
pub type Owner = Box<dyn Send + Sync>;

/// An array of programs. An entry is a program's number, set by user space, with a token of the engine that runs the programs, by
/// which the engine jumps to the program. An entry without a token has a number alone, and tail calls to it fail.
pub struct ProgArray {
    pub(crate) programs: Entries,
    /// The owners of the entries that are there, if they were given.
    owners: Mutex<BTreeMap<usize, Option<Owner>>>,
    /// Property that all programs using the array share; the first program sets it.
    kind: OnceLock<u64>,
}

impl std::fmt::Debug for ProgArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProgArray").finish_non_exhaustive()
    }
}

/// Layout of the tokens, for generated code: the token of index `i` is at `base + i * stride`; 0 if the entry is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLayout {
    /// Token of index 0; good as long as the map lives.
    pub base: NonNull<AtomicU64>,
    /// Bytes from one token to the next.
    pub stride: usize,
    /// Number of indices.
    pub entries: u32,
}

impl ProgArray {
    /// Checks the memory and takes it.
    pub(crate) fn new(request: &Request<'_>) -> Result<Self, CreateErrorKind> {
        let programs = Entries::with_companions(request)?;
        Ok(Self { programs, owners: Mutex::default(), kind: OnceLock::new() })
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

    /// Removes all entries.
    pub(crate) fn clear(&self) {
        let entries: Vec<usize> = self.owners().keys().copied().collect();
        for index in entries {
            self.empty(index);
        }
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

    /// Layout of the tokens.
    #[must_use]
    pub fn token_layout(&self) -> TokenLayout {
        let base = self.programs.companion(0).map_or(NonNull::dangling(), NonNull::from);
        TokenLayout { base, stride: self.programs.stride(), entries: self.len() as u32 }
    }

    /// Whether programs of a kind may use the array: all must have the kind of the first one
    /// (`bpf_prog_map_compatible` in `kernel/bpf/core.c`).
    #[must_use]
    pub fn admits(&self, kind: u64) -> bool {
        *self.kind.get_or_init(|| kind) == kind
    }

    fn owners(&self) -> MutexGuard<'_, BTreeMap<usize, Option<Owner>>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets an entry; `E2BIG` if it does not exist.
    pub(crate) fn install(
        &self,
        index: usize,
        program: u32,
        token: NonZeroU64,
        owner: Owner,
    ) -> Result<(), Errno> {
        if index >= self.len() {
            return Err(Errno::E2BIG);
        }
        self.put(index, program, Some((token, owner)));
        Ok(())
    }

    /// Sets an entry, with a token or without one.
    pub(crate) fn put(&self, index: usize, program: u32, bound: Option<(NonZeroU64, Owner)>) {
        self.replace(index, Pair { first: program, second: PRESENT }.to_word(), bound);
    }

    /// Empties an entry; whether there was one.
    pub(crate) fn empty(&self, index: usize) -> bool {
        self.replace(index, 0, None) != 0
    }

    /// Replaces an entry, with its token and owner; gives the earlier entry.
    fn replace(&self, index: usize, entry: u64, bound: Option<(NonZeroU64, Owner)>) -> u64 {
        let mut owners = self.owners();
        let old = self.programs.swap(index, entry);
        let (token, owner) = bound.map_or((0, None), |(token, owner)| (token.get(), Some(owner)));
        if let Some(word) = self.programs.companion(index) {
            word.store(token, Ordering::Release);
        }
        let displaced = if entry == 0 { owners.remove(&index) } else { owners.insert(index, owner) };
        drop(owners);
        // Outside the lock: it may be the last to hold a program, and that the last to hold other maps.
        drop(displaced);
        old
    }
}
