//! Numbered jobs, run by successive children.

use std::process::Command;
use std::time::Duration;

use super::process::{Ended, Ran, run};
use crate::say;

/// Prefix of the lines for [`supervise`].
const MARK: char = '\u{1}';

/// A range of jobs.
#[derive(Clone, Copy, Debug)]
pub struct Jobs {
    /// The first.
    pub first: u64,
    /// One past the last.
    pub end: u64,
    /// Time limit between two lines of a child.
    pub limit: Duration,
}

/// Events of children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A line that is not for [`supervise`].
    Line(String),
    /// The child ended during this job.
    Failed(u64, Ran),
}

/// Reports, in a child, that it begins a job.
pub fn begin(job: u64) {
    say!("{MARK}job {job}");
}

/// Reports, in a child, that all jobs are done.
pub fn finish() {
    say!("{MARK}end");
}

/// Progress of a child, from its reports.
enum At {
    Start,
    Job(u64),
    End,
}

/// Runs jobs in children that `command` creates, given a first job. `handle` returns whether to continue.
///
/// # Errors
/// A child cannot be started, or fails outside of a job.
pub fn supervise(
    jobs: Jobs,
    mut command: impl FnMut(u64) -> Result<Command, String>,
    mut handle: impl FnMut(Event) -> bool,
) -> Result<(), String> {
    let mut first = jobs.first;
    while first < jobs.end {
        let mut at = At::Start;
        let ran = run(&mut command(first)?, jobs.limit, |line| {
            match line.strip_prefix(MARK).map(|text| text.split_once(' ').unwrap_or((text, ""))) {
                Some(("job", number)) => at = number.parse().map_or(At::Start, At::Job),
                Some(_) => at = At::End,
                None => return handle(Event::Line(line.to_owned())),
            }
            true
        })?;
        let at_fault = match (at, ran.ended) {
            (_, Ended::Stopped) => return Ok(()),
            // The child found and reported failures itself.
            (At::End, Ended::Exit(0 | 1)) => {
                tell(&ran.errors);
                return Ok(());
            }
            (At::Job(job), _) => job,
            (At::Start, _) => return Err(format!("a child fails before its first job: {}", whole(&ran))),
            (At::End, _) => return Err(format!("a child fails after its last job: {}", whole(&ran))),
        };
        tell(&ran.errors);
        if !handle(Event::Failed(at_fault, ran)) {
            return Ok(());
        }
        first = at_fault + 1;
    }
    Ok(())
}

fn whole(ran: &Ran) -> String {
    format!("{}\n{}", ran.ended, ran.errors.trim_end())
}

/// Forwards the standard error of a child.
#[allow(clippy::print_stderr, reason = "it is where the child said it")]
fn tell(errors: &str) {
    eprint!("{errors}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(script: &str, end: u64) -> Result<Vec<Event>, String> {
        let mut events = Vec::new();
        let jobs = Jobs { first: 0, end, limit: Duration::from_millis(500) };
        let command = |first: u64| {
            let mut command = Command::new("sh");
            let begin = "job() { printf '\\001job %s\\n' $1; }; end() { printf '\\001end\\n'; };";
            command.arg("-c").arg(format!("{begin} {script}")).env("FIRST", first.to_string());
            Ok(command)
        };
        let supervised = supervise(jobs, command, |event| {
            events.push(event);
            true
        });
        supervised.map(|()| events)
    }

    fn failed(job: u64, ended: Ended) -> Event {
        Event::Failed(job, Ran { ended, errors: String::new() })
    }

    #[test]
    fn crashes_and_hangs_belong_to_a_job_and_the_next_one_follows() {
        let crash = "job $FIRST; echo ran; [ $FIRST = 0 ] && { job 1; kill -ILL $$; }; end";
        let line = || Event::Line("ran".to_owned());
        assert_eq!(events(crash, 3).unwrap(), [line(), failed(1, Ended::Signal(4)), line()]);
        let hang = "job $FIRST; [ $FIRST = 0 ] && exec sleep 20; echo ran; end";
        let late = Ended::Late(Duration::from_millis(500));
        assert_eq!(events(hang, 2).unwrap(), [failed(0, late), line()]);
    }

    #[test]
    fn a_child_that_ends_early_without_a_signal_failed_too() {
        assert_eq!(events("job $FIRST; exit 0", 1).unwrap(), [failed(0, Ended::Exit(0))]);
    }

    #[test]
    fn failures_outside_of_jobs_are_no_job_s() {
        assert!(
            events("echo why >&2; exit 2", 3)
                .unwrap_err()
                .contains("before its first job: exit status 2\nwhy")
        );
        assert!(
            events("job 0; end; kill -SEGV $$", 1).unwrap_err().contains("after its last job: signal 11")
        );
    }
}
