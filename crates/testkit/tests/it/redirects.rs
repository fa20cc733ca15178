//! Targets and contents of redirected packets: pipelines compared with the kernel, with real interfaces in a private
//! namespace.

use std::collections::BTreeMap;
use std::error::Error;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use paceline::Engine;
use paceline_isa::RawInsn;
use paceline_spec::{MapSpec, ProgramKind, XdpAttach};
use paceline_testkit::classic::own_network;
use paceline_testkit::kernel::{Map, Program, Request, available_for};
use paceline_testkit::redirects::{self, ARRIVAL, EGRESS, INTERFACES, OBEY, Out, Rig, goes_to_cpu, sorted};
use paceline_testkit::wire::Wire;
use paceline_testkit::{skip, text};

/// Time without output after which all packets count as received.
const IDLE: Duration = Duration::from_millis(200);
/// Offset of the index of an interface's peer.
const PEER: u32 = 20;

/// The interfaces, each with the program, and the peers of their wires.
struct Kernel {
    /// Packets that pass on each interface.
    stacks: Vec<Wire>,
    /// Packets that each interface sends.
    peers: BTreeMap<u32, Wire>,
    _links: Vec<OwnedFd>,
    _maps: Vec<Map>,
}

/// Moves this thread to a network namespace with the interfaces; `None` without the permission.
fn interfaces() -> Option<()> {
    if let Err(error) = own_network() {
        skip("redirects", &error);
        return None;
    }
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    for ifindex in INTERFACES {
        let peer = ifindex + PEER;
        let script = format!(
            "ip link add name a{ifindex} index {ifindex} type veth peer name b{ifindex} index {peer} &&
             ip link set a{ifindex} up && ip link set b{ifindex} up"
        );
        let made = Command::new("sh").args(["-c", &script]).output();
        let made = made.map_err(|error| error.to_string()).and_then(|output| {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() { Ok(()) } else { Err(text) }
        });
        if let Err(error) = made {
            skip("redirects", &error);
            return None;
        }
    }
    Some(())
}

impl Kernel {
    fn new() -> Result<Self, Box<dyn Error>> {
        let specs = redirects::maps();
        let maps = specs.iter().map(|spec| Map::create(spec, None, None)).collect::<Result<Vec<_>, _>>()?;
        let load = |text: &str, attach| load(text, attach, &specs, &maps);
        let (egress, arrival) = (load(EGRESS, XdpAttach::DevMap)?, load(ARRIVAL, XdpAttach::CpuMap)?);
        let descriptor = |program: &Program| program.fd().as_raw_fd().cast_unsigned();
        for (key, entry) in redirects::devices(descriptor(&egress)) {
            maps[0].update(&key.to_ne_bytes(), &redirects::value(entry), 0)?;
        }
        for (key, entry) in redirects::cpus(descriptor(&arrival)) {
            maps[2].update(&key.to_ne_bytes(), &redirects::value(entry), 0)?;
        }
        let (obey, pass) = (load(OBEY, XdpAttach::Interface)?, load("r0 = 2\nexit", XdpAttach::Interface)?);
        let (mut links, mut stacks, mut peers) = (Vec::new(), Vec::new(), BTreeMap::new());
        for ifindex in INTERFACES {
            links.push(obey.attach(ifindex)?);
            // An interface without a program does not receive packets that programs redirect.
            links.push(pass.attach(ifindex + PEER)?);
            stacks.push(Wire::open(ifindex)?);
            peers.insert(ifindex, Wire::open(ifindex + PEER)?);
        }
        Ok(Self { stacks, peers, _links: links, _maps: maps })
    }

    fn run(&self, packets: &[(u32, Vec<u8>)]) -> Result<Out, Box<dyn Error>> {
        let mut out: Out = INTERFACES.iter().copied().chain([0]).map(|number| (number, Vec::new())).collect();
        for (ifindex, packet) in packets {
            self.peers[ifindex].send(packet)?;
            self.take(&mut out);
        }
        let mut last = Instant::now();
        while last.elapsed() < IDLE {
            if self.take(&mut out) {
                last = Instant::now();
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(out)
    }

    /// Receives packets; returns whether there were any.
    fn take(&self, out: &mut Out) -> bool {
        let peers = self.peers.iter().map(|(&ifindex, wire)| (ifindex, wire));
        let places = peers.chain(self.stacks.iter().map(|wire| (0, wire)));
        let mut any = false;
        for (place, wire) in places {
            while let Some(packet) = wire.receive() {
                out.entry(place).or_default().push(packet);
                any = true;
            }
        }
        any
    }
}

fn load(text: &str, attach: XdpAttach, specs: &[MapSpec], maps: &[Map]) -> Result<Program, Box<dyn Error>> {
    let spec = text::xdp(text, attach, specs)?;
    let insns: Vec<RawInsn> = spec.insns.clone();
    let kind = ProgramKind::Xdp { attach, frags: false };
    Ok(Program::load(&Request { kind, maps, ..Request::xdp(&insns) })?)
}

#[test]
fn packets_come_out_where_the_kernel_sends_them() {
    if !available_for("redirects") || interfaces().is_none() {
        return;
    }
    let kernel = Kernel::new().unwrap();
    for seed in 0..4 {
        // The kernel's socket map is empty, and interface 1 is the loopback device of the namespace.
        let mut packets = redirects::packets(seed, 600);
        packets.retain(|(_, packet)| packet[0] != 8 && packet[1] != 1 && packet[3] != 1);
        let theirs = kernel.run(&packets).unwrap();
        for engine in [Engine::best(), Engine::Plain] {
            let (mut ours, _) = Rig::new(engine).unwrap().run(&packets);
            ours.retain(|&number, _| number < 100);
            assert!(ours.values().all(|out| out.len() > 5), "all have packets");
            let (ours, theirs) = (sorted(ours), sorted(theirs.clone()));
            for (place, packets) in &ours {
                let same = packets == &theirs[place];
                assert!(
                    same,
                    "seed {seed}, {engine}, {place}: {} and {}",
                    packets.len(),
                    theirs[place].len()
                );
            }
        }
    }
}

/// Packets to one interface keep their order.
#[test]
fn order_is_kept_where_the_kernel_keeps_it() {
    if !available_for("redirects") || interfaces().is_none() {
        return;
    }
    let kernel = Kernel::new().unwrap();
    let mut packets = redirects::packets(9, 600);
    // Without packets for other CPUs, and all from one side.
    packets.retain(|(_, packet)| !goes_to_cpu(packet) && packet[0] != 8 && packet[1] != 1);
    packets.iter_mut().for_each(|(ifindex, _)| *ifindex = INTERFACES[0]);
    let theirs = kernel.run(&packets).unwrap();
    let (mut ours, _) = Rig::new(Engine::best()).unwrap().run(&packets);
    ours.retain(|&number, _| number < 100);
    assert!(ours == theirs);
}
