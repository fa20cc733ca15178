//! `bpf_fib_lookup` and `bpf_check_mtu` on a network from `ip`'s output, compared with the kernel in a namespace with the
//! same setup (`network.sh`).

use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use paceline::{Burst, FrameMeta, Host, Program as OurProgram, ProgramSpec};
use paceline_isa::{Names, RawInsn, assemble};
use paceline_network::Network;
use paceline_spec::helper::Helper;
use paceline_spec::{ProgramKind, XdpAttach};
use paceline_testkit::classic::own_network;
use paceline_testkit::kernel::{Packet, Program, Request, available_for};
use paceline_testkit::skip;

const QUERIES: usize = 20_000;

/// Reads the parameters and flags from the packet and stores the result there.
const LOOKUP: &str = "
    r6 = r1
    r2 = 0
    r3 = r10
    r3 += -64
    r4 = 64
    call bpf_xdp_load_bytes
    r1 = r6
    r2 = 64
    r3 = r10
    r3 += -72
    r4 = 4
    *(u64 *)(r10 - 72) = 0
    call bpf_xdp_load_bytes
    r1 = r6
    r2 = r10
    r2 += -64
    r3 = 64
    r4 = *(u32 *)(r10 - 72)
    call bpf_fib_lookup
    r7 = r0
    r1 = r6
    r2 = 0
    r3 = r10
    r3 += -64
    r4 = 64
    call bpf_xdp_store_bytes
    r0 = r7
    exit
";

/// Reads interface, length and difference from the packet and stores the MTU there.
const MTU: &str = "
    r6 = r1
    r2 = 0
    r3 = r10
    r3 += -16
    r4 = 12
    *(u64 *)(r10 - 16) = 0
    *(u64 *)(r10 - 8) = 0
    call bpf_xdp_load_bytes
    r1 = r6
    r2 = *(u32 *)(r10 - 16)
    r3 = r10
    r3 += -12
    r4 = *(u32 *)(r10 - 8)
    r5 = 0
    call bpf_check_mtu
    r7 = r0
    r1 = r6
    r2 = 0
    r3 = r10
    r3 += -16
    r4 = 12
    call bpf_xdp_store_bytes
    r0 = r7
    exit
";

struct Helpers;

impl Names for Helpers {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }
}

struct Pair {
    kernel: Program,
    ours: OurProgram,
    host: Host,
}

impl Pair {
    fn new(text: &str, network: &Arc<Network>) -> Self {
        let insns: Vec<RawInsn> =
            assemble(text, &Helpers).expect("good text").encode().expect("good instructions");
        let kernel = Program::load(&Request::xdp(&insns)).expect("the kernel takes it");
        let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
        let spec = ProgramSpec { license: "GPL".to_owned(), ..ProgramSpec::new("query", kind, insns) };
        let ours = OurProgram::new(Arc::new(spec), Vec::new()).expect("we take it");
        let mut host = Host::default();
        host.set_network(network.clone());
        Self { kernel, ours, host }
    }

    /// Result and packet, which are equal on both sides.
    fn ask(&mut self, packet: &[u8]) -> [(u32, Vec<u8>); 2] {
        let theirs = self.kernel.test_run(&Packet::new(packet)).expect("the kernel runs it");
        let mut burst = Burst::new(1);
        burst.push(packet, FrameMeta::default()).expect("it fits");
        burst.frame_mut(0).set_ingress(1, 0);
        self.ours.run_burst(&mut burst, &mut self.host).expect("no fault");
        let frame = burst.frame(0);
        [(theirs.retval, theirs.data), (frame.code(), frame.packet().to_vec())]
    }
}

fn pick<T: Copy, const N: usize>(rng: &mut Rng, from: [T; N]) -> T {
    from[rng.usize(..N)]
}

/// An address that the network has an entry for, or one close to it.
fn v4(rng: &mut Rng) -> [u8; 4] {
    let net = pick(rng, [0, 0, 1, 1, 2, 3, 9, 9, 9, 10, 11, 13, 15, 16, 17, 18, 20, 21, 30]);
    match rng.u8(..12) {
        0 => pick(
            rng,
            [[127, 0, 0, 1], [255, 255, 255, 255], [0; 4], [224, 0, 0, 1], [8, 8, 8, 8], [10, 0, 0, 255]],
        ),
        1 => [rng.u8(..), rng.u8(..), rng.u8(..), rng.u8(..)],
        _ => [10, net, pick(rng, [0, 0, 0, 9, 9, 10, 11, 200]), pick(rng, [1, 2, 2, 3, 9, 77])],
    }
}

fn v4_source(rng: &mut Rng) -> [u8; 4] {
    pick(rng, [[1, 2, 3, 4], [1, 2, 3, 77], [1, 2, 4, 4], [9, 9, 9, 9], [9, 9, 9, 10], [10, 0, 0, 2], [0; 4]])
}

fn v6(rng: &mut Rng) -> [u8; 16] {
    let mut address = [0; 16];
    let start = pick(rng, [0xfd, 0xfd, 0xfd, 0xfd, 0xfd, 0xfd, 0xfe, 0xff, 0x20, 0]);
    address[0] = start;
    address[1] = match start {
        0xfe => 0x80,
        _ => pick(rng, [0, 1, 3, 4, 5, 6, 7, 8, 9, 0x20]),
    };
    address[15] = pick(rng, [0, 1, 2, 2, 3, 9]);
    address
}

/// `struct bpf_fib_lookup` and flags.
fn query(rng: &mut Rng, interfaces: u32) -> Vec<u8> {
    let mut packet = vec![0; 68];
    let is_v6 = rng.u8(..5) < 2;
    packet[0] = if is_v6 { 10 } else { 2 };
    packet[1] = pick(rng, [0, 6, 6, 17]);
    let port: u16 = pick(rng, [80, 85, 90, 91, 443]);
    packet[4..6].copy_from_slice(&port.to_be_bytes());
    let len: u16 = pick(rng, [0, 0, 100, 1280, 1300, 1301, 1400, 1401, 1500, 1501, 9000, 9001, 65535]);
    packet[6..8].copy_from_slice(&len.to_ne_bytes());
    packet[8..12].copy_from_slice(&rng.u32(..interfaces + 2).to_ne_bytes());
    packet[12] = pick(rng, [0, 0, 0x10]);
    if is_v6 {
        packet[12] = 0;
        packet[16..32].copy_from_slice(&v6(rng));
        packet[32..48].copy_from_slice(&v6(rng));
    } else {
        packet[16..20].copy_from_slice(&v4_source(rng));
        packet[32..36].copy_from_slice(&v4(rng));
    }
    let table: u32 = pick(rng, [0, 77, 100, 100, 253, 254, 255]);
    packet[48..52].copy_from_slice(&table.to_ne_bytes());
    let mark: u32 = pick(rng, [0, 5, 0x105, 6]);
    packet[52..56].copy_from_slice(&mark.to_ne_bytes());
    let flags = if rng.bool() { rng.u32(..0x41) } else { pick(rng, [0, 0, 1, 4]) };
    packet[64..].copy_from_slice(&flags.to_ne_bytes());
    packet
}

fn mtu_query(rng: &mut Rng, interfaces: u32) -> Vec<u8> {
    let len: u32 = pick(rng, [0, 0, 1486, 1500, 1501, 9000, 9001, 65535, u32::MAX]);
    let difference: i32 = pick(rng, [0, 0, 1, -1, 1386, 1387, 65000, i32::MAX, i32::MIN]);
    let mut packet = [rng.u32(..interfaces + 2), len].map(u32::to_ne_bytes).concat();
    packet.extend(difference.to_ne_bytes());
    packet.resize(128, 0);
    packet
}

/// The network after it has settled.
fn settled() -> Network {
    let mut before = String::new();
    for _ in 0..50 {
        let now = paceline_network::iproute::host_text().expect("ip says what there is");
        if now == before {
            return paceline_network::iproute::parse(&now).unwrap_or_else(|error| panic!("{error} in {now}"));
        }
        before = now;
        thread::sleep(Duration::from_millis(200));
    }
    panic!("the network does not come to rest");
}

fn compare(rules: &str) {
    own_network().expect("a namespace");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/network.sh");
    let status = Command::new("sh").args([script, rules]).status().expect("there is sh");
    assert!(status.success(), "the namespace is set up");
    let network = Arc::new(settled());
    let interfaces = network.interfaces().len() as u32;
    let mut rng = Rng::with_seed(6);
    let (mut lookup, mut mtu) = (Pair::new(LOOKUP, &network), Pair::new(MTU, &network));
    let mut outcomes = [0u32; 10];
    let mut differing = Vec::new();
    for _ in 0..QUERIES {
        let packet = query(&mut rng, interfaces);
        let [theirs, ours] = lookup.ask(&packet);
        if let Some(count) = outcomes.get_mut(theirs.0 as usize) {
            *count += 1;
        }
        if theirs != ours {
            differing.push(format!("{packet:02x?}\n  kernel {theirs:02x?}\n  ours   {ours:02x?}"));
        }
        let packet = mtu_query(&mut rng, interfaces);
        let [theirs, ours] = mtu.ask(&packet);
        assert_eq!(theirs, ours, "{packet:02x?}");
    }
    eprintln!("{rules}: answers by number: {outcomes:?}, {} differ", differing.len());
    let met = outcomes.iter().filter(|count| **count > 0).count();
    assert!(met >= 9, "nearly every answer is met: {outcomes:?}");
    assert!(differing.is_empty(), "{}", differing[..differing.len().min(8)].join("\n"));
}

/// A namespace belongs to a thread and is freed with it.
#[test]
fn routes_are_those_of_the_kernel() {
    if !available_for("routes of the kernel") {
        return;
    }
    for (tool, version) in [("ip", "-V"), ("sysctl", "-V")] {
        if let Err(error) = Command::new(tool).arg(version).output() {
            return skip("routes_are_those_of_the_kernel", &format!("{tool}: {error}"));
        }
    }
    for rules in ["plain", "rules"] {
        thread::spawn(move || compare(rules)).join().expect("as the kernel");
    }
}
