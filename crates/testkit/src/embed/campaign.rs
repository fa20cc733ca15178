//! Runs sequences in separate processes, classifies their ends, and shrinks failing ones.

use std::fmt;
use std::time::{Duration, Instant};

use crate::child::{self, Ended, Ran};

/// Time limit of a sequence.
const PATIENCE: Duration = Duration::from_secs(90);

/// Time limit of shrinking.
const SHRINKING: Duration = Duration::from_secs(20);

/// Settings of a campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Arguments of this program for one sequence, besides the seed and the operations to skip.
    pub arguments: Vec<String>,
}

/// Failure of a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The last operation.
    pub last: String,
    /// The oracle's message, or how the process ended.
    pub words: String,
}

/// A failing sequence.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// The operations that can be skipped.
    pub skip: Vec<usize>,
    /// The failure.
    pub found: Found,
}

impl Found {
    /// Whether it is the same failure, by its message without numbers.
    #[must_use]
    pub fn signature(&self) -> String {
        let words: String = self.words.chars().filter(|c| !c.is_ascii_digit()).take(70).collect();
        format!("{}: {words}", self.last)
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in `{}`: {}", self.last, self.words)
    }
}

impl Campaign {
    /// Runs a sequence without some operations.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn run(&self, seed: u64, skip: &[usize]) -> Result<Option<Found>, String> {
        let skipped: Vec<String> = skip.iter().map(usize::to_string).collect();
        let mut command = child::command()?;
        command.args(&self.arguments).args(["--child", "--seed", &seed.to_string()]);
        // glibc's cache of freed memory counts as used.
        command.env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0");
        if !skipped.is_empty() {
            command.args(["--skip", &skipped.join(",")]);
        }
        Ok(judge(&child::run(&mut command, PATIENCE, |_| true)?))
    }

    /// Skips operations, the last first, as long as the sequence fails in the same way.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn shrink(&self, seed: u64, length: usize, found: Found) -> Result<Failure, String> {
        let mut failure = Failure { seed, skip: Vec::new(), found };
        let start = Instant::now();
        for index in (0..length).rev().take_while(|_| start.elapsed() < SHRINKING) {
            let skip = [failure.skip.clone(), vec![index]].concat();
            match self.run(seed, &skip)? {
                Some(found) if found.signature() == failure.found.signature() => failure.skip = skip,
                _ => {}
            }
        }
        failure.skip.sort_unstable();
        Ok(failure)
    }
}

/// Failure of an ended child.
fn judge(ran: &Ran) -> Option<Found> {
    let text = &ran.errors;
    let last = text.lines().rev().find_map(|line| line.strip_prefix("op ")).unwrap_or("0 start");
    let last = last.split_once(' ').map_or(last, |(_, name)| name).to_owned();
    let line =
        |start: &str| text.lines().find_map(|line| line.split_once(start)).map(|(_, rest)| rest.to_owned());
    let told = || {
        let abort = || line("memory allocation of ").map(|bytes| format!("memory allocation of {bytes}"));
        let sanitizer = || line("ERROR: AddressSanitizer: ");
        line("FAIL ").or_else(sanitizer).or_else(abort).or_else(|| child::panic_of(text))
    };
    let words = match ran.ended {
        Ended::Exit(0) => return None,
        Ended::Late(_) | Ended::Stopped => "does not end".to_owned(),
        Ended::Signal(signal) => format!("signal {signal} {}", told().unwrap_or_default()),
        Ended::Exit(_) => told().unwrap_or_else(|| ran.ended.to_string()),
    };
    let forked = line("child: ").map_or_else(String::new, |words| format!(" ({words})"));
    Some(Found { last, words: words + &forked })
}
