//! Interfaces whose packets go to AF_XDP sockets.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::program::{AttachMode, attach, load};
use super::umem::Umem;
use crate::device::bpf;
use crate::device::error::{OpenError, Step};
use crate::device::interface::Interface;

/// Options of an AF_XDP device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct XdpOptions {
    /// Where the program is attached.
    pub mode: AttachMode,
    /// Whether the device must place packets in the frames itself (`Some(true)`), must not (`Some(false)`), or may.
    pub zero_copy: Option<bool>,
    /// Whether packets may consist of several frames (Linux 6.6).
    pub multi_buffer: bool,
    /// Microseconds for which a system call polls the device's queue; 0 for no busy polling (Linux 5.11).
    pub busy_poll_us: u32,
    /// Whether programs can ask what the device tells about a packet: time, hash, VLAN tag (Linux 6.8, native mode).
    pub metadata: bool,
}

/// An interface whose packets go to AF_XDP sockets: those of its ports, which are opened first, from [`attach`](Self::attach) on.
///
/// The program that redirects the packets is attached by a link, which the kernel removes when the process ends, and passes packets of
/// queues that have no socket to the host's network stack.
pub struct XdpDevice {
    pub(super) interface: Interface,
    pub(super) umem: Arc<Umem>,
    pub(super) options: XdpOptions,
    queues: u32,
    sockets: OwnedFd,
    program: OwnedFd,
    /// Keeps the program attached.
    link: Mutex<Option<OwnedFd>>,
}

impl XdpDevice {
    /// Loads the program for an interface.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(name: &str, umem: &Arc<Umem>, options: XdpOptions) -> Result<Arc<Self>, OpenError> {
        let interface = Interface::by_name(name)?;
        let failed = |step: Step| move |errno| step.failed(name, errno);
        let queues = interface.receive_queues();
        let sockets = bpf::create_socket_map(queues).map_err(failed(Step::CreateMap))?;
        let bound = options.metadata.then_some(interface.index());
        let program = load(sockets.as_fd(), options.multi_buffer, bound).map_err(|errno| match errno {
            Errno::OPNOTSUPP if options.metadata => {
                let name = name.to_owned();
                OpenError::NotSupported { step: Step::LoadProgram, name, mode: "metadata" }
            }
            errno => Step::LoadProgram.failed(name, errno),
        })?;
        let (umem, link) = (Arc::clone(umem), Mutex::new(None));
        Ok(Arc::new(Self { interface, umem, options, queues, sockets, program, link }))
    }

    /// Attaches the program: from here on packets arrive at the ports that are open. Returns whether the program is in the driver
    /// (native).
    ///
    /// # Errors
    /// [`OpenError::Busy`] if the interface has a program, and others.
    pub fn attach(&self) -> Result<bool, OpenError> {
        let (link, native) = attach(self.program.as_fd(), &self.interface, self.mode())?;
        *self.lock() = Some(link);
        Ok(native)
    }

    /// A program that is bound to a device runs in its driver only.
    fn mode(&self) -> AttachMode {
        if self.options.metadata { AttachMode::Native } else { self.options.mode }
    }

    /// Detaches the program: no more packets arrive, and those that wait in the rings can be received still.
    pub fn detach(&self) {
        drop(self.lock().take());
    }

    fn lock(&self) -> MutexGuard<'_, Option<OwnedFd>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The interface.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Number of receive queues.
    #[must_use]
    pub fn queues(&self) -> u32 {
        self.queues
    }

    /// Redirects a queue's packets to a socket.
    pub(super) fn redirect(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        bpf::set_socket(self.sockets.as_fd(), queue, socket)
    }
}

impl fmt::Debug for XdpDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XdpDevice")
            .field("interface", &self.interface)
            .field("options", &self.options)
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}
