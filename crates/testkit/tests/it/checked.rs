//! Checked code: what cases and campaigns do not ask of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use paceline::isa::assemble;
use paceline::{
    Burst, FaultKind, FrameMeta, Host, Limits, Map, MapKind, MapSpec, ProgramKind, ProgramSpec, Verdict,
    XdpAttach,
};
use paceline_testkit::checked::{self, CheckedMemory};
use paceline_testkit::{skip, text};

fn is_available(test: &str) -> bool {
    if !checked::is_available() {
        skip(test, &"checked code is for x86-64");
    }
    checked::is_available()
}

fn burst() -> Burst {
    let mut burst = Burst::new(2);
    (0..2).for_each(|_| burst.push(&[0; 60], FrameMeta::default()).expect("there is room"));
    burst
}

fn made(spec: &MapSpec, cpus: usize) -> Vec<Arc<Map>> {
    vec![Map::create(spec, &Limits { cpus, memory: 1 << 20 }).expect("is made")]
}

fn raw(text: &str) -> Arc<ProgramSpec> {
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let insns = assemble(text, &()).expect("assembles").encode().expect("encodes");
    Arc::new(ProgramSpec::new("raw", kind, insns))
}

#[test]
fn a_cpu_that_a_map_lacks_aborts_all_packets() {
    if !is_available("a_cpu_that_a_map_lacks_aborts_all_packets") {
        return;
    }
    let spec = MapSpec::new("counts", MapKind::PerCpuArray, 4, 8, 1);
    let program = "*(u32 *)(r10 - 4) = 0\nr1 = map[counts] ll\nr2 = r10\nr2 += -4\ncall bpf_map_lookup_elem\n\
                   r0 = 2\nexit";
    let verified = text::verified(program, XdpAttach::Interface, &made(&spec, 1)).expect("is accepted");
    let program = checked::load(&verified, made(&spec, 1)).expect("loads");
    program.run_burst(&mut burst(), &mut Host::new(0)).expect("CPU 0 has a value");
    let mut burst = burst();
    let fault = program.run_burst(&mut burst, &mut Host::new(1)).expect_err("CPU 1 has none");
    assert_eq!((fault.index, fault.fault.kind), (0, FaultKind::NoCpu(1)));
    assert!(burst.iter().all(|frame| frame.verdict() == Verdict::Aborted));
    let fault = program.run(&mut burst.frame_mut(0), &mut Host::new(1)).expect_err("CPU 1 has none");
    assert_eq!(fault.kind, FaultKind::NoCpu(1));
}

/// Neither the host's registers nor a call's leftovers are to be seen.
#[test]
fn registers_that_a_raw_program_never_set_are_zero() {
    if !is_available("registers_that_a_raw_program_never_set_are_zero") {
        return;
    }
    let one = |number: u8| {
        [format!("r0 = r{number}\nexit"), format!("r{number} += 1\nr0 = r{number}\nr0 -= 1\nexit")]
    };
    let entry = [0, 3, 4, 5, 6, 7, 8, 9].into_iter().flat_map(one);
    let after = (1..=5).flat_map(|number| {
        let set = "r1 = 1\nr2 = 2\nr3 = 3\nr4 = 4\nr5 = 5\n";
        let helper = format!("{set}call 8\nr0 = r{number}\nexit");
        [helper, format!("{set}call pc+2\nr0 = r{number}\nexit\nr{number} = 9\nr0 = 0\nexit")]
    });
    for text in entry.chain(after) {
        let program = CheckedMemory::new(raw(&text), Vec::new()).expect("is compiled");
        assert_eq!(program.run(&mut [], &mut Host::new(0)).map(|exit| exit.r0), Ok(0), "{text}");
    }
}

#[test]
fn raw_programs_know_their_memory() {
    if !is_available("raw_programs_know_their_memory") {
        return;
    }
    let program =
        CheckedMemory::new(raw("r0 = *(u8 *)(r1 + 3)\nr0 += r2\nexit"), Vec::new()).expect("is compiled");
    let ran = program.run(&mut [1, 2, 3, 40], &mut Host::new(0));
    assert_eq!(ran.map(|exit| (exit.r0, exit.instructions)), Ok((44, 3)));
    assert!(program.run(&mut [1, 2, 3], &mut Host::new(0)).is_err(), "the fourth byte is not its own");
}

#[test]
fn records_of_a_program_that_fails_block_no_ring() {
    if !is_available("records_of_a_program_that_fails_block_no_ring") {
        return;
    }
    let ring = MapSpec::new("ring", MapKind::RingBuf, 0, 0, 4096);
    let reserve = "r1 = map[ring] ll\nr2 = 8\nr3 = 0\ncall bpf_ringbuf_reserve\n";
    let faults = format!("{reserve}r0 = *(u64 *)(r0 + 4096)\nr0 = 2\nexit");
    let forgets = format!("{reserve}r0 = 2\nexit");
    let submits = format!("{reserve}r1 = r0\nr2 = 0\ncall bpf_ringbuf_submit\nr0 = 2\nexit");
    let maps = made(&ring, 1);
    let specs = [ring];
    let load = |program: &str| {
        let spec = text::xdp(program, XdpAttach::Interface, &specs).expect("assembles");
        checked::load_unverified(Arc::new(spec), maps.clone()).expect("loads")
    };
    let mut host = Host::new(0);
    let mut one = Burst::new(1);
    one.push(&[0; 60], FrameMeta::default()).expect("there is room");
    assert!(load(&faults).run_burst(&mut one, &mut host).is_err());
    assert!(load(&forgets).run_burst(&mut one, &mut host).is_ok());
    assert!(load(&submits).run_burst(&mut one, &mut host).is_ok());
    let ring = maps[0].ring_buffer().expect("is one");
    assert_eq!((ring.consume(|_| {}), ring.available()), (1, 0), "the one that was submitted");
}

/// A writer that panics.
struct Panics;

impl std::io::Write for Panics {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        panic!("in the trace")
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_panic_of_a_callback_reaches_the_caller_alone() {
    if !is_available("a_panic_of_a_callback_reaches_the_caller_alone") {
        return;
    }
    let traces = "*(u64 *)(r10 - 8) = 97\nr1 = r10\nr1 += -8\nr2 = 8\ncall bpf_trace_printk\nr0 = 2\nexit";
    let verified = text::verified(traces, XdpAttach::Interface, &[]).expect("is accepted");
    let program = checked::load(&verified, Vec::new()).expect("loads");
    let mut host = Host::new(0);
    host.set_trace(Panics);
    let panic = catch_unwind(AssertUnwindSafe(|| program.run_burst(&mut burst(), &mut host)));
    assert_eq!(panic.expect_err("it panicked").downcast_ref(), Some(&"in the trace"));
    host.set_trace(std::io::sink());
    assert_eq!(program.run_burst(&mut burst(), &mut host), Ok(()));
}
