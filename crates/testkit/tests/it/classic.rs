//! Classic filters compared with libpcap: matches of tcpdump's expressions, and printed programs; and seccomp programs
//! compared with the kernel's checker.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use fastrand::Rng;
use paceline::capture::CaptureReader;
use paceline::{Burst, FrameMeta, Host};
use paceline_classic::text::{
    Language, assemble, filter_source, parse, parse_c_array, parse_decimal, program_source, to_asm,
    to_c_array, to_decimal, to_listing,
};
use paceline_classic::{
    Action, ConvertOptions, Filter, Purpose, Returns, Rules, SockFilter, SystemCall, table,
};
use paceline_engine::{MemoryProgram, Program};
use paceline_spec::ProgramSpec;
use paceline_testkit::AnyEngine;
use paceline_testkit::classic::{Libpcap, Target, is_defined, reference, sample, seccomp_accepts, steered};
use paceline_testkit::{kernel, skip};
use paceline_verifier::{Options, verify};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn expressions() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("tests/classic/expressions.txt")).expect("it is there");
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

fn libpcap(test: &str) -> Option<Libpcap> {
    Libpcap::open().map_err(|reason| skip(test, &reason)).ok()
}

/// The packets of the shipped capture, and each of them truncated at every length within its headers.
fn packets() -> Vec<Vec<u8>> {
    let file = File::open(root().join("examples/traffic.pcap")).expect("it is there");
    let mut reader = CaptureReader::new(BufReader::new(file)).expect("a capture");
    let mut burst = Burst::new(64);
    let mut packets = Vec::new();
    while reader.fill(&mut burst).expect("a good capture") > 0 {
        packets.extend(burst.iter().map(|frame| frame.packet().to_vec()));
        burst.clear();
    }
    let cut: Vec<Vec<u8>> =
        packets.iter().step_by(37).enumerate().map(|(n, p)| p[..p.len().min(n % 70)].to_vec()).collect();
    packets.extend(cut);
    packets
}

/// The programs of a filter on all engines of this machine.
fn programs(filter: &Filter, options: &ConvertOptions) -> Vec<(String, Program)> {
    let specs = [filter.to_xdp("xdp", options), filter.to_socket_filter("socket_filter", options)];
    let mut programs = Vec::new();
    for spec in specs {
        let spec: ProgramSpec = spec.expect("libpcap's programs for files can be converted");
        let verified = verify(&spec, &[], None, &Options::default()).expect("what is converted is safe");
        for engine in AnyEngine::available() {
            let program = engine.load(&verified, Vec::new());
            let program = program.unwrap_or_else(|error| panic!("{engine}: {error}"));
            programs.push((format!("{} on {engine}", spec.name), program));
        }
    }
    programs
}

#[test]
fn expressions_match_what_libpcap_says() {
    let Some(libpcap) = libpcap("expressions_match_what_libpcap_says") else { return };
    let packets = packets();
    let mut host = Host::default();
    let mut burst = Burst::new(1);
    let (mut matched, mut other_rule) = (0u64, 0);
    for expression in expressions() {
        let insns = libpcap.compile(&expression, Target::default()).expect("tcpdump takes it");
        let filter = Filter::new(insns, Purpose::Socket).expect("libpcap makes good programs");
        let programs = programs(&filter, &ConvertOptions::default());
        for (number, packet) in packets.iter().enumerate() {
            if reference(&filter, packet).libpcap_differs {
                other_rule += 1;
                continue;
            }
            let expected = libpcap.run(&filter, packet, packet.len() as u32);
            matched += u64::from(expected != 0);
            for (name, program) in &programs {
                burst.clear();
                burst.push(packet, FrameMeta::default()).expect("it fits");
                let value = program.run_raw(&mut burst.frame_mut(0), &mut host).expect("it is safe");
                assert_eq!(value, u64::from(expected), "{expression}: packet {number}, {name}");
            }
        }
    }
    // Offsets that are negative before they wrap, from wrong length fields.
    assert!(other_rule < 100, "libpcap has another rule for {other_rule} packets");
    assert!(matched > 10_000, "the expressions match {matched} packets, far too few to show anything");
}

#[test]
fn the_kernel_takes_what_expressions_become() {
    let Some(libpcap) = libpcap("the_kernel_takes_what_expressions_become") else { return };
    if !kernel::available_for("the_kernel_takes_what_expressions_become") {
        return;
    }
    for expression in expressions() {
        let insns = libpcap.compile(&expression, Target::default()).expect("tcpdump takes it");
        let filter = Filter::new(insns, Purpose::Socket).expect("libpcap makes good programs");
        let verdicts = ConvertOptions::default().returns(Returns::Verdict { matched: 2, unmatched: 1 });
        for spec in [
            filter.to_xdp("filter", &verdicts).expect("it can be converted"),
            filter.to_socket_filter("filter", &ConvertOptions::default()).expect("it can be converted"),
        ] {
            let request = kernel::Request { kind: spec.kind, ..kernel::Request::xdp(&spec.insns) };
            kernel::Program::load(&request).unwrap_or_else(|error| panic!("{expression}: {error}"));
        }
    }
}

/// An IPv4 and an IPv6 packet with an authentication header that is its own next header by libpcap's arithmetic, which uses
/// its length as an offset.
fn circles() -> [Vec<u8>; 2] {
    const AH: u8 = 51;
    [(0x0800, 23, 20), (0x86dd, 20, 40)].map(|(ethertype, protocol, place)| {
        let mut packet = vec![0; 100];
        packet[12..14].copy_from_slice(&u16::to_be_bytes(ethertype));
        packet[14] = 0x45;
        packet[protocol] = AH;
        packet[14 + place] = AH;
        packet[14 + place + 1] = (place / 4 - 2) as u8;
        packet
    })
}

/// Conversions of `protochain` have libpcap's results, but end where libpcap does not; and the kernel accepts them.
#[test]
fn loops_of_protochain_run_and_end() {
    let test = "loops_of_protochain_run_and_end";
    let Some(libpcap) = libpcap(test) else { return };
    let has_kernel = kernel::available_for(test);
    let (mut rng, mut host, mut burst) = (Rng::with_seed(1), Host::default(), Burst::new(1));
    let options = ConvertOptions::default().rules(Rules::Libpcap);
    let (mut matched, mut endless) = (0, 0);
    for expression in
        ["ip protochain 6", "ip6 protochain 17", "protochain 6", "not ip6 protochain 6 or protochain 17"]
    {
        let insns = libpcap.compile(expression, Target::default()).expect("tcpdump takes it");
        let filter = Filter::new(insns.clone(), Purpose::UserSpace).expect("libpcap makes good programs");
        let programs = programs(&filter, &options);
        let ways = std::iter::repeat_with(|| steered(&mut rng, &insns)).take(2_000);
        for (number, packet) in circles().into_iter().chain(ways).enumerate() {
            let ends = is_defined(&insns, &packet);
            let expected = if ends { libpcap.run(&filter, &packet, packet.len() as u32) } else { 0 };
            matched += u32::from(expected != 0);
            endless += u32::from(!ends);
            for (name, program) in &programs {
                burst.clear();
                burst.push(&packet, FrameMeta::default()).expect("it fits");
                let value = program.run_raw(&mut burst.frame_mut(0), &mut host).expect("it is safe");
                assert_eq!(value, u64::from(expected), "{expression}: packet {number} {packet:02x?}, {name}");
            }
        }
        for spec in [filter.to_xdp("filter", &options), filter.to_socket_filter("filter", &options)] {
            let spec = spec.expect("it can be converted");
            let request = kernel::Request { kind: spec.kind, ..kernel::Request::xdp(&spec.insns) };
            if has_kernel {
                kernel::Program::load(&request).unwrap_or_else(|error| panic!("{expression}: {error}"));
            }
        }
    }
    assert!(
        matched > 1_000 && endless > 4,
        "{matched} packets match, and on {endless} libpcap would not end"
    );
}

/// Each loop ends, with the same result on all engines, which is libpcap's unless that exceeds the bound.
#[test]
fn random_loops_end_alike_on_all_engines() {
    let Some(libpcap) = libpcap("random_loops_end_alike_on_all_engines") else { return };
    const JUMP: u16 = 0x05;
    // Unoptimized builds take twenty times as long.
    const SEEDS: u64 = if cfg!(debug_assertions) { 150 } else { 3_000 };
    let options = ConvertOptions::default().rules(Rules::Libpcap);
    let (mut host, mut burst) = (Host::default(), Burst::new(1));
    let (mut ran, mut refused, mut same, mut others) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let mut rng = Rng::with_seed(seed);
        let mut sample = sample(seed, 6);
        let from = rng.usize(..sample.insns.len());
        let back = rng.usize(..=from) as i32;
        sample.insns[from] = SockFilter::new(JUMP, (-1 - back).cast_unsigned());
        let Ok(filter) = Filter::new(sample.insns.clone(), Purpose::UserSpace) else { continue };
        let spec = filter.to_xdp("xdp", &options).expect("it can be converted");
        let Ok(verified) = verify(&spec, &[], None, &Options::default()) else {
            refused += 1;
            continue;
        };
        let load = |engine: AnyEngine| engine.load(&verified, Vec::new()).ok();
        let programs: Vec<_> = AnyEngine::ALL.into_iter().filter_map(load).collect();
        for packet in &sample.packets {
            let values: Vec<u64> = programs
                .iter()
                .map(|program| {
                    burst.clear();
                    burst.push(packet, FrameMeta::default()).expect("it fits");
                    program.run_raw(&mut burst.frame_mut(0), &mut host).expect("it ends")
                })
                .collect();
            assert!(values.windows(2).all(|pair| pair[0] == pair[1]), "seed {seed}: {values:?}");
            ran += 1;
            if is_defined(&sample.insns, packet) {
                let expected = libpcap.run(&filter, packet, packet.len() as u32);
                let is_same = values.iter().all(|value| *value == u64::from(expected));
                assert!(
                    is_same || values.iter().all(|value| *value == 0),
                    "seed {seed}: {values:?}, not {expected}"
                );
                *if is_same { &mut same } else { &mut others } += 1;
            }
        }
    }
    assert!(
        ran > SEEDS / 3 && others * 20 < same && refused < SEEDS / 30,
        "{ran} runs, {same} as libpcap's and {others} not, {refused} programs are too complex"
    );
}

/// The kernel refuses loops in classic programs; tcpdump then filters in user space.
#[test]
fn loops_of_protochain_are_refused_for_sockets() {
    let Some(libpcap) = libpcap("loops_of_protochain_are_refused_for_sockets") else { return };
    let insns = libpcap.compile("ip6 protochain 6", Target::default()).expect("tcpdump takes it");
    let error = Filter::new(insns, Purpose::Socket).expect_err("it has a loop").to_string();
    assert_eq!(error, "instruction 18 (ja): jumps to instruction 4294967300 of a program of 36");
}

#[test]
fn listings_are_libpcaps() {
    let Some(libpcap) = libpcap("listings_are_libpcaps") else { return };
    for row in table::rows() {
        for k in [0, 1, 12, 0x800, 0x7fff_ffff, 0x8000_0000, 0xffff_f004, u32::MAX] {
            let insn = SockFilter { code: row.code, jt: 3, jf: 255, k };
            for index in [0, 7, 999, 4000] {
                let mut insns = vec![SockFilter::default(); index];
                insns.push(insn);
                let ours = to_listing(&insns);
                let last = ours.lines().last().unwrap_or_default();
                assert_eq!(last, libpcap.image(insn, index as u32), "{insn}");
            }
        }
    }
    let unknown = SockFilter::new(0xffff, 3);
    assert_eq!(to_listing(&[unknown]).trim_end_matches('\n'), libpcap.image(unknown, 0));
}

#[test]
fn prints_as_tcpdump_does() {
    for expression in ["port 22", "ip6 and not tcp", "vlan 5 and udp[8:2] & 0x8000 = 0"] {
        let run = |option: &str| {
            let output = Command::new("tcpdump").args(["-y", "EN10MB", option, expression]).output().ok()?;
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let Some(decimal) = run("-ddd") else {
            skip("prints_as_tcpdump_does", &"tcpdump is not installed");
            return;
        };
        let insns = parse_decimal(&decimal).expect("tcpdump's numbers");
        assert_eq!(to_decimal(&insns), decimal);
        let array = run("-dd").unwrap_or_default();
        assert_eq!(parse_c_array(&array).as_ref(), Ok(&insns));
        assert_eq!(to_c_array(&insns), array);
        assert_eq!(Some(to_listing(&insns)), run("-d"));
    }
}

#[test]
fn texts_read_back() {
    for seed in 0..2000 {
        let insns = sample(seed, 0).insns;
        assert_eq!(parse_decimal(&to_decimal(&insns)).as_ref(), Ok(&insns), "seed {seed}");
        assert_eq!(parse(&to_c_array(&insns)).as_ref(), Ok(&insns), "seed {seed}");
        if Filter::new(insns.clone(), Purpose::Socket).is_ok() {
            let read = assemble(&to_asm(&insns)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            // The language has no syntax for unused fields of an instruction.
            assert_eq!(to_listing(&read), to_listing(&insns), "seed {seed}");
        }
    }
}

#[test]
fn errors_name_their_place() {
    let told = |text: &str| parse(text).expect_err("it is wrong").to_string();
    assert_eq!(told("ldh [12]\njeq #0x800, yes"), "line 2, column 13: no label `yes`");
    assert_eq!(told("ldq [12]"), "line 1, column 1: unknown instruction `ldq`");
    assert_eq!(
        told("  ldh 12"),
        "line 1, column 7: expected `[12]`, `[x + 12]` or an ancillary word such as `#proto`, found `12`"
    );
    assert_eq!(told("a: ret #0\na: ret #1"), "line 2, column 1: label `a` is set twice");
    assert_eq!(
        told("a: ld #1\nja a"),
        "line 2, column 4: label `a` is not after the jump to it: classic programs only jump forward"
    );
    assert_eq!(told("2\n6 0 0 0\n"), "line 1, column 1: the text says 2 instructions and has 1");
    assert_eq!(told("1\n6 0 300 0\n"), "line 2, column 5: 300 is out of range, 0 to 255");
    assert_eq!(told("{ 6, 0, 0 }"), "line 1, column 11: expected `,`, found `}`");
    assert_eq!(told("ret #99999999999"), "line 1, column 6: `99999999999` is no number of 32 bits");
    assert_eq!(told("ret # /*"), "line 1, column 7: a comment has no end `*/`");
    assert_eq!(parse("").map(|insns| insns.len()), Ok(0));
}

#[test]
fn sources_compile_to_the_same() {
    let insns = assemble("ldh [12]\njne #0x800, no\nret #4\nno: ret #0").expect("it is right");
    let c = filter_source(&insns, Language::C, "ip");
    assert!(
        c.starts_with("static const struct sock_filter ip[] = {\n\t{ 0x28, 0, 0, 0x0000000c },\n"),
        "{c}"
    );
    let rust = filter_source(&insns, Language::Rust, "IP");
    assert!(
        rust.contains("pub const IP: [(u16, u8, u8, u32); 4] = [\n    (0x28, 0, 0, 0x0000000c),\n"),
        "{rust}"
    );
    let filter = Filter::new(insns, Purpose::Socket).expect("it is a filter");
    let spec = filter.to_xdp("ip", &ConvertOptions::default()).expect("it can be converted");
    let c = program_source(&spec.insns, Language::C, "ip");
    assert_eq!(c.matches("{ 0x").count(), spec.insns.len(), "{c}");
}

/// `port 22`, the first filter in the kernel's patches for the eBPF interpreter. One bounds check covers the loads that all
/// paths need, of the seven loads and the header length. Each port has a check of its own: a packet that ends after the
/// first port matches if that is 22.
#[test]
fn checks_are_shared() {
    let Some(libpcap) = libpcap("checks_are_shared") else { return };
    let target = Target { optimize: true, ..Target::default() };
    let insns = libpcap.compile("port 22", target).expect("tcpdump takes it");
    let filter = Filter::new(insns, Purpose::Socket).expect("libpcap makes good programs");
    let spec = filter.to_xdp("filter", &ConvertOptions::default()).expect("it can be converted");
    let text: Vec<String> =
        paceline_isa::disassemble(&spec.insns).iter().map(|line| line.to_string()).collect();
    let checks = text.iter().filter(|line| line.contains("r5 > r3")).count();
    assert_eq!(checks, 5, "{}", text.join("\n"));
    // The second filter computes the header length three times, and loads it once here.
    let second = "tcp port 22 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)";
    let insns = libpcap.compile(second, target).expect("tcpdump takes it");
    let filter = Filter::new(insns, Purpose::Socket).expect("libpcap makes good programs");
    let spec = filter.to_xdp("filter", &ConvertOptions::default()).expect("it can be converted");
    let text: Vec<String> =
        paceline_isa::disassemble(&spec.insns).iter().map(|line| line.to_string()).collect();
    let lengths = text.iter().filter(|line| line.contains("*(u8 *)(r2 + 14)")).count();
    assert_eq!(lengths, 1, "{}", text.join("\n"));
}

#[test]
fn the_kernels_seccomp_checker_agrees() {
    if !kernel::available_for("the_kernels_seccomp_checker_agrees") {
        return;
    }
    let mut accepted = 0;
    for seed in 0..600 {
        let mut insns = sample(seed, 0).insns;
        for insn in
            insns.iter_mut().filter(|insn| matches!(insn.code, 0x20 | 0x28 | 0x30 | 0x40 | 0x48 | 0x50))
        {
            *insn = SockFilter { code: 0x20, k: insn.k % 68, ..*insn };
            insn.k -= if seed % 3 == 0 { 0 } else { insn.k % 4 };
        }
        if seed % 5 != 0 {
            insns
                .iter_mut()
                .filter(|insn| matches!(insn.code, 0x94 | 0x9c))
                .for_each(|insn| insn.code &= 0xf);
            insns.iter_mut().filter(|insn| insn.code == 0xb1).for_each(|insn| insn.code = 0x81);
        }
        let ours = Filter::new(insns.clone(), Purpose::Seccomp);
        let theirs = seccomp_accepts(&insns).expect("a process can be made");
        assert_eq!(ours.is_ok(), theirs, "seed {seed}: {ours:?}\n{}", to_asm(&insns));
        accepted += u32::from(theirs);
    }
    assert!(accepted > 100, "only {accepted} of 600 were programs at all");
}

#[test]
fn seccomp_tells_actions() {
    const SECCOMP: &str = "
        ld [4]
        jne #0xc000003e, kill
        ld [0]
        jeq #1, write           ; write
        jeq #59, refuse         ; execve
        jge #0x40000000, trap   ; x32
        ret #0x7fff0000
    write:
        ld [16]                 ; low word of the descriptor
        jgt #2, log
        ret #0x7fff0000
    log:
        ret #0x7ffc0000
    refuse:
        ret #0x5000d
    trap:
        ld #len
        or #0x30000
        ret a
    kill:
        ret #0x80000000
    ";
    let filter = Filter::new(assemble(SECCOMP).expect("assembly"), Purpose::Seccomp).expect("a filter");
    let spec = filter.to_seccomp("seccomp").expect("it can be converted");
    let program = MemoryProgram::new(Arc::new(spec), Vec::new()).expect("a program");
    let call = |number, first| SystemCall {
        number,
        arch: SystemCall::X86_64,
        arguments: [first, 0, 0, 0, 0, 0],
        ..SystemCall::default()
    };
    let recorded = [
        (call(0, 0), "allow"),
        (call(1, 2), "allow"),
        (call(1, 3), "log"),
        (call(59, 0), "errno(13)"),
        (call(0x4000_0001, 0), "trap(64)"),
        (SystemCall { arch: 3, ..call(0, 0) }, "kill_process"),
    ];
    let mut host = Host::default();
    for (call, expected) in recorded {
        let exit = program.run(&mut call.to_bytes(), &mut host).expect("it is a filter");
        assert_eq!(Action::from_return(exit.r0 as u32).to_string(), expected, "{call:?}");
    }
}
