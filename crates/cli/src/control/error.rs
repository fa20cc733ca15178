//! Errors of the control socket.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::question::ENDED;
use crate::common::failure::CommandError;

/// The control socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    #[error("control socket {path}")]
    Socket { path: String, source: io::Error },
    #[error("control socket {path}: its path has {} bytes, and paths of sockets have at most 107", .path.len())]
    PathTooLong { path: String },
    #[error("control socket {path}: a running instance has it")]
    InUse { path: String },
    #[error("control socket {path}: this is no socket, but a file or folder")]
    NoSocket { path: String },
    #[error("control socket {path}: no instance runs there")]
    NotRunning { path: String },
    #[error("control socket {path}: no answer within {timeout:?}")]
    Silent { path: String, timeout: Duration },
    #[error("control socket {path}: the answer is no JSON object")]
    Answer { path: String, source: serde_json::Error },
    #[error("--metrics {address}: {}", listening(.cause))]
    Metrics { address: SocketAddr, cause: io::Error },
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

/// The reason why nobody can listen at an address.
fn listening(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::AddrNotAvailable => "no interface of this host has the address".to_owned(),
        io::ErrorKind::AddrInUse => "another program listens there".to_owned(),
        io::ErrorKind::PermissionDenied => "ports below 1024 take CAP_NET_BIND_SERVICE".to_owned(),
        _ => source.to_string(),
    }
}

impl CommandError for ControlError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NotRunning { .. } => Some(
                "`paceline live --control PATH` makes it when its ports are open; with --wait that is when the interfaces are there"
                    .to_owned(),
            ),
            Self::Silent { .. } => Some(
                "the run does not answer: it is stalled, or another request takes long; this one may take effect later"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}
