//! `jit-PID.dump`, in the format of the kernel's `tools/perf/Documentation/jitdump-specification.txt` and in native byte order.
//! Records have time stamps, so that `perf inject --jit` can determine which code was at an address at a time.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process;

use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};

use super::elf::MACHINE;
use crate::exec::code::Function;
use crate::exec::marker::Marker;
use crate::exec::registry::Installed;

const MAGIC: u32 = 0x4a69_5444;
const VERSION: u32 = 1;
const HEADER_LEN: u32 = 40;
const CODE_LOAD: u32 = 0;
const CODE_DEBUG_INFO: u32 = 2;

pub(super) struct JitDump {
    file: File,
    /// Number of functions written, which is also the index of the next one.
    functions: u64,
    /// The mapping by which `perf record` detects the file.
    _marker: Marker,
}

impl JitDump {
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        let path = folder.join(format!("jit-{}.dump", process::id()));
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        let mut header = Record::default();
        header
            .word(MAGIC)
            .word(VERSION)
            .word(HEADER_LEN)
            .word(u32::from(MACHINE))
            .word(0)
            .word(process::id());
        header.long(now()).long(0);
        file.write_all(&header.0)?;
        let marker = Marker::new(&file)?;
        Ok(Self { file, functions: 0, _marker: marker })
    }

    pub(super) fn installed(&mut self, code: &Installed, bytes: &[u8]) -> io::Result<()> {
        for function in &*code.functions {
            let start = function.start as usize;
            let own = bytes.get(start..start.saturating_add(function.len as usize));
            let own = own.ok_or(io::ErrorKind::InvalidInput)?;
            self.debug_info(code, function)?;
            self.load(code.range.start + start, &function.name, own)?;
        }
        Ok(())
    }

    fn load(&mut self, address: usize, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut record = Record::default();
        let thread = gettid().as_raw_nonzero().get().cast_unsigned();
        record.word(process::id()).word(thread);
        record.long(address as u64).long(address as u64).long(bytes.len() as u64).long(self.functions);
        record.name(name);
        record.0.extend_from_slice(bytes);
        self.functions += 1;
        self.write(CODE_LOAD, &record)
    }

    /// Must precede the record of the code that it describes.
    fn debug_info(&mut self, code: &Installed, function: &Function) -> io::Result<()> {
        let rows = function.rows();
        if rows.is_empty() {
            return Ok(());
        }
        let mut record = Record::default();
        let start = code.range.start as u64;
        record.long(start + u64::from(function.start)).long(rows.len() as u64);
        for (offset, line) in rows {
            record.long(start + u64::from(offset)).word(line.line).word(0).name(&line.file);
        }
        self.write(CODE_DEBUG_INFO, &record)
    }

    fn write(&mut self, id: u32, payload: &Record) -> io::Result<()> {
        const PREFIX_LEN: usize = 16;
        let len = u32::try_from(PREFIX_LEN + payload.0.len()).map_err(io::Error::other)?;
        let mut record = Record::default();
        record.word(id).word(len).long(now());
        record.0.extend_from_slice(&payload.0);
        // A single write, because perf reads a truncated file up to the last complete record.
        self.file.write_all(&record.0)
    }
}

#[derive(Default)]
struct Record(Vec<u8>);

impl Record {
    fn word(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_ne_bytes());
        self
    }

    fn long(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_ne_bytes());
        self
    }

    /// A null-terminated string.
    fn name(&mut self, name: &str) {
        self.0.extend(name.bytes().take_while(|&byte| byte != 0));
        self.0.push(0);
    }
}

/// Nanoseconds of the clock of `perf record -k mono`.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
