//! Campaigns as processes: children end with their parent, and a closed output is not a panic.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs::read_to_string;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn engines(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline-testkit"));
    command.arg("engines").args(arguments).args(["--runs", "1", "--engines", "plain"]);
    command
}

fn wait_for<T>(mut found: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        if let Some(found) = found() {
            return Some(found);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

#[test]
fn a_child_does_not_outlive_its_parent() {
    let mut parent = engines(&["--count", "1000000000"]).stdout(Stdio::null()).spawn().unwrap();
    let id = parent.id();
    let children = format!("/proc/{id}/task/{id}/children");
    let child = wait_for(|| read_to_string(&children).ok()?.split_whitespace().next().map(str::to_owned));
    let child = child.expect("the campaign starts a child");
    // Once it runs programs, it has requested its signal on the parent's death.
    std::thread::sleep(Duration::from_millis(500));
    // A stopped child does not notice a closed pipe.
    let signal =
        |name: &str| Command::new("sh").args(["-c", &format!("kill {name} {child}")]).status().unwrap();
    assert!(signal("-STOP").success());
    parent.kill().unwrap();
    parent.wait().unwrap();
    // Its new parent may not reap it.
    let is_gone = || match read_to_string(format!("/proc/{child}/stat")) {
        Ok(stat) => stat.rsplit(") ").next()?.starts_with('Z').then_some(()),
        Err(_) => Some(()),
    };
    let gone = wait_for(is_gone);
    if gone.is_none() {
        signal("-KILL");
    }
    assert!(gone.is_some(), "process {child} goes on");
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let mut command = engines(&["--count", "500", "--show"]);
    let mut parent = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("seed 0"), "{line}");
    let mut errors = String::new();
    parent.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(parent.wait().unwrap().success() && errors.is_empty(), "{errors}");
}
