//! Metadata of the device about a packet (`Documentation/networking/xdp-rx-metadata.rst`).
//!
//! The kernel's program, which is bound to the device, asks for it by kernel functions, and writes it in front of the packet, where it
//! arrives in the packet memory:
//!
//! ```text
//! 0 time  8 hash  12 type of the hash  16 VLAN protocol  18 VLAN tag  20 results of the three functions  32 -  36 TAG | packet
//! ```
//!
//! The port takes it out of the chunk and clears the tag. It then lies in the reserved area at the start of the frame's buffer,
//! where the kernel has its `xdp_frame` and no program reaches; the highest bit of `exposed` says that it is there.

use std::fmt::Write as _;
use std::fs;

use paceline_btf::{Btf, Type};
use paceline_frame::{Chunk, DeviceMetadata, FramePool, Span};
use rustix::io::Errno;

/// Size of the record in bytes.
const LEN: u32 = 40;
/// Last word of a record: a packet in whose front no record could be written has none.
const TAG: u32 = 0x7061_6365;

/// The kernel's types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// The functions, with the places of what they tell on the program's stack.
const FUNCTIONS: [(&str, &[i32]); 3] = [
    ("bpf_xdp_metadata_rx_timestamp", &[-8]),
    ("bpf_xdp_metadata_rx_hash", &[-16, -12]),
    ("bpf_xdp_metadata_rx_vlan_tag", &[-24, -22]),
];

/// Instructions that write the record; the context is in `r1`, and afterwards in `r6`.
pub(super) fn recording() -> Result<String, Errno> {
    let types = fs::read(TYPES).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let types = Btf::parse(&types).map_err(|_| Errno::OPNOTSUPP)?;
    let mut text = format!(
        "r6 = r1
         r2 = -{LEN}
         call 54
         if r0 != 0 goto done
         r1 = 0
         *(u64 *)(r10 - 8) = r1
         *(u64 *)(r10 - 16) = r1
         *(u64 *)(r10 - 24) = r1\n"
    );
    for (saved, (name, results)) in (7..).zip(FUNCTIONS) {
        // Kernels before 6.3 have none of them, and those before 6.8 not the last one.
        let function = types.find(name, |t| matches!(t, Type::Func { .. })).ok_or(Errno::OPNOTSUPP)?;
        text += "r1 = r6\n";
        for (register, offset) in (2..).zip(results) {
            let _ = writeln!(text, "r{register} = r10\nr{register} += {offset}");
        }
        let _ = writeln!(text, "call kfunc[{}, 0]\nr{saved} = r0", function);
    }
    let _ = write!(
        text,
        "r2 = *(u32 *)(r6 + 8)
         r3 = *(u32 *)(r6 + 0)
         r4 = r2
         r4 += {LEN}
         if r4 > r3 goto done
         r1 = *(u64 *)(r10 - 8)
         *(u64 *)(r2 + 0) = r1
         r1 = *(u64 *)(r10 - 16)
         *(u64 *)(r2 + 8) = r1
         r1 = *(u32 *)(r10 - 24)
         *(u32 *)(r2 + 16) = r1
         *(u32 *)(r2 + 20) = r7
         *(u32 *)(r2 + 24) = r8
         *(u32 *)(r2 + 28) = r9
         r1 = {TAG}
         *(u32 *)(r2 + 36) = r1
         done:\n"
    );
    Ok(text)
}

/// Takes the record in front of a packet, if there is one: it is not found again in front of a later packet in the chunk.
pub(super) fn take(pool: &FramePool, chunk: &mut Chunk, packet: Span) -> Option<DeviceMetadata> {
    let end = packet.offset as usize;
    let start = end.checked_sub(LEN as usize)?;
    let record = pool.buffer_mut(chunk).get_mut(start..end)?;
    let metadata = parse(record);
    if let Some(tag) = record.last_chunk_mut::<4>() {
        *tag = [0; 4];
    }
    metadata
}

fn parse(record: &[u8]) -> Option<DeviceMetadata> {
    let word = |at: usize| record.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes);
    let half = |at: usize| record.get(at..)?.first_chunk::<2>().copied();
    // Results are 0 or negative error numbers.
    let error = |at: usize| word(at).map(|result| result.wrapping_neg() as u16);
    (word(36)? == TAG).then_some(DeviceMetadata {
        timestamp_ns: u64::from_ne_bytes(*record.first_chunk()?),
        hash: word(8)?,
        hash_type: word(12)?,
        vlan_protocol: half(16)?,
        vlan_tag: u16::from_ne_bytes(half(18)?),
        timestamp_error: error(20)?,
        hash_error: error(24)?,
        vlan_error: error(28)?,
    })
}
