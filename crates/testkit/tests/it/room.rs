//! Helpers that move the ends of a TC classifier's packet, in random order and with random arguments: bytes and results are the kernel's,
//! also of packets that are shorter than their headers.

use std::fmt::Write;

use fastrand::Rng;
use paceline::{Burst, Engine, FrameMeta, Host, Program};
use paceline_isa::{Names, assemble};
use paceline_spec::helper::Helper;
use paceline_spec::{ProgramKind, ProgramSpec};
use paceline_testkit::kernel::{KernelObject, LoadOptions, Packet, available_for};
use paceline_verifier::{Options, verify};

/// Headroom of the kernel's test runs (`NET_SKB_PAD`): beyond it a packet is copied without the bytes behind its end.
const HEADROOM: i32 = 64;

struct Helpers;

impl Names for Helpers {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }
}

/// A program that calls such helpers, and returns a number made of their results.
fn program(rng: &mut Rng) -> ProgramSpec {
    let (mut text, mut grown) = ("r6 = r1\n r9 = 0\n".to_owned(), 0);
    for _ in 0..rng.u32(1..5) {
        let room = HEADROOM - grown;
        let (call, arguments) = match rng.u8(..8) {
            0..3 => ("bpf_skb_change_tail", [rng.i32(10..90), 0, 0]),
            3 => {
                let more = rng.i32(0..=room.min(20));
                grown += more;
                ("bpf_skb_change_head", [more, 0, 0])
            }
            4 => {
                let protocol = [0x0008, 0xdd86, 0x0608][rng.usize(..3)];
                grown += room.min(20);
                if room < 20 { continue } else { ("bpf_skb_change_proto", [protocol, 0, 0]) }
            }
            _ => {
                let difference = if rng.u8(..3) == 0 { -rng.i32(0..60) } else { rng.i32(0..=room.min(40)) };
                grown += difference.max(0);
                let flags = match rng.u8(..4) {
                    0 => 0,
                    1 => 1 << rng.u8(..9),
                    2 => 32,
                    _ => rng.i32(..512) & rng.i32(..512),
                };
                ("bpf_skb_adjust_room", [difference, i32::from(rng.u8(..9) != 0) & rng.i32(0..3), flags])
            }
        };
        text += "r1 = r6\n";
        for (number, argument) in (2..).zip(arguments) {
            writeln!(text, "r{number} = {argument}").expect("to a string");
        }
        writeln!(text, "call {call}\n r9 *= 31\n r9 += r0").expect("to a string");
    }
    let insns = assemble(&(text + "r0 = r9\n exit"), &Helpers).expect("assembles");
    let insns = insns.encode().expect("encodes");
    ProgramSpec { license: "GPL".into(), ..ProgramSpec::new("room", ProgramKind::SchedCls, insns) }
}

fn packet(rng: &mut Rng) -> Vec<u8> {
    let mut packet: Vec<u8> = (0..rng.usize(14..100)).map(|_| rng.u8(1..)).collect();
    let protocol = [[0x08, 0x00], [0x86, 0xdd], [0x08, 0x06]][rng.usize(..5).saturating_sub(2)];
    packet[12..14].copy_from_slice(&protocol);
    packet
}

/// Result and bytes of a run on an engine, after packets whose bytes it must not see.
fn ours(program: &Program, packet: &[u8]) -> (u32, Vec<u8>) {
    let mut burst = Burst::new(1);
    burst.push(&[0xee; 400], FrameMeta::default()).expect("it fits");
    burst.clear();
    burst.push(packet, FrameMeta::default()).expect("it fits");
    let result = program.run_raw(&mut burst.frame_mut(0), &mut Host::default()).expect("it was verified");
    (result as u32, burst.frame(0).packet().to_vec())
}

/// Programs; more with `PACELINE_ROOMS`.
#[test]
fn packets_shorter_than_their_headers_move_as_in_the_kernel() {
    if !available_for("packets_shorter_than_their_headers_move_as_in_the_kernel") {
        return;
    }
    let count = std::env::var("PACELINE_ROOMS").map_or(1500, |count| count.parse().expect("a number"));
    let (mut differences, mut beyond) = (String::new(), 0);
    for seed in 0..count {
        let mut rng = Rng::with_seed(seed);
        let (spec, packet) = (program(&mut rng), packet(&mut rng));
        let object = KernelObject::load(&[], [&spec], LoadOptions::default()).expect("a good program");
        let Ok(run) = object.programs[0].test_run(&Packet::new(&packet)) else { continue };
        let verified = verify(&spec, &[], None, &Options::default()).expect("a good program");
        beyond += usize::from(run.data.len() < 34);
        for engine in [Engine::Plain, Engine::Jit].into_iter().filter(|engine| engine.is_available()) {
            let program = Program::load(&verified, Vec::new(), engine).expect("loads");
            if ours(&program, &packet) != (run.retval, run.data.clone()) {
                let ours = ours(&program, &packet);
                writeln!(
                    differences,
                    "seed {seed} on {engine}: {ours:x?}, the kernel's {:x?}",
                    (run.retval, &run.data)
                )
                .expect("to a string");
            }
        }
    }
    assert!(differences.is_empty(), "{differences}");
    assert!(beyond > 0, "no packet is shorter than its header");
}
