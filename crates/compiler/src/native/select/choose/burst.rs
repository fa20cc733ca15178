//! The loop over a burst with a program as its body.

use crate::codegen::lir::{Operand, Place, Vreg};
use crate::ir::{Block, RunOp, Terminator};
use paceline_isa::Size;
use paceline_spec::context::AreaUse;

use super::choice::{Choice, defined, defined_in, fixed, of_number, used};
use crate::internal::Internal;
use crate::native::machine::frame;
use crate::native::machine::generator::Burst;
use crate::native::machine::op::{At, Called, Entered, Op, Verdict};
use crate::native::machine::operand::Width;
use crate::native::machine::target::Target;

impl<A: Target> Choice<'_, '_, A> {
    fn burst(&mut self) -> Result<&mut Burst, Internal> {
        self.generator.current.burst.as_mut().ok_or(Internal("a function is in no loop"))
    }

    /// The current frame.
    fn current_frame(&mut self) -> Result<Vreg, Internal> {
        self.burst()?.frame.ok_or(Internal("a loop has no current frame"))
    }

    /// Before the loop. Returns the first frame.
    pub(crate) fn enter_burst(&mut self) -> Result<Vreg, Internal> {
        let [first, end, host] = [(); 3].map(|()| self.fresh());
        let given = [(first, A::ARGUMENTS[0]), (end, A::ARGUMENTS[1]), (host, A::HOST)];
        let operands = given.map(|(vreg, reg)| defined_in(vreg, Place::Fixed(reg)));
        self.push(Op::Enter, &operands);
        self.generator.current.host = Some(host);
        let burst = self.burst()?;
        burst.end = Some(end);
        let distance = burst.distance;
        if distance > 1 {
            let [next, last] = [(); 2].map(|()| self.fresh());
            let frames = [defined_in(next, Place::Early), defined_in(last, Place::Early)];
            let operands = [used(first), used(end), frames[0], frames[1]];
            self.push(Op::PrefetchFirst(frame::SIZE * i32::from(distance)), &operands);
        }
        Ok(first)
    }

    /// The frame, which is the context.
    pub(crate) fn frame(&mut self) -> Result<Vreg, Internal> {
        let entry = self.function.entry().ok_or(Internal("a function has no block"))?;
        let frame = match self.function.block(entry).params.first() {
            Some(param) => of_number(*param),
            None => self.fresh(),
        };
        self.burst()?.frame = Some(frame);
        Ok(frame)
    }

    /// The start of a packet's run.
    pub(super) fn enter_packet(&mut self) -> Result<(), Internal> {
        let (frame, Burst { end, distance, entered, .. }) = (self.current_frame()?, *self.burst()?);
        if distance > 0 {
            let end = end.ok_or(Internal("a loop has no end"))?;
            self.push(Op::Prefetch(frame::SIZE * i32::from(distance)), &[used(frame), used(end)]);
        }
        self.enter_run(frame, entered)
    }

    /// Initializes the state of a run.
    fn enter_run(&mut self, frame: Vreg, entered: Entered) -> Result<(), Internal> {
        let host = self.host()?;
        let calls = entered.area.rules != 0;
        if calls {
            let uses = self.fresh();
            self.push(Op::Number(entered.area.to_bits().into()), &[defined(uses)]);
            let given = [(host, A::ARGUMENTS[0]), (frame, A::ARGUMENTS[1]), (uses, A::ARGUMENTS[2])];
            let operands = given.map(|(vreg, reg)| fixed(vreg, reg)).to_vec();
            let nothing = self.fresh();
            self.call_of(Called::Runtime(self.generator.links.enter), operands, nothing);
        }
        let area = if calls { AreaUse::default() } else { entered.area };
        let entered = Entered { area, ..entered };
        self.push(Op::EnterPacket(entered), &[used(frame), used(host)]);
        Ok(())
    }

    /// An operation on the state of the run.
    pub(super) fn run_op(&mut self, op: RunOp, result: Result<Vreg, Internal>) -> Result<(), Internal> {
        let frame = self.current_frame()?;
        match op {
            RunOp::Begin { program, area } => {
                let program = self.generator.programs.get(program as usize).copied();
                let program = program.filter(|program| program.entered.area.is_empty() != area);
                let program =
                    program.ok_or(Internal("a program begins that is not there, or with another area"))?;
                self.enter_run(frame, program.entered)?;
            }
            RunOp::Count { counter } => self.push(Op::Count(counter.cast_signed()), &[used(self.host()?)]),
            RunOp::Finish => self.finish_run()?,
            RunOp::Fault => {
                let at = At::Base(self.generator.links.host.fault);
                let load = Op::Load { size: Size::Dw, signed: false, at };
                self.push(load, &[used(self.host()?), defined(result?)]);
            }
        }
        Ok(())
    }

    /// Does what a program has deferred to its end.
    fn finish_run(&mut self) -> Result<(), Internal> {
        let nothing = self.fresh();
        let host = fixed(self.host()?, A::ARGUMENTS[0]);
        self.call_of(Called::Runtime(self.generator.links.end), vec![host], nothing);
        Ok(())
    }

    /// The end of a packet's run, in a block that returns. Returns the next frame.
    pub(crate) fn end_packet(&mut self, block: Block) -> Result<Vreg, Internal> {
        let data = self.function.block(block);
        self.origin = data.slot;
        let Terminator::Return(value) = data.terminator else {
            return Err(Internal("a block ends a packet's run, and returns nothing"));
        };
        let (frame, Burst { defers, meaning, redirects, .. }) = (self.current_frame()?, *self.burst()?);
        if defers {
            self.finish_run()?;
        }
        let (verdict, value) = match (self.function.as_const(self.same(value)), meaning.translated()) {
            (Some(number), _) => (Verdict::Known(meaning.code(number)), None),
            (None, Some(actions)) => (Verdict::Action(actions), Some(self.value(value)?)),
            (None, None) => (Verdict::Value, Some(self.value(value)?)),
        };
        let operands: Vec<Operand> = [used(frame)].into_iter().chain(value.map(used)).collect();
        self.push(Op::StoreVerdict { verdict, clears: redirects }, &operands);
        let next = self.fresh();
        self.push(Op::AddImm(Width::Q64, frame::SIZE), &[used(frame), defined(next)]);
        self.burst()?.next = Some(next);
        Ok(next)
    }

    /// The end of a block that returns.
    pub(super) fn next_packet(&mut self, burst: Burst) -> Result<(), Internal> {
        let (Some(next), Some(end)) = (burst.next, burst.end) else {
            return Err(Internal("a loop has no next frame, or no end"));
        };
        self.push(Op::NextPacket, &[used(next), used(end)]);
        Ok(())
    }
}
