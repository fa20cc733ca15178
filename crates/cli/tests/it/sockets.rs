//! `paceline run` with the sockets and the tracked connections of a network, and several CPUs.

use std::fs;

use crate::common::{Folder, example, fixture, paceline, packets};

const CLIENT: [u8; 4] = [198, 51, 100, 9];
const SERVER: [u8; 4] = [192, 0, 2, 1];
const SYN: u8 = 2;
const ACK: u8 = 16;

const NETWORK: &str = "\
Netid State  Recv-Q Send-Q Local Address:Port Peer Address:Port
tcp   LISTEN 0      128          0.0.0.0:80        0.0.0.0:*
tcp      6 431999 ESTABLISHED src=198.51.100.9 dst=192.0.2.1 sport=2000 dport=80 src=192.0.2.1 dst=198.51.100.9 sport=80 dport=2000 [ASSURED] mark=0 use=1
";

/// Ethernet, IPv4 and TCP from the client to the server; the checksums are no matter here.
fn packet(source: u16, destination: u16, flags: u8, [sequence, acknowledged]: [u32; 2]) -> Vec<u8> {
    let mut packet = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0];
    packet.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
    packet.extend(CLIENT);
    packet.extend(SERVER);
    packet.extend(source.to_be_bytes());
    packet.extend(destination.to_be_bytes());
    packet.extend(sequence.to_be_bytes());
    packet.extend(acknowledged.to_be_bytes());
    packet.extend([0x50, flags, 4, 0, 0, 0, 0, 0]);
    packet
}

fn word(packet: &[u8], at: usize) -> u32 {
    packet[at..at + 4].try_into().map(u32::from_be_bytes).expect("four bytes")
}

/// The sum of TCP and its pseudo header, 0xffff where the checksum is right.
fn tcp_sum(packet: &[u8]) -> u32 {
    let words = |bytes: &[u8]| -> u32 {
        bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum()
    };
    let sum = words(&packet[26..34]) + 6 + 20 + words(&packet[34..54]);
    (sum & 0xffff) + (sum >> 16)
}

#[test]
fn a_syn_is_answered_with_a_cookie_and_its_acknowledgment_passes() {
    let folder = Folder::new();
    let (network, out) = (folder.text("network.txt"), folder.text("out.pcap"));
    fs::write(&network, NETWORK).expect("a file");
    let mut answers = Vec::new();
    for engine in ["plain", "threaded", "jit"] {
        let run = |all: &[Vec<u8>]| {
            let input = folder.capture("in.pcap", &all.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let object = fixture("synproxy.o");
            let args = ["run", &object, "--in", &input, "--out", &out, "--network", &network, "--seed", "5"];
            paceline(args.iter().chain(&["--clock", "capture", "--engine", engine, "--json"])).json()
        };
        let asked = [
            packet(1000, 80, SYN, [7000, 0]),
            packet(2000, 80, SYN, [7000, 0]),
            packet(1000, 81, SYN, [7000, 0]),
        ];
        let verdicts = &run(&asked)["verdicts"];
        assert_eq!(
            (&verdicts["tx"], &verdicts["pass"], &verdicts["drop"]),
            (&1.into(), &1.into(), &1.into())
        );
        let sent = packets(&out);
        let answer = &sent[0];
        assert_eq!(answer[26..38], [&SERVER[..], &CLIENT, &[0, 80, 3, 232]].concat());
        assert_eq!((word(answer, 42), answer[47]), (7001, SYN | ACK));
        assert_eq!(tcp_sum(answer), 0xffff);
        let cookie = word(answer, 38);
        let back = [
            packet(1000, 80, ACK, [7001, cookie.wrapping_add(1)]),
            packet(1000, 80, ACK, [7001, cookie ^ 0x00ff_0000]),
            packet(1001, 80, ACK, [7001, cookie.wrapping_add(1)]),
            packet(2000, 80, ACK, [1, 1]),
        ];
        let verdicts = &run(&back)["verdicts"];
        assert_eq!((&verdicts["pass"], &verdicts["drop"]), (&2.into(), &2.into()), "{engine}");
        answers.push(sent);
    }
    assert!(answers.iter().all(|sent| *sent == answers[0]), "the seed's cookies");
}

#[test]
fn what_is_not_found_without_a_network_is_told() {
    let done = paceline(["run", &fixture("synproxy.o")]);
    assert!(done.err.contains("finds no") && done.err.contains("--network"), "{}", done.err);
    let folder = Folder::new();
    let network = folder.text("network.txt");
    fs::write(&network, "LISTEN 0 128 0.0.0.0:http 0.0.0.0:*\n").expect("a file");
    paceline(["run", &fixture("synproxy.o"), "--network", &network]).fails(
        1,
        &format!("--network {network}"),
        &["line 1", "0.0.0.0:http is no port"],
    );
}

#[test]
fn flows_are_spread_over_cpus() {
    let folder = Folder::new();
    let all: Vec<Vec<u8>> = (0..200).map(|port| packet(port, 80, SYN, [0, 0])).collect();
    let input = folder.capture("in.pcap", &all.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let object = example("counter.o");
    let run = |cpus: &str, engine: &str| {
        let args = ["run", &object, "--in", &input, "--maps", "--json", "--cpus", cpus, "--engine", engine];
        paceline(args).json()
    };
    let plain = run("4", "plain");
    for engine in ["threaded", "jit"] {
        assert_eq!(run("4", engine)["maps"], plain["maps"], "{engine}");
    }
    let text = plain["maps"].to_string();
    assert!(text.contains("\"cpu\":3") && !text.contains("\"cpu\":4"), "{text}");
    paceline(["run", &object, "--cpus", "0"]).fails(
        2,
        "invalid value '0' for '--cpus <N>'",
        &["from 1 to 1024"],
    );
}
