//! Cost of a call of one of many programs (`dispatcher`): the table in the kernel's patches for the BPF dispatcher.
//!
//! Loops in machine code call a program that drops, for each frame of a burst, and store the verdict: by a direct call, an
//! indirect call, a retpoline, or a dispatcher. They differ only in the call. The table ends with calls through the
//! library's API, from Rust.

mod library;
#[cfg(target_arch = "x86_64")]
mod loops;

use std::error::Error;

use paceline::{Burst, CallSite, Fallback, FrameMeta, LoadOptions, Object, Target};

use crate::engines::OBJECT;
use crate::measure::{Timing, Work, rounds};
use crate::report::{Bar, Figure, Matrix, Report, Row};
use crate::{Settings, Table};

/// Rounds of a full measurement.
const ROUNDS: usize = 41;
/// Packets per round.
const PACKETS: usize = 1 << 19;
/// Consecutive bursts of a program before the next program's turn.
const TURN: usize = 16;
/// Frames of the burst.
const FRAMES: usize = 64;

/// Numbers of entries of the dispatchers, the kernel's 1 to 16 first.
const ENTRIES: [usize; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 32, 64, 256, 1024];
/// Entries of the kernel's dispatcher when it is full.
const FULL: usize = 16;

pub(crate) fn table(settings: Settings) -> Table {
    let targets = targets(ENTRIES[ENTRIES.len() - 1] + 1)?;
    let mut report = Report { matrix: Some(Matrix::default()), ..Report::default() };
    #[cfg(target_arch = "x86_64")]
    compared(settings, &targets, &mut report)?;
    report.rows.extend(library::rows(settings, &targets)?);
    Ok(report)
}

/// Different programs that drop.
fn targets(count: usize) -> Result<Vec<Target>, Box<dyn Error>> {
    let object = Object::parse(OBJECT)?;
    let collection = object.load(&LoadOptions::default())?;
    let program = || Ok(Target::from(collection.program(Some("drop_program"))?.program()));
    (0..count).map(|_| program()).collect()
}

fn burst() -> Result<Burst, Box<dyn Error>> {
    let mut burst = Burst::new(FRAMES);
    for _ in 0..FRAMES {
        burst.push(&[0; 64], FrameMeta::default())?;
    }
    Ok(burst)
}

/// A site with the first targets.
fn site(targets: &[Target], fallback: Fallback) -> Result<CallSite, Box<dyn Error>> {
    let site = CallSite::new(fallback);
    targets.iter().try_for_each(|target| site.update(None, Some(target)))?;
    Ok(site)
}

fn measure(settings: Settings, works: &mut [Work<'_>]) -> Result<Vec<Timing>, Box<dyn Error>> {
    rounds(if settings.smoke { 0 } else { ROUNDS }, works)
}

/// Bursts per round.
fn bursts(settings: Settings, entries: usize) -> usize {
    if settings.smoke { TURN * entries } else { PACKETS / FRAMES }
}

#[cfg(target_arch = "x86_64")]
fn compared(settings: Settings, targets: &[Target], report: &mut Report) -> Result<(), Box<dyn Error>> {
    use loops::{Call, Looped};
    let mut sixteen = None;
    for entries in ENTRIES {
        let chosen = &targets[..entries];
        let looped = Looped::new(targets, entries)?;
        let times = looped.measure(settings, chosen, &Call::ALL)?;
        let matrix = report.matrix.get_or_insert_default();
        matrix.column(entries.to_string());
        Call::ALL.iter().zip(&times).for_each(|(call, &timing)| matrix.set(call.name(), timing));
        let [direct, _, retpoline, dispatcher, ..] = times[..] else {
            return Err("a call is missing".into());
        };
        if entries <= FULL {
            let name = format!("dispatcher of {entries}, more than a direct call");
            let more = Figure::Time { ours: dispatcher.minus(direct), against: None };
            let (bar, reach) = (Some(Bar::Most(1.0)), Some(Bar::Most(0.3)));
            report.rows.push(Row { reach, ..Row::new(name, "", more).with_bar(bar) });
        }
        let against = Figure::Time { ours: dispatcher, against: Some(retpoline) };
        let name = format!("dispatcher of {entries}");
        let asked = (entries <= FULL).then_some(Bar::Ratio(1.4));
        let reach = asked.map(|_| Bar::Ratio(3.0));
        report.rows.push(Row { reach, ..Row::new(name, Call::Retpoline.name(), against).with_bar(asked) });
        match (entries, sixteen) {
            (FULL, _) => sixteen = Some(dispatcher),
            (256, Some(sixteen)) => {
                let figure = Figure::Time { ours: dispatcher, against: Some(sixteen) };
                let row = Row::new("dispatcher of 256", "dispatcher of 16", figure);
                let reach = Some(Bar::Ratio(1.0 / 1.2));
                report.rows.push(Row { reach, ..row.with_bar(Some(Bar::Ratio(1.0 / 1.5))) });
            }
            _ => {}
        }
    }
    full(settings, targets, report)
}

/// The last row of the kernel's table: a program that has no slot in a full dispatcher.
#[cfg(target_arch = "x86_64")]
fn full(settings: Settings, targets: &[Target], report: &mut Report) -> Result<(), Box<dyn Error>> {
    use loops::{Call, Looped};
    let looped = Looped::new(targets, FULL)?;
    let others = &targets[FULL..=FULL];
    let times = looped.measure(settings, others, &Call::ALL)?;
    let matrix = report.matrix.get_or_insert_default();
    matrix.column("full");
    Call::ALL.iter().zip(&times).for_each(|(call, &timing)| matrix.set(call.name(), timing));
    let [_, indirect, retpoline, plain, hardened] = times[..] else { return Err("a call is missing".into()) };
    for (what, missed, bare) in [("an indirect call", plain, indirect), ("a retpoline", hardened, retpoline)]
    {
        let figure = Figure::Time { ours: missed.minus(bare), against: None };
        let name = format!("not among the {FULL} of a dispatcher, more than {what}");
        let reach = Some(Bar::Most(0.0));
        report.rows.push(Row { reach, ..Row::new(name, "", figure).with_bar(Some(Bar::Most(2.0))) });
    }
    Ok(())
}
