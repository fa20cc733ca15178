//! How many instructions are simulated to verify whole programs, here and in the kernel: the examples, Debian's objects, and
//! the samples and tests of its `linux-source`, compiled here.

use std::path::{Path, PathBuf};

use paceline::Object;
use paceline_spec::ProgramSpec;
use paceline_testkit::kernel::{self, KernelObject, LoadOptions};
use paceline_verifier::{Options, verify};

/// Most of the kernel's instructions that one program may take here, in percent, and all together.
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

/// Instructions simulated here and by the kernel, if both accept the program.
fn simulated(object: &Object, program: &ProgramSpec) -> Option<(u64, u64)> {
    let ours = verify(program, &object.maps, object.btf.as_deref(), &Options::default()).ok()?;
    let options = LoadOptions { btf: object.btf.as_deref(), leave_out_types: true, ..LoadOptions::default() };
    let (stats, _) = KernelObject::verify_timed(&object.maps, program, options, 1).ok()?;
    Some((ours.stats().instructions as u64, stats.instructions))
}

#[test]
fn programs_take_no_more_instructions_than_in_the_kernel() {
    if !kernel::available_for("verification") {
        return;
    }
    let (mut ours, mut kernels, mut long) = (0, 0, Vec::new());
    for path in objects() {
        let Ok(object) = Object::open(&path) else { continue };
        for program in &object.programs {
            let Some((here, there)) = simulated(&object, program) else { continue };
            (ours, kernels) = (ours + here, kernels + there);
            if here * 100 > there * MOST {
                long.push(format!("{}:{}: {here}, by the kernel {there}", path.display(), program.name));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
    assert!(ours * 100 <= kernels * MOST_OF_ALL, "{ours} together, by the kernel {kernels}");
}
