//! How far explorations of programs have come.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use paceline::generate::Progress;

use crate::common::console::shown;

/// A shorter exploration needs no progress bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two looks at the bar.
const INTERVAL: Duration = Duration::from_millis(50);

/// Units of the numbers of a [`Progress`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    pub(crate) reached: &'static str,
    pub(crate) open: &'static str,
}

/// A bar of the programs that are done, with a line on one that is not.
pub(crate) struct Bar {
    bar: ProgressBar,
    words: Words,
    start: Instant,
    /// Time of the last update, and whether the bar is shown.
    told: Mutex<(Duration, bool)>,
}

impl Bar {
    /// A bar for so many programs.
    pub(crate) fn new(programs: usize, words: Words) -> Self {
        let bar = ProgressBar::with_draw_target(Some(programs as u64), ProgressDrawTarget::hidden());
        let bar = match ProgressStyle::with_template("{bar:20} {pos}/{len} programs {elapsed} {msg}") {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        Self { bar, words, start: Instant::now(), told: Mutex::default() }
    }

    /// Shows how far a program is, if some time has passed.
    pub(crate) fn tell(&self, program: &str, progress: Progress) {
        let elapsed = self.start.elapsed();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if elapsed < told.0 + INTERVAL {
            return;
        }
        told.0 = elapsed;
        let Progress { reached, open, paths } = progress;
        let program = shown(program);
        let Words { reached: found, open: left } = self.words;
        self.bar.set_message(format!("{program}: {reached} {found}, {open} {left}, {paths} paths"));
        if elapsed > PATIENCE && !told.1 {
            told.1 = true;
            // Draws nothing where standard error is no terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// A program is done.
    pub(crate) fn done(&self) {
        self.bar.inc(1);
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
