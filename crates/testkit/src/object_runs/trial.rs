//! All comparisons of one program: both verdicts, and the results of runs.

use std::time::{Duration, Instant};

use paceline_verifier::Verified;

use super::kernel::on_kernel;
use super::observation::Trial;
use super::ours::{is_pure, on_engine};
use crate::AnyEngine;
use crate::compare::Stopped;
use crate::kernel::LoadError;

/// The engines in the order of comparison: the checking engine first.
pub const ENGINES: [AnyEngine; 4] =
    [AnyEngine::Plain, AnyEngine::Threaded, AnyEngine::CheckedJit, AnyEngine::Jit];

/// Our verdict.
#[derive(Debug)]
pub struct OurVerdict {
    /// The verified program, or the refusal.
    pub verified: Result<Verified, String>,
    /// Time of verification.
    pub time: Duration,
}

/// The kernel's verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelVerdict {
    /// It accepts the program.
    Accepted,
    /// It refuses the program, with its reason.
    Refused(String),
    /// It refuses a map or the types.
    NotAsked(String),
}

/// Both verdicts.
#[derive(Debug)]
pub struct Verdicts {
    /// Ours.
    pub ours: OurVerdict,
    /// The kernel's, if the kernel is available.
    pub kernel: Option<KernelVerdict>,
}

/// Result of a trial.
#[derive(Debug)]
pub struct Findings {
    /// Verdicts.
    pub verdicts: Verdicts,
    /// The first difference: names of the two sides, and what differs.
    pub difference: Option<(String, String)>,
    /// Whether the difference is real, and not caused by addresses or uninitialized memory, which C programs with undefined
    /// behavior depend on.
    pub pure: bool,
    /// Engines that refuse the accepted program, with the reason.
    pub not_taken: Vec<(String, String)>,
}

/// Verifies a program, and if both verdicts accept it, runs it on all engines, alone and in bursts, and in the kernel.
#[must_use]
pub fn try_program(trial: &Trial<'_>, kernel: bool) -> Findings {
    let spec = trial.object.programs().iter().find(|spec| spec.name == trial.program);
    let start = Instant::now();
    let verified = match spec {
        Some(spec) => trial.object.verify(spec).map_err(|refused| refused.refusal.to_string()),
        None => Err("no such program".to_owned()),
    };
    let ours = OurVerdict { verified, time: start.elapsed() };
    let run = kernel.then(|| on_kernel(trial, ours.verified.is_ok()));
    let (kernel, kernel_run) = match run {
        None => (None, None),
        Some(Ok(run)) => (Some(KernelVerdict::Accepted), run.ran),
        // Refused targets of tail calls are not this program's refusal.
        Some(Err(LoadError::Program { name, error })) if name == trial.program => {
            let reason = format!("{}: {}", error.errno, error.reason());
            (Some(KernelVerdict::Refused(reason)), None)
        }
        Some(Err(error)) => (Some(KernelVerdict::NotAsked(error.to_string())), None),
    };
    let mut findings =
        Findings { verdicts: Verdicts { ours, kernel }, difference: None, pure: true, not_taken: Vec::new() };
    let Ok(verified) = &findings.verdicts.ours.verified else { return findings };
    match compare(trial, verified, kernel_run) {
        Ok(not_taken) => findings.not_taken = not_taken,
        Err(difference) => {
            findings.pure = is_pure(trial, verified);
            findings.difference = Some(difference);
        }
    }
    findings
}

type Reasons = Vec<(String, String)>;

fn compare(
    trial: &Trial<'_>,
    verified: &Verified,
    kernel_run: Option<Result<super::observation::Observation, Stopped>>,
) -> Result<Reasons, (String, String)> {
    let mut not_taken = Vec::new();
    let mut reference = None;
    let mut taken = None;
    let ours = trial
        .engines
        .iter()
        .copied()
        .filter(|engine| engine.is_available())
        .flat_map(|engine| [(engine, false), (engine, true)])
        .filter(|way| *way != (AnyEngine::Plain, true));
    let ours = ours.map(|(engine, bursts)| {
        let name = format!("{engine}{}", if bursts { " in bursts" } else { "" });
        (name, on_engine(trial, verified, engine, bursts))
    });
    let kernel = kernel_run.map(|run| ("kernel".to_owned(), run));
    for (name, ran) in kernel.into_iter().chain(ours) {
        let is_ours = name != "kernel";
        match (&ran, &taken) {
            // All engines support the same programs: a refusal is a failure.
            (Err(Stopped::Refused(reason)), Some(other)) if is_ours => {
                return Err((name, format!("refuses what {other} takes: {reason}")));
            }
            (Ok(_), None) if is_ours => taken = Some(name.clone()),
            _ => {}
        }
        match (ran, &reference) {
            (Err(Stopped::Refused(reason)), _) => not_taken.push((name, reason)),
            // An accepted program must not fault.
            (Err(stopped), _) => return Err((name, stopped.to_string())),
            (Ok(observation), None) => reference = Some((name, observation)),
            (Ok(observation), Some((other, expected))) => {
                if let Some(text) = expected.difference(&observation, [other, &name], trial) {
                    return Err((format!("{other} and {name}"), text));
                }
            }
        }
    }
    Ok(not_taken)
}
