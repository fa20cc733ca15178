//! Ports that count their packets.

use std::sync::Arc;

use paceline_frame::Burst;
use paceline_ports::{Group, Port, PortError, SendError};

use super::counts::{PipelineCounts, PortCounter};

/// A port, and its counts.
pub(super) struct CountedPort {
    port: Box<dyn Port>,
    counter: Arc<PortCounter>,
}

impl CountedPort {
    pub(super) fn new(port: impl Port + 'static, counter: Arc<PortCounter>) -> Self {
        Self { port: Box::new(port), counter }
    }

    pub(super) fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let before = burst.len();
        let result = self.port.receive(burst);
        // An error may come after packets.
        self.counter.receive(burst.len() - before);
        result
    }

    /// Sends a group, and counts what becomes of its packets.
    pub(super) fn send(&mut self, group: Group<'_>, counts: &mut PipelineCounts) -> Result<(), PortError> {
        if group.is_empty() {
            return Ok(());
        }
        let of = group.len();
        let result = self.port.send(group);
        let sent = result.as_ref().map_or_else(|failed| failed.sent, |&sent| sent).min(of);
        counts.sent += sent as u64;
        let refused = match &result {
            Ok(_) => of - sent,
            Err(_) => {
                counts.lost += (of - sent) as u64;
                0
            }
        };
        counts.refused += refused as u64;
        self.counter.send(sent, refused);
        result.map(drop).map_err(|SendError { error, .. }| error)
    }

    pub(super) fn port(&self) -> &dyn Port {
        &*self.port
    }

    pub(super) fn stop(&mut self) {
        self.port.stop();
    }

    pub(super) fn leave(&mut self) -> bool {
        self.port.leave()
    }

    /// Publishes what the port itself counts.
    pub(super) fn update_counts(&mut self) {
        self.counter.device(self.port.copied(), self.port.dropped());
    }
}
