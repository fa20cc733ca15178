//! Compilers and their commands.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use fastrand::Rng;

/// Versions of clang to look for: an old one, one in between, and the newest in Debian.
const VERSIONS: [u32; 3] = [14, 16, 19];
/// The first version that supports version 4 of the instruction set.
const FIRST_WITH_V4: u32 = 18;

/// A compiler with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// Version of clang.
    pub version: u32,
    /// Version of the instruction set (`-mcpu`).
    pub cpu: u8,
    /// Optimization level.
    pub level: u8,
}

/// The installed versions, without instruction set and level.
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
    /// The compiler of a seed, among these versions; `None` if there are none.
    #[must_use]
    pub fn of_seed(seed: u64, versions: &[u32]) -> Option<Self> {
        let mut rng = Rng::with_seed(seed ^ 0x636c_616e);
        let version = *rng.choice(versions)?;
        let last = if version >= FIRST_WITH_V4 { 4 } else { 3 };
        let cpu = rng.choice(1..=last)?;
        Some(Self { version, cpu, level: rng.u8(1..=2) })
    }

    /// Whether its assembler supports `if r1 & 1 goto`.
    pub(super) fn reads_jset(self) -> bool {
        self.version >= 19
    }

    /// Whether it supports small structures as arguments.
    pub(super) fn passes_structs(self) -> bool {
        self.version >= 16
    }

    /// Compiles a file.
    ///
    /// # Errors
    /// The compiler's message.
    pub fn compile(&self, source: &Path, object: &Path) -> Result<(), String> {
        let mut command = Command::new(format!("clang-{}", self.version));
        command.args(self.to_string().split_whitespace().skip(1)).arg(source).arg("-o").arg(object);
        let output = command.stdin(Stdio::null()).output().map_err(|error| paceline::with_causes(&error))?;
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// The command without files.
impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clang-{} -target bpf -mcpu=v{} -O{} -g -w -c", self.version, self.cpu, self.level)
    }
}
