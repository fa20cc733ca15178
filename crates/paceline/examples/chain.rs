//! Compiles two programs into one chain: the second runs on what the first passes.

use std::error::Error;

use paceline::chain::{Graph, Node};
use paceline::filter::{ConvertOptions, Filter, Purpose, Returns, program, text};
use paceline::{Burst, Chain, Engine, FrameMeta, Host, LoadOptions, Object, Verdict};

const COUNTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");

#[allow(clippy::print_stdout, reason = "the counts are what it is for")]
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // `arp` as classic BPF, which passes or drops as a program of a chain.
    let arp = text::parse("ldh [12]\n jne #0x806, other\n ret #-1\n other: ret #0")?;
    let options = ConvertOptions::default().returns(Returns::PASS_OR_DROP);
    let arp = program("arp", &Filter::new(arp, Purpose::Socket)?, &options, Engine::best())?.into_program();
    let counter = Object::open(COUNTER)?.load(&LoadOptions::default())?.program(None)?.into_program();

    // Any graph of verdicts is possible; a sequence goes on after pass.
    let chain = Chain::new(vec![arp, counter], Graph::sequence(2)?)?;
    let (mut burst, mut counts) = (Burst::default(), chain.counts()?);
    for ethertype in [0x0800_u16, 0x0806, 0x0806] {
        let mut packet = [0; 60];
        packet[12..14].copy_from_slice(&ethertype.to_be_bytes());
        burst.push(&packet, FrameMeta::default())?;
    }
    chain.run_burst_counted(&mut burst, &mut Host::default(), &mut counts)?;
    println!("dropped by the filter: {}", counts.of(Node::new(0), Some(Verdict::Drop)));
    println!("passed by both: {}", counts.of(Node::new(1), Some(Verdict::Pass)));
    assert_eq!(
        (counts.of(Node::new(0), Some(Verdict::Drop)), counts.of(Node::new(1), Some(Verdict::Pass))),
        (1, 2)
    );
    Ok(())
}
