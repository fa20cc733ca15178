//! Our engines with one feature changed, to measure that feature.

use std::error::Error;

use paceline::{Engine, FrameMut, Host, LoadOptions, Object, Program};

use super::contender::{Contender, Role, each};
use super::measure::measure;
use super::packets::Packets;
use super::workload::OBJECT;
use crate::report::{Bar, Figure, Row};
use crate::settings::{CONTENDERS, Rows, Settings};

/// The program for the comparison of prologues.
const XDP1: &str = "xdp1_program";

/// Copies of each program at different addresses: rounds use them in turn, so that the best round has the best address, and
/// the median one an average address.
const COPIES: usize = 8;

/// A lean prologue against one that saves all callee-saved registers, on a program like the kernel's sample xdp1.
pub(super) fn prologue(settings: Settings) -> Rows {
    if !Engine::Jit.is_available() {
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    for mut packets in [Packets::hit()?, Packets::few()?] {
        let mut contenders = xdp1()?;
        let times = measure(settings, XDP1, &mut packets.frames(), &mut contenders)?;
        let figure = Figure::Time { ours: times[0], against: Some(times[1]) };
        let name = format!("xdp1, drop, {}, {}", packets.name, contenders[0].name);
        rows.push(Row::new(name, &contenders[1].name, figure).with_bar(Some(Bar::Ratio(1.15))));
    }
    Ok(rows)
}

/// Both variants, with their copies interleaved in memory.
fn xdp1<'a>() -> Result<[Contender<'a>; 2], Box<dyn Error>> {
    let object = Object::parse(OBJECT)?;
    let collection = object.load(&LoadOptions::default().cpus(CONTENDERS))?;
    let spec = object.programs().iter().find(|program| program.name == XDP1).ok_or("no such program")?;
    let (verified, maps) = (object.verify(spec)?, collection.maps().to_vec());
    let (mut lean, mut full) = (Vec::new(), Vec::new());
    for _ in 0..COPIES {
        lean.push(Program::load(&verified, maps.clone(), Engine::Jit)?);
        full.push(Program::load_with_settings(&verified, maps.clone(), |settings| {
            settings.full_prologue = true
        })?);
    }
    Ok([in_turn("jit", lean), in_turn("jit with a full prologue", full)])
}

/// Runs all packets of a round on one copy, and those of the next round on the next copy.
fn in_turn<'a>(name: &str, mut programs: Vec<Program>) -> Contender<'a> {
    let (mut host, mut round) = (Host::default(), 0);
    let run = move |frames: &mut [FrameMut<'_>], count: usize| {
        round += 1;
        programs.rotate_left(1);
        let Some(program) = programs.first() else { return 0 };
        each(round, frames, count, |frame| program.run_raw(frame, &mut host).unwrap_or(u64::MAX))
    };
    Contender::looping(name, Role::Ours(Engine::Jit), run)
}
