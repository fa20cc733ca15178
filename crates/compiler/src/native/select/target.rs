//! What code generation has to know of a machine besides its instructions. The machine is its assembler.

use crate::codegen::lir::{Reg, RegSet};
use crate::codegen::machine::{Frame, Ways};
use paceline_isa as isa;
use paceline_spec::context::Layout;

use super::generator::Generator;
use super::op::Op;
use crate::native::links::Links;
use crate::native::x64::{AssembleError, Code, Label};

/// Registers that instructions of the machine are tied to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    /// The count of a shift.
    pub(super) count: Reg,
    /// A dividend, and its quotient.
    pub(super) quotient: Reg,
    /// The remainder.
    pub(super) remainder: Reg,
    /// The old value of an atomic operation, and what memory is compared with.
    pub(super) old: Reg,
}

/// A machine.
pub(super) trait Target: Sized {
    /// The registers that values can be in.
    const REGISTERS: RegSet;
    /// A register that no value is ever in.
    const SCRATCH: Reg;
    /// The registers that a call may overwrite.
    const CALLER_SAVED: RegSet;
    /// `r1` to `r5` of the calling convention.
    const ARGUMENTS: [Reg; 5];
    /// The host, the sixth argument of programs, subprograms and helpers.
    const HOST: Reg;
    /// The result of a function.
    const RESULT: Reg;
    /// The registers that instructions are tied to; `None` where they take any.
    const FIXED: Option<Fixed>;
    /// Whether no load or store overtakes another one, but for a load that overtakes a store.
    const IS_ORDERED: bool;
    /// Whether an access may be at the sum of a base, a multiple of an index and a distance.
    const HAS_INDEX: bool;

    /// The register that a BPF register is passed in.
    fn argument(register: isa::Reg) -> Reg {
        let number = usize::from(register.number());
        Self::ARGUMENTS.get(number.wrapping_sub(1)).copied().unwrap_or(Self::RESULT)
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
    /// Ends the code.
    fn finish(self) -> Result<Code, AssembleError>;

    /// At the entry for packets: initializes the state of a run, as far as the run can observe it.
    fn enter_run(&mut self, links: &Links, calls: bool, tail_calls: bool, area: Option<&'static Layout>);
    /// Jumps to a label if the host's CPU is none of the first ones, for which per-CPU arrays have values.
    fn check_cpu(&mut self, links: &Links, cpus: u32, lacks_cpu: Label);
    /// Ends the run of a program whose arrays have no values for the host's CPU.
    fn end_without_cpu(&mut self, links: &Links, lacks_cpu: Label);
    /// The same in a loop over a burst, which returns the first frame.
    fn end_burst_without_cpu(&mut self, links: &Links, lacks_cpu: Label);

    /// Emits a function's prologue.
    fn prologue(generator: &mut Generator<'_, Self>, frame: &Frame);
    /// Emits an instruction.
    fn instruction(generator: &mut Generator<'_, Self>, op: Op, assigned: &[Reg], ways: Ways<'_>);
    /// Emits a move between registers.
    fn copy(generator: &mut Generator<'_, Self>, to: Reg, from: Reg);
    /// Emits a store to a slot of the frame.
    fn spill(generator: &mut Generator<'_, Self>, slot: u32, from: Reg);
    /// Emits a load from a slot of the frame.
    fn reload(generator: &mut Generator<'_, Self>, to: Reg, slot: u32);
    /// Emits a jump.
    fn jump(generator: &mut Generator<'_, Self>, to: Label);
}
