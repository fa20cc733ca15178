//! Outputs of a scan.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use paceline::capture::{CaptureWriter, WriteError};
use paceline::packet::to_line;
use paceline::{FrameMeta, Verdict};
use paceline_archive::{Opened, Rows, Wanted};

use super::args::ScanArgs;
use super::captures::header;
use super::parquet::ParquetWriter;
use super::table::{self, ColumnName};
use crate::common::failure::Failure;
use crate::common::files::{FileError, Opened as OpenedFile, Taken};
use crate::common::line::PacketLine;

/// A capture and a table, where they are wanted.
pub(super) struct Outputs {
    out: Option<(CaptureWriter<'static>, String)>,
    table: Option<(ParquetWriter<BufWriter<File>>, String)>,
    columns: Vec<ColumnName>,
    /// Standard output, where packets are printed.
    print: Option<(BufWriter<File>, String)>,
}

impl Outputs {
    /// Opens the outputs, and changes none before all are open.
    pub(super) fn open(args: &ScanArgs, captures: &[Opened], mut taken: Vec<Taken>) -> Result<Self, Failure> {
        let header = args.out.as_ref().map(|_| header(captures, args.program.is_some())).transpose()?;
        let out = args.out.as_deref().map(|path| OpenedFile::open(path, "--out", &mut taken)).transpose()?;
        let table = args
            .parquet
            .as_deref()
            .map(|path| OpenedFile::open(path, "--parquet", &mut taken))
            .transpose()?;
        let print =
            args.print.then(|| OpenedFile::open_text(Path::new("-"), "--print", &mut taken)).transpose()?;
        let columns = match (&args.parquet, &args.columns) {
            (Some(_), Some(columns)) => columns.clone(),
            (Some(_), None) => ColumnName::standard(args.program.is_some()),
            (None, _) => Vec::new(),
        };
        let named = |path: &Option<std::path::PathBuf>| {
            path.as_deref().map(crate::common::files::name).unwrap_or_default()
        };
        let out = match (out, header) {
            (Some(out), Some(header)) => Some((out.start(&header)?, named(&args.out))),
            _ => None,
        };
        let table = table.map(|table| start_table(table, &columns)).transpose()?;
        let print = print.map(OpenedFile::start_text).transpose()?;
        let print = print.map(|(file, name)| (BufWriter::new(file), name));
        Ok(Self { out, table, columns, print })
    }

    /// The bytes of packets that the outputs need.
    pub(super) fn wanted(&self) -> Wanted {
        let mut wanted = table::wanted(&self.columns);
        wanted.data |= self.out.is_some();
        wanted.input |= self.print.is_some();
        wanted
    }

    pub(super) fn write(&mut self, rows: &Rows, capture: &str) -> Result<(), FileError> {
        if let Some((out, name)) = &mut self.out {
            for index in 0..rows.len() {
                write_packet(out, rows, index)
                    .map_err(|source| FileError::Write { name: name.clone(), source })?;
            }
        }
        if let Some((print, name)) = &mut self.print {
            for index in 0..rows.len() {
                let line = line(rows, index);
                writeln!(print, "{line}").map_err(|source| failed(name, source))?;
            }
        }
        if let Some((table, name)) = &mut self.table {
            for index in 0..rows.len() {
                let row = self.columns.iter().map(|column| column.value(rows, index, capture));
                table.push(row).map_err(|source| failed(name, source))?;
            }
        }
        Ok(())
    }

    /// Completes the outputs, each whatever becomes of the other.
    pub(super) fn finish(self) -> Result<(), FileError> {
        let table = match self.table {
            Some((table, name)) => table.finish().map_err(|source| failed(&name, source)),
            None => Ok(()),
        };
        let out = match self.out {
            Some((mut out, name)) => out.flush().map_err(|source| FileError::Write { name, source }),
            None => Ok(()),
        };
        let print = match self.print {
            Some((mut print, name)) => print.flush().map_err(|source| failed(&name, source)),
            None => Ok(()),
        };
        out.and(table).and(print)
    }
}

/// The line of a packet.
fn line(rows: &Rows, index: usize) -> String {
    let line = PacketLine {
        number: None,
        time_ns: rows.times[index],
        verdict: rows.verdicts.get(index).map(|verdict| verdict.name()),
        headers: &to_line(rows.input.get(index)),
        more: "",
    };
    line.to_string()
}

fn start_table(
    file: OpenedFile,
    columns: &[ColumnName],
) -> Result<(ParquetWriter<BufWriter<File>>, String), FileError> {
    let (file, name) = file.start_text()?;
    let fields: Vec<_> = columns.iter().map(|column| column.field()).collect();
    let table = ParquetWriter::new(BufWriter::new(file), &fields).map_err(|source| failed(&name, source))?;
    Ok((table, name))
}

fn failed(name: &str, source: io::Error) -> FileError {
    let source = match source.kind() {
        io::ErrorKind::BrokenPipe => WriteError::BrokenPipe,
        _ => WriteError::Io { offset: 0, source },
    };
    FileError::Write { name: name.to_owned(), source }
}

/// Writes a packet, unless the program dropped it.
fn write_packet(out: &mut CaptureWriter<'_>, rows: &Rows, index: usize) -> Result<(), WriteError> {
    let mut original_len = rows.original[index];
    if let Some(verdict) = rows.verdicts.get(index) {
        if matches!(verdict, Verdict::Drop | Verdict::Aborted) {
            return Ok(());
        }
        let grown = rows.lengths[index].wrapping_sub(rows.captured[index]).cast_signed();
        original_len = original_len.saturating_add_signed(grown);
    }
    let meta = FrameMeta { timestamp_ns: rows.times[index], original_len, interface: rows.interfaces[index] };
    out.push(rows.data.get(index), &meta)
}
