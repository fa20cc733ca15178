//! The network of this host.

use std::process::Command;
use std::{fs, io};

use crate::network::Network;

use super::error::NetworkError;
use super::text::parse;

/// Arguments of `ip`; with numbers instead of names that are defined in files of this host.
const QUESTIONS: [&[&str]; 7] = [
    &["addr"],
    &["-4", "route", "show", "table", "all"],
    &["-6", "route", "show", "table", "all"],
    &["neigh", "show", "nud", "all"],
    &["-4", "rule"],
    &["-6", "rule"],
    &["netconf"],
];

/// The tracked connections of the thread's namespace, if the kernel has the file and the user may read it.
const CONNECTIONS: &str = "/proc/thread-self/net/nf_conntrack";
/// The setting of TCP's SYN cookies of the namespace.
const COOKIES: &str = "/proc/sys/net/ipv4/tcp_syncookies";

/// Errors of reading the host's network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// `ip` or `ss` cannot be run.
    #[error("{tool} (iproute2) cannot be run")]
    Run {
        /// The tool.
        tool: &'static str,
        /// The error.
        source: io::Error,
    },
    /// The tool failed.
    #[error("{tool} {question} failed: {message}")]
    Failed {
        /// The tool.
        tool: &'static str,
        /// Its arguments.
        question: String,
        /// Its error output.
        message: String,
    },
    /// The output cannot be parsed.
    #[error("what ip and ss say")]
    Parse(#[from] NetworkError),
}

/// iproute2's description of the calling thread's network namespace, in the format of [`parse`], with the tracked connections if
/// they can be read.
///
/// # Errors
/// [`SnapshotError`] if `ip` or `ss` is missing or fails.
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

/// The current network of the calling thread's network namespace.
///
/// # Errors
/// [`SnapshotError`].
pub fn of_host() -> Result<Network, SnapshotError> {
    Ok(parse(&host_text()?)?)
}

/// Runs a tool of iproute2 and returns its output.
fn ask(tool: &'static str, question: &[&str]) -> Result<String, SnapshotError> {
    let output =
        Command::new(tool).args(question).output().map_err(|source| SnapshotError::Run { tool, source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(SnapshotError::Failed { tool, question: question.join(" "), message })
}
