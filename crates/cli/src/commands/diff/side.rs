//! One of the two sides: a program or chain with maps of its own.

use std::ffi::OsString;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use paceline::explain::{ChainExplainer, ChainExplanation, Packet};
use paceline::{Burst, Engine, Host, Redirect, RedirectTarget, TimeSource, Verdict};

use super::args::DiffArgs;
use super::packets::InputPacket;
use crate::chain::{LoadHow, SourceArgs};
use crate::common::failure::{CommandError, Failure};
use crate::object::Opener;
use crate::subject::Subject;
use crate::world::World;

/// Random numbers of both sides, where no seed is given: they must be the same.
const SEED: u64 = 1;

/// A run of one side ended with a fault, which no verified program causes.
#[derive(Debug, thiserror::Error)]
#[error("{name}: packet {packet}: {fault}")]
struct SideFault {
    name: String,
    packet: usize,
    fault: paceline::Fault,
}

impl CommandError for SideFault {}

/// Makes a side, as often as one is needed.
#[derive(Clone)]
pub(super) struct SideMaker<'a> {
    target: OsString,
    engine: Engine,
    args: &'a DiffArgs,
    opener: Rc<Opener>,
}

/// What became of a packet on one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) verdict: Verdict,
    /// The target in words, which are the same for equal targets of different maps.
    pub(super) redirect: Option<String>,
    pub(super) bytes: Vec<u8>,
    pub(super) events: Vec<(String, Vec<u8>)>,
}

/// Receives the events of a side.
type Received = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A program or chain, with the packets it ran.
pub(super) struct Side {
    pub(super) subject: Subject,
    host: Host,
    ingress: u32,
    queue: u16,
    events: Received,
    burst: Burst,
}

impl<'a> SideMaker<'a> {
    pub(super) fn new(target: &OsString, engine: Option<Engine>, args: &'a DiffArgs) -> Self {
        let engine = if args.unverified { Engine::Plain } else { engine.unwrap_or_else(Engine::best) };
        Self { target: target.clone(), engine, args, opener: Rc::new(Opener::new(&args.object)) }
    }

    /// For messages.
    pub(super) fn name(&self) -> String {
        self.target.to_string_lossy().into_owned()
    }

    pub(super) fn make(&self) -> Result<Side, Failure> {
        let how = LoadHow {
            budget: paceline::DEFAULT_BUDGET,
            engine: self.engine,
            unverified: self.args.unverified,
            restore: None,
            opener: Rc::clone(&self.opener),
            cpus: 1,
        };
        let source = SourceArgs::of(vec![self.target.clone()], self.args.object.clone());
        let subject = Subject::load(&source, &how)?;
        let mut world = self.args.world.clone();
        world.seed = world.seed.or(Some(SEED));
        let world = World::new(&world)?;
        let mut host = world.host(TimeSource::Packets);
        host.set_trace(std::io::sink());
        let events = Received::default();
        let sink = Arc::clone(&events);
        host.set_events(Box::new(move |event| {
            let event = (event.map.to_owned(), event.data.to_vec());
            sink.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        }));
        let (ingress, queue) = (world.ingress.unwrap_or(0), self.args.world.rx_queue);
        Ok(Side { subject, host, ingress, queue, events, burst: Burst::new(1) })
    }
}

impl Side {
    /// Runs a packet, of a number from 0.
    pub(super) fn run(&mut self, number: usize, packet: &InputPacket) -> Result<Fate, Failure> {
        self.burst.clear();
        // It was in a burst before.
        if self.burst.push(&packet.bytes, packet.meta).is_ok() {
            self.burst.frame_mut(0).set_ingress(self.ingress, self.queue);
            self.host.arrive(&self.burst);
            let run = self.subject.run_burst(&mut self.burst, &mut self.host);
            let name = || self.subject.name.clone();
            run.map_err(|fault| SideFault { name: name(), packet: number + 1, fault: *fault.fault })?;
            // Timers that are due fire before the next packet.
            let _ = self.host.fire_timers();
        }
        Ok(self.fate())
    }

    fn fate(&mut self) -> Fate {
        let mut events = std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner));
        for map in self.subject.maps() {
            if let Some(ring) = map.ring_buffer() {
                ring.consume(|data| events.push((map.spec().name.clone(), data.to_vec())));
            }
        }
        let frame = self.burst.frame(0);
        let redirect = frame.redirect().filter(|_| frame.verdict() == Verdict::Redirect);
        let redirect = redirect.map(|redirect| self.target(redirect));
        Fate { verdict: frame.verdict(), redirect, bytes: frame.packet().to_vec(), events }
    }

    fn target(&self, redirect: Redirect) -> String {
        match redirect.target {
            RedirectTarget::Interface { ifindex } => format!("interface {ifindex}"),
            RedirectTarget::Map { map, key } => {
                let name =
                    self.subject.maps().find(|known| known.id() == map).map(|map| map.spec().name.clone());
                format!("{}[{key}]", name.unwrap_or_default())
            }
        }
    }

    /// Runs the packets with explanations of those that are wanted, on the plain interpreter.
    pub(super) fn explain(
        mut self,
        packets: &[InputPacket],
        wanted: &[usize],
    ) -> Vec<(usize, ChainExplanation)> {
        let mut explainer: ChainExplainer = self.subject.explainer();
        let mut explained = Vec::new();
        let last = wanted.last().copied().unwrap_or(0);
        for (number, packet) in packets.iter().enumerate().take(last + 1) {
            let packet = Packet {
                bytes: &packet.bytes,
                metadata: &[],
                meta: packet.meta,
                ingress: self.ingress,
                queue: self.queue,
            };
            if wanted.binary_search(&number).is_ok() {
                explained.extend(explainer.explain(&packet, &mut self.host).ok().map(|e| (number, e)));
            } else {
                // A packet that no frame holds runs on neither side.
                let _ = explainer.run(&packet, &mut self.host);
            }
            let _ = self.host.fire_timers();
        }
        explained
    }
}
