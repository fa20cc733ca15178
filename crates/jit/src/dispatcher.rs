//! Dispatchers: code that chooses among programs by comparing and jumps straight into the one.
//!
//! An indirect call becomes a direct one: binary search over the keys, greater-than to split, equal to jump, and at the end a
//! way out for what is none of them (seed 000). Where keys are addresses of programs the way out is the indirect jump itself.
//!
//! A dispatcher is entered like what it jumps to, with the key in the fourth argument. It changes no argument but, where the
//! case says so, the token.

use crate::plan::HOST_ARGUMENT;
use crate::x64::{Alu, AssembleError, Assembler, Code, Cond, Fill, Gpr, Mem, OpSize, Width};

/// The fourth argument.
const KEY: Gpr = Gpr::Rcx;
/// The key less the base. No argument is there.
const DISTANCE: Gpr = Gpr::Rax;
/// For what is no immediate of 32 bits.
const SCRATCH: Gpr = Gpr::R11;
/// Dispatchers and their jump targets are multiples of 2 to this: a cache line, which has a run of cases whose keys are
/// addresses in it. One that crosses a line takes a cycle more.
const LINE: u8 = 6;
/// Jump targets where runs end with a retpoline, as in the seed: so long they cross a line anyway, and at the start of one a
/// retpoline was measured to take longer.
const HARDENED: u8 = 4;

/// One way through a dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The number that leads there.
    pub key: u64,
    /// The address to jump to, within 2 GiB of wherever the code will be.
    pub target: u64,
    /// What the token becomes; it stays what the caller gave where this says nothing.
    pub token: Option<u64>,
}

/// Where keys lead that have no case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// To the address that the key is.
    Indirect {
        /// Without an indirect branch that could be predicted (a retpoline: Intel 337131, "Retpoline: A Branch Target
        /// Injection Mitigation").
        retpoline: bool,
        /// The 64-bit count to raise by one, in bytes from the start of the host, which is the sixth argument.
        count: i32,
    },
    /// To this address, within 2 GiB.
    Target(u64),
}

/// Which argument the token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenArgument {
    /// The second, as where packets enter programs.
    Second,
    /// The third, as where bursts do.
    Third,
}

/// One dispatcher.
#[derive(Clone, Copy, Debug)]
pub struct Dispatcher<'a> {
    /// In any order; of equal keys the first one counts.
    pub cases: &'a [Case],
    /// What becomes of other keys.
    pub otherwise: Otherwise,
    /// Where the token goes.
    pub token: TokenArgument,
    /// Up to so many cases are compared one after the other at the end of the search. 1 searches to the end, as the seed does;
    /// [`RUN`] is what is fastest.
    pub run: usize,
}

/// Cases to compare one after the other: a branch that is not taken costs a fraction of one that is.
pub const RUN: usize = 4;

/// Makes the code of dispatchers, one behind the other; says where each begins. The code is to be placed at a multiple of 64.
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
    /// What is compared: the key, or its distance from the base.
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

    /// Any key comes to one case, where it must be equal: keys between the cases may be split as it comes.
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
        // A jump to one way out for all would be one too many.
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

/// What to take off all keys so that the most of them are immediates: numbers are ones as they are, addresses lie near each
/// other.
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

/// A jump to the key that is predicted to go where nothing happens: the return that it is takes its prediction from the call.
///
/// There the fence comes first, which compilers have after the pause. It is what stops; a pause that has begun when the
/// return is known may keep the jump back, depending on where the code lies.
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
