//! Tests of native code alone.
#![cfg(target_arch = "x86_64")]

use std::sync::Arc;

use paceline_engine::{Engine, FaultKind, Host, MemoryProgram, Program};
use paceline_frame::{Burst, FrameMeta};
use paceline_isa::{AluOp, Code, Condition, Insn, Names, Operand, Reg, Width, assemble};
use paceline_maps::{Limits, Map};
use paceline_spec::helper::Helper;
use paceline_spec::{MapKind, MapSpec, ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Options, Verified, verify};

const KIND: ProgramKind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };

struct Maps;

impl Names for Maps {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }

    fn map(&self, name: &str) -> Option<i32> {
        (name == "counts").then_some(0)
    }
}

fn program(text: &str, maps: &[MapSpec]) -> Verified {
    let insns = assemble(text, &Maps).expect("assembles").encode().expect("encodes");
    verify(&ProgramSpec::new("test", KIND, insns), maps, None, &Options::default()).expect("is accepted")
}

fn run(program: &Program, host: &mut Host) -> Result<u64, Box<paceline_engine::Fault>> {
    let mut burst = Burst::new(1);
    burst.push(&[0; 64], FrameMeta::default()).expect("fits");
    program.run_raw(&mut burst.frame_mut(0), host)
}

#[test]
fn no_program_runs_for_a_cpu_that_its_arrays_lack() {
    let spec = MapSpec::new("counts", MapKind::PerCpuArray, 4, 8, 1);
    let map = Map::create(&spec, &Limits { cpus: 2, memory: 1 << 20 }).expect("is made");
    let text = "
        *(u32 *)(r10 - 4) = 0
        r1 = map[counts] ll
        r2 = r10
        r2 += -4
        call bpf_map_lookup_elem
        r0 = *(u64 *)(r0 + 0)
        exit
    ";
    for engine in Engine::ALL {
        let program = Program::load(&program(text, std::slice::from_ref(&spec)), vec![map.clone()], engine)
            .expect("loads");
        assert_eq!(run(&program, &mut Host::new(1)), Ok(0));
        let fault = run(&program, &mut Host::new(2)).expect_err("there are two CPUs");
        assert_eq!(fault.kind, FaultKind::NoCpu(2), "{engine}");
        let mut burst = Burst::new(1);
        burst.push(&[0; 60], FrameMeta::default()).expect("there is room");
        let counted = program.run_counted(&mut burst.frame_mut(0), &mut Host::new(2));
        assert!(counted.is_none_or(|counted| counted.is_err()), "{engine}");
    }
}

#[test]
fn a_million_slots_are_compiled() {
    const LAST: usize = 999_999;
    let count = |slot: usize| match slot {
        LAST => Insn::Exit,
        0 => Insn::Alu { width: Width::W64, op: AluOp::Mov, dst: Reg::R0, src: Operand::Imm(0) },
        _ if slot.is_multiple_of(4) => Insn::JumpIf {
            width: Width::W64,
            condition: Condition::Eq,
            dst: Reg::R0,
            src: Operand::Imm(-1),
            offset: i16::try_from(LAST - slot - 1).unwrap_or(i16::MAX),
        },
        _ => Insn::Alu { width: Width::W64, op: AluOp::Add, dst: Reg::R0, src: Operand::Imm(1) },
    };
    let code: Code = (0..=LAST).map(count).collect();
    let spec = Arc::new(ProgramSpec::new("long", KIND, code.encode().expect("encodes")));
    // A pass whose time grows with the square of the length would take hours.
    // SAFETY: it touches no memory.
    let program = unsafe { MemoryProgram::jit(spec, Vec::new()) }.expect("is compiled");
    assert_eq!(program.run(&mut [], &mut Host::new(0)).map(|exit| exit.r0), Ok(749_999));
}

/// Neither the host's registers nor a call's leftovers are to be seen.
#[test]
fn registers_that_a_raw_program_never_set_are_zero() {
    let one = |number: u8| {
        [format!("r0 = r{number}\nexit"), format!("r{number} += 1\nr0 = r{number}\nr0 -= 1\nexit")]
    };
    let entry = [0, 3, 4, 5, 6, 7, 8, 9].into_iter().flat_map(one);
    let after = (1..=5).flat_map(|number| {
        let set = "r1 = 1\nr2 = 2\nr3 = 3\nr4 = 4\nr5 = 5\n";
        let helper = format!("{set}call 8\nr0 = r{number}\nexit");
        [helper, format!("{set}call pc+2\nr0 = r{number}\nexit\nr{number} = 9\nr0 = 0\nexit")]
    });
    for text in entry.chain(after) {
        let insns = assemble(&text, &Maps).unwrap().encode().expect("encodes");
        let spec = Arc::new(ProgramSpec::new("raw", KIND, insns));
        // SAFETY: it touches no memory.
        let fast = unsafe { MemoryProgram::jit(spec.clone(), Vec::new()) }.expect("is compiled");
        let plain = MemoryProgram::new(spec, Vec::new()).expect("is taken");
        for (program, name) in [(plain, "plain"), (fast, "jit")] {
            let ran = program.run(&mut [], &mut Host::new(0)).map(|exit| exit.r0);
            assert_eq!(ran, Ok(0), "{name}: {text}");
        }
    }
}

#[test]
fn raw_programs_know_their_memory() {
    let text = "r0 = *(u8 *)(r1 + 3)\nr0 += r2\nexit";
    let spec =
        Arc::new(ProgramSpec::new("raw", KIND, assemble(text, &Maps).unwrap().encode().expect("encodes")));
    let mut memory = [1, 2, 3, 40];
    // SAFETY: it reads a byte of the four that it is given.
    let fast = unsafe { MemoryProgram::jit(spec, Vec::new()) }.expect("is compiled");
    assert_eq!(fast.run(&mut memory, &mut Host::new(0)).map(|exit| exit.r0), Ok(44));
}

/// A program that reads so many bytes of the packet twice: equal loads are one, so that all values are live in between.
fn wide(bytes: usize) -> Verified {
    let mut text = format!(
        "r2 = *(u32 *)(r1 + 4)\nr1 = *(u32 *)(r1 + 0)\nr3 = r1\nr3 += {bytes}\nr0 = 0\nif r3 <= r2 goto long\nexit\nlong:\n"
    );
    for factor in [31, 37] {
        for at in 0..bytes {
            text.push_str(&format!("r4 = *(u8 *)(r1 + {at})\nr0 *= {factor}\nr0 += r4\n"));
        }
    }
    program(&(text + "exit\n"), &[])
}

#[test]
fn a_frame_may_have_several_pages() {
    let run = |program: &Program| {
        let packet: Vec<u8> = (0..4500_u32).map(|at| (at * 7 + at / 3) as u8).collect();
        let mut burst = Burst::new(1);
        burst.push(&packet, FrameMeta::default()).expect("fits");
        program.run_raw(&mut burst.frame_mut(0), &mut Host::new(0)).expect("no fault")
    };
    // The larger one has slots that are out of reach of an instruction of arm64.
    for bytes in [700, 4300] {
        let verified = wide(bytes);
        let [native, plain] = [Engine::Jit, Engine::Plain]
            .map(|engine| Program::load(&verified, Vec::new(), engine).expect("loads"));
        assert_eq!((native.engine(), native.unsupported()), (Engine::Jit, None));
        assert_eq!(run(&native), run(&plain), "{bytes} bytes");
    }
}
