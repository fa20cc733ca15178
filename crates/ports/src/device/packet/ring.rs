//! The ring of received packets that a packet socket shares with the kernel (`TPACKET_V3`,
//! `Documentation/networking/packet_mmap.rst`).
//!
//! The ring consists of blocks, which the kernel fills one after the other. A block is the reader's from when its status says so until
//! the reader writes the status back.
#![allow(unsafe_code)]

use std::io;
use std::mem::offset_of;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::port::PortError;
use rustix::io::Errno;

use super::socket::Socket;
use crate::device::mapping::Mapping;

/// Size of a block in bytes; longer packets are truncated.
const BLOCK: usize = 1 << 17;
const BLOCKS: usize = 16;
/// Milliseconds after which the kernel hands over a block that is not full.
const TIMEOUT_MS: u32 = 1;
/// Size of a frame in bytes, which version 3 uses for its checks only.
const FRAME: usize = 2048;

/// Offset of the status in a block.
const STATUS: usize =
    offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, block_status);
const COUNT: usize = offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, num_pkts);
const FIRST: usize =
    offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, offset_to_first_pkt);

/// A packet in the ring.
pub(super) struct Received<'a> {
    pub(super) packet: &'a [u8],
    pub(super) wire_len: u32,
    pub(super) timestamp_ns: u64,
    /// Protocol and value of a VLAN tag that the device removed.
    pub(super) vlan: Option<(u16, u16)>,
}

pub(super) struct ReceiveRing {
    mapping: Mapping,
    /// Index of the block that is read.
    block: usize,
    /// Packets of it that are not read yet; 0 if the block is the kernel's.
    left: u32,
    /// Offset of the next packet's header in the block.
    next: usize,
}

impl ReceiveRing {
    pub(super) fn map(socket: &Socket) -> Result<Self, Errno> {
        socket.create_ring(&libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: (BLOCK / FRAME * BLOCKS) as u32,
            tp_retire_blk_tov: TIMEOUT_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        })?;
        let mapping = Mapping::shared(socket.as_fd(), 0, BLOCK * BLOCKS)?;
        Ok(Self { mapping, block: 0, left: 0, next: 0 })
    }

    /// The next packet; `None` if none has arrived. The packet before it is the kernel's again.
    ///
    /// # Errors
    /// The kernel wrote an offset outside of the block.
    pub(super) fn next(&mut self) -> Result<Option<Received<'_>>, PortError> {
        if self.left == 0 && !self.open_block()? {
            return Ok(None);
        }
        let header: libc::tpacket3_hdr = self.read(self.next)?;
        let start = self.next + usize::from(header.tp_mac);
        self.left -= 1;
        self.next += header.tp_next_offset as usize;
        let has = |bit| header.tp_status & bit != 0;
        let protocol = if has(libc::TP_STATUS_VLAN_TPID_VALID) {
            header.hv1.tp_vlan_tpid
        } else {
            libc::ETH_P_8021Q as u16
        };
        Ok(Some(Received {
            packet: self.bytes(start, header.tp_snaplen as usize)?,
            wire_len: header.tp_len,
            timestamp_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            vlan: has(libc::TP_STATUS_VLAN_VALID).then_some((protocol, header.hv1.tp_vlan_tci as u16)),
        }))
    }

    /// Gives the block that was read back, and begins with the following one if the kernel has filled it.
    fn open_block(&mut self) -> Result<bool, PortError> {
        if self.next != 0 {
            self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            (self.block, self.next) = ((self.block + 1) % BLOCKS, 0);
        }
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return Ok(false);
        }
        self.left = self.read(COUNT)?;
        self.next = self.read::<u32>(FIRST)? as usize;
        // A block that a timeout closed may be empty.
        Ok(self.left > 0)
    }

    /// Whether packets are left: in a block that can be read, or in one that the kernel fills, and hands over when its time is over.
    pub(super) fn has_packets(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
            || self.word(COUNT).load(Ordering::Relaxed) > 0
    }

    /// Status of the current block.
    fn status(&self) -> &AtomicU32 {
        self.word(STATUS)
    }

    /// A field of the current block's header, which the kernel may write to.
    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the fields are aligned and inside of the mapping, and both sides access them atomically.
        unsafe { AtomicU32::from_ptr(self.mapping.start().as_ptr().add(self.block * BLOCK + offset).cast()) }
    }

    /// Bytes of the current block.
    fn bytes(&self, offset: usize, len: usize) -> Result<&[u8], PortError> {
        let end = offset.checked_add(len).filter(|&end| end <= BLOCK).ok_or_else(malformed)?;
        // SAFETY: the range is inside of the block, which the kernel does not write to before it is given back, for which the ring
        // is borrowed mutably.
        Ok(unsafe {
            std::slice::from_raw_parts(
                self.mapping.start().as_ptr().add(self.block * BLOCK + offset),
                end - offset,
            )
        })
    }

    /// A value of integers in the current block.
    fn read<T: Copy>(&self, offset: usize) -> Result<T, PortError> {
        let bytes = self.bytes(offset, size_of::<T>())?;
        // SAFETY: `T` is `u32` or a structure of integers, for which all bytes are valid.
        Ok(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
    }
}

fn malformed() -> PortError {
    io::Error::new(io::ErrorKind::InvalidData, "malformed block of a packet socket").into()
}
