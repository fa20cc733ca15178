//! Random programs on the plain interpreter, compared with the kernel, a fixed number.

use paceline_testkit::case::parse_file;
use paceline_testkit::generate::{
    Generated, KernelSubject, Mix, PlainSubject, State, Subject, check, shrink,
};
use paceline_testkit::kernel;

const PROGRAMS: u64 = 3000;

#[test]
fn plain_interpreter_and_kernel_agree() {
    if !kernel::available_for("plain_interpreter_and_kernel_agree") {
        return;
    }
    let mut plain = PlainSubject::new().expect("a small map");
    let mut kernel = KernelSubject::new().expect("a small map");
    // Fixed seeds make failures reproducible; `paceline-testkit fuzz` takes other seeds.
    for seed in 0..PROGRAMS {
        let generated = Generated::new(seed, &Mix::default(), 3);
        if let Err(disagreement) = check(&generated, &mut plain, &mut kernel) {
            panic!("paceline-testkit fuzz --seed {seed} --count 1: {disagreement}");
        }
    }
}

/// An engine with a fault, which must be found.
struct Broken(PlainSubject);

impl Subject for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn run(
        &mut self,
        program: &paceline_spec::ProgramSpec,
        inputs: &[State],
    ) -> Result<Vec<Result<State, String>>, paceline_testkit::generate::Refused> {
        let mut program = program.clone();
        for insn in &mut program.insns {
            // 32-bit signed division instead of unsigned: opcode 0x3c, distinguished by the offset.
            if insn.opcode == 0x3c {
                insn.offset ^= 1;
            }
        }
        self.0.run(&program, inputs)
    }
}

#[test]
fn a_broken_engine_is_found_and_its_program_shrinks() {
    let mut plain = PlainSubject::new().expect("a small map");
    let mut broken = Broken(PlainSubject::new().expect("a small map"));
    let mut fails = |generated: &Generated| check(generated, &mut plain, &mut broken).is_err();
    let large = (0..PROGRAMS).map(|seed| Generated::new(seed, &Mix::default(), 3)).find(&mut fails);
    let small = shrink(&large.expect("some program divides"), fails);
    assert!(small.steps.len() <= 3, "{:?}", small.steps);
    // The printed text is a case for tests/cases.
    let text = small.to_case("division", 0, small.inputs.first());
    let cases = parse_file(&text).expect("a good case");
    assert_eq!(cases[0].programs[0].insns, small.program().insns);
}
