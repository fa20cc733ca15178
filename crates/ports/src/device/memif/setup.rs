//! How a connection is made: the messages of both sides, one after the other. Nothing here waits.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::channel::End;
use super::event::Event;
use super::link::Link;
use super::message::{AddRing, Hello, Init, Message, SECRET, VERSION, padded};
use super::options::MemifOptions;
use super::queue::{Receiver, Sender, Side};
use super::region::{LARGEST, Region};
use super::ring::{MAX_LOG2, Ring, size};

/// Largest number of memories of a client.
const REGIONS: usize = 256;
/// Rings and buffers begin at multiples of this.
const LINE: usize = 64;

/// Result of a message.
pub(super) enum Step {
    /// Another message, with a descriptor.
    Send(Message, Option<OwnedFd>),
    /// The connection is made; a message tells the client so.
    Up(Link, Option<Message>),
}

/// The server's first message.
pub(super) fn hello(options: &MemifOptions) -> Message {
    let last = options.queues - 1;
    Message::Hello(Hello {
        min_version: VERSION,
        max_version: VERSION,
        max_region: (REGIONS - 1) as u16,
        max_to_client: last,
        max_to_server: last,
        max_log2_entries: MAX_LOG2,
    })
}

/// A secret as messages have it.
fn secret(options: &MemifOptions) -> [u8; SECRET] {
    let mut secret = padded::<SECRET>("");
    let text = options.secret.as_bytes();
    let len = text.len().min(SECRET);
    secret[..len].copy_from_slice(&text[..len]);
    secret
}

/// The client's side: it makes memory, rings and events, and offers them to the server.
#[derive(Default)]
pub(super) struct ClientSetup {
    /// Messages that follow, each when the one before is acknowledged.
    messages: VecDeque<(Message, Option<OwnedFd>)>,
    link: Option<(Vec<Receiver>, Vec<Sender>)>,
}

impl ClientSetup {
    pub(super) fn next(&mut self, options: &MemifOptions, message: Message) -> Result<Step, End> {
        match message {
            Message::Hello(hello) if self.link.is_none() => self.offer(options, &hello),
            Message::Ack => {
                let next = self.messages.pop_front();
                next.map(|(message, fd)| Step::Send(message, fd)).ok_or(End::Broken("unexpected message"))
            }
            Message::Connected if self.messages.is_empty() => {
                let (mut receivers, senders) = self.link.take().ok_or(End::Broken("unexpected message"))?;
                for receiver in &mut receivers {
                    receiver.begin()?;
                }
                Ok(Step::Up(Link::new(receivers, senders), None))
            }
            _ => Err(End::Broken("unexpected message")),
        }
    }

    /// Makes as many queues as the server and the options permit.
    fn offer(&mut self, options: &MemifOptions, hello: &Hello) -> Result<Step, End> {
        if hello.min_version > VERSION || hello.max_version < VERSION {
            return Err(End::Broken("incompatible memif version"));
        }
        let to_server = options.queues.min(hello.max_to_server.saturating_add(1));
        let to_client = options.queues.min(hello.max_to_client.saturating_add(1));
        let log2_entries = options.log2_entries.min(hello.max_log2_entries);
        let buffer = options.buffer_len as usize;
        let ring_len = size(log2_entries).next_multiple_of(LINE);
        let buffers_len = (buffer << log2_entries).next_multiple_of(LINE);
        let rings = usize::from(to_server) + usize::from(to_client);
        let (region, memory) = Region::create(rings * (ring_len + buffers_len))?;
        for ring in 0..rings {
            Ring::format(&region, ring * ring_len);
        }
        let regions: Arc<[Region]> = Arc::new([region]);
        let mut later = VecDeque::from([(
            Message::AddRegion { index: 0, size: (rings * (ring_len + buffers_len)) as u64 },
            Some(memory),
        )]);
        let (mut receivers, mut senders) = (Vec::new(), Vec::new());
        for number in 0..rings {
            let (offset, buffers) = (number * ring_len, rings * ring_len + number * buffers_len);
            let ring = Ring::open(&regions, 0, offset as u32, log2_entries)?;
            let event = Event::new()?;
            let (to_server, index) = match (number as u16).checked_sub(to_server) {
                None => (true, number as u16),
                Some(index) => (false, index),
            };
            let add = AddRing { to_server, index, region: 0, offset: offset as u32, log2_entries };
            later.push_back((Message::AddRing(add), Some(event.share()?)));
            let side = Side::Client { buffers: buffers as u32, len: buffer as u32 };
            if to_server {
                senders.push(Sender::new(ring, event, side));
            } else {
                receivers.push(Receiver::new(ring, event, side));
            }
        }
        later.push_back((Message::Connect, None));
        (self.messages, self.link) = (later, Some((receivers, senders)));
        let init = Init { version: VERSION, id: options.id, mode: 0, secret: secret(options) };
        Ok(Step::Send(Message::Init(init), None))
    }
}

/// The server's side: it collects what a client offers.
#[derive(Default)]
pub(super) struct ServerSetup {
    is_known: bool,
    regions: Vec<Region>,
    /// Size of all of them in bytes.
    total: u64,
    /// Rings by index.
    to_server: Vec<(AddRing, Event)>,
    to_client: Vec<(AddRing, Event)>,
}

impl ServerSetup {
    pub(super) fn next(
        &mut self,
        options: &MemifOptions,
        message: Message,
        fd: Option<OwnedFd>,
    ) -> Result<Step, End> {
        match message {
            Message::Init(init) if !self.is_known => {
                check(options, &init)?;
                self.is_known = true;
            }
            _ if !self.is_known => return Err(End::Broken("unexpected message")),
            Message::AddRegion { index, size } => {
                let fd = fd.ok_or(End::Broken("region without its descriptor"))?;
                if usize::from(index) != self.regions.len() || self.regions.len() >= REGIONS {
                    return Err(End::Broken("invalid region index"));
                }
                self.total = self.total.saturating_add(size);
                if self.total > LARGEST {
                    return Err(End::Broken("regions are too large"));
                }
                self.regions.push(Region::open(&fd, size)?);
            }
            Message::AddRing(ring) => {
                let fd = fd.ok_or(End::Broken("ring without its descriptor"))?;
                let rings = if ring.to_server { &mut self.to_server } else { &mut self.to_client };
                if usize::from(ring.index) != rings.len() || ring.index >= options.queues {
                    return Err(End::Broken("invalid ring index"));
                }
                rings.push((ring, Event::of_peer(fd)?));
            }
            Message::Connect => return Ok(Step::Up(self.link()?, Some(Message::Connected))),
            _ => return Err(End::Broken("unexpected message")),
        }
        Ok(Step::Send(Message::Ack, None))
    }

    fn link(&mut self) -> Result<Link, End> {
        let regions: Arc<[Region]> = std::mem::take(&mut self.regions).into();
        let open = |ring: &AddRing| Ring::open(&regions, ring.region, ring.offset, ring.log2_entries);
        let receiver = |(add, event): (AddRing, Event)| Ok(Receiver::new(open(&add)?, event, Side::Server));
        let sender = |(add, event): (AddRing, Event)| Ok(Sender::new(open(&add)?, event, Side::Server));
        let receivers = self.to_server.drain(..).map(receiver).collect::<Result<_, End>>()?;
        let senders = self.to_client.drain(..).map(sender).collect::<Result<_, End>>()?;
        Ok(Link::new(receivers, senders))
    }
}

/// Whether a client may have the interface.
fn check(options: &MemifOptions, init: &Init) -> Result<(), End> {
    match () {
        () if init.version != VERSION => Err(End::Broken("incompatible memif version")),
        () if init.id != options.id => Err(End::Broken("ID not found")),
        () if init.mode != 0 => Err(End::Broken("only Ethernet is supported")),
        () if !options.secret.is_empty() && init.secret != secret(options) => {
            Err(End::Broken("incorrect secret"))
        }
        () => Ok(()),
    }
}
