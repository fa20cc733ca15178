//! Tests as they are run: tables expanded, packets built.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use paceline::{SkBuff, Verdict};
use serde_json::Value as Json;

use super::error::Place;
use super::in_c::TestInC;

/// A file with tests.
#[derive(Debug)]
pub(super) struct TestFile {
    pub(super) path: PathBuf,
    /// For messages.
    pub(super) name: String,
    pub(super) tests: Tests,
}

#[derive(Debug)]
pub(super) enum Tests {
    /// Tests of a test file, with its text.
    Cases(String, Vec<Case>),
    /// Tests of an object.
    InC(Vec<TestInC>),
}

impl TestFile {
    /// The tests of a test file; none of an object.
    pub(super) fn cases(&self) -> &[Case] {
        match &self.tests {
            Tests::Cases(_, cases) => cases,
            Tests::InC(_) => &[],
        }
    }

    /// All tests.
    pub(super) fn all(&self) -> Vec<Test<'_>> {
        match &self.tests {
            Tests::Cases(_, cases) => cases.iter().map(Test::Case).collect(),
            Tests::InC(tests) => tests.iter().map(Test::InC).collect(),
        }
    }
}

/// A test of either kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Test<'a> {
    Case(&'a Case),
    InC(&'a TestInC),
}

impl<'a> Test<'a> {
    pub(super) fn name(self) -> &'a str {
        match self {
            Self::Case(case) => &case.name,
            Self::InC(test) => &test.name,
        }
    }

    /// The test of a test file.
    pub(super) fn case(self) -> Option<&'a Case> {
        match self {
            Self::Case(case) => Some(case),
            Self::InC(_) => None,
        }
    }

    /// The test of an object.
    pub(super) fn in_c(self) -> Option<&'a TestInC> {
        match self {
            Self::Case(_) => None,
            Self::InC(test) => Some(test),
        }
    }

    /// Line and column in the file that the test is written in, 0 if unknown.
    pub(super) fn place(self) -> (usize, usize) {
        match self {
            Self::Case(case) => (case.at.line, case.at.column),
            Self::InC(test) => (test.source.as_ref().map_or(0, |(_, line)| *line as usize), 0),
        }
    }

    /// The source that the test is written in, where that is another file than the one with the tests.
    pub(super) fn source(self) -> Option<&'a str> {
        match self {
            Self::Case(_) => None,
            Self::InC(test) => test.source.as_ref().map(|(file, _)| file.as_str()),
        }
    }
}

/// Settings that all tests of a file share.
#[derive(Debug)]
pub(super) struct Setup {
    /// Objects, each perhaps with a program, or a chain file.
    pub(super) targets: Vec<PathBuf>,
    pub(super) network: Option<PathBuf>,
    pub(super) ingress: Option<String>,
    pub(super) seed: u64,
    pub(super) maps: Vec<MapContents>,
}

/// The contents of a map before a test.
#[derive(Clone, Debug)]
pub(super) struct MapContents {
    pub(super) map: String,
    pub(super) from: MapSource,
    pub(super) at: Place,
}

#[derive(Clone, Debug)]
pub(super) enum MapSource {
    Inline(Json),
    File(PathBuf),
}

/// One test with one set of values.
#[derive(Debug)]
pub(super) struct Case {
    /// Unique in its file.
    pub(super) name: String,
    pub(super) at: Place,
    pub(super) setup: Arc<Setup>,
    /// The network, in the place of that of the file.
    pub(super) network: Option<PathBuf>,
    pub(super) maps: Vec<MapContents>,
    pub(super) steps: Vec<Step>,
}

/// A packet, and what must become of it.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) packet: Vec<u8>,
    /// The value of `packet`, after which missing expectations are written.
    pub(super) packet_span: Range<usize>,
    pub(super) at: Place,
    /// Nanoseconds since the epoch.
    pub(super) time_ns: u64,
    pub(super) repeat: u64,
    pub(super) ingress: Option<String>,
    pub(super) queue: u16,
    /// Members of its `sk_buff`.
    pub(super) context: SkBuff,
    pub(super) expected: Vec<Expected>,
}

/// One expectation, and the bytes of its value in the file.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) what: Expectation,
    pub(super) span: Range<usize>,
}

#[derive(Debug)]
pub(super) enum Expectation {
    Verdict(Verdict),
    Returns(Returned),
    Out(Out),
    Redirect(Target, Option<u32>),
    /// Members of the `sk_buff`, by their names.
    Context(Vec<(String, u64)>),
    /// Elements of a map, or variables.
    Map {
        map: String,
        elements: Json,
    },
    Events(Vec<ExpectedEvent>),
}

/// A return value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Returned {
    Number(u32),
    /// A name of the program's type, such as `TC_ACT_SHOT`.
    Name(String),
}

/// The packet that must come out.
#[derive(Debug)]
pub(super) enum Out {
    /// The one that came in.
    Same,
    Whole(Vec<u8>),
    /// Fields by their paths, `len`, and `absent` layers.
    Fields(Vec<(String, String)>),
}

/// Target of a redirected packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Interface(u32),
    Map { map: String, key: u32 },
}

#[derive(Debug)]
pub(super) struct ExpectedEvent {
    pub(super) map: Option<String>,
    pub(super) data: Option<EventData>,
}

#[derive(Debug)]
pub(super) enum EventData {
    /// Members of a C structure.
    Typed {
        ty: String,
        members: Json,
    },
    Bytes(Vec<u8>),
}
