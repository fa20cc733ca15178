//! What a loop keeps for all programs that run for a packet: its context, and where its bytes start.
//!
//! Programs find both in registers of the loop, so that a program does not load again what the one before it had. Where a
//! call may have moved the packet, the start is loaded again.

use paceline_frame::Frame;
use paceline_isa::Reg;

use crate::defer::{Base, Value};
use crate::emitter::Emitter;
use crate::plan::FRAME;
use crate::x64::{Gpr, Mem, OpSize, Width};

/// Where programs have their context, which is the frame.
const CONTEXT: Gpr = Gpr::Rdi;

impl Emitter<'_> {
    /// The register with the address of the packet's first byte, if the loop has one.
    pub(crate) fn packet_start(&self) -> Option<Gpr> {
        self.looped.as_ref()?.plan.start
    }

    /// Loads that address.
    pub(crate) fn load_start(&mut self) {
        if let Some(start) = self.packet_start() {
            self.asm.load(OpSize::Q64, start, Mem::at(FRAME, Frame::OFFSET_DATA as i32));
        }
    }

    /// Computes what was made from the address before it changes.
    pub(crate) fn flush_start(&mut self) {
        let Some(start) = self.packet_start() else { return };
        for reg in self.deferred.live().iter() {
            if matches!(self.deferred.get(reg), Value::Sum(Base::Native(base), _) if self.asm.held(base) == start)
            {
                self.materialize(reg);
            }
        }
    }

    /// At the start of a program in a loop: `r1` is the frame, which has a register of the loop's.
    pub(crate) fn enter_with_context(&mut self) {
        let start = self.function.start;
        if !self.liveness.before(start).contains(Reg::R1) {
            return;
        }
        if self.is_target(start) {
            self.asm.mov_rr(Width::Q64, CONTEXT, FRAME);
        } else {
            let frame = self.asm.hold(FRAME);
            self.deferred.set(Reg::R1, Value::Sum(Base::Native(frame), 0));
        }
    }
}
