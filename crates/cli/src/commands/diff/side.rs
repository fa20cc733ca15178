//! One of the two sides: a program or chain with maps of its own.

use std::ffi::OsString;
use std::rc::Rc;

use paceline::explain::{ChainExplainer, ChainExplanation, Packet};
use paceline::{Engine, Redirect, RedirectTarget, Verdict};

use super::args::DiffArgs;
use crate::chain::{LoadHow, SourceArgs};
use crate::common::capture::CapturedPacket;
use crate::common::failure::{CommandError, Failure};
use crate::object::Opener;
use crate::session::{Outcome, Session, SessionError};
use crate::subject::Subject;
use crate::world::World;

/// Random numbers of both sides, where no seed is given: they must be the same.
const SEED: u64 = 1;

/// A packet cannot be run on one side.
#[derive(Debug, thiserror::Error)]
#[error("{name}: packet {packet}: {source}")]
struct SideError {
    name: String,
    packet: usize,
    source: SessionError,
}

impl CommandError for SideError {}

/// Makes a side, as often as one is needed.
#[derive(Clone)]
pub(super) struct SideMaker<'a> {
    target: OsString,
    engine: Engine,
    args: &'a DiffArgs,
    opener: Rc<Opener>,
}

/// Outcome of a packet on one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) verdict: Verdict,
    /// The target in words, which are the same for equal targets of different maps.
    pub(super) redirect: Option<String>,
    pub(super) bytes: Vec<u8>,
    pub(super) events: Vec<(String, Vec<u8>)>,
}

/// A program or chain, and the interface that packets come in on.
pub(super) struct Side {
    session: Session,
    ingress: u32,
    queue: u16,
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
            engine: self.engine,
            unverified: self.args.unverified,
            opener: Rc::clone(&self.opener),
            ..LoadHow::of(&self.args.object)
        };
        let source = SourceArgs::of(vec![self.target.clone()], self.args.object.clone());
        let subject = Subject::load(&source, &how)?;
        let mut world = self.args.world.clone();
        world.seed = world.seed.or(Some(SEED));
        let world = World::new(&world)?;
        let mut session = Session::new(subject, &world);
        session.host.set_trace(std::io::sink());
        Ok(Side { session, ingress: world.ingress.unwrap_or(0), queue: self.args.world.rx_queue })
    }
}

impl Side {
    pub(super) fn subject(&self) -> &Subject {
        &self.session.subject
    }

    /// Runs a packet, of a number from 0.
    pub(super) fn run(&mut self, number: usize, packet: &CapturedPacket) -> Result<Fate, Failure> {
        let packet = self.packet(packet);
        if let Err(source) = self.session.run(&packet) {
            let name = self.subject().name.clone();
            return Err(SideError { name, packet: number + 1, source }.into());
        }
        let Outcome { verdict, redirect, bytes, events, .. } = self.session.outcome();
        let redirect = redirect.map(|redirect| self.target(redirect));
        Ok(Fate { verdict, redirect, bytes, events })
    }

    fn packet<'p>(&self, packet: &'p CapturedPacket) -> Packet<'p> {
        let CapturedPacket { bytes, meta } = packet;
        Packet { bytes, metadata: &[], meta: *meta, ingress: self.ingress, queue: self.queue }
    }

    fn target(&self, redirect: Redirect) -> String {
        match redirect.target {
            RedirectTarget::Interface { ifindex } => format!("interface {ifindex}"),
            RedirectTarget::Map { map, key } => {
                let found = self.subject().maps().find(|known| known.id() == map);
                format!("{}[{key}]", found.map(|map| map.spec().name.clone()).unwrap_or_default())
            }
        }
    }

    /// Runs the packets with explanations of those that are wanted, on the plain interpreter.
    pub(super) fn explain(
        mut self,
        packets: &[CapturedPacket],
        wanted: &[usize],
    ) -> Vec<(usize, ChainExplanation)> {
        let mut explainer: ChainExplainer = self.session.subject.explainer();
        let mut explained = Vec::new();
        let last = wanted.last().copied().unwrap_or(0);
        for (number, packet) in packets.iter().enumerate().take(last + 1) {
            let packet = self.packet(packet);
            if wanted.binary_search(&number).is_ok() {
                explained
                    .extend(explainer.explain(&packet, &mut self.session.host).ok().map(|e| (number, e)));
            } else {
                // A packet that no frame holds runs on neither side.
                let _ = explainer.run(&packet, &mut self.session.host);
            }
            let _ = self.session.host.fire_timers();
        }
        explained
    }
}
