//! What runs the packets of a capture.

use paceline_engine::{BurstFault, Chain, Host, Program, Target};
use paceline_frame::Burst;
use paceline_spec::Meaning;

use crate::live::ChainWorker;

/// Runs the packets of a capture, a burst at a time.
pub trait Runner {
    /// Runs the packets of a burst, in order; each frame gets its verdict.
    ///
    /// # Errors
    /// A packet caused an invalid access of a program.
    fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault>;

    /// Whether frames get a number of bytes to keep in the place of a verdict: a socket filter's.
    fn keeps_bytes(&self) -> bool {
        false
    }
}

impl Runner for ChainWorker {
    fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        Self::run_burst(self, burst, host)
    }
}

macro_rules! runners {
    ($($runner:ty),*) => {
        $(impl Runner for $runner {
            fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
                Self::run_burst(self, burst, host)
            }
        }

        impl Runner for &$runner {
            fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
                <$runner>::run_burst(self, burst, host)
            }
        })*
    };
}

runners!(Chain, Target);

impl Runner for Program {
    fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        Self::run_burst(self, burst, host)
    }

    fn keeps_bytes(&self) -> bool {
        self.spec().kind.rules().meaning == Meaning::BytesKept
    }
}

impl Runner for &Program {
    fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        Program::run_burst(self, burst, host)
    }

    fn keeps_bytes(&self) -> bool {
        Runner::keeps_bytes(*self)
    }
}

/// What becomes of packets that a runner keeps bytes of: they get as many at most, as `packet_rcv` in `net/packet/af_packet.c` puts them into
/// the socket's queue.
pub(super) fn keep_bytes(runner: &(impl Runner + ?Sized), burst: &mut Burst) {
    if !runner.keeps_bytes() {
        return;
    }
    for mut frame in burst.iter_mut() {
        let kept = frame.code();
        frame.set_verdict(Meaning::BytesKept.verdict(kept));
        if kept > 0 {
            frame.truncate(kept as usize);
        }
    }
}

impl<U: Runner + ?Sized> Runner for Box<U> {
    fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        (**self).run_burst(burst, host)
    }

    fn keeps_bytes(&self) -> bool {
        (**self).keeps_bytes()
    }
}
