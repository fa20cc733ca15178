//! Maps whose values stand for something else: devices, CPUs, sockets, programs, perf events.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use paceline_maps::{EntryProgram, announce};
use paceline_spec::{Errno, MapFlags, MapKind, XdpAttach};

use crate::bpf::{KernelMap, Program, xdp_socket};
use crate::{Twin, kernel_permits, limits, skip, spec};

const OPERATIONS: usize = 2000;

/// The loopback interface, which every network namespace has.
const LOOPBACK: u32 = 1;

fn random_flags(rng: &mut fastrand::Rng) -> u64 {
    [0, 0, 0, 1, 2, 3, 4, 9][rng.usize(..8)]
}

/// Random updates, deletes and look-ups of entries 0 to `keys`, some of them out of range.
fn run(twin: &Twin, keys: u32, seed: u64, mut value: impl FnMut(&mut fastrand::Rng) -> Vec<u8>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..OPERATIONS {
        let key = rng.u32(..keys).to_ne_bytes();
        match rng.u32(..6) {
            0..3 => drop(twin.set(&key, &value(&mut rng), random_flags(&mut rng))),
            3 => drop(twin.get(&key)),
            4 => drop(twin.remove(&key)),
            _ => twin.compare_keys(),
        }
    }
}

fn pair(first: u32, second: u32, size: u32) -> Vec<u8> {
    [first.to_ne_bytes(), second.to_ne_bytes()].concat()[..size as usize].to_vec()
}

#[test]
fn device_maps() {
    if !kernel_permits("device_maps") {
        return;
    }
    for kind in [MapKind::DevMap, MapKind::DevMapHash] {
        for size in [4, 8] {
            let twin = Twin::create(&spec(kind, 4, size, 5, MapFlags::default()));
            assert_eq!(twin.ours.spec().flags.0, twin.kernels.entries_and_flags().1);
            run(&twin, 8, 1, |rng| {
                let program = [0, u32::MAX, i32::MIN as u32][rng.usize(..3)];
                pair([LOOPBACK, LOOPBACK, 0][rng.usize(..3)], program, size)
            });
            (0..8_u32).for_each(|key| {
                let there = twin.get(&key.to_ne_bytes()).is_ok();
                assert_eq!(twin.ours.for_programs().has_target(key), there);
                assert_eq!(twin.ours.for_programs().lookup(&key.to_ne_bytes(), 0).is_some(), there);
            });
        }
    }
}

#[test]
fn a_device_needs_a_number_to_have_a_program() {
    if !kernel_permits("a_device_needs_a_number_to_have_a_program") {
        return;
    }
    for kind in [MapKind::DevMap, MapKind::DevMapHash] {
        let twin = Twin::create(&spec(kind, 4, 8, 5, MapFlags::default()));
        assert_eq!(twin.set(&[0; 4], &pair(0, 77, 8), 0), Err(Errno::EINVAL));
    }
}

/// Identity that is announced to our maps for a program of the kernel's.
struct Announced(XdpAttach);

impl EntryProgram for Announced {
    fn attach(&self) -> XdpAttach {
        self.0
    }
}

/// A program of each attach type in entries of each map, over what was there, with all flags.
#[test]
fn programs_of_entries_are_of_the_maps_attach_type() {
    /// `BPF_XDP_DEVMAP`, `BPF_XDP_CPUMAP` and `BPF_XDP` of `enum bpf_attach_type`; and none.
    const ATTACH: [(u32, XdpAttach); 4] = [
        (33, XdpAttach::DevMap),
        (35, XdpAttach::CpuMap),
        (37, XdpAttach::Interface),
        (0, XdpAttach::Interface),
    ];
    if !kernel_permits("programs_of_entries_are_of_the_maps_attach_type") {
        return;
    }
    for (kind, first) in
        [(MapKind::DevMap, LOOPBACK), (MapKind::DevMapHash, LOOPBACK), (MapKind::CpuMap, 192)]
    {
        let twin = Twin::create(&spec(kind, 4, 8, 1, MapFlags::default()));
        for (number, attach) in ATTACH {
            let theirs = Program::load_for(&Program::PASS, number).unwrap();
            let ours: Arc<dyn EntryProgram> = Arc::new(Announced(attach));
            // SAFETY: no engine runs it.
            unsafe { announce(theirs.id(), Arc::downgrade(&ours)) };
            for (first, key, flags) in [
                (first, 0_u32, 0),
                (first, 0, 1),
                (first, 0, 2),
                (first, 9, 0),
                (0, 0, 0),
                (first, 0, 0),
                (1 << 20, 0, 0),
            ] {
                if first == 1 << 20 && kind != MapKind::CpuMap {
                    continue; // there is no such interface
                }
                let with = |program| pair(first, program, 8);
                let kernels = twin.kernels.set(&key.to_ne_bytes(), &with(theirs.fd()), flags);
                let result = twin.ours.update_raw(&key.to_ne_bytes(), &with(theirs.id()), flags);
                assert_eq!(result, kernels, "{kind}, attach type {number}, {first} at {key}, flags {flags}");
                twin.get(&0_u32.to_ne_bytes()).ok();
            }
            // The entry keeps it.
            let entry = twin.get(&0_u32.to_ne_bytes());
            let kept = entry.is_ok_and(|entry| entry[4..] == theirs.id().to_ne_bytes());
            assert_eq!(Arc::strong_count(&ours) > 1, kept, "{kind}, attach type {number}");
        }
        // None of that number: the kernel has no such descriptor.
        let none = twin.ours.insert(&[0; 4], &pair(first, 1 << 30, 8));
        assert_eq!(none, twin.kernels.set(&[0; 4], &pair(first, 1 << 30, 8), 0), "{kind}");
    }
}

#[test]
fn cpu_maps() {
    if !kernel_permits("cpu_maps") {
        return;
    }
    let cpus = limits().cpus as u32;
    for size in [4, 8] {
        let twin = Twin::create(&spec(MapKind::CpuMap, 4, size, cpus, MapFlags::default()));
        run(&twin, cpus + 2, 2, |rng| pair([0, 1, 192, 16384, 16385, u32::MAX][rng.usize(..6)], 0, size));
    }
}

#[test]
fn a_cpu_that_is_not_there() {
    if !kernel_permits("a_cpu_that_is_not_there") {
        return;
    }
    let cpus = limits().cpus as u32;
    let larger = spec(MapKind::CpuMap, 4, 4, cpus + 2, MapFlags::default());
    if KernelMap::create(&larger, 4).is_err() {
        return skip("a_cpu_that_is_not_there", "this kernel is built for no more CPUs than it has");
    }
    let twin = Twin::create(&larger);
    run(&twin, cpus + 4, 3, |rng| pair([0, 192, 16385][rng.usize(..3)], 0, 4));
}

#[test]
fn socket_maps() {
    if !kernel_permits("socket_maps") {
        return;
    }
    let sockets = match [xdp_socket(), xdp_socket()] {
        [Ok(a), Ok(b)] => [a, b],
        [Err(errno), _] | [_, Err(errno)] => {
            return skip("socket_maps", &format!("AF_XDP sockets give {errno}"));
        }
    };
    let twin = Twin::create(&spec(MapKind::XskMap, 4, 4, 5, MapFlags::default()));
    run(&twin, 7, 4, |rng| sockets[rng.usize(..2)].as_raw_fd().to_ne_bytes().to_vec());
}

#[test]
fn maps_of_sockets() {
    if !kernel_permits("maps_of_sockets") {
        return;
    }
    let sockets = [std::net::UdpSocket::bind("127.0.0.1:0"), std::net::UdpSocket::bind("127.0.0.1:0")];
    let sockets = sockets.map(|socket| socket.expect("the loopback interface has free ports"));
    let descriptor = |rng: &mut fastrand::Rng| match rng.u32(..8) {
        0 => -1,
        _ => sockets[rng.usize(..2)].as_raw_fd(),
    };
    for kind in [MapKind::SockMap, MapKind::SockHash] {
        let twin = Twin::create(&spec(kind, 4, 4, 5, MapFlags::default()));
        run(&twin, 7, 4, |rng| descriptor(rng).to_ne_bytes().to_vec());
    }
}

#[test]
fn program_arrays() {
    if !kernel_permits("program_arrays") {
        return;
    }
    let programs = [Program::load(&Program::PASS).unwrap(), Program::load(&Program::PASS).unwrap()];
    let twin = Twin::create(&spec(MapKind::ProgArray, 4, 4, 5, MapFlags::default()));
    let mut rng = fastrand::Rng::with_seed(5);
    for _ in 0..OPERATIONS {
        let index = rng.u32(..7);
        let key = index.to_ne_bytes();
        match rng.u32(..6) {
            0..3 => {
                // The kernel takes a descriptor and gives back an id; ours gives back what it takes.
                let (program, flags) = (&programs[rng.usize(..2)], random_flags(&mut rng));
                let ours = twin.ours.update_raw(&key, &program.id().to_ne_bytes(), flags);
                assert_eq!(ours, twin.kernels.set(&key, &program.fd().to_ne_bytes(), flags));
            }
            3 => assert_eq!(
                twin.get(&key).is_ok(),
                twin.ours.for_programs().prog_array().unwrap().program(index).is_some()
            ),
            4 => drop(twin.remove(&key)),
            _ => twin.compare_keys(),
        }
    }
}

#[test]
fn perf_event_arrays() {
    if !kernel_permits("perf_event_arrays") {
        return;
    }
    let twin = Twin::create(&spec(MapKind::PerfEventArray, 4, 4, 3, MapFlags::default()));
    run(&twin, 5, 6, |_| (-1_i32).to_ne_bytes().to_vec());
    let default = spec(MapKind::PerfEventArray, 4, 4, 0, MapFlags::default());
    Twin::create(&default).compare_keys();
}
