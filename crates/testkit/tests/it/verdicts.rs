//! Random programs for the verifier, a fixed number: accepted ones are consistent with its facts at run time, and no input
//! makes it panic. `paceline-testkit verdicts` and `paceline-testkit hostile` run any number.

use std::sync::Arc;

use fastrand::Rng;
use paceline::{Burst, FrameMeta, Host, Object, Program};
use paceline_isa::{AluOp, Condition, Insn, Operand, Reg, Width, encode_all};
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};
use paceline_testkit::kernel;
use paceline_testkit::random::{Purpose, candidate};
use paceline_testkit::verdict::{Judge, States, Witness, arbitrary, mutated};
use paceline_verifier::{Options, verify};

/// The judge creates maps in the kernel as well.
fn judge(test: &str) -> Option<Judge> {
    kernel::available_for(test).then(|| Judge::new().expect("small maps"))
}

#[test]
fn accepted_programs_stay_within_what_was_said_of_them() {
    let Some(mut judge) = judge("accepted_programs_stay_within_what_was_said_of_them") else { return };
    judge.limit(20_000);
    let mut compared = 0;
    for seed in 0..1200 {
        let Some(program) = candidate(seed, Purpose::Verdict).program() else { continue };
        match judge.run(&program, &mut Rng::with_seed(seed), 3) {
            Ok(ran) => compared += u32::from(ran.compared),
            Err(fault) => {
                panic!("paceline-testkit verdicts --no-kernel --limit 20000 --seed {seed} --count 1: {fault}")
            }
        }
    }
    assert!(compared > 800, "only {compared} of 1200 were accepted and compared");
}

#[test]
fn arbitrary_instructions_are_judged() {
    let Some(mut judge) = judge("arbitrary_instructions_are_judged") else { return };
    for seed in 0..20_000 {
        let program = arbitrary(&mut Rng::with_seed(seed));
        judge.run(&program, &mut Rng::with_seed(seed), 1).unwrap_or_else(|fault| {
            panic!("paceline-testkit hostile --seed {seed} --count 1: {fault}");
        });
    }
}

#[test]
fn changed_objects_are_judged() {
    if !kernel::available_for("changed_objects_are_judged") {
        return;
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/firewall.o");
    let object = Object::open(path).expect("an example");
    let mut judge = Judge::over(object.maps().to_vec()).expect("its maps");
    judge.limit(20_000);
    let mut accepted = 0;
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        for program in object.programs() {
            let program = mutated(program, &mut rng);
            let ran = judge.run(&program, &mut rng, 1).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
            accepted += ran.runs;
        }
    }
    assert!(accepted > 0, "some changes do no harm");
}

/// `r0 = imm; if r0 > 5 goto +0; exit`
fn program(imm: i32) -> ProgramSpec {
    let insns = [
        Insn::Alu { width: Width::W64, op: AluOp::Mov, dst: Reg::R0, src: Operand::Imm(imm) },
        Insn::JumpIf {
            width: Width::W64,
            condition: Condition::Gt,
            dst: Reg::R0,
            src: Operand::Imm(5),
            offset: 0,
        },
        Insn::Exit,
    ];
    let slots = encode_all(&insns).expect("good instructions");
    ProgramSpec::new("p", ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false }, slots)
}

/// Runs the second program with the verifier's facts and states of the first.
fn run_as(said: &ProgramSpec, run: &ProgramSpec, with_states: bool) -> Result<u64, String> {
    let verified = verify(said, &[], None, &Options::default()).expect("a good program");
    let states = if with_states { States::of(said, &[], None).expect("a good program") } else { None };
    let witness = Witness::new(&verified, states, &[]);
    let program = Program::new(Arc::new(run.clone()), Vec::new()).expect("a good program");
    let mut burst = Burst::new(1);
    burst.push(&[0; 64], FrameMeta::default()).expect("a short packet");
    witness.run(&program, &mut burst, &mut Host::default())
}

#[test]
fn a_wrong_state_and_a_wrong_fact_are_found() {
    assert_eq!(run_as(&program(1), &program(1), true), Ok(3));
    let wrong_state = run_as(&program(1), &program(2), true).expect_err("r0 is 2, not 1");
    assert!(wrong_state.starts_with("instruction 1: in none of 1 states"), "{wrong_state}");
    let wrong_fact = run_as(&program(1), &program(6), false).expect_err("the jump is taken");
    assert_eq!(wrong_fact, "instruction 1: jumps, which was found impossible");
    assert_eq!(run_as(&program(1), &program(2), false), Ok(3));
}
