//! `bpf_tail_call`: replaces the running function with another program.

use crate::emitter::{Emitter, Leave};
use crate::error::CompileError;
use crate::links::ProgArrayLink;
use crate::plan::{HOST_ARGUMENT, SCRATCH};
use crate::source::known_map;
use crate::x64::{Alu, Cond, Gpr, Label, Mem, OpSize, Scale, Shift, Width};

const CONTEXT: Gpr = Gpr::Rdi;
const MAP: Gpr = Gpr::Rsi;
const INDEX: Gpr = Gpr::Rdx;
/// The token replaces the map in its argument register, which is where a program expects its own token.
const TOKEN: Gpr = MAP;

impl Emitter<'_> {
    /// The token is reloaded each time, so that updates of the map take effect. The epilogue runs before the jump, so that programs
    /// with different prologues can call each other.
    pub(crate) fn tail_call(&mut self, slot: usize) -> Result<(), CompileError> {
        self.tail_call_at(slot, None)
    }

    /// The same, with the index if it is known.
    pub(crate) fn tail_call_at(&mut self, slot: usize, known: Option<u32>) -> Result<(), CompileError> {
        let host = self.plan.host;
        let follow = self.asm.new_label();
        match known_map(self.source, slot) {
            Some(index) => {
                let what = "program array";
                let link = self.links.maps.get(index as usize).and_then(|map| map.programs);
                let array = link.ok_or(CompileError::Map { slot, index: index as i32, what })?;
                match known {
                    // The index is out of bounds: the call always fails.
                    Some(known) if known >= array.entries => return Ok(()),
                    Some(known) => self.load_known_token(array, known),
                    None => self.load_token(array, follow),
                }
            }
            None => self.find_token(),
        }
        self.asm.test_rr(Width::Q64, TOKEN, TOKEN);
        self.asm.jcc(Cond::E, follow);
        let count = Mem::at(host, self.links.host.tail_calls);
        self.asm.alu_mi(Alu::Cmp, OpSize::D32, count, self.links.host.max_tail_calls);
        self.asm.jcc(Cond::Ae, follow);
        self.asm.inc_m(OpSize::D32, count);
        if host != HOST_ARGUMENT {
            self.asm.mov_rr(Width::Q64, HOST_ARGUMENT, host);
        }
        let entry = Mem::at(TOKEN, self.links.tail_entry);
        if matches!(self.leave, Leave::Edge) {
            // The loop continues when the other program returns.
            self.asm.call_m(entry);
            self.load_start();
            self.exit();
        } else {
            self.epilogue();
            self.asm.jmp_m(entry);
        }
        self.asm.bind(follow);
        Ok(())
    }

    fn load_known_token(&mut self, array: ProgArrayLink, index: u32) {
        let address = array.base.wrapping_add(u64::from(index).wrapping_mul(array.stride));
        self.asm.mov_ri(TOKEN, address);
        self.asm.load(OpSize::Q64, TOKEN, Mem::at(TOKEN, 0));
    }

    fn load_token(&mut self, array: ProgArrayLink, follow: Label) {
        self.asm.alu_ri(Alu::Cmp, Width::D32, INDEX, array.entries.cast_signed());
        self.asm.jcc(Cond::Ae, follow);
        // The index is truncated to 32 bits.
        self.asm.mov_rr(Width::D32, INDEX, INDEX);
        let scale = match array.stride {
            8 => Scale::Eight,
            16 => {
                self.asm.shift_ri(Shift::Shl, Width::Q64, INDEX, 1);
                Scale::Eight
            }
            stride => {
                self.asm.imul_rri(Width::Q64, INDEX, INDEX, stride as i32);
                Scale::One
            }
        };
        self.asm.mov_ri(SCRATCH, array.base);
        self.asm.load(OpSize::Q64, TOKEN, Mem::indexed(SCRATCH, INDEX, scale, 0));
    }

    /// Calls the runtime, for a map that is not known at compile time.
    fn find_token(&mut self) {
        // Pushed twice to keep the stack aligned to 16 bytes.
        self.asm.push(CONTEXT);
        self.asm.push(CONTEXT);
        self.asm.mov_rr(Width::Q64, Gpr::Rdi, MAP);
        self.asm.mov_rr(Width::D32, Gpr::Rsi, INDEX);
        self.call_runtime(self.links.find_program);
        self.asm.mov_rr(Width::Q64, TOKEN, Gpr::Rax);
        self.asm.pop(CONTEXT);
        self.asm.pop(CONTEXT);
    }
}
