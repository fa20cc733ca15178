//! Maps of an object with keys and values of Rust types, and by the types of its BTF.

use paceline::json::{ElementError, JsonError, to_json, to_written_json};
use paceline::{Burst, Collection, Errno, FrameMeta, Host, LoadOptions, Object, PerCpu, UpdateMode};
use serde_json::json;
use zerocopy::{FromBytes, Immutable, IntoBytes};

fn load(path: &str) -> Collection {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    let mut options = LoadOptions::default();
    options.limits.cpus = 2;
    Object::open(path).unwrap().load(&options).unwrap()
}

/// `struct traffic` of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Traffic {
    packets: u64,
    bytes: u64,
}

#[test]
fn what_a_program_counts() {
    let counter = load("examples/counter.o");
    let program = counter.program(None).unwrap();
    let mut burst = Burst::default();
    let mut packet = [0; 60];
    packet[12..15].copy_from_slice(&[8, 0, 0x45]);
    packet[23] = 17;
    burst.push(&packet, FrameMeta::default()).unwrap();
    program.run_burst(&mut burst, &mut Host::default()).unwrap();

    let by_ethertype = counter.map("by_ethertype").unwrap().typed::<u16, Traffic>().unwrap();
    assert_eq!(
        by_ethertype.iter().unwrap().collect::<Vec<_>>(),
        [(0x0800, Traffic { packets: 1, bytes: 60 })]
    );
    let by_protocol = counter.map("by_protocol").unwrap().typed::<u32, PerCpu<Traffic>>().unwrap();
    let values = by_protocol.lookup(&17).unwrap().unwrap();
    assert_eq!(*values, [Traffic { packets: 1, bytes: 60 }, Traffic::default()]);

    let by_protocol = counter.json_map("by_protocol").unwrap();
    let idle = json!({"packets": 0, "bytes": 0});
    assert_eq!(by_protocol.lookup(&json!(17)), Ok(Some(json!([{"packets": 1, "bytes": 60}, idle]))));
    let seen = json!([idle, {"packets": 3, "bytes": 180}]);
    by_protocol.insert(&json!(6), &seen).unwrap();
    assert_eq!(by_protocol.lookup(&json!(6)), Ok(Some(seen)));
    let variables = counter.json_map(".bss").unwrap();
    assert_eq!(
        variables.lookup(&json!(["0x00", "0x00", "0x00", "0x00"])).unwrap().unwrap()["total"]["bytes"],
        60
    );
    let by_ethertype = counter.json_map("by_ethertype").unwrap();
    assert_eq!(
        by_ethertype.iter().unwrap().collect::<Vec<_>>(),
        [(json!(0x0800), json!({"packets": 1, "bytes": 60}))]
    );
    assert_eq!(by_ethertype.delete(&json!(0x0800)), Ok(true));
    assert_eq!(by_ethertype.delete(&json!(0x0800)), Ok(false));
}

#[test]
fn queues_have_no_keys() {
    let state = load("crates/cli/tests/fixtures/state.o");
    let queue = state.json_map("queue").unwrap();
    queue.insert(&json!(null), &json!(7)).unwrap();
    queue.insert(&json!(null), &json!(8)).unwrap();
    let typed = queue.map().typed::<(), u64>().unwrap();
    assert_eq!(typed.pop(), Ok(Some(7)));
    assert_eq!(typed.pop(), Ok(Some(8)));
    assert_eq!(typed.pop(), Ok(None));
    assert!(matches!(queue.insert(&json!(0), &json!(7)), Err(ElementError::Key { .. })));
}

#[test]
fn what_does_not_fit_is_named() {
    let types = load("crates/cli/tests/fixtures/types.o");
    let rules = types.json_map("rules").unwrap();
    let flow = json!({"address": [192, 0, 2, 1], "port": 80});
    rules.insert(&flow, &json!({"action": "DENY", "name": "web", "balance": -5, "low": 7})).unwrap();
    let rule = rules.lookup(&flow).unwrap().unwrap();
    assert_eq!(
        (&rule["action"], &rule["name"], &rule["balance"]),
        (&json!("DENY"), &json!("web"), &json!(-5))
    );
    // Values that are read can be written.
    rules.update_with(&flow, &rule, UpdateMode::Exist).unwrap();
    assert_eq!(rules.lookup(&flow), Ok(Some(rule)));

    let error = |key, value| paceline::with_causes(&rules.insert(&key, &value).unwrap_err());
    assert_eq!(
        error(json!({"address": [1, 2, 3, 4, 5]}), json!({})),
        "map rules, key: .address: 5 elements do not fit into an array of 4"
    );
    assert_eq!(
        error(flow.clone(), json!({"low": 8})),
        "map rules, value: .low: 8 does not fit into `__u32` (0 to 7)"
    );
    assert_eq!(error(flow.clone(), json!(null)), "map rules, value: null is not a value");
    assert_eq!(
        error(flow.clone(), json!({"action": "DENI"})),
        "map rules, value: .action: `DENI` is not a value of `enum action`; did you mean `DENY`?"
    );
    let full: Vec<_> = (0..5).map(|port| rules.insert(&json!({"port": port}), &json!({}))).collect();
    assert_eq!(full[3], Err(ElementError::Refused { map: "rules".to_owned(), errno: Errno::E2BIG }));
    let shares = types.json_map("shares").unwrap();
    assert!(matches!(
        shares.insert(&json!(1), &json!([5])),
        Err(ElementError::Value { source: JsonError::Cpus(2), .. })
    ));
    // Each CPU's value begins at a multiple of 8 bytes.
    shares.insert(&json!(1), &json!([5, 6])).unwrap();
    assert_eq!(shares.lookup(&json!(1)), Ok(Some(json!([5, 6]))));
    assert_eq!(*shares.map().typed::<u16, PerCpu<u32>>().unwrap().lookup(&1).unwrap().unwrap(), [5, 6]);
    let untyped = types.json_map("untyped").unwrap();
    assert_eq!(
        paceline::with_causes(&untyped.insert(&json!(0), &json!([1, 2])).unwrap_err()),
        "map untyped, value: the map has no types, so this must be a list of 6 bytes, such as [\"0x0a\", \"0x00\"]"
    );
}

/// The objects that are committed.
fn objects() -> Vec<Object> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let folders =
        ["examples", "crates/cli/tests/fixtures", "crates/object/tests/fixtures", "crates/testkit/fixtures"];
    let files = folders.into_iter().flat_map(|folder| std::fs::read_dir(format!("{root}/{folder}")).unwrap());
    let paths =
        files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "o"));
    paths.filter_map(|path| Object::open(path).ok()).collect()
}

/// Addresses, prefixes and numbers in network byte order are read as they are written, in all types of keys and values there are here.
#[test]
fn values_are_read_as_they_are_written() {
    let mut random = fastrand::Rng::with_seed(48);
    let (mut values, mut texts) = (0, 0);
    for object in objects() {
        let btf = object.btf();
        for spec in object.maps() {
            for _ in 0..64 {
                let mut key: Vec<u8> = (0..spec.key_size).map(|_| random.u8(..)).collect();
                if spec.kind.has_prefixes() {
                    let bits = (spec.key_size - 4) * 8;
                    key[..4].copy_from_slice(&random.u32(..=bits).to_ne_bytes());
                }
                // Zeros are in padding, and text of characters.
                let value: Vec<u8> =
                    (0..spec.value_size.min(4096)).map(|_| random.u8(..) * random.u8(..2)).collect();
                let typed_key = spec.decode_key(btf, &key);
                let pairs =
                    [(typed_key, key.len(), true), (spec.decode_value(btf, &value), value.len(), false)];
                for (typed, size, is_key) in pairs {
                    let Some(typed) = typed else { continue };
                    let encode = |json: &serde_json::Value| match is_key {
                        true => paceline::json::encode_key(json, btf, spec),
                        false => paceline::json::encode(json, btf, spec.value_type, size),
                    };
                    let (plain, written) = (to_json(&typed), to_written_json(&typed));
                    // Some have no JSON: numbers that are none, characters that are no text, unions of a truth value.
                    let Ok(bytes) = encode(&plain) else { continue };
                    assert_eq!(encode(&written), Ok(bytes), "{}: {written}", spec.name);
                    values += 1;
                    texts += usize::from(plain != written);
                }
            }
        }
    }
    assert!(values > 20_000 && texts > 1_000, "{values} values, {texts} with an address");
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Flow {
    address: [u8; 4],
    port: u16,
    reserved: u16,
}

paceline::btf_type!(Flow { address: [u8; 4], port: u16, reserved: u16 });

/// The same size with two fields the other way round.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Swapped {
    port: u16,
    reserved: u16,
    address: [u8; 4],
}

paceline::btf_type!(Swapped { port: u16, reserved: u16, address: [u8; 4] });

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Rule {
    action: u32,
    log: u8,
    name: [u8; 8],
    padding: [u8; 3],
    balance: i64,
    limit: u32,
    bits: [u8; 4],
}

paceline::btf_type!(Rule {
    action: u32,
    log: u8,
    name: [u8; 8],
    padding: [u8; 3],
    balance: i64,
    limit: u32,
    bits: [u8; 4],
});

/// As `Rule`, with a number that the object has signed.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Unsigned {
    action: u32,
    log: u8,
    name: [u8; 8],
    padding: [u8; 3],
    balance: u64,
    limit: u32,
    bits: [u8; 4],
}

paceline::btf_type!(Unsigned {
    action: u32,
    log: u8,
    name: [u8; 8],
    padding: [u8; 3],
    balance: u64,
    limit: u32,
    bits: [u8; 4],
});

#[test]
fn the_fields_of_rust_types_are_those_of_the_object() {
    let types = load("crates/cli/tests/fixtures/types.o");
    // A union by one of its members, bitfields by bytes, padding by a field of any name.
    types.typed_map::<Flow, Rule>("rules").unwrap();
    // Bytes stand for anything of their size.
    types.typed_map::<[u8; 8], [u8; 32]>("rules").unwrap();
    types.typed_map::<u16, PerCpu<u32>>("shares").unwrap();
    types.typed_map::<i32, [u8; 6]>("untyped").expect("sizes alone are known");
    let error = paceline::with_causes(&types.typed_map::<Swapped, Rule>("rules").unwrap_err());
    assert_eq!(
        error,
        "map rules, key: .port: the object has it at offset 4, the Rust type has it at offset 0"
    );
    let error = paceline::with_causes(&types.typed_map::<Flow, Unsigned>("rules").unwrap_err());
    assert_eq!(error, "map rules, value: .balance: the object has __s64, the Rust type has u64");
    let error = paceline::with_causes(&types.typed_map::<u64, Rule>("rules").unwrap_err());
    assert_eq!(error, "map rules, key: the object has struct flow, the Rust type has u64");
    let error = paceline::with_causes(&types.typed_map::<i16, PerCpu<u32>>("shares").unwrap_err());
    assert_eq!(error, "map shares, key: the object has __u16, the Rust type has i16");
    let error = paceline::with_causes(&types.typed_map::<u32, PerCpu<u32>>("shares").unwrap_err());
    assert!(error.contains("its keys have 2 bytes"), "sizes come first: {error}");

    let counter = load("examples/counter.o");
    counter.typed_map::<u16, [u64; 2]>("by_ethertype").expect("two members of the element's type");
    let error = paceline::with_causes(&counter.typed_map::<u16, [u32; 4]>("by_ethertype").unwrap_err());
    assert!(error.contains("the object has struct traffic, the Rust type has [u32; 4]"), "{error}");
    let error = paceline::with_causes(&counter.typed_map::<u16, [i64; 2]>("by_ethertype").unwrap_err());
    assert!(error.contains("value: .packets: the object has __u64, the Rust type has i64"), "{error}");
}
