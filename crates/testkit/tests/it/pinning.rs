//! libbpf as the oracle for maps pinned by name: which objects share a map, which get their own, and which are refused.
//! Needs root, `cc` and libbpf-dev.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use paceline::{LoadOptions, Object, PinnedMaps};
use paceline_testkit::skip;

/// Attributes of a map's definition: type, key size, value size, entries, flags, pinning.
type Definition = [u32; 6];

const TYPE: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;
const ENTRIES: usize = 3;
const FLAGS: usize = 4;
const PINNING: usize = 5;

/// Placeholders in the fixture for the attributes of the definition.
const PLACES: Definition = [1_000_001, 1_000_002, 1_000_003, 1_000_004, 1_000_005, 1_000_006];

const HASH: Definition = [1, 4, 8, 16, 0, 1];
/// One definition of each type.
const TYPES: &[Definition] = &[
    HASH,
    [2, 4, 8, 16, 0, 1],
    [3, 4, 4, 16, 0, 1],
    [4, 4, 4, 16, 0, 1],
    [5, 4, 8, 16, 0, 1],
    [6, 4, 8, 16, 0, 1],
    [9, 4, 8, 16, 0, 1],
    [10, 4, 8, 16, 0, 1],
    [11, 8, 8, 16, 1, 1],
    [16, 4, 4, 1, 0, 1],
    [17, 4, 4, 16, 0, 1],
    [22, 0, 8, 16, 0, 1],
    [27, 0, 0, 4096, 0, 1],
    [30, 0, 8, 16, 0, 1],
];
/// Kinds to which the kernel adds a flag. This version of libbpf does not expect it, and refuses to share such a map.
const DEVICES: [Definition; 2] = [[14, 4, 4, 16, 0, 1], [25, 4, 4, 16, 0, 1]];

fn with(mut definition: Definition, place: usize, number: u32) -> Definition {
    definition[place] = number;
    definition
}

/// Objects that are loaded one after the other.
fn trials() -> Vec<Vec<Definition>> {
    let mut trials: Vec<Vec<_>> = TYPES.iter().map(|&same| vec![same, same]).collect();
    let others =
        [(TYPE, 9), (TYPE, 5), (KEY, 8), (VALUE, 4), (VALUE, 16), (ENTRIES, 8), (ENTRIES, 17), (FLAGS, 1)];
    for (place, number) in others {
        // The pinned map stays, and is found again.
        trials.push(vec![HASH, with(HASH, place, number), HASH]);
        trials.push(vec![with(HASH, place, number), HASH, with(HASH, place, number)]);
    }
    let alone = with(HASH, PINNING, 0);
    trials.push(vec![HASH, alone, HASH]);
    trials.push(vec![alone, HASH, alone, HASH]);
    // Objects that do not pin the map need not agree.
    trials.push(vec![HASH, with(alone, VALUE, 4), HASH]);
    // Maps that cannot be created or pinned are not pinned.
    trials.push(vec![with(HASH, ENTRIES, 0), HASH]);
    trials.push(vec![with(HASH, PINNING, 2), HASH]);
    trials
}

/// For each object the first object that has the same map, by number; `None` if it was refused.
#[derive(PartialEq)]
struct Outcome(Vec<Option<usize>>);

impl Outcome {
    fn of(ids: &[Option<u32>]) -> Self {
        Self(ids.iter().map(|id| id.and_then(|id| ids.iter().position(|other| *other == Some(id)))).collect())
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |map: &Option<usize>| map.map_or("refused".to_owned(), |first| format!("map of {first}"));
        f.debug_list().entries(self.0.iter().map(text)).finish()
    }
}

fn object(definition: Definition) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/fixtures/pinned.o");
    let mut object = fs::read(path).expect("the fixture is there");
    for (place, number) in PLACES.into_iter().zip(definition) {
        let is_place = |bytes: &[u8]| bytes == place.to_le_bytes();
        let places: Vec<_> = object.windows(4).enumerate().filter(|(_, bytes)| is_place(bytes)).collect();
        let [(at, _)] = places[..] else { panic!("{} places of {place}", places.len()) };
        object[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    object
}

fn ours(definitions: &[Definition]) -> Outcome {
    let instance = PinnedMaps::new();
    let options = LoadOptions::default();
    let load = |&definition: &Definition| {
        let object = Object::parse(&object(definition)).ok()?;
        instance.load(&object, &options).ok()
    };
    // All stay alive, so that no id is reused.
    let loaded: Vec<_> = definitions.iter().map(load).collect();
    let id = |collection: &Option<paceline::Collection>| Some(collection.as_ref()?.map("shared")?.id());
    Outcome::of(&loaded.iter().map(id).collect::<Vec<_>>())
}

/// `None` without libbpf or the permission to mount.
fn build() -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/libbpf_pin.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libbpf_pin");
    let built = Command::new("cc").arg("-o").arg(&program).arg(source).arg("-lbpf").output().ok()?;
    built.status.success().then_some(program)
}

fn libbpfs(program: &Path, definitions: &[Definition]) -> Result<(Outcome, String), String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pinning");
    fs::create_dir_all(folder.join("bpf")).map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg(folder.join("bpf"));
    for (number, &definition) in definitions.iter().enumerate() {
        let path = folder.join(format!("{number}.o"));
        fs::write(&path, object(definition)).map_err(|error| error.to_string())?;
        command.arg(path);
    }
    let done = command.output().map_err(|error| error.to_string())?;
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    if !done.status.success() {
        return Err(told);
    }
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let ids = text.lines().map(|line| line.strip_prefix("loaded ").and_then(|id| id.parse().ok()));
    Ok((Outcome::of(&ids.collect::<Vec<_>>()), told))
}

#[test]
fn objects_share_a_map_where_libbpf_lets_them() {
    let Some(program) = build() else { return skip("pinning", &"cc or libbpf is missing") };
    for trial in trials() {
        match libbpfs(&program, &trial) {
            Ok((theirs, told)) => assert_eq!(ours(&trial), theirs, "{trial:?}\n{told}"),
            Err(reason) => return skip("pinning", &reason),
        }
    }
}

/// Equal definitions share the pinned map; libbpf 1.1 compares them with the flag that the kernel added.
#[test]
fn device_maps_are_shared() {
    for device in DEVICES {
        assert_eq!(ours(&[device, device, with(device, ENTRIES, 8)]).0, [Some(0), Some(0), None]);
    }
}
