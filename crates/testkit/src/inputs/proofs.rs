//! Random properties, proved or refuted: no random run may refute what is proved.

use std::time::Duration;

use fastrand::Rng;
use paceline::generate::{Confirmed, Input, generate};
use paceline::prove::{Options, Property, holds, prove};
use paceline::{Object, ProgramSpec};

use super::properties::Properties;
use super::trial::{Bench, Done};

/// Properties that are made until one holds for all inputs that are known.
const ATTEMPTS: usize = 20;

/// Paths that are followed for a proof.
const PATHS: u64 = 2000;

/// What became of the properties of a program.
#[derive(Debug, Default)]
pub struct Proofs {
    /// Those that are proved.
    pub proved: usize,
    /// Those of them for which no path was followed.
    pub by_effects: usize,
    /// Those that an input refutes.
    pub refuted: usize,
    /// The others.
    pub unknown: usize,
    /// Random runs, each of which is compared with all that is proved.
    pub runs: u64,
    /// Inputs that were to refute a property and did not, in words.
    pub unconfirmed: Vec<String>,
    /// What is wrong, in words.
    pub wrong: Vec<String>,
}

/// Proves `count` random properties of a program, and makes `trials` random runs, none of which may refute one that is proved.
///
/// # Errors
/// The program cannot be explored; why.
pub fn proofs(
    object: &Object,
    program: &ProgramSpec,
    limit: Duration,
    (count, trials): (usize, usize),
    rng: &mut Rng,
) -> Result<Proofs, String> {
    let options = Options { time: limit, followed: PATHS, ..Options::default() };
    let generated = generate(object, program, &options).map_err(|error| paceline::with_causes(&error))?;
    let known: Vec<Confirmed> = generated.inputs().into_iter().map(|(_, _, input)| input.clone()).collect();
    let words = Properties::new(object, program, &known);
    let (mut proofs, mut proved) = (Proofs::default(), Vec::new());
    for _ in 0..count {
        let (text, property) = candidate(&words, (object, &known), rng)?;
        let proof = prove(object, program, &property, &options, 1, &mut |_| {});
        let proof = proof.map_err(|error| format!("{text}: {error}"))?;
        for input in &proof.unconfirmed {
            proofs.unconfirmed.push(format!("{text}: {input:?}"));
        }
        match (proof.is_proved(), proof.refuting.is_empty()) {
            (true, _) => {
                proofs.proved += 1;
                proofs.by_effects += usize::from(proof.paths == 0);
                proved.push((text, property));
            }
            (false, false) => proofs.refuted += 1,
            (false, true) => proofs.unknown += 1,
        }
    }
    against_runs((object, program), &proved, &known, (trials, rng), &mut proofs);
    Ok(proofs)
}

/// Compares what is proved with runs that are known, and with random ones.
fn against_runs(
    (object, program): (&Object, &ProgramSpec),
    proved: &[(String, Property)],
    known: &[Confirmed],
    (trials, rng): (usize, &mut Rng),
    proofs: &mut Proofs,
) {
    known.iter().for_each(|run| refute(object, proved, run, proofs));
    let Some(bench) = Bench::new(object, program).filter(|_| !proved.is_empty()) else { return };
    let inputs: Vec<Input> = known.iter().map(|run| run.input.clone()).collect();
    for _ in 0..trials {
        let trial = bench.trial(&inputs, rng);
        let Some(done) = bench.run(&trial, true) else { continue };
        proofs.runs += 1;
        let wrong = proofs.wrong.len();
        refute(object, proved, &confirmed(trial.input.clone(), done), proofs);
        if proofs.wrong.len() > wrong {
            proofs.wrong.push(format!("with {trial:?}"));
            return;
        }
    }
}

/// A property that holds for all runs that are known, if one is soon found.
fn candidate(
    words: &Properties<'_>,
    (object, known): (&Object, &[Confirmed]),
    rng: &mut Rng,
) -> Result<(String, Property), String> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let text = words.make(rng);
        // Some numbers are too large for the bytes that they are compared with.
        let Ok(property) = text.parse::<Property>() else { continue };
        let is_wanted = known.iter().all(|run| holds(object, &property, run));
        last = Some((text, property));
        if is_wanted {
            break;
        }
    }
    last.ok_or_else(|| "no property".to_owned())
}

/// Notes the properties that a run refutes.
fn refute(object: &Object, proved: &[(String, Property)], run: &Confirmed, proofs: &mut Proofs) {
    for (text, _) in proved.iter().filter(|(_, property)| !holds(object, property, run)) {
        proofs.wrong.push(format!("proved, and refuted by a run: {text}"));
    }
}

/// A random run in the place of one that was made for a goal.
fn confirmed(input: Input, Done { last, changed, .. }: Done) -> Confirmed {
    Confirmed {
        input,
        verdict: last.outcome.verdict,
        returned: last.outcome.returned,
        bytes: last.outcome.bytes,
        metadata: last.outcome.metadata,
        redirect: None,
        sides: last.sides,
        operations: Default::default(),
        edges: Default::default(),
        last: 0,
        changes: changed.into_iter().map(|map| ((map, Vec::new()), None)).collect(),
        events: Vec::new(),
        traces: Vec::new(),
        handover: None,
    }
}

#[cfg(test)]
mod tests {
    use paceline::ProgramKind;
    use paceline::isa::assemble;
    use paceline_spec::{MapKind, MapSpec, XdpAttach};

    use super::*;

    /// Whether random runs of a program that counts in a map, and returns a byte of the packet, refute a property.
    fn is_refuted(property: &str) -> bool {
        let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
        let text = "
            r2 = *(u32 *)(r1 + 4)
            r1 = *(u32 *)(r1 + 0)
            r3 = r1
            r3 += 15
            r0 = 1
            if r3 > r2 goto out
            r6 = *(u8 *)(r1 + 14)
            *(u32 *)(r10 - 4) = 0
            r2 = r10
            r2 += -4
            r1 = map[0] ll
            call 1
            if r0 == 0 goto out
            r1 = 1
            lock *(u64 *)(r0 + 0) += r1
            r0 = r6
        out:
            exit";
        let code = assemble(text, &()).unwrap();
        let mut object = Object::of_program(ProgramSpec::new("test", kind, code.encode().unwrap()));
        object.specs_mut().maps = vec![MapSpec::new("count", MapKind::Array, 4, 8, 1)];
        let (mut proofs, mut rng) = (Proofs::default(), Rng::with_seed(1));
        let proved = [(property.to_owned(), property.parse().unwrap())];
        against_runs((&object, &object.programs()[0]), &proved, &[], (200, &mut rng), &mut proofs);
        assert!(proofs.runs > 0);
        !proofs.wrong.is_empty()
    }

    #[test]
    fn runs_refute_what_is_false() {
        for property in ["in.len < 1000", "returns < 5", "in.len != 60", "not changes(count)", "out[14] == 0"]
        {
            assert!(is_refuted(property), "{property}");
        }
        for property in
            ["in.len < 15 or returns == in[14]", "in.len < 15 or changes(count)", "out[0:] == in[0:]"]
        {
            assert!(!is_refuted(property), "{property}");
        }
    }
}
