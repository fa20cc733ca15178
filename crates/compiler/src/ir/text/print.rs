//! Functions as text.

use std::fmt::{self, Display, Formatter};

use paceline_isa::Size;
use paceline_spec::helper::Helper;
use paceline_verifier::state::MapRef;
use paceline_verifier::{CallbackFact, KeyFact, MapFact};

use super::names::{NUMBERS, REGIONS, SIZES};
use super::renumber;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::{Function, Module, Target, Terminator};
use crate::ir::op::{ATOMICS, Address, BinaryOp, CONDITIONS, Callee, Op, RunOp};
use crate::ir::types::{Access, CallFacts, Kind, Region, Type};

/// The name of an item in a table.
fn name<T: PartialEq>(table: &[(T, &'static str)], item: &T) -> &'static str {
    table.iter().find(|(known, _)| known == item).map_or("?", |(_, name)| name)
}

const fn ty(ty: Type) -> &'static str {
    match ty {
        Type::I32 => "i32",
        Type::I64 => "i64",
    }
}

fn size(size: Size, signed: bool) -> &'static str {
    let found = SIZES.iter().find(|(known, ..)| *known == size);
    found.map_or("?", |(_, unsigned_name, signed_name)| if signed { signed_name } else { unsigned_name })
}

impl Display for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_op(f, self)
    }
}

/// Something that is written by a function.
struct Text<F>(F);

impl<F: Fn(&mut Formatter<'_>) -> fmt::Result> Display for Text<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        (self.0)(f)
    }
}

/// Items with commas between them.
fn list<T: Display>(items: &[T]) -> impl Display + '_ {
    Text(move |f: &mut Formatter<'_>| {
        items.iter().enumerate().try_for_each(|(at, item)| {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{item}")
        })
    })
}

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.functions.iter().try_for_each(|(id, function)| {
            let gap = if Some(id) == self.main() { "" } else { "\n" };
            write!(f, "{gap}{id} ")?;
            match function.value_count().max(function.block_count()) > NUMBERS {
                true => write_function(f, &renumber::compact(function)),
                false => write_function(f, function),
            }
        })
    }
}

fn write_function(f: &mut Formatter<'_>, function: &Function) -> fmt::Result {
    let arguments: Vec<String> = function.arguments.iter().map(|reg| format!("r{}", reg.number())).collect();
    write_name(f, &function.name)?;
    write!(f, " ({})", list(&arguments))?;
    if function.slot != 0 {
        write!(f, " slot {}", function.slot)?;
    }
    if function.stack != 0 {
        write!(f, " stack {}", function.stack)?;
    }
    if function.zeroed != 0 {
        write!(f, " zeroed {:#x}", function.zeroed)?;
    }
    if function.shared != 0 {
        write!(f, " shared {:#x}", function.shared)?;
    }
    if function.prints {
        f.write_str(" prints")?;
    }
    if function.is_callback {
        f.write_str(" callback")?;
    }
    writeln!(f, " {{")?;
    function.layout.iter().try_for_each(|block| write_block(f, function, *block))?;
    writeln!(f, "}}")
}

/// A name between quotes. Names of objects may have any characters; those that are not printed are replaced.
fn write_name(f: &mut Formatter<'_>, name: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in name.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c.is_control() => f.write_str("_")?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

fn write_block(f: &mut Formatter<'_>, function: &Function, block: Block) -> fmt::Result {
    let data = function.block(block);
    let param = |value: &Value| {
        let param = function.value(*value);
        let kind = if param.kind == Kind::Unknown { "" } else { name(&Kind::NAMES, &param.kind) };
        let gap = if kind.is_empty() { "" } else { " " };
        format!("{value}: {}{gap}{kind}", ty(param.ty))
    };
    let params: Vec<String> = data.params.iter().map(param).collect();
    match params.is_empty() {
        true => writeln!(f, "{block}:")?,
        false => writeln!(f, "{block}({}):", list(&params))?,
    }
    data.insts.iter().try_for_each(|inst| write_inst(f, function, *inst))?;
    write!(f, "    ")?;
    write_terminator(f, &data.terminator)?;
    write_slot(f, data.slot)
}

fn write_slot(f: &mut Formatter<'_>, slot: Option<u32>) -> fmt::Result {
    match slot {
        Some(slot) => writeln!(f, " @{slot}"),
        None => writeln!(f),
    }
}

fn write_inst(f: &mut Formatter<'_>, function: &Function, inst: Inst) -> fmt::Result {
    let data = function.inst(inst);
    f.write_str("    ")?;
    if let Some(result) = data.result {
        match function.value(result).kind {
            Kind::Unknown => write!(f, "{result} = ")?,
            kind => write!(f, "{result}: {} = ", name(&Kind::NAMES, &kind))?,
        }
    }
    write_op(f, &data.op)?;
    if matches!(data.op, Op::Call { .. }) {
        write_call_facts(f, &function.calls[inst])?;
    }
    write_slot(f, data.slot)
}

fn write_op(f: &mut Formatter<'_>, op: &Op) -> fmt::Result {
    match *op {
        Op::Const { ty: of, value } => write!(f, "const.{} {}", ty(of), of.signed(value)),
        Op::Address(Address::Map(map)) => write!(f, "map_address {map}"),
        Op::Address(Address::MapValue { map, offset }) => write!(f, "value_address {map}+{offset}"),
        Op::Address(Address::Function(function)) => {
            write!(f, "function_address {}", crate::ir::arena::Key::index(function))
        }
        Op::StackAddress { offset } => write!(f, "stack_address {offset}"),
        Op::Binary { op, ty: of, args } => {
            write!(f, "{}.{} {}", name(&BinaryOp::NAMES, &op), ty(of), list(&args))
        }
        Op::Neg { ty: of, arg } => write!(f, "neg.{} {arg}", ty(of)),
        Op::SignExtend { from, ty: of, arg } => write!(f, "sext{}.{} {arg}", 8 * from.bytes(), ty(of)),
        Op::ZeroExtend { arg } => write!(f, "zext {arg}"),
        Op::Truncate { arg } => write!(f, "trunc {arg}"),
        Op::Swap { size, ty: of, arg } => write!(f, "swap{}.{} {arg}", 8 * size.bytes(), ty(of)),
        Op::Compare { condition, ty: of, args } => {
            write!(f, "compare.{}.{} {}", name(&CONDITIONS, &condition), ty(of), list(&args))
        }
        Op::Load { size: of, signed, access, base, offset } => {
            write!(f, "load.{} {}", size(of, signed), place(&access, base, offset))?;
            write_access(f, &access)
        }
        Op::Store { size: of, access, base, offset, value } => {
            write!(f, "store.{} {}, {value}", size(of, false), place(&access, base, offset))?;
            write_access(f, &access)
        }
        Op::LoadAcquire { size: of, access, base, offset } => {
            write!(f, "load_acquire.{} {}", size(of, false), place(&access, base, offset))?;
            write_access(f, &access)
        }
        Op::StoreRelease { size: of, access, base, offset, value } => {
            write!(f, "store_release.{} {}, {value}", size(of, false), place(&access, base, offset))?;
            write_access(f, &access)
        }
        Op::Atomic { op, width, access, base, offset, value, expected } => {
            let place = place(&access, base, offset);
            write!(f, "atomic.{}.{} {place}, {value}", name(&ATOMICS, &op), ty(Type::of(width)))?;
            expected.iter().try_for_each(|expected| write!(f, ", {expected}"))?;
            write_access(f, &access)
        }
        Op::ContextLoad { size: of, signed, context, offset } => {
            write!(f, "context_load.{} {context}{offset:+}", size(of, signed))
        }
        Op::ContextStore { size: of, context, offset, value } => {
            write!(f, "context_store.{} {context}{offset:+}, {value}", size(of, false))
        }
        Op::PacketLoad { size: of, context, index, offset } => match index {
            Some(index) => write!(f, "packet_load.{} {context}, {index}{offset:+}", size(of, false)),
            None => write!(f, "packet_load.{} {context}, {offset}", size(of, false)),
        },
        Op::Run(RunOp::Begin { program, area }) => {
            write!(f, "begin {program}{}", if area { " area" } else { "" })
        }
        Op::Run(RunOp::Count { counter }) => write!(f, "count {counter}"),
        Op::Run(RunOp::Finish) => f.write_str("finish"),
        Op::Run(RunOp::Fault) => f.write_str("fault"),
        Op::Call { callee: Callee::TailCall, args } => write!(f, "tail_call({})", list(args.as_slice())),
        Op::Call { callee: Callee::Program, args } => write!(f, "run_program({})", list(args.as_slice())),
        Op::Call { callee, args } => write!(f, "call {}({})", callee_text(callee), list(args.as_slice())),
    }
}

fn callee_text(callee: Callee) -> impl Display {
    Text(move |f: &mut Formatter<'_>| match callee {
        Callee::Helper(id) => match Helper::from_imm(id) {
            Some(helper) => f.write_str(helper.name),
            None => write!(f, "helper {id}"),
        },
        Callee::Kfunc { index, module: 0 } => write!(f, "kfunc {index}"),
        Callee::Kfunc { index, module } => write!(f, "kfunc {index}:{module}"),
        Callee::Function(function) => write!(f, "{function}"),
        Callee::LookUp { map } => write!(f, "look_up {map}"),
        Callee::TailCall => f.write_str("tail_call"),
        Callee::Program => f.write_str("run_program"),
    })
}

fn map_text(map: MapRef) -> String {
    format!("{}{}", map.index, if map.inner { " inner" } else { "" })
}

fn place(access: &Access, base: Value, offset: i32) -> String {
    let region = match access.region {
        Region::MapValue(map) => format!("map_value({})", map_text(map)),
        Region::Constant(map) => format!("constant({})", map_text(map)),
        region => name(&REGIONS, &region).to_owned(),
    };
    format!("{region} {base}{offset:+}")
}

fn write_access(f: &mut Formatter<'_>, access: &Access) -> fmt::Result {
    if let Some(span) = access.span {
        write!(f, " in {}..{}", span.min, span.max)?;
    }
    access.packet_bytes.iter().try_for_each(|bytes| write!(f, " of {bytes}"))
}

fn write_call_facts(f: &mut Formatter<'_>, facts: &CallFacts) -> fmt::Result {
    match facts.map {
        Some(MapFact::Always(map)) => write!(f, " map {}", map_text(map))?,
        Some(MapFact::Different) => f.write_str(" map ?")?,
        None => {}
    }
    match facts.key {
        Some(KeyFact::Always(key)) => write!(f, " key {key}")?,
        Some(KeyFact::Different) => f.write_str(" key ?")?,
        None => {}
    }
    match facts.callback {
        Some(CallbackFact::Always(slot)) => write!(f, " callback {slot}")?,
        Some(CallbackFact::Different) => f.write_str(" callback ?")?,
        None => {}
    }
    match facts.stack_read {
        Some(read) => write!(f, " reads {}..{}", read.start, read.end),
        None => Ok(()),
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.args.is_empty() {
            true => write!(f, "{}", self.block),
            false => write!(f, "{}({})", self.block, list(&self.args)),
        }
    }
}

fn write_terminator(f: &mut Formatter<'_>, terminator: &Terminator) -> fmt::Result {
    match terminator {
        Terminator::Unset => f.write_str("unset"),
        Terminator::Jump(target) => write!(f, "jump {target}"),
        Terminator::Branch { condition, ty: of, args, targets } => {
            let condition = name(&CONDITIONS, condition);
            write!(f, "branch.{condition}.{} {}, {}", ty(*of), list(args), list(targets))
        }
        Terminator::MayGoto(targets) => write!(f, "may_goto {}", list(targets)),
        Terminator::Return(value) => write!(f, "return {value}"),
        Terminator::Stop => f.write_str("stop"),
    }
}
