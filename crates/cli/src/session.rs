//! Packets through a subject, one by one, with everything that programs send.

use paceline::scenario::{self, SessionError};
use paceline::{Arrival, Host, Outcome};

use crate::common::failure::CommandError;
use crate::subject::Subject;
use crate::world::World;

impl CommandError for SessionError {}

/// A subject in a scenario.
pub(crate) struct Session {
    pub(crate) subject: Subject,
    inner: scenario::Session,
}

impl Session {
    pub(crate) fn new(subject: Subject, world: &World) -> Self {
        let inner = scenario::Session::new(&world.scenario, subject.ran_as(), subject.maps());
        Self { subject, inner }
    }

    pub(crate) fn host(&mut self) -> &mut Host {
        &mut self.inner.host
    }

    /// Runs a packet, and the timers that are due before the next one.
    pub(crate) fn run(&mut self, packet: &Arrival<'_>) -> Result<Outcome, SessionError> {
        self.inner.run(packet, |burst, host| self.subject.run_burst(burst, host))
    }

    /// Map and data of the events since the last call, those of perf event arrays first.
    pub(crate) fn events(&self) -> Vec<(String, Vec<u8>)> {
        self.inner.events()
    }
}
