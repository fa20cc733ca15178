//! Where packets come from.

use paceline_engine::Arrival;
use paceline_frame::{Burst, FrameMeta};
use paceline_spec::context::SkBuff;

/// Where the packets of a run come from, as programs see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// Index of the ingress interface of all packets. Without it a packet comes in on interface 1, as in the kernel's test runs, or on one
    /// more than the number of its capture's interface.
    pub ingress: Option<u32>,
    /// Receive queue of all packets. Without it packets come in on queue 0, or on that of their CPU's number where they are spread over
    /// several.
    pub queue: Option<u16>,
    /// Members of the `sk_buff` that all packets arrive with.
    pub context: SkBuff,
}

impl Origin {
    /// All packets come in on this interface; `None` takes the capture's.
    #[must_use]
    pub fn ingress(mut self, ifindex: impl Into<Option<u32>>) -> Self {
        self.ingress = ifindex.into();
        self
    }

    /// All packets come in on this queue; `None` takes that of the CPU.
    #[must_use]
    pub fn queue(mut self, queue: impl Into<Option<u16>>) -> Self {
        self.queue = queue.into();
        self
    }

    /// All packets arrive with these members of their `sk_buff`.
    #[must_use]
    pub fn context(mut self, context: SkBuff) -> Self {
        self.context = context;
        self
    }

    /// Interface and queue of a packet that a CPU receives.
    #[must_use]
    pub fn place(&self, meta: &FrameMeta, cpu: u16) -> (u32, u16) {
        (self.ingress.unwrap_or(meta.interface.saturating_add(1)), self.queue.unwrap_or(cpu))
    }

    /// A packet that comes from there, on the first CPU.
    #[must_use]
    pub fn arrival<'p>(&self, bytes: &'p [u8], meta: FrameMeta) -> Arrival<'p> {
        let (ingress, queue) = self.place(&meta, 0);
        Arrival { bytes, metadata: &[], meta, ingress, queue, context: self.context, redirect: None }
    }

    /// Gives the packets of a burst, which a CPU receives, their interfaces and queues.
    pub fn receive(&self, burst: &mut Burst, cpu: u16) {
        for index in 0..burst.len() {
            let (ingress, queue) = self.place(burst.frame(index).meta(), cpu);
            burst.frame_mut(index).set_ingress(ingress, queue);
        }
    }
}
