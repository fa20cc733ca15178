//! Errors of ports.

use paceline::capture::ReadError;
use paceline::device::OpenError;

use crate::common::failure::CommandError;

/// A port cannot be used; `port` is the option with its value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PortError {
    /// A device.
    #[error("{port}")]
    Open { port: String, source: OpenError },
    /// A capture cannot be opened or created.
    #[error("{port}: {name}")]
    File { port: String, name: String, source: std::io::Error },
    /// A capture is malformed.
    #[error("{port}: {name}")]
    Read { port: String, name: String, source: Box<ReadError> },
    /// The output of a capture cannot be written.
    #[error("{port}")]
    Write { port: String, source: paceline::port::PortError },
    /// A driver of DPDK's detaches its program at the end only with privileges.
    #[error(
        "{port}: this driver of DPDK's attaches a program, which it can detach with --keep-privileges only"
    )]
    StaysAttached { port: String },
    /// Two ports are the same interface.
    #[error("{port} and {other} are one interface")]
    Twice { port: String, other: String },
}

impl CommandError for PortError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Open { source: OpenError::NotPermitted { .. }, .. } => Some(
                "run it as root, or without any privilege in a network namespace of your own: `unshare -rn` (tap and packet)"
                    .to_owned(),
            ),
            Self::Open { source: OpenError::LockedMemory { .. }, .. } => {
                Some("`ulimit -l` shows the limit; fewer --frames take less".to_owned())
            }
            Self::Open { source: OpenError::Busy { .. }, .. } => {
                Some("`ip link show` and `bpftool net` tell which program an interface has".to_owned())
            }
            Self::Open { source: OpenError::NoDpdk { .. }, .. } => {
                Some("`make -C dpdk install` builds and installs it; PACELINE_DPDK names another file".to_owned())
            }
            Self::Open { source: OpenError::Refused { .. }, .. } => {
                Some("id and secret must be those of the server's interface".to_owned())
            }
            Self::Open { source: OpenError::Mtu { name, .. }, port } => Some(format!(
                "`{port},multi-buffer` takes packets of several buffers, for programs of section xdp.frags; or lower the MTU: `ip link set \
                 {name} mtu 1500`"
            )),
            Self::StaysAttached { .. } => {
                Some("`xdp:IFACE` needs neither, and its program ends with the process".to_owned())
            }
            _ => None,
        }
    }
}
