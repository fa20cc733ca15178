//! The plain interpreter's machine as the one of the form's interpreter: each access and each call is an instruction that the machine
//! executes, with all its checks.

use paceline_ir::{Address, Called, Callee, Function, Interpreter, Machine, Module, RunError};
use paceline_isa::{AtomicOp, Callee as CalledBy, Imm64, Insn, Operand, Reg, Size, Width};
use paceline_spec::helper::Helper;
use paceline_vm::{FaultKind, Machine as Plain, Next};

/// Runs the main program of a module on the machine of a run that has begun, with a budget of operations.
///
/// # Errors
/// The run ended with a fault. A module that is not valid ends with [`FaultKind::LeftProgram`].
pub fn run_on(machine: &mut Plain<'_>, module: &Module, budget: u64) -> Result<u64, FaultKind> {
    let [_, args @ .., _, _, _, _, _] = machine.registers;
    let mut machine = OnPlain { plain: machine, left: None };
    Interpreter::new(module, &mut machine, budget).run(args).map_err(|error| match error {
        RunError::Fault(kind) => kind,
        RunError::Budget => FaultKind::Budget(budget),
        RunError::Invalid => FaultKind::LeftProgram,
    })
}

struct OnPlain<'a, 'b> {
    plain: &'a mut Plain<'b>,
    /// What follows the running function, which the machine has left already: a tail call or a failed legacy packet load returns from it.
    left: Option<Next>,
}

impl OnPlain<'_, '_> {
    fn at(&mut self, slot: Option<u32>) {
        self.plain.slot = slot.map_or(0, |slot| slot as usize);
    }

    /// What a helper does next.
    fn after(&mut self, next: Next) -> Called {
        match next {
            Next::CallBack(slot) => {
                let [_, args @ .., _, _, _, _, stack] = self.plain.registers;
                Called::Back { slot: slot as u32, args, stack }
            }
            _ => Called::Value(self.plain.registers[0]),
        }
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

    fn load(&mut self, address: u64, size: Size) -> Result<u64, FaultKind> {
        self.load_context(address, 0, size)
    }

    fn store(&mut self, address: u64, size: Size, value: u64) -> Result<(), FaultKind> {
        self.store_context(address, 0, size, value)
    }

    fn atomic(
        &mut self,
        op: AtomicOp,
        width: Width,
        address: u64,
        value: u64,
        expected: u64,
    ) -> Result<u64, FaultKind> {
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
            Callee::TailCall => CalledBy::Helper(Helper::TAIL_CALL),
            Callee::Function(_) => return Err(FaultKind::LeftProgram),
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
        Ok(self.after(next))
    }

    fn called_back(&mut self, result: u64) -> Result<Called, FaultKind> {
        let next = self.left.take().unwrap_or_else(|| {
            self.plain.registers[0] = result;
            self.plain.exit()
        });
        Ok(self.after(next))
    }
}
