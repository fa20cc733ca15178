//! The runtime of checked code: the plain interpreter's machine checks every access and executes all instructions but plain
//! computations, which the code executes.
#![allow(
    unsafe_code,
    reason = "checked code is entered by address, and its machine accesses the memory of a run"
)]

use std::mem::offset_of;

use paceline_isa::{Callee, Insn};
use paceline_runtime::fault::{Fault, FaultKind};
use paceline_runtime::host::Host;
use paceline_runtime::interpreter::entry::Interpreter;
use paceline_runtime::interpreter::image::Exit;
use paceline_runtime::interpreter::image::Image;
use paceline_runtime::interpreter::plain::{Machine, Next, Place};
use paceline_runtime::rounds::calls_back;

use super::links::{Links, RunOffsets};

/// A run of checked code, which accesses the first fields by offset.
#[repr(C)]
struct Run<'a> {
    stack_pointer: u64,
    budget: u64,
    value: u64,
    registers: [u64; 6],
    frame_pointer: u64,
    callback: u64,
    machine: Machine<'a>,
    fault: Option<Box<Fault>>,
}

/// Signature of the code of a program.
type Code = unsafe extern "C" fn(u64, u64, *mut Run<'_>) -> u64;

/// Signature of the functions that code calls.
type Function = for<'r, 'a> extern "C" fn(&'r mut Run<'a>, u64, u64) -> u64;

/// Results of the functions that code calls.
const END: u64 = 0;
const FOLLOW: u64 = 1;
const LEAVE: u64 = 2;

/// No slot: the helper that calls functions returns.
const NO_CALLBACK: u64 = u64::MAX;

pub(super) fn links() -> Links {
    let address = |function: Function| function as usize as u64;
    Links {
        access: address(access),
        execute: address(execute),
        leave: address(leave),
        exhausted: address(exhausted),
        run: RunOffsets {
            stack_pointer: offset_of!(Run<'_>, stack_pointer) as i32,
            budget: offset_of!(Run<'_>, budget) as i32,
            value: offset_of!(Run<'_>, value) as i32,
            registers: offset_of!(Run<'_>, registers) as i32,
            frame_pointer: offset_of!(Run<'_>, frame_pointer) as i32,
            callback: offset_of!(Run<'_>, callback) as i32,
        },
    }
}

/// The engine of checked code, which is entered like an interpreter.
pub(super) struct Checked;

impl Interpreter for Checked {
    type Code<'a> = &'a Image;

    fn code(image: &Image) -> Option<&Image> {
        Some(image)
    }

    unsafe fn run(image: &Image, _: u64, host: &mut Host) -> u64 {
        let Some(code) = image.native.as_ref().map(|native| native.entry) else {
            return host.fail(Box::new(Fault { slot: 0, kind: FaultKind::LeftProgram, tail_called: None }));
        };
        // SAFETY: that the host runs the frame is guaranteed by the caller.
        let machine = unsafe { Machine::on_packet(image, host) };
        // SAFETY: the image keeps the code of its program.
        match unsafe { run(machine, code) } {
            Ok(exit) => exit.r0,
            Err(fault) => host.fail(fault),
        }
    }
}

/// Runs the code of a machine's program at an address.
///
/// # Safety
/// Checked code of the program is there.
pub(super) unsafe fn run(machine: Machine<'_>, code: usize) -> Result<Exit, Box<Fault>> {
    let [_, r1, r2, .., frame_pointer] = machine.registers;
    let budget = machine.image.budget;
    let mut run = Run {
        stack_pointer: 0,
        budget,
        value: 0,
        registers: [0; 6],
        frame_pointer,
        callback: NO_CALLBACK,
        machine,
        fault: None,
    };
    // SAFETY: the code is guaranteed by the caller, and is entered like this.
    let r0 = unsafe { std::mem::transmute::<usize, Code>(code)(r1, r2, &mut run) };
    match run.fault {
        Some(fault) => Err(fault),
        None => Ok(Exit { r0, instructions: budget - run.budget }),
    }
}

impl Run<'_> {
    /// Copies the machine's state to the fields that the code reads.
    fn go(&mut self, next: &Next) {
        self.registers.copy_from_slice(&self.machine.registers[..6]);
        self.frame_pointer = self.machine.registers[10];
        self.callback = match next {
            Next::CallBack(slot) => *slot as u64,
            Next::Follow | Next::Jump(_) | Next::Exit(_) => NO_CALLBACK,
        };
        if let Next::Exit(r0) = next {
            self.registers[0] = *r0;
        }
    }

    /// Ends the run with a fault.
    #[cold]
    fn fail(&mut self, slot: u64, kind: FaultKind) -> u64 {
        let fault = || Box::new(Fault { slot: slot as usize, kind, tail_called: None });
        // A tail called program has stored its fault already.
        self.fault = Some(self.machine.host.run.fault.take().unwrap_or_else(fault));
        END
    }
}

extern "C" fn access(run: &mut Run<'_>, slot: u64, pointer: u64) -> u64 {
    run.machine.slot = slot as usize;
    let Some(&insn) = run.machine.image.code.get(slot as usize) else {
        return run.fail(slot, FaultKind::LeftProgram);
    };
    match run.machine.place_through(insn, pointer, run.value) {
        Ok(Place::Memory(address)) => address,
        Ok(Place::Value(value)) => {
            run.value = value;
            &raw const run.value as u64
        }
        Err(kind) => run.fail(slot, kind),
    }
}

/// Whether an instruction calls functions of the program, itself or through a helper.
fn calls(insn: Insn) -> bool {
    match insn {
        Insn::Call(Callee::Subprogram(_)) => true,
        Insn::Call(Callee::Helper(id)) => calls_back(id).is_some(),
        _ => false,
    }
}

extern "C" fn execute(run: &mut Run<'_>, slot: u64, index: u64) -> u64 {
    let machine = &mut run.machine;
    machine.slot = slot as usize;
    let Some(&insn) = machine.image.code.get(slot as usize) else {
        return run.fail(slot, FaultKind::LeftProgram);
    };
    machine.registers[..6].copy_from_slice(&run.registers);
    if let Insn::LoadPacket { index: Some(reg), .. } = insn {
        machine.registers[usize::from(reg.number())] = index;
    }
    match machine.execute(insn) {
        Ok(next) => {
            run.go(&next);
            // A function is called, or left: the machine has made or removed its frame.
            if matches!(next, Next::Follow) || calls(insn) { FOLLOW } else { LEAVE }
        }
        Err(kind) => run.fail(slot, kind),
    }
}

extern "C" fn leave(run: &mut Run<'_>, _: u64, _: u64) -> u64 {
    run.machine.registers[..6].copy_from_slice(&run.registers);
    let next = run.machine.exit();
    run.go(&next);
    FOLLOW
}

extern "C" fn exhausted(run: &mut Run<'_>, slot: u64, _: u64) -> u64 {
    let budget = run.machine.image.budget;
    run.budget = 0;
    run.fail(slot, FaultKind::Budget(budget))
}
