//! The converter from a checked filter to a program of the extended instruction set (eBPF).
//!
//! Semantics are those of the kernel's converter, `bpf_convert_filter` in `net/core/filter.c`. This one generates ordinary
//! programs, which a verifier has to accept, and optimizes the filter as a whole.

use paceline_isa as isa;
use paceline_isa::{Insn, RawInsn, Reg, Width, encode_all};
use paceline_spec::{KfuncRef, ProgramKind, ProgramSpec, XdpAttach};

use super::check::{Filter, Purpose};
use super::demand::{Demand, demand};
use super::emit::{Emitted, Emitter, Target, isa_alu, isa_condition, opposite};
use super::insn::{AluOp, Condition, Register};
use super::ir::{Answer, Layout, Op, Operand, Value, resolve};
use super::options::{ConvertOptions, Returns, Rules};
use super::order::Orders;
use super::simplify::{Facts, simplify};
use super::site::Site;
use super::socket_load::{self, Loads};
use super::{loops, seccomp_load, xdp_load};

/// Reasons why a filter cannot be converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The filter was checked for another purpose.
    #[error("the filter was not checked for {0:?}")]
    Purpose(Purpose),
}

/// Instructions of a converted filter, and their origins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The instructions, one slot each.
    pub insns: Vec<RawInsn>,
    /// For each instruction of the filter the first slot of its code, which extends to the code of the next one and may be empty;
    /// `None` for unreachable instructions. Slots before the first are the program's prologue, and the last slots may be the shared
    /// exit without a match.
    pub places: Vec<Option<usize>>,
    /// Kernel functions that it calls ([`ProgramSpec::kfuncs`]), which exist only in Paceline.
    pub kfuncs: Vec<KfuncRef>,
}

impl Converted {
    fn into_spec(self, name: &str, kind: ProgramKind) -> ProgramSpec {
        ProgramSpec { kfuncs: self.kfuncs, ..ProgramSpec::new(name, kind, self.insns) }
    }
}

/// Type of the generated program, which determines where values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    Xdp,
    SocketFilter,
    Seccomp,
}

impl Filter {
    /// Converts to an XDP program, with direct packet access.
    ///
    /// # Errors
    /// [`ConvertError`].
    pub fn to_xdp(&self, name: &str, options: &ConvertOptions) -> Result<ProgramSpec, ConvertError> {
        let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
        Ok(self.convert(Machine::Xdp, options)?.into_spec(name, kind))
    }

    /// The instructions of [`to_xdp`](Self::to_xdp), with their origins.
    ///
    /// # Errors
    /// [`ConvertError`].
    pub fn to_xdp_insns(&self, options: &ConvertOptions) -> Result<Converted, ConvertError> {
        self.convert(Machine::Xdp, options)
    }

    /// Converts to a socket filter, with the legacy packet loads.
    ///
    /// # Errors
    /// [`ConvertError`].
    pub fn to_socket_filter(
        &self,
        name: &str,
        options: &ConvertOptions,
    ) -> Result<ProgramSpec, ConvertError> {
        Ok(self.convert(Machine::SocketFilter, options)?.into_spec(name, ProgramKind::SocketFilter))
    }

    /// Converts to a program over the bytes of a `struct seccomp_data` ([`SystemCall::to_bytes`](super::SystemCall::to_bytes)), to
    /// which `r1` points; [`Action::from_return`](super::Action::from_return) decodes the result. No verifier supports such
    /// programs: they are for `MemoryProgram`, which checks at run time.
    ///
    /// # Errors
    /// [`ConvertError`].
    pub fn to_seccomp(&self, name: &str) -> Result<ProgramSpec, ConvertError> {
        let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
        Ok(self.convert(Machine::Seccomp, &ConvertOptions::default())?.into_spec(name, kind))
    }

    fn convert(&self, machine: Machine, options: &ConvertOptions) -> Result<Converted, ConvertError> {
        let is_seccomp = machine == Machine::Seccomp;
        if is_seccomp != (self.purpose() == Purpose::Seccomp) {
            let purpose = if is_seccomp { Purpose::Seccomp } else { Purpose::Socket };
            return Err(ConvertError::Purpose(purpose));
        }
        let layout = Layout {
            network_offset: options.network_offset,
            longest: match machine {
                Machine::Xdp => xdp_load::LONGEST,
                Machine::SocketFilter | Machine::Seccomp => i32::MAX.cast_unsigned(),
            },
            seccomp: is_seccomp,
            rules: options.rules,
        };
        let mut ops = resolve(self, layout);
        let (facts, demands) = settle(&mut ops, layout);
        let orders = match machine {
            Machine::Xdp => Orders::of(&ops, &demands, |index| facts.get(index).is_some_and(Option::is_some)),
            // Their loads return numbers in native order.
            Machine::SocketFilter | Machine::Seccomp => Orders::machine(ops.len()),
        };
        let known = Known { facts: &facts, demands: &demands, orders: &orders };
        let Emitted { insns, places, kfuncs } =
            Converter::new(machine, options.returns, layout, &ops, known).run();
        let insns =
            encode_all(&insns).unwrap_or_else(|error| unreachable!("all of these have encodings: {error}"));
        let runs = facts.iter().map(Option::is_some);
        Ok(Converted {
            insns,
            places: places.into_iter().zip(runs).map(|(place, runs)| runs.then_some(place)).collect(),
            kfuncs,
        })
    }
}

/// Simplifies to a fixed point: removing dead code improves the facts about the rest.
fn settle(ops: &mut [Op], layout: Layout) -> (Vec<Option<Facts>>, Vec<Demand>) {
    loop {
        let before = ops.to_vec();
        let facts = simplify(ops, layout);
        let demands = demand(ops);
        // Facts may concern instructions that were removed by `demand`, but then `ops` has changed and the loop continues.
        if *ops == before {
            return (facts, demands);
        }
    }
}

/// Results of the analyses of a filter.
#[derive(Clone, Copy)]
struct Known<'a> {
    facts: &'a [Option<Facts>],
    demands: &'a [Demand],
    orders: &'a Orders,
}

struct Converter<'a> {
    machine: Machine,
    returns: Returns,
    layout: Layout,
    ops: &'a [Op],
    known: Known<'a>,
    out: Emitter,
    /// Checked packet lengths before each instruction.
    proven: Vec<Option<Loads>>,
    /// Whether a loop starts at each instruction.
    loops: Vec<bool>,
}

impl<'a> Converter<'a> {
    fn new(machine: Machine, returns: Returns, layout: Layout, ops: &'a [Op], known: Known<'a>) -> Self {
        let registers = match machine {
            Machine::Xdp => xdp_load::registers(ops),
            Machine::SocketFilter => socket_load::REGISTERS,
            Machine::Seccomp => seccomp_load::REGISTERS,
        };
        let loops = loops::starts(ops);
        let none = |is_start: &bool| is_start.then(Loads::default);
        let mut proven: Vec<_> = loops.iter().map(none).collect();
        if let Some(entry) = proven.first_mut() {
            *entry = Some(Loads::default());
        }
        let out = Emitter::new(ops.len(), registers, returns.unmatched());
        Self { machine, returns, layout, ops, known, out, proven, loops }
    }

    fn run(mut self) -> Emitted {
        self.prologue();
        let mut after_end = false;
        for (index, op) in self.ops.iter().copied().enumerate() {
            let (Some(Some(facts)), Some(demand)) =
                (self.known.facts.get(index), self.known.demands.get(index))
            else {
                continue;
            };
            self.out.keep_in_reach(after_end);
            self.out.place(index);
            let mut proven = self.proven.get(index).copied().flatten().unwrap_or_default();
            let Layout { network_offset, rules, .. } = self.layout;
            let order = self.known.orders.loaded(index, op, self.ops);
            let site = Site { facts, demand: *demand, network_offset, rules, order };
            self.op(index, op, &site, &mut proven);
            for next in op.successors(index) {
                match self.proven.get_mut(next) {
                    Some(Some(there)) => there.meet(proven),
                    Some(there) => *there = Some(proven),
                    None => {}
                }
            }
            after_end = match op {
                Op::Return(_) => true,
                Op::Jump(target) => self.falls_to(index) != Some(target),
                _ => false,
            };
        }
        self.out.finish()
    }

    fn prologue(&mut self) {
        let loops = self.loops.iter().filter(|is_start| **is_start).count();
        match self.machine {
            Machine::Xdp => xdp_load::prologue(&mut self.out, self.ops, self.layout.rules, loops),
            Machine::SocketFilter => socket_load::prologue(&mut self.out, loops),
            Machine::Seccomp => seccomp_load::prologue(&mut self.out),
        }
        let live = self.known.demands.first().map(|demand| demand.live).unwrap_or_default();
        for register in [Register::A, Register::X] {
            if live.has(register) {
                let reg = self.out.reg(register);
                self.out.constant(reg, 0);
            }
        }
    }

    fn op(&mut self, index: usize, op: Op, site: &Site<'_>, proven: &mut Loads) {
        let (a, x) = (self.out.reg(Register::A), self.out.reg(Register::X));
        match op {
            Op::Nothing => {}
            Op::Load(register, Value::Constant(value)) => {
                let dst = self.out.reg(register);
                self.out.constant(dst, value);
            }
            Op::Load(register, Value::Memory(word)) => {
                let dst = self.out.reg(register);
                self.out.load(isa::Size::Dw, dst, Reg::R10, word_place(word));
            }
            Op::Load(register, value) => self.load(register, value, site, proven),
            Op::Require(end) => self.require(end, site, proven),
            Op::Store(register, word) => {
                let src = isa::Operand::Reg(self.out.reg(register));
                let (base, offset) = (Reg::R10, word_place(word));
                self.out.push(Insn::Store { size: isa::Size::Dw, base, offset, src });
            }
            Op::Alu(op, operand) => {
                if operand == Operand::X && matches!(op, AluOp::Div | AluOp::Mod) {
                    let zero = isa::Operand::Imm(0);
                    self.out.jump_if(Width::W32, isa::Condition::Eq, x, zero, Target::NoMatch);
                }
                let src = self.out.operand(operand);
                if operand == Operand::X && matches!(op, AluOp::Lsh | AluOp::Rsh) {
                    self.far_shift(site);
                }
                self.out.alu(Width::W32, isa_alu(op), a, src);
            }
            Op::Negate => self.out.push(Insn::Neg { width: Width::W32, dst: a }),
            Op::Transfer(Register::A) => self.out.copy(a, x),
            Op::Transfer(Register::X) => self.out.copy(x, a),
            Op::Jump(target) => self.goto(index, target),
            Op::Branch { condition, operand, then, otherwise } => {
                self.branch(index, condition, operand, then, otherwise);
            }
            Op::Return(answer) => self.answer(answer),
        }
        if op.writes() == Some(Register::X) {
            proven.index_changes();
        }
    }

    /// Makes a shift by the index register return 0 for counts of 32 and more, as in libpcap.
    fn far_shift(&mut self, site: &Site<'_>) {
        if site.rules == Rules::Kernel || site.facts.max_x() < 32 {
            return;
        }
        let (a, x) = (self.out.reg(Register::A), self.out.reg(Register::X));
        let near = self.out.label();
        self.out.jump_if(Width::W32, isa::Condition::Lt, x, isa::Operand::Imm(32), near);
        self.out.constant(a, 0);
        self.out.set(near);
    }

    fn load(&mut self, register: Register, value: Value, site: &Site<'_>, proven: &mut Loads) {
        match self.machine {
            Machine::Xdp => xdp_load::load(&mut self.out, register, value, site, proven),
            Machine::SocketFilter => socket_load::load(&mut self.out, register, value, site, proven),
            Machine::Seccomp => seccomp_load::load(&mut self.out, register, value),
        }
    }

    fn require(&mut self, end: u32, site: &Site<'_>, proven: &mut Loads) {
        match self.machine {
            Machine::Xdp => xdp_load::require(&mut self.out, end, site, proven),
            Machine::SocketFilter => socket_load::require(&mut self.out, end, site, proven),
            Machine::Seccomp => {}
        }
    }

    /// The next reachable instruction, which control falls through to.
    fn falls_to(&self, index: usize) -> Option<usize> {
        (index + 1..self.ops.len()).find(|next| self.known.facts.get(*next).is_some_and(Option::is_some))
    }

    fn goto(&mut self, index: usize, target: usize) {
        if loops::is_back(index, target) {
            match self.machine {
                Machine::Xdp => loops::count_round(&mut self.out, xdp_load::SCRATCH),
                Machine::SocketFilter => loops::count_round(&mut self.out, socket_load::SCRATCH),
                // Seccomp's checker allows forward jumps only.
                Machine::Seccomp => {}
            }
        }
        if self.falls_to(index) != Some(target) {
            self.out.jump(Target::Insn(target));
        }
    }

    fn branch(
        &mut self,
        index: usize,
        condition: Condition,
        operand: Operand,
        then: usize,
        otherwise: usize,
    ) {
        let operand = match operand {
            Operand::Constant(value) => Operand::Constant(self.known.orders.before(index).constant(value)),
            Operand::X => Operand::X,
        };
        let (a, src) = (self.out.reg(Register::A), self.out.operand(operand));
        let follows = self.falls_to(index);
        match opposite(condition) {
            Some(opposite) if follows == Some(then) => {
                self.out.jump_if(Width::W32, opposite, a, src, Target::Insn(otherwise));
            }
            _ => {
                self.out.jump_if(Width::W32, isa_condition(condition), a, src, Target::Insn(then));
                self.goto(index, otherwise);
            }
        }
    }

    fn answer(&mut self, answer: Answer) {
        match (answer, self.returns) {
            (Answer::Constant(value), returns) => self.out.exit_with(returns.of(value)),
            // Register A is `r0`, the result register.
            (Answer::A, Returns::Number) => self.out.push(Insn::Exit),
            (Answer::A, Returns::Verdict { matched, .. }) => {
                let zero = isa::Operand::Imm(0);
                let a = self.out.reg(Register::A);
                self.out.jump_if(Width::W32, isa::Condition::Eq, a, zero, Target::NoMatch);
                self.out.exit_with(matched);
            }
        }
    }
}

/// Offset of a scratch memory word from the frame pointer: eight bytes each, because verifiers track a spilled register only if all
/// of it is stored.
fn word_place(word: u8) -> i16 {
    -8 * (i16::from(word) + 1)
}
