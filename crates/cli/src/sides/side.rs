//! One of the two sides: a program or chain with maps of its own.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::rc::Rc;

use paceline::explain::{ChainExplainer, ChainExplanation};
use paceline::scenario::{Origin, SessionError};
use paceline::{Engine, Outcome, RanAs};

use crate::chain::{LoadHow, SourceArgs};
use crate::common::capture::CapturedPacket;
use crate::common::failure::{CommandError, Failure};
use crate::common::outcome::target;
use crate::kernel_side::KernelSide;
use crate::object::{ObjectArgs, Opener};
use crate::session::Session;
use crate::subject::Subject;
use crate::world::{World, WorldArgs};

/// A packet cannot be run on one side.
#[derive(Debug, thiserror::Error)]
#[error("{name}: packet {packet}")]
struct SideError {
    name: String,
    packet: usize,
    source: SessionError,
}

impl CommandError for SideError {}

/// Makes a side, as often as one is needed.
#[derive(Clone)]
pub(crate) struct SideMaker<'a> {
    source: SourceArgs,
    engine: Engine,
    in_kernel: bool,
    args: SideArgs<'a>,
    opener: Rc<Opener>,
}

/// State that both sides share.
#[derive(Clone, Copy)]
pub(crate) struct SideArgs<'a> {
    pub(crate) object: &'a ObjectArgs,
    pub(crate) world: &'a WorldArgs,
    pub(crate) unverified: bool,
}

/// Outcome of a packet on one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) outcome: Outcome,
    /// How the outcome is read.
    pub(crate) ran: RanAs,
    /// The target in words, which are the same for equal targets of different maps.
    pub(crate) redirect: Option<String>,
    pub(crate) events: Vec<(String, Vec<u8>)>,
}

/// Runs a packet on both sides, the new one first; on neither if the kernel does not take it.
pub(crate) fn run_both(
    old: &mut Side,
    new: &mut Side,
    number: usize,
    packet: &CapturedPacket,
) -> Result<Option<[Fate; 2]>, Failure> {
    let Some(new_fate) = new.run(number, packet)? else { return Ok(None) };
    let Some(old_fate) = old.run(number, packet)? else { return Ok(None) };
    let mut fates = [old_fate, new_fate];
    if old.kernel.is_some() != new.kernel.is_some() {
        fates.iter_mut().for_each(|fate| take_tag_out(&mut fate.outcome));
    }
    Ok(Some(fates))
}

/// Takes the VLAN tag out of a packet that was put into it at the end of the run: the kernel's test run leaves it beside the packet, where
/// it is not seen (`skb->vlan_tci`).
fn take_tag_out(outcome: &mut Outcome) {
    const TAG: std::ops::Range<usize> = 12..16;
    let Some(skb) = outcome.context.filter(|skb| skb.vlan_present == 0 && skb.vlan_proto != 0) else {
        return;
    };
    let ([a, b], [c, d]) = (skb.vlan_proto.to_ne_bytes(), skb.vlan_tci.to_be_bytes());
    if outcome.bytes.get(TAG) == Some(&[a, b, c, d]) {
        outcome.bytes.drain(TAG);
    }
}

/// A program or chain, and where packets come from.
pub(crate) struct Side {
    session: Session,
    /// Machine that runs the packets in the place of the session.
    kernel: Option<KernelSide>,
    origin: Origin,
}

impl<'a> SideMaker<'a> {
    /// A program or chain by one name.
    pub(crate) fn new(target: &OsString, engine: Option<Engine>, args: SideArgs<'a>) -> Self {
        Self::of(SourceArgs::of(vec![target.clone()], args.object.clone()), engine, args)
    }

    pub(crate) fn of(source: SourceArgs, engine: Option<Engine>, args: SideArgs<'a>) -> Self {
        let engine = if args.unverified { Engine::Plain } else { engine.unwrap_or_else(Engine::best) };
        Self {
            source,
            engine,
            in_kernel: false,
            args,
            opener: Rc::new(Opener::new(args.object).explaining(true)),
        }
    }

    /// The same side, in the running kernel if this is so.
    pub(crate) fn in_kernel(self, in_kernel: bool) -> Self {
        Self { in_kernel, ..self }
    }

    /// Whether the side is explained: the kernel does not tell what it did.
    pub(crate) fn is_explained(&self) -> bool {
        !self.in_kernel
    }

    /// For messages.
    pub(crate) fn name(&self) -> String {
        let targets = self.source.targets.iter().map(OsString::as_os_str);
        let chain = self.source.chain.iter().map(|path| path.as_os_str());
        let names: Vec<_> = targets.chain(chain).map(OsStr::to_string_lossy).collect();
        let name = if names.is_empty() { "built-in firewall".to_owned() } else { names.join(", ") };
        if self.in_kernel { format!("{name} in the kernel") } else { name }
    }

    pub(crate) fn make(&self) -> Result<Side, Failure> {
        let how = LoadHow {
            engine: self.engine,
            unverified: self.args.unverified,
            opener: Rc::clone(&self.opener),
            ..LoadHow::of(self.args.object)
        };
        let subject = Subject::load(&self.source, &how)?;
        let world = World::new(self.args.world)?;
        let mut session = Session::new(subject, &world);
        session.host().set_trace(std::io::sink());
        let kernel = self.in_kernel.then(|| KernelSide::new(&session.subject)).transpose()?;
        Ok(Side { session, kernel, origin: world.origin() })
    }
}

impl Side {
    pub(crate) fn subject(&self) -> &Subject {
        &self.session.subject
    }

    /// Gives the maps of the subject the contents of those that the packets changed.
    pub(crate) fn read_maps(&self) -> Result<(), Failure> {
        self.kernel.as_ref().map_or(Ok(()), |kernel| kernel.read_maps(self.subject()))
    }

    /// Runs a packet, of a number from 0; `None` if the kernel does not take it.
    fn run(&mut self, number: usize, packet: &CapturedPacket) -> Result<Option<Fate>, Failure> {
        match &self.kernel {
            None => self.run_here(number, packet).map(Some),
            Some(kernel) => self.run_in_kernel(kernel, packet),
        }
    }

    fn run_in_kernel(&self, kernel: &KernelSide, packet: &CapturedPacket) -> Result<Option<Fate>, Failure> {
        let arrival = self.origin.arrival(&packet.bytes, packet.meta);
        let Some(outcome) = kernel.run_if_taken(&arrival)? else { return Ok(None) };
        Ok(Some(Fate { outcome, ran: self.subject().ran_as(), redirect: None, events: Vec::new() }))
    }

    fn run_here(&mut self, number: usize, packet: &CapturedPacket) -> Result<Fate, Failure> {
        let arrival = self.origin.arrival(&packet.bytes, packet.meta);
        let outcome = self.session.run(&arrival).map_err(|source| {
            let name = self.session.subject.name.clone();
            SideError { name, packet: number + 1, source }
        })?;
        let redirect = outcome.redirect.map(target);
        Ok(Fate { outcome, ran: self.subject().ran_as(), redirect, events: self.session.events() })
    }

    /// Runs the packets with explanations of those that are wanted, on the plain interpreter.
    pub(crate) fn explain(
        mut self,
        packets: &[CapturedPacket],
        wanted: &[usize],
        left_out: &BTreeSet<usize>,
    ) -> Result<Vec<(usize, ChainExplanation)>, Failure> {
        let mut explainer: ChainExplainer = self.session.subject.explainer();
        let mut explained = Vec::new();
        let name = self.session.subject.name.clone();
        let last = wanted.last().copied().unwrap_or(0);
        for (number, packet) in packets.iter().enumerate().take(last + 1) {
            if left_out.contains(&number) {
                continue;
            }
            let (packet, host) = (self.origin.arrival(&packet.bytes, packet.meta), self.session.host());
            let failed = |source: SessionError| SideError { name: name.clone(), packet: number + 1, source };
            if wanted.binary_search(&number).is_ok() {
                let explanation = explainer.explain(&packet, host);
                explained.push((number, explanation.map_err(|error| failed(error.into()))?));
            } else {
                explainer.run(&packet, host).map_err(|error| failed(error.into()))?;
            }
            host.fire_timers().map_err(|fault| failed(SessionError::Timer(fault)))?;
        }
        Ok(explained)
    }
}
