//! Helpers that call a function of the program: `bpf_loop` and `bpf_for_each_map_elem` (`kernel/bpf/bpf_iter.c`).

use std::mem::transmute;
use std::ops::Range;
use std::sync::Arc;

use paceline_maps::{KeyCursor, Map};
use paceline_spec::helper::{Callback, Helper};
use paceline_spec::{Errno, MAX_LOOPS};

use super::HelperFn;
use super::argument::{Code, Passed};
use super::map_argument::shared_map;
use crate::host::Host;

/// The calls that one call of a helper makes.
pub(crate) struct Rounds {
    /// Calls so far.
    calls: u64,
    /// What the program gives to the function through the helper.
    given: u64,
    rest: Rest,
}

/// What it still calls the function for.
enum Rest {
    /// Numbers below this one.
    Count(u32),
    /// Elements of a map from a key on; the key that the function looks at lies in whole words, for its address.
    Elements { map: Arc<Map>, keys: KeyCursor, key: Box<[u64]> },
}

/// The helper of a number, if it calls back.
pub(crate) fn calls_back(id: i32) -> Option<(&'static Helper, Callback)> {
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
    pub(crate) unsafe fn new(
        callback: Callback,
        subject: u64,
        given: u64,
        flags: u64,
    ) -> Result<Self, Errno> {
        match callback {
            Callback::Count => Self::counting(subject as u32, given, flags),
            // SAFETY: the subject is a map.
            Callback::Elements => Self::over(unsafe { shared_map(subject) }, given, flags),
        }
    }

    /// One call per number below `count`.
    fn counting(count: u32, given: u64, flags: u64) -> Result<Self, Errno> {
        match (flags, count) {
            (0, ..=MAX_LOOPS) => Ok(Self { calls: 0, given, rest: Rest::Count(count) }),
            (0, _) => Err(Errno::E2BIG),
            _ => Err(Errno::EINVAL),
        }
    }

    /// One call per element of a map. Elements that are added during the calls may be left out, as in the kernel.
    fn over(map: Arc<Map>, given: u64, flags: u64) -> Result<Self, Errno> {
        if flags != 0 {
            return Err(Errno::EINVAL);
        }
        let key = vec![0; (map.spec().key_size as usize).div_ceil(8)].into_boxed_slice();
        Ok(Self { calls: 0, given, rest: Rest::Elements { map, keys: KeyCursor::default(), key } })
    }

    /// Calls so far, which is what the helper returns.
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    /// `r1` to `r5` of the next call.
    pub(crate) fn next_arguments(&mut self, cpu: usize) -> Option<[u64; 5]> {
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

    /// Where the key lies that the last call was made for, if it was for one.
    pub(crate) fn key(&self) -> Option<Range<u64>> {
        let Rest::Elements { map, key, .. } = &self.rest else { return None };
        let start = key.as_ptr().addr() as u64;
        Some(start..start + u64::from(map.spec().key_size))
    }
}

/// Bytes in words, as they lie in memory.
pub(crate) fn words(bytes: &[u8]) -> Box<[u64]> {
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

/// Calls a function as a helper is called, with the host in the sixth argument, until it returns other than 0. The result is the
/// number of calls.
fn call_rounds(rounds: Result<Rounds, Errno>, function: Code, host: &mut Host) -> Result<u64, Errno> {
    let mut rounds = rounds?;
    // SAFETY: native code passes the address of a function of the running program, which is called as helpers are.
    let function = unsafe { transmute::<usize, HelperFn>(function.0 as usize) };
    while let Some([r1, r2, r3, r4, r5]) = rounds.next_arguments(host.cpu()) {
        // SAFETY: the function takes these arguments, as the verifier has shown.
        let r0 = unsafe { function(r1, r2, r3, r4, r5, host) };
        // The run may have ended in a program that the function tail called.
        if r0 != 0 || host.fault.is_some() {
            break;
        }
    }
    Ok(rounds.calls())
}

/// `long bpf_loop(u32 nr_loops, void *callback_fn, void *callback_ctx, u64 flags)`, for native code.
pub(super) fn count(
    host: &mut Host,
    count: u32,
    function: Code,
    given: Passed,
    flags: u64,
) -> Result<u64, Errno> {
    call_rounds(Rounds::counting(count, given.0, flags), function, host)
}

/// `long bpf_for_each_map_elem(struct bpf_map *map, void *callback_fn, void *callback_ctx, u64 flags)`, for native code.
pub(super) fn elements(
    host: &mut Host,
    map: Arc<Map>,
    function: Code,
    given: Passed,
    flags: u64,
) -> Result<u64, Errno> {
    call_rounds(Rounds::over(map, given.0, flags), function, host)
}
