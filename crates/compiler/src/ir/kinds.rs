//! What values point to, from what they are made of.
//!
//! A kind holds when the value is computed. A pointer to the packet is a number as soon as a helper may have moved the packet: the
//! verifier then admits any arithmetic with it, so what is made of it later has no kind.
//!
//! Kinds are inferred once, when those functions are inlined that will be, and again where pointers on the stack were promoted.

use paceline_isa::Size;
use paceline_spec::helper::{Helper, Return};

use crate::internal::Internal;
use crate::ir::arena::{Key, Side};
use crate::ir::cfg::{Cfg, Edge};
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::Function;
use crate::ir::op::{Address, BinaryOp, Callee, Op};
use crate::ir::types::Kind;
use crate::ir::versions::{Version, Versions};

/// Sets the kinds of all values but those of the function's parameters and of fields of the context, which have theirs. A block's
/// parameter has the kind that all its arguments have: at first the arguments on back edges do not count, then kinds that they
/// contradict are withdrawn until none is.
pub(crate) fn infer(function: &mut Function, cfg: &Cfg) {
    function.lacks_kinds = false;
    let last: Vec<_> = cfg.order().iter().map(|block| [last_move(function, *block)]).collect();
    let moves = match Versions::of(cfg, &last) {
        Ok(moves) => moves,
        Err(error) => return function.fail(error),
    };
    let end = |(position, last): (u32, &[Option<Version>; 1])| match last[0] {
        Some(moved) => moved,
        None => moves.before(position)[0],
    };
    let ends = (0..).zip(&last).map(end).collect();
    let has_moves = last.iter().any(|last| last[0].is_some());
    let made_at = if has_moves { Side::sized(function.value_count()) } else { Side::default() };
    let mut kinds = Kinds { function, cfg, has_moves, moves, ends, made_at, unknown: Side::default() };
    loop {
        (0..cfg.order().len() as u32).for_each(|position| kinds.block(position));
        if !cfg.has_loops() || !kinds.withdraw() {
            break;
        }
    }
}

/// The version that an instruction makes of the packet's place, if it may move the packet.
fn moved_by(function: &Function, inst: Inst) -> Option<Version> {
    function.inst(inst).op.moves_packet().then(|| inst.index() as Version + 1)
}

fn last_move(function: &Function, block: Block) -> Option<Version> {
    function.block(block).insts.iter().rev().find_map(|inst| moved_by(function, *inst))
}

struct Kinds<'a> {
    function: &'a mut Function,
    cfg: &'a Cfg,
    /// Whether an instruction may move the packet.
    has_moves: bool,
    /// Versions of the packet's place.
    moves: Versions<1>,
    /// Those at the ends of blocks, by position.
    ends: Vec<Version>,
    /// The version with which each pointer to the packet was computed.
    made_at: Side<Value, Version>,
    /// Parameters whose kinds were withdrawn.
    unknown: Side<Value, bool>,
}

impl Kinds<'_> {
    /// The kind of a value where the packet's place has a version.
    fn at(&self, value: Value, version: Version) -> Kind {
        match self.function.value(value).kind {
            Kind::Packet | Kind::PacketEnd if self.made_at[value] != version => Kind::Unknown,
            kind => kind,
        }
    }

    fn set(&mut self, value: Value, kind: Kind, version: Version) {
        self.function.set_kind(value, kind);
        if self.has_moves && matches!(kind, Kind::Packet | Kind::PacketEnd) {
            self.made_at[value] = version;
        }
    }

    fn block(&mut self, position: u32) {
        let block = self.cfg.order()[position as usize];
        let mut version = self.moves.before(position)[0];
        for at in 0..self.function.block(block).params.len() {
            let param = self.function.block(block).params[at];
            let kind = match self.function.entry() == Some(block) {
                true => self.function.value(param).kind,
                false if self.unknown[param] => Kind::Unknown,
                false => self.of_param(block, at),
            };
            self.set(param, kind, version);
        }
        let insts = std::mem::take(&mut self.function.block_mut(block).insts);
        for &inst in &insts {
            if self.has_moves
                && let Some(moved) = moved_by(self.function, inst)
            {
                version = moved;
            }
            let data = self.function.inst(inst);
            let Some(result) = data.result else { continue };
            let kind = match &data.op {
                Op::ContextLoad { .. } => self.function.value(result).kind,
                op if may_be_pointer(op) => self.of_op(op, version),
                // Most of them are no pointers already.
                _ if self.function.value(result).kind == Kind::Unknown => continue,
                _ => Kind::Unknown,
            };
            self.set(result, kind, version);
        }
        self.function.block_mut(block).insts = insts;
    }

    /// Withdraws the kinds of parameters that an argument does not have. Returns whether there were any.
    fn withdraw(&mut self) -> bool {
        let mut withdrawn = false;
        for (position, &block) in (0..).zip(self.cfg.order()).skip(1) {
            // All arguments on forward edges have been looked at.
            if self.cfg.predecessors(position).iter().all(|from| *from < position) {
                continue;
            }
            for (at, &param) in self.function.block(block).params.iter().enumerate() {
                let kind = self.function.value(param).kind;
                let contradicts = |edge: &Edge| self.of_arg(edge, at) != kind;
                if kind != Kind::Unknown && self.cfg.edges(block).iter().any(contradicts) {
                    (self.unknown[param], withdrawn) = (true, true);
                }
            }
        }
        withdrawn
    }

    /// The kind of the argument for a parameter on an edge.
    fn of_arg(&self, edge: &Edge, at: usize) -> Kind {
        let arg = self.function.block(edge.from).terminator.targets()[edge.at].args[at];
        match self.cfg.position(edge.from) {
            Some(from) => self.at(arg, self.ends[from as usize]),
            None => {
                self.function.fail(Internal("an edge is from a block that is not reached"));
                Kind::Unknown
            }
        }
    }

    /// The kind of a parameter by its arguments on forward edges.
    fn of_param(&self, block: Block, at: usize) -> Kind {
        let before = self.cfg.position(block);
        let forward = self.cfg.edges(block).iter().filter(|edge| self.cfg.position(edge.from) < before);
        // default: what has no argument on a forward edge is of an unknown kind, with which nothing is assumed.
        forward.map(|edge| self.of_arg(edge, at)).reduce(Kind::join).unwrap_or_default()
    }

    fn of_op(&self, op: &Op, version: Version) -> Kind {
        let kind = |value: Value| self.at(value, version);
        match *op {
            Op::StackAddress { .. } => Kind::Stack,
            Op::Address(Address::Map(_)) => Kind::Map,
            Op::Address(Address::MapValue { .. }) => Kind::MapValue,
            // The verifier admits no sum of two pointers, but of one and a value of a map that is null.
            Op::Binary { op: BinaryOp::Add, args: [a, b], .. } => match (kind(a), kind(b)) {
                (Kind::MapValue, Kind::Unknown) if !is_number(self.function, b) => Kind::Unknown,
                (Kind::Unknown, Kind::MapValue) if !is_number(self.function, a) => Kind::Unknown,
                (kind, Kind::Unknown) | (Kind::Unknown, kind) => kind,
                _ => Kind::Unknown,
            },
            // The difference of two pointers is a number, and what has no kind may be a pointer.
            Op::Binary { op: BinaryOp::Sub, args: [a, b], .. } if is_number(self.function, b) => kind(a),
            Op::Call { callee: Callee::LookUp { .. }, .. } => Kind::MapValue,
            Op::Call { callee: Callee::Helper(id), .. } => {
                let prototype = Helper::from_imm(id).and_then(|helper| helper.prototype);
                match prototype.map(|prototype| prototype.returns) {
                    Some(Return::MapValueOrNull) => Kind::MapValue,
                    Some(Return::RecordOrNull | Return::DynptrMemoryOrNull) => Kind::Memory,
                    _ => Kind::Unknown,
                }
            }
            _ => Kind::Unknown,
        }
    }
}

/// Whether the result of an operation may have a kind, fields of the context aside.
const fn may_be_pointer(op: &Op) -> bool {
    match op {
        Op::Binary { op, .. } => matches!(op, BinaryOp::Add | BinaryOp::Sub),
        Op::StackAddress { .. } | Op::Address(_) | Op::Call { .. } => true,
        _ => false,
    }
}

/// Whether a value is no pointer, whatever its operands are.
fn is_number(function: &Function, value: Value) -> bool {
    match function.op_of(value) {
        Some(Op::Const { .. } | Op::ZeroExtend { .. } | Op::SignExtend { .. } | Op::Swap { .. }) => true,
        Some(Op::Load { size, .. }) => *size != Size::Dw,
        Some(Op::Binary { op, .. }) => !matches!(op, BinaryOp::Add | BinaryOp::Sub),
        _ => false,
    }
}
