//! Compares for each helper which program types may call it with the kernel.

use paceline_isa::{Callee, Insn, encode_all};
use paceline_spec::helper::Helper;
use paceline_spec::{ProgramKind, XdpAttach};
use paceline_testkit::kernel::{Program, Request, available_for};

const KINDS: [ProgramKind; 3] = [
    ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false },
    ProgramKind::SocketFilter,
    ProgramKind::SchedCls,
];

/// The kernel's log for a program that calls a helper; the kernel checks availability before arguments.
fn log(kind: ProgramKind, helper: &Helper, license: &str) -> String {
    let insns = [Insn::Call(Callee::Helper(helper.id as i32)), Insn::Exit];
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
    for kind in KINDS {
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
