//! Number of simulated instructions of programs, here and in the kernel: a loop, the examples, Debian's objects, and the
//! samples and self-tests of its `linux-source`, compiled here.

use std::path::{Path, PathBuf};

use paceline::Object;
use paceline_btf::Btf;
use paceline_isa::assemble;
use paceline_spec::{MapSpec, ProgramKind, ProgramSpec, XdpAttach};
use paceline_testkit::kernel::{self, KernelObject, LoadOptions};
use paceline_verifier::{Options, verify};

/// Maximum of our simulated instructions in percent of the kernel's, for one program, and for all together.
const MOST: u64 = 150;
const MOST_OF_ALL: u64 = 110;

fn objects() -> Vec<PathBuf> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folders = [examples, PathBuf::from("/usr/lib/x86_64-linux-gnu/bpf")];
    let entries = folders.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    match paceline_testkit::sources::build(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(built) => found.extend(built.objects),
        Err(reason) => paceline_testkit::skip("the kernel's samples", &reason),
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "o"));
    found
}

/// Simulated instructions here and in the kernel, if both accept the program.
fn simulated(program: &ProgramSpec, maps: &[MapSpec], btf: Option<&Btf>) -> Option<(u64, u64)> {
    let ours = verify(program, maps, btf, &Options::default()).ok()?;
    let options = LoadOptions { btf, leave_out_types: true, ..LoadOptions::default() };
    let (stats, _) = KernelObject::verify_timed(maps, program, options, 1).ok()?;
    Some((ours.stats().instructions as u64, stats.instructions))
}

/// `combinations` of the kernel's `loop4.c`: an imprecise choice in each of 20 iterations. Checkpoints of earlier iterations
/// must be dropped in favor of later ones.
const CHOICES: &str = "w2 = 0
    w3 = 0
    goto +5
    w0 |= w3
    w2 += 1
    w3 = w0
    if w2 != 20 goto +1
    exit
    r4 = *(u32 *)(r1 + 12)
    w0 = 0
    if w4 == 0 goto -8
    w0 = 1
    w0 <<= w2
    goto -11";

#[test]
fn a_loop_of_choices_takes_no_more_instructions_than_in_the_kernel() {
    if !kernel::available_for("verification") {
        return;
    }
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let insns = assemble(CHOICES, &()).expect("the text is right").encode().expect("it has a form");
    let (here, there) =
        simulated(&ProgramSpec::new("choices", kind, insns), &[], None).expect("both accept it");
    assert!(here * 100 <= there * MOST_OF_ALL, "{here}, by the kernel {there}");
}

#[test]
fn programs_take_no_more_instructions_than_in_the_kernel() {
    if !kernel::available_for("verification") {
        return;
    }
    let (mut ours, mut kernels, mut long) = (0, 0, Vec::new());
    for path in objects() {
        let Ok(object) = Object::open(&path) else { continue };
        for program in object.programs() {
            let Some((here, there)) = simulated(program, object.maps(), object.btf()) else {
                continue;
            };
            (ours, kernels) = (ours + here, kernels + there);
            if here * 100 > there * MOST {
                long.push(format!("{}:{}: {here}, by the kernel {there}", path.display(), program.name));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
    assert!(ours * 100 <= kernels * MOST_OF_ALL, "{ours} together, by the kernel {kernels}");
}
