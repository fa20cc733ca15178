//! A queue of a memif interface as a port.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::port::{Group, Port, PortError, SendError};
use paceline_frame::{Burst, FramePool, FrameRef, PoolCache};
use rustix::io::Errno;

use super::channel::End;
use super::endpoint::Endpoint;
use super::link::{Link, Shared};
use super::options::{MemifOptions, MemifRole};
use super::watch::Watch;
use crate::device::error::OpenError;

/// Calls of `receive` without a packet between two looks at the peer.
const CHECK_EVERY: u32 = 64;
/// Calls of `receive` between two looks at the peer in any case.
const CHECK_ALWAYS: u32 = 4096;
/// Time that opening waits for the answers of a server that is there, and the pause between two looks.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_micros(500);

/// A queue of a shared-memory packet interface (memif, version 2 of its protocol), as VPP and DPDK have them. The other side is another process.
///
/// A peer may come and go: without one, no packet arrives, and none can be sent. What it writes to the shared memory is not trusted:
/// packets are copied, and a peer that breaks the protocol is disconnected.
pub struct MemifPort {
    queue: usize,
    /// The control side, which the port of the first queue has.
    endpoint: Option<Endpoint>,
    /// Descriptors that the other ports wait for.
    own_watch: Option<Watch>,
    shared: Arc<Shared>,
    /// The connection, with its number.
    link: Option<Arc<Link>>,
    generation: u32,
    role: MemifRole,
    cache: PoolCache,
    dropped: u64,
    calls: u32,
    idle: u32,
    /// Entries that may still be received after [`stop`](Port::stop).
    left: Option<usize>,
}

impl MemifPort {
    /// Opens an interface at a socket, a path or `@` with an abstract name, and returns a port for each queue of the options. Packets are
    /// received in frames of the pool.
    ///
    /// A server makes the socket. A client connects to it; if no server is there, it tries again while packets are received.
    ///
    /// # Errors
    /// [`OpenError`]: the options are out of range, the socket cannot be made or used, or the server refuses the client.
    pub fn open(socket: &str, options: &MemifOptions, pool: &Arc<FramePool>) -> Result<Vec<Self>, OpenError> {
        options.check(socket)?;
        let failed = |errno| match errno {
            Errno::ADDRINUSE => OpenError::SocketInUse { socket: socket.to_owned() },
            errno => OpenError::Socket { socket: socket.to_owned(), source: Errno::into(errno) },
        };
        let shared = Arc::new(Shared::default());
        let mut endpoint = Endpoint::open(socket, options, &shared).map_err(failed)?;
        if options.role == MemifRole::Client {
            connect(&mut endpoint).map_err(|end| refused(socket, end))?;
        }
        let mut endpoint = Some(endpoint);
        let port = |queue| {
            let endpoint = endpoint.take();
            let own_watch = if endpoint.is_none() { Some(Watch::new().map_err(failed)?) } else { None };
            Ok(Self {
                queue,
                endpoint,
                own_watch,
                shared: Arc::clone(&shared),
                link: None,
                generation: 0,
                role: options.role,
                cache: PoolCache::new(pool),
                dropped: 0,
                calls: 0,
                idle: 0,
                left: None,
            })
        };
        (0..usize::from(options.queues)).map(port).collect()
    }

    /// Role of the interface.
    #[must_use]
    pub fn role(&self) -> MemifRole {
        self.role
    }

    /// Whether a peer is connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.shared.link().1.is_some()
    }

    fn watch(&self) -> Option<&Watch> {
        self.endpoint.as_ref().map(Endpoint::watch).or(self.own_watch.as_ref())
    }

    /// Follows the connection to a new one, or to none.
    #[cold]
    fn follow(&mut self) {
        self.forget();
        (self.generation, self.link) = self.shared.link();
        let (Some(link), Some(watch)) = (&self.link, self.watch()) else { return };
        if let Some(receiver) = link.receiver(self.queue)
            && let Err(errno) = watch.add(receiver.descriptor())
        {
            // Such as a file instead of an event.
            self.shared.fail(self.generation, errno.into());
        }
    }

    /// Leaves the connection.
    fn forget(&mut self) {
        let (Some(link), Some(watch)) = (self.link.take(), self.watch()) else { return };
        if let Some(receiver) = link.receiver(self.queue) {
            watch.remove(receiver.descriptor());
        }
    }

    /// Looks at the control side, and at interrupts without packets.
    #[cold]
    fn attend(&mut self) {
        if let Some(receiver) = self.link.as_ref().and_then(|link| link.receiver(self.queue)) {
            receiver.clear_event();
        }
        if let Some(endpoint) = &mut self.endpoint {
            // The end of a connection is no end of the port: another one may follow.
            let _ = endpoint.attend();
        }
    }

    /// Does what is due beside packets.
    #[inline]
    fn turn(&mut self) {
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(CHECK_ALWAYS) {
            self.attend();
        }
        if self.shared.generation() != self.generation {
            self.follow();
        }
    }

    /// The result of a queue's work; a peer that breaks the protocol gets no more.
    fn checked(&mut self, done: Result<usize, End>) -> usize {
        done.unwrap_or_else(|end| {
            self.shared.fail(self.generation, end);
            self.forget();
            0
        })
    }
}

/// Makes a connection, if a server is there and answers soon.
fn connect(endpoint: &mut Endpoint) -> Result<(), End> {
    let end = Instant::now() + PATIENCE;
    endpoint.attend()?;
    while endpoint.has_peer() && !endpoint.is_up() && Instant::now() < end {
        thread::sleep(PAUSE);
        endpoint.attend()?;
    }
    Ok(())
}

fn refused(socket: &str, end: End) -> OpenError {
    let socket = socket.to_owned();
    match end {
        End::System(errno) => OpenError::Socket { socket, source: errno.into() },
        End::Closed => OpenError::Refused { socket, reason: "it closes the connection".to_owned() },
        End::ByPeer(reason) => OpenError::Refused { socket, reason },
        End::Broken(reason) => OpenError::Refused { socket, reason: reason.to_owned() },
    }
}

impl Port for MemifPort {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        // Before the look at the ring: what arrives after an interrupt was forgotten is found.
        if self.idle >= CHECK_EVERY {
            self.idle = 0;
            self.attend();
        }
        self.turn();
        let most = self.left.unwrap_or(burst.room());
        let (cache, dropped) = (&mut self.cache, &mut self.dropped);
        let done = match self.link.as_ref().and_then(|link| link.receiver(self.queue)) {
            Some(mut receiver) if most > 0 => {
                burst.limited(most, |burst| receiver.receive(burst, cache, dropped))
            }
            _ => Ok(0),
        };
        let received = self.checked(done);
        if let Some(left) = &mut self.left {
            *left = if received == 0 { 0 } else { left.saturating_sub(received) };
        }
        if received == 0 {
            self.idle += 1;
        }
        Ok(received)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, SendError> {
        self.turn();
        let done = match self.link.as_ref().and_then(|link| link.sender(self.queue)) {
            Some(mut sender) => sender.send(group.iter().map(FrameRef::into_packet)),
            None => Ok(0),
        };
        Ok(self.checked(done))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.watch().map(AsFd::as_fd)
    }

    /// Packets in the ring are received still; a peer cannot be told to send no more.
    fn stop(&mut self) {
        let receiver = self.link.as_ref().and_then(|link| link.receiver(self.queue));
        let available = receiver.and_then(|receiver| receiver.available().ok());
        self.left = Some(available.map_or(0, usize::from));
    }

    fn dropped(&mut self) -> u64 {
        self.dropped
    }
}

impl fmt::Debug for MemifPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemifPort")
            .field("role", &self.role)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}
