//! What code generation has to know of a machine: its registers, and an assembler. The machine is its assembler.

use crate::codegen::lir::{Place, Reg, RegSet};
use paceline_isa as isa;
use paceline_spec::context::AreaUse;

use super::op::Op;
use crate::internal::Internal;
use crate::native::code::{AssembleError, Code, Label};
use crate::native::links::Links;
use crate::native::settings::Features;

/// Alignment of functions as a power of 2: 16 bytes, the CPU's fetch granularity.
pub(crate) const ALIGNMENT: u8 = 4;

/// Where the operands of an operation have to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) uses: [Place; 2],
    pub(crate) result: Place,
    /// What is overwritten besides.
    pub(crate) clobbers: RegSet,
}

impl Places {
    /// Anywhere.
    pub(crate) const ANY: Self = Self { uses: [Place::Any; 2], result: Place::Any, clobbers: RegSet(0) };
}

/// A machine.
pub(crate) trait Target: Sized {
    /// A register.
    type Gpr: Copy + 'static;
    /// A condition of a jump.
    type Cond: Copy;

    /// The registers that values can be in, by the allocator's number, which is the order of preference; then the one that no value is
    /// ever in, for moves.
    const ORDER: &'static [Self::Gpr];
    /// The registers that a call may overwrite.
    const CALLER_SAVED: RegSet;
    /// `r1` to `r5` of the calling convention.
    const ARGUMENTS: [Reg; 5];
    /// The host, the sixth argument of programs, subprograms and helpers.
    const HOST: Reg;
    /// The result of a function.
    const RESULT: Reg;
    /// The register of the old value of an atomic operation, and of what memory is compared with; `None` where it is any.
    const OLD: Option<Reg>;
    /// Whether no load or store overtakes another one, but for a load that overtakes a store.
    const IS_ORDERED: bool;
    /// Whether an access may be at the sum of a base, a multiple of an index and a distance.
    const HAS_INDEX: bool;

    /// A register that no value is ever in.
    const SCRATCH: Reg = Reg(Self::ORDER.len() as u8 - 1);
    /// The registers that values can be in.
    const REGISTERS: RegSet = RegSet::first_ones(Self::SCRATCH.0);

    /// Where the operands of a shift, of the high half of a product and of a division have to be.
    fn places(_op: Op, _features: Features) -> Places {
        Places::ANY
    }

    /// The machine's register.
    fn gpr(reg: Reg) -> Result<Self::Gpr, Internal> {
        Self::ORDER.get(usize::from(reg.0)).copied().ok_or(Internal("a register is none of the machine's"))
    }

    /// The registers that a function saves if it writes them.
    fn callee_saved(written: RegSet) -> Vec<Reg> {
        written.iter().filter(|reg| !Self::CALLER_SAVED.has(*reg)).collect()
    }

    /// The register that a BPF register is passed in.
    fn argument(register: isa::Reg) -> Result<Reg, Internal> {
        let number = usize::from(register.number());
        let found = number.checked_sub(1).and_then(|at| Self::ARGUMENTS.get(at));
        found.copied().ok_or(Internal("a register is no argument"))
    }

    /// An assembler without instructions.
    fn empty() -> Self;
    /// A label to jump to.
    fn label(&mut self) -> Label;
    /// A label is here.
    fn bind(&mut self, label: Label);
    /// Pads to the start of a function.
    fn align(&mut self);
    /// The code that follows is of a slot.
    fn mark(&mut self, slot: u32);
    /// Emits a jump.
    fn jump(&mut self, to: Label);
    /// Emits a jump that is taken if a condition holds.
    fn jump_if(&mut self, cond: Self::Cond, to: Label);
    /// The opposite condition.
    fn invert(cond: Self::Cond) -> Self::Cond;
    /// Ends the code.
    fn finish(self) -> Result<Code, AssembleError>;

    /// At the entry for packets: initializes the state of a run, as far as the run can observe it.
    fn enter_run(&mut self, links: &Links, calls: bool, tail_calls: bool, area: AreaUse);
    /// Jumps to a label if the host's CPU is none of the first ones, for which per-CPU arrays have values.
    fn check_cpu(&mut self, links: &Links, cpus: u32, lacks_cpu: Label);
    /// Ends the run of a program whose arrays have no values for the host's CPU.
    fn end_without_cpu(&mut self, links: &Links, lacks_cpu: Label);
    /// The same in a loop over a burst, which returns the first frame.
    fn end_burst_without_cpu(&mut self, links: &Links, lacks_cpu: Label);
}
