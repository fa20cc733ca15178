//! Our own engines with one thing otherwise: what that thing is worth.

use std::error::Error;

use paceline::{FrameMut, Host, LoadOptions, Object, Program};

use super::contender::{Contender, Role};
use super::packets::Packets;
use super::{Engine, OBJECT, measure};
use crate::report::{Bar, Figure, Row};
use crate::{Rows, Settings};

/// The program that the prologues are measured on.
const XDP1: &str = "xdp1_program";

/// A lean prologue against one that saves everything, on a program like the kernel's sample xdp1.
pub(super) fn prologue(settings: Settings) -> Rows {
    if !Engine::Jit.is_available() {
        return Ok(Vec::new());
    }
    let mut packets = Packets::hit()?;
    let mut contenders = vec![xdp1("jit", false)?, xdp1("jit with a full prologue", true)?];
    let times = measure(settings, XDP1, &mut packets.frames(), &mut contenders)?;
    let figure = Figure::Time { ours: times[0], against: Some(times[1]) };
    let name = format!("xdp1, drop, {}, {}", packets.name, contenders[0].name);
    Ok(vec![Row::new(name, &contenders[1].name, figure).with_bar(Some(Bar::Ratio(1.15)))])
}

fn xdp1<'a>(name: &str, full_prologue: bool) -> Result<Contender<'a>, Box<dyn Error>> {
    let object = Object::parse(OBJECT)?;
    let collection = object.load(&LoadOptions::default())?;
    let spec = object.programs.iter().find(|program| program.name == XDP1).ok_or("no such program")?;
    let (verified, maps) = (object.verify(spec)?, collection.maps().to_vec());
    let program = if full_prologue {
        Program::load_with_settings(&verified, maps, |settings| settings.full_prologue = true)?
    } else {
        Program::load(&verified, maps, Engine::Jit)?
    };
    let mut host = Host::default();
    let run = move |frame: &mut FrameMut<'_>| program.run(frame, &mut host).unwrap_or(u64::MAX);
    Ok(Contender::new(name, Role::Ours(Engine::Jit), run))
}
