//! What a machine emits.

use crate::codegen::lir::Reg;
use crate::codegen::machine::{Frame, Ways};

use super::generator::Generator;
use super::op::Op;
use super::target::Target;
use crate::internal::Internal;

/// The registers of an operation's operands, on a machine.
pub(crate) struct Operands<'a, A>(&'a [Reg], std::marker::PhantomData<A>);

impl<A> Clone for Operands<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Operands<'_, A> {}

impl<'a, A: Target> Operands<'a, A> {
    pub(crate) const fn new(assigned: &'a [Reg]) -> Self {
        Self(assigned, std::marker::PhantomData)
    }

    pub(crate) fn get(self, at: usize) -> Result<A::Gpr, Internal> {
        A::gpr(*self.0.get(at).ok_or(Internal("an operation lacks an operand"))?)
    }

    pub(crate) fn last(self) -> Result<A::Gpr, Internal> {
        A::gpr(*self.0.last().ok_or(Internal("an operation has no operands"))?)
    }
}

/// An operation comes to code for those of another [kind](super::op::Kind), or for those of another machine.
pub(crate) const OTHER_KIND: Internal = Internal("an operation is emitted as one of another kind");

/// A machine that code can be emitted for. An error is a bug of Paceline; the code is not used.
pub(crate) trait Emit: Target {
    /// Emits a function's prologue.
    fn prologue(generator: &mut Generator<'_, Self>, frame: &Frame) -> Result<(), Internal>;
    /// Emits an operation.
    fn operation(
        generator: &mut Generator<'_, Self>,
        op: Op,
        regs: Operands<'_, Self>,
        ways: Ways<'_>,
    ) -> Result<(), Internal>;
    /// Emits a move between registers.
    fn copy(generator: &mut Generator<'_, Self>, to: Self::Gpr, from: Self::Gpr);
    /// Emits a store to a slot of the frame.
    fn spill(generator: &mut Generator<'_, Self>, slot: u32, from: Self::Gpr);
    /// Emits a load from a slot of the frame.
    fn reload(generator: &mut Generator<'_, Self>, to: Self::Gpr, slot: u32);
}
