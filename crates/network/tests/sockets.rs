//! Sockets and tracked connections in the output formats of `ss`, `conntrack` and `sysctl`.

use paceline_network::connection::{Key, status};
use paceline_network::{Network, Protocol, State, Tuple};

fn tuple(text: &str) -> Tuple {
    let (from, to) = text.split_once(" > ").expect("two sides");
    let side = |text: &str| {
        let (address, port) = text.rsplit_once(' ').expect("address and port");
        (address.parse().expect("an address"), port.parse().expect("a port"))
    };
    let ((source, source_port), (destination, destination_port)) = (side(from), side(to));
    Tuple { source, source_port, destination, destination_port }
}

fn network(text: &str) -> Network {
    paceline_network::iproute::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

const SS: &str = "\
Netid State  Recv-Q Send-Q      Local Address:Port   Peer Address:Port Process
nl    UNCONN 0      0                     0:ntpd/512           *
udp   UNCONN 0      0         127.0.0.53%lo:53            0.0.0.0:*     users:((\"named\",pid=7,fd=5))
udp   ESTAB  0      0              10.0.0.1:53           10.0.0.9:99
udp   UNCONN 0      0               0.0.0.0:53            0.0.0.0:*
tcp   LISTEN 2      128             0.0.0.0:22            0.0.0.0:*
\t cubic rto:1000 mss:536
tcp   LISTEN 0      128                   *:80                  *:*
tcp   LISTEN 0      128                [::]:81               [::]:*
tcp   ESTAB  0      0     [::ffff:10.0.0.1]:80  [::ffff:10.0.0.9]:1000
tcp   TIME-WAIT 0   0              10.0.0.1:22           10.0.0.9:1001
";

#[test]
fn sockets_are_found_as_ss_prints_them() {
    let network = network(SS);
    let state = |text: &str| network.tcp_socket(&tuple(text), 1).map(|socket| socket.state());
    assert_eq!(state("10.0.0.9 5 > 10.0.0.1 22"), Some(State::Listen));
    assert_eq!(state("10.0.0.9 1001 > 10.0.0.1 22"), Some(State::TimeWait));
    assert_eq!(state("10.0.0.9 5 > 10.0.0.1 80"), Some(State::Listen));
    assert_eq!(state("10.0.0.9 1000 > 10.0.0.1 80"), Some(State::Established), "a mapped address");
    assert_eq!(state("fd00::9 5 > fd00::1 80"), Some(State::Listen));
    assert_eq!(state("fd00::9 5 > fd00::1 81"), Some(State::Listen));
    assert_eq!(state("10.0.0.9 5 > 10.0.0.1 81"), None, "only for IPv6");
    assert_eq!(state("fd00::9 5 > fd00::1 22"), None, "only for IPv4");
}

#[test]
fn datagrams_go_to_the_closest_socket() {
    let network = network(SS);
    let state =
        |text: &str, interface| network.udp_socket(&tuple(text), interface).map(|socket| socket.state());
    assert_eq!(state("10.0.0.9 99 > 10.0.0.1 53", 1), Some(State::Established));
    assert_eq!(state("10.0.0.9 98 > 10.0.0.1 53", 1), Some(State::Closed));
    assert!(state("10.0.0.9 98 > 127.0.0.53 53", 1).is_some());
    let bound =
        |interface| network.udp_socket(&tuple("10.0.0.9 98 > 127.0.0.53 53"), interface).map(|s| s.record());
    assert_ne!(bound(1), bound(2), "one is bound to an interface");
}

#[test]
fn what_is_queued_is_read() {
    let network = network("LISTEN 3 2 0.0.0.0:22 0.0.0.0:*\nSYN-RECV 0 0 10.0.0.1:22 10.0.0.9:7\n");
    let socket = network.tcp_socket(&tuple("10.0.0.8 7 > 10.0.0.1 22"), 1).expect("it listens");
    assert!(socket.is_full());
    assert!(!network.has_full_queue(socket));
    let asked = network.full_tcp_socket(&tuple("10.0.0.9 7 > 10.0.0.1 22"), 1).expect("a request's");
    assert_eq!(asked.state(), State::Listen);
}

#[test]
fn connections_end_with_their_time() {
    let network = network(
        "tcp 6 10 ESTABLISHED src=10.0.0.9 dst=10.0.0.1 sport=1 dport=2 src=10.0.0.1 dst=10.0.0.9 sport=2 dport=1 [ASSURED] mark=9 use=1\n\
         conntrack v1.4.7 (conntrack-tools): 1 flow entries have been shown.\n",
    );
    let find = |text: &str, now| {
        network.connections().find(&Key { protocol: Protocol::Tcp, zone: 0, tuple: tuple(text) }, now)
    };
    let (connection, is_reply) = find("10.0.0.1 2 > 10.0.0.9 1", 1000).expect("it is listed");
    assert!(is_reply);
    assert_eq!(connection.mark(), 9);
    assert_eq!(connection.status(), status::SEEN_REPLY | status::ASSURED | status::CONFIRMED);
    assert!(find("10.0.0.9 1 > 10.0.0.1 2", 1000 + 9 * 250).is_some());
    assert!(find("10.0.0.9 1 > 10.0.0.1 2", 1000 + 10 * 250).is_none());
    assert!(find("10.0.0.1 2 > 10.0.0.9 1", 1000).is_none(), "it is gone");
}

#[test]
fn a_clone_has_connections_of_its_own() {
    let one = network(
        "tcp 6 10 ESTABLISHED src=10.0.0.9 dst=10.0.0.1 sport=1 dport=2 src=10.0.0.1 dst=10.0.0.9 sport=2 dport=1\n",
    );
    let other = one.clone();
    let key = Key { protocol: Protocol::Tcp, zone: 0, tuple: tuple("10.0.0.9 1 > 10.0.0.1 2") };
    let found = |network: &Network| network.connections().find(&key, 1).map(|(found, _)| found.record());
    assert_ne!(found(&one), found(&other));
}

#[test]
fn lists_and_lines_are_mixed() {
    let network = network(
        "[{\"ifindex\": 1, \"ifname\": \"lo\", \"mtu\": 65536, \"link_type\": \"loopback\"},\n {\"ifindex\": 7, \"ifname\": \"eth0\", \"mtu\": 1500}]\n\
         tcp LISTEN 0 5 10.0.0.1%eth0:22 0.0.0.0:*\nnet.ipv4.tcp_syncookies = 2\n\
         [{\"dst\": \"10.0.0.9\", \"dev\": \"eth0\", \"lladdr\": \"02:00:00:00:00:09\", \"state\": [\"REACHABLE\"]}]\n",
    );
    assert_eq!(network.syncookies(), 2);
    assert!(network.tcp_socket(&tuple("10.0.0.9 1 > 10.0.0.1 22"), 7).is_some());
    assert!(network.tcp_socket(&tuple("10.0.0.9 1 > 10.0.0.1 22"), 1).is_none());
    assert!(network.neighbor(7, "10.0.0.9".parse().expect("an address")).is_some());
}

#[test]
fn mistakes_are_told_with_their_line() {
    for (text, wanted) in [
        ("[]\nnonsense\n", "line 2: this is neither a list of ip's nor a line of ss, conntrack or sysctl"),
        (
            "LISTEN 0 5 10.0.0.1:ssh 0.0.0.0:*",
            "line 1: Local Address:Port: 10.0.0.1:ssh is no port; ss -n prints its number",
        ),
        (
            "LISTEN 0 5 host:22 0.0.0.0:*",
            "line 1: Local Address:Port: host:22 is no IP address; ss -n prints it",
        ),
        (
            "LISTEN 0 5 10.0.0.1%eth9:22 0.0.0.0:*",
            "line 1: there is no interface eth9; its list must come before what names it",
        ),
        ("LISTEN 0", "line 1: Send-Q is missing"),
        ("\n\ntcp 6 10 CLOSE src=10.0.0.9 dst=10.0.0.1 sport=1", "line 3: dport is missing"),
        (
            "tcp 6 10 CLOSE src=10.0.0.9 dst=fd00::1 sport=1 dport=2",
            "line 1: dst: fd00::1 is of another version than src",
        ),
        ("tcp 6 10 CLOSE src=x", "line 1: src: x is no IP address"),
        ("net.ipv4.tcp_syncookies = on", "line 1: net.ipv4.tcp_syncookies: on is no such number"),
        ("[]\n  [{]\n", "line 2, column 5: key must be a string"),
    ] {
        let error = paceline_network::iproute::parse(text).map(drop).expect_err(text).to_string();
        assert_eq!(error, wanted, "{text}");
    }
}
