//! One packet: how it arrives, and what became of it.

use paceline_frame::{AdjustError, Burst, FrameMeta, FrameRef, PushError, Redirect, Verdict};
use paceline_runtime::fault::Fault;
use paceline_spec::Meaning;
use paceline_spec::context::SkBuff;

use crate::host::Host;

/// A packet as it arrives: all that its device and earlier programs say of it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Bytes from the Ethernet header on.
    pub bytes: &'a [u8],
    /// Metadata before them, a multiple of 4 bytes.
    pub metadata: &'a [u8],
    /// Time and length.
    pub meta: FrameMeta,
    /// Index of the interface that it came in on.
    pub ingress: u32,
    /// Receive queue of that interface.
    pub queue: u16,
    /// Members of its `sk_buff` that do not come from the packet, for TC classifiers; socket filters get `cb`.
    pub context: SkBuff,
    /// Target that an earlier program of a chain stored.
    pub redirect: Option<Redirect>,
}

/// The reason why a packet does not enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrivalError {
    /// No frame holds it.
    #[error(transparent)]
    Packet(#[from] PushError),
    /// The frame does not hold its metadata.
    #[error("metadata of {bytes} bytes")]
    Metadata {
        /// Its length in bytes.
        bytes: usize,
        /// The cause.
        source: AdjustError,
    },
}

impl Arrival<'_> {
    /// Makes the packet the only one of a burst, and tells the host of it.
    ///
    /// # Errors
    /// [`ArrivalError`]; the burst is empty.
    pub fn enter(&self, burst: &mut Burst, host: &mut Host) -> Result<(), ArrivalError> {
        burst.clear();
        burst.push(self.bytes, self.meta)?;
        let mut frame = burst.frame_mut(0);
        frame.set_ingress(self.ingress, self.queue);
        if let Err(source) = frame.set_metadata(self.metadata) {
            burst.clear();
            return Err(ArrivalError::Metadata { bytes: self.metadata.len(), source });
        }
        burst.frame_mut(0).set_redirect(self.redirect);
        host.set_arriving(self.context);
        host.arrive(burst);
        Ok(())
    }
}

impl<'a> Arrival<'a> {
    /// The packet of a frame that no program has run over, which enters with the members of an `sk_buff`.
    #[must_use]
    pub fn of_frame(frame: &'a FrameRef<'_>, context: SkBuff) -> Self {
        Self {
            bytes: frame.packet(),
            metadata: frame.metadata(),
            meta: *frame.meta(),
            ingress: frame.ingress_ifindex(),
            queue: frame.rx_queue(),
            context,
            redirect: frame.redirect(),
        }
    }
}

/// What became of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The verdict; aborted if the run ended with a fault.
    pub verdict: Verdict,
    /// The program's return value, in the numbers of its type: the low 32 bits of `r0`. Of a chain the number that stands for its verdict
    /// ([`Meaning::standing_for`]).
    pub returned: u32,
    /// Target and flags, for redirected packets.
    pub redirect: Option<Redirect>,
    /// The redirect that a helper stored last, whatever the verdict is: in a chain a later program may still take it.
    pub stored: Option<Redirect>,
    /// The packet's bytes.
    pub bytes: Vec<u8>,
    /// The metadata before them.
    pub metadata: Vec<u8>,
    /// The `sk_buff` as the program left it, if it is of a type that has one of its own (TC classifiers); chains have none, as each of
    /// their programs gets the packet's anew.
    pub context: Option<SkBuff>,
    /// The fault that ended the run, which those of verified programs never do.
    pub fault: Option<Fault>,
}

/// The thing that ran: its outcomes are read in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RanAs {
    /// A program, whose type gives return values this meaning.
    Program(Meaning),
    /// A chain of such programs.
    Chain(Meaning),
}

impl RanAs {
    /// The verdict of a packet that ran without a fault.
    #[must_use]
    pub fn verdict(self, frame: FrameRef<'_>) -> Verdict {
        match self {
            Self::Program(meaning) => meaning.verdict(frame.code()),
            Self::Chain(_) => frame.verdict(),
        }
    }

    /// The return value of the packet that ran last on a host.
    #[must_use]
    pub fn returned(self, frame: FrameRef<'_>, host: &Host) -> u32 {
        match self {
            Self::Program(_) if self.only_last_is_known() => host.returned(),
            Self::Program(_) => frame.code(),
            // default: a chain of programs whose values are verdicts.
            Self::Chain(meaning) => meaning.standing_for(frame.verdict()).unwrap_or(frame.verdict() as u32),
        }
    }

    /// Whether the return value is known of the last packet of a burst alone: frames have the number of the verdict instead.
    #[must_use]
    pub fn only_last_is_known(self) -> bool {
        matches!(self, Self::Program(meaning) if meaning.translated().is_some())
    }
}

impl Outcome {
    /// What became of a packet, the only one of the burst that has just run.
    #[must_use]
    pub fn of(frame: FrameRef<'_>, host: &Host, ran: RanAs, fault: Option<Fault>) -> Self {
        let verdict = if fault.is_some() { Verdict::Aborted } else { ran.verdict(frame) };
        Self {
            verdict,
            returned: ran.returned(frame, host),
            redirect: frame.redirect().filter(|_| verdict == Verdict::Redirect),
            stored: frame.redirect(),
            bytes: frame.packet().to_vec(),
            metadata: frame.metadata().to_vec(),
            context: ran.only_last_is_known().then(|| host.sk_buff()),
            fault,
        }
    }

    /// Whether a packet fares the same: return value, verdict and target. Its bytes may differ.
    #[must_use]
    pub fn fares_as(&self, other: &Self) -> bool {
        let fate =
            |outcome: &Self| (outcome.verdict, outcome.returned, outcome.redirect, outcome.fault.is_some());
        fate(self) == fate(other)
    }
}
