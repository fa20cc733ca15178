//! Which functions are inlined.

use crate::ir::arena::Side;
use crate::ir::entity::{FuncId, Inst};
use crate::ir::function::{Function, Module, Terminator};
use crate::ir::op::{Address, Callee, Op};

/// Operations by which the copies of a function may make the program longer.
const GROWTH: usize = 60;

/// The functions that are inlined wherever they are called, as far as their stack has room: those that are called in one place, and those
/// that are short enough, with what is inlined in them, for the number of places.
pub(super) fn inlined(module: &Module) -> Side<FuncId, bool> {
    let mut graph = Graph::of(module);
    let mut inlined: Side<FuncId, bool> = Side::sized(module.functions.len());
    // By function: its operations, with those that are inlined in it.
    let mut sizes: Side<FuncId, usize> = Side::sized(module.functions.len());
    for id in graph.callees_first() {
        let Some(function) = module.functions.get(id) else { continue };
        let own = function.inst_count() + function.layout.len();
        let callees = graph.calls[id].iter().filter(|callee| inlined[**callee]);
        sizes[id] = callees.fold(own, |size, callee| size.saturating_add(sizes[*callee]));
        let grows = sizes[id].saturating_mul(graph.sites[id].saturating_sub(1));
        inlined[id] = graph.sites[id] > 0 && !graph.stays[id] && grows <= GROWTH;
    }
    inlined
}

/// Calls between functions.
struct Graph {
    /// The functions that each calls, once for each call.
    calls: Side<FuncId, Vec<FuncId>>,
    /// Number of calls of each.
    sites: Side<FuncId, usize>,
    /// Functions that cannot be a part of others.
    stays: Side<FuncId, bool>,
    count: usize,
}

impl Graph {
    fn of(module: &Module) -> Self {
        let count = module.functions.len();
        let (calls, sites, stays) = (Side::sized(count), Side::sized(count), Side::sized(count));
        let mut graph = Self { calls, sites, stays, count };
        for (id, function) in module.functions.iter() {
            graph.stays[id] |= Some(id) == module.main() || needs_frame(function);
            for inst in function.layout.iter().flat_map(|block| &function.block(*block).insts) {
                graph.inst(id, function, *inst);
            }
        }
        graph
    }

    fn inst(&mut self, id: FuncId, function: &Function, inst: Inst) {
        match function.inst(inst).op {
            Op::Call { callee: Callee::Function(callee), .. } => {
                self.sites[callee] += 1;
                // Nothing becomes a part of a function that prints its whole stack.
                if !function.prints {
                    self.calls[id].push(callee);
                }
                self.stays[callee] |= function.prints;
            }
            Op::Call { callee: Callee::TailCall | Callee::Program, .. } => self.stays[id] = true,
            Op::Address(Address::Function(callee)) => self.stays[callee] = true,
            _ => {}
        }
    }

    /// The functions, each behind those that it calls. One that calls itself, which the verifier refuses, stays.
    fn callees_first(&mut self) -> Vec<FuncId> {
        let mut order = Vec::with_capacity(self.count);
        let (mut begun, mut done): (Side<FuncId, bool>, Side<FuncId, bool>) = Default::default();
        for root in (0..self.count).map(crate::ir::arena::Key::new) {
            // Each with the number of its calls that were followed.
            let mut work: Vec<(FuncId, usize)> = vec![(root, 0)];
            while let Some((id, at)) = work.pop() {
                if done[id] {
                    continue;
                }
                begun[id] = true;
                match self.calls[id].get(at).copied() {
                    Some(callee) => {
                        work.push((id, at + 1));
                        match begun[callee] && !done[callee] {
                            true => self.stays[callee] = true,
                            false => work.push((callee, 0)),
                        }
                    }
                    None => {
                        done[id] = true;
                        order.push(id);
                    }
                }
            }
        }
        order
    }
}

/// Whether a function is more than its operations: helpers call it, its whole stack is printed, or its rounds are counted from its entry.
fn needs_frame(function: &Function) -> bool {
    let counts_rounds = || {
        let mut blocks = function.layout.iter().map(|block| function.block(*block));
        blocks.any(|block| matches!(block.terminator, Terminator::MayGoto(_) | Terminator::Stop))
    };
    function.is_callback || function.prints || function.entry().is_none() || counts_rounds()
}
