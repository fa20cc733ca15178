//! Calls, jumps and the ends of functions.

use crate::codegen::machine::{Label, Ways};
use crate::ir::Callee;

use super::entry::call_runtime;
use super::regs::{SCRATCH, SECOND};
use super::{Arm64, Assigned, operand_size, width_of};
use crate::native::arm64;
use crate::native::arm64::{Arith, Cond, Gpr, Logic, Mem, Shift, Size};
use crate::native::links::ProgArrayLink;
use crate::native::select::op::{Called, CompareMem, Op, Token};
use crate::native::x64::Width;

const CONTEXT: Gpr = Gpr::X0;
const INDEX: Gpr = Gpr::X2;
const HOST: Gpr = Gpr::X5;
/// Where a program expects its own token, in place of the map.
const TOKEN: Gpr = Gpr::X1;

impl Arm64<'_> {
    pub(super) fn control(&mut self, op: Op, regs: Assigned<'_>, ways: Ways<'_>) {
        match op {
            Op::Call(Called::Runtime(address)) => call_runtime(&mut self.asm, address),
            Op::Call(Called::Function(function)) => match self.entry(function) {
                Some(entry) => self.asm.bl(entry),
                None => self.internal("a called function has no entry"),
            },
            Op::TailCall(token) => self.tail_call(token),
            Op::RunProgram(token) => self.run_program(token),
            Op::Jump => match ways.targets {
                &[target] => self.go_on(target, ways),
                _ => self.internal("a jump has not one target"),
            },
            Op::EnterLoop => self.control(Op::Jump, regs, ways),
            Op::Branch(cond, compare) => {
                self.compare(compare, regs);
                let cond = self.condition(cond);
                self.branch(cond, ways);
            }
            Op::BranchMem(cond, compare) => {
                self.compare_mem(compare, regs);
                let cond = self.condition(cond);
                self.branch(cond, ways);
            }
            Op::MayGoto => {
                // The counter becomes negative when the rounds are used up, and stays negative.
                let rounds = self.at(Size::X, Gpr::Sp, self.current.layout.rounds);
                self.asm.load(Size::X, SCRATCH, rounds);
                self.asm.arith_imm(Arith::Subs, Width::Q64, SCRATCH, SCRATCH, 1);
                self.asm.store(Size::X, SCRATCH, rounds);
                self.branch(Cond::Mi, ways);
            }
            Op::Return => {
                self.epilogue();
                self.asm.ret();
            }
            _ => self.internal("an instruction is emitted as one of another kind"),
        }
    }

    /// Sets the flags by a place in memory and a register or a number. Both have zeros above the size.
    fn compare_mem(&mut self, CompareMem { size, at, tests, imm }: CompareMem, regs: Assigned<'_>) {
        let size = operand_size(size);
        let width = width_of(size);
        let mem = self.mem(size, at, regs);
        self.asm.load(size, SCRATCH, mem);
        let imm = imm.map(|imm| match size {
            Size::B => imm & 0xff,
            Size::H => imm & 0xffff,
            Size::W | Size::X => imm,
        });
        match imm {
            Some(imm) if tests => self.test_imm(width, SCRATCH, imm),
            Some(imm) => self.compare_imm(width, SCRATCH, imm),
            None if tests => self.asm.logic(Logic::Ands, width, Gpr::Zr, SCRATCH, regs.last()),
            None => self.asm.arith(Arith::Subs, width, Gpr::Zr, SCRATCH, regs.last(), 0),
        }
    }

    /// Jumps to a block unless it comes next.
    fn go_on(&mut self, target: Label, ways: Ways<'_>) {
        if Some(target) != ways.next {
            let label = self.label(target);
            self.asm.b(label);
        }
    }

    pub(super) fn branch(&mut self, cond: Cond, ways: Ways<'_>) {
        let &[taken, other] = ways.targets else { return self.internal("a branch has not two targets") };
        let (cond, first, second) =
            if Some(taken) == ways.next { (cond.invert(), other, taken) } else { (cond, taken, other) };
        let label = self.label(first);
        self.asm.b_cond(cond, label);
        self.go_on(second, ways);
    }

    /// The token is loaded each time, so that updates of the map take effect. The epilogue runs before the jump, so that programs
    /// with different prologues can call each other.
    fn tail_call(&mut self, token: Token) {
        let follow = self.asm.new_label();
        self.find_program(token, follow);
        self.epilogue();
        self.load_entry();
        self.asm.br(SCRATCH);
        self.asm.bind(follow);
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
    fn find_program(&mut self, token: Token, follow: arm64::Label) {
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

    fn load_token(&mut self, array: ProgArrayLink, follow: arm64::Label) {
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
