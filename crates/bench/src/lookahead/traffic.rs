//! Bursts of random packets, and programs that run over them.

use std::error::Error;

use paceline::{Burst, FrameMeta, Host, LookAhead, Program};

use crate::measure::Work;
use crate::settings::Settings;

/// Bursts of a round.
pub(super) fn bursts(settings: Settings) -> usize {
    if settings.smoke { 4 } else { 10_000 }
}

/// A burst whose packets are about to be written.
pub(super) struct Traffic {
    pub(super) burst: Burst,
    pub(super) rng: fastrand::Rng,
}

impl Traffic {
    pub(super) fn new(packet: &[u8]) -> Result<Self, Box<dyn Error>> {
        let mut burst = Burst::default();
        while !burst.is_full() {
            burst.push(packet, FrameMeta::default())?;
        }
        Ok(Self { burst, rng: fastrand::Rng::with_seed(22) })
    }

    /// Writes the packets of the next burst.
    pub(super) fn next(&mut self, write: impl Fn(&mut fastrand::Rng, &mut [u8])) -> &mut Burst {
        for mut frame in self.burst.iter_mut() {
            write(&mut self.rng, frame.packet_mut());
        }
        &mut self.burst
    }
}

/// Runs a program over bursts of random packets.
pub(super) fn work<'a>(
    settings: Settings,
    program: Program,
    packet: &[u8],
    write: impl Fn(&mut fastrand::Rng, &mut [u8]) + 'a,
) -> Result<Work<'a>, Box<dyn Error>> {
    let (mut traffic, mut host) = (Traffic::new(packet)?, Host::new(0));
    Ok(Box::new(move || {
        for _ in 0..bursts(settings) {
            program.run_burst(traffic.next(&write), &mut host)?;
        }
        host.give_back_cpu();
        Ok((bursts(settings) * traffic.burst.len()) as u64)
    }))
}

/// A program with look-ups ahead, and without.
pub(super) fn both(program: Program, look_ahead: LookAhead) -> [Program; 2] {
    [program.clone().with_look_ahead(look_ahead), program.with_look_ahead(LookAhead::Never)]
}
