//! Chains of whole programs.

use std::path::Path;

use paceline::chain::{Edges, Graph, Next, Node};
use paceline::{Burst, Chain, Engine, FrameMeta, Host, LoadOptions, Object, Program, Target, Verdict};

fn example(name: &str, engine: Engine) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let options = LoadOptions::default().engine(engine);
    let collection = Object::open(path).unwrap().load(&options).unwrap();
    collection.program(None).unwrap().into_program()
}

fn burst(packets: usize) -> Burst {
    let mut burst = Burst::default();
    for _ in 0..packets {
        burst.push(&[0; 60], FrameMeta::default()).unwrap();
    }
    burst
}

#[test]
fn programs_of_different_engines_follow_each_other() {
    let programs = vec![example("counter.o", Engine::Plain), example("counter.o", Engine::best())];
    let edges = Edges::NONE.with(Verdict::Pass, Next::End(Verdict::Tx));
    let graph =
        Graph::new(vec![Edges::NONE.with(Verdict::Pass, Next::Program(Node::new(1))), edges]).unwrap();
    let chain = Chain::new(programs, graph).unwrap();
    let (mut host, mut burst, mut counts) = (Host::default(), burst(3), chain.counts().unwrap());
    chain.run_burst_counted(&mut burst, &mut host, &mut counts).unwrap();
    assert!(burst.iter().all(|frame| frame.verdict() == Verdict::Tx));
    assert_eq!(counts.of(Node::new(1), Some(Verdict::Pass)), 3);
    Target::from(&chain).run_burst(&mut burst, &mut host).unwrap();
    assert_eq!(counts.of(Node::new(1), Some(Verdict::Pass)), 3, "counted without being asked");
}

#[test]
fn a_loop_of_programs_ends() {
    let programs = vec![example("counter.o", Engine::best())];
    let graph = Graph::new(vec![Edges::NONE.with_wildcard(Next::Program(Node::new(0)))]).unwrap();
    let chain = Chain::new(programs, graph).unwrap();
    let (mut burst, mut counts) = (burst(2), chain.counts().unwrap());
    chain.run_burst_counted(&mut burst, &mut Host::default(), &mut counts).unwrap();
    assert!(burst.iter().all(|frame| frame.verdict() == Verdict::Aborted));
    assert_eq!((counts.of(Node::new(0), Some(Verdict::Pass)), counts.overruns()), (64, 2));
}
