//! Telling other tools what generated code is called.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::{env, io};

use thiserror::Error;

use crate::code::Function;
use crate::registry::{self, Installed};
use crate::sync::lock;

mod dwarf;
mod elf;
mod gdb;
mod jitdump;
mod perf_map;

/// The environment variable that [`JitSymbols::from_env`] reads.
pub const NAMES_VARIABLE: &str = "PACELINE_JIT_NAMES";

/// Whom to tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JitSymbols {
    /// `/tmp/perf-PID.map` for `perf report`. Lines stay after code is freed, until other code gets its place. For
    /// arenas that are made after the announcement: `perf` looks there for no other memory than theirs.
    pub perf_map: bool,
    /// A folder for `jit-PID.dump`, with code and source lines, for `perf inject --jit`. Record with `perf record -k
    /// mono`.
    pub jitdump: Option<PathBuf>,
    /// The JIT interface of `gdb` and `lldb`, with symbols and source lines. Breakpoints in generated code are those
    /// of the hardware (`hbreak`): the code cannot be written, not even by a debugger.
    pub gdb: bool,
}

/// A word in the environment that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{NAMES_VARIABLE}: unknown {word:?}; known are perf-map, jitdump and gdb, separated by commas")]
pub struct JitSymbolsError {
    /// The word.
    pub word: String,
}

impl JitSymbols {
    /// As `PACELINE_JIT_NAMES` says: `perf-map`, `jitdump` and `gdb`, separated by commas; nothing if it is not set.
    /// The folder for jitdump is `JITDUMPDIR`, as for LLVM, or else the current one.
    ///
    /// # Errors
    /// [`JitSymbolsError`] for any other word.
    pub fn from_env() -> Result<Self, JitSymbolsError> {
        let words = env::var_os(NAMES_VARIABLE).unwrap_or_default();
        let folder = env::var_os("JITDUMPDIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
        let mut names = Self::default();
        for word in words.to_string_lossy().split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "perf-map" => names.perf_map = true,
                "jitdump" => names.jitdump = Some(folder.clone()),
                "gdb" => names.gdb = true,
                _ => return Err(JitSymbolsError { word: word.to_owned() }),
            }
        }
        Ok(names)
    }

    /// Announces what is installed from now on, in addition to what was asked for before. Call it first, before
    /// [`Arena::global`](crate::Arena::global).
    ///
    /// A file that cannot be written later, because the disk is full, is given up silently: code runs without names.
    ///
    /// # Errors
    /// If a file cannot be made; the others are still written.
    pub fn announce(&self) -> io::Result<()> {
        let mut sinks = lock(&SINKS);
        sinks.gdb |= self.gdb;
        let mut result = Ok(());
        if self.perf_map && sinks.perf_map.is_none() {
            result = perf_map::PerfMap::create().map(|map| sinks.perf_map = Some(map));
        }
        if let Some(folder) = &self.jitdump
            && sinks.jitdump.is_none()
        {
            let created = jitdump::JitDump::create(folder).map(|dump| sinks.jitdump = Some(dump));
            result = result.and(created);
        }
        result
    }
}

/// Whether somebody asked for a perf map.
pub(crate) fn perf_map_announced() -> bool {
    lock(&SINKS).perf_map.is_some()
}

static SINKS: Mutex<Sinks> = Mutex::new(Sinks { perf_map: None, jitdump: None, gdb: false });

struct Sinks {
    perf_map: Option<perf_map::PerfMap>,
    jitdump: Option<jitdump::JitDump>,
    gdb: bool,
}

/// Keeps code known until it is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    code: Arc<Installed>,
    /// Freed with the registration.
    _gdb: Option<gdb::Entry>,
}

impl Registration {
    /// Makes code known; `None` if it has no functions.
    pub(crate) fn new(code: Installed, bytes: &[u8]) -> Option<Self> {
        if code.functions.is_empty() {
            return None;
        }
        let code = Arc::new(code);
        registry::insert(&code);
        let mut sinks = lock(&SINKS);
        if let Some(map) = &mut sinks.perf_map
            && map.installed(&code).is_err()
        {
            sinks.perf_map = None;
        }
        if let Some(dump) = &mut sinks.jitdump
            && dump.installed(&code, bytes).is_err()
        {
            sinks.jitdump = None;
        }
        let gdb = sinks.gdb.then(|| gdb::Entry::new(elf::image(&code)));
        Some(Self { code, _gdb: gdb })
    }

    /// What the code is made of.
    pub(crate) fn functions(&self) -> &[Function] {
        &self.code.functions
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        registry::remove(&self.code);
    }
}
