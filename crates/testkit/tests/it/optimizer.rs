//! libpcap's optimizer against its own code without it: what the solver says of both holds in libpcap's interpreter, and the optimizer's known
//! faults are found.

#![allow(clippy::print_stdout, reason = "says how much was compared")]

use std::env;
use std::time::Duration;

use fastrand::Rng;
use paceline::filter::{
    Comparison, ConvertOptions, Filter, Libpcap, Purpose, Rules, Target, compare, compile_checked,
};
use paceline_testkit::classic::{is_defined, steered};
use paceline_testkit::skip;

/// Expressions that match other packets with the optimizer of libpcap 1.10.3 (its issues 1699, 437, 1742 and 945).
const WRONG: [&str; 3] = [
    "1/2=1/3&&1>4/5&&1>6/7",
    "link[0:1] & 0xffffffff != 0",
    "host 192.0.2.1 and not ((host 198.51.100.4 or host 198.51.100.8) and icmp) and not (host 198.51.100.8 or host 192.0.2.1)",
];

/// Expressions that it keeps.
const RIGHT: [&str; 5] = [
    "tcp port 22",
    "vlan and ip6",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "net 10.0.0.0/8 and udp portrange 1000-2000",
    "not icmp and greater 100",
];

fn libpcap(test: &str) -> Option<Libpcap> {
    Libpcap::open().map_err(|reason| skip(test, &reason)).ok()
}

/// The code of an expression with the optimizer and without it; `None` if one is refused.
fn both(libpcap: &Libpcap, expression: &str) -> Option<[Filter; 2]> {
    let [optimized, plain] = [true, false].map(|optimize| {
        let insns = libpcap.compile(expression, Target { optimize, ..Target::default() }).ok()?;
        Filter::new(insns, Purpose::UserSpace).ok()
    });
    Some([optimized?, plain?])
}

/// Compares both in the solver, and what it says with libpcap's interpreter.
fn compared(libpcap: &Libpcap, expression: &str, rng: &mut Rng) -> Option<Comparison> {
    let [optimized, plain] = both(libpcap, expression)?;
    let options = ConvertOptions::default().rules(Rules::Libpcap);
    let comparison = compare([&plain, &optimized], &options, 200, Duration::from_secs(5));
    let comparison = comparison.unwrap_or_else(|error| panic!("{expression}: {error}"));
    let matches = |filter: &Filter, packet: &[u8]| libpcap.run(filter, packet, packet.len() as u32) != 0;
    match &comparison {
        Comparison::Differ { packet, first_matches } => {
            let found = [matches(&plain, packet), matches(&optimized, packet)];
            assert_eq!(found, [*first_matches, !*first_matches], "{expression}: {packet:x?}");
        }
        Comparison::Equal => {
            let packets = [&plain, &optimized]
                .map(|filter| (0..40).map(|_| steered(rng, filter.insns())).collect::<Vec<_>>());
            for packet in packets.concat().iter().filter(|packet| (1..=200).contains(&packet.len())) {
                if [&plain, &optimized].iter().all(|filter| is_defined(filter.insns(), packet)) {
                    assert_eq!(
                        matches(&plain, packet),
                        matches(&optimized, packet),
                        "{expression}: {packet:x?}"
                    );
                }
            }
        }
        Comparison::Unknown => {}
    }
    Some(comparison)
}

#[test]
fn known_faults_of_the_optimizer_are_found() {
    let Some(libpcap) = libpcap("known_faults_of_the_optimizer_are_found") else { return };
    let mut rng = Rng::with_seed(1);
    for expression in RIGHT {
        assert_eq!(compared(&libpcap, expression, &mut rng), Some(Comparison::Equal), "{expression}");
    }
    // A later libpcap may have mended some.
    if !libpcap.version().contains(" 1.10.") {
        return skip("known_faults_of_the_optimizer_are_found", &libpcap.version());
    }
    for expression in WRONG {
        let found = compared(&libpcap, expression, &mut rng);
        assert!(matches!(found, Some(Comparison::Differ { .. })), "{expression}: {found:?}");
    }
}

#[test]
fn only_what_is_proved_is_optimized() {
    let Some(libpcap) = libpcap("only_what_is_proved_is_optimized") else { return };
    let code =
        |optimize, expression: &str| libpcap.compile(expression, Target { optimize, ..Target::default() });
    let checked = |expression: &str, time| {
        let options = ConvertOptions::default();
        compile_checked(&libpcap, expression, Target::default(), &options, time).expect("an expression")
    };
    let (none, some) = (Duration::ZERO, Duration::from_secs(20));
    for expression in ["vlan and ip6", "net 10.0.0.0/8 and udp portrange 1000-2000"] {
        assert_eq!(Ok(checked(expression, some)), code(true, expression), "{expression}");
        assert_eq!(Ok(checked(expression, none)), code(false, expression), "{expression}");
    }
    // Changed by the optimizer, refused by it, changed for packets that end behind the source port, and with lengths beyond those that are
    // compared.
    for expression in [
        WRONG[1],
        WRONG[2],
        "link[0:4] & 0xffffffff == 0",
        "tcp port 80 or tcp port 443",
        "greater 2000 and ip",
    ] {
        assert_eq!(Ok(checked(expression, some)), code(false, expression), "{expression}");
    }
}

/// A random expression of tests of headers, addresses, lengths and arithmetic.
fn expression(rng: &mut Rng, depth: u32) -> String {
    const WORDS: [&str; 16] = [
        "ip",
        "ip6",
        "arp",
        "tcp",
        "udp",
        "icmp",
        "port 53",
        "tcp port 80",
        "host 192.0.2.1",
        "host 198.51.100.4",
        "net 10.0.0.0/8",
        "ip6 host 2001:db8::1",
        "ether host 2:0:0:0:0:1",
        "greater 100",
        "portrange 1-1023",
        "src port 22",
    ];
    const LOADS: [&str; 6] = ["link[0:1]", "link[12:2]", "ip[8]", "ip[0:4]", "tcp[13]", "len"];
    const NUMBERS: [&str; 8] = ["0", "1", "2", "7", "0x800", "0xff", "0x80000000", "0xffffffff"];
    let choose = |rng: &mut Rng, all: &[&'static str]| *rng.choice(all).expect("one of them");
    if depth > 0 && rng.u8(..4) > 0 {
        let (left, right) = (expression(rng, depth - 1), expression(rng, depth - 1));
        return match rng.u8(..5) {
            0 => format!("not ({left})"),
            1 | 2 => format!("({left}) and ({right})"),
            _ => format!("({left}) or ({right})"),
        };
    }
    if rng.u8(..3) > 0 {
        return choose(rng, &WORDS).to_owned();
    }
    let value = |rng: &mut Rng| {
        let what = if rng.bool() { choose(rng, &LOADS) } else { choose(rng, &NUMBERS) };
        let operator = choose(rng, &["+", "-", "*", "/", "&", "|", "^", "<<", ">>", "%"]);
        if rng.bool() { what.to_owned() } else { format!("{what} {operator} {}", choose(rng, &NUMBERS)) }
    };
    let compares = choose(rng, &["=", "!=", "<", ">", "<=", ">="]);
    format!("{} {compares} {}", value(rng), value(rng))
}

/// Random expressions; `PACELINE_EXPRESSIONS_RANDOM` sets their number.
#[test]
fn what_is_said_of_the_optimizer_holds_in_libpcap() {
    let Some(libpcap) = libpcap("what_is_said_of_the_optimizer_holds_in_libpcap") else { return };
    let count = env::var("PACELINE_EXPRESSIONS_RANDOM").map_or(60, |count| count.parse().expect("a number"));
    let (mut rng, mut refused, mut said) = (Rng::with_seed(7), 0, [0; 3]);
    for _ in 0..count {
        let expression = expression(&mut rng, 3);
        match compared(&libpcap, &expression, &mut rng) {
            None => refused += 1,
            Some(Comparison::Equal) => said[0] += 1,
            Some(Comparison::Differ { .. }) => {
                println!("differs: {expression}");
                said[1] += 1;
            }
            Some(Comparison::Unknown) => said[2] += 1,
        }
    }
    let [equal, differ, unknown] = said;
    println!("{count} expressions: {equal} equal, {differ} differ, {unknown} unknown, {refused} refused");
    assert!(equal * 3 > count, "{equal} of {count} are proved equal");
}
