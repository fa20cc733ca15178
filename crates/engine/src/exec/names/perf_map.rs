//! `/tmp/perf-PID.map`, in the format of the kernel's `tools/perf/Documentation/jit-interface.txt`: a line per function with
//! address, size (both hexadecimal) and name.
//!
//! The format has no time stamps. `perf report` reads the file after the process has exited, so entries of freed code remain; when
//! other code reuses the addresses, the old entries must be removed, and the file is replaced.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process;

use rustix::fs::OFlags;

use crate::exec::registry::Installed;

pub(super) struct PerfMap {
    path: PathBuf,
    file: File,
    /// Size and name by address.
    lines: BTreeMap<usize, (usize, String)>,
}

impl PerfMap {
    pub(super) fn create() -> io::Result<Self> {
        let path = PathBuf::from(format!("/tmp/perf-{}.map", process::id()));
        // default: usually there is none. Left by another process with this id, or planted by someone to redirect the writes.
        let _ = fs::remove_file(&path);
        Ok(Self { file: new_file(&path)?, path, lines: BTreeMap::new() })
    }

    pub(super) fn installed(&mut self, code: &Installed) -> io::Result<()> {
        let mut reused = false;
        let mut text = String::new();
        for function in &*code.functions {
            let start = code.range.start + function.start as usize;
            let end = start + function.len as usize;
            while let Some((&old, &(len, _))) = self.lines.range(..end).next_back()
                && old + len > start
            {
                self.lines.remove(&old);
                reused = true;
            }
            let name: String = function.name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            text += &line(start, end - start, &name);
            self.lines.insert(start, (end - start, name));
        }
        if reused { self.replace() } else { self.file.write_all(text.as_bytes()) }
    }

    fn replace(&mut self) -> io::Result<()> {
        let text: String = self.lines.iter().map(|(&start, (len, name))| line(start, *len, name)).collect();
        let beside = self.path.with_extension("map.new");
        // default: usually there is none.
        let _ = fs::remove_file(&beside);
        self.file = new_file(&beside)?;
        self.file.write_all(text.as_bytes())?;
        fs::rename(&beside, &self.path)
    }
}

fn new_file(path: &PathBuf) -> io::Result<File> {
    let no_follow = OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().append(true).create_new(true).mode(0o644).custom_flags(no_follow).open(path)
}

fn line(start: usize, len: usize, name: &str) -> String {
    format!("{start:x} {len:x} {name}\n")
}
