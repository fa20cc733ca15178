//! What repeats code: helpers that call functions of the program, and kernel functions of iterators.

use std::sync::Arc;

use paceline_isa::Reg;
use paceline_maps::Map;
use paceline_spec::helper::{Callback, Helper};
use paceline_spec::kfunc::{KfuncArg, NUM_ITERATOR_BYTES};
use paceline_spec::{Errno, MAX_LOOPS};

use super::{Machine, Next};
use crate::fault::FaultKind;
use crate::helpers::kfunc_fn;
use crate::host::MAX_FRAMES;
use crate::region::Access;

/// A call of a helper that is going on while the function runs which it calls.
pub(crate) struct CallingBack {
    function: usize,
    /// What the program gives to the function through the helper.
    given: u64,
    calls: u64,
    rest: Rest,
}

/// What it still calls the function for.
enum Rest {
    /// Numbers below this one.
    Count(u32),
    /// Elements of a map that have these keys; the key that the function looks at lies in whole words, for its address.
    Elements { map: Arc<Map>, keys: std::vec::IntoIter<Vec<u8>>, key: Box<[u64]> },
}

/// The helper of a number, if it calls back.
pub(super) fn calls_back(id: i32) -> Option<(&'static Helper, Callback)> {
    let helper = u32::try_from(id).ok().and_then(Helper::from_id)?;
    Some((helper, helper.callback()?))
}

impl Machine<'_> {
    /// The slot of a function, by its address: functions are known by their slot.
    pub(super) fn function(&self, address: u64) -> Option<usize> {
        let slot = usize::try_from(address).ok()?;
        self.image.code.get(slot).map(|_| slot)
    }

    pub(super) fn call_back(
        &mut self,
        helper: &'static Helper,
        callback: Callback,
    ) -> Result<Next, FaultKind> {
        if let Some(prototype) = &helper.prototype {
            self.check_arguments(helper, prototype)?;
        }
        if self.callers.len() + 1 == MAX_FRAMES {
            return Err(FaultKind::CallDepth(MAX_FRAMES));
        }
        let [_, subject, function, given, flags, ..] = self.registers;
        let function = self.function(function).ok_or(FaultKind::LeftProgram)?;
        let rest = match callback {
            _ if flags != 0 => Err(Errno::EINVAL),
            Callback::Count if subject as u32 > MAX_LOOPS => Err(Errno::E2BIG),
            Callback::Count => Ok(Rest::Count(subject as u32)),
            Callback::Elements => {
                let map = self.regions.map(subject).ok_or(FaultKind::LeftProgram)?.clone();
                // Elements that come while the function runs are left out, as they may be in the kernel.
                let keys: Vec<Vec<u8>> = map.program_keys().collect();
                Ok(Rest::Elements { map, keys: keys.into_iter(), key: Box::default() })
            }
        };
        match rest {
            Ok(rest) => {
                Ok(self.call_once_more(self.slot + 1, CallingBack { function, given, calls: 0, rest }))
            }
            Err(errno) => {
                self.set(Reg::R0, errno.to_return());
                Ok(Next::Follow)
            }
        }
    }

    /// Calls the function, or returns from the helper to `slot`.
    fn call_once_more(&mut self, slot: usize, mut calling_back: CallingBack) -> Next {
        let Some(arguments) = self.next_arguments(&mut calling_back) else {
            self.set(Reg::R0, calling_back.calls);
            return Next::Jump(slot);
        };
        let function = calling_back.function;
        self.enter(slot, Some(calling_back));
        self.registers[1..6].copy_from_slice(&arguments);
        Next::Jump(function)
    }

    fn next_arguments(&mut self, calling_back: &mut CallingBack) -> Option<[u64; 5]> {
        let given = calling_back.given;
        let arguments = match &mut calling_back.rest {
            Rest::Count(count) => {
                (calling_back.calls < u64::from(*count)).then_some([calling_back.calls, given, 0, 0, 0])?
            }
            Rest::Elements { map, keys, key } => {
                let cpu = self.host.cpu();
                let (bytes, value) =
                    keys.find_map(|bytes| map.lookup(&bytes, cpu).map(|value| (bytes, value)))?;
                *key = words(&bytes);
                let start = key.as_ptr().expose_provenance() as u64;
                self.regions.keys.push(start..start + bytes.len() as u64);
                [Arc::as_ptr(map) as u64, start, value.as_ptr() as u64, given, 0]
            }
        };
        calling_back.calls += 1;
        Some(arguments)
    }

    /// The function has returned to the helper, which was called before `slot`.
    pub(super) fn called_back(&mut self, slot: usize, calling_back: CallingBack) -> Next {
        if let Rest::Elements { .. } = calling_back.rest {
            self.regions.keys.pop();
        }
        if self.get(Reg::R0) == 0 {
            return self.call_once_more(slot, calling_back);
        }
        self.set(Reg::R0, calling_back.calls);
        Next::Jump(slot)
    }

    pub(super) fn call_kfunc(&mut self, index: i32) -> Result<u64, FaultKind> {
        let kfunc = self.image.spec.kfunc(index).ok_or(FaultKind::NoSuchKfunc(index))?;
        let function = kfunc_fn(kfunc.name).ok_or(FaultKind::NoSuchKfunc(index))?;
        for (arg, value) in kfunc.args.iter().zip(&self.registers[1..]) {
            if *arg == KfuncArg::NumIterator {
                for access in [Access::Read, Access::Write] {
                    self.allow(*value, 0, u64::from(NUM_ITERATOR_BYTES), access)?;
                }
            }
        }
        let [_, r1, r2, r3, r4, r5, ..] = self.registers;
        // SAFETY: iterators are memory that was just allowed, and the other arguments are numbers.
        Ok(unsafe { function(r1, r2, r3, r4, r5, self.host) })
    }
}

/// Bytes in words, as they lie in memory.
fn words(bytes: &[u8]) -> Box<[u64]> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}
