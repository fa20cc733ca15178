//! Random modules before and after passes: a run leaves the same. `paceline-testkit ir` runs any number.

use paceline_compiler::ir::random::{compare, module, pass_sets};
use paceline_compiler::ir::{Pass, Passes, optimize, parse};

/// Modules for each set of passes, unless `PACELINE_IR_MODULES` says how many.
const MODULES: u64 = 500;

/// Inputs of each module.
const INPUTS: u64 = 3;

fn modules() -> u64 {
    std::env::var("PACELINE_IR_MODULES").map_or(MODULES, |count| count.parse().expect("a number"))
}

#[test]
fn passes_change_nothing_of_a_run() {
    for (number, (name, passes)) in (0..).zip(pass_sets()) {
        for seed in number * modules()..(number + 1) * modules() {
            if let Err(difference) = compare(seed, &passes, INPUTS) {
                panic!("{name}: {difference}");
            }
        }
    }
}

#[test]
fn every_pass_finds_something_in_random_modules() {
    for pass in Pass::ALL {
        let passes = Passes::none().with(Pass::Fold, pass != Pass::Fold);
        let changes = |seed: &u64| {
            let mut before = module(*seed);
            optimize(&mut before, &passes).expect("valid");
            let mut after = before.clone();
            optimize(&mut after, &Passes::none().with(pass, true)).expect("valid");
            before.to_string() != after.to_string()
        };
        let count = (0..200).filter(changes).count();
        assert!(count >= 10, "{pass} changes {count} of 200");
    }
}

#[test]
fn text_of_random_modules_is_kept() {
    for seed in 0..modules() / 2 {
        let mut module = module(seed);
        for _ in 0..2 {
            let text = module.to_string();
            let read = parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
            assert_eq!(read.to_string(), text, "seed {seed}");
            optimize(&mut module, &Passes::default()).expect("valid");
        }
    }
}
