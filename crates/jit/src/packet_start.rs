//! State of a packet that a loop keeps for all programs: the context, and the start of the packet's bytes.
//!
//! Both are in registers of the loop, so that a program need not load what its predecessor had loaded. After a call that may have
//! moved the packet, the start is reloaded.

use paceline_frame::Frame;
use paceline_isa::Reg;

use crate::defer::{Base, Value};
use crate::emitter::Emitter;
use crate::plan::FRAME;
use crate::x64::{Gpr, Mem, OpSize, Width};

/// Register of a program's context, which is the frame.
const CONTEXT: Gpr = Gpr::Rdi;

impl Emitter<'_> {
    /// The register with the address of the packet's first byte, if the loop reserves one.
    pub(crate) fn packet_start(&self) -> Option<Gpr> {
        self.looped.as_ref()?.plan.start
    }

    /// Loads the address of the packet's first byte.
    pub(crate) fn load_start(&mut self) {
        if let Some(start) = self.packet_start() {
            self.asm.load(OpSize::Q64, start, Mem::at(FRAME, Frame::OFFSET_DATA as i32));
        }
    }

    /// Materializes values that are based on the address before it changes.
    pub(crate) fn flush_start(&mut self) {
        let Some(start) = self.packet_start() else { return };
        for reg in self.deferred.live().iter() {
            if matches!(self.deferred.get(reg), Value::Sum(Base::Native(base), _) if self.asm.held(base) == start)
            {
                self.materialize(reg);
            }
        }
    }

    /// At the entry of a program in a loop: `r1` is the frame, which is in a register of the loop.
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
