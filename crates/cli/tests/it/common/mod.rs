//! Running the command, and captures to run it on.
#![allow(dead_code, reason = "every test file uses its own part")]

pub(crate) mod host;
pub(crate) mod hostile;
pub(crate) mod live;
pub(crate) mod wires;

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use paceline::capture::{CaptureReader, CaptureWriter, Header, PcapHeader, Resolution};
use paceline::filter::Libpcap;
use paceline::{Burst, FrameMeta};
use tempfile::TempDir;

/// Result of the command.
pub(crate) struct Done {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the command writes UTF-8");
        Self { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Done {
    /// Checks for success and gives what was printed.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.status, Some(0), "{}", self.err);
        self.out
    }

    /// Checks for success and gives what was printed as JSON.
    #[track_caller]
    pub(crate) fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.ok()).expect("one JSON object")
    }

    /// Checks that it failed and gives what it said.
    #[track_caller]
    pub(crate) fn json_error(self) -> String {
        assert_eq!(self.status, Some(1), "{}{}", self.out, self.err);
        self.err
    }

    /// Checks that it failed with a status and a message that starts so and has these parts.
    #[track_caller]
    pub(crate) fn fails(&self, status: i32, start: &str, parts: &[&str]) {
        assert_eq!(self.status, Some(status), "{}{}", self.out, self.err);
        let errors: Vec<_> = self.err.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "one message: {}", self.err);
        assert!(errors[0].starts_with(&format!("error: {start}")), "{}", self.err);
        for part in parts {
            assert!(self.err.contains(part), "no {part:?} in: {}", self.err);
        }
    }
}

pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline"));
    command.env_remove("NO_COLOR");
    command
}

pub(crate) fn paceline<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Done {
    command().args(args).output().expect("the command starts").into()
}

/// Says that a test is skipped, which an environment with `PACELINE_REQUIRE_ALL=1` does not allow.
pub(crate) fn skip(test: &str, reason: &dyn Display) {
    eprintln!("SKIP {test}: {reason}");
    let required = std::env::var("PACELINE_REQUIRE_ALL").is_ok_and(|value| value == "1");
    assert!(!required, "{test} must run (PACELINE_REQUIRE_ALL=1) but cannot: {reason}");
}

/// Whether expressions can be compiled; a test that cannot do without is skipped.
pub(crate) fn has_libpcap(test: &str) -> bool {
    Libpcap::open().map_err(|reason| skip(test, &reason)).is_ok()
}

/// Whether a tool is there; a test that cannot do without is skipped.
pub(crate) fn has_tool(test: &str, tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output();
    found.map_err(|error| skip(test, &format!("{tool}: {error}"))).is_ok()
}

/// A file of the examples.
pub(crate) fn example(name: &str) -> String {
    format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// An object made for these tests.
pub(crate) fn fixture(name: &str) -> String {
    format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A folder for one test.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a folder for temporary files"))
    }

    pub(crate) fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.0.path().join(Path::new(name.as_ref()))
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).into_os_string().into_string().expect("temporary folders have names in UTF-8")
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), bytes).expect("the file can be written");
        self.text(name)
    }

    /// A capture of packets that consist of these bytes.
    pub(crate) fn capture(&self, name: &str, packets: &[&[u8]]) -> String {
        self.write(name, capture(packets))
    }

    /// Names of the files in the folder.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("the folder can be read");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// A pcap capture of packets that consist of these bytes.
pub(crate) fn capture(packets: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = Header::Pcap(PcapHeader::new(Resolution::Micro));
    let mut writer = CaptureWriter::new(&mut bytes, &header).expect("memory takes everything");
    for packet in packets {
        let meta = FrameMeta { original_len: packet.len() as u32, ..FrameMeta::default() };
        writer.push(packet, &meta).expect("memory takes everything");
    }
    drop(writer);
    bytes
}

/// The packets of a capture, which must be whole.
#[track_caller]
pub(crate) fn packets(path: impl AsRef<Path>) -> Vec<Vec<u8>> {
    let bytes = fs::read(path.as_ref()).expect("the capture is there");
    let mut reader = CaptureReader::new(bytes.as_slice()).expect("a header");
    let (mut burst, mut packets) = (Burst::default(), Vec::new());
    while reader.fill(&mut burst).expect("whole packets") > 0 {
        packets.extend(burst.iter().map(|frame| frame.packet().to_vec()));
    }
    packets
}
