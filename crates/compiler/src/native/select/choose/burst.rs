//! The loop over a burst with a program as its body.

use crate::codegen::lir::{Operand, Place, Vreg};
use crate::ir::{Block, RunOp, Terminator};
use paceline_frame::Frame;
use paceline_isa::Size;

use super::{Choice, defined, defined_in, fixed, of_number, used};
use crate::native::select::generator::Burst;
use crate::native::select::op::{At, Called, Entered, Op, Verdict};
use crate::native::select::target::Target;
use crate::native::x64::Width;

/// Size of a frame in bytes.
const FRAME_SIZE: i32 = size_of::<Frame>() as i32;

impl<A: Target> Choice<'_, '_, A> {
    fn burst(&mut self, change: impl FnOnce(&mut Burst)) -> Option<Burst> {
        let burst = self.generator.current.burst.as_mut()?;
        change(burst);
        Some(*burst)
    }

    /// Before the loop. Returns the first frame.
    pub(in crate::native::select) fn enter_burst(&mut self) -> Vreg {
        let [first, end, host] = [(); 3].map(|()| self.fresh());
        let given = [(first, A::ARGUMENTS[0]), (end, A::ARGUMENTS[1]), (host, A::HOST)];
        let operands = given.map(|(vreg, reg)| defined_in(vreg, Place::Fixed(reg)));
        self.push(Op::Enter, &operands);
        self.generator.current.host = host;
        let burst = self.burst(|burst| burst.end = end);
        if let Some(distance) = burst.map(|burst| burst.distance).filter(|distance| *distance > 1) {
            let [next, last] = [(); 2].map(|()| self.fresh());
            let frames = [defined_in(next, Place::Early), defined_in(last, Place::Early)];
            let operands = [used(first), used(end), frames[0], frames[1]];
            self.push(Op::PrefetchFirst(FRAME_SIZE * i32::from(distance)), &operands);
        }
        first
    }

    /// The frame, which is the context.
    pub(in crate::native::select) fn frame(&mut self) -> Vreg {
        let entry = self.function.entry();
        let param = entry.and_then(|entry| self.function.block(entry).params.first().copied());
        let frame = param.map_or_else(|| self.fresh(), of_number);
        self.burst(|burst| burst.frame = frame);
        frame
    }

    /// The start of a packet's run.
    pub(super) fn enter_packet(&mut self) {
        let Some(Burst { frame, end, distance, entered, .. }) = self.burst(|_| ()) else { return };
        if distance > 0 {
            self.push(Op::Prefetch(FRAME_SIZE * i32::from(distance)), &[used(frame), used(end)]);
        }
        self.enter_run(frame, entered);
    }

    /// Initializes the state of a run.
    fn enter_run(&mut self, frame: Vreg, entered: Entered) {
        let host = self.host();
        let is_zero = entered.area.is_none_or(|layout| layout.entries().next().is_none());
        if let Some(layout) = entered.area.filter(|_| !is_zero) {
            let area = self.fresh();
            let address = std::ptr::from_ref(layout).expose_provenance() as u64;
            self.push(Op::Number(address), &[defined(area)]);
            let given = [(host, A::ARGUMENTS[0]), (frame, A::ARGUMENTS[1]), (area, A::ARGUMENTS[2])];
            let operands = given.map(|(vreg, reg)| fixed(vreg, reg)).to_vec();
            let nothing = self.fresh();
            self.call_of(Called::Runtime(self.generator.links.enter), operands, nothing);
        }
        let entered = Entered { area: entered.area.filter(|_| is_zero), ..entered };
        self.push(Op::EnterPacket(entered), &[used(frame), used(host)]);
    }

    /// An operation on the state of the run.
    pub(super) fn run_op(&mut self, op: RunOp, result: Vreg) {
        let Some(Burst { frame, .. }) = self.burst(|_| ()) else {
            return self.generator.internal("a function has the state of a run, and is in no loop");
        };
        match op {
            RunOp::Begin { program, area } => {
                let program = self.generator.programs.get(program as usize).copied();
                match program.filter(|program| program.entered.area.is_some() == area) {
                    Some(program) => self.enter_run(frame, program.entered),
                    None => {
                        self.generator.internal("a program begins that is not there, or with another area")
                    }
                }
            }
            RunOp::Count { counter } => self.push(Op::Count(counter.cast_signed()), &[used(self.host())]),
            RunOp::Finish => self.finish_run(),
            RunOp::Fault => {
                let at = At::Base(self.generator.links.host.fault);
                let load = Op::Load { size: Size::Dw, signed: false, at };
                self.push(load, &[used(self.host()), defined(result)]);
            }
        }
    }

    /// Does what a program has deferred to its end.
    fn finish_run(&mut self) {
        let nothing = self.fresh();
        let host = fixed(self.host(), A::ARGUMENTS[0]);
        self.call_of(Called::Runtime(self.generator.links.end), vec![host], nothing);
    }

    /// The end of a packet's run, in a block that returns. Returns the next frame.
    pub(in crate::native::select) fn end_packet(&mut self, block: Block) -> Vreg {
        let data = self.function.block(block);
        self.origin = data.slot;
        let Terminator::Return(value) = data.terminator else { return self.fresh() };
        let Some(Burst { frame, defers, meaning, redirects, .. }) = self.burst(|_| ()) else {
            return self.fresh();
        };
        if defers {
            self.finish_run();
        }
        let (verdict, value) = match (self.function.as_const(self.same(value)), meaning.translated()) {
            (Some(number), _) => (Verdict::Known(meaning.code(number)), None),
            (None, Some(actions)) => (Verdict::Action(actions), Some(self.value(value))),
            (None, None) => (Verdict::Value, Some(self.value(value))),
        };
        let operands: Vec<Operand> = [used(frame)].into_iter().chain(value.map(used)).collect();
        self.push(Op::StoreVerdict { verdict, clears: redirects }, &operands);
        let next = self.fresh();
        self.push(Op::AddImm(Width::Q64, FRAME_SIZE), &[used(frame), defined(next)]);
        self.burst(|burst| burst.next = next);
        next
    }

    /// The end of a block that returns.
    pub(super) fn next_packet(&mut self, burst: Burst) {
        self.push(Op::NextPacket, &[used(burst.next), used(burst.end)]);
    }
}
