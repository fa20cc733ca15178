//! Jobs in child processes: one that crashes or hangs is told apart, and the rest goes on.
//!
//! A child writes lines. `@job N` says that it begins with a job and `@end` that it is through; all others are for the campaign.
//! A child that is gone without the last word, or is silent for too long, failed at the job it began with last; the next
//! child begins with the one after that.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// What a child writes before a job, followed by its number.
pub const JOB: &str = "@job ";
/// What a child writes when it is through.
pub const FINISHED: &str = "@end";

/// The jobs of a child, and how long it may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    /// First job.
    pub first: u64,
    /// One past the last.
    pub end: u64,
    /// How long a job may take.
    pub limit: Duration,
}

/// How a child ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By a signal.
    Signal(i32),
    /// With an exit status: a panic, or an error of the campaign's.
    Exit(i32),
    /// It was silent for too long, and killed.
    Hang,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
            Self::Exit(status) => write!(f, "exit status {status}"),
            Self::Hang => write!(f, "no end within the time limit"),
        }
    }
}

/// What comes from children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A line.
    Line(String),
    /// A job ended its process; `None` where that happened before any job.
    Failed(Option<u64>, Ended),
}

/// Runs jobs in children that `command` makes for a first job. `handle` says whether to go on.
///
/// # Errors
/// A child cannot be started, or fails before its first job.
pub fn supervise(
    child: Child,
    mut command: impl FnMut(u64) -> Command,
    mut handle: impl FnMut(Event) -> bool,
) -> Result<(), String> {
    let mut first = child.first;
    while first < child.end {
        match one_child(command(first), child.limit, &mut handle)? {
            Progress::Finished | Progress::Told => return Ok(()),
            Progress::Failed(job, ended) => {
                let go_on = handle(Event::Failed(job, ended.clone()));
                let Some(job) = job else {
                    return Err(format!("a child fails before its first job: {ended}"));
                };
                if !go_on {
                    return Ok(());
                }
                first = job + 1;
            }
        }
    }
    Ok(())
}

enum Progress {
    Finished,
    /// The campaign wants no more.
    Told,
    Failed(Option<u64>, Ended),
}

fn one_child(
    mut command: Command,
    limit: Duration,
    handle: &mut impl FnMut(Event) -> bool,
) -> Result<Progress, String> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let Some(stdout) = child.stdout.take() else { return Err("a child has no output".to_owned()) };
    let (sender, lines) = channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let mut job = None;
    let progress = loop {
        match lines.recv_timeout(limit) {
            Ok(line) if line == FINISHED => break Progress::Finished,
            Ok(line) => match line.strip_prefix(JOB).and_then(|number| number.parse().ok()) {
                Some(number) => job = Some(number),
                None if handle(Event::Line(line)) => {}
                None => break Progress::Told,
            },
            Err(RecvTimeoutError::Timeout) => break Progress::Failed(job, Ended::Hang),
            Err(RecvTimeoutError::Disconnected) => {
                let status = child.wait().map_err(|error| error.to_string())?;
                let ended = match (status.signal(), status.code()) {
                    (Some(signal), _) => Ended::Signal(signal),
                    (None, code) => Ended::Exit(code.unwrap_or(-1)),
                };
                break Progress::Failed(job, ended);
            }
        }
    };
    // It may have ended by itself.
    let _ = child.kill();
    child.wait().map_err(|error| error.to_string())?;
    drop(lines);
    let _ = reader.join();
    Ok(progress)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(script: &str, end: u64) -> Vec<Event> {
        let mut events = Vec::new();
        let child = Child { first: 0, end, limit: Duration::from_millis(500) };
        let command = |first: u64| {
            let mut command = Command::new("sh");
            command.arg("-c").arg(script).env("FIRST", first.to_string());
            command
        };
        supervise(child, command, |event| {
            events.push(event);
            true
        })
        .unwrap();
        events
    }

    #[test]
    fn crashes_and_hangs_belong_to_a_job_and_the_next_one_follows() {
        let crash = "echo @job $FIRST; [ $FIRST = 1 ] && kill -SEGV $$; echo ran; [ $FIRST = 0 ] && { echo @job 1; kill -ILL $$; }; echo @end";
        let line = || Event::Line("ran".to_owned());
        assert_eq!(events(crash, 3), [line(), Event::Failed(Some(1), Ended::Signal(4)), line()]);
        let hang = "echo @job $FIRST; [ $FIRST = 0 ] && exec sleep 20; echo ran; echo @end";
        assert_eq!(events(hang, 2), [Event::Failed(Some(0), Ended::Hang), line()]);
    }
}
