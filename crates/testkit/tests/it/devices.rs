//! Ports of Linux devices, in network namespaces that the tests make: packets come and go unchanged, frames come back, nothing stays
//! attached.

use std::net::UdpSocket;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use paceline_engine::Host;
use paceline_frame::{Burst, FramePool};
use paceline_isa::assemble;
use paceline_ports::device::{
    AttachMode, Interface, OpenError, SocketPort, TapPort, Umem, XdpDevice, XdpOptions, XdpPort,
};
use paceline_ports::{Group, Port, PortError};
use paceline_spec::ProgramKind;
use paceline_testkit::AnyEngine;
use paceline_testkit::case::parse_file;
use paceline_testkit::kernel::{Program as KernelProgram, Request};
use paceline_testkit::namespace::{ip, namespace, veth};
use paceline_testkit::wire::{Wire, tap_with_headers};
use paceline_verifier::{Options, verify};

/// Time within which packets must arrive.
const PATIENCE: Duration = Duration::from_secs(5);
const PACKETS: usize = 1000;

/// A packet of this length with a number in it. The EtherType is one that no host answers.
fn packet(number: usize, len: usize) -> Vec<u8> {
    let mut packet: Vec<u8> = (0..len).map(|at| (at + number) as u8).collect();
    packet[..6].fill(0xff);
    packet[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    packet[12..14].copy_from_slice(&[0x88, 0xb5]);
    packet
}

/// Lengths of packets, by number: the shortest, the longest of an ordinary interface, and others.
fn numbered(number: usize) -> Vec<u8> {
    packet(number, [60, 64, 61, 1514, 590, 1000][number % 6])
}

/// Repeats until the result is `Some`.
fn within<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        assert!(Instant::now() < end, "{what}: nothing within {PATIENCE:?}");
        thread::sleep(Duration::from_micros(100));
    }
}

/// Whether a packet is one of [`packet`], and none of the host's.
fn is_ours(packet: &[u8]) -> bool {
    packet.get(12..14) == Some(&[0x88, 0xb5])
}

/// Sends packets to the port's interface over its peer, receives them from the port, sends them back, and receives them at the peer.
fn exchange(port: &mut dyn Port, wire: &Wire, packets: &[Vec<u8>]) {
    let mut burst = Burst::default();
    for sent in packets.chunks(32) {
        sent.iter().for_each(|packet| wire.send(packet).expect("the wire takes a packet"));
        let mut back = 0;
        while back < sent.len() {
            burst.clear();
            within("receive", || (port.receive(&mut burst).expect("the port works") > 0).then_some(()));
            for frame in burst.iter() {
                assert_eq!(frame.packet(), &sent[back], "packet {back}");
                assert_eq!(frame.meta().original_len as usize, frame.len());
                back += 1;
            }
            let all: Vec<u8> = (0..burst.len() as u8).collect();
            assert_eq!(port.send(Group::new(&mut burst, &all, 0)).expect("the port works"), all.len());
        }
        for packet in sent {
            let received = within("the wire", || wire.receive().filter(|packet| is_ours(packet)));
            assert_eq!(&received, packet);
        }
    }
    assert_eq!(port.dropped(), 0);
}

fn all() -> Vec<Vec<u8>> {
    (0..PACKETS).map(numbered).collect()
}

/// The interface has no XDP program.
fn is_free(name: &str) -> bool {
    let shown = Command::new("ip").args(["link", "show", "dev", name]).output().expect("`ip` runs");
    !String::from_utf8_lossy(&shown.stdout).contains("xdp")
}

fn peer(name: &str) -> Wire {
    Wire::open(Interface::by_name(name).expect("the peer").index()).expect("a packet socket")
}

fn options(mode: AttachMode) -> XdpOptions {
    let mut options = XdpOptions::default();
    options.mode = mode;
    options
}

/// Queue 0 of an interface, which receives packets.
fn attached(name: &str, umem: &Arc<Umem>, options: XdpOptions) -> XdpPort {
    let device = XdpDevice::open(name, umem, options).expect("it loads");
    let port = XdpPort::open(&device, 0).expect("queue 0");
    device.attach().expect("it attaches");
    port
}

#[test]
fn af_xdp_receives_and_sends_in_both_modes() {
    let Some(()) = namespace("af_xdp_receives_and_sends_in_both_modes", &veth("va", "vb")) else { return };
    for mode in [AttachMode::Native, AttachMode::Generic, AttachMode::Best] {
        let umem = Umem::new(512).expect("memory");
        let device = XdpDevice::open("va", &umem, options(mode)).expect("it loads");
        let mut port = XdpPort::open(&device, 0).expect("queue 0");
        assert!(is_free("va"), "nothing is attached before it is said");
        assert_eq!(device.attach().expect("it attaches"), mode != AttachMode::Generic, "{mode:?}");
        assert!(!port.is_zero_copy(), "veth has none");
        exchange(&mut port, &peer("vb"), &all());
        assert_eq!(port.copied(), 0, "frames of the pool are sent as they are");
        assert!(!is_free("va"));
        drop((port, device));
        assert!(is_free("va"), "{mode:?}: the program is attached still");
        assert_eq!(umem.pool().free(), 512, "{mode:?}: frames are lost");
    }
}

#[test]
fn af_xdp_ports_share_memory() {
    let script = veth("va", "vb") + &veth("vc", "vd");
    let Some(()) = namespace("af_xdp_ports_share_memory", &script) else { return };
    let umem = Umem::new(1024).expect("memory");
    let open = |name| attached(name, &umem, XdpOptions::default());
    let (mut left, mut right) = (open("va"), open("vc"));
    let (near, far) = (peer("vb"), peer("vd"));
    let mut burst = Burst::default();
    for number in 0..PACKETS {
        near.send(&numbered(number)).expect("the wire takes a packet");
        burst.clear();
        within("receive", || (left.receive(&mut burst).expect("the port works") > 0).then_some(()));
        assert_eq!(right.send(Group::new(&mut burst, &[0], 0)).expect("the port works"), 1);
        assert_eq!(within("the wire", || far.receive().filter(|packet| is_ours(packet))), numbered(number));
    }
    assert_eq!(right.copied(), 0, "frames go from one interface to the other");
    // The first socket registered the memory; the other one works without it, and another can join.
    drop(left);
    exchange(&mut right, &far, &all());
    let mut left = open("va");
    exchange(&mut left, &near, &all());
    drop((left, right, burst));
    assert_eq!(umem.pool().free(), 1024, "frames are lost");
}

#[test]
fn af_xdp_queues_are_ports() {
    let script = "link add va numrxqueues 2 numtxqueues 2 type veth peer name vb numrxqueues 2 numtxqueues 2
                  link set va up
                  link set vb up";
    let Some(()) = namespace("af_xdp_queues_are_ports", script) else { return };
    let umem = Umem::new(1024).expect("memory");
    let device = XdpDevice::open("va", &umem, XdpOptions::default()).expect("it loads");
    assert_eq!(device.queues(), 2);
    let mut ports = [0, 1].map(|queue| XdpPort::open(&device, queue).expect("a queue"));
    device.attach().expect("it attaches");
    let refused = XdpPort::open(&device, 2).expect_err("there are two");
    assert_eq!(refused.to_string(), "interface `va` has no queue 2, only 0 to 1");
    let busy = XdpPort::open(&device, 1).expect_err("it is in use");
    assert!(matches!(busy, OpenError::Busy { .. }), "{busy}");
    let wire = peer("vb");
    (0..64).for_each(|number| wire.send(&packet(number, 60)).expect("the wire takes a packet"));
    let mut burst = Burst::default();
    let mut received = 0;
    within("receive", || {
        for port in &mut ports {
            burst.clear();
            received += port.receive(&mut burst).expect("the port works");
        }
        (received == 64).then_some(())
    });
}

#[test]
fn long_packets_consist_of_several_frames() {
    let script = veth("va", "vb") + "link set va mtu 9000\nlink set vb mtu 9000";
    let Some(()) = namespace("long_packets_consist_of_several_frames", &script) else { return };
    let mut multi = XdpOptions::default();
    multi.multi_buffer = true;
    let umem = Umem::new(512).expect("memory");
    let mut port = attached("va", &umem, multi);
    let lengths = [60, 9014, 3456, 3457, 3839, 3840, 3841, 7000, 1514];
    let packets: Vec<_> = (0..90).map(|number| packet(number, lengths[number % lengths.len()])).collect();
    exchange(&mut port, &peer("vb"), &packets);
    assert!(port.copied() > 0, "long packets are copied");
    drop(port);
    assert_eq!(umem.pool().free(), 512, "frames are lost");
}

/// Writes into the packet, from byte 14 on, what the kernel functions return and tell.
const ASKING: &str = "case: asking
verifier: accepts
types:
    extern int bpf_xdp_metadata_rx_timestamp(const struct xdp_md *ctx, u64 *timestamp) __ksym;
    extern int bpf_xdp_metadata_rx_hash(const struct xdp_md *ctx, u32 *hash, u32 *rss_type) __ksym;
    extern int bpf_xdp_metadata_rx_vlan_tag(const struct xdp_md *ctx, u16 *vlan_proto, u16 *vlan_tci) __ksym;
program:
    r6 = r1
    r1 = 0
    *(u64 *)(r10 - 16) = r1
    *(u64 *)(r10 - 24) = r1
    r1 = r6
    r2 = r10
    r2 += -8
    call bpf_xdp_metadata_rx_timestamp
    r7 = r0
    r1 = r6
    r2 = r10
    r2 += -16
    r3 = r10
    r3 += -12
    call bpf_xdp_metadata_rx_hash
    r8 = r0
    r1 = r6
    r2 = r10
    r2 += -24
    r3 = r10
    r3 += -22
    call bpf_xdp_metadata_rx_vlan_tag
    r9 = r0
    r0 = 2
    r1 = *(u32 *)(r6 + 0)
    r2 = *(u32 *)(r6 + 4)
    r3 = r1
    r3 += 38
    if r3 > r2 goto out
    *(u32 *)(r1 + 14) = r7
    *(u32 *)(r1 + 18) = r8
    *(u32 *)(r1 + 22) = r9
    r2 = *(u64 *)(r10 - 16)
    *(u64 *)(r1 + 26) = r2
    r2 = *(u32 *)(r10 - 24)
    *(u32 *)(r1 + 34) = r2
out:
    exit
";

/// Findings of [`ASKING`]: the three results, hash and its type, protocol of the tag in network byte order, and the tag.
type Told = ([i32; 3], [u32; 2], [u8; 2], u16);

fn told(packet: &[u8]) -> Told {
    let word = |at: usize| u32::from_ne_bytes(packet[at..at + 4].try_into().expect("four bytes"));
    let results = [14, 18, 22].map(|at| word(at).cast_signed());
    let tag = u16::from_ne_bytes([packet[36], packet[37]]);
    (results, [word(26), word(30)], [packet[34], packet[35]], tag)
}

/// A UDP packet of a flow.
fn udp(flow: u8) -> Vec<u8> {
    let mut packet = packet(usize::from(flow), 100);
    packet[12..14].copy_from_slice(&[8, 0]);
    packet[14..34].copy_from_slice(&[0x45, 0, 0, 86, 0, 0, 0, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
    packet[34..42].copy_from_slice(&[0, flow, 0, 53, 0, 66, 0, 0]);
    packet
}

/// A program that gives packets a VLAN tag beside their bytes, as a VLAN interface does.
fn tagger() -> KernelProgram {
    // bpf_skb_vlan_push(skb, htons(ETH_P_8021Q), 7)
    let text = "r2 = 129\nr3 = 7\ncall 18\nr0 = 0\nexit";
    let insns = assemble(text, &()).expect("a program").encode().expect("good instructions");
    let request = Request { kind: ProgramKind::SchedCls, ..Request::xdp(&insns) };
    KernelProgram::load(&request).expect("it loads")
}

#[test]
fn programs_are_told_what_the_device_knows() {
    const TEST: &str = "programs_are_told_what_the_device_knows";
    let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
    let wire = peer("vb");
    let sender = Interface::by_name("vb").expect("the peer").index();
    let tagger = tagger();
    let mut with = XdpOptions::default();
    with.metadata = true;
    let case = parse_file(ASKING).expect("a case").remove(0);
    let verified =
        verify(&case.programs[0], &[], Some(&case.btf), &Options::default()).expect("it is accepted");
    for metadata in [true, false] {
        let port = if metadata { with } else { XdpOptions::default() };
        let mut port = attached("va", &Umem::new(64).expect("memory"), port);
        for engine in AnyEngine::ALL {
            let program = engine.load(&verified, Vec::new()).expect("it loads");
            let mut found = Vec::new();
            for (is_tagged, flow) in [(false, 1), (false, 2), (false, 1), (true, 1)] {
                let _link = is_tagged.then(|| tagger.attach_egress(sender).expect("it attaches"));
                wire.send(&udp(flow)).expect("it is sent");
                let mut burst = Burst::default();
                within("a packet", || (port.receive(&mut burst).expect("it works") > 0).then_some(()));
                program.run_burst(&mut burst, &mut Host::default()).expect("it runs");
                assert_eq!((burst.len(), burst.frame(0).metadata()), (1, &[][..]));
                assert_eq!(burst.frame(0).len(), 100, "the tag is in no packet");
                found.push(told(burst.frame(0).packet()));
            }
            if !metadata {
                let nothing = ([-95; 3], [0; 2], [0; 2], 0);
                assert_eq!(found, [nothing; 4], "{engine:?}");
                continue;
            }
            // This device has no clock; its time is 0. The tag is there for the last packet only (ENODATA).
            let [first, other, same, tag] = found[..] else { panic!("four packets") };
            assert_eq!((first.0, first.2, first.3), ([0, 0, -61], [0; 2], 0), "{engine:?}");
            assert_eq!(first, same, "{engine:?}");
            assert_ne!(first.1[0], other.1[0], "{engine:?}: flows have different hashes");
            assert_eq!(first.1[1], 8, "{engine:?}: the hash is made of ports (XDP_RSS_TYPE_L4_ANY)");
            assert_eq!((tag.0, tag.2, tag.3), ([0; 3], [0x81, 0], 7), "{engine:?}");
        }
    }
}

#[test]
fn an_overloaded_queue_drops_and_counts() {
    let Some(()) = namespace("an_overloaded_queue_drops_and_counts", &veth("va", "vb")) else { return };
    let umem = Umem::new(64).expect("memory");
    let mut port = attached("va", &umem, XdpOptions::default());
    let wire = peer("vb");
    (0..PACKETS).for_each(|number| wire.send(&packet(number, 60)).expect("the wire takes a packet"));
    let mut burst = Burst::default();
    let mut received = 0;
    within("all packets", || {
        burst.clear();
        received += port.receive(&mut burst).expect("the port works") as u64;
        (received + port.dropped() == PACKETS as u64).then_some(())
    });
    assert!(received > 0 && port.dropped() > 0, "{received} received");
}

#[test]
fn an_interface_comes_and_goes() {
    let Some(()) = namespace("an_interface_comes_and_goes", &veth("va", "vb")) else { return };
    let umem = Umem::new(512).expect("memory");
    let pool = FramePool::on_heap(512);
    let mut ports: Vec<Box<dyn Port>> = vec![
        Box::new(attached("va", &umem, XdpOptions::default())),
        Box::new(SocketPort::open("vb", None).expect("a packet socket")),
    ];
    let mut tap = TapPort::open("tap7", &pool, false).expect("a TAP interface");
    let mut burst = Burst::default();
    for state in ["down", "up"] {
        ["va", "vb"].iter().for_each(|name| ip(&format!("link set {name} {state}")).expect("it is set"));
        for port in &mut ports {
            burst.clear();
            for _ in 0..200 {
                port.receive(&mut burst).expect("the port works");
            }
            let group = [burst.push(&packet(1, 60), Default::default()).map(|()| 0).expect("room")];
            port.send(Group::new(&mut burst, &group, 0)).expect("the port works");
        }
    }
    // Up again, packets go both ways.
    for (from, to) in [(0, 1), (1, 0)] {
        let sent = packet(7, 60);
        within("a packet after the interface came up", || {
            burst.clear();
            burst.push(&sent, Default::default()).expect("room");
            ports[from].send(Group::new(&mut burst, &[0], 0)).expect("the port works");
            burst.clear();
            ports[to].receive(&mut burst).expect("the port works");
            burst.iter().any(|frame| frame.packet() == sent).then_some(())
        });
    }
    ip("link del va").expect("it is deleted");
    ip("link del tap7").expect("it is deleted");
    ports.push(Box::new(std::mem::replace(&mut tap, TapPort::open("tap8", &pool, false).expect("another"))));
    for port in &mut ports {
        let gone = within("an error", || {
            burst.clear();
            port.receive(&mut burst).err()
        });
        assert!(matches!(gone, PortError::Gone { .. }), "{gone}");
    }
}

#[test]
fn a_packet_socket_receives_and_sends() {
    let Some(()) = namespace("a_packet_socket_receives_and_sends", &veth("va", "vb")) else { return };
    let mut port = SocketPort::open("va", None).expect("a packet socket");
    exchange(&mut port, &peer("vb"), &all());
    // A packet that is longer than the MTU is refused, and not those behind it.
    let (mut burst, wire) = (Burst::default(), peer("vb"));
    for (number, len) in (0..).zip([60, 1600, 61, 1600, 62]) {
        burst.push(&packet(number, len), Default::default()).expect("room");
    }
    assert_eq!(port.send(Group::new(&mut burst, &[0, 1, 2, 3, 4], 0)).expect("the port works"), 3);
    for len in [60, 61, 62] {
        assert_eq!(within("the wire", || wire.receive().filter(|packet| is_ours(packet))).len(), len);
    }
    // The kernel takes VLAN tags out of the packet, and the port inserts them again.
    let mut burst = Burst::default();
    for protocol in [0x8100_u16, 0x88a8] {
        let plain = packet(7, 200);
        let tagged = [&plain[..12], &protocol.to_be_bytes(), &[0x20, 5], &plain[12..]].concat();
        peer("vb").send(&tagged).expect("the wire takes a packet");
        burst.clear();
        within("receive", || (port.receive(&mut burst).expect("the port works") > 0).then_some(()));
        assert_eq!(burst.frame(0).packet(), tagged);
    }
}

#[test]
fn a_packet_socket_that_stops_gives_what_had_arrived() {
    const TEST: &str = "a_packet_socket_that_stops_gives_what_had_arrived";
    let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
    let wire = peer("vb");
    // Alone, and in a group, from which a socket cannot be unbound.
    for group in [None, Some(std::process::id() as u16)] {
        let mut port = SocketPort::open("va", group).expect("a packet socket");
        let (mut burst, mut received) = (Burst::default(), Vec::new());
        for number in 0..20 {
            if number == 10 {
                port.stop();
            }
            wire.send(&numbered(number)).expect("the wire takes a packet");
        }
        while port.receive(&mut burst).expect("the port works") > 0 {
            received.extend(burst.iter().map(|frame| frame.packet().to_vec()));
            burst.clear();
        }
        assert_eq!(received, (0..10).map(numbered).collect::<Vec<_>>(), "{group:?}");
        // Answers are sent still.
        burst.push(&packet(7, 60), Default::default()).expect("room");
        assert_eq!(port.send(Group::new(&mut burst, &[0], 0)).expect("the port works"), 1);
        assert_eq!(within("the wire", || wire.receive().filter(|packet| is_ours(packet))), packet(7, 60));
    }
}

#[test]
fn a_tap_interface_receives_and_sends() {
    let Some(()) = namespace("a_tap_interface_receives_and_sends", "") else { return };
    let pool = FramePool::on_heap(512);
    let mut port = TapPort::open("tap%d", &pool, false).expect("a TAP interface");
    assert_eq!(port.interface().name(), "tap0");
    ip("link set tap0 mtu 9000 up").expect("it is up");
    let mut packets = all();
    packets.extend([packet(3, 9014), packet(4, 2017), packet(5, 2000)]);
    exchange(&mut port, &peer("tap0"), &packets);
    let busy = TapPort::open("tap0", &pool, false).expect_err("it is in use");
    assert!(matches!(busy, OpenError::Busy { .. }), "{busy}");
    drop(port);
    assert_eq!(pool.free(), 512, "frames are lost");
    assert!(Interface::by_name("tap0").is_err(), "the interface ends with its port");
}

#[test]
fn headers_of_a_shared_tap_interface_are_not_part_of_packets() {
    let Some(()) = namespace("headers_of_a_shared_tap_interface_are_not_part_of_packets", "") else { return };
    let pool = FramePool::on_heap(512);
    let other = tap_with_headers("tap0").expect("a TAP interface");
    let mut port = TapPort::open("tap0", &pool, true).expect("a queue of it");
    // Its flags stay until the last queue is closed.
    drop(other);
    for line in ["link set tap0 mtu 9000 up", "addr add 10.8.0.1/24 dev tap0"] {
        ip(line).expect("it is set up");
    }
    ip("neigh add 10.8.0.2 lladdr 02:00:00:00:00:02 dev tap0").expect("a neighbor");
    exchange(&mut port, &peer("tap0"), &all());
    let socket = UdpSocket::bind("10.8.0.1:7").expect("a socket");
    for len in [1, 2, 1000, 8000] {
        socket.send_to(&vec![0xa5; len], "10.8.0.2:9").expect("it is sent");
        let mut burst = Burst::new(1);
        let packet = within("the packet", || {
            burst.clear();
            port.receive(&mut burst).expect("the port works");
            burst.iter().map(|frame| frame.packet().to_vec()).find(|packet| packet.len() == 42 + len)
        });
        assert_eq!(udp_sum(&packet), 0xffff, "{len} bytes: the checksum is wrong");
    }
}

/// The sum over the pseudo header and a UDP datagram in an IPv4 packet without options; 0xffff if its checksum is right.
fn udp_sum(packet: &[u8]) -> u64 {
    let (addresses, datagram) = (&packet[26..34], &packet[34..]);
    let word = |word: &[u8]| u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0));
    let sum =
        addresses.chunks(2).chain(datagram.chunks(2)).map(word).sum::<u64>() + 17 + datagram.len() as u64;
    (0..4).fold(sum, |sum, _| (sum & 0xffff) + (sum >> 16))
}

#[test]
fn what_cannot_be_opened_is_named() {
    let Some(()) = namespace("what_cannot_be_opened_is_named", &veth("va", "vb")) else { return };
    let umem = Umem::new(64).expect("memory");
    let open = |name, options| XdpDevice::open(name, &umem, options);
    let none = open("nosuch", XdpOptions::default()).expect_err("no interface");
    assert_eq!(none.to_string(), "there is no interface `nosuch`");
    let devices = [0, 1].map(|_| open("va", XdpOptions::default()).expect("it loads"));
    devices[0].attach().expect("it attaches");
    let busy = devices[1].attach().expect_err("it has a program");
    assert!(matches!(busy, OpenError::Busy { .. }), "{busy}");
    let mut multi = XdpOptions::default();
    multi.multi_buffer = true;
    let first = XdpPort::open(&devices[0], 0).expect("queue 0");
    let mixed = XdpPort::open(&open("vb", multi).expect("it loads"), 0).expect_err("other options");
    assert!(matches!(mixed, OpenError::Mixed { .. }), "{mixed}");
    drop(first);
    let mut zero_copy = XdpOptions::default();
    zero_copy.zero_copy = Some(true);
    let refused =
        XdpPort::open(&open("vb", zero_copy).expect("it loads"), 0).expect_err("veth has no zero copy");
    assert!(matches!(refused, OpenError::NotSupported { .. }), "{refused}");
}
