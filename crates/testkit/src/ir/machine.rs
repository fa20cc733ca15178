//! The plain interpreter's machine as the one of the form's interpreter: each access and each call is an instruction that the machine
//! executes, with all its checks.

use paceline_compiler::ir::{
    Access, Address, Called, Callee, Function, Interpreter, Kind, Machine, Module, Region, RunError,
    STACK_BYTES,
};
use paceline_engine::{FaultKind, Machine as Plain, Next};
use paceline_isa::{AtomicOp, Callee as CalledBy, Imm64, Insn, Operand, Reg, Size, Width};
use paceline_spec::context::FieldKind;
use paceline_spec::helper::Helper;

/// Runs the main program of a module on the machine of a run that has begun, with a budget of operations.
///
/// # Errors
/// The run ended with a fault. A module that is not valid ends with [`FaultKind::LeftProgram`].
pub fn run_on(machine: &mut Plain<'_>, module: &Module, budget: u64) -> Result<u64, FaultKind> {
    let [_, args @ .., _, _, _, _, _] = machine.registers;
    let (context, first_stack) = (args[0], machine.registers[10]);
    let mut machine = OnPlain { plain: machine, module, left: None, context, first_stack };
    Interpreter::new(module, &mut machine, budget).run(args).map_err(|error| match error {
        RunError::Fault(kind) => kind,
        RunError::Budget => FaultKind::Budget(budget),
        RunError::Invalid | RunError::Untrue(_) => FaultKind::LeftProgram,
    })
}

/// Content of words of the stack that need not be zero.
const POISON: u64 = 0xa5a5_a5a5_a5a5_a5a5;

struct OnPlain<'a, 'b> {
    plain: &'a mut Plain<'b>,
    module: &'a Module,
    /// What follows the running function, which the machine has left already: a tail call or a failed legacy packet load returns from it.
    left: Option<Next>,
    /// Address of the context, and of the end of the first function's stack.
    context: u64,
    first_stack: u64,
}

/// Where the packet is.
struct Packet {
    /// Its metadata, which ends where it begins.
    meta: u64,
    data: u64,
    end: u64,
}

impl OnPlain<'_, '_> {
    /// Where the packet is, if the context says so.
    fn packet(&mut self) -> Result<Option<Packet>, FaultKind> {
        let kind = self.plain.image.spec.kind;
        let is = |offset: &u64, wanted: FieldKind| {
            kind.context_field(*offset, 4, false).is_some_and(|field| field.kind == wanted)
        };
        let size = u64::from(kind.context().size);
        let mut field = |wanted: FieldKind| {
            let offset = (0..size).step_by(4).find(|offset| is(offset, wanted));
            let load = |offset: u64| self.load_context(self.context, offset as i32, Size::W);
            offset.map(load).transpose()
        };
        let (data, end) = (field(FieldKind::PacketData)?, field(FieldKind::PacketEnd)?);
        let meta = field(FieldKind::PacketMeta)?.or(data);
        Ok(data.zip(end).zip(meta).map(|((data, end), meta)| Packet { meta, data, end }))
    }

    /// Demands that what is known of an access is true, as far as the machine's memory can be told apart.
    fn demand(&mut self, address: u64, size: Size, access: &Access) -> Result<(), FaultKind> {
        let stack = self.plain.registers[10];
        let (own, last) = (stack - STACK_BYTES as u64..stack, address + size.bytes() as u64 - 1);
        let is_own = own.contains(&address) && own.contains(&last);
        let is_caller = address >= stack && last < self.first_stack;
        let in_span = |start: u64| {
            let offset = address.wrapping_sub(start).cast_signed();
            access.span.is_none_or(|span| (i64::from(span.min)..=i64::from(span.max)).contains(&offset))
        };
        let is_true = match access.region {
            Region::Stack => is_own && in_span(stack),
            Region::CallerStack => is_caller,
            Region::Packet => self.packet()?.is_none_or(|Packet { meta, data, end }| {
                let is_exact = access.span.is_some_and(|span| span.min == span.max);
                let proven = access.packet_bytes.filter(|_| is_exact);
                let is_proven = |start: u64| proven.is_none_or(|bytes| start + u64::from(bytes) <= end);
                let inside = meta <= address && last < end;
                inside && [meta, data].iter().any(|start| in_span(*start) && is_proven(*start))
            }),
            Region::MapValue(_) | Region::SomeMapValue | Region::Constant(_) => !is_own && !is_caller,
            // An iterator's element may be in the iterator, which is on the function's stack.
            Region::Memory | Region::Mixed => true,
        };
        if is_true { Ok(()) } else { Err(FaultKind::LeftProgram) }
    }

    /// Fills the words of the stack that a function does not need to be zero.
    fn poison(&mut self, function: &Function) -> Result<(), FaultKind> {
        let saved = self.plain.registers;
        let words =
            (0..u64::from(function.stack.div_ceil(8))).filter(|word| function.zeroed >> word & 1 == 0);
        for word in words {
            let address = self.plain.registers[10] - 8 * (word + 1);
            self.store_context(address, 0, Size::Dw, POISON)?;
        }
        self.plain.registers = saved;
        Ok(())
    }

    fn at(&mut self, slot: Option<u32>) {
        self.plain.slot = slot.map_or(0, |slot| slot as usize);
    }

    /// What a helper does next.
    fn after(&mut self, next: Next) -> Result<Called, FaultKind> {
        Ok(match next {
            Next::CallBack(slot) => {
                let called = self.module.at_slot(slot as u32).and_then(|id| self.module.functions.get(id));
                self.poison(called.ok_or(FaultKind::LeftProgram)?)?;
                let [_, args @ .., _, _, _, _, stack] = self.plain.registers;
                Called::Back { slot: slot as u32, args, stack }
            }
            _ => Called::Value(self.plain.registers[0]),
        })
    }
}

impl Machine for OnPlain<'_, '_> {
    type Fault = FaultKind;

    fn enter(&mut self, function: &Function, caller: Option<u32>) -> Result<u64, FaultKind> {
        if caller.is_some() {
            self.at(caller);
            let distance = i64::from(function.slot) - self.plain.slot as i64 - 1;
            self.plain.execute(Insn::Call(CalledBy::Subprogram(distance as i32)))?;
        }
        self.poison(function)?;
        Ok(self.plain.registers[10])
    }

    fn leave(&mut self, result: u64) {
        if self.left.take().is_none() {
            self.plain.registers[0] = result;
            self.plain.exit();
        }
    }

    fn address(&mut self, module: &Module, address: Address) -> Result<u64, FaultKind> {
        let value = match address {
            Address::Map(map) => Imm64::MapIndex(map as i32),
            Address::MapValue { map, offset } => Imm64::MapValueIndex { index: map as i32, offset },
            Address::Function(id) => {
                let function = module.functions.get(id).ok_or(FaultKind::LeftProgram)?;
                return Ok(function.slot.into());
            }
        };
        self.plain.execute(Insn::LoadImm64 { dst: Reg::R0, value })?;
        Ok(self.plain.registers[0])
    }

    fn may_be(&mut self, kind: Kind, address: u64) -> Result<bool, FaultKind> {
        // Pointers may be outside of what they point into, by what the verifier admits.
        const FAR: u64 = 1 << 30;
        Ok(match kind {
            Kind::Unknown | Kind::Memory => true,
            // The frames that are in use.
            Kind::Map | Kind::MapValue => {
                let lowest = self.plain.registers[10] - STACK_BYTES as u64;
                !(lowest..=self.first_stack).contains(&address)
            }
            Kind::Context => address.abs_diff(self.context) < FAR,
            Kind::Stack | Kind::CallerStack => address.abs_diff(self.plain.registers[10]) < FAR,
            Kind::Packet => {
                let packet = self.packet()?;
                packet.is_none_or(|packet| address.abs_diff(packet.data) < FAR)
            }
            Kind::PacketEnd => self.packet()?.is_none_or(|packet| address == packet.end),
        })
    }

    fn load(&mut self, address: u64, size: Size, access: &Access) -> Result<u64, FaultKind> {
        self.demand(address, size, access)?;
        self.load_context(address, 0, size)
    }

    fn store(&mut self, address: u64, size: Size, access: &Access, value: u64) -> Result<(), FaultKind> {
        self.demand(address, size, access)?;
        self.store_context(address, 0, size, value)
    }

    fn atomic(
        &mut self,
        op: AtomicOp,
        width: Width,
        address: u64,
        access: &Access,
        [value, expected]: [u64; 2],
    ) -> Result<u64, FaultKind> {
        self.demand(address, if width == Width::W32 { Size::W } else { Size::Dw }, access)?;
        self.plain.registers[..3].copy_from_slice(&[expected, address, value]);
        let insn = Insn::Atomic { width, op, base: Reg::R1, offset: 0, src: Reg::R2 };
        self.plain.execute(insn)?;
        let receiver = insn.writes().iter().next().unwrap_or(Reg::R0);
        Ok(self.plain.registers[usize::from(receiver.number())])
    }

    fn load_context(&mut self, context: u64, offset: i32, size: Size) -> Result<u64, FaultKind> {
        self.plain.registers[1] = context;
        let (dst, base, offset) = (Reg::R0, Reg::R1, offset as i16);
        self.plain.execute(Insn::Load { size, signed: false, dst, base, offset })?;
        Ok(self.plain.registers[0])
    }

    fn store_context(&mut self, context: u64, offset: i32, size: Size, value: u64) -> Result<(), FaultKind> {
        self.plain.registers[1..3].copy_from_slice(&[context, value]);
        let (base, src, offset) = (Reg::R1, Operand::Reg(Reg::R2), offset as i16);
        self.plain.execute(Insn::Store { size, base, offset, src }).map(drop)
    }

    fn load_packet(&mut self, at: i64, size: Size) -> Result<Option<u64>, FaultKind> {
        // What lies beyond 32 bits lies outside, as negative offsets do.
        let offset = i32::try_from(at).unwrap_or(-1);
        Ok(match self.plain.execute(Insn::LoadPacket { size, index: None, offset })? {
            Next::Follow => Some(self.plain.registers[0]),
            next => {
                self.left = Some(next);
                None
            }
        })
    }

    fn may_goto(&mut self) -> Result<bool, FaultKind> {
        self.plain.execute(Insn::MayGoto { offset: 0 }).map(|next| matches!(next, Next::Jump(_)))
    }

    fn call(&mut self, callee: Callee, args: [u64; 5], slot: Option<u32>) -> Result<Called, FaultKind> {
        self.at(slot);
        self.plain.registers[1..6].copy_from_slice(&args);
        let callee = match callee {
            Callee::Helper(id) => CalledBy::Helper(id),
            Callee::Kfunc { index, module } => CalledBy::Kfunc { btf_id: index, module },
            Callee::TailCall | Callee::Program => CalledBy::Helper(Helper::TAIL_CALL),
            Callee::Function(_) | Callee::LookUp { .. } => return Err(FaultKind::LeftProgram),
        };
        let next = self.plain.execute(Insn::Call(callee))?;
        if callee == CalledBy::Helper(Helper::TAIL_CALL) && !matches!(next, Next::Follow) {
            let result = match next {
                Next::Exit(result) => result,
                _ => self.plain.registers[0],
            };
            self.left = Some(next);
            return Ok(Called::Return(result));
        }
        self.after(next)
    }

    fn called_back(&mut self, result: u64) -> Result<Called, FaultKind> {
        let next = self.left.take().unwrap_or_else(|| {
            self.plain.registers[0] = result;
            self.plain.exit()
        });
        self.after(next)
    }
}
