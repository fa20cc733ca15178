//! Cost of a call of one of many programs (`dispatcher`): the table in the kernel's patches for the BPF dispatcher.
//!
//! Loops in machine code call a program that drops, for each frame of a burst, and store the verdict: by a direct call, an
//! indirect call, a retpoline, or a dispatcher. They differ only in the call. The table ends with calls through the
//! library's API, from Rust.

mod library;
#[cfg(target_arch = "x86_64")]
mod loops;
mod setup;

use std::error::Error;

use paceline::{LoadOptions, Object, Target};
use setup::FULL;

use crate::engines::OBJECT;
use crate::report::{Bar, Figure, Matrix, Report, Row};
use crate::settings::{Settings, Table};

/// Numbers of entries of the dispatchers, the kernel's 1 to 16 first.
const ENTRIES: [usize; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 32, 64, 256, 1024];

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
