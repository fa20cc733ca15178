//! The program side: helpers called by a program that the kernel runs, against the same calls on our map.

use paceline_spec::{Errno, MapFlags, MapKind};

use crate::bpf::{Program, pin_to_cpu};
use crate::operations::random_prefix;
use crate::{Twin, kernel_permits, limits, spec};

const OPERATIONS: usize = 800;
const ENTRIES: u32 = 6;

const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const MAP_DELETE: i32 = 3;

/// Where a program keeps the key and the value, below its frame pointer.
const KEY: i16 = -8;
const VALUE: i16 = -40;
const VALUE_WORDS: usize = 4;

fn insn(opcode: u8, dst: u8, src: u8, offset: i16, imm: i32) -> u64 {
    let [a, b] = offset.to_le_bytes();
    let [c, d, e, f] = imm.to_le_bytes();
    u64::from_le_bytes([opcode, src << 4 | dst, a, b, c, d, e, f])
}

/// `*(u32 *)(r10 + offset) = word` for each word from `offset` on.
fn store(insns: &mut Vec<u64>, offset: i16, bytes: &[u8]) {
    for (i, word) in bytes.chunks(4).enumerate() {
        let mut padded = [0; 4];
        padded[..word.len()].copy_from_slice(word);
        insns.push(insn(0x62, 10, 0, offset + 4 * i as i16, i32::from_le_bytes(padded)));
    }
}

/// A program that calls a map helper with this key, value and flags. It returns what the helper does, a look-up 1
/// for an address.
fn call(map: i32, helper: i32, key: &[u8], value: &[u8], flags: u64) -> Vec<u64> {
    let mut insns = Vec::new();
    let mut value = value.to_vec();
    value.resize(VALUE_WORDS * 8, 0xee);
    store(&mut insns, KEY, key);
    store(&mut insns, VALUE, &value);
    // r1 = map; r2 = key; r3 = value; r4 = flags; call; if (lookup) r0 = r0 != 0; exit
    insns.extend([insn(0x18, 1, 1, 0, map), 0]);
    insns.extend([insn(0xbf, 2, 10, 0, 0), insn(0x07, 2, 0, 0, KEY.into())]);
    insns.extend([insn(0xbf, 3, 10, 0, 0), insn(0x07, 3, 0, 0, VALUE.into())]);
    insns.extend([insn(0x18, 4, 0, 0, flags as i32), insn(0, 0, 0, 0, (flags >> 32) as i32)]);
    insns.push(insn(0x85, 0, 0, 0, helper));
    if helper == MAP_LOOKUP {
        insns.extend([insn(0x15, 0, 0, 1, 0), insn(0xb7, 0, 0, 0, 1)]);
    }
    insns.push(insn(0x95, 0, 0, 0, 0));
    insns
}

fn as_return(result: Result<(), Errno>) -> u32 {
    result.map_or_else(|errno| errno.to_return() as u32, |()| 0)
}

fn run(kind: MapKind, key_size: u32, value_size: u32, cpu: usize, seed: u64) {
    let (entries, flags) = match kind {
        // With room, so that the kernel evicts nothing.
        MapKind::LruHash | MapKind::LruPerCpuHash => (4096, MapFlags::default()),
        MapKind::LpmTrie => (ENTRIES, MapFlags::NO_PREALLOC),
        _ => (ENTRIES, MapFlags::default()),
    };
    let twin = Twin::create(&spec(kind, key_size, value_size, entries, flags));
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..OPERATIONS {
        let mut key = rng.u32(..ENTRIES + 3).to_ne_bytes().to_vec();
        key.resize(key_size as usize, 0);
        if kind == MapKind::LpmTrie {
            key = random_prefix(&mut rng, key_size as usize);
        }
        let value: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(value_size as usize).collect();
        let flags = [0, 0, 0, 1, 2, 3, 4, 1 << 32][rng.usize(..8)];
        let helper = [MAP_LOOKUP, MAP_UPDATE, MAP_UPDATE, MAP_UPDATE, MAP_DELETE][rng.usize(..5)];
        let program = Program::load(&call(twin.kernels.fd(), helper, &key, &value, flags)).unwrap();
        let ours = match helper {
            MAP_LOOKUP => u32::from(twin.ours.for_programs().lookup(&key, cpu).is_some()),
            MAP_UPDATE => as_return(twin.ours.for_programs().update(&key, &value, flags, cpu)),
            _ => as_return(twin.ours.for_programs().delete(&key)),
        };
        let kernels = program.run().unwrap();
        assert_eq!(ours, kernels, "{kind} helper {helper} {key:?} {value:?} {flags:#x} on CPU {cpu}");
        let _ = twin.get(&key);
        if rng.u8(..) < 16 {
            let values: Vec<u8> =
                std::iter::repeat_with(|| rng.u8(..)).take(twin.ours.user_value_size()).collect();
            let _ = twin.set(&key, &values, 0);
        }
    }
}

#[test]
fn helpers() {
    if !kernel_permits("helpers") {
        return;
    }
    for cpu in 0..limits().cpus {
        if pin_to_cpu(cpu).is_err() {
            continue;
        }
        for kind in [MapKind::Array, MapKind::PerCpuArray] {
            run(kind, 4, 5, cpu, 1);
            run(kind, 4, 32, cpu, 2);
        }
        run(MapKind::Hash, 4, 13, cpu, 3);
        run(MapKind::Hash, 8, 16, cpu, 4);
        // Whole words only: the padding of a new element shows what an earlier one had there, in the kernel.
        run(MapKind::PerCpuHash, 4, 24, cpu, 5);
        run(MapKind::PerCpuHash, 8, 8, cpu, 6);
        run(MapKind::LruHash, 4, 13, cpu, 7);
        run(MapKind::LruPerCpuHash, 4, 24, cpu, 8);
        run(MapKind::LpmTrie, 8, 13, cpu, 9);
    }
}
