//! Filters as links of chains, and over bursts.

use std::path::Path;

use paceline::chain::{Graph, Node};
use paceline::explain::Explainer;
use paceline::filter::{ConvertOptions, Filter, PacketFilter, Purpose, Returns, Rules, program, text};
use paceline::scenario::Origin;
use paceline::{
    Burst, Chain, Engine, FrameMeta, Host, LoadOptions, Object, ProgramKind, ProgramSpec, Verdict,
};

fn filter(asm: &str) -> Filter {
    Filter::new(text::parse(asm).unwrap(), Purpose::Socket).unwrap()
}

/// Packets that are an Ethernet header of these protocols.
fn burst(protocols: &[u16]) -> Burst {
    let mut burst = Burst::default();
    for protocol in protocols {
        let mut packet = [0; 60];
        packet[12..14].copy_from_slice(&protocol.to_be_bytes());
        burst.push(&packet, FrameMeta { original_len: 1500, ..FrameMeta::default() }).unwrap();
    }
    burst
}

#[test]
fn a_filter_lets_a_chain_go_on() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/counter.o");
    let options = LoadOptions::default();
    let counter = Object::open(path).unwrap().load(&options).unwrap().program(None).unwrap().into_program();
    let arp = filter("ldh [12]\njne #0x806, other\nret #-1\nother: ret #0\n");
    let options = ConvertOptions::default().returns(Returns::PASS_OR_DROP);
    for engine in Engine::ALL.into_iter().filter(|engine| engine.is_available()) {
        let arp = program("arp", &arp, &options, engine).unwrap().into_program();
        let chain = Chain::new(vec![arp, counter.clone()], Graph::sequence(2).unwrap()).unwrap();
        let (mut burst, mut counts) = (burst(&[0x800, 0x806, 0x806, 0x86dd]), chain.counts().unwrap());
        chain.run_burst_counted(&mut burst, &mut Host::default(), &mut counts).unwrap();
        let verdicts: Vec<_> = burst.iter().map(|frame| frame.verdict()).collect();
        assert_eq!(verdicts, [Verdict::Drop, Verdict::Pass, Verdict::Pass, Verdict::Drop], "{engine}");
        assert_eq!(counts.of(Node::new(0), Some(Verdict::Drop)), 2);
        assert_eq!(counts.of(Node::new(1), Some(Verdict::Pass)), 2, "the counter saw what the filter took");
    }
}

#[test]
fn lengths_are_those_on_the_wire_by_libpcaps_rules() {
    let long = filter("ld len\njgt #1000, yes, no\nyes: ret #-1\nno: ret #0\n");
    let mut host = Host::default();
    for (rules, expected) in [(Rules::Kernel, 0), (Rules::Libpcap, 0b11)] {
        let options = ConvertOptions::default().rules(rules);
        let long = PacketFilter::new("long", long.clone(), &options, Engine::best()).unwrap();
        let mut burst = burst(&[0x800, 0x806]);
        for _ in 0..2 {
            assert_eq!(long.matches(&mut burst, &mut host).unwrap(), expected, "{rules:?}");
        }
        assert!(burst.iter().all(|frame| frame.len() == 60));
    }
}

#[test]
fn an_explained_socket_filter_passes_what_it_keeps() {
    for (code, verdict) in
        [(0, Verdict::Drop), (1, Verdict::Pass), (4, Verdict::Pass), (0xffff, Verdict::Pass)]
    {
        let text = format!("r0 = {code}\nexit");
        let code = paceline::isa::assemble(&text, &()).unwrap().encode().unwrap();
        let object = Object::of_program(ProgramSpec::new("keep", ProgramKind::SocketFilter, code));
        let loaded = object.load(&LoadOptions::default().engine(Engine::Plain)).unwrap();
        let mut explainer = Explainer::new(loaded.program_unverified(Some("keep")).unwrap(), None);
        let packet = Origin::default().arrival(&[0; 60], FrameMeta::default());
        let explained = explainer.explain(&packet, &mut Host::default()).unwrap();
        assert_eq!(explained.outcome.verdict, verdict, "{text}");
    }
}

/// Of a filter, the verdict says whether the packet is kept, and the raw value how much of it.
#[test]
fn runs_return_a_verdict_and_raw_runs_the_value() {
    let arp = filter("ldh [12]\njne #0x806, other\nret #40\nother: ret #0\n");
    let arp = arp.to_socket_filter("arp", &ConvertOptions::default()).unwrap();
    let arp = Object::of_program(arp).load(&LoadOptions::default()).unwrap().program(None).unwrap();
    let (mut burst, mut host) = (burst(&[0x806, 0x800]), Host::default());
    for (index, expected) in [(Verdict::Pass, 40), (Verdict::Drop, 0)].into_iter().enumerate() {
        let frame = &mut burst.frame_mut(index);
        let ran = (arp.run(frame, &mut host).unwrap(), arp.run_raw(frame, &mut host).unwrap());
        assert_eq!(ran, expected);
    }
}
