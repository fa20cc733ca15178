//! Instructions to operations.

use paceline_isa::{
    AluOp, AtomicOp, Callee as Called, Condition, Imm64, Insn, Operand, Reg, Size, SwapOrder, Width, eval,
};
use paceline_spec::context::FieldKind;
use paceline_spec::helper::Helper;
use paceline_spec::{Counters, MapSpec};
use paceline_verifier::state::MapRef;
use paceline_verifier::{Base, FunctionFact, InsnFact};

use super::blocks::{Blocks, Flow};
use super::error::{BuildCause, BuildError};
use super::functions::Functions;
use crate::internal::Internal;
use crate::ir::arena::{Key, Side};
use crate::ir::cfg::Cfg;
use crate::ir::entity::{Block, FuncId, Value};
use crate::ir::function::{Function, Target, Terminator};
use crate::ir::op::{Address, Args, BinaryOp, Callee, Op};
use crate::ir::ssa::Variables;
use crate::ir::types::{Access, CallFacts, Kind, Region, Span, Type};

/// Variables: `r0` to `r9`. `r10` is an address.
const REGISTERS: usize = 10;

/// Builds a function whose callees are built.
pub(super) fn function(program: &Functions<'_>, range: &FunctionFact) -> Result<Function, BuildError> {
    let mut function = Function {
        name: program.name(range).to_owned(),
        slot: range.start as u32,
        stack: range.stack,
        zeroed: range.zeroed,
        shared: range.shared,
        prints: range.prints,
        is_callback: range.is_callback,
        ..Function::default()
    };
    if !program.source.is_reached(range.start) {
        // Nobody calls it: any body does.
        let entry = function.add_block();
        let zero = function.append_value(entry, Op::constant(Type::I64, 0), None);
        function.terminate(entry, Terminator::Return(zero), None);
        return Ok(function);
    }
    function.reserve(3 * (range.end - range.start));
    let blocks = Blocks::add(program.source, range, &mut function)?;
    let cfg = Cfg::of(&function);
    let variables = Variables::new(&function, REGISTERS);
    let is_main = range.start == 0;
    let given = if is_main { program.source.given } else { 5 };
    let kind = if is_main && !program.source.is_over_memory() { Kind::Context } else { Kind::Unknown };
    let entry = Entry { given, kind, params: [None; 5], zero: None };
    let mut translator =
        Translator { program, blocks, cfg, function, variables, entry, block: Block::new(0), slot: 0 };
    translator.all()?;
    let Translator { mut function, cfg, variables, mut entry, .. } = translator;
    variables.finish(&mut function, &cfg, &mut |function, variable| entry.value(function, variable));
    entry.sort(&mut function);
    function.lacks_kinds = true;
    function.fault().map_err(|what| BuildError { slot: range.start, cause: what.into() })?;
    Ok(function)
}

/// Registers at the entry of a function.
struct Entry {
    /// Number of registers, from `r1` on, that have a value.
    given: usize,
    /// The kind of pointer in these registers.
    kind: Kind,
    /// The parameters for `r1` to `r5` that were asked for.
    params: [Option<Value>; 5],
    /// The value of registers without one, which no run uses.
    zero: Option<Value>,
}

impl Entry {
    fn value(&mut self, function: &mut Function, register: usize) -> Value {
        let Some(entry) = function.entry() else {
            return function.undefined_value(Internal("a function has no block"));
        };
        if !(1..=self.given).contains(&register) {
            return self.zero(function, entry);
        }
        let (place, kind) = (&mut self.params[register - 1], self.kind);
        *place.get_or_insert_with(|| function.add_param(entry, Type::I64, kind))
    }

    fn zero(&mut self, function: &mut Function, entry: Block) -> Value {
        *self.zero.get_or_insert_with(|| {
            let inst = function.create(Op::constant(Type::I64, 0), None);
            function.block_mut(entry).insts.insert(0, inst);
            function.result(inst)
        })
    }

    /// Puts the parameters into the order of their registers.
    fn sort(&self, function: &mut Function) {
        let Some(entry) = function.entry() else { return };
        let params = Reg::ALL[1..=5].iter().zip(self.params);
        let (arguments, params) = params.filter_map(|(reg, param)| Some((*reg, param?))).unzip();
        function.arguments = arguments;
        function.block_mut(entry).params = params;
    }
}

struct Translator<'a> {
    program: &'a Functions<'a>,
    blocks: Blocks,
    cfg: Cfg,
    function: Function,
    variables: Variables,
    entry: Entry,
    /// The block that is being filled.
    block: Block,
    /// The instruction.
    slot: usize,
}

impl Translator<'_> {
    fn all(&mut self) -> Result<(), BuildError> {
        let mut starts: Side<Block, Option<usize>> = Side::sized(self.function.block_count());
        self.blocks.iter().for_each(|(slot, block)| starts[block] = Some(slot));
        let mut counted: Side<Block, Option<(usize, usize)>> = Side::sized(self.function.block_count());
        self.blocks.counted().iter().for_each(|&(block, jump, next)| counted[block] = Some((jump, next)));
        for at in 0..self.cfg.order().len() {
            let block = self.cfg.order()[at];
            if let Some((jump, next)) = counted[block] {
                self.block = block;
                self.variables.enter(&self.cfg, block);
                self.fill_counted(jump, next)?;
                continue;
            }
            let Some(slot) = starts[block] else { continue };
            self.block = block;
            self.slot = slot;
            self.variables.enter(&self.cfg, block);
            // Most blocks have no more.
            self.function.block_mut(block).insts = Vec::with_capacity(16);
            self.fill()?;
        }
        Ok(())
    }

    /// Fills a block between a jump and the next instruction.
    fn fill_counted(&mut self, jump: usize, next: usize) -> Result<(), BuildError> {
        self.slot = jump;
        self.count(self.counters().and_then(|counters| counters.fall(jump)));
        let target = self.target(next)?;
        self.function.terminate(self.block, Terminator::Jump(target), None);
        Ok(())
    }

    fn counters(&self) -> Option<&Counters> {
        self.program.source.program.counters.as_deref()
    }

    /// Adds one to the counter at an offset, if there is one.
    fn count(&mut self, counter: Option<u32>) {
        let Some((offset, counters)) = counter.zip(self.counters()) else { return };
        let (map, atomic) = (counters.map as u32, counters.atomic);
        let at = offset as i32;
        let access = Access {
            span: Some(Span { min: at, max: at }),
            ..Access::to(Region::MapValue(MapRef { index: map, inner: false }))
        };
        let base = self.emit(Op::Address(Address::MapValue { map, offset }));
        let one = self.constant(Type::I64, 1);
        let (size, width) = (Size::Dw, Width::W64);
        if atomic {
            let op = AtomicOp::Add { fetch: false };
            return self.effect(Op::Atomic {
                op,
                width,
                access,
                base,
                offset: 0,
                value: one,
                expected: None,
            });
        }
        let count = self.emit(Op::Load { size, signed: false, access, base, offset: 0 });
        let value = self.emit(Op::Binary { op: BinaryOp::Add, ty: Type::I64, args: [count, one] });
        self.effect(Op::Store { size, access, base, offset: 0, value });
    }

    /// Translates the instructions of a block.
    fn fill(&mut self) -> Result<(), BuildError> {
        let source = self.program.source;
        loop {
            let flow = self.blocks.flow(self.slot)?;
            let (Some(insn), Some(fact)) = (source.code.get(self.slot), source.known(self.slot)) else {
                return Err(self.error(BuildCause::NoFact));
            };
            self.count(self.counters().and_then(|counters| counters.start(self.slot)));
            match flow {
                Flow::Next(next) => {
                    self.insn(insn, fact)?;
                    self.count(self.counters().and_then(|counters| counters.fall(self.slot)));
                    if let Some(block) = self.blocks.at(next) {
                        self.function.terminate(self.block, Terminator::Jump(Target::to(block)), None);
                        return Ok(());
                    }
                    self.slot = next;
                }
                flow => return self.end(insn, flow),
            }
        }
    }

    /// Ends the block.
    fn end(&mut self, insn: &Insn, flow: Flow) -> Result<(), BuildError> {
        let terminator = match (flow, *insn) {
            (Flow::Jump(target), _) => {
                // A conditional jump that never jumps.
                if insn.falls_through() && insn.jump_target(self.slot) != Some(target as i64) {
                    self.count(self.counters().and_then(|counters| counters.fall(self.slot)));
                }
                Terminator::Jump(self.target(target)?)
            }
            (Flow::Branch([taken, next]), Insn::JumpIf { width, condition, dst, src, .. }) => {
                let ty = Type::of(width);
                let args = [self.read_as(dst, ty), self.operand(src, ty)];
                Terminator::Branch { condition, ty, args, targets: [self.target(taken)?, self.on(next)?] }
            }
            (Flow::MayGoto([taken, next]), _) => Terminator::MayGoto([self.target(taken)?, self.on(next)?]),
            (Flow::PacketLoad(next), Insn::LoadPacket { size, index, offset }) => {
                self.packet_load(size, index, offset, next)?
            }
            (Flow::Exit, _) => Terminator::Return(self.read(Reg::R0)),
            _ => return Err(self.error(BuildCause::Unsupported(*insn))),
        };
        self.function.terminate(self.block, terminator, Some(self.slot as u32));
        Ok(())
    }

    fn packet_load(
        &mut self,
        size: Size,
        index: Option<Reg>,
        offset: i32,
        next: usize,
    ) -> Result<Terminator, BuildError> {
        // The context is always in this register.
        let (context, index) = (self.read(Reg::R6), index.map(|reg| self.read(reg)));
        let loaded = self.emit(Op::PacketLoad { size, context, index, offset });
        let outside = self.constant(Type::I64, u64::MAX);
        self.clobber(loaded);
        // The block for a failed load, which the first target of the preliminary end is, returns 0.
        let failed = self.function.block(self.block).terminator.targets().first().map(|target| target.block);
        let Some(failed) = failed else { return Err(self.error(BuildCause::Flow(next as i64))) };
        let slot = Some(self.slot as u32);
        let zero = self.function.append_value(failed, Op::constant(Type::I64, 0), slot);
        self.function.terminate(failed, Terminator::Return(zero), slot);
        let targets = [Target::to(failed), self.on(next)?];
        Ok(Terminator::Branch { condition: Condition::Eq, ty: Type::I64, args: [loaded, outside], targets })
    }

    fn error(&self, cause: BuildCause) -> BuildError {
        BuildError { slot: self.slot, cause }
    }

    fn target(&self, slot: usize) -> Result<Target, BuildError> {
        self.blocks.at(slot).map(Target::to).ok_or(self.error(BuildCause::Flow(slot as i64)))
    }

    /// The way on to the next instruction, through its counter if it has one.
    fn on(&self, next: usize) -> Result<Target, BuildError> {
        self.blocks.counted_after(self.slot).map_or_else(|| self.target(next), |block| Ok(Target::to(block)))
    }

    /// Adds an operation with a result.
    fn emit(&mut self, op: Op) -> Value {
        self.function.append_value(self.block, op, Some(self.slot as u32))
    }

    fn effect(&mut self, op: Op) {
        self.function.append(self.block, op, Some(self.slot as u32));
    }

    fn constant(&mut self, ty: Type, value: u64) -> Value {
        self.emit(Op::constant(ty, value))
    }

    fn read(&mut self, reg: Reg) -> Value {
        if reg == Reg::R10 {
            return self.emit(Op::StackAddress { offset: 0 });
        }
        let (variable, entry) = (usize::from(reg.number()), &mut self.entry);
        let mut initial = |function: &mut Function, variable| entry.value(function, variable);
        self.variables.read(&mut self.function, self.block, variable, &mut initial)
    }

    fn write(&mut self, reg: Reg, value: Value) {
        self.variables.write(self.block, usize::from(reg.number()), value);
    }

    /// A register as a value of a type.
    fn read_as(&mut self, reg: Reg, ty: Type) -> Value {
        let value = self.read(reg);
        match ty {
            Type::I64 => value,
            Type::I32 => self.truncate(value),
        }
    }

    /// Conversions that undo each other are not added.
    fn truncate(&mut self, value: Value) -> Value {
        match self.function.op_of(value) {
            Some(Op::ZeroExtend { arg }) => *arg,
            Some(Op::Const { value, .. }) => {
                let value = *value;
                self.constant(Type::I32, value)
            }
            _ => self.emit(Op::Truncate { arg: value }),
        }
    }

    /// Assigns a value of a type to a register.
    fn write_as(&mut self, reg: Reg, ty: Type, value: Value) {
        let value = match ty {
            Type::I64 => value,
            Type::I32 => match self.function.as_const(value) {
                Some(number) => self.constant(Type::I64, number),
                None => self.emit(Op::ZeroExtend { arg: value }),
            },
        };
        self.write(reg, value);
    }

    fn operand(&mut self, operand: Operand, ty: Type) -> Value {
        match operand {
            Operand::Reg(reg) => self.read_as(reg, ty),
            Operand::Imm(imm) => self.constant(ty, imm as u64),
        }
    }

    /// After a call, `r0` has the result, and `r1` to `r5` have no values.
    fn clobber(&mut self, result: Value) {
        self.write(Reg::R0, result);
        if let Some(entry) = self.function.entry() {
            let zero = self.entry.zero(&mut self.function, entry);
            Reg::ALL[1..=5].iter().for_each(|reg| self.write(*reg, zero));
        }
    }

    fn insn(&mut self, insn: &Insn, fact: &InsnFact) -> Result<(), BuildError> {
        match *insn {
            Insn::Alu { width, op, dst, src } => self.alu(Type::of(width), op, dst, src),
            Insn::Neg { width, dst } => {
                let ty = Type::of(width);
                let arg = self.read_as(dst, ty);
                let result = self.emit(Op::Neg { ty, arg });
                self.write_as(dst, ty, result);
            }
            Insn::MovSx { width, from, dst, src } => {
                let ty = Type::of(width);
                let arg = self.read_as(src, if from == Size::W { Type::I32 } else { ty });
                let result = self.emit(Op::SignExtend { from, ty, arg });
                self.write_as(dst, ty, result);
            }
            Insn::Swap { order, size, dst } => self.swap(order, size, dst),
            Insn::LoadImm64 { dst, value } => self.immediate(insn, dst, value)?,
            Insn::Call(callee) => self.call(insn, callee, fact)?,
            Insn::Load { size, signed, dst, base, offset } => {
                let base_value = self.read(base);
                let result = match self.place(fact, offset)? {
                    Place::Context { moved, offset } => {
                        let context = self.context(base_value, moved);
                        let result = self.emit(Op::ContextLoad { size, signed, context, offset });
                        self.function.set_kind(result, self.field_kind(size, offset));
                        result
                    }
                    Place::Memory(access) => {
                        let offset = offset.into();
                        self.emit(Op::Load { size, signed, access, base: base_value, offset })
                    }
                };
                self.write(dst, result);
            }
            Insn::Store { size, base, offset, src } => {
                let (base, value) = (self.read(base), self.operand(src, Type::I64));
                match self.place(fact, offset)? {
                    Place::Context { moved, offset } => {
                        let context = self.context(base, moved);
                        self.effect(Op::ContextStore { size, context, offset, value });
                    }
                    Place::Memory(access) => {
                        self.effect(Op::Store { size, access, base, offset: offset.into(), value });
                    }
                }
            }
            Insn::Atomic { width, op, base, offset, src } => {
                self.atomic(width, op, base, offset, src, fact)?
            }
            Insn::LoadAcquire { size, dst, base, offset } => {
                let (base, access) = (self.read(base), self.memory(fact)?);
                let result = self.emit(Op::LoadAcquire { size, access, base, offset: offset.into() });
                self.write(dst, result);
            }
            Insn::StoreRelease { size, base, offset, src } => {
                let (base, access, value) = (self.read(base), self.memory(fact)?, self.read(src));
                self.effect(Op::StoreRelease { size, access, base, offset: offset.into(), value });
            }
            Insn::AddrSpaceCast { .. }
            | Insn::CallReg(_)
            | Insn::LoadPacket { .. }
            | Insn::Jump { .. }
            | Insn::JumpLong { .. }
            | Insn::JumpIf { .. }
            | Insn::MayGoto { .. }
            | Insn::Exit => return Err(self.error(BuildCause::Unsupported(*insn))),
        }
        Ok(())
    }

    fn alu(&mut self, ty: Type, op: AluOp, dst: Reg, src: Operand) {
        let Some(op) = BinaryOp::of(op) else {
            let value = self.operand(src, ty);
            return self.write_as(dst, ty, value);
        };
        let a = self.read_as(dst, ty);
        let result = match self.stack_address(op, ty, a, src) {
            Some(address) => self.emit(address),
            None => {
                let args = [a, self.operand(src, ty)];
                self.emit(Op::Binary { op, ty, args })
            }
        };
        self.write_as(dst, ty, result);
    }

    /// The sum of an address in the stack and a constant: what promotion looks for.
    fn stack_address(&self, op: BinaryOp, ty: Type, a: Value, b: Operand) -> Option<Op> {
        let (Op::StackAddress { offset }, BinaryOp::Add, Type::I64) = (*self.function.op_of(a)?, op, ty)
        else {
            return None;
        };
        let Operand::Imm(imm) = b else { return None };
        Some(Op::StackAddress { offset: offset.checked_add(imm)? })
    }

    /// On a host of the order that is asked for, the low bytes stay as they are.
    fn swap(&mut self, order: SwapOrder, size: Size, dst: Reg) {
        let reverses = eval::swap(order, Size::H, 1) != 1;
        let ty = if size == Size::Dw { Type::I64 } else { Type::I32 };
        let arg = self.read_as(dst, ty);
        let result = match size {
            _ if reverses => self.emit(Op::Swap { size, ty, arg }),
            Size::B | Size::H => {
                let mask = self.constant(ty, eval::zero_extend(size, u64::MAX));
                self.emit(Op::Binary { op: BinaryOp::And, ty, args: [arg, mask] })
            }
            Size::W | Size::Dw => arg,
        };
        self.write_as(dst, ty, result);
    }

    fn immediate(&mut self, insn: &Insn, dst: Reg, value: Imm64) -> Result<(), BuildError> {
        let map = |index: i32| u32::try_from(index).map_err(|_| self.error(BuildCause::Unsupported(*insn)));
        let op = match value {
            Imm64::Value(value) => Op::constant(Type::I64, value),
            Imm64::MapIndex(index) => Op::Address(Address::Map(map(index)?)),
            Imm64::MapValueIndex { index, offset } => {
                Op::Address(Address::MapValue { map: map(index)?, offset })
            }
            Imm64::Code { .. } => Op::Address(Address::Function(self.called(insn)?)),
            // The verifier resolves no descriptors and no variables of the kernel.
            Imm64::MapFd(_) | Imm64::MapValueFd { .. } | Imm64::Variable { .. } => {
                return Err(self.error(BuildCause::Unsupported(*insn)));
            }
        };
        let result = self.emit(op);
        self.write(dst, result);
        Ok(())
    }

    fn called(&self, insn: &Insn) -> Result<FuncId, BuildError> {
        let called = self.program.called(self.slot, insn);
        called.ok_or(self.error(BuildCause::NoFunction(insn.subprogram_target(self.slot))))
    }

    fn call(&mut self, insn: &Insn, callee: Called, fact: &InsnFact) -> Result<(), BuildError> {
        let first = |count: usize| Reg::ALL[1..=count.min(Args::MAX)].to_vec();
        let (callee, registers) = match callee {
            Called::Helper(Helper::TAIL_CALL) => (Callee::TailCall, first(3)),
            Called::Helper(id) => {
                let prototype = Helper::from_imm(id).and_then(|helper| helper.prototype);
                (Callee::Helper(id), first(prototype.map_or(Args::MAX, |prototype| prototype.args.len())))
            }
            Called::Kfunc { btf_id, module } => {
                let kfunc = self.program.source.program.kfunc(btf_id);
                let count = kfunc.map_or(Args::MAX, |kfunc| kfunc.args.len());
                (Callee::Kfunc { index: btf_id, module }, first(count))
            }
            Called::Subprogram(_) => {
                let called = self.called(insn)?;
                let arguments = self.program.arguments(called).ok_or(self.error(BuildCause::Recursion))?;
                (Callee::Function(called), arguments.to_vec())
            }
        };
        let values: Vec<Value> = registers.into_iter().map(|reg| self.read(reg)).collect();
        // There are at most five registers.
        let Some(args) = Args::new(&values) else { return Err(self.error(BuildCause::Unsupported(*insn))) };
        let inst = self.function.create(Op::Call { callee, args }, Some(self.slot as u32));
        self.function.block_mut(self.block).insts.push(inst);
        let facts = CallFacts::of(fact);
        if facts != CallFacts::default() {
            self.function.calls[inst] = facts;
        }
        let result = match (self.function.inst(inst).result, self.function.entry()) {
            (None, Some(entry)) => self.entry.zero(&mut self.function, entry),
            _ => self.function.result(inst),
        };
        self.clobber(result);
        Ok(())
    }

    fn atomic(
        &mut self,
        width: Width,
        op: AtomicOp,
        base: Reg,
        offset: i16,
        src: Reg,
        fact: &InsnFact,
    ) -> Result<(), BuildError> {
        let access = self.memory(fact)?;
        let (base, value) = (self.read(base), self.read(src));
        let expected = (op == AtomicOp::CmpXchg).then(|| self.read(Reg::R0));
        let op_made = Op::Atomic { op, width, access, base, offset: offset.into(), value, expected };
        let result = self.function.append(self.block, op_made, Some(self.slot as u32));
        if let Some(old) = result {
            self.write(if op == AtomicOp::CmpXchg { Reg::R0 } else { src }, old);
        }
        Ok(())
    }

    /// Where an access goes.
    fn place(&self, fact: &InsnFact, offset: i16) -> Result<Place, BuildError> {
        let Some(memory) = fact.memory else { return Err(self.error(BuildCause::NoFact)) };
        if memory.base != Base::Context {
            return self.memory(fact).map(Place::Memory);
        }
        let known = i32::try_from(memory.min_offset).ok().filter(|_| memory.min_offset == memory.max_offset);
        let at = known.ok_or(self.error(BuildCause::Context))?;
        Ok(Place::Context { moved: at - i32::from(offset), offset: at })
    }

    /// What a field of the context points to.
    fn field_kind(&self, size: Size, offset: i32) -> Kind {
        let kind = self.program.source.program.kind;
        let offset = u64::try_from(offset).ok();
        let field = offset.and_then(|offset| kind.context_field(offset, size.bytes() as u64, false));
        match field.map(|field| field.kind) {
            Some(FieldKind::PacketData | FieldKind::PacketMeta) => Kind::Packet,
            Some(FieldKind::PacketEnd) => Kind::PacketEnd,
            _ => Kind::Unknown,
        }
    }

    fn memory(&self, fact: &InsnFact) -> Result<Access, BuildError> {
        let access = fact.memory.as_ref().and_then(Access::of).ok_or(self.error(BuildCause::NoFact))?;
        let region = match access.region {
            Region::MapValue(map) if self.is_constant(map) => Region::Constant(map),
            region => region,
        };
        Ok(Access { region, ..access })
    }

    /// Whether neither applications nor programs can write a map, such as `.rodata`.
    fn is_constant(&self, map: MapRef) -> bool {
        let spec = usize::try_from(map.index).ok().and_then(|index| self.program.source.maps.get(index));
        !map.inner && spec.is_some_and(MapSpec::is_constant)
    }

    /// The context itself, from a pointer into it.
    fn context(&mut self, pointer: Value, moved: i32) -> Value {
        if moved == 0 {
            return pointer;
        }
        let distance = self.constant(Type::I64, i64::from(moved).cast_unsigned());
        self.emit(Op::Binary { op: BinaryOp::Sub, ty: Type::I64, args: [pointer, distance] })
    }
}

/// Where an access goes.
enum Place {
    /// A field of the context at an offset, through a pointer that was moved.
    Context {
        moved: i32,
        offset: i32,
    },
    Memory(Access),
}
