//! A program that is measured.

use paceline::{Burst, BurstFault, Engine, Host, TimeSource};

use crate::chain::{LoadHow, SourceArgs};
use crate::common::capture::CapturedPacket;
use crate::common::failure::Failure;
use crate::subject::Subject;
use crate::world::{World, WorldArgs};

/// A program or chain, with maps of its own.
pub(crate) struct Contender {
    pub(crate) subject: Subject,
    pub(crate) engine: Engine,
    pub(crate) host: Host,
    ingress: u32,
    queue: u16,
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
        let world = World::new(world_args)?;
        let mut host = world.host(TimeSource::System);
        host.set_trace(std::io::sink());
        let (ingress, queue) = (world.ingress.unwrap_or(0), world_args.rx_queue);
        Ok(Self { subject, engine, host, ingress, queue })
    }

    /// Interface and queue that packets come in on.
    pub(crate) fn place(&self) -> (u32, u16) {
        (self.ingress, self.queue)
    }

    /// Fills a burst.
    pub(crate) fn fill<'a>(&self, burst: &mut Burst, packets: impl IntoIterator<Item = &'a CapturedPacket>) {
        burst.clear();
        burst.set_ingress(self.ingress, self.queue);
        for packet in packets {
            // It was in a burst before.
            let _ = burst.push(&packet.bytes, packet.meta);
        }
    }

    pub(crate) fn run(&mut self, burst: &mut Burst) -> Result<(), BurstFault> {
        self.subject.run_burst(burst, &mut self.host)
    }

    /// Empties ring buffers, which programs would find full.
    pub(crate) fn drain(&self) {
        for map in self.subject.maps() {
            if let Some(ring) = map.ring_buffer() {
                ring.consume(|_| {});
            }
        }
    }
}
