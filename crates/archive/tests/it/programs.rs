//! Programs on several workers, and their maps made one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use paceline::{Collection, Host, LoadOptions, Object, ReplayOptions, TimeSource};
use paceline_archive::{
    Elements, MergeError, Opened, Rule, Rules, Snapshot, Source, Wanted, Worker, merge, scan,
};

use crate::example;

fn loaded(object: &str) -> Collection {
    let bytes = std::fs::read(example(object)).expect("the example");
    Object::parse(&bytes).expect("an object").load(&LoadOptions::default()).expect("maps")
}

fn worker(collection: &Collection) -> Worker {
    let program = collection.program(None).expect("a program").program().clone();
    let mut host = Host::default();
    host.set_time(TimeSource::Packets);
    Worker::with_program(Box::new(program), host, ReplayOptions::default())
}

/// Rules for the maps of `counter.o`, which are all sums but one.
fn counters(map: &str, rule: Rule) -> Rules {
    Rules { by_map: [(map.to_owned(), rule)].into(), others: Some(Rule::Sum) }
}

/// Elements of the maps with rules after a scan by so many workers.
fn counted(object: &str, workers: usize, rules: &Rules) -> Result<BTreeMap<String, Elements>, MergeError> {
    let capture = Opened::open(Source::open(example("traffic.pcap")).expect("the example"), None);
    let captures = [capture.expect("a capture")];
    let collections: Vec<_> = (0..workers).map(|_| loaded(object)).collect();
    let first = &collections[0];
    rules.check(first.maps(), first.object().btf())?;
    let before = Snapshot::of(first.maps(), rules)?;
    let parts = captures[0].parts(5, true).expect("parts").into_iter().map(|part| (0, part)).collect();
    let workers = collections.iter().map(worker).collect();
    let report = scan(&captures, parts, workers, Wanted::default(), |_| ControlFlow::Continue(()));
    assert_eq!(report.expect("a capture").totals().verdicts.iter().sum::<u64>(), 492);
    let after: Vec<_> =
        collections.iter().map(|of| Snapshot::of(of.maps(), rules)).collect::<Result<_, _>>()?;
    merge(first.maps(), first.object().btf(), rules, &before, &after)?;
    Ok(Snapshot::of(first.maps(), rules)?.0)
}

#[test]
fn counters_of_workers_are_those_of_one() {
    let rules = counters("by_size", Rule::Sum);
    let one = counted("counter.o", 1, &rules).expect("maps that merge");
    assert!(one.values().flat_map(Elements::values).flatten().any(|byte| *byte != 0));
    for workers in 2..5 {
        assert_eq!(counted("counter.o", workers, &rules).expect("maps that merge"), one);
    }
}

#[test]
fn maps_that_cannot_be_made_one_are_refused() {
    let refused = |object: &str, given: &Rules| {
        let collection = loaded(object);
        let error = given.check(collection.maps(), collection.object().btf());
        error.expect_err("a refusal").to_string()
    };
    let error = refused("counter.o", &Rules::default());
    assert!(error.contains("no rule says how"), "{error}");
    assert_eq!(refused("counter.o", &counters("other", Rule::Sum)), "there is no map other");
    let error = refused("counter.o", &counters("by_size", Rule::Union));
    assert!(error.contains("map by_size: rule union is not for"), "{error}");
    // Programs change it.
    let changed = counted("counter.o", 2, &counters("by_size", Rule::Fixed));
    assert!(matches!(changed, Err(MergeError::Changed { .. })), "{changed:?}");
}
