//! Native code that is longer than what arm64's branches and addresses reach (1 MiB): ahead, back, at the entry, and to functions.
#![cfg(all(target_arch = "aarch64", feature = "jit"))]

mod common;

use std::fmt::Write;

use paceline_engine::{Engine, FaultKind, Host, Program};
use paceline_frame::{Burst, FrameMeta};
use paceline_maps::{Limits, Map};
use paceline_spec::{MapKind, MapSpec};

use common::verified;

/// Atomic operations in the longest code.
const COUNT: u64 = 35_000;

/// The first byte of the packet decides what runs: the loop with the long code, or nothing of it.
fn text() -> String {
    let mut long = String::new();
    for at in 0..COUNT {
        let number = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(at + 1);
        writeln!(long, "r3 = {number:#x} ll\nlock *(u64 *)(r7 + 0) ^= r3").expect("is written");
    }
    format!(
        "
        r2 = *(u32 *)(r1 + 4)
        r1 = *(u32 *)(r1 + 0)
        r3 = r1
        r3 += 1
        if r3 <= r2 goto inside
    out:
        r0 = 0
        exit
    inside:
        r8 = *(u8 *)(r1 + 0)
        *(u32 *)(r10 - 4) = 0
        r1 = map[0] ll
        r2 = r10
        r2 += -4
        call bpf_map_lookup_elem
        if r0 == 0 goto out
        r7 = r0
        *(u64 *)(r7 + 0) = r8
        if r8 < 100 goto long
        gotol last
    long:
        r9 = 0
    again:
        {long}
        r9 += 1
        if r9 >= 2 goto ended
        if r8 == r9 goto ended
        gotol again
    ended:
        if r8 == 7 goto last
        *(u64 *)(r10 - 16) = r8
        r1 = 3
        r2 = subprog[callback] ll
        r3 = r10
        r3 += -16
        r4 = 0
        call bpf_loop
        r3 = *(u64 *)(r10 - 16)
        lock *(u64 *)(r7 + 0) += r3
        r1 = r7
        call twice
    last:
        r0 = *(u64 *)(r7 + 0)
        exit
    callback:
        r3 = *(u64 *)(r2 + 0)
        r3 += 10
        *(u64 *)(r2 + 0) = r3
        r0 = 0
        exit
    twice:
        r3 = *(u64 *)(r1 + 0)
        r3 += r3
        *(u64 *)(r1 + 0) = r3
        r0 = 0
        exit"
    )
}

#[test]
fn code_of_more_than_a_mebibyte_runs() {
    let spec = MapSpec::new("counts", MapKind::PerCpuArray, 4, 8, 1);
    let map = Map::create(&spec, &Limits { cpus: 2, memory: 1 << 20 }).expect("is made");
    let verified = verified(&text(), std::slice::from_ref(&spec));
    let load = |engine| Program::load(&verified, vec![map.clone()], engine).expect("loads");
    let (jit, threaded) = (load(Engine::Jit), load(Engine::Threaded));
    let code = jit.native_code().expect("is native code").bytes().len();
    assert!(code > 1 << 20, "{code}");
    let run = |program: &Program, first, cpu| {
        let mut burst = Burst::new(1);
        burst.push(&[first; 64], FrameMeta::default()).expect("fits");
        program.run_raw(&mut burst.frame_mut(0), &mut Host::new(cpu))
    };
    for first in [0, 1, 2, 7, 99, 100, 255] {
        let expected = run(&threaded, first, 1).expect("ends");
        assert_eq!(run(&jit, first, 1), Ok(expected), "{first}");
    }
    assert_eq!(run(&jit, 0, 2).expect_err("there are two CPUs").kind, FaultKind::NoCpu(2));
}
