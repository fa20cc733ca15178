//! Reads the machine code of the threaded interpreter's handlers out of this process: on every path each of them must
//! end in an indirect jump. A handler that lost it calls the next one, and takes stack for every operation.
//!
//! Only builds that optimize have such handlers: `cargo test --release -p paceline-engine --test tail_jumps`.
#![cfg(target_arch = "x86_64")]

use std::collections::BTreeSet;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use paceline_engine::threaded_handlers::{self, Handler};

/// Instructions of a handler at most, so that code that is misread ends.
const MOST: usize = 2000;

/// Longest x86-64 instruction.
const LONGEST: usize = 15;

fn decode(address: u64) -> Instruction {
    // SAFETY: the code that control comes to is mapped and readable, and there is more than one instruction of it.
    let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, LONGEST) };
    Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode()
}

/// Whether a call or jump goes through a place of the object's own, as to functions of other crates.
fn is_by_name(insn: &Instruction) -> bool {
    insn.op0_kind() == OpKind::Memory && insn.memory_base() == Register::RIP
}

/// Walks all paths of a handler; gives how many end in an indirect jump.
fn check(handler: &Handler) -> Result<usize, String> {
    let mut jumps = 0;
    let mut seen = BTreeSet::new();
    let mut waiting = vec![handler.address as u64];
    while let Some(address) = waiting.pop() {
        if !seen.insert(address) {
            continue;
        }
        if seen.len() > MOST {
            return Err(format!("more than {MOST} instructions"));
        }
        let insn = decode(address);
        match insn.flow_control() {
            FlowControl::Next | FlowControl::Call => waiting.push(insn.next_ip()),
            FlowControl::UnconditionalBranch => waiting.push(insn.near_branch_target()),
            FlowControl::ConditionalBranch => waiting.extend([insn.next_ip(), insn.near_branch_target()]),
            FlowControl::IndirectCall if is_by_name(&insn) || handler.calls_helper => {
                waiting.push(insn.next_ip());
            }
            FlowControl::IndirectCall => return Err(format!("calls at {address:#x}: {insn}")),
            FlowControl::IndirectBranch if !is_by_name(&insn) => jumps += 1,
            FlowControl::Return if handler.ends || handler.may_end => {}
            FlowControl::Return => return Err(format!("returns at {address:#x}")),
            other => return Err(format!("{other:?} at {address:#x}: {insn}")),
        }
    }
    Ok(jumps)
}

#[test]
fn every_handler_ends_in_an_indirect_jump() {
    if cfg!(debug_assertions) {
        eprintln!("SKIP: handlers return to a loop in builds with debug assertions");
        return;
    }
    assert!(threaded_handlers::jumps(), "this build is optimized, but its handlers return to a loop");
    let handlers = threaded_handlers::all();
    assert!(handlers.len() > 200, "{} handlers", handlers.len());
    for handler in handlers {
        match check(&handler) {
            Ok(jumps) => assert_eq!(jumps == 0, handler.ends, "{}: {jumps} indirect jumps", handler.kind),
            Err(reason) => panic!("{}: {reason}", handler.kind),
        }
    }
}
