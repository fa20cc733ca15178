//! The loop over a burst (seed 003), with the programs of a graph inlined: what follows which verdict are jumps.
//!
//! The prologue runs once. The frame of the packet is in a register all along, so that the verdict can be stored when a
//! program is done, whatever it did to its own registers, and so is what tells the end, as long as the programs leave a
//! register over. What belongs to one packet is set up in the loop.

use paceline_frame::{Frame, Verdict};
use paceline_graph::{Graph, MAX_RUNS};
use paceline_verifier::FunctionFact;

use crate::chain_program::ChainProgram;
use crate::emitter::{Emitter, Leave};
use crate::error::CompileError;
use crate::plan::{FRAME, HOST_ARGUMENT, HOST_KEPT, LoopPlan, Needs, Place, SCRATCH, SCRATCH_2};
use crate::program::{ALIGNMENT, Piece};
use crate::settings::Prefetch;
use crate::x64::{Alu, Cond, Fill, Gpr, Label, Mem, OpSize, Width};

/// Where the address of the first frame comes in.
const FIRST: Gpr = Gpr::Rdi;
/// Where the address past the last one does.
const END: Gpr = Gpr::Rsi;

/// Bytes from one frame to the next.
pub(crate) const FRAME_SIZE: i32 = size_of::<Frame>() as i32;

/// What the code of a loop shares.
pub(crate) struct Loop<'a> {
    /// What follows what; `None` for a program alone, whose result is stored as it is.
    pub(crate) graph: Option<&'a Graph>,
    /// Whether verdicts are counted, by program.
    pub(crate) counted: bool,
    pub(crate) plan: LoopPlan,
    /// Where the next packet begins.
    top: Label,
    /// Where the loop ends.
    done: Label,
    /// Where programs begin.
    pub(crate) nodes: Vec<Label>,
    /// What something leads to and was not emitted yet.
    pub(crate) waiting: Vec<Block>,
    /// Programs that were emitted.
    emitted: Vec<bool>,
    /// Where a packet ends for which too many programs would run.
    overrun: Option<Label>,
    /// Whether a program may leave a redirect target behind.
    pub(crate) redirects: bool,
    /// Where packets end with a verdict, whichever program gave it.
    pub(crate) ends: [Option<Label>; Verdict::ALL.len()],
}

/// Code of a loop that other code jumps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) label: Label,
    /// The program that it belongs to.
    pub(crate) node: usize,
    pub(crate) what: BlockKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// The program itself.
    Program,
    /// What follows it, with its result in `rax`.
    Exit,
    /// What follows a result that is known.
    KnownExit(u32),
    /// The packet's end with a verdict.
    End(Verdict),
}

impl Loop<'_> {
    /// Where another program begins.
    pub(crate) fn lead_to(&mut self, node: usize) -> Option<Label> {
        let label = self.nodes.get(node).copied()?;
        let block = Block { label, node, what: BlockKind::Program };
        if self.emitted.get(node) == Some(&false) && !self.waiting.contains(&block) {
            self.waiting.push(block);
        }
        Some(label)
    }

    /// What is emitted next: what the code before jumps to, which then has no jump, else what was found last.
    fn next_block(&mut self, jumped_to: Option<Label>) -> Option<Block> {
        let next = self.waiting.iter().position(|block| Some(block.label) == jumped_to);
        match next {
            Some(index) => Some(self.waiting.remove(index)),
            None => self.waiting.pop(),
        }
    }
}

impl<'a> Emitter<'a> {
    /// Emits a loop over the frames of a burst: `extern "C" fn(first, end, x3, host) -> frame reached`, for one frame or
    /// more. Gives where it is entered, and calls `emitted` with each program's code.
    pub(crate) fn burst(
        &mut self,
        graph: Option<&'a Graph>,
        counted: bool,
        mut emitted: impl FnMut(Piece),
    ) -> Result<Label, CompileError> {
        let counts_runs = graph.is_some_and(may_overrun);
        let plan = self.loop_plan(counted, counts_runs);
        let mut label = || self.asm.new_label();
        let (entry, top, done, lacks_cpu) = (label(), label(), label(), label());
        let nodes: Vec<Label> = self.parts.iter().map(|_| label()).collect();
        let first = Block { label: nodes[0], node: 0, what: BlockKind::Program };
        self.asm.align(ALIGNMENT, Fill::Int3);
        self.asm.bind(entry);
        let has_cpus = self.check_cpu_of_all(lacks_cpu);
        self.loop_prologue(&plan);
        self.prefetch_first(&plan);
        self.asm.align(ALIGNMENT, Fill::Nop);
        self.asm.bind(top);
        self.looped = Some(Loop {
            graph,
            counted,
            plan,
            top,
            done,
            emitted: vec![false; nodes.len()],
            nodes,
            waiting: vec![first],
            overrun: None,
            redirects: graph.is_some() && self.parts.iter().any(|part| part.any(|needs| needs.redirects)),
            ends: [None; Verdict::ALL.len()],
        });
        self.begin_packet();
        // What comes before the first program and after the last one belongs to them as far as names go.
        let mut start = entry;
        let mut next = self.next_block();
        while let Some(block) = next {
            self.block_in_loop(block)?;
            next = self.next_block();
            if next.is_some_and(|next| next.node == block.node) {
                continue;
            }
            if next.is_none() {
                self.end_loop(has_cpus.then_some(lacks_cpu));
            }
            let end = self.asm.new_label();
            self.asm.bind(end);
            emitted(Piece { node: block.node, slot: 0, burst: true, start, end });
            start = end;
        }
        (self.leave, self.one_end) = (Leave::Return, false);
        Ok(entry)
    }

    fn next_block(&mut self) -> Option<Block> {
        let jumped_to = self.asm.jump_here();
        self.looped.as_mut().and_then(|looped| looped.next_block(jumped_to))
    }

    fn block_in_loop(&mut self, block: Block) -> Result<(), CompileError> {
        self.enter_node(block.node);
        self.leave = Leave::Edge;
        self.one_end = self.has_one_end();
        self.asm.bind(block.label);
        match block.what {
            BlockKind::Program => return self.node_in_loop(block.node),
            BlockKind::Exit => self.branch_on_verdict(),
            BlockKind::KnownExit(code) => self.leave_with(code),
            BlockKind::End(verdict) => self.end_with(verdict),
        }
        Ok(())
    }

    fn loop_plan(&self, counted: bool, counts_runs: bool) -> LoopPlan {
        let mains: Vec<(&FunctionFact, Needs)> = self
            .parts
            .iter()
            .filter_map(|part| part.functions.first())
            .map(|(f, needs)| (f, *needs))
            .collect();
        let host = counted || self.parts.iter().any(|part| part.any(|needs| needs.host));
        LoopPlan::new(&mains, host, counts_runs, self.settings)
    }

    /// Jumps away if a program has per-CPU arrays that lack the host's CPU; tells whether one has any.
    fn check_cpu_of_all(&mut self, lacks_cpu: Label) -> bool {
        let Some(cpus) = self.parts.iter().filter_map(|part| part.cpus()).min() else { return false };
        let cpu = Mem::at(HOST_ARGUMENT, self.links.host.cpu);
        self.asm.alu_mi(Alu::Cmp, OpSize::Q64, cpu, i32::try_from(cpus).unwrap_or(i32::MAX));
        self.asm.jcc(Cond::Ae, lacks_cpu);
        true
    }

    fn loop_prologue(&mut self, plan: &LoopPlan) {
        for &gpr in &plan.saved {
            self.asm.push(gpr);
        }
        if plan.room != 0 {
            self.asm.alu_ri(Alu::Sub, Width::Q64, Gpr::Rsp, plan.room);
        }
        self.asm.mov_rr(Width::Q64, FRAME, FIRST);
        match plan.end {
            Place::Register(END) => {}
            Place::Register(gpr) => self.asm.mov_rr(Width::Q64, gpr, END),
            Place::Stack(mem) => self.asm.store(OpSize::Q64, mem, END),
        }
        if plan.keeps_host {
            self.asm.mov_rr(Width::Q64, HOST_KEPT, HOST_ARGUMENT);
        }
    }

    fn loop_epilogue(&mut self, plan: &LoopPlan) {
        if plan.room != 0 {
            self.asm.alu_ri(Alu::Add, Width::Q64, Gpr::Rsp, plan.room);
        }
        for &gpr in plan.saved.iter().rev() {
            self.asm.pop(gpr);
        }
    }

    /// How many packets ahead of the one that is run its first bytes are fetched; 0 for not at all.
    fn prefetch_distance(&self) -> i32 {
        match self.settings.prefetch {
            Prefetch::Ahead(packets) => i32::from(packets),
            Prefetch::Auto => {
                let touches = self.parts.iter().any(|part| part.any(|needs| needs.packet));
                let shared = 2;
                let instructions = shared + self.parts.iter().map(|part| part.instructions).sum::<usize>();
                if touches && instructions >= PREFETCH_FROM { PREFETCH_AHEAD } else { 0 }
            }
        }
    }

    /// Fetches the first packets, before the loop.
    fn prefetch_first(&mut self, plan: &LoopPlan) {
        let distance = self.prefetch_distance();
        if distance < 2 {
            return;
        }
        let (next, last) = (SCRATCH, SCRATCH_2);
        let (again, done) = (self.asm.new_label(), self.asm.new_label());
        self.asm.lea(Width::Q64, last, Mem::at(FRAME, distance * FRAME_SIZE));
        self.compare_with_end(plan, last);
        match plan.end {
            Place::Register(end) => self.asm.cmovcc(Cond::A, Width::Q64, last, end),
            // It came in there.
            Place::Stack(_) => self.asm.cmovcc(Cond::A, Width::Q64, last, END),
        }
        self.asm.mov_rr(Width::Q64, next, FRAME);
        self.asm.bind(again);
        self.asm.alu_ri(Alu::Add, Width::Q64, next, FRAME_SIZE);
        self.asm.alu_rr(Alu::Cmp, Width::Q64, next, last);
        self.asm.jcc(Cond::Ae, done);
        self.asm.load(OpSize::Q64, Gpr::Rax, Mem::at(next, Frame::OFFSET_DATA as i32));
        self.asm.prefetcht0(Mem::at(Gpr::Rax, 0));
        self.asm.jmp(again);
        self.asm.bind(done);
    }

    fn compare_with_end(&mut self, plan: &LoopPlan, gpr: Gpr) {
        match plan.end {
            Place::Register(end) => self.asm.alu_rr(Alu::Cmp, Width::Q64, gpr, end),
            Place::Stack(mem) => self.asm.alu_rm(Alu::Cmp, Width::Q64, gpr, mem),
        }
    }

    /// Fetches a packet that will be run later; the same again where the burst has none.
    fn prefetch_ahead(&mut self, plan: &LoopPlan) {
        let distance = self.prefetch_distance();
        if distance == 0 {
            return;
        }
        self.asm.lea(Width::Q64, SCRATCH, Mem::at(FRAME, distance * FRAME_SIZE));
        self.compare_with_end(plan, SCRATCH);
        self.asm.cmovcc(Cond::Ae, Width::Q64, SCRATCH, FRAME);
        self.asm.load(OpSize::Q64, SCRATCH, Mem::at(SCRATCH, Frame::OFFSET_DATA as i32));
        self.asm.prefetcht0(Mem::at(SCRATCH, 0));
    }

    /// What belongs to a packet, whichever programs run.
    fn begin_packet(&mut self) {
        let Some(looped) = &self.looped else { return self.internal("no loop over a burst is open") };
        let plan = looped.plan.clone();
        self.prefetch_ahead(&plan);
        let seen =
            |part: &ChainProgram<'_>| part.any(|needs| needs.host && (needs.calls || needs.tail_calls));
        if self.parts.iter().any(seen) {
            self.asm.store(OpSize::Q64, Mem::at(plan.host, self.links.host.frame), FRAME);
        }
        if let Some(runs_left) = plan.runs_left {
            self.asm.store_imm(OpSize::D32, runs_left, MAX_RUNS as i32);
        }
        self.load_start();
    }

    /// Emits the main function of a program.
    fn node_in_loop(&mut self, node: usize) -> Result<(), CompileError> {
        let (Some(part), Some(looped)) = (self.parts.get(node), &mut self.looped) else {
            return Err(CompileError::Internal("a node of the loop has no program"));
        };
        let (Some(&(function, _)), Some(plan)) = (part.functions.first(), looped.plan.nodes.get(node)) else {
            return Err(CompileError::Internal("a node of the loop has no plan"));
        };
        (self.function, self.plan) = (function, plan.clone());
        let (runs_left, host) = (looped.plan.runs_left, looped.plan.host);
        if let Some(place) = looped.emitted.get_mut(node) {
            *place = true;
        }
        if let Some(runs_left) = runs_left {
            let overrun = self.overrun();
            self.asm.alu_mi(Alu::Sub, OpSize::D32, runs_left, 1);
            overrun.into_iter().for_each(|overrun| self.asm.jcc(Cond::B, overrun));
        }
        self.set_up_run(host, FRAME, part.any(|needs| needs.tail_calls), part.area());
        self.prepare_stack();
        self.returns = &part.returns;
        self.body()
    }

    fn overrun(&mut self) -> Option<Label> {
        let label = self.asm.new_label();
        self.looped.as_mut().map(|looped| *looped.overrun.get_or_insert(label))
    }

    /// Goes on with the next packet, or ends.
    pub(crate) fn next_packet(&mut self) {
        let Some(looped) = &self.looped else { return self.internal("no loop over a burst is open") };
        let (plan, top, done) = (looped.plan.clone(), looped.top, looped.done);
        self.asm.alu_ri(Alu::Add, Width::Q64, FRAME, FRAME_SIZE);
        self.compare_with_end(&plan, FRAME);
        self.asm.jcc(Cond::Ne, top);
        self.asm.jmp(done);
    }

    /// Ends the burst here if a program that a tail call came to has failed.
    pub(crate) fn check_fault(&mut self) {
        let Some(looped) = &self.looped else { return };
        let (host, done) = (looped.plan.host, looped.done);
        if self.parts.get(self.node).is_some_and(|part| part.any(|needs| needs.tail_calls)) {
            self.asm.alu_mi(Alu::Cmp, OpSize::Q64, Mem::at(host, self.links.host.fault), 0);
            self.asm.jcc(Cond::Ne, done);
        }
    }

    /// Counts for the chain; the second scratch register changes, and the flags.
    pub(crate) fn count_at(&mut self, index: usize) {
        let Some(looped) = &self.looped else { return };
        if looped.counted {
            self.asm.load(OpSize::Q64, SCRATCH_2, Mem::at(looped.plan.host, self.links.host.counts));
            self.asm.inc_m(OpSize::Q64, Mem::at(SCRATCH_2, 8 * index as i32));
        }
    }

    fn end_loop(&mut self, lacks_cpu: Option<Label>) {
        if let Some(overrun) = self.looped.as_ref().and_then(|looped| looped.overrun) {
            self.asm.bind(overrun);
            self.end_overrun();
        }
        let Some(looped) = self.looped.take() else { return self.internal("no loop over a burst is open") };
        self.asm.bind(looped.done);
        self.asm.mov_rr(Width::Q64, Gpr::Rax, FRAME);
        self.loop_epilogue(&looped.plan);
        self.asm.ret();
        if let Some(lacks_cpu) = lacks_cpu {
            // The first packet is the one that cannot be run. The stack is aligned with it pushed.
            self.asm.bind(lacks_cpu);
            self.asm.push(FIRST);
            self.asm.mov_rr(Width::Q64, Gpr::Rdi, HOST_ARGUMENT);
            self.call_runtime(self.links.no_cpu);
            self.asm.pop(Gpr::Rax);
            self.asm.ret();
        }
    }
}

/// Packets ahead that are fetched, where it pays: as many as lines that a core can be waiting for.
const PREFETCH_AHEAD: i32 = 16;
/// Instructions of all programs together, what they share counted once, from which on it pays: with shorter ones the processor is at the next packets by itself
/// while it waits for one.
const PREFETCH_FROM: usize = 16;

/// Whether some way through the graph may be longer than is allowed: it has a loop, or more programs in a row.
fn may_overrun(graph: &Graph) -> bool {
    // How long ways are that lead to a node, found again and again until nothing gets longer.
    let mut longest = vec![0_u32; graph.nodes().len()];
    longest[0] = 1;
    let mut changed = true;
    while changed {
        changed = false;
        for (node, edges) in graph.nodes().iter().enumerate() {
            let here = longest[node];
            if here == 0 {
                continue;
            }
            for next in edges.iter() {
                let paceline_graph::Next::Program(to) = next else { continue };
                if longest[to] < here + 1 {
                    if here + 1 > MAX_RUNS {
                        return true;
                    }
                    longest[to] = here + 1;
                    changed = true;
                }
            }
        }
    }
    false
}
