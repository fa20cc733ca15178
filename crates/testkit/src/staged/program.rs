//! Random maps, the program on them, and its packets.

use std::fmt::Write;
use std::sync::Arc;

use fastrand::Rng;
use paceline_maps::Map;
use paceline_spec::{MapFlags, MapKind, MapSpec, XdpAttach};
use paceline_verifier::Verified;

use crate::text;

/// The kinds whose look-ups are made ahead.
const KINDS: [MapKind; 7] = [
    MapKind::Hash,
    MapKind::LruHash,
    MapKind::PerCpuHash,
    MapKind::LruPerCpuHash,
    MapKind::LpmTrie,
    MapKind::Array,
    MapKind::PerCpuArray,
];

/// Sizes of keys: those that have functions of their own, and some that have none. Longer ones are not looked up ahead.
const KEY_SIZES: [u32; 8] = [4, 6, 8, 12, 16, 24, 40, 64];

/// Numbers of keys in packets are below this: few, so that packets of a burst meet.
const NUMBERS: u32 = 24;

/// Operations of packets.
const OPERATIONS: u8 = 7;

/// A map and a program on it.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    spec: MapSpec,
}

impl Subject {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let kind = KINDS[rng.usize(..KINDS.len())];
        let (key_size, flags) = match kind {
            MapKind::Array | MapKind::PerCpuArray => (4, MapFlags::default()),
            MapKind::LpmTrie => (8, MapFlags::NO_PREALLOC),
            // The same order of elements each time.
            _ => (KEY_SIZES[rng.usize(..KEY_SIZES.len())], MapFlags::ZERO_SEED),
        };
        let (value_size, entries) = (8 * rng.u32(1..12), rng.u32(2..32));
        Self { spec: MapSpec { flags, ..MapSpec::new("m", kind, key_size, value_size, entries) } }
    }

    pub(super) fn evicts(&self) -> bool {
        self.spec.kind.is_lru()
    }

    pub(super) fn map(&self) -> Result<Arc<Map>, String> {
        text::map(&self.spec, 1).map_err(|error| error.to_string())
    }

    /// The program: looks up the key of the packet's first number, counts in its value and writes the count to the packet; then does what the
    /// packet's operation says, and looks up the key of the second number.
    pub(super) fn verified(&self, map: &Arc<Map>) -> Result<Verified, String> {
        let value = -8 - self.spec.value_size.cast_signed();
        let key = value - self.spec.key_size.next_multiple_of(8).cast_signed();
        let mut program = "r9 = *(u32 *)(r1 + 4)
            r7 = *(u32 *)(r1 + 0)
            r6 = r7
            r6 += 60
            r0 = 2
            if r6 > r9 goto out
            r8 = *(u8 *)(r7 + 14)
            r9 = 0
            "
        .to_owned();
        for word in (value..0).step_by(8) {
            let _ = writeln!(program, "*(u64 *)(r10 {word:+}) = 77");
        }
        let _ = self.key(&mut program, key, 16, 32);
        let call = |helper: &str, more: &str| {
            format!("r1 = map[m] ll\nr2 = r10\nr2 += {key}\n{more}call {helper}\n")
        };
        let update = format!("r3 = r10\nr3 += {value}\nr4 = 0\n");
        let look_up = call("bpf_map_lookup_elem", "");
        let insert = call("bpf_map_update_elem", &update);
        let delete = call("bpf_map_delete_elem", "");
        let count = "r1 = *(u64 *)(r0 + 0)\nr1 += 1\n*(u64 *)(r0 + 0) = r1\nr9 += r1\n";
        let _ =
            write!(program, "{look_up}if r0 == 0 goto missing\n{count}*(u32 *)(r7 + 24) = r1\ngoto act\n");
        let _ = write!(program, "missing:\n*(u32 *)(r7 + 24) = -1\nact:\n");
        let _ = write!(program, "if r8 == 0 goto last\nif r8 > 2 goto other\n");
        let _ = write!(
            program,
            "if r8 == 1 goto delete_own\n{insert}goto last\ndelete_own:\n{delete}goto last\nother:\n"
        );
        // Under another length, for prefixes.
        let _ = self.key(&mut program, key, 20, 24);
        let _ =
            write!(program, "if r8 > 4 goto insert_other\n{delete}goto last\ninsert_other:\n{insert}last:\n");
        let _ = self.key(&mut program, key, 20, 32);
        let _ = write!(program, "{look_up}if r0 == 0 goto end\n{count}*(u32 *)(r7 + 28) = r1\nend:\n");
        program += "r9 &= 3\nr0 = r9\nout:\nexit\n";
        let verified = text::verified(&program, XdpAttach::Interface, std::slice::from_ref(map));
        verified.map_err(|error| format!("{error}\n{program}"))
    }

    /// Builds the key of the number at an offset of the packet.
    fn key(&self, program: &mut String, key: i32, number: i32, length: u32) -> std::fmt::Result {
        if self.spec.kind == MapKind::LpmTrie {
            writeln!(program, "*(u32 *)(r10 {key:+}) = {length}")?;
            writeln!(program, "r1 = *(u32 *)(r7 + {number})\n*(u32 *)(r10 {:+}) = r1", key + 4)?;
            return Ok(());
        }
        let size = self.spec.key_size.next_multiple_of(8).cast_signed();
        for word in (key..key + size).step_by(8) {
            writeln!(program, "*(u64 *)(r10 {word:+}) = 90")?;
        }
        writeln!(program, "r1 = *(u32 *)(r7 + {number})\n*(u32 *)(r10 {key:+}) = r1")
    }
}

/// A packet: its operation and two numbers.
pub(super) fn packet(rng: &mut Rng) -> Vec<u8> {
    let mut packet = vec![0; 60];
    packet[14] = rng.u8(..OPERATIONS);
    packet[16..20].copy_from_slice(&rng.u32(..NUMBERS).to_ne_bytes());
    packet[20..24].copy_from_slice(&rng.u32(..NUMBERS).to_ne_bytes());
    // Too short for the program.
    packet.truncate(if rng.u8(..16) == 0 { 50 } else { 60 });
    packet
}
