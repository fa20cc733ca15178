//! Errors of opening a device.

use std::fmt;
use std::io;

use rustix::io::Errno;

/// A device cannot be opened as a port.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The network namespace has no such interface.
    #[error("there is no interface `{name}`")]
    NoInterface {
        /// The name.
        name: String,
    },
    /// The interface has no such receive queue.
    #[error("interface `{name}` has no queue {queue}, only 0 to {}", queues.saturating_sub(1))]
    NoQueue {
        /// Name of the interface.
        name: String,
        /// The queue.
        queue: u32,
        /// Number of queues of the interface.
        queues: u32,
    },
    /// The process lacks a privilege.
    #[error("no permission to {step}: it takes {needs}")]
    NotPermitted {
        /// The refused step.
        step: Step,
        /// The capability that permits it.
        needs: &'static str,
    },
    /// Another socket or program uses the device.
    #[error("cannot {step}: `{name}` is in use by another program")]
    Busy {
        /// The refused step.
        step: Step,
        /// Name of the interface, with the queue.
        name: String,
    },
    /// The kernel or the device's driver does not support the requested mode.
    #[error("cannot {step}: `{name}` does not support {mode}")]
    NotSupported {
        /// The refused step.
        step: Step,
        /// Name of the interface.
        name: String,
        /// The requested mode.
        mode: &'static str,
    },
    /// The MTU of the interface is more than XDP takes in one buffer.
    #[error("cannot attach the redirecting program: the MTU of `{name}`{} is more than XDP takes in one buffer of this driver", .mtu.map_or_else(String::new, |mtu| format!(", {mtu} bytes,")))]
    Mtu {
        /// Name of the interface.
        name: String,
        /// Its MTU in bytes, where the kernel tells it.
        mtu: Option<u32>,
    },
    /// The name cannot be that of an interface.
    #[error("`{name}` cannot be the name of an interface: it has 1 to 15 bytes, without `/`, `:` and spaces")]
    Name {
        /// The name.
        name: String,
    },
    /// Another port of the same memory has other options.
    #[error("interface `{name}`: ports that share memory must agree on zero copy and several buffers")]
    Mixed {
        /// Name of the interface.
        name: String,
    },
    /// The pool has too few free frames.
    #[error("the pool has too few free frames: {free}, {wanted} wanted")]
    NoFrames {
        /// Number of free frames.
        free: usize,
        /// Number of frames that the port keeps.
        wanted: usize,
    },
    /// The user may not lock as much memory as the packet memory takes.
    #[error("packet memory of {} MiB exceeds the limit of locked memory; it takes CAP_IPC_LOCK or a higher limit", bytes >> 20)]
    LockedMemory {
        /// Size of the packet memory in bytes.
        bytes: u64,
    },
    /// The memory of the pool cannot be registered with the kernel.
    #[error("the pool's memory is not that of a UMEM")]
    ForeignPool,
    /// The library of DPDK's ports cannot be loaded.
    #[error("DPDK is not available: {cause}")]
    NoDpdk {
        /// The dynamic linker's error, or the difference in versions.
        cause: String,
    },
    /// DPDK cannot be initialized, or a device not be opened.
    #[error("{message}")]
    Dpdk {
        /// The failed step and its error, as DPDK reports it.
        message: String,
    },
    /// Another program accepts connections at the socket.
    #[error("socket `{socket}` is in use by another program")]
    SocketInUse {
        /// Path or abstract name of the socket.
        socket: String,
    },
    /// A socket cannot be made, or connected to.
    #[error("socket `{socket}`")]
    Socket {
        /// Path or abstract name of the socket.
        socket: String,
        /// Cause.
        source: io::Error,
    },
    /// The peer at a socket refuses the connection.
    #[error("the server at `{socket}` refuses the connection: {reason}")]
    Refused {
        /// Path or abstract name of the socket.
        socket: String,
        /// The reason, as the peer or the protocol tells it.
        reason: String,
    },
    /// The memory of an interface would be too large, or its options are out of range.
    #[error("memory of {} MiB for `{socket}` is too large: it takes fewer queues, smaller rings or smaller buffers", bytes >> 20)]
    TooLarge {
        /// Path or abstract name of the socket.
        socket: String,
        /// Size of the memory in bytes.
        bytes: u64,
    },
    /// Another error of the system.
    #[error("cannot {step}")]
    System {
        /// The failed step.
        step: Step,
        /// Cause.
        source: io::Error,
    },
}

/// Steps of opening a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Creating a socket.
    CreateSocket,
    /// Opening `/dev/net/tun`.
    OpenTun,
    /// Attaching to, or creating, a TAP interface.
    AttachTap,
    /// Setting an option of a socket.
    SetOption,
    /// Mapping rings or packet memory.
    MapMemory,
    /// Registering packet memory with the kernel.
    RegisterMemory,
    /// Binding a socket to an interface.
    Bind,
    /// Creating the map of sockets.
    CreateMap,
    /// Loading the program that redirects packets to the socket.
    LoadProgram,
    /// Attaching this program.
    AttachProgram,
    /// Adding a socket to the map.
    UpdateMap,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CreateSocket => "create a socket",
            Self::OpenTun => "open /dev/net/tun",
            Self::AttachTap => "attach to the TAP interface",
            Self::SetOption => "set an option of the socket",
            Self::MapMemory => "map memory",
            Self::RegisterMemory => "register packet memory",
            Self::Bind => "bind the socket to the interface",
            Self::CreateMap => "create the map of sockets",
            Self::LoadProgram => "load the redirecting program",
            Self::AttachProgram => "attach the redirecting program",
            Self::UpdateMap => "add the socket to the map",
        })
    }
}

impl Step {
    /// The privilege that permits the step.
    fn needs(self) -> &'static str {
        match self {
            Self::CreateSocket | Self::Bind => "CAP_NET_RAW",
            Self::OpenTun => "write access to /dev/net/tun",
            Self::AttachTap | Self::SetOption => "CAP_NET_ADMIN, or a TAP interface that belongs to the user",
            Self::RegisterMemory | Self::MapMemory => "a higher limit of locked memory (`ulimit -l`)",
            Self::CreateMap | Self::LoadProgram | Self::UpdateMap => "CAP_BPF and CAP_NET_ADMIN",
            Self::AttachProgram => "CAP_NET_ADMIN",
        }
    }

    /// The error of this step on an interface.
    pub(crate) fn failed(self, name: &str, errno: Errno) -> OpenError {
        match errno {
            // veth and others check the MTU so (`veth_xdp_set` in `drivers/net/veth.c`).
            Errno::RANGE if self == Self::AttachProgram => {
                OpenError::Mtu { name: name.to_owned(), mtu: crate::device::ethtool::mtu(name) }
            }
            Errno::PERM | Errno::ACCESS => OpenError::NotPermitted { step: self, needs: self.needs() },
            Errno::BUSY | Errno::EXIST => OpenError::Busy { step: self, name: name.to_owned() },
            Errno::NODEV | Errno::NXIO => OpenError::NoInterface { name: name.to_owned() },
            errno => OpenError::System { step: self, source: errno.into() },
        }
    }
}
