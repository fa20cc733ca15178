//! `doors`: random scenes through each command that runs packets, and through the kernel, Python and C, all of which must tell the same:
//!
//! ```sh
//! cargo build --release -p paceline-cli
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- doors examples --count 1000 --command target/release/paceline
//! ```
//!
//! Scene number n has seed `--seed` + n and about `--packets` packets. A difference is printed with its seed, and the exit status is 1.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use fastrand::Rng;
use paceline_testkit::doors::{Asked, Doors, Problem, Scene, Subject};
use paceline_testkit::object_runs::files_below;
use paceline_testkit::say;

use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Objects, or directories of them
    #[arg(required = true)]
    objects: Vec<PathBuf>,
    /// Seed of the first scene; the others follow
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Scenes
    #[arg(long, default_value_t = 100)]
    count: u64,
    /// Packets of a scene, at most
    #[arg(long, default_value_t = 100)]
    packets: usize,
    /// The command `paceline`
    #[arg(long, env = "PACELINE_COMMAND")]
    command: PathBuf,
    /// Ask the kernel too, which takes root
    #[arg(long)]
    kernel: bool,
    /// A Python that has the package, to ask it too
    #[arg(long)]
    python: Option<PathBuf>,
    /// The door in C, to ask it too: `cc crates/testkit/src/doors/door.c $(pkg-config --cflags --libs paceline)`
    #[arg(long)]
    c: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let start = Instant::now();
    let files = files_below(&options.objects, &["o", "elf"]);
    let subjects: Vec<_> = files.iter().flat_map(|path| Subject::of_object(path)).collect();
    if subjects.is_empty() {
        return Err("there are no objects with programs".to_owned());
    }
    let folder = tempfile::tempdir().map_err(|error| paceline::with_causes(&error))?;
    let asked = Asked {
        command: options.command.clone(),
        kernel: options.kernel,
        python: options.python.clone(),
        c: options.c.clone(),
    };
    let mut doors =
        Doors::new(asked, folder.path().to_owned()).map_err(|error| paceline::with_causes(&error))?;
    let (mut packets, mut refused, mut wrong) = (0, 0, 0);
    for seed in options.seed..options.seed.saturating_add(options.count) {
        let mut rng = Rng::with_seed(seed);
        let capture = folder.path().join("scene.pcapng");
        let scene = Scene::new(&mut rng, &subjects, options.packets, capture)
            .map_err(|error| paceline::with_causes(&error))?;
        match doors.differences(&scene) {
            Ok(differences) => {
                packets += scene.packets.len();
                wrong += differences.len();
                for difference in differences {
                    say!("seed {seed}: {}: {difference}", scene.subject.targets.join(" "));
                }
            }
            // A program that the command refuses has no outcome.
            Err(Problem::Failed { command, .. }) if command.starts_with("run ") => refused += 1,
            Err(problem) => {
                wrong += 1;
                say!("seed {seed}: {}: {problem}", scene.subject.targets.join(" "));
            }
        }
    }
    say!(
        "{} scenes from seed {}, {refused} refused, {} not loaded in another language: {packets} packets, {wrong} differences in {:.1} s",
        options.count,
        options.seed,
        doors.unloaded,
        start.elapsed().as_secs_f64()
    );
    if packets == 0 {
        return Err("no scene ran".to_owned());
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
