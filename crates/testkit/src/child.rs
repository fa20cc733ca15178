//! Campaigns in child processes: a seed on which generated code crashes or does not end is told, and the others go on.
//!
//! The parent starts its own program once more, as a child for a range of seeds. The child says on its standard output which
//! seed comes next, and what it counted; other lines are for people. A child that a signal ends, or that says nothing for
//! too long, failed on the seed it named last; another one goes on after it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The argument that makes a campaign's program a child.
pub const CHILD: &str = "child";

/// Begins lines for the parent.
const MARK: char = '\u{1}';

/// How long a child may take over one seed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts by name, and the least seed of each.
#[derive(Clone, Debug, Default)]
pub struct Totals(BTreeMap<String, (u64, u64)>);

impl Totals {
    /// Adds to a count, for a seed.
    pub fn add(&mut self, name: impl Into<String>, count: u64, seed: u64) {
        let entry = self.0.entry(name.into()).or_insert((0, seed));
        *entry = (entry.0 + count, entry.1.min(seed));
    }

    /// A count, 0 if nothing of the name was counted.
    #[must_use]
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).map_or(0, |(count, _)| *count)
    }

    /// Name without the prefix, count and least seed of those whose names begin with one.
    pub fn of<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, u64, u64)> + 'a {
        self.0
            .iter()
            .filter_map(move |(name, (count, seed))| Some((name.strip_prefix(prefix)?, *count, *seed)))
    }

    /// Tells the parent, and begins anew.
    #[allow(clippy::print_stdout, reason = "the parent reads it")]
    pub fn send(&mut self) {
        for (name, (count, seed)) in std::mem::take(&mut self.0) {
            println!("{MARK}count {count} {seed} {name}");
        }
    }

    fn receive(&mut self, text: &str) {
        let mut words = text.splitn(3, ' ');
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let (count, seed) = (number(), number());
        if let (Some(count), Some(seed), Some(name)) = (count, seed, words.next()) {
            self.add(name, count, seed);
        }
    }
}

/// Tells the parent which seed comes next.
#[allow(clippy::print_stdout, reason = "the parent reads it")]
pub fn begin(seed: u64) {
    println!("{MARK}seed {seed}");
}

/// A seed on which a child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The seed.
    pub seed: u64,
    /// How it ended, for people.
    pub how: String,
}

/// Runs the seeds from `first` on in children of this program, with its own arguments; lines for people are handed to `show`
/// as they come. Gives what they counted, and where they ended before their time.
///
/// # Errors
/// A child that cannot be started, or that says itself that it cannot go on.
pub fn run(first: u64, count: u64, mut show: impl FnMut(&str)) -> Result<(Totals, Vec<Crash>), String> {
    let end = first.saturating_add(count);
    let (mut next, mut totals, mut crashes) = (first, Totals::default(), Vec::new());
    while next < end {
        let range = ["--seed".to_owned(), next.to_string(), "--count".to_owned(), (end - next).to_string()];
        let ended = child(&range, PATIENCE, |line| match line.strip_prefix(MARK) {
            Some(text) => match text.split_once(' ') {
                Some(("seed", seed)) => next = seed.parse().unwrap_or(next),
                Some(("count", text)) => totals.receive(text),
                _ => {}
            },
            None => show(line),
        })?;
        match ended {
            Ended::Crashed(how) => {
                show(&format!("CRASH seed {next}: {how}"));
                crashes.push(Crash { seed: next, how });
                next += 1;
            }
            Ended::Finished => next = end,
        }
    }
    Ok((totals, crashes))
}

/// Whether a child with these further arguments ends before its time.
///
/// # Errors
/// As [`run`].
pub fn crashes(arguments: &[String]) -> Result<bool, String> {
    Ok(child(arguments, PATIENCE, |_| {})? != Ended::Finished)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Ended {
    Finished,
    Crashed(String),
}

/// Runs a child with further arguments.
fn child(arguments: &[String], patience: Duration, mut line: impl FnMut(&str)) -> Result<Ended, String> {
    let failed = |error: std::io::Error| format!("child process: {error}");
    let own: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut child = Command::new(std::env::current_exe().map_err(failed)?)
        .args(own)
        .args(arguments)
        .arg(format!("--{CHILD}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let Some(output) = child.stdout.take() else { return Ok(Ended::Finished) };
    let (sender, lines) = channel();
    let reader = std::thread::spawn(move || {
        // A child that crashed may have been in the middle of a line.
        for text in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&text).into_owned()).is_err() {
                break;
            }
        }
    });
    let mut is_late = false;
    loop {
        match lines.recv_timeout(patience) {
            Ok(text) => line(&text),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                is_late = true;
                child.kill().map_err(failed)?;
                break;
            }
        }
    }
    let status = child.wait().map_err(failed)?;
    drop(lines);
    let _ = reader.join();
    match is_late {
        true => Ok(Ended::Crashed(format!("no end after {} s", patience.as_secs()))),
        false => ended(status),
    }
}

fn ended(status: ExitStatus) -> Result<Ended, String> {
    match (status.signal(), status.code()) {
        (Some(signal), _) => Ok(Ended::Crashed(format!("signal {signal}"))),
        // Failures that it found and told.
        (None, Some(0 | 1)) => Ok(Ended::Finished),
        (None, code) => Err(format!("child process: exit status {}", code.unwrap_or(-1))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_told_and_added() {
        let mut totals = Totals::default();
        totals.receive("3 17 a name");
        totals.receive("4 5 a name");
        totals.receive("4 nonsense");
        assert_eq!(totals.get("a name"), 7);
        assert_eq!(totals.of("a ").collect::<Vec<_>>(), [("name", 7, 5)]);
    }

    #[test]
    fn ends_are_told_apart() {
        assert_eq!(ended(ExitStatus::from_raw(0)), Ok(Ended::Finished));
        assert_eq!(ended(ExitStatus::from_raw(1 << 8)), Ok(Ended::Finished));
        assert_eq!(ended(ExitStatus::from_raw(11)), Ok(Ended::Crashed("signal 11".to_owned())));
        assert!(ended(ExitStatus::from_raw(2 << 8)).is_err());
    }
}
