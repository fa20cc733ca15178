//! Packets as C passes them, and frames as it gets them.

use paceline::{Burst, FrameMeta, FrameRef, RedirectTarget};

use crate::raw::{Bytes, given, written};
use crate::status::{Failure, paceline_status};

/// A packet. Several in a row are an array of these; the first has the size of each.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_packet {
    /// sizeof(struct paceline_packet)
    pub size: usize,
    /// Its bytes, from the Ethernet header on.
    pub data: Bytes,
    /// Their number.
    pub length: usize,
    /// Metadata before the packet, at most 252 bytes and a multiple of 4: null and 0 without. For paceline_burst_place it must
    /// lie right before the packet.
    pub metadata: Bytes,
    /// Its length in bytes.
    pub metadata_length: usize,
    /// Time of reception in nanoseconds since 1970, for hosts whose time comes from packets.
    pub time_ns: u64,
    /// Length on the wire in bytes, if that is more; 0 if it is not.
    pub wire_length: u32,
    /// Index of the interface it came in on; 0 for none.
    pub ingress_ifindex: u32,
    /// Index of the interface it goes out of, for programs in device maps.
    pub egress_ifindex: u32,
    /// Queue of the interface it came in on, at most 65535.
    pub rx_queue: u32,
}

given!(paceline_packet);

/// Where a redirected packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum paceline_redirect {
    /// Nowhere: no helper set a target.
    None = 0,
    /// Out of the interface of index `target`.
    Interface = 1,
    /// To the element `key` of the map of number `target`.
    Map = 2,
}

/// A packet in a burst, as a program left it. Several are an array of these; the first has the size of each.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_frame {
    /// sizeof(struct paceline_frame)
    pub size: usize,
    /// The packet's bytes, which may be written: good until the burst is cleared, freed or run again.
    pub data: *mut u8,
    /// Their number.
    pub length: usize,
    /// Metadata before the packet.
    pub metadata: *mut u8,
    /// Its length in bytes.
    pub metadata_length: usize,
    /// Return value of the program: all 64 bits after paceline_program_run, the low 32 in bursts, and there for TC classifiers what their
    /// action means (enum paceline_verdict).
    pub return_value: u64,
    /// Fate of the packet, one of enum paceline_verdict, for programs whose return values are verdicts: others than these count as
    /// aborted.
    pub verdict: u32,
    /// One of enum paceline_redirect; of meaning if the verdict is PACELINE_VERDICT_REDIRECT.
    pub redirect: u32,
    /// Interface or number of the map.
    pub target: u32,
    /// Key in the map.
    pub key: u32,
    /// Flags that the program gave with the target.
    pub redirect_flags: u32,
    /// Length on the wire in bytes.
    pub wire_length: u32,
}

written!(paceline_frame);

impl paceline_frame {
    #[inline]
    pub(crate) fn of(frame: FrameRef<'_>, return_value: u64) -> Self {
        let (redirect, target, key, redirect_flags) = match frame.redirect() {
            None => (paceline_redirect::None, 0, 0, 0),
            Some(redirect) => match redirect.target {
                RedirectTarget::Interface { ifindex } => {
                    (paceline_redirect::Interface, ifindex, 0, redirect.flags)
                }
                RedirectTarget::Map { map, key } => (paceline_redirect::Map, map, key, redirect.flags),
            },
        };
        Self {
            size: size_of::<Self>(),
            data: frame.data(),
            length: frame.len(),
            metadata: frame.data_meta(),
            metadata_length: frame.metadata().len(),
            return_value,
            verdict: frame.verdict() as u32,
            redirect: redirect as u32,
            target,
            key,
            redirect_flags,
            wire_length: frame.meta().original_len,
        }
    }
}

impl paceline_packet {
    /// Metadata of the packet from a port.
    #[inline]
    pub(crate) fn meta(&self) -> Result<FrameMeta, Failure> {
        let length = u32::try_from(self.length).map_err(|_| too_long(self.length))?;
        Ok(FrameMeta { timestamp_ns: self.time_ns, original_len: length.max(self.wire_length), interface: 0 })
    }

    /// Copies the packet into a burst, as its last one.
    #[inline]
    pub(crate) fn push(&self, burst: &mut Burst) -> Result<(), Failure> {
        let (data, metadata) = (self.data.slice(self.length)?, self.metadata.slice(self.metadata_length)?);
        let queue = self.queue()?;
        burst.push(data, self.meta()?).map_err(|error| Failure::of(paceline_status::NoRoom, &error))?;
        let index = burst.len() - 1;
        if !metadata.is_empty()
            && let Err(error) = burst.frame_mut(index).set_metadata(metadata)
        {
            burst.truncate(index);
            return Err(Failure::argument(error));
        }
        self.set_origin(burst, index, queue);
        Ok(())
    }

    pub(crate) fn queue(&self) -> Result<u16, Failure> {
        u16::try_from(self.rx_queue)
            .map_err(|_| Failure::argument(format!("queue {} is above 65535", self.rx_queue)))
    }

    /// Notes in the burst where the packet came from.
    #[inline]
    pub(crate) fn set_origin(&self, burst: &mut Burst, index: usize, queue: u16) {
        let mut frame = burst.frame_mut(index);
        frame.set_ingress(self.ingress_ifindex, queue);
        frame.set_egress(self.egress_ifindex);
    }
}

#[cold]
fn too_long(length: usize) -> Failure {
    Failure::new(paceline_status::NoRoom, format!("a packet of {length} bytes is longer than any"))
}
