//! What a function needs: which registers hold what, what is saved, how its stack lies.

use paceline_isa::{Callee, Insn, Operand, Reg, RegSet, Width};
use paceline_spec::context::{self as layout, FieldKind, Rule};
use paceline_spec::helper::Helper;
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
    /// Whether a field of the packet's own area in the host is accessed.
    pub(crate) area: bool,
    pub(crate) tail_calls: bool,
    /// It can leave a redirect target in the frame.
    pub(crate) redirects: bool,
    /// It calls what may leave something to the end of the run.
    pub(crate) waits_for_end: bool,
    /// It accesses the packet's bytes.
    pub(crate) packet: bool,
    /// How often it asks the context where the packet starts.
    pub(crate) starts: usize,
    /// It counts how often `may_goto` goes on.
    pub(crate) may_goto: bool,
    /// BPF registers that it names.
    pub(crate) registers: RegSet,
}

impl Needs {
    pub(crate) fn of(source: &Source<'_>, links: &Links, function: &FunctionFact) -> Self {
        let insns = source.reached(function);
        // What the packet's own area has when a packet enters, a function computes.
        let enters = function.start == 0 && source.kind.context().entries().next().is_some();
        let needs = Self { calls: enters, host: enters, area: enters, ..Self::default() };
        insns.fold(needs, |needs, (slot, insn)| needs.with(source, links, slot, insn))
    }

    fn with(mut self, source: &Source<'_>, links: &Links, slot: usize, insn: &Insn) -> Self {
        let clobbers = insn.is_call() || matches!(insn, Insn::LoadPacket { .. });
        let written = if clobbers { RegSet::of(Reg::R0) } else { insn.writes() };
        let read = crate::liveness::reads(insn);
        self.registers = self.registers.union(written).union(read);
        self.packet |= matches!(insn, Insn::LoadPacket { .. })
            || source.fact(slot).memory.is_some_and(|memory| memory.base == Base::Packet);
        match insn {
            _ if is_tail_call(insn) => {
                self.host = true;
                self.tail_calls = true;
                self.waits_for_end |= source.kind.context().waits_for_end;
                self.redirects = true;
                self.calls |= crate::source::known_map(source, slot).is_none();
            }
            Insn::Call(Callee::Helper(Helper::REDIRECT | Helper::REDIRECT_MAP)) => {
                (self.calls, self.host, self.redirects) = (true, true, true);
            }
            Insn::Call(Callee::Helper(id)) => match Inline::of(source, links, slot, *id) {
                Some(inline) => self.host |= inline.needs_host(),
                None => {
                    self.calls = true;
                    let helper = u32::try_from(*id).ok().and_then(Helper::from_id);
                    self.waits_for_end |= helper.is_some_and(Helper::waits_for_end);
                    self.host |=
                        crate::look_up::look_up_link(source, links, slot, *id).is_none_or(|l| l.takes_cpu);
                }
            },
            Insn::Call(callee) => {
                self.calls = true;
                self.host |= matches!(callee, Callee::Kfunc { .. });
            }
            Insn::MayGoto { .. } => self.may_goto = true,
            Insn::Alu { width, op, src, .. } => self.pushes |= crate::division::pushes(*width, *op, *src),
            Insn::Load { .. } | Insn::Store { .. } if accesses_context(source, slot) => {
                let Ok(place) = context::field(source, slot, insn) else { return self };
                match place.field.place {
                    layout::Place::Host { .. } => {
                        self.host = true;
                        self.area = true;
                    }
                    layout::Place::Computed(rule) => self.calls |= rule != Rule::PacketLen,
                    layout::Place::Frame { .. } | layout::Place::Zero => {}
                }
                self.starts += usize::from(place.field.kind == FieldKind::PacketData);
            }
            _ => {}
        }
        self
    }
}

/// Whether an instruction asks the context where the packet starts.
pub(crate) fn asks_for_start(source: &Source<'_>, slot: usize, insn: &Insn) -> bool {
    accesses_context(source, slot)
        && matches!(context::field(source, slot, insn), Ok(place) if place.field.kind == FieldKind::PacketData)
}

pub(crate) fn accesses_context(source: &Source<'_>, slot: usize) -> bool {
    source.fact(slot).memory.is_some_and(|memory| memory.base == Base::Context)
}

/// How a function is laid out.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
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
    /// Whether it has to stay there; else the register may be another's.
    reserves_host: bool,
    /// The register and displacement that are `r10`.
    frame: (Gpr, i32),
    /// Where the count is, from `r10` on, of how often `may_goto` still goes on.
    rounds_left: Option<i32>,
    /// Words of its stack that have to be zero on entry, as in [`FunctionFact::zeroed`].
    pub(crate) zeroed: u64,
    /// Bytes below `r10` that helpers may read which are given addresses nobody checked.
    pub(crate) readable: i32,
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
        let leaf = !needs.calls && !settings.full_prologue();
        let keeps_host = is_main && !leaf && (needs.host || host_is_shared);
        let host = if is_main && leaf { HOST_ARGUMENT } else { HOST_KEPT };
        let registers = assign(needs, leaf, needs.host && host == HOST_ARGUMENT);
        let mut saved = changed(function, &registers, settings);
        if keeps_host {
            saved.insert(0, HOST_KEPT);
        }
        let (stack, rounds_left) = stack(function, needs, settings);
        let in_red_zone = leaf && !needs.pushes && stack <= RED_ZONE;
        let room = if in_red_zone { 0 } else { room(stack, saved.len(), needs.calls) };
        let frame = (Gpr::Rsp, room);
        let (zeroed, readable) = (function.zeroed, readable(function));
        let reserves_host = host == HOST_KEPT || needs.host;
        Self { registers, saved, room, host, keeps_host, reserves_host, frame, rounds_left, zeroed, readable }
    }

    /// The plan of every function of checked code: all the same, so that jumps may lead from one into another.
    pub(crate) fn checked() -> Self {
        let mut saved = vec![CHECKED_FRAME];
        saved.extend(CALLEE_SAVED);
        Self {
            registers: registers(CALLEE_SAVED),
            saved,
            room: 0,
            host: HOST_KEPT,
            keeps_host: false,
            reserves_host: true,
            frame: (CHECKED_FRAME, 0),
            rounds_left: None,
            zeroed: 0,
            readable: 0,
        }
    }

    /// The register that holds `r0` to `r9`; for `r10` [`frame`](Self::frame) tells.
    pub(crate) fn gpr(&self, reg: Reg) -> Gpr {
        self.registers.get(usize::from(reg.number())).copied().unwrap_or(self.frame.0)
    }

    /// The register that has the host throughout.
    pub(crate) fn reserved_host(&self) -> Option<Gpr> {
        self.reserves_host.then_some(self.host)
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

/// Bytes of a function's stack, and where its count of rounds is, below the program's own.
fn stack(function: &FunctionFact, needs: Needs, settings: &Settings) -> (u32, Option<i32>) {
    let stack = if settings.full_prologue() { 512 } else { function.stack.next_multiple_of(8) };
    if needs.may_goto { (stack + 8, Some(-(stack as i32 + 8))) } else { (stack, None) }
}

/// Bytes of its stack, which are zero on entry, that a function may print.
fn readable(function: &FunctionFact) -> i32 {
    if function.prints { function.stack.next_multiple_of(8) as i32 } else { 0 }
}

/// The callee-saved registers that a function changes, in the order in which they are saved.
fn changed(function: &FunctionFact, registers: &[Gpr; 10], settings: &Settings) -> Vec<Gpr> {
    (6..10)
        .filter(|&n| settings.full_prologue() || Reg::new(n).is_some_and(|r| function.saved.contains(r)))
        .map(|n| registers[usize::from(n)])
        .filter(|gpr| CALLEE_SAVED.contains(gpr))
        .collect()
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

/// How the loop over a burst is laid out, which all main programs of a graph share.
#[derive(Clone, Debug)]
pub(crate) struct LoopPlan {
    /// How the programs lie in it.
    pub(crate) nodes: Vec<Plan>,
    /// Registers that are saved, in the order in which they are pushed.
    pub(crate) saved: Vec<Gpr>,
    /// Bytes that the stack pointer goes down by after that.
    pub(crate) room: i32,
    /// Whether the host has to be put where it is kept.
    pub(crate) keeps_host: bool,
    /// Where the host is.
    pub(crate) host: Gpr,
    /// What has the address of the packet's first byte, where it is asked for more than once.
    pub(crate) start: Option<Gpr>,
    /// What tells the end of the burst.
    pub(crate) end: Place,
    /// How many programs may still run for the packet, 32 bits.
    pub(crate) runs_left: Option<Mem>,
}

/// Where something is kept throughout a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Register(Gpr),
    Stack(Mem),
}

/// Where a loop has the frame of its packet.
pub(crate) const FRAME: Gpr = Gpr::Rbp;

impl LoopPlan {
    /// The plan for main programs with what they need. `host` says whether anything needs the host, and `counts_runs`
    /// whether the programs that run for a packet are counted.
    pub(crate) fn new(
        mains: &[(&FunctionFact, Needs)],
        host: bool,
        counts_runs: bool,
        settings: &Settings,
    ) -> Self {
        // A tail call is a call here, from which the loop goes on.
        let needs = |needs: Needs| Needs { calls: needs.calls || needs.tail_calls, ..needs };
        let mains: Vec<(&FunctionFact, Needs)> = mains.iter().map(|&(f, n)| (f, needs(n))).collect();
        let calls = mains.iter().any(|(_, needs)| needs.calls);
        let keeps_host = host && (calls || settings.full_prologue());
        let host_in_argument = host && !keeps_host;
        let host_in = if keeps_host { HOST_KEPT } else { HOST_ARGUMENT };
        let (mut used, mut changes) = (vec![FRAME], vec![FRAME]);
        used.extend(host.then_some(host_in));
        changes.extend(keeps_host.then_some(HOST_KEPT));
        let (mut nodes, mut depth) = (Vec::with_capacity(mains.len()), 0);
        for &(function, needs) in &mains {
            let leaf = !needs.calls && !settings.full_prologue();
            let registers = assign(needs, leaf, host_in_argument);
            used.extend(needs.registers.iter().filter_map(|reg| registers.get(usize::from(reg.number()))));
            changes.extend(changed(function, &registers, settings));
            let (stack, rounds_left) = stack(function, needs, settings);
            depth = depth.max(stack);
            nodes.push(Plan {
                registers,
                saved: Vec::new(),
                room: 0,
                host: host_in,
                keeps_host: false,
                reserves_host: host,
                frame: (Gpr::Rsp, 0),
                rounds_left,
                zeroed: function.zeroed,
                readable: readable(function),
            });
        }
        let starts: usize = mains.iter().map(|(_, needs)| needs.starts).sum();
        let start = if starts > 1 { free_register(&used, calls) } else { None };
        used.extend(start);
        let end = free_register(&used, calls);
        let own = [start, end].into_iter().flatten();
        changes.extend(own.filter(|gpr| CALLEE_SAVED.contains(gpr) || *gpr == HOST_KEPT));
        let mut saved: Vec<Gpr> = Vec::with_capacity(changes.len());
        for gpr in changes {
            if !saved.contains(&gpr) {
                saved.push(gpr);
            }
        }
        // Below all that the programs have.
        let mut slot = || {
            depth += 8;
            -(depth as i32)
        };
        let (end_slot, runs_left) = (end.is_none().then(&mut slot), counts_runs.then(&mut slot));
        let pushes = mains.iter().any(|(_, needs)| needs.pushes);
        let in_red_zone = !calls && !pushes && !settings.full_prologue() && depth <= RED_ZONE;
        let room = if in_red_zone { 0 } else { room(depth, saved.len(), calls) };
        nodes.iter_mut().for_each(|node| node.frame.1 = room);
        let at = |slot: i32| Mem::at(Gpr::Rsp, room + slot);
        let end = match (end, end_slot) {
            (Some(gpr), _) => Place::Register(gpr),
            (None, slot) => Place::Stack(at(slot.unwrap_or(0))),
        };
        Self { nodes, saved, room, keeps_host, host: host_in, start, end, runs_left: runs_left.map(at) }
    }
}

/// A register that the programs of a loop leave alone, one that need not be saved if there is one.
fn free_register(used: &[Gpr], calls: bool) -> Option<Gpr> {
    let arguments = [Gpr::Rsi, Gpr::Rdx, Gpr::Rcx, Gpr::R8, HOST_ARGUMENT];
    let unsaved = arguments.into_iter().filter(|_| !calls);
    let mut all = unsaved.chain(CALLEE_SAVED).chain([HOST_KEPT]);
    all.find(|gpr| !used.contains(gpr))
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
