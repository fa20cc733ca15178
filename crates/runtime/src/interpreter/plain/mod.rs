//! The plain interpreter: one `match`, every access checked against the memory the program may touch, and a budget.
//!
//! It is the oracle of the other engines and the safe engine for programs that no verifier has seen, so it is
//! written to be read. Results that are unspecified in the kernel are defined: a stack frame is zero when its function
//! is entered.
//!
//! A violation is a `Fault` with the slot and the region that the address is near. An observer sees the machine before each
//! instruction and may invert a conditional jump; inverted runs are safe because every access is checked, and bounded. A tail call
//! of an observed run interprets the called image whatever its engine.

mod call;
mod context;
mod rounds;
mod timer;

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::fault::{Fault, FaultKind};
use crate::helpers::release_held;
use crate::host::Host;
use crate::memory;
use crate::region::{Access, CONTEXT_ADDRESS, Regions};
use crate::rounds::calls_back;
use crate::stack::STACK_FRAME;
use paceline_isa::{AtomicOp, Callee, Imm64, Insn, Operand, Reg, Size, Width, eval};
use paceline_maps::{Map, RingBuffer};
use paceline_spec::helper::Helper;
use paceline_spec::{Counters, MAX_LOOPS};

use crate::interpreter::callers::Caller;
use crate::interpreter::entry::Interpreter;
use crate::interpreter::image::Exit;
use crate::interpreter::image::Image;
use crate::interpreter::observe::{Observed, Observer, Steer};

/// The state of a run.
pub struct Machine<'a> {
    /// The program.
    pub image: &'a Image,
    /// `r0` to `r10`.
    pub registers: [u64; 11],
    /// Slot of the instruction that is executed.
    pub slot: usize,
    callers: Vec<Caller>,
    /// Remaining iterations of the running function's `may_goto`.
    rounds_left: u32,
    stack_top: u64,
    regions: Regions,
    /// Addresses of the ring buffer records that the program holds. The machine discards those that the program does not
    /// commit: a ring's reader waits for each.
    records: Vec<NonNull<u8>>,
    /// Sees each instruction, also those of programs that are tail called.
    observer: Option<&'a mut Observer<'a>>,
    /// The host of the run.
    pub host: &'a mut Host,
}

impl std::fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").finish_non_exhaustive()
    }
}

/// Target of an allowed memory access.
#[derive(Debug)]
pub enum Place {
    /// Memory at an address.
    Memory(u64),
    /// A field of the context, with the value that is loaded or was stored.
    Value(u64),
}

/// Successor of an instruction.
#[derive(Debug)]
pub enum Next {
    /// The next instruction.
    Follow,
    /// The instruction at a slot.
    Jump(usize),
    /// The first instruction of a function that a helper calls.
    CallBack(usize),
    /// The end of the program, with `r0`.
    Exit(u64),
}

/// The plain interpreter.
#[derive(Debug)]
pub struct Plain;

impl Interpreter for Plain {
    type Code<'a> = &'a Image;

    fn code(image: &Image) -> Option<&Image> {
        Some(image)
    }

    unsafe fn run(image: &Image, _: u64, host: &mut Host) -> u64 {
        // SAFETY: that the host runs the frame is guaranteed by the caller.
        match unsafe { run_packet(image, host, None) } {
            Ok(exit) => exit.r0,
            Err(fault) => host.fail(fault),
        }
    }
}

/// Runs a program over the packet that the host runs; the observer, if any, looks at the machine before each instruction.
///
/// # Safety
/// The host must run a packet ([`Host::begin`]).
pub unsafe fn run_packet<'a>(
    image: &'a Image,
    host: &'a mut Host,
    observer: Option<&'a mut Observer<'a>>,
) -> Result<Exit, Box<Fault>> {
    // SAFETY: the host is guaranteed by the caller.
    let mut machine = unsafe { Machine::on_packet(image, host) };
    machine.observer = observer;
    run(&mut machine)
}

/// Runs a program over plain memory: `r1` is its address, or 0 if it is empty, and `r2` its length.
///
/// # Safety
/// Nothing else may use the memory during the call.
pub unsafe fn run_memory(image: &Image, memory: Range<u64>, host: &mut Host) -> Result<Exit, Box<Fault>> {
    let start = if memory.is_empty() { 0 } else { memory.start };
    host.run.leave_packet();
    // SAFETY: the memory is guaranteed by the caller.
    run(&mut unsafe { Machine::on_memory(image, [start, memory.end - memory.start], memory, host) })
}

/// Runs the function that starts at a slot for an element of a map, with its arguments, one of which is the address of a key.
///
/// # Safety
/// The host must run a packet, and the key exist during the call.
pub(crate) unsafe fn run_function(
    image: &Image,
    slot: usize,
    arguments: [u64; 5],
    key: Range<u64>,
    map: Arc<Map>,
    host: &mut Host,
) -> Result<(), Box<Fault>> {
    // SAFETY: the host is guaranteed by the caller; there is no memory.
    let mut machine = unsafe { Machine::on_memory(image, [0, 0], 0..0, host) };
    machine.slot = slot;
    machine.registers[1..6].copy_from_slice(&arguments);
    machine.regions.keys.push(key);
    // The map may be an inner map.
    machine.regions.inner_maps.push(map);
    run(&mut machine).map(drop)
}

fn run(machine: &mut Machine<'_>) -> Result<Exit, Box<Fault>> {
    // Other runs have a loop without checks for an observer and counters: with them a packet takes half as long again.
    match machine.observer.is_some() || machine.image.spec.counters.is_some() {
        false => run_to_end::<false>(machine),
        true => run_to_end::<true>(machine),
    }
}

fn run_to_end<const OBSERVED: bool>(machine: &mut Machine<'_>) -> Result<Exit, Box<Fault>> {
    let image = machine.image;
    let mut instructions = 0;
    loop {
        let slot = machine.slot;
        let fault = |kind| Box::new(Fault { slot, kind, tail_called: None });
        if instructions == image.budget {
            return Err(fault(FaultKind::Budget(image.budget)));
        }
        instructions += 1;
        let insn = *image.code.get(slot).ok_or_else(|| fault(FaultKind::LeftProgram))?;
        if OBSERVED {
            machine.count(|counters| counters.start(slot))?;
        }
        let steer = if OBSERVED { machine.observe() } else { Steer::Follow };
        let next = match steer {
            Steer::Follow => machine.execute(insn),
            Steer::Invert => machine.execute_inverted(insn),
            Steer::Stop => Err(FaultKind::Budget(instructions)),
        };
        match next {
            Ok(Next::Follow) => {
                if OBSERVED {
                    machine.count(|counters| counters.fall(slot))?;
                }
                machine.slot = slot + insn.slots();
            }
            Ok(Next::Jump(target) | Next::CallBack(target)) => machine.slot = target,
            Ok(Next::Exit(r0)) => return Ok(Exit { r0, instructions }),
            // A tail called program has stored its fault already.
            Err(kind) => return Err(machine.host.run.fault.take().unwrap_or_else(|| fault(kind))),
        }
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        // SAFETY: the lock is in a value of one of the image's maps.
        unsafe { release_held(self.host) }
        for &(kind, object) in &self.regions.objects {
            if !kind.is_socket() {
                self.host.held.drop_connection(object);
            }
        }
        for &record in &self.records {
            // SAFETY: the program has it, of one of its maps or of those that it found, which live as long as the regions.
            unsafe { RingBuffer::commit(record, true, 0) };
        }
    }
}

impl<'a> Machine<'a> {
    /// A machine at the start of a program over the packet that the host runs.
    ///
    /// # Safety
    /// The host must run a packet as long as the machine exists.
    pub unsafe fn on_packet(image: &'a Image, host: &'a mut Host) -> Self {
        let context = CONTEXT_ADDRESS..CONTEXT_ADDRESS + u64::from(image.spec.kind.context().size);
        // SAFETY: the host is guaranteed by the caller.
        unsafe { Self::new(image, [CONTEXT_ADDRESS, 0], context, 0..0, host) }
    }

    /// A machine at the start of a program without a packet, with the first two arguments and the memory of the caller.
    ///
    /// # Safety
    /// The host must run a packet or none, and nothing else use the memory, as long as the machine exists.
    pub unsafe fn on_memory(
        image: &'a Image,
        arguments: [u64; 2],
        memory: Range<u64>,
        host: &'a mut Host,
    ) -> Self {
        // SAFETY: both are guaranteed by the caller.
        unsafe { Self::new(image, arguments, 0..0, memory, host) }
    }

    /// # Safety
    /// As for [`on_packet`](Self::on_packet) and [`on_memory`](Self::on_memory).
    #[inline]
    unsafe fn new(
        image: &'a Image,
        arguments: [u64; 2],
        context: Range<u64>,
        memory: Range<u64>,
        host: &'a mut Host,
    ) -> Self {
        let mut registers = [0; 11];
        registers[1..3].copy_from_slice(&arguments);
        let stack_top = host.stack.top() - (host.run.depth() * STACK_FRAME) as u64;
        // SAFETY: frame and memory are guaranteed by the caller.
        let regions = unsafe { Regions::new(host.frame(), context, memory, stack_top, image.maps.clone()) };
        let (callers, rounds_left, records) = (Vec::new(), MAX_LOOPS, Vec::new());
        let observer = None;
        let mut machine = Machine {
            image,
            registers,
            slot: 0,
            callers,
            rounds_left,
            stack_top,
            regions,
            records,
            observer,
            host,
        };
        machine.enter_frame();
        machine
    }
}

impl Machine<'_> {
    /// Adds one to a counter of the program, unless the run is a rehearsal.
    fn count(&self, counter: impl FnOnce(&Counters) -> Option<u32>) -> Result<(), Box<Fault>> {
        let Some(counters) = self.image.spec.counters.as_deref().filter(|_| !self.host.receivers.rehearses())
        else {
            return Ok(());
        };
        let Some(offset) = counter(counters) else { return Ok(()) };
        let map = self.image.maps.get(counters.map);
        let value = map.and_then(|map| map.for_programs().direct_value(offset).ok());
        let lacks = || Box::new(Fault { slot: self.slot, kind: FaultKind::LeftProgram, tail_called: None });
        let address = value.ok_or_else(lacks)?.as_ptr() as u64;
        // SAFETY: the image keeps the map; the offset is in its value, and a multiple of eight.
        unsafe { memory::atomic(address, Width::W64, AtomicOp::Add { fetch: false }, 1, 0) };
        Ok(())
    }

    /// Shows the machine to the observer.
    fn observe(&mut self) -> Steer {
        let Some(observer) = self.observer.as_mut() else { return Steer::Follow };
        observer(&Observed {
            image: self.image,
            slot: self.slot,
            registers: &self.registers,
            callers: &self.callers,
            regions: &self.regions,
            host: &*self.host,
        })
    }

    /// Executes an instruction, a conditional jump to its other side.
    fn execute_inverted(&mut self, insn: Insn) -> Result<Next, FaultKind> {
        let Insn::JumpIf { width, condition, dst, src, .. } = insn else { return self.execute(insn) };
        match eval::compare(width, condition, self.get(dst), self.operand(src)) {
            true => Ok(Next::Follow),
            false => self.jump(insn.jump_target(self.slot)),
        }
    }

    fn get(&self, reg: Reg) -> u64 {
        self.registers[usize::from(reg.number())]
    }

    fn set(&mut self, reg: Reg, value: u64) {
        self.registers[usize::from(reg.number())] = value;
    }

    fn operand(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Reg(reg) => self.get(reg),
            Operand::Imm(imm) => imm as u64,
        }
    }

    /// Executes an instruction.
    ///
    /// # Errors
    /// The fault that ends the run.
    pub fn execute(&mut self, insn: Insn) -> Result<Next, FaultKind> {
        match insn {
            Insn::Alu { width, op, dst, src } => {
                self.set(dst, eval::alu(width, op, self.get(dst), self.operand(src)));
            }
            Insn::Neg { width, dst } => self.set(dst, eval::neg(width, self.get(dst))),
            Insn::MovSx { width, from, dst, src } => {
                self.set(dst, eval::truncate(width, eval::sign_extend(from, self.get(src))));
            }
            Insn::Swap { order, size, dst } => self.set(dst, eval::swap(order, size, self.get(dst))),
            Insn::Load { size, signed, dst, base, offset } => {
                let value = self.load(base, offset, size)?;
                self.set(dst, if signed { eval::sign_extend(size, value) } else { value });
            }
            Insn::LoadAcquire { size, dst, base, offset } => {
                self.align(base, offset, size)?;
                let value = self.load(base, offset, size)?;
                fence(Ordering::Acquire);
                self.set(dst, value);
            }
            Insn::Store { size, base, offset, src } => self.store(base, offset, size, self.operand(src))?,
            Insn::StoreRelease { size, base, offset, src } => {
                self.align(base, offset, size)?;
                fence(Ordering::Release);
                self.store(base, offset, size, self.get(src))?;
            }
            Insn::Atomic { width, op, base, offset, src } => {
                let old = self.atomic(width, op, base, offset, src)?;
                if let Some(receiver) = insn.writes().iter().next() {
                    self.set(receiver, old);
                }
            }
            Insn::LoadImm64 { dst, value } => self.set(dst, self.imm64(value)?),
            Insn::LoadPacket { size, index, offset } => {
                let index = index.map_or(0, |reg| self.get(reg) as u32);
                match self.load_packet(i64::from(index as i32) + i64::from(offset), size) {
                    Some(value) => self.set(Reg::R0, value),
                    // A failed load returns from the function, as in the kernel.
                    None => {
                        self.set(Reg::R0, 0);
                        return Ok(self.exit());
                    }
                }
            }
            Insn::Jump { .. } | Insn::JumpLong { .. } => return self.jump(insn.jump_target(self.slot)),
            Insn::JumpIf { width, condition, dst, src, .. } => {
                if eval::compare(width, condition, self.get(dst), self.operand(src)) {
                    return self.jump(insn.jump_target(self.slot));
                }
            }
            Insn::Call(Callee::Subprogram(_)) => return self.call_subprogram(insn),
            Insn::Call(Callee::Helper(Helper::TAIL_CALL)) => return self.tail_call(),
            Insn::Call(Callee::Helper(id)) => {
                if let Some((helper, callback)) = calls_back(id) {
                    return self.call_back(helper, callback);
                }
                let r0 = self.call_helper(id)?;
                self.return_from_call(r0);
            }
            Insn::Exit => return Ok(self.exit()),
            Insn::Call(Callee::Kfunc { btf_id, .. }) => {
                let r0 = self.call_kfunc(btf_id)?;
                self.return_from_call(r0);
            }
            Insn::MayGoto { .. } => match self.rounds_left.checked_sub(1) {
                Some(left) => self.rounds_left = left,
                None => return self.jump(insn.jump_target(self.slot)),
            },
            Insn::AddrSpaceCast { .. } | Insn::CallReg(_) => return Err(FaultKind::LeftProgram),
        }
        Ok(Next::Follow)
    }

    fn jump(&self, target: Option<i64>) -> Result<Next, FaultKind> {
        target.and_then(|t| usize::try_from(t).ok()).map(Next::Jump).ok_or(FaultKind::LeftProgram)
    }

    fn address(&self, base: Reg, offset: i16) -> u64 {
        self.get(base).wrapping_add(offset as u64)
    }

    /// Checks an access through a pointer.
    fn allow(&self, pointer: u64, offset: i16, len: u64, access: Access) -> Result<(), FaultKind> {
        let address = pointer.wrapping_add(offset as u64);
        if self.regions.allows(address, len, access) {
            return Ok(());
        }
        let near = self.regions.near(address, pointer);
        Err(FaultKind::OutOfBounds { access, address, len, near })
    }

    fn load(&self, base: Reg, offset: i16, size: Size) -> Result<u64, FaultKind> {
        let (address, len) = (self.address(base, offset), size.bytes() as u64);
        if let Some(offset) = self.regions.context_offset(address) {
            return self.load_context(offset, size);
        }
        self.allow(self.get(base), offset, len, Access::Read)?;
        // SAFETY: just allowed.
        Ok(unsafe { memory::load(address, size) })
    }

    fn store(&self, base: Reg, offset: i16, size: Size, value: u64) -> Result<(), FaultKind> {
        let (address, len) = (self.address(base, offset), size.bytes() as u64);
        if let Some(offset) = self.regions.context_offset(address) {
            return self.store_context(offset, size, value);
        }
        self.allow(self.get(base), offset, len, Access::Write)?;
        // SAFETY: just allowed.
        unsafe { memory::store(address, size, value) };
        Ok(())
    }

    /// Checks the access of an instruction whose base register is `pointer`, and returns its target. A store
    /// of `value` to the context is performed.
    pub fn place_through(&mut self, insn: Insn, pointer: u64, value: u64) -> Result<Place, FaultKind> {
        let (size, base, offset, accesses): (_, _, _, &[Access]) = match insn {
            Insn::Load { size, base, offset, .. } | Insn::LoadAcquire { size, base, offset, .. } => {
                (size, base, offset, &[Access::Read])
            }
            Insn::Store { size, base, offset, .. } | Insn::StoreRelease { size, base, offset, .. } => {
                (size, base, offset, &[Access::Write])
            }
            Insn::Atomic { width, base, offset, .. } => {
                let size = if width == Width::W32 { Size::W } else { Size::Dw };
                (size, base, offset, &[Access::Read, Access::Write])
            }
            _ => return Err(FaultKind::LeftProgram),
        };
        self.set(base, pointer);
        if !matches!(insn, Insn::Load { .. } | Insn::Store { .. }) {
            self.align(base, offset, size)?;
        }
        let address = self.address(base, offset);
        match (self.regions.context_offset(address), insn) {
            (Some(at), Insn::Load { signed, .. }) => {
                let value = self.load_context(at, size)?;
                Ok(Place::Value(if signed { eval::sign_extend(size, value) } else { value }))
            }
            (Some(at), Insn::LoadAcquire { .. }) => self.load_context(at, size).map(Place::Value),
            (Some(at), Insn::Store { .. } | Insn::StoreRelease { .. }) => {
                self.store_context(at, size, value).map(|()| Place::Value(value))
            }
            _ => {
                for &access in accesses {
                    self.allow(self.get(base), offset, size.bytes() as u64, access)?;
                }
                Ok(Place::Memory(address))
            }
        }
    }

    fn align(&self, base: Reg, offset: i16, size: Size) -> Result<(), FaultKind> {
        let len = size.bytes() as u64;
        if self.address(base, offset).is_multiple_of(len) {
            Ok(())
        } else {
            Err(FaultKind::Misaligned { len })
        }
    }

    fn atomic(
        &mut self,
        width: Width,
        op: AtomicOp,
        base: Reg,
        offset: i16,
        src: Reg,
    ) -> Result<u64, FaultKind> {
        let size = if width == Width::W32 { Size::W } else { Size::Dw };
        self.align(base, offset, size)?;
        for access in [Access::Read, Access::Write] {
            self.allow(self.get(base), offset, size.bytes() as u64, access)?;
        }
        let address = self.address(base, offset);
        // SAFETY: just allowed for reading and writing, and aligned.
        Ok(unsafe { memory::atomic(address, width, op, self.get(src), self.get(Reg::R0)) })
    }

    fn imm64(&self, value: Imm64) -> Result<u64, FaultKind> {
        let maps = &self.image.maps;
        let map = |index: i32| usize::try_from(index).ok().and_then(|i| maps.get(i));
        match value {
            Imm64::Value(value) => Some(value),
            Imm64::MapIndex(index) => map(index).map(|map| Arc::as_ptr(map) as u64),
            Imm64::MapValueIndex { index, offset } => map(index)
                .and_then(|map| map.for_programs().direct_value(offset).ok())
                .map(|value| value.as_ptr() as u64),
            // The address of a function is its slot, which only helpers that call back use.
            Imm64::Code { .. } => Insn::LoadImm64 { dst: Reg::R0, value }
                .subprogram_target(self.slot)
                .map(|target| target as u64),
            Imm64::MapFd(_) | Imm64::MapValueFd { .. } | Imm64::Variable { .. } => None,
        }
        .ok_or(FaultKind::LeftProgram)
    }
}
