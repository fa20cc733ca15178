//! The control side of an interface: finds a peer, makes a connection with it, notices its end, and begins again.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use super::channel::{Channel, End};
use super::link::Shared;
use super::message::Message;
use super::options::{MemifOptions, MemifRole};
use super::setup::{ClientSetup, ServerSetup, Step, hello};
use super::socket::{self, Listener};
use super::watch::Watch;

/// Time in which a peer must make a connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two attempts of a client.
const RETRY: Duration = Duration::from_millis(200);

/// An interface without its queues.
pub(super) struct Endpoint {
    options: MemifOptions,
    address: SocketAddrUnix,
    /// Of a server.
    listener: Option<Listener>,
    peer: Option<Peer>,
    shared: Arc<Shared>,
    watch: Watch,
    /// Not before this time, a client tries again.
    again: Instant,
}

/// The other side.
struct Peer {
    channel: Channel,
    stage: Stage,
    since: Instant,
}

enum Stage {
    Client(ClientSetup),
    Server(ServerSetup),
    Up,
}

impl Endpoint {
    /// Makes the socket of a server; a client has none yet.
    pub(super) fn open(name: &str, options: &MemifOptions, shared: &Arc<Shared>) -> Result<Self, Errno> {
        let listener = match options.role {
            MemifRole::Server => Some(Listener::bind(name)?),
            MemifRole::Client => None,
        };
        let watch = Watch::new()?;
        if let Some(listener) = &listener {
            watch.add(listener.as_fd())?;
        }
        Ok(Self {
            options: options.clone(),
            address: socket::address(name)?,
            listener,
            peer: None,
            shared: Arc::clone(shared),
            watch,
            again: Instant::now(),
        })
    }

    /// Becomes readable when there is something to do, also when packets have arrived in descriptors that are added to it.
    pub(super) fn watch(&self) -> &Watch {
        &self.watch
    }

    pub(super) fn has_peer(&self) -> bool {
        self.peer.is_some()
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.peer, Some(Peer { stage: Stage::Up, .. }))
    }

    /// Does what is to be done now.
    ///
    /// # Errors
    /// Why a connection ended, or was not made; the next call begins again.
    pub(super) fn attend(&mut self) -> Result<(), End> {
        let failure = if self.is_up() { self.shared.failure() } else { None };
        let done = match failure {
            Some(end) => Err(end),
            None => self.find_peer().and_then(|()| self.advance()),
        };
        self.turn_away();
        done.inspect_err(|end| self.hang_up(end))
    }

    fn find_peer(&mut self) -> Result<(), End> {
        if self.peer.is_some() {
            return Ok(());
        }
        let (socket, stage) = if let Some(listener) = &self.listener {
            let Some(socket) = listener.accept() else { return Ok(()) };
            (socket, Stage::Server(ServerSetup::default()))
        } else {
            if Instant::now() < self.again {
                return Ok(());
            }
            self.again = Instant::now() + RETRY;
            match socket::connect_to(&self.address) {
                Ok(socket) => (socket, Stage::Client(ClientSetup::default())),
                // No server yet, or one that is busy.
                Err(Errno::NOENT | Errno::CONNREFUSED | Errno::AGAIN) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        };
        let channel = Channel(socket);
        self.watch.add(channel.as_fd())?;
        let peer = self.peer.insert(Peer { channel, stage, since: Instant::now() });
        match peer.stage {
            Stage::Server(_) => peer.channel.send(&hello(&self.options), None),
            _ => Ok(()),
        }
    }

    /// Reads the peer's messages and answers them.
    fn advance(&mut self) -> Result<(), End> {
        let Some(peer) = &mut self.peer else { return Ok(()) };
        while let Some((message, fd)) = peer.channel.receive()? {
            if let Message::Disconnect { reason } = message {
                return Err(End::ByPeer(reason));
            }
            let step = match &mut peer.stage {
                Stage::Client(setup) => setup.next(&self.options, message)?,
                Stage::Server(setup) => setup.next(&self.options, message, fd)?,
                Stage::Up => return Err(End::Broken("unexpected message")),
            };
            match step {
                Step::Send(message, fd) => {
                    peer.channel.send(&message, fd.as_ref().map(AsFd::as_fd))?;
                }
                Step::Up(link, answer) => {
                    peer.stage = Stage::Up;
                    self.shared.publish(Some(Arc::new(link)));
                    if let Some(answer) = answer {
                        peer.channel.send(&answer, None)?;
                    }
                }
            }
        }
        if !matches!(peer.stage, Stage::Up) && peer.since.elapsed() > PATIENCE {
            return Err(End::Broken("the connection is not made in time"));
        }
        Ok(())
    }

    /// Refuses clients beside the one that is connected.
    fn turn_away(&self) {
        let (Some(listener), Some(_)) = (&self.listener, &self.peer) else { return };
        while let Some(socket) = listener.accept() {
            let reason = "already connected".to_owned();
            let _ = Channel(socket).send(&Message::Disconnect { reason }, None);
        }
    }

    /// Ends the connection, and tells the peer why.
    fn hang_up(&mut self, end: &End) {
        let Some(peer) = self.peer.take() else { return };
        let reason = match end {
            End::Closed | End::ByPeer(_) => None,
            End::Broken(why) => Some((*why).to_owned()),
            End::System(errno) => Some(std::io::Error::from(*errno).to_string()),
        };
        if let Some(reason) = reason {
            let _ = peer.channel.send(&Message::Disconnect { reason }, None);
        }
        self.watch.remove(peer.channel.as_fd());
        if matches!(peer.stage, Stage::Up) {
            self.shared.publish(None);
        }
        self.again = Instant::now() + RETRY;
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Some(peer) = &self.peer {
            let _ = peer.channel.send(&Message::Disconnect { reason: "closed".to_owned() }, None);
        }
    }
}
