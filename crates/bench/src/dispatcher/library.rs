//! Calls through the library's API, from Rust.

use std::cell::RefCell;
use std::error::Error;

use paceline::{Fallback, Host, KeyedSite, LoadOptions, Object, Target};

use super::setup::{FRAMES, FULL, TURN, burst, bursts, measure, site};
use crate::engines::OBJECT;
use crate::measure::Work;
use crate::report::{Bar, Figure, Row};
use crate::settings::{Rows, Settings};

/// Updates per round.
const UPDATES: usize = 64;

pub(super) fn rows(settings: Settings, targets: &[Target]) -> Rows {
    let mut rows = calls(settings, targets)?;
    rows.extend(updates(settings, targets)?);
    Ok(rows)
}

/// Calls through a site with sixteen programs against direct calls of a program.
fn calls(settings: Settings, targets: &[Target]) -> Rows {
    let object = Object::parse(OBJECT)?;
    let program = object.load(&LoadOptions::default())?.program(Some("drop_program"))?.into_program();
    let chosen = &targets[..FULL];
    let by_program = site(chosen, Fallback::Indirect)?;
    let by_key = KeyedSite::by_key();
    for (key, target) in (0..).zip(chosen) {
        by_key.set(key, Some(target))?;
    }
    let passes = bursts(settings, FULL);
    let packets = (passes * FRAMES) as u64;
    let (host, frames) = (RefCell::new(Host::default()), RefCell::new(burst()?));
    let (mut named, mut keyed) = (by_program.caller(), by_key.caller());
    let (mut named_bursts, mut keyed_bursts) = (by_program.caller(), by_key.caller());
    let direct = &program;
    let (host, frames) = (&host, &frames);
    let mut works: Vec<Work<'_>> = vec![
        Box::new(move || {
            let (mut host, mut frames) = (host.borrow_mut(), frames.borrow_mut());
            for _ in 0..passes {
                for mut frame in frames.iter_mut() {
                    direct.run_raw(&mut frame, &mut host)?;
                }
            }
            Ok(packets)
        }),
        Box::new(move || {
            let (mut host, mut frames) = (host.borrow_mut(), frames.borrow_mut());
            for pass in 0..passes {
                let (mut calls, target) = (named.enter(&mut host), &chosen[pass / TURN % FULL]);
                for mut frame in frames.iter_mut() {
                    calls.run_raw(target, &mut frame)?;
                }
            }
            Ok(packets)
        }),
        Box::new(move || {
            let (mut host, mut frames) = (host.borrow_mut(), frames.borrow_mut());
            for pass in 0..passes {
                let (mut calls, key) = (keyed.enter(&mut host), (pass / TURN % FULL) as u64);
                for mut frame in frames.iter_mut() {
                    calls.run_raw(key, &mut frame)?;
                }
            }
            Ok(packets)
        }),
        Box::new(move || {
            let (mut host, mut frames) = (host.borrow_mut(), frames.borrow_mut());
            for _ in 0..passes {
                direct.run_burst(&mut frames, &mut host)?;
            }
            Ok(packets)
        }),
        Box::new(move || {
            let (mut host, mut frames) = (host.borrow_mut(), frames.borrow_mut());
            for pass in 0..passes {
                named_bursts.run_burst(&chosen[pass / TURN % FULL], &mut frames, &mut host)?;
            }
            Ok(packets)
        }),
        Box::new(move || {
            let (mut host, mut frames) = (host.borrow_mut(), frames.borrow_mut());
            for pass in 0..passes {
                keyed_bursts.run_burst((pass / TURN % FULL) as u64, &mut frames, &mut host)?;
            }
            Ok(packets)
        }),
    ];
    let times = measure(settings, &mut works)?;
    let row = |name: &str, against: &str, ours: usize, other: usize| {
        let figure = Figure::Time { ours: times[ours], against: Some(times[other]) };
        Row::new(name, against, figure)
    };
    Ok(vec![
        row("from Rust, call site of 16, single packets", "Program::run", 1, 0),
        row("from Rust, site by key of 16, single packets", "Program::run", 2, 0),
        row("from Rust, call site of 16, bursts, each packet", "Program::run_burst", 4, 3),
        row("from Rust, site by key of 16, bursts, each packet", "Program::run_burst", 5, 3),
    ])
}

/// Replaces a program, at a site with sixteen programs and at one with more.
fn updates(settings: Settings, targets: &[Target]) -> Rows {
    let mut rows = Vec::new();
    for entries in [FULL, 1024] {
        let site = site(&targets[..entries], Fallback::Indirect)?;
        // The additional program replaces each of the others in turn.
        let mut order: Vec<&Target> = targets[..=entries].iter().collect();
        let count = if settings.smoke { 2 } else { UPDATES };
        let update = || -> Result<u64, Box<dyn Error>> {
            for _ in 0..count {
                site.update(Some(order[0]), Some(order[entries]))?;
                order.rotate_left(1);
            }
            Ok(count as u64)
        };
        let times = measure(settings, &mut [Box::new(update)])?;
        let figure = Figure::Time { ours: times[0], against: None };
        let row = Row::new(format!("one update, {entries} entries"), "", figure);
        let (bar, reach) = (Some(Bar::Most(50e3)), Some(Bar::Most(10e3)));
        rows.push(if entries == FULL { Row { reach, ..row.with_bar(bar) } } else { row });
    }
    Ok(rows)
}
