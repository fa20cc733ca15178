//! What is run, and over which packets.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::rc::Rc;

use paceline::Object;
use paceline::capture::{CaptureReader, ReadError};

use super::outputs::Taken;
use crate::args::{RunArgs, Target};
use crate::console;
use crate::failure::Failure;
use crate::object::{self, Opener};

static FIREWALL: &[u8] = include_bytes!("../../../../examples/firewall.o");
static TRAFFIC: &[u8] = include_bytes!("../../../../examples/traffic.pcap");

/// An object and which of its programs to run.
pub(super) struct Subject {
    /// For messages.
    pub(super) name: String,
    pub(super) object: Object,
    pub(super) program: Option<String>,
    /// The file that no output may replace.
    pub(super) file: Option<Taken>,
}

impl Subject {
    pub(super) fn open(arg: Option<&OsStr>, opener: &Opener) -> Result<Self, Failure> {
        let Some(arg) = arg else { return Self::built_in() };
        let Target { path, program } = Target::parse(arg, Path::exists);
        let object = opener.open(&path, program.as_deref())?;
        let name = path.display().to_string();
        let file = Taken::of_path(&path, &format!("the object {name}"));
        Ok(Self { name, object, program, file })
    }

    fn built_in() -> Result<Self, Failure> {
        let (name, object) = built_in()?;
        Ok(Self { name, object, program: None, file: None })
    }
}

/// How a capture's header is read: [`CaptureReader::new`] or [`CaptureReader::for_filters`].
pub(crate) type ReadHeader = fn(Counted) -> Result<CaptureReader<Counted>, ReadError>;
/// The firewall that is run where no object is named.
pub(crate) fn built_in() -> Result<(String, Object), Failure> {
    let name = "built-in firewall".to_owned();
    let object = object::parse(FIREWALL).map_err(|source| Failure::Object {
        name: name.clone(),
        source: Box::new(source),
        is_capture: false,
    })?;
    Ok((name, object))
}

/// A capture, with its header read.
pub(crate) struct Capture {
    /// For messages.
    pub(crate) name: String,
    pub(crate) reader: CaptureReader<Counted>,
    /// Its length in bytes, where it is known.
    pub(crate) size: Option<u64>,
    /// Bytes read so far.
    pub(crate) position: Rc<Cell<u64>>,
    /// The file that no output may replace.
    pub(crate) file: Option<Taken>,
}

impl Capture {
    /// Opens a capture; `read` reads its header.
    pub(crate) fn open(path: Option<&Path>, read: ReadHeader) -> Result<Self, Failure> {
        match path {
            None => {
                let size = Some(TRAFFIC.len() as u64);
                Self::read("built-in capture".to_owned(), Box::new(TRAFFIC), size, None, read)
            }
            Some(path) if path == Path::new("-") => {
                let name = "standard input".to_owned();
                let file = io::stdin().as_fd().try_clone_to_owned().map(File::from);
                let file = file.map_err(|source| Failure::OpenCapture { name: name.clone(), source })?;
                Self::file(name, file, read)
            }
            Some(path) => {
                let name = path.display().to_string();
                let file =
                    File::open(path).map_err(|source| Failure::OpenCapture { name: name.clone(), source })?;
                Self::file(name, file, read)
            }
        }
    }

    fn file(name: String, file: File, read: ReadHeader) -> Result<Self, Failure> {
        let metadata = file.metadata().ok();
        let size = metadata.as_ref().filter(|m| m.is_file()).map(std::fs::Metadata::len);
        let taken = metadata.and_then(|m| Taken::of(&m, &format!("the capture {name}")));
        Self::read(name, Box::new(file), size, taken, read)
    }

    fn read(
        name: String,
        source: Box<dyn Read>,
        size: Option<u64>,
        file: Option<Taken>,
        read: ReadHeader,
    ) -> Result<Self, Failure> {
        let position = Rc::new(Cell::new(0));
        let reader = read(Counted { source, position: position.clone() }).map_err(|source| {
            Failure::Capture { name: name.clone(), source: Box::new(source), processed: 0 }
        })?;
        Ok(Self { name, reader, size, position, file })
    }
}

/// Counts the bytes that are read, for the progress bar.
pub(crate) struct Counted {
    source: Box<dyn Read>,
    position: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.position.set(self.position.get().saturating_add(read as u64));
        Ok(read)
    }
}

/// Says what is run when the user did not.
pub(super) fn announce(args: &RunArgs, subject: &str, capture: &Capture) {
    let is_named = args.source.chain_file().is_some() || !args.source.targets.is_empty();
    match (is_named, &args.input) {
        (true, Some(_)) => {}
        (false, None) => console::note(
            "running the built-in firewall (examples/firewall.o) over the built-in capture (examples/traffic.pcap); \
             for your own: paceline run OBJECT --in CAPTURE",
        ),
        (true, None) => console::note(format_args!(
            "running {} over the {} (examples/traffic.pcap); for your own: --in CAPTURE",
            subject, capture.name
        )),
        (false, Some(_)) => console::note(format_args!(
            "running the {} (examples/firewall.o) over {}; for your own: paceline run OBJECT --in CAPTURE",
            subject, capture.name
        )),
    }
}
