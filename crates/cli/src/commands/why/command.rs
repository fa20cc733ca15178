//! Explaining packets of a capture.

use std::process::ExitCode;
use std::rc::Rc;

use paceline::capture::CaptureReader;
use paceline::explain::{ChainExplainer, Reasons};
use paceline::packet::TextError;
use paceline::scenario::Origin;
use paceline::{Burst, Engine, Fault, FrameMeta, Host, Verdict};

use super::args::WhyArgs;
use super::explained::Explained;
use super::selection::Selection;
use super::{json, text};
use crate::chain::LoadHow;
use crate::common::capture::{Capture, CaptureError};
use crate::common::failure::{CommandError, Failure};
use crate::common::packets::Packets;
use crate::common::reasons::write_reasons;
use crate::common::report;
use crate::maps;
use crate::object::Opener;
use crate::subject::Subject;
use crate::world::World;

/// The reason why packets cannot be explained.
#[derive(Debug, thiserror::Error)]
enum WhyError {
    #[error("--new: {0}")]
    New(TextError),
    #[error("--new: the packet is longer than a frame")]
    TooLong,
    #[error("a timer after packet {packet}: {fault}")]
    Timer { packet: u64, fault: Box<Fault> },
    #[error("{name}: there is no packet {packet}, it has {packets}")]
    NoPacket { name: String, packet: u64, packets: u64 },
    #[error("{name}: none of its {packets} packets has the verdict {verdict}")]
    NoVerdict { name: String, verdict: Verdict, packets: u64 },
}

impl CommandError for WhyError {}

/// Explains packets.
pub(crate) fn why(args: &WhyArgs) -> Result<ExitCode, Failure> {
    let how = LoadHow {
        engine: Engine::Plain,
        unverified: args.unverified,
        opener: Rc::new(Opener::new(&args.source.object).explaining(true)),
        ..LoadHow::of(&args.source.object)
    };
    let subject = Subject::load(&args.source, &how)?;
    let world = World::new(&args.world)?;
    subject.programs.iter().for_each(|program| world.announce(&program.program));
    let mut run = Run { explainer: subject.explainer(), host: world.host(), origin: world.origin() };
    if args.count {
        let mut reasons = Reasons::default();
        run.capture(args, |packet| reasons.add(packet.number, &packet.explanation))?;
        return report::print(|out| match args.json {
            true => json::write_reasons(out, &subject, &reasons),
            false => write_reasons(out, &reasons),
        });
    }
    // One line for each packet has no room for more.
    run.explainer.want_all_causes(!args.brief);
    let mut captured = Vec::new();
    let explained = match &args.new {
        Some(text) => vec![run.new_packet(text)?],
        None => {
            run.capture(args, |packet| captured.push(packet))?;
            captured
        }
    };
    report::print(|out| {
        match (args.json, args.brief) {
            (true, _) => json::write(out, &subject, &explained, args.maps)?,
            (false, true) => text::write_brief(out, &explained)?,
            (false, false) => text::write(out, &subject, &explained, args.all)?,
        }
        match args.maps && !args.json {
            true => subject.parts.iter().try_for_each(|(_, part)| maps::write_text(out, part)),
            false => Ok(()),
        }
    })
}

struct Run {
    explainer: ChainExplainer,
    host: Host,
    origin: Origin,
}

impl Run {
    fn new_packet(&mut self, text: &str) -> Result<Explained, WhyError> {
        let bytes = paceline::packet::build(text).map_err(WhyError::New)?;
        let meta = FrameMeta { original_len: bytes.len() as u32, ..FrameMeta::default() };
        let packet = self.origin.arrival(&bytes, meta);
        let explanation = self.explainer.explain(&packet, &mut self.host).map_err(|_| WhyError::TooLong)?;
        Ok(Explained { number: 1, bytes, explanation })
    }

    /// Gives each selected packet of a capture.
    fn capture(&mut self, args: &WhyArgs, mut each: impl FnMut(Explained)) -> Result<(), Failure> {
        let all = if args.count { Selection::All } else { Selection::Numbers(Packets::first(1)) };
        let selection = args.packet.as_ref().unwrap_or(&all);
        let mut capture = Capture::open(args.input.as_deref(), CaptureReader::new)?;
        let (mut burst, mut packets, mut selected) = (Burst::new(1), 0, 0);
        while selection.goes_on(packets, selected, args.count) {
            let failed = |source| {
                let name = capture.name.clone();
                CaptureError::Read { name, source: Box::new(source), processed: packets }
            };
            if capture.reader.fill(&mut burst).map_err(failed)? == 0 {
                break;
            }
            packets += 1;
            let (bytes, meta) = (burst.frame(0).packet().to_vec(), *burst.frame(0).meta());
            let packet = self.origin.arrival(&bytes, meta);
            // A packet that was in a burst fits into another one.
            if selection.may_contain(packets) {
                let explanation =
                    self.explainer.explain(&packet, &mut self.host).map_err(|_| WhyError::TooLong)?;
                if selection.has(explanation.outcome.verdict) {
                    selected += 1;
                    each(Explained { number: packets, bytes, explanation });
                }
            } else {
                self.explainer.run(&packet, &mut self.host).map_err(|_| WhyError::TooLong)?;
            }
            // Timers of programs run between packets, as in `run`.
            self.host.fire_timers().map_err(|fault| WhyError::Timer { packet: packets, fault })?;
        }
        let name = capture.name;
        match selection {
            Selection::Numbers(numbers) => match numbers.beyond(packets) {
                Some(packet) => Err(WhyError::NoPacket { name, packet, packets }.into()),
                None => Ok(()),
            },
            Selection::Verdict(verdict, _) if selected == 0 => {
                Err(WhyError::NoVerdict { name, verdict: *verdict, packets }.into())
            }
            _ => Ok(()),
        }
    }
}
