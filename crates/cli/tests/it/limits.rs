//! Maps of sizes that no map may have: each is refused with the file, the map's name, the limit and the kernel's error number
//! (`crates/maps/tests/kernel` compares those with the kernel's). Nothing large is allocated.

use std::fs;
use std::time::{Duration, Instant};

use crate::common::{Done, Folder, fixture, paceline};

/// Type, key size, value size, entries, flags, as the fixture has them.
type Definition = [u32; 5];
const FIXTURE: Definition = [2, 4, 8, 0x5ca1_ab1e, 0];

fn bytes(definition: Definition) -> Vec<u8> {
    definition.map(u32::to_ne_bytes).concat()
}

/// Runs the object with a map of this definition.
fn run(folder: &Folder, definition: Definition, more: &[&str]) -> (String, Done) {
    let mut object = fs::read(fixture("limits.o")).unwrap();
    let places: Vec<_> = object.windows(20).enumerate().filter(|(_, part)| *part == bytes(FIXTURE)).collect();
    let [(at, _)] = places[..] else { panic!("{} definitions", places.len()) };
    object.splice(at..at + 20, bytes(definition));
    let object = folder.write("limits.o", object);
    let done = paceline([&["run", &object], more].concat());
    (object, done)
}

const ALL: u32 = u32::MAX;
const ENTRIES: usize = 3;

/// A field, what it is set to, and what is said then.
type Change = (usize, u32, &'static str);

/// A kind: its number, sizes that it takes, and the changes that it refuses, like others and alone.
struct Kind {
    number: u32,
    takes: [u32; 4],
    refuses: [&'static [Change]; 2],
}

const fn kind(number: u32, takes: [u32; 4], like: &'static [Change], own: &'static [Change]) -> Kind {
    Kind { number, takes, refuses: [like, own] }
}

const TOO_MUCH: &str = "4294967295 entries need 34359738368 bytes, the limit is 4294967296";
const NO_ENTRIES: &str = "max_entries is zero (EINVAL)";
const NO_KEY: &str = "key size is zero (EINVAL)";
const NO_VALUE: &str = "value size is zero (EINVAL)";
const MORE_THAN_BUCKETS: &str = "max_entries is 4294967295, at most 2147483648 allowed (E2BIG)";
const KEY_MUST_BE_4: &str = "key size is 65536, must be 4 (EINVAL)";
const VALUE_MUST_BE_4: &str = "value size is 4294967295, must be 4 (EINVAL)";
const FLAGS: &str = "map flags 0x80000000 are not allowed (EINVAL)";
const NO_KEYS: &str = "key size is 513, must be 0 (EINVAL)";
const ELEMENT: &str = "key and value take 4294967299 bytes, at most 4194255 allowed (E2BIG)";
const PER_CPU_VALUE: &str = "value size is 33000, at most 32768 allowed (E2BIG)";
const NO_INNER: &str = "nothing says what its inner maps look like (EBADF)";

const HASHES: &[Change] = &[
    (1, 0, NO_KEY),
    (1, ALL, "key size is 4294967295, at most 4194254 allowed (E2BIG)"),
    (2, 0, NO_VALUE),
    (2, ALL, ELEMENT),
    (ENTRIES, 0, NO_ENTRIES),
    (ENTRIES, ALL, MORE_THAN_BUCKETS),
    (4, 1 << 31, FLAGS),
];
const PER_CPU_HASHES: &[Change] = &[
    (1, 0, NO_KEY),
    (2, 0, NO_VALUE),
    (2, 33_000, PER_CPU_VALUE),
    (2, ALL, ELEMENT),
    (ENTRIES, 0, NO_ENTRIES),
    (ENTRIES, ALL, MORE_THAN_BUCKETS),
];
const QUEUES: &[Change] = &[
    (1, 513, NO_KEYS),
    (2, 0, NO_VALUE),
    (2, ALL, "value size is 4294967295, at most 4194304 allowed (E2BIG)"),
    (ENTRIES, 0, NO_ENTRIES),
    (ENTRIES, ALL, TOO_MUCH),
];
const REFERENCES: &[Change] = &[
    (1, 0, NO_KEY),
    (1, 65_536, KEY_MUST_BE_4),
    (2, 0, "value size is 0, must be 4 (EINVAL)"),
    (2, ALL, VALUE_MUST_BE_4),
    (ENTRIES, 0, NO_ENTRIES),
    (4, 1 << 31, FLAGS),
];
const DEVICES: &[Change] = &[
    (1, 65_536, KEY_MUST_BE_4),
    (2, 0, "value size is 0, must be 4 or 8 (EINVAL)"),
    (2, 513, "value size is 513, must be 4 or 8 (EINVAL)"),
    (ENTRIES, 0, NO_ENTRIES),
];

const ARRAYS: &[Change] = &[
    (1, 0, NO_KEY),
    (1, 65_536, KEY_MUST_BE_4),
    (2, 0, NO_VALUE),
    (2, ALL, "value size is 4294967295, at most 2147483647 allowed (E2BIG)"),
    (ENTRIES, 0, NO_ENTRIES),
];
const PREFIXES: &[Change] = &[
    (1, 0, NO_KEY),
    (1, 4, "key size is 4, at least 5 required (EINVAL)"),
    (1, 513, "key size is 513, at most 260 allowed (EINVAL)"),
    (2, 0, NO_VALUE),
    (2, ALL, "value size is 4294967295, at most 4194024 allowed (EINVAL)"),
    (ENTRIES, 0, NO_ENTRIES),
    (ENTRIES, ALL, "4294967295 entries need too many bytes, the limit is 4294967296"),
    (4, 0, "map flags 0x1 are required (EINVAL)"),
];
const RINGS: &[Change] = &[
    (1, 4, "key size is 4, must be 0 (EINVAL)"),
    (2, 4, "value size is 4, must be 0 (EINVAL)"),
    (ENTRIES, 0, "max_entries is 0, must be a power of two and a multiple of 4096 (EINVAL)"),
    (ENTRIES, 4097, "max_entries is 4097, must be a power of two and a multiple of 4096 (EINVAL)"),
    (ENTRIES, 12_288, "max_entries is 12288, must be a power of two and a multiple of 4096 (EINVAL)"),
    (ENTRIES, ALL, "max_entries is 4294967295, must be a power of two and a multiple of 4096 (EINVAL)"),
];

const KINDS: &[Kind] = &[
    kind(1, [4, 4, 1, 0], HASHES, &[]),
    kind(2, [4, 4, 1, 0], ARRAYS, &[(ENTRIES, ALL, TOO_MUCH)]),
    kind(3, [4, 4, 1, 0], REFERENCES, &[]),
    kind(4, [4, 4, 1, 0], &[], &[(1, 65_536, KEY_MUST_BE_4), (2, ALL, VALUE_MUST_BE_4)]),
    kind(5, [4, 4, 1, 0], PER_CPU_HASHES, &[]),
    kind(6, [4, 4, 1, 0], &[], &[(1, 0, NO_KEY), (2, 33_000, PER_CPU_VALUE), (ENTRIES, 0, NO_ENTRIES)]),
    kind(9, [4, 4, 1, 0], HASHES, &[]),
    kind(10, [4, 4, 1, 0], PER_CPU_HASHES, &[]),
    kind(11, [8, 4, 1, 1], PREFIXES, &[]),
    kind(14, [4, 4, 1, 0], DEVICES, &[(ENTRIES, ALL, TOO_MUCH)]),
    kind(
        16,
        [4, 4, 1, 0],
        DEVICES,
        &[(ENTRIES, ALL, "max_entries is 4294967295, at most 8192 allowed (E2BIG)")],
    ),
    kind(17, [4, 4, 1, 0], REFERENCES, &[]),
    kind(22, [0, 4, 1, 0], QUEUES, &[]),
    kind(23, [0, 4, 1, 0], QUEUES, &[]),
    kind(
        25,
        [4, 4, 1, 0],
        DEVICES,
        &[(ENTRIES, ALL, "max_entries is 4294967295, at most 2147483648 allowed (EINVAL)")],
    ),
    kind(27, [0, 0, 4096, 0], RINGS, &[]),
    kind(30, [0, 4, 1, 0], &[], &[(1, 513, NO_KEYS), (2, 0, NO_VALUE), (ENTRIES, 0, NO_ENTRIES)]),
];

#[test]
fn sizes_that_no_map_may_have_are_refused_by_name() {
    let folder = Folder::new();
    let start = Instant::now();
    for Kind { number, takes: [key, value, entries, flags], refuses } in KINDS {
        let plain = [*number, *key, *value, *entries, *flags];
        let (_, done) = run(&folder, plain, &[]);
        assert_eq!(done.status, Some(0), "type {number}: {}", done.err);
        for &(field, given, cause) in refuses.iter().copied().flatten() {
            let mut definition = plain;
            definition[field] = given;
            let (object, done) = run(&folder, definition, &[]);
            done.fails(1, &format!("{object}: map \"subject\": {cause}"), &[]);
            // Whole: nothing stands behind the error number.
            assert!(done.err.contains(&format!("{cause}\n")), "{}", done.err);
            assert_eq!(done.out, "");
            let inspected = paceline(["inspect", &object]).ok();
            let (cause, _) = cause.split_once(" (").unwrap_or((cause, ""));
            let wrong = format!("\ncannot be loaded\n  map subject  {cause}\n");
            assert!(inspected.contains(&wrong), "{inspected}");
        }
    }
    // Without what inner maps look like there are no maps of maps.
    for number in [12, 13] {
        let (object, done) = run(&folder, [number, 4, 4, 1, 0], &[]);
        done.fails(1, &format!("{object}: map \"subject\": {NO_INNER}"), &[]);
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// The largest that may be, by the limit that is given: pages are taken when they are used, whatever was declared.
#[test]
fn the_limit_on_memory_holds_to_the_byte() {
    let folder = Folder::new();
    // Blocks are whole pairs of cache lines.
    const MORE: u32 = 128;
    for (number, bytes) in [(2, 8), (3, 16), (6, 8), (14, 8), (17, 8)] {
        let entries = |entries| [number, 4, 4, entries, 0];
        run(&folder, entries((1 << 30) / bytes), &["--map-memory", "1G"]).1.ok();
        let (object, done) = run(&folder, entries((1 << 30) / bytes + 1), &["--map-memory", "1G"]);
        let needed = (1 << 30) + MORE;
        let cause = format!("{} entries need {needed} bytes, the limit is 1073741824", (1 << 30) / bytes + 1);
        done.fails(1, &format!("{object}: map \"subject\": {cause}"), &["--map-memory SIZE sets the limit"]);
    }
}

#[test]
fn an_inner_map_of_another_kind_is_refused_by_both_names() {
    let object = fixture("inner.o");
    let cause = "map outer cannot hold map narrow: the value size of inner maps is 8, of this one 4";
    paceline(["run", &object]).fails(1, &format!("{object}: {cause}"), &[]);
}
