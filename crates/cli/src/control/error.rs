//! Errors of the control socket.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::question::ENDED;
use crate::common::failure::CommandError;

/// The control socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    #[error("control socket {path}: {source}")]
    Socket { path: String, source: io::Error },
    #[error("control socket {path}: a running instance has it")]
    InUse { path: String },
    #[error("control socket {path}: this is a file, and no socket")]
    NoSocket { path: String },
    #[error("control socket {path}: no instance runs there")]
    NotRunning { path: String },
    #[error("control socket {path}: no answer within {timeout:?}")]
    Silent { path: String, timeout: Duration },
    #[error("control socket {path}: the answer is no JSON object: {source}")]
    Answer { path: String, source: serde_json::Error },
    #[error("--metrics {address}: {source}")]
    Metrics { address: SocketAddr, source: io::Error },
    #[error("there is no thread for clients: {0}")]
    Thread(io::Error),
    #[error("{0}")]
    Refused(String),
}

impl ControlError {
    /// Whether the instance ended, before or while it was asked.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::NotRunning { .. } => true,
            Self::Answer { source, .. } => source.is_eof(),
            Self::Socket { source, .. } => {
                matches!(source.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
            }
            Self::Refused(reason) => reason == ENDED,
            _ => false,
        }
    }
}

impl CommandError for ControlError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NotRunning { .. } => Some("`paceline live --control PATH` makes it".to_owned()),
            Self::Silent { .. } => Some(
                "the run does not answer: it stands still, or another request takes long; this one may take effect later"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}
