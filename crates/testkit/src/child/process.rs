//! A child process that is watched.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// The environment variable with the process id of a child's parent.
pub(super) const PARENT: &str = "PACELINE_CHILD_OF";

/// The environment variable with the command that runs programs of an emulated machine, which the kernel does not.
pub(super) const RUNNER: &str = "PACELINE_CHILD_RUNNER";

/// Maximum number of bytes of standard error that are kept, from its end.
pub(super) const MOST_ERRORS: usize = 1 << 20;

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With an exit status.
    Exit(i32),
    /// By a signal.
    Signal(i32),
    /// It was killed, because it printed nothing within the limit.
    Late(Duration),
    /// It was killed, because its reader stopped.
    Stopped,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(status) => write!(f, "exit status {status}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Late(limit) => write!(f, "no end after {} s", limit.as_secs_f64()),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// A child that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// Its standard error.
    pub errors: String,
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ended.fmt(f)?;
        panic_of(&self.errors).map_or(Ok(()), |panic| write!(f, ": {panic}"))
    }
}

/// Place and message of the first panic in a child's standard error.
#[must_use]
pub fn panic_of(errors: &str) -> Option<String> {
    let lines = errors.lines().skip_while(|line| !line.contains("panicked at")).take(2);
    let lines: Vec<&str> = lines.collect();
    (!lines.is_empty()).then(|| lines.join(" "))
}

/// Command for another process of this program, as a child of this one.
///
/// # Errors
/// The path of the program is unknown.
pub fn command() -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let runner = std::env::var(RUNNER).unwrap_or_default();
    let mut words = runner.split_whitespace().map(OsStr::new).chain([program.as_os_str()]);
    let mut command = Command::new(words.next().unwrap_or(program.as_os_str()));
    command.args(words);
    command.env(PARENT, std::process::id().to_string());
    Ok(command)
}

/// Ties a process that [`command`] started to its parent; does nothing in other processes. Must be called first in `main`.
/// The kernel sends the signal when the parent's thread that started the child ends.
///
/// # Errors
/// The kernel refuses, or the parent is dead.
pub fn attach() -> Result<(), String> {
    let Some(parent) = std::env::var_os(PARENT) else { return Ok(()) };
    let parent = parent.to_str().and_then(|text| text.parse().ok()).and_then(Pid::from_raw);
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|errno| errno.to_string())?;
    // The parent may have died before the request.
    if parent.is_none() || getppid() != parent { Err("the parent is gone".to_owned()) } else { Ok(()) }
}

/// Kills and reaps a child on every return path of its parent.
pub(super) struct Guard(pub(super) Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // The child may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a child with empty standard input and its own directory for temporary files. Calls `line` with each line that it
/// prints; it returns whether to continue. The limit is the processor time between two lines.
///
/// # Errors
/// The child cannot be started or waited for.
pub fn run(
    command: &mut Command,
    limit: Duration,
    mut line: impl FnMut(&str) -> bool,
) -> Result<Ran, String> {
    let failed = |error: io::Error| format!("child process: {error}");
    // This directory removes temporary files of a killed child.
    let temporary = tempfile::tempdir().map_err(failed)?;
    command.env("TMPDIR", temporary.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Guard(command.spawn().map_err(failed)?);
    let (Some(output), Some(errors)) = (child.0.stdout.take(), child.0.stderr.take()) else {
        return Err("child process: no output".to_owned());
    };
    let (lines, reader) = lines_of(output);
    let errors = thread::spawn(move || last_bytes(errors));
    let mut clock = Clock::of(&child.0, limit);
    let cut = loop {
        match lines.recv_timeout(limit) {
            Ok(text) if line(&text) => clock = Clock::of(&child.0, limit),
            Ok(_) => break Some(Ended::Stopped),
            Err(RecvTimeoutError::Timeout) if !clock.is_late() => {}
            Err(RecvTimeoutError::Timeout) => break Some(Ended::Late(limit)),
            Err(RecvTimeoutError::Disconnected) => break None,
        }
    };
    let ended = match cut {
        Some(ended) => ended,
        // The output has ended, so that the child ends soon, or exceeds its limit.
        None => wait(&mut child.0, clock).map_err(failed)?,
    };
    drop(child);
    drop(lines);
    let _ = reader.join();
    Ok(Ran { ended, errors: errors.join().unwrap_or_default() })
}

pub(super) fn lines_of(output: impl Read + Send + 'static) -> (Receiver<String>, JoinHandle<()>) {
    let (sender, lines) = channel();
    let reader = thread::spawn(move || {
        // The last line of a crashed child may be incomplete, and invalid UTF-8.
        for text in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&text).into_owned()).is_err() {
                break;
            }
        }
    });
    (lines, reader)
}

pub(super) fn last_bytes(mut errors: impl Read) -> String {
    let (mut kept, mut buffer) = (VecDeque::new(), [0; 4096]);
    while let Ok(len @ 1..) = errors.read(&mut buffer) {
        kept.extend(&buffer[..len]);
        kept.drain(..kept.len().saturating_sub(MOST_ERRORS));
    }
    String::from_utf8_lossy(kept.make_contiguous()).into_owned()
}

/// Time since a child's last line. The limit is for processor time, so that load of the machine does not matter. A waiting
/// child uses none; it is limited to the elapsed time of a child that gets a fifth of a processor.
pub(super) struct Clock {
    pub(super) child: u32,
    pub(super) limit: Duration,
    pub(super) start: Instant,
    pub(super) used: Duration,
}

/// Limit of elapsed time, in multiples of the limit of processor time.
pub(super) const MOST_LIMITS: u32 = 5;

impl Clock {
    pub(super) fn of(child: &Child, limit: Duration) -> Self {
        let child = child.id();
        Self { child, limit, start: Instant::now(), used: processor_time(child).unwrap_or_default() }
    }

    pub(super) fn is_late(&self) -> bool {
        let used = processor_time(self.child).map_or(Duration::MAX, |now| now.saturating_sub(self.used));
        used > self.limit || self.start.elapsed() > self.limit * MOST_LIMITS
    }
}

/// Processor time of a process and its reaped children, from `/proc/PID/stat` (proc_pid_stat(5)).
pub(super) fn processor_time(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may contain spaces and parentheses; the state and numbers follow it.
    let (_, fields) = stat.rsplit_once(')')?;
    // utime, stime, cutime and cstime, the 14th to 17th field of all.
    let times = fields.split_ascii_whitespace().skip(11).take(4);
    let ticks: u64 = times.map(|time| time.parse::<u64>().unwrap_or_default()).sum();
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

pub(super) fn wait(child: &mut Child, clock: Clock) -> io::Result<Ended> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(ended(status));
        }
        if clock.start.elapsed() > clock.limit && clock.is_late() {
            return Ok(Ended::Late(clock.limit));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

pub(super) fn ended(status: ExitStatus) -> Ended {
    status.signal().map_or_else(|| Ended::Exit(status.code().unwrap_or(-1)), Ended::Signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: u64) -> (Ran, Vec<String>) {
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        let ran = run(command.args(["-c", script]), Duration::from_millis(limit), |line| {
            lines.push(line.to_owned());
            line != "stop"
        });
        (ran.unwrap(), lines)
    }

    #[test]
    fn ends_are_told_apart() {
        assert_eq!(shell("exit 3", 5000).0.ended, Ended::Exit(3));
        assert_eq!(shell("kill -SEGV $$", 5000).0.ended, Ended::Signal(11));
        assert_eq!(shell("exec sleep 20", 100).0.ended, Ended::Late(Duration::from_millis(100)));
        assert_eq!(shell("exec >&-; exec sleep 20", 100).0.ended, Ended::Late(Duration::from_millis(100)));
        assert_eq!(shell("echo stop; exec sleep 20", 5000).0.ended, Ended::Stopped);
    }

    #[test]
    fn a_child_that_computes_is_late_by_its_own_time() {
        let start = Instant::now();
        assert_eq!(shell("while :; do :; done", 100).0.ended, Ended::Late(Duration::from_millis(100)));
        assert!(start.elapsed() >= Duration::from_millis(100));
        let own = processor_time(std::process::id()).unwrap();
        assert!(own < Duration::from_secs(600) && processor_time(0).is_none(), "{own:?}");
    }

    #[test]
    fn both_outputs_are_read_to_their_end() {
        let (ran, lines) = shell("printf 'one\\ntw'; head -c 3000000 /dev/zero >&2; printf end >&2", 5000);
        assert_eq!(lines, ["one", "tw"]);
        assert!(ran.errors.ends_with("end") && ran.errors.len() == MOST_ERRORS, "{}", ran.errors.len());
    }

    #[test]
    fn panics_are_part_of_the_words() {
        let (ran, _) = shell("echo \"thread 'main' panicked at x.rs:1:\nno\nnote: y\" >&2; exit 101", 5000);
        assert_eq!(ran.to_string(), "exit status 101: thread 'main' panicked at x.rs:1: no");
    }

    #[test]
    fn nothing_temporary_is_left() {
        let (_, lines) = shell("mktemp; exec kill -KILL $$", 5000);
        assert!(!lines[0].is_empty() && !std::path::Path::new(&lines[0]).exists(), "{lines:?}");
    }
}
