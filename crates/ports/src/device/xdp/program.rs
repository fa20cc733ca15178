//! The kernel's side: a program that redirects packets to sockets by queue.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use paceline_isa::assemble;
use rustix::io::Errno;

use super::metadata;
use crate::device::bpf;
use crate::device::error::{OpenError, Step};
use crate::device::interface::Interface;

/// `XDP_FLAGS_*` of `linux/if_link.h`.
const SKB_MODE: u32 = 1 << 1;
const DRV_MODE: u32 = 1 << 2;

/// Place where the kernel takes packets from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AttachMode {
    /// Native if the driver supports it, otherwise generic.
    #[default]
    Best,
    /// In the driver, before the kernel allocates an `sk_buff`.
    Native,
    /// In the network stack, from `sk_buff`s: any interface.
    Generic,
}

/// Redirects to the socket of the packet's queue, by `bpf_redirect_map`; without one, the flags say that the packet passes. For a
/// device, by its interface's index, the program is bound to it, and records what it tells about packets.
pub(super) fn load(sockets: BorrowedFd<'_>, frags: bool, device: Option<u32>) -> Result<OwnedFd, Errno> {
    let (recording, context) = match device {
        Some(_) => (metadata::recording()?, "r6"),
        None => (String::new(), "r1"),
    };
    let text = format!(
        "{recording}
         r2 = *(u32 *)({context} + 16)
         r1 = map_fd[{}] ll
         r3 = 2
         call 51
         exit",
        sockets.as_raw_fd()
    );
    let insns = assemble(&text, &()).ok().and_then(|code| code.encode().ok()).ok_or(Errno::INVAL)?;
    bpf::load_xdp(&insns, frags, device)
}

/// Attaches the program, and tells whether it is in the driver.
pub(super) fn attach(
    program: BorrowedFd<'_>,
    interface: &Interface,
    mode: AttachMode,
) -> Result<(OwnedFd, bool), OpenError> {
    let attach = |flags| bpf::attach_xdp(program, interface.index(), flags);
    let result = match mode {
        AttachMode::Native => attach(DRV_MODE).map(|link| (link, true)),
        AttachMode::Generic => attach(SKB_MODE).map(|link| (link, false)),
        AttachMode::Best => match attach(DRV_MODE) {
            Err(Errno::OPNOTSUPP | Errno::INVAL) => attach(SKB_MODE).map(|link| (link, false)),
            result => result.map(|link| (link, true)),
        },
    };
    result.map_err(|errno| match errno {
        Errno::OPNOTSUPP => OpenError::NotSupported {
            step: Step::AttachProgram,
            name: interface.name().to_owned(),
            mode: "native XDP",
        },
        errno => Step::AttachProgram.failed(interface.name(), errno),
    })
}
