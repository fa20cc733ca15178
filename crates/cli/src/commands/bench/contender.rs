//! A program that is measured.

use std::ffi::OsString;

use paceline::{Burst, BurstFault, Engine, Host, TimeSource};

use super::args::BenchArgs;
use crate::chain::{LoadHow, SourceArgs};
use crate::common::capture::CapturedPacket;
use crate::common::failure::Failure;
use crate::subject::Subject;
use crate::world::World;

/// A program or chain, with maps of its own.
pub(super) struct Contender {
    pub(super) subject: Subject,
    pub(super) engine: Engine,
    pub(super) host: Host,
    ingress: u32,
    queue: u16,
}

impl Contender {
    pub(super) fn load(
        target: Option<&OsString>,
        engine: Option<Engine>,
        args: &BenchArgs,
    ) -> Result<Self, Failure> {
        let engine = if args.unverified { Engine::Plain } else { engine.unwrap_or_else(Engine::best) };
        let how = LoadHow { engine, unverified: args.unverified, ..LoadHow::of(&args.object) };
        let source = SourceArgs::of(target.cloned().into_iter().collect(), args.object.clone());
        let subject = Subject::load(&source, &how)?;
        let world = World::new(&args.world)?;
        let mut host = world.host(TimeSource::System);
        host.set_trace(std::io::sink());
        let (ingress, queue) = (world.ingress.unwrap_or(0), args.world.rx_queue);
        Ok(Self { subject, engine, host, ingress, queue })
    }

    /// Fills a burst.
    pub(super) fn fill<'a>(&self, burst: &mut Burst, packets: impl IntoIterator<Item = &'a CapturedPacket>) {
        burst.clear();
        for packet in packets {
            // It was in a burst before.
            let _ = burst.push(&packet.bytes, packet.meta);
        }
        burst.iter_mut().for_each(|mut frame| frame.set_ingress(self.ingress, self.queue));
    }

    pub(super) fn run(&mut self, burst: &mut Burst) -> Result<(), BurstFault> {
        self.subject.run_burst(burst, &mut self.host)
    }

    /// Empties ring buffers, which programs would find full.
    pub(super) fn drain(&self) {
        for map in self.subject.maps() {
            if let Some(ring) = map.ring_buffer() {
                ring.consume(|_| {});
            }
        }
    }
}
