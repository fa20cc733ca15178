//! Rates of packets.

use std::fmt;
use std::time::Duration;

/// A time, and how many packets that is in a second.
pub(crate) struct Rate(pub(crate) u64, pub(crate) Duration);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(packets, time) = self;
        let seconds = time.as_secs_f64();
        write!(f, "{time:.3?}")?;
        if *packets == 0 || seconds == 0.0 {
            return Ok(());
        }
        let rate = *packets as f64 / seconds;
        match rate {
            1e6.. => write!(f, " ({:.2} million packets/s)", rate / 1e6),
            1e3.. => write!(f, " ({:.0} thousand packets/s)", rate / 1e3),
            _ => write!(f, " ({rate:.1} packets/s)"),
        }
    }
}
