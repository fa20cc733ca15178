//! Watching a run: the progress bar, and the interrupt that ends it.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::failure::CommandError;

/// Exit status of an interrupted command, as shells have it: 128 and the number of SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// A run that is shorter needs no progress bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two looks at the bar; to make its text for every burst would cost more than a burst.
const INTERVAL: Duration = Duration::from_millis(50);

/// A signal cannot be handled.
#[derive(Debug, thiserror::Error)]
#[error("cannot handle interrupts: {0}")]
pub(crate) struct SignalError(pub(crate) io::Error);

impl CommandError for SignalError {}

/// Follows a run from burst to burst.
pub(crate) struct Watch {
    interrupted: Arc<AtomicBool>,
    start: Instant,
    position: Arc<AtomicU64>,
    /// Hidden at first, but it counts, so that its estimates are good once it is shown.
    bar: ProgressBar,
    is_shown: bool,
    /// Time of the last update of the bar.
    told: Duration,
}

impl Watch {
    /// From here on an interrupt ends the run after the burst it falls into, so that the outputs are complete up to
    /// there; a second one ends the process at once.
    pub(crate) fn start(size: Option<u64>, position: Arc<AtomicU64>) -> Result<Self, SignalError> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_default(signal, interrupted.clone()).map_err(SignalError)?;
            flag::register(signal, interrupted.clone()).map_err(SignalError)?;
        }
        let (start, bar) = (Instant::now(), bar(size));
        Ok(Self { interrupted, start, position, bar, is_shown: false, told: Duration::ZERO })
    }

    /// To be called after every burst.
    pub(crate) fn look(&mut self, packets: u64) -> ControlFlow<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        let elapsed = self.start.elapsed();
        if elapsed - self.told > INTERVAL {
            self.told = elapsed;
            self.tell(packets);
        }
        ControlFlow::Continue(())
    }

    fn tell(&mut self, packets: u64) {
        self.bar.set_message(format!("{packets} packets"));
        self.bar.set_position(self.position.load(Ordering::Relaxed));
        if self.told > PATIENCE && !self.is_shown {
            self.is_shown = true;
            // Draws nothing where standard error is no terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Takes the bar away; whether the run was interrupted.
    pub(crate) fn finish(self) -> bool {
        self.bar.finish_and_clear();
        self.interrupted.load(Ordering::Relaxed)
    }
}

fn bar(size: Option<u64>) -> ProgressBar {
    let template = match size {
        Some(_) => "{bar:30} {bytes}/{total_bytes} {msg} {eta} left",
        None => "{spinner} {bytes} {msg} {elapsed}",
    };
    let bar = ProgressBar::with_draw_target(size, ProgressDrawTarget::hidden());
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
