//! The plain interpreter stops a program that does what it may not, and says where and why.
//!
//! Results of programs are in the text cases under `tests/cases/`; here are the ways to fail.

use std::sync::{Arc, Mutex};

use paceline_engine::{Access, FaultAddress, FaultKind, Host, Location, MalformedProgram, Program};
use paceline_frame::{Burst, FrameMeta, Verdict};
use paceline_isa::{Names, assemble};
use paceline_maps::{Limits, Map};
use paceline_spec::helper::Helper;
use paceline_spec::{MapFlags, MapKind, MapSpec, ProgramKind, ProgramSpec, XdpAttach};

struct TestNames;

impl Names for TestNames {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }

    fn map(&self, name: &str) -> Option<i32> {
        ["hits", "config"].iter().position(|map| *map == name).map(|index| index as i32)
    }
}

fn map(name: &str, kind: MapKind, flags: MapFlags) -> Arc<Map> {
    let spec = MapSpec { flags, ..MapSpec::new(name, kind, 4, 8, 1) };
    Map::create(&spec, &Limits { cpus: 1, memory: 1 << 20 }).expect("a small map can be made")
}

fn load(text: &str) -> Result<Program, MalformedProgram> {
    load_as(ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false }, text)
}

fn load_as(kind: ProgramKind, text: &str) -> Result<Program, MalformedProgram> {
    let code = assemble(text, &TestNames).expect("the test's program assembles");
    let insns = code.encode().expect("what assembles can be encoded");
    let maps = vec![
        map("hits", MapKind::Array, MapFlags::default()),
        map("config", MapKind::Array, MapFlags::RDONLY_PROG),
    ];
    Program::new(Arc::new(ProgramSpec::new("test", kind, insns)), maps)
}

fn program(text: &str) -> Program {
    load(text).expect("the test's program is well-formed")
}

/// Runs over one packet of 60 bytes.
fn run(program: &Program) -> Result<u64, (usize, FaultKind)> {
    let mut burst = Burst::new(1);
    burst.push(&[7; 60], FrameMeta::default()).expect("there is room");
    let exit = program.run_raw(&mut burst.frame_mut(0), &mut Host::default());
    exit.map_err(|fault| (fault.slot, fault.kind))
}

fn fault(text: &str) -> (usize, FaultKind) {
    run(&program(text)).expect_err("the program is stopped")
}

#[track_caller]
fn assert_out_of_bounds(text: &str, at: usize, access: Access, near: &FaultAddress) {
    match fault(text) {
        (slot, FaultKind::OutOfBounds { access: found, near: place, .. }) => {
            assert_eq!((slot, found, &place), (at, access, near));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_read_past_the_packet_is_told_by_its_offset() {
    let near = FaultAddress::Packet { offset: 57, len: 60 };
    assert_out_of_bounds("r2 = *(u32 *)(r1 + 0)\n r0 = *(u32 *)(r2 + 57)\n exit", 1, Access::Read, &near);
    assert_eq!(run(&program("r2 = *(u32 *)(r1 + 0)\n r0 = *(u32 *)(r2 + 56)\n exit")), Ok(0x0707_0707));
}

#[test]
fn a_write_before_the_packet_is_stopped() {
    let near = FaultAddress::Packet { offset: -1, len: 60 };
    assert_out_of_bounds(
        "r2 = *(u32 *)(r1 + 0)\n *(u8 *)(r2 - 1) = 0\n r0 = 0\n exit",
        1,
        Access::Write,
        &near,
    );
}

#[test]
fn the_stack_is_512_bytes_and_zero() {
    assert_eq!(run(&program("r0 = *(u64 *)(r10 - 512)\n exit")), Ok(0));
    let near = FaultAddress::Stack { offset: -520 };
    assert_out_of_bounds("r0 = *(u64 *)(r10 - 520)\n exit", 0, Access::Read, &near);
    assert_out_of_bounds("r0 = *(u8 *)(r10 + 0)\n exit", 0, Access::Read, &FaultAddress::Stack { offset: 0 });
}

#[test]
fn a_stack_frame_is_zero_again_when_it_is_entered_again() {
    let text = "call f\n call f\n exit\n f: r0 = *(u64 *)(r10 - 8)\n *(u64 *)(r10 - 8) = 1\n exit";
    assert_eq!(run(&program(text)), Ok(0));
}

#[test]
fn a_lookup_that_found_nothing_is_told_as_null() {
    let text = "*(u32 *)(r10 - 4) = 1\n r1 = map[hits] ll\n r2 = r10\n r2 += -4\n\
                call bpf_map_lookup_elem\n r0 = *(u64 *)(r0 + 0)\n exit";
    assert_out_of_bounds(text, 6, Access::Read, &FaultAddress::Null);
}

#[test]
fn a_value_ends_where_it_ends() {
    let text = |at: &str| {
        format!(
            "*(u32 *)(r10 - 4) = 0\n r1 = map[hits] ll\n r2 = r10\n r2 += -4\n\
             call bpf_map_lookup_elem\n r1 = *(u64 *)(r0 {at})\n r0 = r1\n exit"
        )
    };
    assert_eq!(run(&program(&text("+ 0"))), Ok(0));
    assert!(matches!(fault(&text("+ 1")), (6, FaultKind::OutOfBounds { .. })));
}

#[test]
fn a_map_itself_is_no_memory() {
    let near = FaultAddress::Map { name: "hits".to_owned() };
    assert_out_of_bounds("r1 = map[hits] ll\n r0 = *(u64 *)(r1 + 40)\n exit", 2, Access::Read, &near);
}

#[test]
fn a_read_only_map_is_not_written() {
    let near = FaultAddress::MapValue { name: "config".to_owned() };
    let text = "r1 = map_value[config] + 0 ll\n *(u64 *)(r1 + 0) = 1\n r0 = 0\n exit";
    assert_out_of_bounds(text, 2, Access::Write, &near);
    let text = "*(u64 *)(r10 - 8) = 0\n r1 = map[config] ll\n r2 = r10\n r2 += -4\n r3 = r10\n r3 += -8\n r4 = 0\n\
                call bpf_map_update_elem\n exit";
    match fault(text) {
        (8, FaultKind::Argument { helper: "bpf_map_update_elem", register: 1, .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn context_fields_are_read_whole_and_never_written() {
    for text in
        ["r0 = *(u16 *)(r1 + 0)\n exit", "r0 = *(u64 *)(r1 + 0)\n exit", "r0 = *(u32 *)(r1 + 20)\n exit"]
    {
        assert!(matches!(fault(text), (0, FaultKind::Context { access: Access::Read, .. })), "{text}");
    }
    let text = "*(u32 *)(r1 + 16) = 1\n r0 = 0\n exit";
    assert!(matches!(fault(text), (0, FaultKind::Context { access: Access::Write, .. })));
}

/// `struct __sk_buff` is larger than a frame, which a map's value may follow in memory.
#[test]
fn no_memory_has_an_address_of_the_context() {
    let program = load_as(ProgramKind::SchedCls, "r0 = *(u32 *)(r1 + 188)\n exit");
    let program = program.expect("the test's program is well-formed");
    let mut burst = Burst::new(1);
    burst.push(&[7; 60], FrameMeta::default()).expect("there is room");
    let mut context = 0;
    let exit = program.run_observed(&mut burst.frame_mut(0), &mut Host::default(), |observed| {
        context = observed.registers[1];
        assert_eq!((observed.context(), observed.location(context + 188)), (context, Location::Context(188)));
    });
    assert!(exit.is_err(), "padding is not read");
    assert!(context.leading_ones() >= 16, "{context:#x} is not the kernel's half of the address space");
}

#[test]
fn helper_arguments_are_checked_before_the_helper_sees_them() {
    let argument = |text: &str| match fault(text) {
        (_, FaultKind::Argument { register, .. }) => register,
        other => panic!("{other:?}"),
    };
    assert_eq!(argument("r1 = 7\n r2 = 0\n call bpf_xdp_adjust_head\n exit"), 1);
    assert_eq!(argument("r1 = 7\n r2 = r10\n call bpf_map_lookup_elem\n exit"), 1);
    assert_eq!(argument("r1 = r10\n r1 += -8\n r2 = 0\n call bpf_trace_printk\n exit"), 2);
    let key = "r1 = map[hits] ll\n r2 = r10\n r2 += -3\n call bpf_map_lookup_elem\n exit";
    assert!(matches!(fault(key), (4, FaultKind::OutOfBounds { len: 4, .. })));
}

#[test]
fn what_loops_for_ever_is_stopped() {
    let program = program("r0 = 0\n again: goto again\n exit").with_budget(1000);
    assert_eq!(run(&program), Err((1, FaultKind::Budget(1000))));
}

#[test]
fn recursion_is_stopped_at_the_ninth_function() {
    assert_eq!(fault("f: call f\n exit"), (0, FaultKind::CallDepth(8)));
}

#[test]
fn an_atomic_operation_needs_its_alignment() {
    let text = "r2 = 1\n lock *(u64 *)(r10 - 12) += r2\n r0 = 0\n exit";
    assert_eq!(fault(text), (1, FaultKind::Misaligned { len: 8 }));
}

#[test]
fn what_cannot_run_is_refused_before_it_runs() {
    let refused = |text: &str| load(text).expect_err("the program is refused");
    assert!(matches!(refused("r0 = 0"), MalformedProgram::NoEnd { slot: 0 }));
    assert!(matches!(refused("goto +5\n exit"), MalformedProgram::JumpTarget { slot: 0, target: 6 }));
    assert!(matches!(refused("goto +1\n r1 = 0 ll\n exit"), MalformedProgram::JumpTarget { target: 2, .. }));
    assert!(matches!(refused("r10 += 1\n exit"), MalformedProgram::WritesFramePointer { slot: 0 }));
    assert!(matches!(refused("call bpf_skb_vlan_push\n exit"), MalformedProgram::UnsupportedHelper { .. }));
    assert!(matches!(refused("r0 = *(u16 *)skb[12]\n exit"), MalformedProgram::UnsupportedInsn { .. }));
}

#[test]
fn a_burst_stops_at_the_packet_at_fault_and_keeps_the_verdicts_before_it() {
    let text = "r2 = *(u32 *)(r1 + 0)\n r0 = *(u8 *)(r2 + 20)\n exit";
    let mut burst = Burst::default();
    for packet in [&[1; 30][..], &[2; 30], &[3; 20], &[4; 30]] {
        burst.push(packet, FrameMeta::default()).expect("there is room");
    }
    let fault =
        program(text).run_burst(&mut burst, &mut Host::default()).expect_err("the third is too short");
    assert_eq!(fault.index, 2);
    assert_eq!(burst.frame(0).verdict(), Verdict::Drop);
    assert_eq!(burst.frame(1).verdict(), Verdict::Pass);
}

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no test panics with it").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs `bpf_trace_printk` with a format of at most 16 bytes; gives what it returned and what it wrote.
fn trace(format: &str, args: [i32; 3]) -> (i64, String) {
    let mut bytes = [0; 16];
    bytes[..format.len()].copy_from_slice(format.as_bytes());
    let word = |at: usize| i64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let text = format!(
        "r1 = {} ll\n *(u64 *)(r10 - 16) = r1\n r1 = {} ll\n *(u64 *)(r10 - 8) = r1\n\
         r1 = r10\n r1 += -16\n r2 = 16\n r3 = {}\n r4 = {}\n r5 = {}\n call bpf_trace_printk\n exit",
        word(0),
        word(8),
        args[0],
        args[1],
        args[2],
    );
    let (sink, mut host) = (Sink::default(), Host::default());
    host.set_trace(sink.clone());
    let mut burst = Burst::new(1);
    burst.push(&[0; 60], FrameMeta::default()).expect("there is room");
    let exit = program(&text).run_raw(&mut burst.frame_mut(0), &mut host).expect("the program may do that");
    let written = sink.0.lock().expect("no test panics with it").clone();
    (exit as i64, String::from_utf8(written).expect("traces are text"))
}

#[test]
fn traces_are_formatted_as_the_kernel_does() {
    assert_eq!(trace("%d %u %x", [-1, -1, -1]), (22, "-1 4294967295 ffffffff\n".to_owned()));
    assert_eq!(trace("%lld|%5d|%-3d", [-1, 7, 7]), (12, "-1|    7|7  \n".to_owned()));
    assert_eq!(trace("%05d %c %%\n", [42, 65, 0]), (10, "00042 A %\n".to_owned()));
    for refused in ["%d %d %d %d", "%f", "%", "\u{1b}[m", "%pZ"] {
        assert_eq!(trace(refused, [0; 3]), (-22, String::new()), "{refused:?}");
    }
}

#[test]
fn may_goto_goes_on_as_often_as_it_may() {
    let text = "r0 = 0
        again: may_goto out
        r0 += 1
        goto again
        out: exit";
    let rounds = u64::from(paceline_spec::MAX_LOOPS);
    assert_eq!(run(&program(text).with_budget(3 * rounds + 3)), Ok(rounds));
    assert_eq!(run(&program(text).with_budget(1000)), Err((1, FaultKind::Budget(1000))));
}

#[test]
fn callbacks_are_functions_and_do_not_go_deeper_than_calls() {
    let callback = "r1 = 1
        r2 = 7777
        r3 = 0
        r4 = 0
        call bpf_loop
        exit";
    assert!(matches!(fault(callback), (4, FaultKind::Argument { register: 2, .. })));
    let recursion = "r1 = 1
        r2 = subprog[deeper] ll
        r3 = 0
        r4 = 0
        deeper: r1 = 1
        r2 = subprog[deeper] ll
        r3 = 0
        r4 = 0
        call bpf_loop
        exit";
    assert!(matches!(fault(recursion), (_, FaultKind::CallDepth(8))));
}
