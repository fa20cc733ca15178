//! All of it for one program: both verdicts, and what runs leave.

use std::time::{Duration, Instant};

use paceline::Engine;
use paceline_verifier::Verified;

use super::{Trial, is_pure, on_engine, on_kernel};
use crate::compare::Stopped;
use crate::kernel::LoadError;

/// The engines, in the order in which they are compared: the one that checks everything first.
pub const ENGINES: [Engine; 4] = [Engine::Plain, Engine::Threaded, Engine::CheckedJit, Engine::Jit];

/// What we say of a program.
#[derive(Debug)]
pub struct OurVerdict {
    /// What was proven, or why not.
    pub verified: Result<Verified, String>,
    /// How long it took.
    pub time: Duration,
}

/// What the kernel says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelVerdict {
    /// It takes the program.
    Accepted,
    /// It does not, with its reason.
    Refused(String),
    /// A map, or the types, do not come so far.
    NotAsked(String),
}

/// Both.
#[derive(Debug)]
pub struct Verdicts {
    /// Ours.
    pub ours: OurVerdict,
    /// The kernel's, if it can be asked.
    pub kernel: Option<KernelVerdict>,
}

/// What came of a trial.
#[derive(Debug)]
pub struct Findings {
    /// Verdicts.
    pub verdicts: Verdicts,
    /// The first difference between two that run the program: their names, and what differs.
    pub difference: Option<(String, String)>,
    /// Whether the difference is one of the program's and does not come from addresses or memory that it never wrote:
    /// compilers leave those in what C leaves undefined.
    pub pure: bool,
    /// Engines that do not take the accepted program, and why.
    pub not_taken: Vec<(String, String)>,
}

/// Verifies a program, and runs it on all engines, alone and in bursts, and in the kernel, if both accept it.
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
        // Others that it may tail call are refused for themselves.
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
    kernel_run: Option<Result<super::Observation, Stopped>>,
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
        .filter(|way| *way != (Engine::Plain, true));
    let ours = ours.map(|(engine, bursts)| {
        let name = format!("{engine}{}", if bursts { " in bursts" } else { "" });
        (name, on_engine(trial, verified, engine, bursts))
    });
    let kernel = kernel_run.map(|run| ("kernel".to_owned(), run));
    for (name, ran) in kernel.into_iter().chain(ours) {
        let is_ours = name != "kernel";
        match (&ran, &taken) {
            // All engines take the same programs: one that refuses is at fault.
            (Err(Stopped::Refused(reason)), Some(other)) if is_ours => {
                return Err((name, format!("refuses what {other} takes: {reason}")));
            }
            (Ok(_), None) if is_ours => taken = Some(name.clone()),
            _ => {}
        }
        match (ran, &reference) {
            (Err(Stopped::Refused(reason)), _) => not_taken.push((name, reason)),
            // What was accepted never goes wrong.
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
