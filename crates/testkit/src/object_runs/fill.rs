//! Contents of maps by seed.

use fastrand::Rng;
use paceline::Object;
use paceline_spec::{ElementKind, InitialValue, MapSpec};

use super::packets::pool;

/// Maximum number of elements added to a map.
const MOST: u32 = 32;

/// Maximum total size of an object's maps in bytes: campaigns create them anew for each engine.
const MOST_BYTES: u64 = 64 << 20;

/// Sets a small size for maps whose size the object leaves to its loader.
pub fn size_maps(maps: &mut [MapSpec]) {
    for map in maps.iter_mut().filter(|map| map.max_entries == 0) {
        map.max_entries = match map.kind.rules().elements {
            // One entry per CPU, or a power of two that is a multiple of the page size.
            ElementKind::Events => continue,
            ElementKind::Records => 1 << 16,
            _ => MOST,
        };
    }
}

/// Whether an object's maps are too large to be created for every run.
#[must_use]
pub fn has_large_maps(object: &Object) -> bool {
    let bytes = |spec: &MapSpec| {
        let element = u64::from(spec.key_size) + u64::from(spec.value_size);
        u64::from(spec.max_entries).saturating_mul(element)
    };
    object.maps().iter().map(bytes).fold(0, u64::saturating_add) > MOST_BYTES
}

/// Adds elements to maps whose values are bytes, except global variables and maps with initial contents. Keys are small
/// numbers, and bytes of packets, so that look-ups find elements.
pub fn fill_from_seed(object: &mut Object, seed: u64) {
    for spec in &mut object.specs_mut().maps {
        let is_section = spec.name.contains('.');
        if is_section || spec.frozen || !spec.contents.is_empty() || !spec.special.is_empty() {
            continue;
        }
        let mut rng = Rng::with_seed(seed ^ of_name(&spec.name));
        let elements: Vec<_> = match spec.kind {
            kind if kind.is_array() => {
                let keys = (0..spec.max_entries.min(MOST)).map(|key| key.to_ne_bytes().to_vec());
                keys.collect()
            }
            kind if kind.is_keyed() => {
                (0..spec.max_entries.min(MOST) / 2).map(|number| key(spec, number, &mut rng)).collect()
            }
            _ => Vec::new(),
        };
        let value_size = spec.value_size as usize;
        let value = |rng: &mut Rng| (0..value_size).map(|_| byte(rng)).collect();
        spec.contents = elements.into_iter().map(|key| (key, InitialValue::Bytes(value(&mut rng)))).collect();
    }
}

/// A hash of a map's name (FNV-1a), so that maps of the same name get the same contents.
fn of_name(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn byte(rng: &mut Rng) -> u8 {
    [rng.u8(..), rng.u8(..4), 0, 0, 0xff][rng.usize(..5)]
}

fn key(spec: &MapSpec, number: u32, rng: &mut Rng) -> Vec<u8> {
    let size = spec.key_size as usize;
    let mut key = vec![0; size];
    let data = if spec.kind.has_prefixes() { 4.min(size) } else { 0 };
    if rng.bool() {
        let bytes = number.to_ne_bytes();
        let len = (size - data).min(4);
        key[data..data + len].copy_from_slice(&bytes[..len]);
    } else if let Some(packet) = rng.choice(pool()) {
        // Offsets of addresses, ports and protocols in untagged packets.
        let start = [0, 6, 12, 22, 23, 26, 30, 34, 36, 38][rng.usize(..10)];
        let bytes = packet.iter().skip(start).take(size - data);
        key[data..].iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    }
    if spec.kind.has_prefixes() {
        let bits = 8 * (size - data) as u32;
        key[..data].copy_from_slice(&rng.u32(..=bits).to_ne_bytes()[..data]);
    }
    key
}
