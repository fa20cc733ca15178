//! Compilers, and how they are called.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use fastrand::Rng;

/// The compilers that are looked for: the oldest, one between and the newest that Debian has.
const VERSIONS: [u32; 3] = [14, 16, 19];
/// The first that knows version 4 of the instruction set.
const FIRST_WITH_V4: u32 = 18;

/// A compiler with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// Version of clang.
    pub version: u32,
    /// Version of the instruction set.
    pub cpu: u8,
    /// Level of optimization.
    pub level: u8,
}

/// Those there are, without versions and levels.
#[must_use]
pub fn compilers() -> &'static [u32] {
    static FOUND: OnceLock<Vec<u32>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let runs = |version: &u32| {
            let mut command = Command::new(format!("clang-{version}"));
            command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        VERSIONS.into_iter().filter(runs).collect()
    })
}

impl Compiler {
    /// The one of a seed, among the versions given; `None` without any.
    #[must_use]
    pub fn of_seed(seed: u64, versions: &[u32]) -> Option<Self> {
        let mut rng = Rng::with_seed(seed ^ 0x636c_616e);
        let version = *rng.choice(versions)?;
        let last = if version >= FIRST_WITH_V4 { 4 } else { 3 };
        let cpu = rng.choice(1..=last)?;
        Some(Self { version, cpu, level: rng.u8(1..=2) })
    }

    /// Whether its assembler knows `if r1 & 1 goto`.
    pub(super) fn reads_jset(self) -> bool {
        self.version >= 19
    }

    /// Whether small structures are arguments.
    pub(super) fn passes_structs(self) -> bool {
        self.version >= 16
    }

    /// Compiles a file.
    ///
    /// # Errors
    /// What the compiler says.
    pub fn compile(&self, source: &Path, object: &Path) -> Result<(), String> {
        let mut command = Command::new(format!("clang-{}", self.version));
        command.args(self.to_string().split_whitespace().skip(1)).arg(source).arg("-o").arg(object);
        let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// The command, without files.
impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clang-{} -target bpf -mcpu=v{} -O{} -g -w -c", self.version, self.cpu, self.level)
    }
}
