//! Calls, jumps and the ends of functions.

use crate::codegen::machine::Ways;
use crate::ir::Callee;

use super::{Regs, X64};
use crate::internal::Internal;
use crate::native::code::Label;
use crate::native::links::ProgArrayLink;
use crate::native::machine::emit::OTHER_KIND;
use crate::native::machine::op::{Called, CompareMem, Op, Token};
use crate::native::machine::operand::{Scale, Width};
use crate::native::machine::x64::asm::{Alu, Cond, Fill, Gpr, Mem, OpSize, Shift};
use crate::native::machine::x64::regs::SCRATCH;

/// Alignment of the loop over a burst as a power of 2: a cache line, the unit by which processors cache decoded instructions.
const LOOP: u8 = 6;
const CONTEXT: Gpr = Gpr::Rdi;
const INDEX: Gpr = Gpr::Rdx;
const HOST: Gpr = Gpr::R9;
/// Where a program expects its own token, in place of the map.
const TOKEN: Gpr = Gpr::Rsi;

impl X64<'_> {
    pub(super) fn control(&mut self, op: Op, regs: Regs<'_>, ways: Ways<'_>) -> Result<(), Internal> {
        match op {
            Op::Call(Called::Runtime(address)) => self.call_runtime(address),
            Op::Call(Called::Function(function)) => {
                let entry = self.entry(function)?;
                self.asm.call(entry);
            }
            Op::TailCall(token) => self.tail_call(token)?,
            Op::RunProgram(token) => self.run_program(token),
            Op::Jump => self.go_on(ways)?,
            Op::EnterLoop if ways.next.as_slice() == ways.targets => self.asm.align(LOOP, Fill::Nop),
            Op::EnterLoop => self.go_on(ways)?,
            Op::Branch(condition, compare) => {
                self.compare(compare, regs)?;
                self.branch(Cond::of(condition), ways)?;
            }
            Op::BranchMem(condition, CompareMem { size, at, tests, imm }) => {
                let (mem, size) = (self.mem(at, regs)?, OpSize::of(size));
                match imm {
                    Some(imm) if tests => self.asm.test_mi(size, mem, imm),
                    Some(imm) => self.asm.alu_mi(Alu::Cmp, size, mem, imm),
                    None => self.asm.alu_mr(Alu::Cmp, size, mem, regs.last()?),
                }
                self.branch(Cond::of(condition), ways)?;
            }
            Op::MayGoto => {
                // The counter becomes negative when the rounds are used up, and stays negative.
                let rounds = Mem::at(Gpr::Rsp, self.current.layout.rounds);
                self.asm.alu_mi(Alu::Sub, OpSize::Q64, rounds, 1);
                self.branch(Cond::S, ways)?;
            }
            Op::Return => {
                self.epilogue()?;
                self.asm.ret();
            }
            _ => return Err(OTHER_KIND),
        }
        Ok(())
    }

    /// The token is loaded each time, so that updates of the map take effect. The epilogue runs before the jump, so that programs
    /// with different prologues can call each other.
    fn tail_call(&mut self, token: Token) -> Result<(), Internal> {
        let follow = self.asm.new_label();
        self.find_program(token, follow);
        self.epilogue()?;
        self.asm.jmp_m(Mem::at(TOKEN, self.links.tail_entry));
        self.asm.bind(follow);
        Ok(())
    }

    /// The same as a call, with the low half of the result, or one for no program.
    fn run_program(&mut self, token: Token) {
        let [follow, done] = [(); 2].map(|()| self.asm.new_label());
        self.find_program(token, follow);
        self.asm.call_m(Mem::at(TOKEN, self.links.tail_entry));
        self.asm.mov_rr(Width::D32, Gpr::Rax, Gpr::Rax);
        self.asm.jmp(done);
        self.asm.bind(follow);
        self.asm.mov_ri(Gpr::Rax, Callee::NO_PROGRAM);
        self.asm.bind(done);
    }

    /// Finds the other program, and counts the tail call. Jumps to `follow` if there is no such program, or too many ran.
    fn find_program(&mut self, token: Token, follow: Label) {
        match token {
            Token::Array(array) => self.load_token(array, follow),
            Token::Entry(address) => {
                self.asm.mov_ri(TOKEN, address);
                self.asm.load(OpSize::Q64, TOKEN, Mem::at(TOKEN, 0));
            }
            Token::Runtime => self.find_token(),
        }
        self.asm.test_rr(Width::Q64, TOKEN, TOKEN);
        self.asm.jcc(Cond::E, follow);
        let count = Mem::at(HOST, self.links.host.tail_calls);
        self.asm.alu_mi(Alu::Cmp, OpSize::D32, count, self.links.host.max_tail_calls);
        self.asm.jcc(Cond::Ae, follow);
        self.asm.inc_m(OpSize::D32, count);
    }

    fn load_token(&mut self, array: ProgArrayLink, follow: Label) {
        self.asm.alu_ri(Alu::Cmp, Width::D32, INDEX, array.entries.cast_signed());
        self.asm.jcc(Cond::Ae, follow);
        // The index is truncated to 32 bits.
        self.asm.mov_rr(Width::D32, INDEX, INDEX);
        match array.stride {
            8 => {}
            16 => self.asm.shift_ri(Shift::Shl, Width::Q64, INDEX, 1),
            stride => self.asm.imul_rri(Width::Q64, INDEX, INDEX, stride as i32),
        }
        let scale = if matches!(array.stride, 8 | 16) { Scale::Eight } else { Scale::One };
        self.asm.mov_ri(SCRATCH, array.base);
        self.asm.load(OpSize::Q64, TOKEN, Mem::indexed(SCRATCH, INDEX, scale, 0));
    }

    /// Asks the runtime, for a map that is not known when the program is compiled.
    fn find_token(&mut self) {
        // Two pushes keep the stack aligned to 16 bytes.
        self.asm.push(CONTEXT);
        self.asm.push(HOST);
        self.asm.mov_rr(Width::Q64, Gpr::Rdi, TOKEN);
        self.asm.mov_rr(Width::D32, Gpr::Rsi, INDEX);
        self.call_runtime(self.links.find_program);
        self.asm.mov_rr(Width::Q64, TOKEN, Gpr::Rax);
        self.asm.pop(HOST);
        self.asm.pop(CONTEXT);
    }
}
