//! From object files to native code: compile time and code size (`code`).

use std::error::Error;

use paceline::{Engine, LoadOptions, Object, Program};
use paceline_spec::ProgramSpec;

use crate::measure::{Timing, Work, interleaved};
use crate::report::{Figure, Row, Unit};
use crate::settings::{Rows, Settings, Table};

/// Every example program.
pub(crate) fn table(settings: Settings) -> Table {
    if !Engine::Jit.is_available() {
        return Ok(Vec::new().into());
    }
    let mut rows = Vec::new();
    for file in crate::compile::examples()? {
        let object = Object::open(&file)?;
        for spec in object.programs() {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            rows.extend(of_program(settings, &format!("{name}: {}", spec.name), &object, spec)?);
        }
    }
    Ok(rows.into())
}

/// Rows of one program.
fn of_program(settings: Settings, name: &str, object: &Object, spec: &ProgramSpec) -> Rows {
    let measured = measure(settings, object, spec, None)?;
    let instructions = measured.instructions as f64;
    let per_instruction = |timing: Timing| timing.divided_by(instructions);
    let (kernel, kernel_bytes) = measured.kernel.unzip();
    let against = if kernel.is_some() { kernel_name() } else { String::new() };
    let row = |what: &str, against: &str, figure| Row::new(format!("{name}: {what}"), against, figure);
    let time = |ours, against: Option<Timing>| Figure::Time {
        ours: per_instruction(ours),
        against: against.map(per_instruction),
    };
    Ok(vec![
        row(
            &format!("verify and compile, each of {instructions} instructions"),
            &against,
            time(measured.load, kernel),
        ),
        row("compile alone, each instruction", "", time(measured.compile, None)),
        row(
            "native code",
            &against,
            Figure::Size { ours: measured.bytes, against: kernel_bytes, unit: Unit::Bytes },
        ),
    ])
}

/// Figures of one program.
pub(crate) struct Measured {
    /// Instructions of the program.
    pub(crate) instructions: usize,
    /// Time to verify and compile.
    pub(crate) load: Timing,
    /// Time to compile and place a verified program.
    pub(crate) compile: Timing,
    /// Size of the native code.
    pub(crate) bytes: u64,
    /// Time to load in the kernel, and the size of its native code.
    pub(crate) kernel: Option<(Timing, u64)>,
    /// Another implementation.
    pub(crate) other: Option<Timing>,
}

/// Measures a program, with another implementation in the same rounds.
pub(crate) fn measure<'a>(
    settings: Settings,
    object: &'a Object,
    spec: &'a ProgramSpec,
    other: Option<Work<'a>>,
) -> Result<Measured, Box<dyn Error>> {
    let collection = object.load(&LoadOptions::default())?;
    let maps = collection.maps();
    let verified = object.verify(spec)?;
    let program = Program::load(&verified, maps.to_vec(), Engine::Jit)?;
    let bytes = program.native_code().map_or(0, |code| code.bytes().len() as u64);
    #[cfg(feature = "kernel")]
    let loaded = crate::kernel::load(object)?;
    let mut works: Vec<Work<'_>> = vec![
        Box::new(|| Ok(Program::load(&object.verify(spec)?, maps.to_vec(), Engine::Jit).map(|_| 1)?)),
        Box::new(|| Ok(Program::load(&verified, maps.to_vec(), Engine::Jit).map(|_| 1)?)),
    ];
    let has_other = other.is_some();
    works.extend(other);
    #[cfg(feature = "kernel")]
    works.push(Box::new(|| Ok(paceline_testkit::kernel::Program::load(&loaded.request(spec)).map(|_| 1)?)));
    let times = interleaved(settings.smoke, &mut works)?;
    drop(works);
    #[cfg(feature = "kernel")]
    let kernel_bytes = {
        let program = paceline_testkit::kernel::Program::load(&loaded.request(spec))?;
        Some(u64::from(program.lengths()?.native))
    };
    #[cfg(not(feature = "kernel"))]
    let kernel_bytes: Option<u64> = None;
    let after_other = times.get(2 + usize::from(has_other)).copied();
    Ok(Measured {
        instructions: verified.code().iter().count(),
        load: times[0],
        compile: times[1],
        bytes,
        kernel: after_other.zip(kernel_bytes),
        other: has_other.then(|| times[2]),
    })
}

/// The kernel, as a target for loading.
pub(crate) fn kernel_name() -> String {
    format!("Linux {}", crate::machine::kernel())
}
