//! What a function needs: which registers hold what, what is saved, how its stack lies.

use paceline_isa::{Callee, Insn, Operand, Reg, RegSet, Width};
use paceline_spec::context::FieldKind;
use paceline_verifier::{Base, FunctionFact};

use crate::context;
use crate::inline::Inline;
use crate::links::Links;
use crate::settings::Settings;
use crate::source::{Source, is_tail_call};
use crate::x64::{Gpr, Mem};

/// Bytes below `rsp` that a function which does not call may use as they are (System V ABI, section 3.2.2).
const RED_ZONE: u32 = 128;

/// Where the host comes in, as the sixth argument.
pub(crate) const HOST_ARGUMENT: Gpr = Gpr::R9;
/// Where it is kept across calls.
pub(crate) const HOST_KEPT: Gpr = Gpr::R12;

/// Registers that no BPF register is ever in.
pub(crate) const SCRATCH: Gpr = Gpr::R10;
pub(crate) const SCRATCH_2: Gpr = Gpr::R11;

/// `r0` to `r5`: those of calls.
const CALLER_SAVED: [Gpr; 6] = [Gpr::Rax, Gpr::Rdi, Gpr::Rsi, Gpr::Rdx, Gpr::Rcx, Gpr::R8];
/// `r6` to `r9` where they must survive calls.
const CALLEE_SAVED: [Gpr; 4] = [Gpr::Rbx, Gpr::R13, Gpr::R14, Gpr::R15];
/// `r10` in checked code, whose stack frames lie elsewhere.
pub(crate) const CHECKED_FRAME: Gpr = Gpr::Rbp;

/// What the code of a function does to the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// It calls something, so that registers do not survive.
    pub(crate) calls: bool,
    /// It pushes something for a while.
    pub(crate) pushes: bool,
    /// It needs the host after its entry.
    pub(crate) host: bool,
    /// Whether a field of the scratch area is accessed.
    pub(crate) scratch: bool,
    pub(crate) tail_calls: bool,
    /// It counts how often `may_goto` goes on.
    pub(crate) may_goto: bool,
    /// BPF registers that it names.
    pub(crate) registers: RegSet,
}

impl Needs {
    pub(crate) fn of(source: &Source<'_>, links: &Links, function: &FunctionFact) -> Self {
        let insns = source.reached(function);
        insns.fold(Self::default(), |needs, (slot, insn)| needs.with(source, links, slot, insn))
    }

    fn with(mut self, source: &Source<'_>, links: &Links, slot: usize, insn: &Insn) -> Self {
        let clobbers = insn.is_call() || matches!(insn, Insn::LoadPacket { .. });
        let written = if clobbers { RegSet::of(Reg::R0) } else { insn.writes() };
        let read = crate::liveness::reads(insn);
        self.registers = self.registers.union(written).union(read);
        match insn {
            _ if is_tail_call(insn) => {
                self.host = true;
                self.tail_calls = true;
                self.calls |= crate::source::known_map(source, slot).is_none();
            }
            Insn::Call(Callee::Helper(id)) => match Inline::of(source, links, slot, *id) {
                Some(inline) => self.host |= inline.needs_host(),
                None => {
                    self.calls = true;
                    self.host |=
                        crate::call::look_up_link(source, links, slot, *id).is_none_or(|l| l.takes_cpu);
                }
            },
            Insn::Call(callee) => {
                self.calls = true;
                self.host |= matches!(callee, Callee::Kfunc { .. });
            }
            Insn::MayGoto { .. } => self.may_goto = true,
            Insn::Alu { width, op, src, .. } => self.pushes |= crate::division::pushes(*width, *op, *src),
            Insn::Load { .. } | Insn::Store { .. } if accesses_context(source, slot) => {
                match context::field(source, slot, insn).map(|place| place.field.kind) {
                    Ok(FieldKind::Scratch) => {
                        self.host = true;
                        self.scratch = true;
                    }
                    Ok(FieldKind::PacketType | FieldKind::Protocol) => self.calls = true,
                    _ => {}
                }
            }
            _ => {}
        }
        self
    }
}

pub(crate) fn accesses_context(source: &Source<'_>, slot: usize) -> bool {
    source.fact(slot).memory.is_some_and(|memory| memory.base == Base::Context)
}

/// How a function is laid out.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) needs: Needs,
    /// What holds `r0` to `r9`.
    registers: [Gpr; 10],
    /// Registers that are saved, in the order in which they are pushed.
    pub(crate) saved: Vec<Gpr>,
    /// Bytes that the stack pointer goes down by after that.
    pub(crate) room: i32,
    /// Where the host is, in functions that need it.
    pub(crate) host: Gpr,
    /// Whether the function has to put it there.
    pub(crate) keeps_host: bool,
    /// The register and displacement that are `r10`.
    frame: (Gpr, i32),
    /// Where the count is, from `r10` on, of how often `may_goto` still goes on.
    rounds_left: Option<i32>,
    /// Words of its stack that have to be zero on entry, as in [`FunctionFact::zeroed`].
    pub(crate) zeroed: u64,
}

impl Plan {
    /// The plan of one function of a program. `host_is_shared` says whether a function that is called needs the host.
    pub(crate) fn new(
        function: &FunctionFact,
        needs: Needs,
        is_main: bool,
        host_is_shared: bool,
        settings: &Settings,
    ) -> Self {
        let leaf = !needs.calls && !settings.full_prologue;
        let keeps_host = is_main && !leaf && (needs.host || host_is_shared);
        let host = if is_main && leaf { HOST_ARGUMENT } else { HOST_KEPT };
        let registers = assign(needs, leaf, needs.host && host == HOST_ARGUMENT);
        let mut saved: Vec<Gpr> = (6..10)
            .filter(|&n| settings.full_prologue || Reg::new(n).is_some_and(|r| function.saved.contains(r)))
            .map(|n| registers[usize::from(n)])
            .filter(|gpr| CALLEE_SAVED.contains(gpr))
            .collect();
        if keeps_host {
            saved.insert(0, HOST_KEPT);
        }
        let stack = if settings.full_prologue { 512 } else { function.stack.next_multiple_of(8) };
        // Below the program's own.
        let rounds_left = needs.may_goto.then_some(-(stack as i32 + 8));
        let stack = stack + if needs.may_goto { 8 } else { 0 };
        let (room, frame) = if leaf && !needs.pushes && stack <= RED_ZONE {
            (0, (Gpr::Rsp, 0))
        } else {
            let room = room(stack, saved.len(), needs.calls);
            (room, (Gpr::Rsp, room))
        };
        let zeroed = function.zeroed;
        Self { needs, registers, saved, room, host, keeps_host, frame, rounds_left, zeroed }
    }

    /// The plan of every function of checked code: all the same, so that jumps may lead from one into another.
    pub(crate) fn checked(needs: Needs) -> Self {
        let mut saved = vec![CHECKED_FRAME];
        saved.extend(CALLEE_SAVED);
        Self {
            needs,
            registers: registers(CALLEE_SAVED),
            saved,
            room: 0,
            host: HOST_KEPT,
            keeps_host: false,
            frame: (CHECKED_FRAME, 0),
            rounds_left: None,
            zeroed: 0,
        }
    }

    /// The register that holds `r0` to `r9`; for `r10` [`frame`](Self::frame) tells.
    pub(crate) fn gpr(&self, reg: Reg) -> Gpr {
        self.registers.get(usize::from(reg.number())).copied().unwrap_or(self.frame.0)
    }

    /// The register that is `r10`, if one is.
    pub(crate) fn frame_register(&self) -> Option<Gpr> {
        (self.frame.0 != Gpr::Rsp).then_some(self.frame.0)
    }

    /// How often `may_goto` still goes on, 64 bits; `None` in functions that do not count it.
    pub(crate) fn rounds_left(&self) -> Option<Mem> {
        self.rounds_left.map(|offset| self.stack(offset))
    }

    /// A place on the stack, from `r10` on.
    pub(crate) fn stack(&self, offset: i32) -> Mem {
        Mem::at(self.frame.0, self.frame.1.wrapping_add(offset))
    }
}

/// What the stack pointer goes down by for so many bytes of stack, below the return address and the saved registers.
fn room(stack: u32, saved: usize, aligned: bool) -> i32 {
    let above = 8 + 8 * saved as u32;
    let total = above + stack;
    let total = if aligned { total.next_multiple_of(16) } else { total };
    (total - above) as i32
}

fn registers(callee_saved: [Gpr; 4]) -> [Gpr; 10] {
    let [r0, r1, r2, r3, r4, r5] = CALLER_SAVED;
    let [r6, r7, r8, r9] = callee_saved;
    [r0, r1, r2, r3, r4, r5, r6, r7, r8, r9]
}

/// Assigns registers. A function that does not call puts `r6` to `r9` where nothing has to be saved, as long as there is
/// room.
fn assign(needs: Needs, leaf: bool, host_in_argument: bool) -> [Gpr; 10] {
    let mut assigned = registers(CALLEE_SAVED);
    if !leaf {
        return assigned;
    }
    let arguments = (1..6).filter_map(Reg::new).zip(&CALLER_SAVED[1..]);
    let mut free: Vec<Gpr> =
        arguments.filter(|(reg, _)| !needs.registers.contains(*reg)).map(|(_, &gpr)| gpr).collect();
    if !host_in_argument {
        free.push(HOST_ARGUMENT);
    }
    let mut free = free.into_iter();
    for n in 6..10 {
        if Reg::new(n).is_some_and(|reg| needs.registers.contains(reg)) {
            let Some(gpr) = free.next() else { break };
            assigned[usize::from(n)] = gpr;
        }
    }
    assigned
}

/// The width of an operation in the encoder's words.
pub(crate) fn native(width: Width) -> crate::x64::Width {
    match width {
        Width::W32 => crate::x64::Width::D32,
        Width::W64 => crate::x64::Width::Q64,
    }
}

/// An immediate operand that is a known number, for the operations that are simpler then.
pub(crate) fn immediate(operand: Operand) -> Option<i32> {
    match operand {
        Operand::Imm(imm) => Some(imm),
        Operand::Reg(_) => None,
    }
}
