//! The network of the host that this runs on.

use std::process::Command;
use std::{fs, io};

use paceline_network::Network;

use crate::{NetworkError, parse};

/// What is asked of `ip`: numbers rather than names from files that only this host has.
const QUESTIONS: [&[&str]; 7] = [
    &["addr"],
    &["-4", "route", "show", "table", "all"],
    &["-6", "route", "show", "table", "all"],
    &["neigh", "show", "nud", "all"],
    &["-4", "rule"],
    &["-6", "rule"],
    &["netconf"],
];

/// The tracked connections of the thread's namespace, where the kernel shows them and the user may read them.
const CONNECTIONS: &str = "/proc/thread-self/net/nf_conntrack";
/// When TCP's cookies are sent there.
const COOKIES: &str = "/proc/sys/net/ipv4/tcp_syncookies";

/// Why there is no picture of the host's network.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// `ip` or `ss` cannot be run.
    #[error("{tool} (iproute2) cannot be run: {source}")]
    Run {
        /// The tool.
        tool: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// It failed.
    #[error("{tool} {question} failed: {message}")]
    Failed {
        /// The tool.
        tool: &'static str,
        /// What it was asked.
        question: String,
        /// What it said.
        message: String,
    },
    /// What it says cannot be understood.
    #[error("what ip and ss say: {0}")]
    Parse(#[from] NetworkError),
}

/// The description by iproute2 of the network namespace that the calling thread is in, as [`parse`] takes it, with the
/// tracked connections if they can be read.
///
/// # Errors
/// [`SnapshotError`]: there is no `ip` or no `ss`, or it failed.
pub fn host_text() -> Result<String, SnapshotError> {
    let mut text = String::new();
    for question in QUESTIONS {
        text.push_str(&ask("ip", &[&["-N", "-j"], question].concat())?);
        text.push('\n');
    }
    text.push_str(&ask("ss", &["-tuanH"])?);
    text.push_str(&fs::read_to_string(CONNECTIONS).unwrap_or_default());
    if let Ok(cookies) = fs::read_to_string(COOKIES) {
        text.push_str(&format!("net.ipv4.tcp_syncookies = {cookies}"));
    }
    Ok(text)
}

/// The network namespace that the calling thread is in, as it is now.
///
/// # Errors
/// [`SnapshotError`].
pub fn of_host() -> Result<Network, SnapshotError> {
    Ok(parse(&host_text()?)?)
}

/// The output of a tool of iproute2.
fn ask(tool: &'static str, question: &[&str]) -> Result<String, SnapshotError> {
    let output =
        Command::new(tool).args(question).output().map_err(|source| SnapshotError::Run { tool, source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(SnapshotError::Failed { tool, question: question.join(" "), message })
}
