//! Live runs of the command.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use paceline::isa::{RawInsn, assemble};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

use super::{command, example, packets};

/// Time within which what is waited for must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A running command, which ends with the value.
pub(crate) struct Live {
    child: Option<Child>,
    /// Its messages: a pipe that nobody reads would block it.
    messages: File,
}

impl Live {
    /// Starts the command and waits until a condition holds.
    pub(crate) fn start(arguments: &[&str], is_ready: impl Fn() -> bool) -> Self {
        Self::start_with(&[], arguments, is_ready)
    }

    /// The same with environment variables.
    pub(crate) fn start_with(
        environment: &[(&str, &str)],
        arguments: &[&str],
        is_ready: impl Fn() -> bool,
    ) -> Self {
        let messages = tempfile::tempfile().expect("a file");
        let mut command = command();
        command.envs(environment.iter().copied()).arg("live").args(arguments).stdout(Stdio::piped());
        command.stderr(messages.try_clone().expect("a descriptor"));
        let mut live = Self { child: Some(command.spawn().expect("it starts")), messages };
        let end = Instant::now() + PATIENCE;
        // A control socket is there for a moment before it takes connections.
        let control = arguments.windows(2).find(|pair| pair[0] == "--control").map(|pair| pair[1]);
        let is_refused = |path: &str| Path::new(path).exists() && UnixStream::connect(path).is_err();
        while !is_ready() || control.is_some_and(is_refused) {
            let child = live.child.as_mut().expect("it runs");
            if child.try_wait().expect("its state").is_some() || Instant::now() > end {
                let output = live.end(Signal::KILL);
                panic!("{arguments:?} does not run: {}", stderr(&output));
            }
            thread::sleep(Duration::from_millis(5));
        }
        live
    }

    /// Number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Sends a signal, if it runs still, and waits for the end; one that does not end in time is killed.
    pub(crate) fn end(&mut self, signal: Signal) -> Output {
        self.signal(signal);
        let process = Pid::from_child(self.child.as_ref().expect("it runs"));
        let (ended, watched) = channel::<()>();
        let watch = thread::spawn(move || {
            if watched.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let _ = kill_process(process, Signal::KILL);
            }
        });
        let output = self.wait();
        drop(ended);
        watch.join().expect("it watches");
        output
    }

    /// Sends a signal; one that has ended gets none.
    pub(crate) fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it runs");
        let _ = kill_process(Pid::from_child(child), signal);
    }

    /// The run's messages so far.
    pub(crate) fn messages(&self) -> String {
        let mut bytes = vec![0; self.messages.metadata().expect("a file").len() as usize];
        // The command appends at the offset that both share, which stays as it is.
        self.messages.read_exact_at(&mut bytes, 0).expect("messages");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits for the end.
    pub(crate) fn wait(&mut self) -> Output {
        let mut output = self.child.take().expect("it runs").wait_with_output().expect("it ends");
        self.messages.rewind().expect("a file");
        self.messages.read_to_end(&mut output.stderr).expect("messages");
        output
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whether an interface has an XDP program.
pub(crate) fn has_program(interface: &str) -> bool {
    let shown = Command::new("ip").args(["link", "show", "dev", interface]).output().expect("`ip` runs");
    String::from_utf8_lossy(&shown.stdout).contains("xdp")
}

/// Waits for a condition.
pub(crate) fn within(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn json(output: &Output) -> Json {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {text}{}", stderr(output)))
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every received packet has a verdict, and every packet with a verdict is sent or counted elsewhere.
pub(crate) fn check_sums(report: &Json, has_pass: bool) {
    let number = |value: &Json| value.as_u64().unwrap_or_else(|| panic!("{report:#}"));
    let verdict = |name: &str| number(&report["verdicts"][name]);
    let ports = report["ports"].as_array().expect("ports");
    let received: u64 = ports.iter().map(|port| number(&port["received"])).sum();
    let from_stack = if has_pass { number(&ports[ports.len() - 1]["received"]) } else { 0 };
    assert_eq!(received - from_stack, number(&report["packets"]), "{report:#}");
    let sent: u64 = ports.iter().map(|port| number(&port["sent"])).sum();
    let wanted =
        verdict("tx") + verdict("redirect") + if has_pass { verdict("pass") } else { 0 } + from_stack;
    let others = ["refused", "no_target", "lost"].map(|name| number(&report[name]));
    assert_eq!(sent + others.iter().sum::<u64>(), wanted, "{report:#}");
}

pub(crate) fn ask(control: &str, arguments: &[&str]) -> Output {
    command().args(arguments).args(["--control", control]).output().expect("it runs")
}

pub(crate) fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `return XDP_PASS`
pub(crate) fn pass() -> Vec<RawInsn> {
    assemble("r0 = 2\nexit", &()).expect("a program").encode().expect("instructions")
}

/// Kilobytes of memory that a process occupies.
pub(crate) fn resident(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// Packets of the shipped capture.
pub(crate) fn traffic() -> Vec<Vec<u8>> {
    packets(example("traffic.pcap"))
}
