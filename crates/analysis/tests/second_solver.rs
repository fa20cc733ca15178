//! What the solver refutes and how it simplifies, by another solver: Z3, which has nothing in common with it but SMT-LIB's definitions.
//! `PACELINE_TERMS` sets the number of pools of random terms, 60 by default.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use paceline_analysis::solver::{Term, Terms, smt_lib};
use paceline_analysis::symbolic::{Options, explore};
use paceline_object::Object;

/// Milliseconds for each question.
const TIMEOUT: u32 = 4000;

/// The answers of Z3 to scripts, each on its own: `sat`, `unsat` or `unknown`. `None` without Z3, which is said.
fn answers(test: &str, scripts: &[String]) -> Option<Vec<String>> {
    let mut command = Command::new("z3");
    let started = command.arg("-in").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut z3) = started else {
        assert!(std::env::var("PACELINE_REQUIRE_ALL").as_deref() != Ok("1"), "there is no z3");
        eprintln!("SKIP {test}: there is no z3");
        return None;
    };
    let mut input = z3.stdin.take().expect("piped");
    let text: String = scripts.iter().map(|script| format!("(push)\n{script}(check-sat)\n(pop)\n")).collect();
    let writer = std::thread::spawn(move || {
        let begin = format!("(set-option :timeout {TIMEOUT})\n(set-logic QF_BV)\n");
        input.write_all(format!("{begin}{text}(exit)\n").as_bytes())
    });
    let output = z3.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("it reads");
    let lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), scripts.len(), "{lines:?}");
    Some(lines)
}

/// Asserts that Z3 refutes all scripts, but for a few that take it too long.
fn refuted(test: &str, scripts: &[String]) {
    let Some(answers) = answers(test, scripts) else { return };
    for (script, answer) in scripts.iter().zip(&answers) {
        assert!(answer == "unsat" || answer == "unknown", "{answer}:\n{script}");
    }
    let unknown = answers.iter().filter(|answer| *answer == "unknown").count();
    eprintln!("{test}: {} questions, {unknown} not answered in {TIMEOUT} ms", scripts.len());
    assert!(scripts.len() > 20 && unknown * 20 <= scripts.len(), "{unknown} of {}", scripts.len());
}

#[test]
fn what_is_refuted_on_the_paths_of_programs_is_refuted_by_z3() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut scripts = Vec::new();
    for name in ["firewall", "protocols", "sampler", "vlan", "counter", "balancer", "steering"] {
        let bytes = std::fs::read(examples.join(format!("{name}.o"))).expect("an example");
        let object = Object::parse(&bytes).expect("an object");
        for program in &object.programs {
            let options = paceline_verifier::Options::default();
            let verified = paceline_verifier::verify(program, &object.maps, object.btf.as_deref(), &options);
            let verified = verified.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
            let options = Options { time: Duration::from_secs(5), refutations: 200, ..Options::default() };
            scripts.extend(explore(&verified, &object.maps, &options, &mut |_| {}).refutations);
        }
    }
    refuted("what_is_refuted_on_the_paths_of_programs_is_refuted_by_z3", &scripts);
}

/// A term, and its definition as text.
#[derive(Clone)]
struct Defined {
    term: Term,
    text: String,
    width: u32,
}

/// Random terms beside their definitions, which are made of the definitions of their operands: nothing in them is simplified.
struct Maker {
    random: fastrand::Rng,
    terms: Terms,
    known: Vec<Defined>,
}

impl Maker {
    fn new(seed: u64) -> Self {
        let mut maker =
            Self { random: fastrand::Rng::with_seed(seed), terms: Terms::new(), known: Vec::new() };
        for width in [1, 4, 8, 8, 16] {
            let term = maker.terms.var(width);
            let text = format!("v{}", maker.known.len());
            maker.known.push(Defined { term, text, width });
        }
        maker
    }

    fn constant(&mut self, width: u32) -> Defined {
        let most = u64::MAX >> (64 - width);
        let value = match self.random.u8(..4) {
            0 => 0,
            1 => most,
            2 => 1 << self.random.u32(..width),
            _ => self.random.u64(..) & most,
        };
        let term = self.terms.constant(width, value);
        Defined { term, text: format!("(_ bv{value} {width})"), width }
    }

    /// A term of a width.
    fn of_width(&mut self, width: u32) -> Defined {
        let same: Vec<usize> = (0..self.known.len()).filter(|at| self.known[*at].width == width).collect();
        match self.random.choice(&same) {
            Some(&at) if self.random.u8(..4) != 0 => self.known[at].clone(),
            _ => self.constant(width),
        }
    }

    fn step(&mut self) {
        let a = self.known[self.random.usize(..self.known.len())].clone();
        let b = self.of_width(a.width);
        let c = self.of_width(a.width);
        let (t, w) = (&mut self.terms, a.width);
        let both = |name: &str| format!("({name} {} {})", a.text, b.text);
        let bit = |name: &str| format!("(ite ({name} {} {}) #b1 #b0)", a.text, b.text);
        let (term, text, width) = match self.random.u8(..24) {
            0 => (t.add(a.term, b.term), both("bvadd"), w),
            1 => (t.sub(a.term, b.term), both("bvsub"), w),
            2 if w <= 8 => (t.mul(a.term, b.term), both("bvmul"), w),
            3 if w <= 8 => (t.udiv(a.term, b.term), both("bvudiv"), w),
            4 if w <= 8 => (t.urem(a.term, b.term), both("bvurem"), w),
            5 | 6 => (t.and(a.term, b.term), both("bvand"), w),
            7 | 8 => (t.or(a.term, b.term), both("bvor"), w),
            9 => (t.xor(a.term, b.term), both("bvxor"), w),
            10 => (t.not(a.term), format!("(bvnot {})", a.text), w),
            11 => (t.neg(a.term), format!("(bvneg {})", a.text), w),
            12 => (t.shl(a.term, b.term), both("bvshl"), w),
            13 => (t.lshr(a.term, b.term), both("bvlshr"), w),
            14 => (t.ashr(a.term, b.term), both("bvashr"), w),
            15 => (t.eq(a.term, b.term), bit("="), 1),
            16 => (t.ult(a.term, b.term), bit("bvult"), 1),
            17 => (t.ule(a.term, b.term), bit("bvule"), 1),
            18 => (t.slt(a.term, b.term), bit("bvslt"), 1),
            19 => (t.sle(a.term, b.term), bit("bvsle"), 1),
            20 => {
                let low = self.random.u32(..w);
                let width = self.random.u32(1..=w - low);
                let text = format!("((_ extract {} {low}) {})", low + width - 1, a.text);
                (t.extract(a.term, low, width), text, width)
            }
            21 if w <= 16 => {
                let more = self.random.u32(1..=8);
                let text = format!("((_ zero_extend {more}) {})", a.text);
                (t.resize(a.term, w + more), text, w + more)
            }
            22 if w <= 16 => {
                let more = self.random.u32(1..=8);
                let text = format!("((_ sign_extend {more}) {})", a.text);
                (t.sign_extend(a.term, w + more), text, w + more)
            }
            _ => {
                let condition = self.of_width(1);
                let text = format!("(ite (= {} #b1) {} {})", condition.text, b.text, c.text);
                (self.terms.ite(condition.term, b.term, c.term), text, w)
            }
        };
        // Definitions are written out, so that long ones are left.
        if text.len() < 2000 {
            self.known.push(Defined { term, text, width });
        }
    }
}

#[test]
fn simplified_terms_are_their_definitions_by_z3() {
    let mut scripts = Vec::new();
    let pools = std::env::var("PACELINE_TERMS").map_or(60, |count| count.parse().expect("a number"));
    for seed in 0..pools {
        let mut maker = Maker::new(seed);
        (0..60).for_each(|_| maker.step());
        let last: Vec<Defined> = maker.known.iter().rev().take(5).cloned().collect();
        for Defined { term, text, width } in last {
            // The simplified term, as a condition that it differs from a variable of its width.
            let result = maker.terms.var(width);
            let same = maker.terms.eq(term, result);
            let simplified = smt_lib(&maker.terms, &[same]);
            let variables: String = maker.known[..5]
                .iter()
                .filter(|known| !simplified.contains(&format!("(declare-const {} ", known.text)))
                .map(|known| format!("(declare-const {} (_ BitVec {}))\n", known.text, known.width))
                .collect();
            let number = maker.terms.support(result).first().expect("a variable").number();
            if simplified.contains(&format!("(declare-const v{number} ")) {
                scripts.push(format!("{variables}{simplified}(assert (distinct v{number} {text}))\n"));
            }
        }
    }
    refuted("simplified_terms_are_their_definitions_by_z3", &scripts);
}
