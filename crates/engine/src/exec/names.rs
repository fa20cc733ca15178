//! Export of the names of generated code to other tools.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::{env, io};

use thiserror::Error;

use crate::exec::code::Function;
use crate::exec::registry::{self, Installed};
use crate::exec::sync::lock;

mod dwarf;
mod elf;
mod gdb;
mod jitdump;
mod perf_map;

/// The environment variable that [`JitSymbols::from_env`] reads.
pub const NAMES_VARIABLE: &str = "PACELINE_JIT_NAMES";

/// The tools to export symbols to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JitSymbols {
    /// `/tmp/perf-PID.map` for `perf report`. Entries remain after code is freed, until other code reuses its addresses. Covers
    /// arenas that are created after the announcement, because only their memory is mapped such that `perf` uses the file for it.
    pub perf_map: bool,
    /// Folder for `jit-PID.dump`, with code and source lines, for `perf inject --jit`. Requires `perf record -k mono`.
    pub jitdump: Option<PathBuf>,
    /// The JIT interface of `gdb` and `lldb`, with symbols and source lines. Breakpoints in generated code must be hardware
    /// breakpoints (`hbreak`): even a debugger cannot write the code.
    pub gdb: bool,
}

/// An unknown word in the environment variable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{NAMES_VARIABLE}: unknown {word:?}; known are perf-map, jitdump and gdb, separated by commas")]
pub struct JitSymbolsError {
    /// The word.
    pub word: String,
}

impl JitSymbols {
    /// Parses `PACELINE_JIT_NAMES`: `perf-map`, `jitdump` and `gdb`, separated by commas; nothing if it is unset. The folder for
    /// jitdump is `JITDUMPDIR`, as for LLVM, or else the current one.
    ///
    /// # Errors
    /// [`JitSymbolsError`] for unknown words.
    pub fn from_env() -> Result<Self, JitSymbolsError> {
        // default: nothing is asked for.
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

    /// Exports all code that is installed from now on, in addition to earlier announcements. Call it first, before
    /// [`Arena::global`](crate::exec::Arena::global).
    ///
    /// A file that cannot be written later, because the disk is full, is silently abandoned: code runs without names.
    ///
    /// # Errors
    /// If a file cannot be created; the others are still written.
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

/// Whether a perf map was announced.
pub(crate) fn perf_map_announced() -> bool {
    lock(&SINKS).perf_map.is_some()
}

static SINKS: Mutex<Sinks> = Mutex::new(Sinks { perf_map: None, jitdump: None, gdb: false });

struct Sinks {
    perf_map: Option<perf_map::PerfMap>,
    jitdump: Option<jitdump::JitDump>,
    gdb: bool,
}

/// Registers code until it is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    code: Arc<Installed>,
    /// Released together with the registration.
    _gdb: Option<gdb::Entry>,
}

impl Registration {
    /// Registers code; `None` if it has no functions.
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

    /// The functions of the code.
    pub(crate) fn functions(&self) -> &[Function] {
        &self.code.functions
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        registry::remove(&self.code);
    }
}
