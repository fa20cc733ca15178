//! Compares with the kernel which program types may call each helper and kernel function, and which helpers take packet memory.

use paceline_isa::{Callee, Insn, encode_all};
use paceline_spec::helper::Helper;
use paceline_spec::kfunc::{Kfunc, KfuncArg};
use paceline_spec::{KfuncRef, ProgramKind};
use paceline_testkit::case::parse_file;
use paceline_testkit::kernel::{FIND_FUNCTION, Program, Request, available_for};

/// The kernel's log for a program that calls a helper; the kernel checks availability before arguments.
fn log(kind: ProgramKind, helper: &Helper, license: &str) -> String {
    let insns = [Insn::Call(Callee::Helper(helper.id.imm())), Insn::Exit];
    let slots = encode_all(&insns).expect("good instructions");
    let request = Request { kind, license, ..Request::xdp(&slots) };
    Program::load(&request).map_or_else(|error| error.log, |_| String::new())
}

fn names(wanted: impl Fn(&Helper) -> bool) -> Vec<&'static str> {
    Helper::all().iter().filter(|helper| wanted(helper)).map(|helper| helper.name).collect()
}

fn in_kernel(kind: ProgramKind, helper: &Helper) -> bool {
    !log(kind, helper, "GPL").contains("program of this type cannot use helper")
}

/// Kernels may be built without some helpers, so that additional ones in our lists are printed and not counted.
#[test]
fn helpers_are_for_the_programs_that_the_kernel_has_them_for() {
    if !available_for("the availability of helpers") {
        return;
    }
    for &kind in ProgramKind::ALL {
        let name = kind.rules().name;
        let missing = names(|helper| !helper.is_for(kind) && in_kernel(kind, helper));
        let beyond = names(|helper| helper.is_for(kind) && !in_kernel(kind, helper));
        eprintln!("{name}: not in this kernel: {beyond:?}");
        assert_eq!(missing, [""; 0], "{name}: missing in the table");
        let is_gpl = |helper: &Helper| log(kind, helper, "Proprietary").contains("GPL");
        let differing = names(|helper| in_kernel(kind, helper) && is_gpl(helper) != helper.is_gpl_only());
        assert_eq!(differing, [""; 0], "{name}: for programs under the GPL only, or not");
    }
}

/// The kernel's log for a program that calls a kernel function; `None` if the kernel does not have it. The kernel checks the
/// type of the program before arguments.
fn kfunc_log(kind: ProgramKind, kfunc: &Kfunc) -> Option<String> {
    let slots = encode_all(&[Insn::Call(Callee::Kfunc { btf_id: 0, module: 0 }), Insn::Exit])
        .expect("good instructions");
    let kfuncs = [KfuncRef { name: kfunc.name.to_owned(), weak: false, btf_id: 0, converted: false }];
    let request = Request { kind, kfuncs: &kfuncs, ..Request::xdp(&slots) };
    match Program::load(&request) {
        Err(error) if error.operation == FIND_FUNCTION => None,
        Err(error) => Some(error.log),
        Ok(_) => Some(String::new()),
    }
}

/// The kernel has it for all types; here it is for XDP programs, whose `xdp_buff` is the only context with known fields.
const OF_ALL: &str = "bpf_cast_to_kern_ctx";

#[test]
fn kernel_functions_are_for_the_programs_that_the_kernel_has_them_for() {
    if !available_for("the availability of kernel functions") {
        return;
    }
    let mut compared = 0;
    for &kind in ProgramKind::ALL {
        for kfunc in Kfunc::all().iter().filter(|kfunc| kfunc.name != OF_ALL) {
            let Some(log) = kfunc_log(kind, kfunc) else { continue };
            // Those of a device's metadata are refused before the type is looked at.
            if log.contains("require device-bound program") {
                continue;
            }
            // One for another context is registered for the type, but no program of it can call it.
            let takes_context = kfunc.args.first() == Some(&KfuncArg::Context);
            let misfits = ["must point to scalar, or struct", "R1 type=ctx expected="];
            let misfit = takes_context && misfits.iter().any(|text| log.contains(text));
            let is_for = !log.contains("is not allowed") && !misfit;
            assert_eq!(kfunc.is_for(kind), is_for, "{} in {}: {log}", kfunc.name, kind.rules().name);
            compared += 1;
        }
    }
    eprintln!("compared {compared} pairs of a kernel function and a type");
    assert!(compared > 0, "this kernel has none of the kernel functions");
}

/// A program that calls a helper with a pointer to bytes of the packet, which are there, in every argument.
fn with_packet(kind: &str, data: u32, helper: &Helper) -> String {
    format!(
        "# Packet memory in every argument.\ncase: packet\ntype: {kind}\nprogram:
    r2 = *(u32 *)(r1 + {data})
    r3 = *(u32 *)(r1 + {})
    r4 = r2
    r4 += 64
    if r4 > r3 goto out
    r1 = r2
    r3 = r2
    r4 = r2
    r5 = r2
    call {}
out:
    r0 = 0
    exit
r0: 0
",
        data + 4,
        helper.name
    )
}

/// Whether the kernel lets a helper take packet memory (`pkt_access` of its prototype, in `check_func_arg`); `None` where it does not
/// get to such an argument.
fn takes_packet(kind: &str, data: u32, helper: &Helper) -> Option<bool> {
    let cases = parse_file(&with_packet(kind, data, helper)).expect("a good case");
    let spec = &cases[0].programs[0];
    let log = Program::load(&Request { kind: spec.kind, ..Request::xdp(&spec.insns) }).err()?.log;
    let refused = log.contains("helper access to the packet is not allowed");
    (refused || log.contains("type=pkt expected=")).then_some(!refused)
}

#[test]
fn helpers_take_packet_memory_where_the_kernel_lets_them() {
    if !available_for("the packet memory of helpers") {
        return;
    }
    let mut compared = 0;
    for (kind, data) in [("xdp", 0), ("sched_cls", 76)] {
        for helper in Helper::all() {
            let Some(taken) = takes_packet(kind, data, helper) else { continue };
            assert_eq!(helper.takes_packet_memory(), taken, "{} in {kind}", helper.name);
            compared += 1;
        }
    }
    eprintln!("compared {compared} pairs of a helper and a type");
    assert!(compared > 50, "only {compared} pairs of a helper and a type were compared");
}
