//! Calls, jumps and the ends of functions.

use crate::codegen::machine::Ways;
use crate::ir::Callee;

use super::{Aarch64, Regs, size_of, width_of};
use crate::internal::Internal;
use crate::native::code::Label;
use crate::native::links::ProgArrayLink;
use crate::native::machine::aarch64::asm::{Arith, Cond, Gpr, Logic, Mem, Shift, Size};
use crate::native::machine::aarch64::entry::call_runtime;
use crate::native::machine::aarch64::regs::{SCRATCH, SECOND};
use crate::native::machine::emit::OTHER_KIND;
use crate::native::machine::op::{Called, CompareMem, Op, Token};
use crate::native::machine::operand::Width;

const CONTEXT: Gpr = Gpr::X0;
const INDEX: Gpr = Gpr::X2;
const HOST: Gpr = Gpr::X5;
/// Where a program expects its own token, in place of the map.
const TOKEN: Gpr = Gpr::X1;

impl Aarch64<'_> {
    pub(super) fn control(&mut self, op: Op, regs: Regs<'_>, ways: Ways<'_>) -> Result<(), Internal> {
        match op {
            Op::Call(Called::Runtime(address)) => call_runtime(&mut self.asm, address),
            Op::Call(Called::Function(function)) => {
                let entry = self.entry(function)?;
                self.asm.bl(entry);
            }
            Op::TailCall(token) => self.tail_call(token)?,
            Op::RunProgram(token) => self.run_program(token),
            Op::Jump | Op::EnterLoop => self.go_on(ways)?,
            Op::Branch(condition, compare) => {
                self.compare(compare, regs)?;
                self.branch(Cond::of(condition), ways)?;
            }
            Op::BranchMem(condition, compare) => {
                self.compare_mem(compare, regs)?;
                self.branch(Cond::of(condition), ways)?;
            }
            Op::MayGoto => {
                // The counter becomes negative when the rounds are used up, and stays negative.
                let rounds = self.at(Size::X, Gpr::Sp, self.current.layout.rounds);
                self.asm.load(Size::X, SCRATCH, rounds);
                self.asm.arith_imm(Arith::Subs, Width::Q64, SCRATCH, SCRATCH, 1);
                self.asm.store(Size::X, SCRATCH, rounds);
                self.branch(Cond::Mi, ways)?;
            }
            Op::Return => {
                self.epilogue()?;
                self.asm.ret();
            }
            _ => return Err(OTHER_KIND),
        }
        Ok(())
    }

    /// Sets the flags by a place in memory and a register or a number. Both have zeros above the size.
    fn compare_mem(&mut self, compare: CompareMem, regs: Regs<'_>) -> Result<(), Internal> {
        let CompareMem { size, at, tests, imm } = compare;
        let size = size_of(size);
        let width = width_of(size);
        let mem = self.mem(size, at, regs)?;
        self.asm.load(size, SCRATCH, mem);
        let imm = imm.map(|imm| match size {
            Size::B => imm & 0xff,
            Size::H => imm & 0xffff,
            Size::W | Size::X => imm,
        });
        match imm {
            Some(imm) if tests => self.test_imm(width, SCRATCH, imm),
            Some(imm) => self.compare_imm(width, SCRATCH, imm),
            None if tests => self.asm.logic(Logic::Ands, width, Gpr::Zr, SCRATCH, regs.last()?),
            None => self.asm.arith(Arith::Subs, width, Gpr::Zr, SCRATCH, regs.last()?, 0),
        }
        Ok(())
    }

    /// The token is loaded each time, so that updates of the map take effect. The epilogue runs before the jump, so that programs
    /// with different prologues can call each other.
    fn tail_call(&mut self, token: Token) -> Result<(), Internal> {
        let follow = self.asm.new_label();
        self.find_program(token, follow);
        self.epilogue()?;
        self.load_entry();
        self.asm.br(SCRATCH);
        self.asm.bind(follow);
        Ok(())
    }

    /// The same as a call, with the low half of the result, or one for no program.
    fn run_program(&mut self, token: Token) {
        let [follow, done] = [(); 2].map(|()| self.asm.new_label());
        self.find_program(token, follow);
        self.load_entry();
        self.asm.blr(SCRATCH);
        self.asm.mov(Width::D32, Gpr::X0, Gpr::X0);
        self.asm.b(done);
        self.asm.bind(follow);
        self.asm.mov_imm(Gpr::X0, Callee::NO_PROGRAM);
        self.asm.bind(done);
    }

    /// The entry for tail calls of the program that was found.
    fn load_entry(&mut self) {
        let entry = self.at(Size::X, TOKEN, self.links.tail_entry);
        self.asm.load(Size::X, SCRATCH, entry);
    }

    /// Finds the other program, and counts the tail call. Jumps to `follow` if there is no such program, or too many ran.
    fn find_program(&mut self, token: Token, follow: Label) {
        match token {
            Token::Array(array) => self.load_token(array, follow),
            Token::Entry(address) => {
                self.asm.mov_imm(TOKEN, address);
                self.asm.load(Size::X, TOKEN, Mem::At(TOKEN, 0));
            }
            Token::Runtime => self.find_token(),
        }
        self.asm.cbz(Width::Q64, TOKEN, follow);
        let count = self.at(Size::W, HOST, self.links.host.tail_calls);
        self.asm.load(Size::W, SCRATCH, count);
        self.compare_imm(Width::D32, SCRATCH, self.links.host.max_tail_calls);
        self.asm.b_cond(Cond::Hs, follow);
        self.asm.arith_imm(Arith::Add, Width::D32, SCRATCH, SCRATCH, 1);
        self.asm.store(Size::W, SCRATCH, count);
    }

    fn load_token(&mut self, array: ProgArrayLink, follow: Label) {
        self.compare_imm(Width::D32, INDEX, array.entries.cast_signed());
        self.asm.b_cond(Cond::Hs, follow);
        // The index is truncated to 32 bits.
        self.asm.mov(Width::D32, INDEX, INDEX);
        match array.stride {
            8 => self.asm.shift_imm(Shift::Lsl, Width::Q64, INDEX, INDEX, 3),
            16 => self.asm.shift_imm(Shift::Lsl, Width::Q64, INDEX, INDEX, 4),
            stride => {
                self.asm.mov_imm(SECOND, stride);
                self.asm.mul(Width::Q64, INDEX, INDEX, SECOND);
            }
        }
        self.asm.mov_imm(SCRATCH, array.base);
        self.asm.load(Size::X, TOKEN, Mem::Indexed(SCRATCH, INDEX));
    }

    /// Asks the runtime, for a map that is not known when the program is compiled.
    fn find_token(&mut self) {
        self.asm.push_pair(CONTEXT, HOST, 16);
        self.asm.mov(Width::Q64, Gpr::X0, TOKEN);
        self.asm.mov(Width::D32, Gpr::X1, INDEX);
        call_runtime(&mut self.asm, self.links.find_program);
        self.asm.mov(Width::Q64, TOKEN, Gpr::X0);
        self.asm.pop_pair(CONTEXT, HOST, 16);
    }
}
