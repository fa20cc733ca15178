//! Calls: subprograms with their stack frames, and helpers with their arguments checked.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::fault::FaultKind;
use crate::helpers::{helper_fn, record_of, set_timer_callback};
use crate::host::MAX_TAIL_CALLS;
use crate::memory;
use crate::region::Access;
use crate::stack::{MAX_FRAMES, STACK_FRAME};
use paceline_isa::{Insn, Reg};
use paceline_spec::helper::{Arg, Helper, HelperId, Prototype, Return};
use paceline_spec::kfunc::DYNPTR_BYTES;
use paceline_spec::{MAX_LOOPS, ObjectKind};

use super::timer::CheckedCallback;
use super::{Machine, Next, run_packet};
use crate::interpreter::callers::{Caller, CallingBack};
use crate::interpreter::image::{Image, Unset};

impl Machine<'_> {
    /// Allocates a zeroed stack frame below the caller's.
    pub(super) fn enter_frame(&mut self) {
        let frame_pointer = self.stack_top - (self.callers.len() * STACK_FRAME) as u64;
        let start = frame_pointer - STACK_FRAME as u64;
        self.regions.stack.start = start;
        self.host.stack.clear_frame(self.host.run.depth() + self.callers.len());
        self.point_at_frame(frame_pointer);
    }

    fn point_at_frame(&mut self, frame_pointer: u64) {
        self.regions.frame_pointer = frame_pointer;
        self.set(Reg::R10, frame_pointer);
    }

    pub(super) fn call_subprogram(&mut self, insn: Insn) -> Result<Next, FaultKind> {
        if self.callers.len() + 1 == MAX_FRAMES {
            return Err(FaultKind::CallDepth(MAX_FRAMES));
        }
        self.enter(self.slot + 1, None);
        self.jump(insn.subprogram_target(self.slot))
    }

    /// Enters a function that returns to a slot, or to the helper that calls it.
    pub(super) fn enter(&mut self, slot: usize, calling_back: Option<CallingBack>) {
        let [.., r6, r7, r8, r9, _] = self.registers;
        let rounds_left = std::mem::replace(&mut self.rounds_left, MAX_LOOPS);
        self.callers.push(Caller { slot, callee_saved: [r6, r7, r8, r9], rounds_left, calling_back });
        self.enter_frame();
    }

    /// Stores the result of a call; the other caller-saved registers are zero: neither the host's values nor the arguments, which no other
    /// engine keeps.
    pub(super) fn return_from_call(&mut self, r0: u64) {
        self.registers[..6].copy_from_slice(&[r0, 0, 0, 0, 0, 0]);
    }

    /// Leaves the running function.
    pub fn exit(&mut self) -> Next {
        let Some(caller) = self.callers.pop() else { return Next::Exit(self.get(Reg::R0)) };
        self.registers[6..10].copy_from_slice(&caller.callee_saved);
        self.regions.stack.start += STACK_FRAME as u64;
        self.point_at_frame(self.get(Reg::R10) + STACK_FRAME as u64);
        self.rounds_left = caller.rounds_left;
        match caller.calling_back {
            None => {
                self.return_from_call(self.get(Reg::R0));
                Next::Jump(caller.slot)
            }
            Some(calling_back) => self.called_back(caller.slot, calling_back),
        }
    }

    /// Values of the argument registers for a function of the runtime, which takes the frame for the context.
    pub(super) fn arguments<A>(&self, args: &[A], is_context: impl Fn(&A) -> bool) -> [u64; 5] {
        std::array::from_fn(|index| match args.get(index) {
            Some(arg) if is_context(arg) => self.regions.frame_address(),
            _ => self.registers[index + 1],
        })
    }

    pub(super) fn call_helper(&mut self, id: i32) -> Result<u64, FaultKind> {
        let found = Helper::from_imm(id)
            .and_then(|helper| Some((helper, helper_fn(helper.id, self.image.spec.kind)?)));
        let Some((helper, function)) = found else { return Err(FaultKind::NoSuchHelper(id)) };
        if let Some(prototype) = &helper.prototype {
            self.check_arguments(helper, prototype)?;
        }
        let args = helper.prototype.as_ref().map_or(&[][..], |prototype| prototype.args);
        let [r1, r2, r3, r4, r5] = self.arguments(args, |arg| *arg == Arg::Context);
        if helper.calls_later() {
            let function = self.function(r2).ok_or(FaultKind::LeftProgram)?;
            // SAFETY: the arguments were just checked against the prototype.
            return Ok(unsafe {
                set_timer_callback(r1, CheckedCallback { image: self.shared_image(), slot: function })
            });
        }
        if helper.prototype.is_some_and(|p| p.args.first() == Some(&Arg::ReleasedDynptr)) {
            // SAFETY: just checked to be a dynptr.
            let record = unsafe { record_of(r1) };
            self.forget_record(record);
        }
        // SAFETY: the regions are those of this run.
        unsafe { self.host.run.set_regions(Some(self.regions.clone())) };
        // SAFETY: the arguments were just checked against the prototype.
        let r0 = unsafe { function(r1, r2, r3, r4, r5, self.host) };
        // SAFETY: nothing is allowed any more.
        unsafe { self.host.run.set_regions(None) };
        if let Some(prototype) = &helper.prototype {
            self.note_result(prototype, r1, r0);
            if prototype.args.last() == Some(&Arg::NewRecordDynptr) {
                // SAFETY: the helper has just made a dynptr there.
                let record = unsafe { record_of(r4) };
                self.records.extend(NonNull::new(record as *mut u8));
            }
        }
        Ok(r0)
    }

    /// Updates the objects that the program holds after a helper's call.
    fn note_result(&mut self, prototype: &Prototype, r1: u64, r0: u64) {
        match prototype.returns {
            Return::MapValueOrNull
                if self.regions.map(r1).is_some_and(|map| map.spec().kind.holds_sockets()) =>
            {
                self.regions.objects.extend((r0 != 0).then_some((ObjectKind::Socket, r0)));
            }
            // SAFETY: it was just found in the map, and the run is pinned.
            Return::MapValueOrNull => unsafe { self.regions.note_inner(r1, r0) },
            Return::RecordOrNull => self.records.extend(NonNull::new(r0 as *mut u8)),
            returned => {
                let object = returned.object().filter(|_| r0 != 0);
                self.regions.objects.extend(object.map(|kind| (kind, r0)));
            }
        }
        if prototype.args.first() == Some(&Arg::ReleasedSocket)
            && let Some(index) = self.regions.object(r1, ObjectKind::is_socket)
        {
            self.regions.objects.swap_remove(index);
        }
        if prototype.args.first() == Some(&Arg::Record) {
            self.forget_record(r1);
        }
    }

    /// Removes a record from those that the program holds.
    fn forget_record(&mut self, address: u64) {
        if let Some(index) = self.record(address) {
            self.records.swap_remove(index);
        }
    }

    /// Index of the record at an address among those that the program holds.
    fn record(&self, address: u64) -> Option<usize> {
        self.records.iter().position(|record| record.addr().get() as u64 == address)
    }

    /// `bpf_tail_call(ctx, map, index)`: another program runs in place of this function, and its result is the
    /// function's. Execution continues if there is no program, or after too many calls.
    pub(super) fn tail_call(&mut self) -> Result<Next, FaultKind> {
        let helper = HelperId::TailCall.row();
        if let Some(prototype) = &helper.prototype {
            self.check_arguments(helper, prototype)?;
        }
        let [_, _, map, index, ..] = self.registers;
        let token =
            self.regions.map(map).and_then(|map| map.for_programs().prog_array()?.token(index as u32));
        let Some(token) = token.filter(|_| self.host.run.tail_calls < MAX_TAIL_CALLS) else {
            return Ok(Next::Follow);
        };
        self.host.run.tail_calls += 1;
        let depth = self.host.run.depth();
        // SAFETY: the frames above are those of this machine, and the stack has frames for all tail calls that there may be.
        unsafe { self.host.run.set_depth(depth + self.callers.len()) };
        // SAFETY: tokens are addresses of images, which live as long as a reader may hold them.
        let image = unsafe { &*(token.get() as *const Image) };
        let r0 = match self.observer.as_deref_mut() {
            // SAFETY: the host runs the frame, and the token is that of the image.
            None => unsafe {
                (image.entries.tail)(
                    self.regions.frame_address(),
                    token.get(),
                    Unset::uninit(),
                    Unset::uninit(),
                    Unset::uninit(),
                    self.host,
                )
            },
            // SAFETY: the host runs the frame.
            Some(observer) => match unsafe { run_packet(image, self.host, Some(observer)) } {
                Ok(exit) => exit.r0,
                Err(fault) => self.host.fail(fault),
            },
        };
        // SAFETY: as it was before.
        unsafe { self.host.run.set_depth(depth) };
        if self.host.run.fault.is_some() {
            return Err(FaultKind::LeftProgram);
        }
        self.set(Reg::R0, r0);
        Ok(self.exit())
    }

    pub(super) fn check_arguments(
        &self,
        helper: &'static Helper,
        prototype: &Prototype,
    ) -> Result<(), FaultKind> {
        if self.host.run.held_lock() != 0 && !prototype.args.contains(&Arg::HeldSpinLock) {
            return Err(FaultKind::CallWithLock(helper.name));
        }
        let mut map = None;
        for (register, arg) in (1_u8..).zip(prototype.args) {
            let value = self.registers[usize::from(register)];
            let size = self.registers[usize::from(register) + 1];
            let expected = match arg {
                Arg::Scalar | Arg::Unchecked | Arg::RecordSize => continue,
                Arg::Context if value == self.regions.context.start && value != 0 => continue,
                Arg::Context => "the context",
                Arg::Map => match self.regions.map(value) {
                    None => "map",
                    Some(found) if !helper.takes_map(found.spec().kind) => "map of a kind that it takes",
                    Some(found) if helper.changes_map() && !found.for_programs().access().write => {
                        "map that programs may write"
                    }
                    Some(found) => {
                        map = Some(found.spec());
                        continue;
                    }
                },
                Arg::MapValue if map.is_some_and(|map| map.kind.holds_sockets()) => {
                    if self.regions.object(value, ObjectKind::is_socket).is_some() {
                        continue;
                    }
                    "socket that it has"
                }
                Arg::MapKey | Arg::MapValue => {
                    let len = map.map_or(0, |m| if *arg == Arg::MapKey { m.key_size } else { m.value_size });
                    self.allow(value, 0, u64::from(len), Access::Read)?;
                    continue;
                }
                Arg::NextValue => {
                    let len = map.map_or(0, |map| u64::from(map.value_size));
                    let asked = map.is_some_and(|map| map.kind.tests_membership());
                    self.allow(value, 0, len, if asked { Access::Read } else { Access::Write })?;
                    continue;
                }
                Arg::ReadMemOrNull | Arg::WriteMemOrNull if value == 0 => continue,
                Arg::ReadMem | Arg::ReadMemOrNull => {
                    self.allow(value, 0, size, Access::Read)?;
                    continue;
                }
                Arg::WriteMem | Arg::WriteMemOrNull | Arg::ReadWriteMem => {
                    self.allow(value, 0, size, Access::Write)?;
                    continue;
                }
                Arg::ReadBytes(size) => {
                    self.allow(value, 0, u64::from(*size), Access::Read)?;
                    continue;
                }
                Arg::WriteBytes(size) | Arg::ReadWriteBytes(size) => {
                    self.allow(value, 0, u64::from(*size), Access::Write)?;
                    continue;
                }
                Arg::Dynptr => {
                    self.allow(value, 0, u64::from(DYNPTR_BYTES), Access::Read)?;
                    continue;
                }
                Arg::NewValueDynptr | Arg::NewRecordDynptr => {
                    self.allow(value, 0, u64::from(DYNPTR_BYTES), Access::Write)?;
                    continue;
                }
                Arg::ReleasedDynptr => {
                    self.allow(value, 0, u64::from(DYNPTR_BYTES), Access::Write)?;
                    // SAFETY: just allowed.
                    let record = unsafe { record_of(value) };
                    if record == 0 || self.record(record).is_some() {
                        continue;
                    }
                    "dynptr to a record of a ring buffer"
                }
                Arg::Text => {
                    self.check_text(value)?;
                    continue;
                }
                Arg::Function if self.function(value).is_some() => continue,
                Arg::Function => "function",
                Arg::StackOrNull => continue,
                Arg::Timer if self.regions.maps().any(|map| map.for_programs().is_timer(value as usize)) => {
                    continue;
                }
                Arg::Timer => "timer of a map value",
                Arg::SpinLock if self.is_spin_lock(value) => continue,
                Arg::SpinLock => "spin lock of a map value",
                Arg::HeldSpinLock if value == self.host.run.held_lock() && value != 0 => continue,
                Arg::HeldSpinLock => "spin lock that it has",
                Arg::Socket | Arg::ReleasedSocket
                    if self.regions.object(value, ObjectKind::is_socket).is_some() =>
                {
                    continue;
                }
                Arg::Socket | Arg::ReleasedSocket => "socket that it has",
                Arg::Record if self.record(value).is_some() => continue,
                Arg::Record => "record of a ring buffer",
                Arg::Size if value == 0 => "size of at least one byte",
                Arg::Size | Arg::SizeOrZero if value > u64::from(u32::MAX) => "size of 32 bits",
                Arg::Size | Arg::SizeOrZero => continue,
            };
            let near = matches!(arg, Arg::Context | Arg::Map).then(|| self.regions.near(value, value));
            return Err(FaultKind::Argument { helper: helper.name, register, expected, near });
        }
        Ok(())
    }

    /// Checks that the program may read a text up to its zero byte.
    fn check_text(&self, start: u64) -> Result<(), FaultKind> {
        let mut byte = [1];
        let mut address = start;
        while byte != [0] {
            self.allow(address, 0, 1, Access::Read)?;
            // SAFETY: the program may read the byte.
            unsafe { memory::copy_from(&mut byte, address) };
            address += 1;
        }
        Ok(())
    }

    /// A new reference to the image.
    fn shared_image(&self) -> Arc<Image> {
        // The pointer has the provenance of the whole `Arc`, whose address each program exposes as its token.
        let image: *const Image = std::ptr::with_exposed_provenance(std::ptr::from_ref(self.image).addr());
        // SAFETY: images that run are in an `Arc`, which a program keeps; its count now has one more for the result.
        unsafe {
            Arc::increment_strong_count(image);
            Arc::from_raw(image)
        }
    }

    fn is_spin_lock(&self, address: u64) -> bool {
        self.regions.maps().any(|map| map.for_programs().is_spin_lock(address as usize))
    }
}
