//! A program that is measured.

use std::time::Duration;

use paceline::measure::{Manner, MeasureError, Packet, Room, Times, rounds};
use paceline::scenario::Origin;
use paceline::{Burst, BurstFault, Engine, Host};

use crate::chain::{LoadHow, SourceArgs};
use crate::common::capture::CapturedPacket;
use crate::common::failure::Failure;
use crate::subject::Subject;
use crate::world::{ClockArg, World, WorldArgs};

/// A program or chain, with maps of its own.
pub(crate) struct Contender {
    pub(crate) subject: Subject,
    pub(crate) engine: Engine,
    pub(crate) host: Host,
    /// Where packets come from.
    pub(crate) origin: Origin,
}

impl Contender {
    /// Loads what the command line names.
    pub(crate) fn load(
        source: &SourceArgs,
        engine: Option<Engine>,
        unverified: bool,
        world_args: &WorldArgs,
    ) -> Result<Self, Failure> {
        let engine = if unverified { Engine::Plain } else { engine.unwrap_or_else(Engine::best) };
        let how = LoadHow { engine, unverified, ..LoadHow::of(&source.object) };
        let subject = Subject::load(source, &how)?;
        let world = World::with_clock(world_args, ClockArg::System)?;
        let mut host = world.host();
        host.set_trace(std::io::sink());
        Ok(Self { subject, engine, host, origin: world.origin() })
    }

    /// A program of the same type, on the same engine, that returns at once. `None` for a chain.
    pub(crate) fn empty(&self) -> Result<Option<Self>, Failure> {
        let [wanted] = self.subject.programs.as_slice() else { return Ok(None) };
        let subject = Subject::empty(wanted.program.spec().kind, self.engine)?;
        let (engine, origin) = (self.engine, self.origin);
        Ok(Some(Self { subject, engine, host: Host::default(), origin }))
    }

    /// Runs the packets of a burst.
    pub(crate) fn run(&mut self, burst: &mut Burst) -> Result<(), BurstFault> {
        self.subject.run_burst(burst, &mut self.host)
    }

    fn measured(&mut self) -> paceline::measure::Contender<'_> {
        let maps = self.subject.maps().cloned().collect();
        let runner = self.subject.runner();
        paceline::measure::Contender { runner, host: &mut self.host, origin: self.origin, maps }
    }
}

/// The times of contenders over the same packets, in so many rounds of a length.
pub(crate) fn timed<'a>(
    contenders: impl IntoIterator<Item = &'a mut Contender>,
    packets: &[CapturedPacket],
    manner: Manner,
    how: (u32, Duration),
    room: &mut Room,
) -> Result<Times, MeasureError> {
    let mut contenders: Vec<_> = contenders.into_iter().map(Contender::measured).collect();
    let packets: Vec<_> =
        packets.iter().map(|CapturedPacket { bytes, meta }| Packet { bytes, meta: *meta }).collect();
    rounds(&mut contenders, &packets, manner, how, room)
}
