//! solana-sbpf: its interpreter and its JIT, on the frame, which has the packet's start and end.
//!
//! Its protections against untrusted programs are disabled as far as possible: address translation, metering, constant
//! blinding, random padding. Its dialect V0 runs clang's output for -mcpu=v2.
#![allow(unsafe_code, reason = "memory for another engine")]

use std::error::Error;
use std::ptr::NonNull;
use std::sync::Arc;

use paceline::FrameMut;
use solana_sbpf::elf::Executable;
use solana_sbpf::memory_region::MemoryMapping;
use solana_sbpf::program::{BuiltinProgram, FunctionRegistry, SBPFVersion};
use solana_sbpf::verifier::RequisiteVerifier;
use solana_sbpf::vm::{CallFrame, Config, ContextObject, EbpfVm, ExecutionMode};

use super::contender::{Contender, Role};
use super::raw;

const DIALECT: SBPFVersion = SBPFVersion::V0;

/// Context of a run: no memory of its own, no meter.
struct Context(MemoryMapping);

impl ContextObject for Context {
    fn consume(&mut self, _: u64) {}

    fn get_remaining(&self) -> u64 {
        u64::MAX
    }

    fn active_mapping_ptr(&mut self) -> NonNull<MemoryMapping> {
        NonNull::from_mut(&mut self.0)
    }
}

/// The program `text` on both engines.
pub(super) fn contenders<'a>(text: &[u8]) -> Result<Vec<Contender<'a>>, Box<dyn Error>> {
    let version = env!("VERSION_SOLANA_SBPF");
    let mut contenders = Vec::new();
    for (engine, role, mode) in [
        ("JIT", Role::Jit, ExecutionMode::Jit),
        ("interpreter", Role::Interpreter, ExecutionMode::Interpreted),
    ] {
        let run = run(text, mode)?;
        let name = format!("solana-sbpf {version} {engine}");
        contenders.push(Contender::new(name, role, run).with_counts(raw::counts));
    }
    Ok(contenders)
}

/// Checks the form, and compiles.
fn executable(text: &[u8]) -> Result<Executable<Context>, Box<dyn Error>> {
    let loader = Arc::new(BuiltinProgram::new_loader(config()));
    let executable = Executable::from_text_bytes(text, loader, DIALECT, FunctionRegistry::default())?;
    executable.verify::<RequisiteVerifier>()?;
    executable.jit_compile()?;
    Ok(executable)
}

fn config() -> Config {
    Config {
        enable_address_translation: false,
        enable_stack_frame_gaps: false,
        enable_instruction_meter: false,
        noop_instruction_rate: 0,
        sanitize_user_provided_values: false,
        ..Config::default()
    }
}

fn run(
    text: &[u8],
    mut mode: ExecutionMode,
) -> Result<impl FnMut(&mut FrameMut<'_>) -> u64 + 'static, Box<dyn Error>> {
    let executable = executable(text)?;
    // SAFETY: there is no memory region.
    let memory = unsafe { MemoryMapping::new(Vec::new(), &config(), DIALECT) }?;
    // The machine borrows it as long as packets run.
    let context = Box::leak(Box::new(Context(memory)));
    let mut vm = EbpfVm::new(Arc::clone(executable.get_loader()), DIALECT, context, 0);
    let registers = vm.registers;
    let mut calls = vec![CallFrame::default(); config().max_call_depth];
    Ok(move |frame: &mut FrameMut<'_>| {
        vm.registers = registers;
        vm.registers[1] = &raw const **frame as u64;
        let (_, result) = vm.execute_program(&executable, &mut mode, &mut calls);
        Result::from(result).unwrap_or(u64::MAX)
    })
}
