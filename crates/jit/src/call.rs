//! Calls of helpers and subprograms, and calls of subprograms by helpers (callbacks).

use paceline_graph::Node;
use paceline_isa::Insn;
use paceline_spec::helper::Helper;

use crate::emitter::Emitter;
use crate::error::CompileError;
use crate::links::HelperLink;
use crate::plan::{HOST_ARGUMENT, HOST_KEPT, SCRATCH};
use crate::x64::{Label, Mem, OpSize, Width};

impl Emitter<'_> {
    pub(crate) fn call_subprogram(&mut self, slot: usize, insn: &Insn) -> Result<(), CompileError> {
        let start = self.function_at(slot, insn)?;
        let entry = self.entry_of(start).ok_or(CompileError::Internal("a called function has no entry"))?;
        if self.settings.checked {
            self.execute(slot);
        }
        self.asm.call(entry);
        Ok(())
    }

    pub(crate) fn call_helper(&mut self, slot: usize, id: i32) -> Result<(), CompileError> {
        let found = usize::try_from(id).ok().and_then(|id| self.links.helpers.get(id).copied().flatten());
        let Some(helper) = found else { return Err(CompileError::Helper { slot, id }) };
        if Helper::from_imm(id).is_some_and(Helper::prints) {
            self.tell_readable();
        }
        self.call_with_host(helper);
        Ok(())
    }

    /// Stores the regions that a helper may read when it is given unverified addresses into the host.
    fn tell_readable(&mut self) {
        let (maps, count) = self.links.readable;
        let (start, host) = (self.links.host.readable, self.plan.host);
        let place = |word: i32| Mem::at(host, start + 8 * word);
        self.asm.mov_ri(SCRATCH, maps);
        self.asm.store(OpSize::Q64, place(0), SCRATCH);
        self.asm.store_imm(OpSize::Q64, place(1), count);
        self.asm.lea(Width::Q64, SCRATCH, self.plan.stack(0));
        self.asm.store(OpSize::Q64, place(2), SCRATCH);
        self.asm.store_imm(OpSize::Q64, place(3), self.plan.readable);
    }

    pub(crate) fn call_kfunc(&mut self, slot: usize, insn: &Insn, index: i32) -> Result<(), CompileError> {
        let kfuncs = &self.links.kfuncs;
        let found = usize::try_from(index).ok().and_then(|index| kfuncs.get(index).copied().flatten());
        let Some(kfunc) = found else { return Err(CompileError::Unsupported { slot, insn: *insn }) };
        self.call_with_host(kfunc);
        Ok(())
    }

    fn call_with_host(&mut self, function: HelperLink) {
        let host = self.plan.host;
        if host != HOST_ARGUMENT {
            self.asm.mov_rr(Width::Q64, HOST_ARGUMENT, host);
        }
        self.call_runtime(function.address);
    }

    /// The entry by which helpers call a function of the program.
    pub(crate) fn callback_of(&mut self, start: usize) -> Option<Label> {
        self.entry_of(start)?;
        let same = |&&(node, slot, _): &&(Node, usize, Label)| (node, slot) == (self.node, start);
        if let Some(&(.., label)) = self.callbacks.iter().find(same) {
            return Some(label);
        }
        let label = self.asm.new_label();
        self.callbacks.push((self.node, start, label));
        Some(label)
    }

    /// Emits the entries of callbacks: a function whose sixth argument is the host, as a helper's is. Subprograms expect the host
    /// in its own register and preserve the caller's.
    pub(crate) fn callbacks(&mut self) {
        for (node, start, label) in std::mem::take(&mut self.callbacks) {
            self.enter_node(node);
            let Some(entry) = self.entry_of(start) else {
                self.internal("a callback has no entry");
                continue;
            };
            self.asm.bind(label);
            self.asm.push(HOST_KEPT);
            self.asm.mov_rr(Width::Q64, HOST_KEPT, HOST_ARGUMENT);
            self.asm.call(entry);
            self.asm.pop(HOST_KEPT);
            self.asm.ret();
        }
    }
}
