//! The shipped capture is the output of its generator, and other programs parse it as intended.

use std::path::PathBuf;
use std::process::Command;

use paceline_testkit::{skip, traffic};

fn shipped(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

#[test]
fn shipped_captures_are_what_the_generator_makes() {
    for (name, made) in [("traffic.pcap", traffic::pcap().unwrap()), ("traffic.pcapng", traffic::pcapng())] {
        let committed = std::fs::read(shipped(name)).unwrap();
        let again = "cargo run -p paceline-testkit --bin paceline-testkit -- traffic examples";
        assert!(committed == made, "examples/{name} is out of date: {again}");
        assert!(made.len() < 150_000);
    }
}

#[test]
fn only_the_last_packets_are_shorter_than_an_ethernet_header() {
    let packets = traffic::packets();
    let (whole, short) = packets.split_at(packets.len() - traffic::SHORT);
    assert!(whole.iter().all(|packet| packet.bytes.len() >= 14));
    assert!(short.iter().all(|packet| packet.bytes.len() < 14));
    // The kernel's test run needs packets that fit into a page with headroom and tailroom.
    assert!(packets.iter().all(|packet| packet.bytes.len() <= 4096 - 256 - 320));
    assert!(packets.iter().any(|packet| packet.bytes.len() >= 3_000));
}

/// For each display filter of Wireshark, the number of packets of the shipped capture that match.
fn count(filters: &[&str]) -> Result<Vec<usize>, String> {
    let mut tshark = Command::new("tshark");
    for checked in ["ip.check_checksum", "tcp.check_checksum", "udp.check_checksum"] {
        tshark.args(["-o", &format!("{checked}:TRUE")]);
    }
    tshark.args(["-q", "-z", &format!("io,stat,0,{}", filters.join(",")), "-r"]).arg(shipped("traffic.pcap"));
    let output = tshark.output().map_err(|e| format!("tshark: {e}"))?;
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8_lossy(&output.stdout);
    // The row of figures: the interval, then packets and bytes for each filter.
    let row = table.lines().rfind(|line| line.contains("<>")).unwrap_or_default();
    let figures = row.split('|').skip(2).step_by(2).map(str::trim).filter(|figure| !figure.is_empty());
    let counts: Vec<usize> = figures.map(|figure| figure.parse().expect("a number of packets")).collect();
    assert_eq!(counts.len(), filters.len(), "{table}");
    Ok(counts)
}

/// Contents of the capture, counted by Wireshark. Counts are minimums, so that packets can be added.
const CONTENTS: &[(usize, &str)] = &[
    (480, "frame"),
    (250, "ip"),
    (120, "ipv6"),
    (10, "arp"),
    (150, "tcp"),
    (6, "http.request"),
    (90, "udp"),
    (20, "dns"),
    (2, "vxlan"),
    (20, "icmp"),
    (20, "icmpv6"),
    (5, "icmpv6.type >= 133 and icmpv6.type <= 137"),
    (4, "sctp"),
    (4, "gre"),
    (2, "igmp"),
    (2, "esp"),
    (2, "ah"),
    (1, "ospf"),
    (30, "vlan"),
    (10, "ieee8021ad"),
    (1, "stp"),
    (1, "lldp"),
    (1, "pppoes"),
    (1, "mpls"),
    (5, "ip.flags.mf == 1"),
    (5, "ip.frag_offset > 0"),
    (3, "ipv6.fraghdr"),
    (10, "ip.hdr_len > 20"),
    (5, "ipv6.hopopts"),
    (5, "ipv6.dstopts"),
    (3, "ipv6.routing"),
    (5, "eth.dst.ig == 1 and ip"),
    (1, "eth.dst == ff:ff:ff:ff:ff:ff and ip"),
    (10, "frame.cap_len < frame.len"),
    (10, "frame.len >= 1500"),
    (2, "frame.len >= 3000"),
    (2, "frame.len < 14"),
    (30, "_ws.malformed"),
    (3, "ip.checksum.status == 0"),
    (3, "tcp.checksum.status == 0"),
    (2, "udp.checksum.status == 0"),
    (1, "udp.checksum == 0"),
    (300, "ip.checksum.status == 1"),
    (180, "tcp.checksum.status == 1"),
    (90, "udp.checksum.status == 1"),
    (12, "tcp.flags.fin == 1 and tcp.flags.ack == 1"),
    (1, "tcp.flags == 0"),
    (1, "tcp.flags == 0x1ff"),
    (2, "tcp.flags.ece == 1"),
    (2, "tcp.flags.urg == 1"),
];

#[test]
fn wireshark_finds_what_is_meant_to_be_there() {
    let filters: Vec<&str> = CONTENTS.iter().map(|&(_, filter)| filter).collect();
    match count(&filters) {
        Ok(counts) => {
            for (&(least, filter), found) in CONTENTS.iter().zip(counts) {
                assert!(found >= least, "{filter}: {found} packets, at least {least} are meant");
            }
        }
        Err(reason) => skip("wireshark_finds_what_is_meant_to_be_there", &reason),
    }
}

#[test]
fn packets_that_are_meant_to_be_right_are() {
    // The first malformed packet has version 4 and header length 0.
    let first_odd = traffic::packets().iter().position(|p| p.bytes.get(14) == Some(&0x40)).unwrap();
    let wrong = ["ip", "tcp", "udp", "icmp", "icmpv6"]
        .map(|protocol| format!("frame.number <= {first_odd} and {protocol}.checksum.status == 0"));
    match count(&wrong.each_ref().map(String::as_str)) {
        Ok(counts) => assert_eq!(counts, [0; 5], "wrong checksums before packet {first_odd}"),
        Err(reason) => skip("packets_that_are_meant_to_be_right_are", &reason),
    }
}
