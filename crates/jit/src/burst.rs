//! The loop over a burst, with the programs of a graph inlined: edges of the graph are jumps.
//!
//! The prologue runs once. A register holds the address of the packet's frame throughout, so that the verdict can be stored
//! whatever a program does to its own registers. A second one holds the end of the burst, as long as the programs leave a register
//! over. State of one packet is set up in the loop.

use paceline_frame::{Frame, Verdict};
use paceline_graph::{Graph, MAX_RUNS, Next, Node};
use paceline_verifier::FunctionFact;

use crate::chain_program::ChainProgram;
use crate::emitter::{Emitter, Leave};
use crate::entry;
use crate::error::CompileError;
use crate::plan::{FRAME, HOST_ARGUMENT, HOST_KEPT, LoopPlan, Needs, Place, SCRATCH, SCRATCH_2};
use crate::program::{ALIGNMENT, Piece};
use crate::settings::Prefetch;
use crate::x64::{Alu, Cond, Fill, Gpr, Label, Mem, OpSize, Width};

/// Argument register with the address of the first frame.
const FIRST: Gpr = Gpr::Rdi;
/// Argument register with the address past the last frame.
const END: Gpr = Gpr::Rsi;

/// Size of a frame in bytes: the stride of the loop.
pub(crate) const FRAME_SIZE: i32 = size_of::<Frame>() as i32;

/// State shared by the code of a loop.
pub(crate) struct Loop<'a> {
    /// The chain's graph; `None` for a single program, whose result is stored as the verdict.
    pub(crate) graph: Option<&'a Graph>,
    /// Whether verdicts are counted, by program.
    pub(crate) counted: bool,
    pub(crate) plan: LoopPlan,
    /// Head of the loop: the start of the next packet.
    top: Label,
    /// Exit of the loop.
    done: Label,
    /// Entries of the programs, by node.
    pub(crate) nodes: Vec<Label>,
    /// Blocks that have references and were not emitted yet.
    pub(crate) waiting: Vec<Block>,
    /// Programs that were emitted.
    emitted: Vec<bool>,
    /// Target for packets that exceed the allowed number of program runs.
    overrun: Option<Label>,
    /// Whether a program may set a redirect target.
    pub(crate) redirects: bool,
    /// Shared ends of packets by verdict, for all programs.
    pub(crate) ends: [Option<Label>; Verdict::ALL.len()],
}

/// A block of a loop: code that other code jumps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) label: Label,
    /// The program that it belongs to.
    pub(crate) node: Node,
    pub(crate) what: BlockKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// The program's main function.
    Program,
    /// The dispatch on its result, which is in `rax`.
    Exit,
    /// The exit with a known result.
    KnownExit(u32),
    /// The end of a packet with a verdict.
    End(Verdict),
}

impl Loop<'_> {
    /// The entry of another program, which is queued for emission unless it was emitted.
    pub(crate) fn lead_to(&mut self, node: Node) -> Option<Label> {
        let label = self.nodes.get(node.index()).copied()?;
        let block = Block { label, node, what: BlockKind::Program };
        if self.emitted.get(node.index()) == Some(&false) && !self.waiting.contains(&block) {
            self.waiting.push(block);
        }
        Some(label)
    }

    /// The next block to emit: the target of the preceding jump, which is then elided, or else the block queued last.
    fn next_block(&mut self, jumped_to: Option<Label>) -> Option<Block> {
        let next = self.waiting.iter().position(|block| Some(block.label) == jumped_to);
        match next {
            Some(index) => Some(self.waiting.remove(index)),
            None => self.waiting.pop(),
        }
    }
}

impl<'a> Emitter<'a> {
    /// Emits a loop over the frames of a burst: `extern "C" fn(first, end, x3, host) -> frame reached`, for one frame or more.
    /// Returns the loop's entry, and calls `emitted` with each program's code.
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
        let first = Block { label: nodes[0], node: Node::ENTRY, what: BlockKind::Program };
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
        // For symbols, code before the first and after the last program counts as theirs.
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

    /// Jumps to `lacks_cpu` if a program has per-CPU arrays without a value for the host's CPU; returns whether a program has any.
    fn check_cpu_of_all(&mut self, lacks_cpu: Label) -> bool {
        let Some(cpus) = self.parts.iter().filter_map(|part| part.cpus()).min() else { return false };
        entry::check_cpu(&mut self.asm, self.links, cpus, lacks_cpu);
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

    /// Prefetch distance in packets; 0 for no prefetch.
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

    /// Prefetches the first packets before the loop.
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
            // On entry the end is still in its argument register.
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

    /// Prefetches the packet at the prefetch distance; past the end of the burst, the current one again.
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

    /// Sets up the state of a packet that all programs share.
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
    fn node_in_loop(&mut self, node: Node) -> Result<(), CompileError> {
        let (Some(part), Some(looped)) = (self.parts.get(node.index()), &mut self.looped) else {
            return Err(CompileError::Internal("a node of the loop has no program"));
        };
        let (Some(&(function, _)), Some(plan)) =
            (part.functions.first(), looped.plan.nodes.get(node.index()))
        else {
            return Err(CompileError::Internal("a node of the loop has no plan"));
        };
        (self.function, self.plan) = (function, plan.clone());
        let (runs_left, host) = (looped.plan.runs_left, looped.plan.host);
        if let Some(place) = looped.emitted.get_mut(node.index()) {
            *place = true;
        }
        if let Some(runs_left) = runs_left {
            let overrun = self.overrun();
            self.asm.alu_mi(Alu::Sub, OpSize::D32, runs_left, 1);
            overrun.into_iter().for_each(|overrun| self.asm.jcc(Cond::B, overrun));
        }
        let tail_calls = part.any(|needs| needs.tail_calls);
        entry::set_up_run(&mut self.asm, self.links, [host, FRAME], tail_calls, part.area());
        self.prepare_stack();
        self.returns = &part.returns;
        self.body()
    }

    fn overrun(&mut self) -> Option<Label> {
        let label = self.asm.new_label();
        self.looped.as_mut().map(|looped| *looped.overrun.get_or_insert(label))
    }

    /// Advances to the next packet, or leaves the loop.
    pub(crate) fn next_packet(&mut self) {
        let Some(looped) = &self.looped else { return self.internal("no loop over a burst is open") };
        let (plan, top, done) = (looped.plan.clone(), looped.top, looped.done);
        self.asm.alu_ri(Alu::Add, Width::Q64, FRAME, FRAME_SIZE);
        self.compare_with_end(&plan, FRAME);
        self.asm.jcc(Cond::Ne, top);
        self.asm.jmp(done);
    }

    /// Leaves the loop if a program that was reached by a tail call has faulted.
    pub(crate) fn check_fault(&mut self) {
        let Some(looped) = &self.looped else { return };
        let (host, done) = (looped.plan.host, looped.done);
        if self.parts.get(self.node.index()).is_some_and(|part| part.any(|needs| needs.tail_calls)) {
            self.asm.alu_mi(Alu::Cmp, OpSize::Q64, Mem::at(host, self.links.host.fault), 0);
            self.asm.jcc(Cond::Ne, done);
        }
    }

    /// Increments a counter of the chain; clobbers the second scratch register and the flags.
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
            // The first packet is the one that cannot be run. The push also aligns the stack to 16 bytes.
            self.asm.bind(lacks_cpu);
            self.asm.push(FIRST);
            self.asm.mov_rr(Width::Q64, Gpr::Rdi, HOST_ARGUMENT);
            self.call_runtime(self.links.no_cpu);
            self.asm.pop(Gpr::Rax);
            self.asm.ret();
        }
    }
}

/// Prefetch distance of [`Prefetch::Auto`] in packets: about as many as a core has outstanding cache misses.
const PREFETCH_AHEAD: i32 = 16;
/// Minimum number of instructions of all programs together, with shared ones counted once, for which prefetching pays: with shorter
/// programs out-of-order execution reaches the next packets by itself while it waits for one.
const PREFETCH_FROM: usize = 16;

/// Whether a path through the graph may exceed the allowed number of runs: the graph has a cycle, or a long path.
pub(crate) fn may_overrun(graph: &Graph) -> bool {
    // Longest path to each node, iterated to a fixed point.
    let mut longest = vec![0_u32; graph.nodes().len()];
    longest[0] = 1;
    let mut changed = true;
    while changed {
        changed = false;
        for (node, edges) in graph.iter() {
            let here = longest[node.index()];
            if here == 0 {
                continue;
            }
            for next in edges.iter() {
                let Next::Program(to) = next else { continue };
                if longest[to.index()] < here + 1 {
                    if here + 1 > MAX_RUNS {
                        return true;
                    }
                    longest[to.index()] = here + 1;
                    changed = true;
                }
            }
        }
    }
    false
}
