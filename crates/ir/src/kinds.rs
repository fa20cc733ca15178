//! What values point to, from what they are made of.

use paceline_spec::helper::{Helper, Return};

use crate::arena::Side;
use crate::cfg::Cfg;
use crate::entity::{Block, Value};
use crate::function::Function;
use crate::op::{Address, BinaryOp, Callee, Op};
use crate::types::Kind;

/// Sets the kinds of all values but those of the function's parameters and of fields of the context, which have theirs. A block's
/// parameter has the kind that all its arguments have: at first the arguments on back edges do not count, then kinds that they
/// contradict are withdrawn until none is.
pub(crate) fn infer(function: &mut Function, cfg: &Cfg) {
    let mut unknown: Side<Value, bool> = Side::default();
    loop {
        for &block in cfg.order() {
            block_kinds(function, cfg, block, &unknown);
        }
        let mut changed = false;
        for &block in cfg.order() {
            for position in 0..function.block(block).params.len() {
                let param = function.block(block).params[position];
                let kind = function.value(param).kind;
                if kind != Kind::Unknown
                    && Some(block) != function.entry()
                    && args(function, cfg, block, position).any(|arg| function.value(arg).kind != kind)
                {
                    (unknown[param], changed) = (true, true);
                }
            }
        }
        if !changed {
            break;
        }
    }
}

fn block_kinds(function: &mut Function, cfg: &Cfg, block: Block, unknown: &Side<Value, bool>) {
    if Some(block) != function.entry() {
        for position in 0..function.block(block).params.len() {
            let param = function.block(block).params[position];
            let kind = if unknown[param] { Kind::Unknown } else { of_param(function, cfg, block, position) };
            function.set_kind(param, kind);
        }
    }
    for at in 0..function.block(block).insts.len() {
        let data = *function.inst(function.block(block).insts[at]);
        if let Some(result) = data.result
            && !matches!(data.op, Op::ContextLoad { .. })
        {
            let kind = of_op(function, &data.op);
            function.set_kind(result, kind);
        }
    }
}

/// The arguments for a parameter on all edges.
fn args<'a>(
    function: &'a Function,
    cfg: &'a Cfg,
    block: Block,
    position: usize,
) -> impl Iterator<Item = Value> + 'a {
    cfg.edges(block).iter().filter_map(move |edge| {
        function.block(edge.from).terminator.targets().get(edge.at)?.args.get(position).copied()
    })
}

/// The kind of a parameter by its arguments on forward edges.
fn of_param(function: &Function, cfg: &Cfg, block: Block, position: usize) -> Kind {
    let before = cfg.position(block);
    let forward = cfg.edges(block).iter().filter(|edge| cfg.position(edge.from) < before);
    let args = forward.filter_map(|edge| {
        function.block(edge.from).terminator.targets().get(edge.at)?.args.get(position).copied()
    });
    args.map(|arg| function.value(arg).kind).reduce(Kind::join).unwrap_or_default()
}

fn of_op(function: &Function, op: &Op) -> Kind {
    let kind = |value: Value| function.value(value).kind;
    match *op {
        Op::StackAddress { .. } => Kind::Stack,
        Op::Address(Address::Map(_)) => Kind::Map,
        Op::Address(Address::MapValue { .. }) => Kind::MapValue,
        Op::Binary { op: BinaryOp::Add, args: [a, b], .. } => match (kind(a), kind(b)) {
            (kind, Kind::Unknown) | (Kind::Unknown, kind) => kind,
            _ => Kind::Unknown,
        },
        Op::Binary { op: BinaryOp::Sub, args: [a, b], .. } if kind(b) == Kind::Unknown => kind(a),
        Op::Call { callee: Callee::Helper(id), .. } => {
            match Helper::from_imm(id).and_then(|helper| helper.prototype).map(|prototype| prototype.returns)
            {
                Some(Return::MapValueOrNull) => Kind::MapValue,
                Some(Return::RecordOrNull | Return::DynptrMemoryOrNull) => Kind::Memory,
                _ => Kind::Unknown,
            }
        }
        _ => Kind::Unknown,
    }
}
