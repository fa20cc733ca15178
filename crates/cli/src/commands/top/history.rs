//! The last rates of a live run.

use std::collections::VecDeque;

use serde_json::Value as Json;

use crate::control::rates;

/// Rates that are kept: more than a terminal is wide.
const KEPT: usize = 512;

/// Answers of a live run, and the rates between them.
pub(super) struct History {
    /// The last answer.
    pub(super) status: Json,
    /// The last rates; null before there are two answers.
    pub(super) rates: Json,
    /// Packets per second, the latest last.
    pub(super) packets: VecDeque<u64>,
}

impl History {
    pub(super) fn new(status: Json) -> Self {
        Self { status, rates: Json::Null, packets: VecDeque::new() }
    }

    /// Adds an answer.
    pub(super) fn push(&mut self, status: Json) {
        self.rates = rates(&self.status, &status);
        self.status = status;
        if self.packets.len() == KEPT {
            self.packets.pop_front();
        }
        self.packets.push_back(self.rates["packets"].as_f64().unwrap_or(0.0) as u64);
    }
}
