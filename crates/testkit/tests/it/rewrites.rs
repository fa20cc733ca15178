//! Where an explanation names one field of the packet, another value of that field makes another outcome, or the explanation has the
//! decision that would make the same one.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use paceline::explain::{CauseKind, ChainExplainer, Explainer, Explanation, FactKind};
use paceline::packet::Layers;
use paceline::scenario::Origin;
use paceline::{Arrival, Engine, FrameMeta, Host, LoadOptions, Meaning, Object, Outcome};
use paceline_engine::Steer;
use paceline_spec::InitialValue;
use paceline_testkit::object_runs::{fill_from_seed, packets_of, pool, size_maps};

/// Packets with one content of the maps.
const ROUND: usize = 100;

/// Packets for each program; more with `PACELINE_EXPLANATIONS`.
fn count() -> usize {
    std::env::var("PACELINE_EXPLANATIONS").map_or(ROUND, |count| count.parse().expect("a number"))
}

/// The objects of the examples and of the command's tests, and those below `PACELINE_DECISIONS`.
fn objects() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("examples")];
    if let Ok(folder) = std::env::var("PACELINE_DECISIONS") {
        folders.extend(
            std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()),
        );
    }
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("a folder"));
    let mut objects: Vec<_> = files
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "o"))
        .collect();
    objects.push(root.join("crates/cli/tests/fixtures/decisions.o"));
    objects.sort();
    objects
}

/// The field that a sentence names alone.
fn named(explanation: &Explanation) -> Option<&str> {
    let cause = explanation.cause().filter(|cause| cause.kind == CauseKind::Condition)?;
    match cause.facts.as_slice() {
        [only] if only.kind == FactKind::Packet => Some(&only.name),
        _ => None,
    }
}

fn number(bytes: &[u8], bits: &Range<usize>) -> u128 {
    bits.clone().fold(0, |number, bit| number << 1 | u128::from(bytes[bit / 8] >> (7 - bit % 8) & 1))
}

fn rewritten(bytes: &[u8], bits: &Range<usize>, value: u128) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (back, bit) in bits.clone().rev().enumerate() {
        let mask = 1 << (7 - bit % 8);
        match value >> back & 1 {
            0 => bytes[bit / 8] &= !mask,
            _ => bytes[bit / 8] |= mask,
        }
    }
    bytes
}

/// The constants of the programs of an object, and those in its constant data.
fn constants(object: &Object) -> BTreeSet<u32> {
    let insns = object.programs().iter().flat_map(|program| program.insns.iter());
    let contents = object.maps().iter().filter(|map| map.is_constant()).flat_map(|map| &map.contents);
    let words = contents.filter_map(|(_, value)| match value {
        InitialValue::Bytes(bytes) => Some(bytes),
        _ => None,
    });
    let words = words.flat_map(|bytes| {
        let halves =
            bytes.windows(2).step_by(2).map(|half| u32::from(u16::from_ne_bytes([half[0], half[1]])));
        halves.chain(
            bytes.windows(4).step_by(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]])),
        )
    });
    insns.map(|insn| insn.imm as u32).chain(words).collect()
}

/// Values to try: all of a small field, else limits, neighbours, single bits, and the constants of the program in either byte order.
fn values(constants: &BTreeSet<u32>, now: u128, width: usize) -> BTreeSet<u128> {
    let greatest = if width >= 128 { u128::MAX } else { (1 << width) - 1 };
    if width <= 10 {
        return (0..=greatest).collect();
    }
    let orders = constants.iter().flat_map(|one| [*one, one.swap_bytes(), (*one as u16).swap_bytes().into()]);
    let near = orders.flat_map(|one| [one.wrapping_sub(1), one, one.wrapping_add(1)]).map(u128::from);
    let bits = (0..width).map(|bit| now ^ (1 << bit));
    let limits = [0, 1, greatest, greatest / 2, greatest - 1, now.wrapping_add(1), now.wrapping_sub(1)];
    // A program may read one byte of an address.
    let bytes = (0..width / 8).flat_map(|byte| (0..=255_u128).map(move |value| (byte * 8, value)));
    let bytes = bytes.map(|(shift, value)| now & !(0xff << shift) | value << shift);
    near.chain(bits).chain(limits).chain(bytes).filter(|value| *value <= greatest).collect()
}

/// What a program named, and how often another value of the field made another outcome.
#[derive(Debug, Default)]
struct Figures {
    named: usize,
    changed: usize,
    /// The explanation says what decides otherwise.
    told: usize,
    faults: Vec<String>,
}

#[test]
fn another_value_of_the_field_that_is_named_makes_another_outcome() {
    let mut figures = Figures::default();
    for path in objects() {
        let object = Object::open(&path).expect("an object");
        let verdicts =
            object.programs().iter().filter(|spec| spec.kind.rules().meaning != Meaning::BytesKept);
        let names: Vec<_> = verdicts.map(|spec| spec.name.clone()).collect();
        for name in names {
            for round in 0..count().div_ceil(ROUND) {
                let mut object = Object::open(&path).expect("an object");
                size_maps(&mut object.specs_mut().maps);
                fill_from_seed(&mut object, round as u64);
                try_packets(&object, &name, round as u64, &mut figures);
            }
        }
    }
    let Figures { named, changed, told, faults } = &figures;
    eprintln!("{named} name one field, {changed} change with it, {told} tell what decides otherwise");
    assert!(*named > 300, "only {named} name one field");
    assert!(faults.is_empty(), "{} of {named}:\n{}", faults.len(), faults.join("\n"));
}

/// The bits of a field, of `ipv4.{version,ihl}`, or of `payload[12..14]`.
fn bits_of(bytes: &[u8], path: &str) -> Option<Range<usize>> {
    let layers = Layers::new(bytes);
    if let Some(field) = layers.field(path) {
        return Some(field.bits_in_packet());
    }
    if let Some((layer, fields)) = path.split_once(".{") {
        let fields = fields.trim_end_matches('}').split(',');
        let bits = fields.map(|field| Some(layers.field(&format!("{layer}.{field}"))?.bits_in_packet()));
        let bits = bits.collect::<Option<Vec<_>>>()?;
        return Some(bits.first()?.start..bits.last()?.end);
    }
    let (part, range) = path.strip_suffix(']')?.split_once('[')?;
    let part = if part == "payload" { layers.payload() } else { layers.padding() };
    let start = part.as_ptr() as usize - bytes.as_ptr() as usize;
    let (first, last) = range.split_once("..").unwrap_or((range, ""));
    let first: usize = first.parse().ok()?;
    let last = if last.is_empty() { first + 1 } else { last.parse().ok()? };
    Some((start + first) * 8..(start + last) * 8)
}

/// Packets in which a field has other values, or that have other lengths.
fn others(constants: &BTreeSet<u32>, bytes: &[u8], path: &str) -> Vec<Vec<u8>> {
    if path == "the packet's length" {
        let lengths = (1..=300).chain([1514]).filter(|len| *len != bytes.len());
        return lengths
            .map(|len| bytes.iter().copied().chain(std::iter::repeat(0)).take(len).collect())
            .collect();
    }
    let Some(bits) = bits_of(bytes, path) else { return Vec::new() };
    let now = number(bytes, &bits);
    let others = values(constants, now, bits.len()).into_iter().filter(|value| *value != now);
    others.map(|value| rewritten(bytes, &bits, value)).collect()
}

fn try_packets(object: &Object, name: &str, round: u64, figures: &mut Figures) {
    let Ok(collection) = object.load(&LoadOptions::default().engine(Engine::Plain)) else { return };
    if collection.program(Some(name)).is_err() {
        return;
    }
    let explainer = || {
        let program = collection.program_unverified(Some(name)).expect("it binds");
        Explainer::new(program, object.shared_btf())
    };
    let constants = constants(object);
    let (mut chain, mut runner) = (ChainExplainer::of_program(explainer()), explainer());
    chain.want_all_causes(true);
    let mut host = Host::new(0);
    for (index, input) in packets_of(pool(), 7 + round, ROUND).iter().enumerate() {
        let meta = FrameMeta { original_len: input.data.len() as u32, ..FrameMeta::default() };
        let packet = Origin::default().arrival(&input.data, meta);
        let explained = chain.rehearse(&packet, &mut host).expect("it fits");
        let explanation = &explained.steps.last().expect("a program").1;
        if let Some(path) = named(explanation)
            && explanation.outcome.fault.is_none()
        {
            figures.named += 1;
            let changing = others(&constants, &input.data, path).into_iter().find(|bytes| {
                let meta = FrameMeta { original_len: bytes.len() as u32, ..meta };
                let packet = Origin::default().arrival(bytes, meta);
                !run(&mut runner, &packet, &mut host).fares_as(&explanation.outcome)
            });
            match (changing, &explanation.otherwise) {
                (Some(_), _) => figures.changed += 1,
                (None, Some(_)) => figures.told += 1,
                (None, None) => {
                    figures
                        .faults
                        .push(format!("{name}, packet {index} of {round}: {}", explanation.sentence()));
                }
            }
        }
        runner.run(&packet, &mut host).expect("it fits");
    }
}

/// A run that leaves maps and host as they were.
fn run(runner: &mut Explainer, packet: &Arrival<'_>, host: &mut Host) -> Outcome {
    let mut left = 1_000_000;
    let outcome = runner.rehearsed(packet, host, |_| {
        left -= 1;
        if left == 0 { Steer::Stop } else { Steer::Follow }
    });
    outcome.expect("it fits")
}
