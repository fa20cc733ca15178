//! Every helper on maps with a map of every kind: the verifier accepts and refuses what the kernel's does, so that a use that is
//! wrong or missing in a kind's row, or in the helper's, fails.

use std::fmt::Write;

use paceline::{Limits, Map};
use paceline_spec::helper::{Arg, Helper, Return};
use paceline_spec::{ElementKind, KeyKind, MapFlags, MapKind, MapSpec};
use paceline_testkit::case::{Case, find_files, parse_file, read_file};
use paceline_testkit::kernel::{KernelObject, LoadError, LoadOptions, available_for};
use paceline_verifier::{Options, verify};

/// The smallest map of a kind.
fn smallest(kind: MapKind) -> MapSpec {
    let (key_size, flags) = match kind.rules().keys {
        KeyKind::None => (0, MapFlags::default()),
        KeyKind::Prefix => (8, MapFlags::NO_PREALLOC),
        KeyKind::Index | KeyKind::Bytes => (4, MapFlags::default()),
    };
    let inner = || Box::new(MapSpec::new("inner", MapKind::Array, 4, 8, 1));
    match kind.rules().elements {
        ElementKind::Records => MapSpec::new("m", kind, 0, 0, 4096),
        ElementKind::Maps => MapSpec { inner: Some(inner()), ..MapSpec::new("m", kind, 4, 4, 1) },
        _ => MapSpec { flags, ..MapSpec::new("m", kind, key_size, 4, 1) },
    }
}

/// A text case whose program calls a helper once, with its map and zeros in memory on the stack. Sockets come from the map itself;
/// references are released.
fn text(helper: &Helper, kind: MapKind) -> Option<String> {
    let prototype = helper.prototype.filter(|prototype| prototype.args.contains(&Arg::Map))?;
    let mut text =
        "case: call\nmap: m array key 4 value 4 entries 1\nprogram:\n    r6 = r1\n    r7 = 0\n".to_owned();
    for offset in (8..=64).step_by(8) {
        let _ = writeln!(text, "    *(u64 *)(r10 - {offset}) = 0");
    }
    let takes_socket = kind.holds_sockets() && prototype.args.contains(&Arg::MapValue);
    if takes_socket {
        text += "    r1 = map[m] ll\n    r2 = r10\n    r2 += -64\n    call bpf_map_lookup_elem\n    r7 = r0\n    if r7 == 0 goto end\n";
    }
    for (number, arg) in (1..).zip(prototype.args) {
        let value = match arg {
            Arg::Context => format!("r{number} = r6"),
            Arg::Map => format!("r{number} = map[m] ll"),
            Arg::Function => format!("r{number} = subprog[callback] ll"),
            Arg::MapValue if takes_socket => format!("r{number} = r7"),
            Arg::MapKey | Arg::MapValue | Arg::NextValue | Arg::ReadMem => {
                format!("r{number} = r10\n    r{number} += -64")
            }
            Arg::NewRecordDynptr => format!("r{number} = r10\n    r{number} += -16"),
            Arg::Size | Arg::SizeOrZero | Arg::RecordSize => format!("r{number} = 8"),
            Arg::Scalar | Arg::StackOrNull => format!("r{number} = 0"),
            // The timer of a value, of whose map no use is made.
            Arg::Timer => return None,
            other => panic!("{}: add an argument for {other:?}", helper.name),
        };
        let _ = writeln!(text, "    {value}");
    }
    let _ = writeln!(text, "    call {}", helper.name);
    let release = |call| format!("    if r0 == 0 goto done\n    r1 = r0\n    r2 = 0\n    call {call}\n");
    match prototype.returns {
        Return::RecordOrNull => text += &release("bpf_ringbuf_discard"),
        Return::MapValueOrNull if kind.holds_sockets() => text += &release("bpf_sk_release"),
        _ => {}
    }
    if prototype.args.contains(&Arg::NewRecordDynptr) {
        text += "    r1 = r10\n    r1 += -16\n    r2 = 0\n    call bpf_ringbuf_discard_dynptr\n";
    }
    text +=
        "done:\n    if r7 == 0 goto end\n    r1 = r7\n    call bpf_sk_release\nend:\n    r0 = 2\n    exit\n";
    if prototype.args.contains(&Arg::Function) {
        text += "callback:\n    r0 = 0\n    exit\n";
    }
    Some(text + "verdict: pass\n")
}

fn case(helper: &Helper, kind: MapKind) -> Option<Case> {
    let text = text(helper, kind)?;
    let mut case = parse_file(&text).unwrap_or_else(|error| panic!("{error}:\n{text}")).remove(0);
    case.maps[0] = smallest(kind);
    Some(case)
}

/// The kernel's refusal, if it refuses.
fn kernels(case: &Case) -> Option<String> {
    let options = LoadOptions { btf: Some(&case.btf), ..LoadOptions::default() };
    match KernelObject::load(&case.maps, &case.programs, options) {
        Ok(_) => None,
        Err(LoadError::Program { error, .. }) => Some(error.reason().to_owned()),
        Err(error) => panic!("{:?}: {error}", case.maps[0].kind),
    }
}

#[test]
fn helpers_take_the_map_kinds_that_the_kernel_lets_them() {
    if !available_for("the maps that helpers take") {
        return;
    }
    let mut differences = String::new();
    for helper in Helper::all() {
        for &kind in MapKind::ALL.iter().filter(|kind| kind.is_supported()) {
            let Some(case) = case(helper, kind) else { continue };
            let ours = verify(&case.programs[0], &case.maps, Some(&case.btf), &Options::default());
            let kernels = kernels(&case);
            let is_same = ours.is_ok() == kernels.is_none() && ours.is_ok() == helper.takes_map(kind);
            if !is_same {
                let ours = ours.err().map(|refusal| refusal.to_string());
                let _ =
                    writeln!(differences, "{} on {kind}: {ours:?}, in the kernel {kernels:?}", helper.name);
            }
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

/// The structures of special fields, with their members.
const FIELDS: [(&str, &str); 6] = [
    ("bpf_spin_lock", "u32 a;"),
    ("bpf_res_spin_lock", "u32 a;"),
    ("bpf_timer", "u64 a[2];"),
    ("bpf_wq", "u64 a[2];"),
    ("bpf_task_work", "u64 a;"),
    ("bpf_refcount", "u32 a;"),
];

/// A case with a map of a kind whose values have a special field.
fn holder(kind: MapKind, (field, members): (&str, &str)) -> Case {
    let text = format!(
        "case: held\ntypes:\n    struct {field} {{ {members} }};\n    struct prefix {{ u32 a; u32 b; }};\n    \
         struct held {{ u64 a; struct {field} b; }};\nmap: m array key {key} value held entries 1\n\
         program:\n    r0 = 2\n    exit\nverdict: pass\n",
        key = if kind.has_prefixes() { "prefix" } else { "u32" }
    );
    let mut case = parse_file(&text).unwrap_or_else(|error| panic!("{error}:\n{text}")).remove(0);
    let smallest = smallest(kind);
    let map = &mut case.maps[0];
    let key_type = if smallest.key_size == 0 { 0 } else { map.key_type };
    *map = MapSpec { value_size: map.value_size, key_type, value_type: map.value_type, ..smallest };
    map.find_special_fields(&case.btf);
    case
}

#[test]
fn values_have_the_special_fields_that_the_kernel_lets_them() {
    if !available_for("the special fields of map values") {
        return;
    }
    let has_values = |kind: &&MapKind| {
        let elements = kind.rules().elements;
        kind.has_element_types() && matches!(elements, ElementKind::Bytes | ElementKind::Members)
    };
    let mut differences = String::new();
    for &kind in MapKind::ALL.iter().filter(|kind| kind.is_supported()).filter(has_values) {
        for field in FIELDS {
            let case = holder(kind, field);
            let ours = Map::create(&case.maps[0], &Limits { cpus: 1, memory: 1 << 20 });
            let ours = ours.map(drop).map_err(|error| error.errno());
            let options = LoadOptions { btf: Some(&case.btf), ..LoadOptions::default() };
            let kernels = match KernelObject::load(&case.maps, &case.programs, options) {
                Err(LoadError::Map { error, .. }) => Err(error.errno),
                Err(error) => panic!("{kind}, {}: {error}", field.0),
                Ok(_) => Ok(()),
            };
            if ours != kernels {
                let _ = writeln!(differences, "{} in {kind}: {ours:?}, in the kernel {kernels:?}", field.0);
            }
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

#[test]
fn every_map_kind_has_a_text_case() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases");
    let files = find_files(root.as_ref()).expect("the cases");
    let cases: Vec<Case> = files.iter().flat_map(|file| read_file(file).expect("a case file")).collect();
    let kinds: Vec<MapKind> = cases.iter().flat_map(|case| &case.maps).map(|map| map.kind).collect();
    let without: Vec<_> =
        MapKind::ALL.iter().filter(|kind| kind.is_supported() && !kinds.contains(kind)).collect();
    assert!(without.is_empty(), "no text case has a map of {without:?}");
}
