//! Plans of functions: register assignment, saved registers, and stack layout.

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

/// Size in bytes of the red zone below `rsp`, which leaf functions may use without adjusting `rsp` (System V ABI, section 3.2.2).
const RED_ZONE: u32 = 128;

/// Argument register of the host, the sixth.
pub(crate) const HOST_ARGUMENT: Gpr = Gpr::R9;
/// Callee-saved register of the host.
pub(crate) const HOST_KEPT: Gpr = Gpr::R12;

/// Registers that no BPF register is assigned to.
pub(crate) const SCRATCH: Gpr = Gpr::R10;
pub(crate) const SCRATCH_2: Gpr = Gpr::R11;

/// `r0` to `r5`: the registers of the calling convention.
const CALLER_SAVED: [Gpr; 6] = [Gpr::Rax, Gpr::Rdi, Gpr::Rsi, Gpr::Rdx, Gpr::Rcx, Gpr::R8];
/// `r6` to `r9` if they must survive calls.
const CALLEE_SAVED: [Gpr; 4] = [Gpr::Rbx, Gpr::R13, Gpr::R14, Gpr::R15];
/// `r10` in checked code, whose BPF stack frames are elsewhere.
pub(crate) const CHECKED_FRAME: Gpr = Gpr::Rbp;

/// Properties of a function that decide its plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The function makes calls, which clobber caller-saved registers.
    pub(crate) calls: bool,
    /// The function pushes registers temporarily.
    pub(crate) pushes: bool,
    /// The function needs the host after its entry.
    pub(crate) host: bool,
    /// The function accesses a field of the packet's own area in the host.
    pub(crate) area: bool,
    pub(crate) tail_calls: bool,
    /// The function may set a redirect target in the frame.
    pub(crate) redirects: bool,
    /// The function calls something that may defer work to the end of the run.
    pub(crate) waits_for_end: bool,
    /// The function accesses packet bytes.
    pub(crate) packet: bool,
    /// Number of loads of the packet's start from the context.
    pub(crate) starts: usize,
    /// The function has a `may_goto` counter.
    pub(crate) may_goto: bool,
    /// BPF registers that the function uses.
    pub(crate) registers: RegSet,
}

impl Needs {
    pub(crate) fn of(source: &Source<'_>, links: &Links, function: &FunctionFact) -> Self {
        let insns = source.reached(function);
        // The initial contents of the packet's own area are computed by a runtime function.
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
                    let helper = Helper::from_imm(*id);
                    self.waits_for_end |= helper.is_some_and(Helper::waits_for_end);
                    self.host |= crate::look_up::look_up_link(source, links, slot, *id)
                        .is_none_or(|l| l.member.is_some());
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

/// Whether an instruction loads the packet's start from the context.
pub(crate) fn asks_for_start(source: &Source<'_>, slot: usize, insn: &Insn) -> bool {
    accesses_context(source, slot)
        && matches!(context::field(source, slot, insn), Ok(place) if place.field.kind == FieldKind::PacketData)
}

pub(crate) fn accesses_context(source: &Source<'_>, slot: usize) -> bool {
    source.fact(slot).memory.is_some_and(|memory| memory.base == Base::Context)
}

/// Register assignment and stack layout of a function.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Native registers of `r0` to `r9`.
    registers: [Gpr; 10],
    /// Saved registers, in push order.
    pub(crate) saved: Vec<Gpr>,
    /// Bytes to subtract from the stack pointer after the pushes.
    pub(crate) room: i32,
    /// Register of the host, in functions that need it.
    pub(crate) host: Gpr,
    /// Whether the prologue has to move the host to that register.
    pub(crate) keeps_host: bool,
    /// Whether the register is reserved for the host; otherwise it may be reassigned.
    reserves_host: bool,
    /// `r10` as a base register and displacement.
    frame: (Gpr, i32),
    /// Offset from `r10` of the counter of remaining `may_goto` iterations.
    rounds_left: Option<i32>,
    /// Stack words to zero on entry, as in [`FunctionFact::zeroed`].
    pub(crate) zeroed: u64,
    /// Bytes below `r10` that helpers with unverified addresses may read.
    pub(crate) readable: i32,
}

impl Plan {
    /// The plan of one function. `host_is_shared`: whether a called subprogram needs the host.
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

    /// The plan of all functions of checked code: identical, so that jumps may cross functions.
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

    /// The native register of `r0` to `r9`; for `r10` see [`frame`](Self::frame).
    pub(crate) fn gpr(&self, reg: Reg) -> Gpr {
        self.registers.get(usize::from(reg.number())).copied().unwrap_or(self.frame.0)
    }

    /// The register that is reserved for the host.
    pub(crate) fn reserved_host(&self) -> Option<Gpr> {
        self.reserves_host.then_some(self.host)
    }

    /// The register of `r10`, if one is assigned.
    pub(crate) fn frame_register(&self) -> Option<Gpr> {
        (self.frame.0 != Gpr::Rsp).then_some(self.frame.0)
    }

    /// The 64-bit counter of remaining `may_goto` iterations; `None` in functions without `may_goto`.
    pub(crate) fn rounds_left(&self) -> Option<Mem> {
        self.rounds_left.map(|offset| self.stack(offset))
    }

    /// A stack operand at an offset from `r10`.
    pub(crate) fn stack(&self, offset: i32) -> Mem {
        Mem::at(self.frame.0, self.frame.1.wrapping_add(offset))
    }
}

/// Stack size of a function in bytes, and the offset of its `may_goto` counter, below the program's own stack.
fn stack(function: &FunctionFact, needs: Needs, settings: &Settings) -> (u32, Option<i32>) {
    let whole = settings.full_prologue() || function.prints;
    let stack = if whole { 512 } else { function.stack.next_multiple_of(8) };
    if needs.may_goto { (stack + 8, Some(-(stack as i32 + 8))) } else { (stack, None) }
}

/// Size in bytes of the stack, zeroed on entry, that a printing function makes readable.
fn readable(function: &FunctionFact) -> i32 {
    if function.prints { 512 } else { 0 }
}

/// Callee-saved registers that a function changes, in push order.
fn changed(function: &FunctionFact, registers: &[Gpr; 10], settings: &Settings) -> Vec<Gpr> {
    (6..10)
        .filter(|&n| settings.full_prologue() || Reg::new(n).is_some_and(|r| function.saved.contains(r)))
        .map(|n| registers[usize::from(n)])
        .filter(|gpr| CALLEE_SAVED.contains(gpr))
        .collect()
}

/// Bytes to subtract from the stack pointer for the stack, below the return address and the saved registers.
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

/// Assigns registers. Leaf functions assign `r6` to `r9` to caller-saved registers, as long as some are free.
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

/// Layout of the loop over a burst, which all main programs of a graph share.
#[derive(Clone, Debug)]
pub(crate) struct LoopPlan {
    /// Plans of the programs in the loop.
    pub(crate) nodes: Vec<Plan>,
    /// Saved registers, in push order.
    pub(crate) saved: Vec<Gpr>,
    /// Bytes to subtract from the stack pointer after the pushes.
    pub(crate) room: i32,
    /// Whether the prologue has to move the host to its callee-saved register.
    pub(crate) keeps_host: bool,
    /// Register of the host.
    pub(crate) host: Gpr,
    /// Register of the packet's start, if it is loaded more than once.
    pub(crate) start: Option<Gpr>,
    /// Location of the end of the burst.
    pub(crate) end: Place,
    /// Counter of remaining program runs for the packet, 32 bits.
    pub(crate) runs_left: Option<Mem>,
}

/// Location of a value throughout a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Register(Gpr),
    Stack(Mem),
}

/// Register of the current packet's frame.
pub(crate) const FRAME: Gpr = Gpr::Rbp;

impl LoopPlan {
    /// The plan for main programs with these needs. `host`: whether anything needs the host; `counts_runs`: whether program runs
    /// per packet are limited.
    pub(crate) fn new(
        mains: &[(&FunctionFact, Needs)],
        host: bool,
        counts_runs: bool,
        settings: &Settings,
    ) -> Self {
        // In a loop a tail call is a call, after which the loop continues.
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
        // Below the stacks of all programs.
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

/// A register that no program of the loop uses, preferably caller-saved.
fn free_register(used: &[Gpr], calls: bool) -> Option<Gpr> {
    let arguments = [Gpr::Rsi, Gpr::Rdx, Gpr::Rcx, Gpr::R8, HOST_ARGUMENT];
    let unsaved = arguments.into_iter().filter(|_| !calls);
    let mut all = unsaved.chain(CALLEE_SAVED).chain([HOST_KEPT]);
    all.find(|gpr| !used.contains(gpr))
}

/// The encoder's width for an operation's width.
pub(crate) fn native(width: Width) -> crate::x64::Width {
    match width {
        Width::W32 => crate::x64::Width::D32,
        Width::W64 => crate::x64::Width::Q64,
    }
}

/// The value of an immediate operand, for operations with simpler code in that case.
pub(crate) fn immediate(operand: Operand) -> Option<i32> {
    match operand {
        Operand::Imm(imm) => Some(imm),
        Operand::Reg(_) => None,
    }
}
