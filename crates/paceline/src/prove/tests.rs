//! Errors with their places, and formulas against runs.

use fastrand::Rng;
use paceline_analysis::symbolic::{Formula, Moment, Number, Relation, Rest};
use paceline_capture::packet::build;
use paceline_frame::Verdict;

use super::Property;
use super::check::Run;
use super::formula::formula;

fn told(text: &str) -> String {
    text.parse::<Property>().map_or_else(|error| error.to_string(), |_| "read".to_owned())
}

#[test]
fn errors_have_their_column_and_cause() {
    for (text, expected) in [
        ("", "column 1: a value must be here, not the end"),
        ("eth.type ==", "column 12: a value must be here, not the end"),
        ("eth.type == arp and", "column 20: a value must be here, not the end"),
        ("(arp", "column 5: `)` must be here, not the end"),
        ("arp)", "column 4: an operator, or the end, must be here, not `)`"),
        ("arp verdict", "column 5: an operator, or the end, must be here, not `verdict`"),
        ("eth.type = arp", "column 10: a comparison such as `==` must be here, not `=`"),
        ("in.len", "column 7: a comparison such as `==` must be here, not the end"),
        ("ätsch", "column 1: `ä` has no meaning in a property"),
        ("ARP", "column 1: `ARP` is no header, such as arp or out.vlan, and compared with nothing"),
        ("arp implies 1", "column 14: a comparison such as `==` must be here, not the end"),
        ("in[0] == 256", "column 10: the number takes more than 1 byte"),
        ("65536 > out[3:5]", "column 1: the number takes more than 2 bytes"),
        ("returns != 0xffffffffffffffff", "column 12: the number takes more than 4 bytes"),
        ("in[0] + 1 == 256", "read"),
        (
            "in[-1] == 2",
            "column 4: bytes are [FIRST], [FIRST:END] or [FIRST:], with offsets up to 65535, not `[-1]`",
        ),
        ("in[3 == 2", "column 10: `]` must be here, not the end"),
        (
            "ipv4.src == 192.0.2.400",
            "column 13: ipv4.src is an address such as 192.0.2.1, and never `192.0.2.400`",
        ),
        ("eth.typ == 1", "column 1: eth has no field `typ`, perhaps `type`"),
        ("arp or ethernet.type == 1", "column 8: no protocol is named `ethernet`, perhaps `eth`"),
        (
            "not vxlan",
            "column 5: headers of vxlan are not looked for: they are in tunnels, or behind other headers that have any length",
        ),
        ("tcp.options == 1", "column 1: tcp.options has no certain length"),
        ("ipv4.ttl == 256", "column 13: ipv4.ttl is a number, and never `256`"),
        (
            "verdict == dropp",
            "column 12: `dropp` is no verdict: there are aborted, drop, pass, tx and redirect",
        ),
        ("verdict < drop", "column 11: verdicts are equal (==) or not (!=)"),
        ("verdict == 1 + 1", "column 12: a verdict must be here, not another value"),
        (
            "in[6:2] == 1",
            "column 4: bytes are [FIRST], [FIRST:END] or [FIRST:], with offsets up to 65535, not `[6:2]`",
        ),
        ("in[14:] == 3", "column 9: bytes to the end of a packet are compared with such bytes alone"),
        (
            "in[0:9] < out[0:9]",
            "column 9: more than 8 bytes, and bytes to the end of a packet, are equal (==) or not (!=)",
        ),
        ("in[0:9] == out[0:10]", "column 9: 9 bytes are never equal to 10 bytes"),
        (
            "in[0:9] + 1 == 2",
            "column 1: more than 8 bytes, and bytes to the end of a packet, are equal (==) or not (!=)",
        ),
        ("in.len == 0x10000000000000000", "column 11: the number takes more than 8 bytes"),
        (
            "in.len == ten",
            "column 11: `ten` is no value: there are fields such as ipv4.ttl, in[0:6], out[14:], in.len, out.len, returns, numbers and addresses",
        ),
        ("changes(", "column 9: the name of a map must be here, not the end"),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
    let deep = format!("{}arp", "not ".repeat(100));
    assert_eq!(told(&deep), "column 261: more than 64 parentheses and negations within each other");
}

/// The number that a formula's number is, of packets that are known.
struct Known<'k> {
    input: &'k [u8],
    output: &'k [u8],
    verdict: Verdict,
    code: u32,
}

impl Known<'_> {
    fn packet(&self, of: Moment) -> &[u8] {
        if of == Moment::In { self.input } else { self.output }
    }

    fn number(&self, number: &Number) -> u64 {
        match number {
            Number::Constant(number) => *number,
            Number::Length(of) => self.packet(*of).len() as u64,
            Number::Bits { of, first, count } => (*first..first + count).fold(0, |number, at| {
                // Of no certain value beyond the end.
                let byte = self.packet(*of).get(at / 8).copied().unwrap_or(0xa5);
                number << 1 | u64::from(byte >> (7 - at % 8) & 1)
            }),
            Number::Returned => self.code.into(),
            Number::Sum(a, b) => self.number(a).wrapping_add(self.number(b)),
            Number::Difference(a, b) => self.number(a).wrapping_sub(self.number(b)),
            Number::Product(a, b) => self.number(a).wrapping_mul(self.number(b)),
            Number::Both(a, b) => self.number(a) & self.number(b),
            Number::Choice(choices) => {
                let chosen = choices.iter().find(|(formula, _)| self.holds(formula));
                chosen.map_or(0, |(_, number)| self.number(number))
            }
        }
    }

    fn holds(&self, formula: &Formula) -> bool {
        match formula {
            Formula::Not(inner) => !self.holds(inner),
            Formula::All(all) => all.iter().all(|formula| self.holds(formula)),
            Formula::Any(any) => any.iter().any(|formula| self.holds(formula)),
            Formula::Verdict(verdict) => self.verdict == *verdict,
            Formula::Compare(relation, left, right) => {
                let relation: Relation = *relation;
                relation.holds(self.number(left), self.number(right))
            }
            Formula::Same(left, right) => {
                let rest = |rest: &Rest| self.packet(rest.of).get(rest.from..).unwrap_or_default();
                rest(left) == rest(right)
            }
            Formula::Changes(_) => false,
        }
    }
}

const PREDICATES: [&str; 26] = [
    "arp",
    "out.vlan",
    "ipv4",
    "tcp",
    "out.udp",
    "icmpv6",
    "eth.type == arp",
    "out.eth.dst == eth.src",
    "vlan.id >= 3",
    "ipv4.ttl != out.ipv4.ttl",
    "out.ipv4.ttl == ipv4.ttl - 1",
    "ipv4.frag & 7 != 0",
    "ipv6.src == 2001:db8::1",
    "ipv6.src != out.ipv6.dst",
    "tcp.flags == S",
    "tcp.dport < 81",
    "udp.dport == 9",
    "in[0:6] == out[6:12]",
    "in[0:6] == 02:00:00:00:00:02",
    "in[26:30] == 192.0.2.1",
    "in[12:14] + 1 > out[16]",
    "out[14:] == in[14:]",
    "in[3:20] != out[3:20]",
    "in.len <= out.len",
    "verdict == drop",
    "returns > 1",
];

/// What a formula says of packets that are known is what the property says of a run with them.
#[test]
fn formulas_say_what_runs_do() {
    let texts = [
        "eth / arp",
        "eth / vlan id=5 / arp",
        "eth / ipv4 / tcp",
        "eth / vlan / vlan / ipv4 ttl=3 / udp / \"hello\"",
        "eth / ipv4 options=0x01010101 / tcp options=0x01010101 / padding 0x00*9",
        "eth / ipv4 len=24 / udp",
        "eth / ipv4 frag=3 / udp",
        "eth / ipv6 / udp dport=80",
        "eth / qinq / ipv6 / icmpv6",
        "eth / ipv4 / gre / ipv4 / tcp",
    ];
    let mut rng = Rng::with_seed(5);
    let all = PREDICATES.map(|text| {
        let property: Property = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        let formula = formula(&property.root, &|_| Ok(0)).unwrap();
        (property, formula)
    });
    let mut counts = [[0; 2]; PREDICATES.len()];
    for _ in 0..1200 {
        let packet = |rng: &mut Rng| {
            let mut packet = build(texts[rng.usize(..texts.len())]).unwrap();
            for _ in 0..rng.usize(..3) {
                let at = rng.usize(..packet.len().min(50));
                packet[at] = if rng.bool() { rng.u8(..) } else { packet[at].wrapping_sub(1) };
            }
            if rng.u8(..4) == 0 {
                packet.truncate(rng.usize(..=packet.len()));
            }
            packet
        };
        let input = packet(&mut rng);
        let mut output = if rng.bool() { input.clone() } else { packet(&mut rng) };
        if rng.u8(..4) == 0 && output.len() >= 12 {
            output[..12].rotate_left(6);
        }
        if rng.u8(..4) == 0 && output.len() > 22 {
            output[22] = output[22].wrapping_sub(1);
        }
        let (verdict, code) = (Verdict::ALL[rng.usize(..5)], rng.u32(..4));
        let known = Known { input: &input, output: &output, verdict, code };
        let run = Run { input: &input, output: &output, verdict, returned: code, changes: &|_| false };
        for ((property, formula), counts) in all.iter().zip(&mut counts) {
            let expected = run.holds(&property.root);
            assert_eq!(known.holds(formula), expected, "{property}: {input:02x?} {output:02x?}");
            counts[usize::from(expected)] += 1;
        }
    }
    for (text, [fails, holds]) in PREDICATES.iter().zip(counts) {
        assert!(fails > 0 && holds > 0, "{text}: {fails} {holds}");
    }
}

#[test]
fn operators_bind_as_told() {
    for (text, expected) in [
        ("arp implies tcp or not arp and ipv4", true),
        ("not arp or arp implies arp", false),
        ("arp or ipv4 and tcp", false),
        ("(arp or ipv4) and ipv4", true),
        ("ipv4 => tcp => arp", true),
        ("4 & 6 + 1 == 5", true),
        ("9 - 3 - 2 == 4", true),
    ] {
        let property: Property = text.parse().unwrap();
        let packet = build("eth / ipv4 / udp").unwrap();
        let run =
            Run { input: &packet, output: &packet, verdict: Verdict::Pass, returned: 2, changes: &|_| false };
        assert_eq!(run.holds(&property.root), expected, "{text}");
    }
}
