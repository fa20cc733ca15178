//! Inputs for all sides of the branches of the examples.

use std::time::{Duration, Instant};

use paceline::Object;
use paceline::generate::{Options, generate};

#[test]
fn sides_of_the_examples_are_reached_or_proved_unreachable() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let only = std::env::var("ONLY").unwrap_or_default();
    let seconds = std::env::var("SECONDS_EACH").ok().and_then(|s| s.parse().ok()).unwrap_or(20);
    for name in ["balancer", "counter", "firewall", "protocols", "reflector", "sampler", "steering", "vlan"] {
        if !only.is_empty() && !only.contains(name) {
            continue;
        }
        let object = Object::open(format!("{folder}/{name}.o")).unwrap();
        for program in object.programs() {
            let start = Instant::now();
            let options = Options { time: Duration::from_secs(seconds), ..Options::default() };
            let generated = generate(&object, program, &options).unwrap();
            println!(
                "{name}:{} reached {} unreachable {} given up {} failures {} paths {} questions {:?} in {:?}",
                program.name,
                generated.reached.len(),
                generated.unreachable.len(),
                generated.given_up.len(),
                generated.failures.len(),
                generated.paths,
                generated.questions,
                start.elapsed()
            );
            for (side, place) in &generated.given_up {
                println!("   {} {}: {} at {} line {:?}", side.slot, side.taken, place.why, place.slot, program.line_of(side.slot).map(|l| l.line));
            }
            for (side, by) in &generated.unreachable {
                println!("   {} {}: unreachable {by} line {:?}", side.slot, side.taken, program.line_of(side.slot).map(|l| l.line));
            }
            for failure in &generated.failures {
                println!("   FAIL {:?} {} {:?}", failure.side, failure.how, failure.input.maps);
            }
        }
    }
}
