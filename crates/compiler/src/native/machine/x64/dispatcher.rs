//! Dispatchers: code that selects a program by comparisons with its key, and jumps to it directly.
//!
//! An indirect call becomes a direct one: binary search over the keys, with greater-than to split, equality to jump, and a default
//! target for unknown keys. If keys are addresses of programs, the default is an indirect jump to the key.
//!
//! A dispatcher has the calling convention of its targets, plus the key in the fourth argument. It preserves all arguments except
//! the token, where the case replaces it.

use super::asm::{Alu, Assembler, Cond, Fill, Gpr, Mem, OpSize};
use super::entry::HOST_ARGUMENT;
use crate::native::code::{AssembleError, Code};
use crate::native::machine::operand::Width;

/// The fourth argument.
const KEY: Gpr = Gpr::Rcx;
/// The key minus the base; not an argument register.
const DISTANCE: Gpr = Gpr::Rax;
/// For constants that do not fit a 32-bit immediate.
const SCRATCH: Gpr = Gpr::R11;
/// Alignment of dispatchers and their jump targets, as a power of 2: a cache line, which fits a run of cases whose keys are
/// addresses. A run that crosses a line costs one cycle more.
const LINE: u8 = 6;
/// Alignment of jump targets where runs end with a retpoline, as in the seed: these runs cross a line in any case, and a retpoline
/// at the start of a line was measured to be slower.
const HARDENED: u8 = 4;

/// A key and its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The key.
    pub key: u64,
    /// The address to jump to, within 2 GiB of wherever the code will be.
    pub target: u64,
    /// The new value of the token; `None` keeps the caller's.
    pub token: Option<u64>,
}

/// Default target for keys without a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// An indirect jump to the key as an address.
    Indirect {
        /// Use a retpoline, which has no predictable indirect branch (Intel 337131, "Retpoline: A Branch Target Injection
        /// Mitigation").
        retpoline: bool,
        /// Offset in bytes of a 64-bit counter of these jumps from the start of the host, which is the sixth argument.
        count: i32,
    },
    /// To this address, within 2 GiB.
    Target(u64),
}

/// The argument that holds the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenArgument {
    /// The second, as in entries for single packets.
    Second,
    /// The third, as in entries for bursts.
    Third,
}

/// One dispatcher.
#[derive(Clone, Copy, Debug)]
pub struct Dispatcher<'a> {
    /// In any order; of equal keys the first one takes precedence.
    pub cases: &'a [Case],
    /// The default target.
    pub otherwise: Otherwise,
    /// The argument that holds the token.
    pub token: TokenArgument,
    /// Maximum number of cases that are compared linearly at a leaf of the search. 1 searches to the end, as the seed does; [`RUN`]
    /// is the fastest.
    pub run: usize,
}

/// Number of cases for linear comparison: an untaken branch costs a fraction of a taken one.
pub const RUN: usize = 4;

/// Generates the code of dispatchers in sequence, and returns their offsets. The code must be placed at a multiple of 64 bytes.
///
/// # Errors
/// [`AssembleError::TooLong`] for tens of millions of cases.
pub fn dispatchers(dispatchers: &[Dispatcher<'_>]) -> Result<(Code, Vec<u32>), AssembleError> {
    let mut asm = Assembler::new();
    let mut starts = Vec::new();
    for dispatcher in dispatchers {
        asm.align(LINE, Fill::Int3);
        let start = asm.new_label();
        asm.bind(start);
        starts.push(start);
        Tree::emit(&mut asm, dispatcher);
    }
    let code = asm.finish()?;
    let starts = starts.into_iter().filter_map(|label| code.offset(label)).collect();
    Ok((code, starts))
}

struct Tree<'a> {
    asm: &'a mut Assembler,
    /// The compared register: the key, or its distance from the base.
    compared: Gpr,
    base: u64,
    otherwise: Otherwise,
    alignment: u8,
    token: Gpr,
    run: usize,
}

impl Tree<'_> {
    fn emit(asm: &mut Assembler, dispatcher: &Dispatcher<'_>) {
        let base = base(dispatcher.cases);
        let mut cases = dispatcher.cases.to_vec();
        cases.sort_by_key(|case| distance(case.key, base));
        cases.dedup_by_key(|case| case.key);
        let token = match dispatcher.token {
            TokenArgument::Second => Gpr::Rsi,
            TokenArgument::Third => Gpr::Rdx,
        };
        let compared = if base == 0 { KEY } else { DISTANCE };
        let (otherwise, run) = (dispatcher.otherwise, dispatcher.run.max(1));
        let alignment =
            if matches!(otherwise, Otherwise::Indirect { retpoline: true, .. }) { HARDENED } else { LINE };
        let mut tree = Tree { asm, compared, base, otherwise, alignment, token, run };
        if base != 0 {
            tree.asm.mov_ri(DISTANCE, base.wrapping_neg());
            tree.asm.alu_rr(Alu::Add, Width::Q64, DISTANCE, KEY);
        }
        tree.search(&cases);
    }

    /// Each key reaches exactly one leaf, where it is compared for equality: unknown keys may take either branch of a split.
    fn search(&mut self, cases: &[Case]) {
        if cases.len() <= self.run {
            return self.ends(cases);
        }
        let (low, high) = cases.split_at(cases.len().div_ceil(2));
        let above = self.asm.new_label();
        if let Some(pivot) = low.last() {
            self.compare(pivot);
        }
        self.asm.jcc(Cond::G, above);
        self.search(low);
        self.asm.align(self.alignment, Fill::Int3);
        self.asm.bind(above);
        self.search(high);
    }

    fn ends(&mut self, cases: &[Case]) {
        for case in cases {
            if let Some(token) = case.token {
                self.asm.mov_ri(self.token, token);
            }
            self.compare(case);
            self.asm.jcc_extern(Cond::E, case.target);
        }
        // Emitted per leaf: a shared default target would cost a further jump.
        leave(self.asm, self.otherwise);
    }

    fn compare(&mut self, case: &Case) {
        match i32::try_from(distance(case.key, self.base)) {
            Ok(distance) => self.asm.alu_ri(Alu::Cmp, Width::Q64, self.compared, distance),
            Err(_) => {
                self.asm.mov_ri(SCRATCH, case.key.wrapping_sub(self.base));
                self.asm.alu_rr(Alu::Cmp, Width::Q64, self.compared, SCRATCH);
            }
        }
    }
}

fn distance(key: u64, base: u64) -> i64 {
    key.wrapping_sub(base).cast_signed()
}

/// The base to subtract from all keys so that most of them fit an immediate: 0 for small numbers, the median for addresses, which
/// lie close together.
fn base(cases: &[Case]) -> u64 {
    if cases.iter().all(|case| i32::try_from(case.key.cast_signed()).is_ok()) {
        return 0;
    }
    let mut keys: Vec<u64> = cases.iter().map(|case| case.key).collect();
    let middle = keys.len() / 2;
    *keys.select_nth_unstable(middle).1
}

fn leave(asm: &mut Assembler, otherwise: Otherwise) {
    match otherwise {
        Otherwise::Target(target) => asm.jmp_extern(target),
        Otherwise::Indirect { retpoline, count } => {
            asm.inc_m(OpSize::Q64, Mem::at(HOST_ARGUMENT, count));
            if retpoline { jump_by_return(asm) } else { asm.jmp_r(KEY) }
        }
    }
}

/// A retpoline: a jump to the key through `ret`, whose prediction comes from the `call` and leads to a loop without effects.
///
/// The loop has the fence first, unlike that of compilers, which comes after the pause. The fence stops speculation; a pause that
/// is in progress when the return resolves may delay the jump, depending on the position of the code.
fn jump_by_return(asm: &mut Assembler) {
    let (captured, replaced) = (asm.new_label(), asm.new_label());
    asm.call(replaced);
    asm.bind(captured);
    asm.lfence();
    asm.pause();
    asm.jmp(captured);
    asm.bind(replaced);
    asm.store(OpSize::Q64, Mem::at(Gpr::Rsp, 0), KEY);
    asm.ret();
}
