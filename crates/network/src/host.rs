//! The network of the host that this runs on.

use std::io;
use std::process::Command;

use crate::{Network, NetworkError};

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

/// Why there is no picture of the host's network.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// `ip` cannot be run.
    #[error("ip (iproute2) cannot be run: {0}")]
    Run(#[from] io::Error),
    /// It failed.
    #[error("ip {question} failed: {message}")]
    Failed {
        /// What it was asked.
        question: String,
        /// What it said.
        message: String,
    },
    /// What it says cannot be understood.
    #[error("what ip says: {0}")]
    Parse(#[from] NetworkError),
}

impl Network {
    /// What iproute2 says of the network namespace that the calling thread is in, as [`Network::parse`] takes it.
    ///
    /// # Errors
    /// [`SnapshotError`]: there is no `ip`, or it failed.
    pub fn host_text() -> Result<String, SnapshotError> {
        let mut text = String::new();
        for question in QUESTIONS {
            let output = Command::new("ip").args(["-N", "-j"]).args(question).output()?;
            if !output.status.success() {
                let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                return Err(SnapshotError::Failed { question: question.join(" "), message });
            }
            text.push_str(&String::from_utf8_lossy(&output.stdout));
            text.push('\n');
        }
        Ok(text)
    }

    /// The network namespace that the calling thread is in, as it is now.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn of_host() -> Result<Self, SnapshotError> {
        Ok(Self::parse(&Self::host_text()?)?)
    }
}
