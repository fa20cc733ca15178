//! Runs a case on every engine and reports disagreements.

use std::fmt::Write;

use crate::case::{ByteOrder, Case, Note, NoteKind};
use crate::engine::Engine;
use crate::outcome::{Outcome, Ran, against_case, against_other};

/// Result of a case on all engines.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Failures, each with the engine's name; empty if the case passes.
    pub failures: Vec<String>,
    /// Engines that did not run it, each with the reason.
    pub skipped: Vec<(String, String)>,
    /// The outcomes, each with the engine's name.
    pub outcomes: Vec<(String, Outcome)>,
}

/// Runs a case on all engines and compares the outcomes with the case and with each other.
#[must_use]
pub fn run(case: &Case, engines: &[Box<dyn Engine>]) -> Report {
    let mut report = Report::default();
    // Index of the first outcome of a run.
    let mut reference: Option<usize> = None;
    let concerned =
        |engine: &&dyn Engine| engine.concerns(case) && engine.runs_chains() == case.chain.is_some();
    for engine in engines.iter().map(Box::as_ref).filter(concerned) {
        if let Some(reason) = skip_reason(case, engine) {
            report.skipped.push((engine.name().to_owned(), reason));
            continue;
        }
        let outcome = match engine.run(case) {
            Ok(outcome) => outcome,
            Err(unsupported) => {
                report.skipped.push((engine.name().to_owned(), unsupported.to_string()));
                continue;
            }
        };
        let against = reference.and_then(|index| match &report.outcomes[index] {
            (name, Outcome::Ran(ran)) => Some((name.as_str(), ran)),
            _ => None,
        });
        let failures = judge(case, engine, &outcome, against);
        report.failures.extend(failures);
        if reference.is_none() && matches!(outcome, Outcome::Ran(_)) {
            reference = Some(report.outcomes.len());
        }
        report.outcomes.push((engine.name().to_owned(), outcome));
    }
    report
}

fn judge(
    case: &Case,
    engine: &dyn Engine,
    outcome: &Outcome,
    reference: Option<(&str, &Ran)>,
) -> Vec<String> {
    let mut differences = against_case(case, outcome, engine.verifies());
    if let (Outcome::Ran(ran), Some((other, theirs))) = (outcome, reference)
        && differences.is_empty()
    {
        differences = against_other(case, ran, other, theirs);
    }
    let differs = note_for(case, engine).filter(|note| note.kind == NoteKind::Differs);
    match differs {
        Some(note) if differences.is_empty() => vec![format!(
            "{}: line {}: agrees although the case says that it differs ({})",
            engine.name(),
            case.line,
            note.reason
        )],
        Some(_) => Vec::new(),
        None => differences.iter().map(|d| format!("{}: {d}", engine.name())).collect(),
    }
}

fn skip_reason(case: &Case, engine: &dyn Engine) -> Option<String> {
    if case.runs.is_empty() && !engine.verifies() {
        return Some("verifies nothing".to_owned());
    }
    if case.byte_order.is_some_and(|order| order != ByteOrder::NATIVE) {
        return Some("for machines of the other byte order".to_owned());
    }
    let note = note_for(case, engine)?;
    match note.kind {
        NoteKind::Skip => Some(note.reason.clone()),
        NoteKind::Since(major, minor) if kernel_release()? < (major, minor) => {
            Some(format!("needs kernel {major}.{minor}: {}", note.reason))
        }
        NoteKind::Since(..) | NoteKind::Differs => None,
    }
}

fn note_for<'a>(case: &'a Case, engine: &dyn Engine) -> Option<&'a Note> {
    case.notes.iter().find(|note| engine.answers_to(&note.engine))
}

/// Major and minor number of the running kernel.
fn kernel_release() -> Option<(u32, u32)> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The programs of a case as text.
#[must_use]
pub fn listing(case: &Case) -> String {
    let mut text = String::new();
    for program in &case.programs {
        let _ = writeln!(text, "{}:", program.name);
        for line in paceline_isa::disassemble(&program.insns) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}
