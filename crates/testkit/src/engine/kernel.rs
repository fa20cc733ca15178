//! Cases on the kernel.

use std::os::fd::AsRawFd;
use std::thread::{self, sleep};
use std::time::Duration;

use paceline_btf::{Btf, Type};
use paceline_isa::{Callee, Imm64, Insn, Operand, RawInsn, Reg, Size, encode_all};
use paceline_spec::{FunctionInfo, InitialValue, Linkage, MapKind, MapSpec, ProgramSpec};

use super::interface::{Engine, Unsupported, skb};
use super::namespace::Namespace;
use crate::case::{Case, CaseKind, Change, Context, Run};
use crate::kernel::{self, KernelError, KernelObject, LoadError, LoadOptions, Map, Packet, Pinned, Program};
use crate::outcome::{Finished, Outcome, Ran, Refusal, Return};

/// The kernel's verifier, JIT compiler or interpreter, and test run.
#[derive(Clone, Copy, Debug)]
pub struct KernelEngine;

impl Engine for KernelEngine {
    fn name(&self) -> &str {
        "kernel"
    }

    fn verifies(&self) -> bool {
        true
    }

    fn run(&self, case: &Case) -> Result<Outcome, Unsupported> {
        check(case)?;
        match &case.network {
            None => run(case),
            // A network namespace belongs to its thread and is freed with it.
            Some(network) => thread::scope(|scope| {
                let ran = scope.spawn(|| {
                    let _sockets = Namespace::enter(&network.text).ok_or(Unsupported::Network)?;
                    run(case)
                });
                ran.join().unwrap_or(Err(Unsupported::Network))
            }),
        }
    }
}

fn run(case: &Case) -> Result<Outcome, Unsupported> {
    let pinned = kernel::pin();
    Ok(match Loaded::new(case, pinned.cpu()) {
        Ok(loaded) => match loaded.run(case, &pinned) {
            Ok(ran) => Outcome::Ran(ran),
            Err(error) => Outcome::Refused(error.to_string().into()),
        },
        Err(LoadError::Program { error, .. }) if error.operation == kernel::FIND_FUNCTION => {
            return Err(Unsupported::NoKernelFunction(error.reason().to_owned()));
        }
        // The program did not reach the kernel's verifier.
        Err(error @ (LoadError::Btf(_) | LoadError::Dangling { .. })) => Outcome::Unasked(error.to_string()),
        Err(error) => Outcome::Refused(refusal(case, &error)),
    })
}

/// The kernel's message, and the guilty instruction.
fn refusal(case: &Case, error: &LoadError) -> Refusal {
    let place = match error {
        LoadError::Program { name, error } => {
            let program = case.programs.iter().position(|program| program.name == *name);
            program.zip(error.guilty_slot())
        }
        _ => None,
    };
    Refusal { reason: error.to_string(), place, in_our_words: false }
}

fn check(case: &Case) -> Result<(), Unsupported> {
    if case.programs.is_empty() {
        return Err(Unsupported::NothingToRun);
    }
    if case.kind == CaseKind::Raw {
        return Err(Unsupported::RawMemory);
    }
    for run in &case.runs {
        if !takes_packet(case, run) {
            return Err(Unsupported::PacketLength(run.data.len()));
        }
        if run.context.egress_ifindex != 0 {
            return Err(Unsupported::ContextField("egress_ifindex"));
        }
        if run.context != Context::default() && !has_no_ingress(case, run) {
            return Err(Unsupported::ContextField("ingress_ifindex or rx_queue_index"));
        }
    }
    Ok(())
}

/// A packet of a TC classifier without an ingress interface, as in a test run without a context.
fn has_no_ingress(case: &Case, run: &Run) -> bool {
    case.kind == CaseKind::SchedCls && run.context == Context { ingress_ifindex: 0, ..Context::default() }
}

/// A filter's packet gets a second Ethernet header, which the kernel removes.
fn takes_packet(case: &Case, run: &Run) -> bool {
    let header = if case.kind == CaseKind::SocketFilter { kernel::ETHERNET_LEN } else { 0 };
    kernel::check_packet(run.data.len() + header, run.meta.len())
}

/// A case loaded in the kernel.
struct Loaded {
    object: KernelObject,
    /// Whether the program is wrapped, so that the last map receives `r0`.
    wrapped: bool,
}

impl Loaded {
    fn new(case: &Case, cpu: usize) -> Result<Self, LoadError> {
        // Verifier cases load the program unchanged.
        if !case.runs.is_empty() && !case.is_faulty() {
            let Wrapped { maps, programs, btf } = wrap(case);
            let options = LoadOptions { btf: Some(&btf), cpu, ..LoadOptions::default() };
            if let Ok(object) = KernelObject::load(&maps, &programs, options) {
                return Ok(Self { object, wrapped: true });
            }
        }
        let options = LoadOptions { btf: Some(&case.btf), cpu, ..LoadOptions::default() };
        KernelObject::load(&case.maps, &case.programs, options).map(|object| Self { object, wrapped: false })
    }

    fn run(&self, case: &Case, pinned: &Pinned) -> Result<Ran, KernelError> {
        let Some(program) = self.object.programs.first() else {
            unreachable!("a case has a program");
        };
        let mut runs = Vec::new();
        for run in &case.runs {
            self.change(case, &run.changes, pinned.cpu())?;
            sleep(Duration::from_millis(run.wait_ms));
            runs.push(self.run_once(program, case, run)?);
        }
        let maps = self.object.maps.iter().take(case.maps.len());
        let maps = maps.map(|map| map.contents(pinned.cpu())).collect::<Result<Vec<_>, _>>()?;
        Ok(Ran { runs: runs.into_iter().map(Ok).collect(), maps })
    }

    fn run_once(&self, program: &Program, case: &Case, run: &Run) -> Result<Finished, KernelError> {
        let packet = Packet { data: &run.data, meta: &run.meta, ..Packet::default() };
        let ran = match has_no_ingress(case, run) {
            true => program.test_run_after(&run.data, None)?,
            false => program.test_run(&packet)?,
        };
        let r0 = match self.object.maps.last() {
            Some(result) if self.wrapped => Return::Full(read_result(result)?),
            _ => Return::Low(ran.retval),
        };
        let skb = ran.sk_buff.map(|bytes| kernel_skb(&bytes));
        Ok(Finished { data: ran.data, meta: ran.meta, skb, ..Finished::new(r0) })
    }

    fn change(&self, case: &Case, changes: &[Change], cpu: usize) -> Result<(), KernelError> {
        for Change { map, key, value } in changes {
            let Some(map) = self.object.maps.get(*map) else {
                unreachable!("a case changes maps of its own")
            };
            let descriptor = match value {
                None => {
                    map.delete(key)?;
                    continue;
                }
                Some(InitialValue::Bytes(bytes)) => {
                    map.update(key, bytes, cpu)?;
                    continue;
                }
                Some(InitialValue::Map(index)) => self.object.maps.get(*index).map(Map::fd),
                Some(InitialValue::Program(name)) => {
                    let index = case.programs.iter().position(|program| program.name == *name);
                    index.and_then(|index| self.object.programs.get(index)).map(Program::fd)
                }
            };
            let Some(descriptor) = descriptor else {
                unreachable!("a case names maps and programs of its own")
            };
            map.update(key, &descriptor.as_raw_fd().to_ne_bytes(), cpu)?;
        }
        Ok(())
    }
}

/// The fields of a test run's `__sk_buff` that cases can state.
fn kernel_skb(bytes: &[u8]) -> String {
    let word = |offset: usize| {
        bytes.get(offset..offset + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
    };
    let cb = [48, 52, 56, 60, 64].map(word);
    skb(word(8), word(32), cb, u64::from(word(152)) | u64::from(word(156)) << 32)
}

fn read_result(map: &Map) -> Result<u64, KernelError> {
    let value = map.lookup(&[0; 4], 0)?;
    Ok(value.try_into().map_or(0, u64::from_ne_bytes))
}

/// A case whose first program is wrapped as a subprogram.
struct Wrapped {
    maps: Vec<MapSpec>,
    programs: Vec<ProgramSpec>,
    btf: Btf,
}

/// The case with its first program called as a subprogram, whose 64-bit result is stored to an additional last map, because
/// a test run returns only 32 bits.
fn wrap(case: &Case) -> Wrapped {
    let mut maps = case.maps.clone();
    let index = i32::try_from(maps.len()).unwrap_or(i32::MAX);
    maps.push(result_map());
    let mut programs = case.programs.clone();
    let mut btf = case.btf.clone();
    if let Some(program) = programs.first_mut() {
        let mut insns = caller(index);
        for function in &mut program.functions {
            function.start += insns.len();
        }
        if let Some(main) = program.functions.first_mut() {
            main.linkage = Linkage::Static;
            // Of the same type, because it has the same argument and result.
            let ty = btf.get(main.btf_id).cloned().unwrap_or(Type::Void);
            let caller = FunctionInfo {
                start: 0,
                name: "caller".to_owned(),
                linkage: Linkage::Global,
                btf_id: btf.add(ty),
            };
            program.functions.insert(0, caller);
        }
        insns.append(&mut program.insns);
        program.insns = insns;
    }
    Wrapped { maps, programs, btf }
}

/// Calls the following function with the context, and stores all of `r0`.
fn caller(map: i32) -> Vec<RawInsn> {
    let value = Imm64::MapValueIndex { index: map, offset: 0 };
    let after_call = [
        Insn::LoadImm64 { dst: Reg::R1, value },
        Insn::Store { size: Size::Dw, base: Reg::R1, offset: 0, src: Operand::Reg(Reg::R0) },
        Insn::Exit,
    ];
    let slots: usize = after_call.iter().map(Insn::slots).sum();
    let call = Insn::Call(Callee::Subprogram(slots as i32));
    let insns: Vec<Insn> = std::iter::once(call).chain(after_call).collect();
    encode_all(&insns).unwrap_or_else(|error| unreachable!("plain instructions can be encoded: {error}"))
}

fn result_map() -> MapSpec {
    MapSpec {
        contents: vec![(vec![0; 4], InitialValue::Bytes(vec![0; 8]))],
        ..MapSpec::new("result", MapKind::Array, 4, 8, 1)
    }
}
