//! Ports that count their packets.

use std::sync::Arc;

use paceline_frame::Burst;
use paceline_port::{Group, Port, PortError};

use super::counts::PortCounter;

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

    pub(super) fn send(&mut self, group: Group<'_>) -> Result<usize, PortError> {
        if group.is_empty() {
            return Ok(0);
        }
        let of = group.len();
        let sent = self.port.send(group)?;
        self.counter.send(sent, of);
        Ok(sent)
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
