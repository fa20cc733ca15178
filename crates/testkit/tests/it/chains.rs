//! Random chains on all ways to run them, a fixed number; `paceline-testkit chains` runs any number.

use paceline_testkit::compare::{ChainSubject, ChainWay, Workshop, compare_chains};
use paceline_testkit::kernel;
use paceline_testkit::random::maps;

const CHAINS: u64 = 60;
const RUNS: usize = 40;

#[test]
fn all_ways_to_run_a_chain_agree() {
    let pinned = kernel::pin();
    let subject = |way| ChainSubject::new(way, pinned.cpu()).expect("small maps");
    let mut subjects: Vec<ChainSubject> = ChainWay::ALL.into_iter().filter_map(subject).collect();
    let shop = Workshop::new(maps());
    for seed in 0..CHAINS {
        let Some(work) = shop.chain(seed, RUNS) else { continue };
        if let Err(difference) = compare_chains(&mut subjects, &work) {
            panic!("paceline-testkit chains --seed {seed} --count 1: {difference}");
        }
    }
}
