//! The packet of a TC classifier, as its helpers work on it.

use paceline_frame::{Frame, TAILROOM};
use paceline_spec::Errno;
use paceline_spec::context::SkBuff;

use crate::context::ETHERNET_LEN;
use crate::helpers::argument::{Argument, Registers};
use crate::helpers::class::Class;
use crate::host::Host;

/// Greatest length of a packet (`BPF_SKB_MAX_LEN` with pages of 4 KiB).
pub(super) const MAX_LEN: usize = 16064;

/// `ETH_P_IP` and `ETH_P_IPV6`, and the lengths of their headers without options.
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
pub(super) const IPV4_LEN: usize = 20;
pub(super) const IPV6_LEN: usize = 40;

/// The context of a TC classifier.
pub(crate) struct Skb<'a>(pub(super) &'a mut Frame);

// SAFETY: as of `&mut Frame`.
unsafe impl<'a> Argument<'a> for Skb<'a> {
    const REGISTERS: &'static [&'static [Class]] = <&mut Frame>::REGISTERS;

    #[inline(always)]
    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        // SAFETY: the registers are guaranteed by the caller.
        Self(unsafe { <&mut Frame>::from_registers(registers, index) })
    }
}

impl Skb<'_> {
    /// Length of the packet.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Runs `work` on the packet, whose facts are the host's.
    #[inline]
    pub(super) fn with<R>(&mut self, host: &mut Host, work: impl FnOnce(&mut Packet<'_>) -> R) -> R {
        work(&mut Packet { frame: self.0, facts: host.area.facts() })
    }

    /// As of [`span`].
    #[inline]
    pub(super) fn span(&mut self, offset: u32, len: usize) -> Result<&mut [u8], Errno> {
        span(self.0, offset, len)
    }
}

/// The `len` bytes at `offset`, or `EFAULT` (`bpf_try_make_writable`).
#[inline]
fn span(frame: &mut Frame, offset: u32, len: usize) -> Result<&mut [u8], Errno> {
    let offset = offset as usize;
    let end = offset.checked_add(len).filter(|end| *end <= i32::MAX as usize);
    end.and_then(|end| frame.packet_mut().get_mut(offset..end)).ok_or(Errno::EFAULT)
}

/// A packet and its facts in the kernel's `sk_buff`, while a helper works on them.
pub(super) struct Packet<'a> {
    pub(super) frame: &'a mut Frame,
    pub(super) facts: &'a mut SkBuff,
}

impl Packet<'_> {
    /// Bytes before the network's header.
    pub(super) fn network(&self) -> usize {
        ETHERNET_LEN + usize::from(self.facts.network_moved)
    }

    /// The protocol, in host order.
    pub(super) fn protocol(&self) -> u16 {
        u16::from_be(self.facts.protocol)
    }

    pub(super) fn clear_hash(&mut self) {
        (self.facts.hash, self.facts.has_hash) = (0, 0);
    }

    /// As of [`span`].
    pub(super) fn span(&mut self, offset: u32, len: usize) -> Result<&mut [u8], Errno> {
        span(self.frame, offset, len)
    }

    /// Inserts zeros at an offset by moving the bytes before it (`bpf_skb_generic_push`). A packet may end before the offset: the bytes
    /// behind its end are moved as well, those that it had before it was shortened, and zeros. `ENOMEM` if the headroom is too short.
    pub(super) fn insert(&mut self, offset: usize, len: usize) -> Result<(), Errno> {
        let delta = i32::try_from(len).map_err(|_| Errno::ENOMEM)?;
        let behind = offset.saturating_sub(self.frame.len());
        if behind > TAILROOM {
            return Err(Errno::ENOMEM);
        }
        self.frame.adjust_head(-delta).map_err(|_| Errno::ENOMEM)?;
        let end = self.frame.len();
        let memory = self.frame.packet_and_tailroom_mut(behind).ok_or(Errno::ENOMEM)?;
        let known = usize::from(self.facts.behind);
        memory.iter_mut().skip(end + known).for_each(|byte| *byte = 0);
        memory.copy_within(len..len + offset, 0);
        memory.iter_mut().skip(offset).take(len).for_each(|byte| *byte = 0);
        self.keep_behind(known.max(behind));
        Ok(())
    }

    /// Notes how many bytes behind the end are the packet's own.
    pub(super) fn keep_behind(&mut self, bytes: usize) {
        // default: those further behind are zeroed, as others' are.
        self.facts.behind = u8::try_from(bytes).unwrap_or(u8::MAX);
    }

    /// Removes bytes at an offset by moving those before it (`bpf_skb_generic_pop`). `ENOMEM` if there are not as many.
    pub(super) fn remove(&mut self, offset: usize, len: usize) -> Result<(), Errno> {
        let delta = i32::try_from(len).map_err(|_| Errno::ENOMEM)?;
        let packet = self.frame.packet_mut();
        if packet.len() < offset + len {
            return Err(Errno::ENOMEM);
        }
        packet.copy_within(..offset, len);
        self.frame.adjust_head(delta).map_err(|_| Errno::ENOMEM)
    }
}
