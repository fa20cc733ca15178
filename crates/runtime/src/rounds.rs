//! Calls of a function of the program by a helper: `bpf_loop` and `bpf_for_each_map_elem` (`kernel/bpf/bpf_iter.c`).

use std::ops::Range;
use std::sync::Arc;

use paceline_maps::{KeyCursor, Map};
use paceline_spec::helper::{Callback, Helper};
use paceline_spec::{Errno, MAX_LOOPS};

/// The calls of a function that one call of a helper makes.
pub struct Rounds {
    /// Calls so far.
    calls: u64,
    /// The program's argument to the function (`callback_ctx`).
    given: u64,
    rest: Rest,
}

impl std::fmt::Debug for Rounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rounds").finish_non_exhaustive()
    }
}

/// The remaining calls.
enum Rest {
    /// For numbers below this one.
    Count(u32),
    /// For elements of a map. The function's key lies in whole words, which have an address of their own.
    Elements { map: Arc<Map>, keys: KeyCursor, key: Box<[u64]> },
}

/// The helper of a number, if it calls functions of the program.
pub fn calls_back(id: i32) -> Option<(&'static Helper, Callback)> {
    let helper = Helper::from_imm(id)?;
    Some((helper, helper.callback()?))
}

impl Rounds {
    /// The calls of a helper with these arguments, the function aside.
    ///
    /// # Errors
    /// The error that the helper returns instead.
    ///
    /// # Safety
    /// The arguments must fit the helper's prototype.
    pub unsafe fn new(callback: Callback, subject: u64, given: u64, flags: u64) -> Result<Self, Errno> {
        match callback {
            Callback::Count => Self::counting(subject as u32, given, flags),
            Callback::Elements => {
                let map = subject as *const Map;
                // SAFETY: the subject is the handle of a map, which is the address in its `Arc`, whose count now has one more.
                let map = unsafe {
                    Arc::increment_strong_count(map);
                    Arc::from_raw(map)
                };
                Self::over(map, given, flags)
            }
        }
    }

    /// One call per number below `count`.
    pub(crate) fn counting(count: u32, given: u64, flags: u64) -> Result<Self, Errno> {
        match (flags, count) {
            (0, ..=MAX_LOOPS) => Ok(Self { calls: 0, given, rest: Rest::Count(count) }),
            (0, _) => Err(Errno::E2BIG),
            _ => Err(Errno::EINVAL),
        }
    }

    /// One call per element of a map. Elements that are added during the calls may be left out, as in the kernel.
    pub(crate) fn over(map: Arc<Map>, given: u64, flags: u64) -> Result<Self, Errno> {
        if flags != 0 {
            return Err(Errno::EINVAL);
        }
        let key = vec![0; (map.spec().key_size as usize).div_ceil(8)].into_boxed_slice();
        Ok(Self { calls: 0, given, rest: Rest::Elements { map, keys: KeyCursor::default(), key } })
    }

    /// Calls so far: the helper's result.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// `r1` to `r5` of the next call.
    pub fn next_arguments(&mut self, cpu: usize) -> Option<[u64; 5]> {
        let arguments = match &mut self.rest {
            Rest::Count(count) => {
                (self.calls < u64::from(*count)).then_some([self.calls, self.given, 0, 0, 0])?
            }
            Rest::Elements { map, keys, key } => {
                let value = loop {
                    let bytes = keys.next(map)?;
                    if let Some(value) = map.for_programs().lookup(bytes, cpu) {
                        fill(key, bytes);
                        break value;
                    }
                };
                let start = key.as_ptr().expose_provenance() as u64;
                [Arc::as_ptr(map) as u64, start, value.as_ptr() as u64, self.given, 0]
            }
        };
        self.calls += 1;
        Some(arguments)
    }

    /// Addresses of the last call's key, for elements of a map.
    pub fn key(&self) -> Option<Range<u64>> {
        let Rest::Elements { map, key, .. } = &self.rest else { return None };
        let start = key.as_ptr().addr() as u64;
        Some(start..start + u64::from(map.spec().key_size))
    }
}

/// Bytes in whole words, in memory order.
pub fn words(bytes: &[u8]) -> Box<[u64]> {
    let mut words = vec![0; bytes.len().div_ceil(8)].into_boxed_slice();
    fill(&mut words, bytes);
    words
}

fn fill(words: &mut [u64], bytes: &[u8]) {
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_ne_bytes(bytes);
    }
}
