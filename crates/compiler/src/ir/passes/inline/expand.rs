//! A function with the functions that are inlined in it.

use smallvec::smallvec;

use super::frame::{Frame, Moved};
use super::{addresses, reads};
use crate::ir::arena::{Arena, Key, Side};
use crate::ir::cfg::Cfg;
use crate::ir::check::CheckError;
use crate::ir::copy::{copy, zero_words};
use crate::ir::entity::{Block, FuncId, Inst};
use crate::ir::function::{Function, Target, Terminator};
use crate::ir::kinds;
use crate::ir::op::{Callee, Op};
use crate::ir::types::{Kind, STACK_BYTES, Type};

/// A function that others are being inlined in.
pub(super) struct Expansion<'a> {
    originals: &'a Arena<FuncId, Function>,
    inlined: &'a Side<FuncId, bool>,
    id: FuncId,
    function: Function,
    /// Number of its own blocks.
    blocks: usize,
    /// By block: the stack of the function that it is of.
    frames: Side<Block, Frame>,
    /// Calls in copies of functions.
    copied: Vec<(Inst, Frame)>,
    /// Functions that are inlined elsewhere and had no room here.
    calls: Vec<FuncId>,
}

/// A function with those that are inlined in it.
pub(super) struct Expanded {
    pub(super) function: Function,
    /// Functions that it calls although they are inlined elsewhere.
    pub(super) calls: Vec<FuncId>,
}

/// A call that is inlined.
struct Site {
    block: Block,
    /// Position of the call in the block.
    at: usize,
    callee: FuncId,
    /// Bytes of the frame above the callee's stack.
    above: u32,
}

impl<'a> Expansion<'a> {
    pub(super) fn of(
        originals: &'a Arena<FuncId, Function>,
        inlined: &'a Side<FuncId, bool>,
        id: FuncId,
        function: Function,
    ) -> Self {
        let end = function.stack.next_multiple_of(8);
        let frame = Frame { end, shared: function.shared, outer: 0 };
        let (frames, copied, calls) = (Side::with_default(frame), Vec::new(), Vec::new());
        let blocks = function.layout.len();
        Self { originals, inlined, id, function, blocks, frames, copied, calls }
    }

    /// Inlines all calls, and those in what was inlined.
    pub(super) fn all(mut self) -> Result<Expanded, CheckError> {
        if self.function.prints {
            return Ok(Expanded { function: self.function, calls: self.calls });
        }
        // Copies come where they are called, as does what follows the call.
        let mut waiting: Vec<Block> = self.function.layout.iter().rev().copied().collect();
        let mut layout = Vec::with_capacity(waiting.len());
        while let Some(block) = waiting.pop() {
            layout.push(block);
            if let Some(site) = self.site(block) {
                let followed = waiting.len();
                waiting.extend(self.inline(&site)?);
                waiting[followed..].reverse();
            }
        }
        if layout.len() > self.blocks {
            self.function.layout = layout;
            self.function.apply_aliases();
            let cfg = Cfg::of(&self.function);
            kinds::infer(&mut self.function, &cfg);
            addresses::settle(&mut self.function, &cfg);
            reads::update(&mut self.function, &self.copied);
        }
        Ok(Expanded { function: self.function, calls: self.calls })
    }

    /// The first call of a block that is inlined.
    fn site(&mut self, block: Block) -> Option<Site> {
        let frame = self.frames[block];
        for (at, inst) in self.function.block(block).insts.iter().enumerate() {
            let Op::Call { callee: Callee::Function(callee), .. } = self.function.inst(*inst).op else {
                continue;
            };
            if !self.inlined[callee] {
                continue;
            }
            match self.place(&frame, self.originals[callee].stack) {
                Some(above) => return Some(Site { block, at, callee, above }),
                None => self.calls.push(callee),
            }
        }
        None
    }

    /// Bytes of the frame above the stack of a callee: a place of its own, so that its parts can be promoted whatever others are there, or
    /// else right below its caller's. `None` if there is no room.
    fn place(&self, caller: &Frame, bytes: u32) -> Option<u32> {
        let used = self.function.stack.next_multiple_of(8);
        let fits = |above: &u32| above + bytes.next_multiple_of(8) <= STACK_BYTES.unsigned_abs();
        [used, caller.end].into_iter().find(fits)
    }

    /// Puts a copy of the callee in the place of a call. Returns the new blocks in their order.
    fn inline(&mut self, site: &Site) -> Result<Vec<Block>, CheckError> {
        let &Site { block, at, callee, above } = site;
        let (original, function) = (&self.originals[callee], &mut self.function);
        let caller = self.frames[block];
        let rest = function.split(block, at + 1);
        let body = function.add_block();
        let inst = function.block_mut(block).insts.pop();
        let call = inst.map(|inst| *function.inst(inst));
        // A function that is verified on its own reads what the call says.
        let lent = inst.and_then(|inst| function.calls[inst].stack_read);
        function.terminate(block, Terminator::Jump(Target::to(body)), call.and_then(|call| call.slot));
        let result = function.add_param(rest, Type::I64, Kind::Unknown);
        if let Some(of) = call.and_then(|call| call.result) {
            function.replace(of, result);
        }
        zero_words(
            function,
            body,
            original.zeroed_words().map(|offset| offset.saturating_sub_unsigned(above)),
        );
        let args = match call.map(|call| call.op) {
            Some(Op::Call { args, .. }) => args.as_slice().to_vec(),
            _ => Vec::new(),
        };
        let moved = Moved { above, is_outermost: self.id.index() == 0 };
        let reached = Cfg::of(original).reached(original);
        let copies = copy(function, original, &reached, body, &args, &moved).map_err(|cause| CheckError {
            function: callee,
            block: None,
            cause,
        })?;
        let end = above + original.stack.next_multiple_of(8);
        let outer = caller.outer | caller.shared | lent.map_or(0, |read| Frame::touched(&read));
        let frame = Frame { end, shared: Frame::words(above, original.shared), outer };
        function.stack = function.stack.max(end);
        let mut blocks = Vec::with_capacity(copies.len() + 1);
        for copy in copies {
            blocks.push(copy);
            self.frames[copy] = frame;
            let data = function.block_mut(copy);
            if let Terminator::Return(value) = data.terminator {
                data.terminator = Terminator::Jump(Target { block: rest, args: smallvec![value] });
            }
            let insts = function.block(copy).insts.iter();
            let calls = insts.filter(|inst| matches!(function.inst(**inst).op, Op::Call { .. }));
            self.copied.extend(calls.map(|inst| (*inst, frame)));
        }
        self.frames[rest] = caller;
        blocks.push(rest);
        Ok(blocks)
    }
}
