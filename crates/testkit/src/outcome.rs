//! Outcome of a case on an engine, and the comparison of two outcomes.

use std::fmt::{Display, Write};

use paceline_spec::ProgramKind;

use crate::Contents;
use crate::case::{Case, Expect, Verifier};

/// Outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The engine refuses the program.
    Refused(Refusal),
    /// It ran.
    Ran(Ran),
    /// The case could not be run, because of an error in the case or in the testkit.
    Unasked(String),
}

/// Refusal of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Message of the engine.
    pub reason: String,
    /// Program and slot of the guilty instruction, if the engine reports it.
    pub place: Option<(usize, usize)>,
    /// Whether this is our verifier's refusal, whose text cases check; the kernel has other messages.
    pub in_our_words: bool,
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self { reason, place: None, in_our_words: false }
    }
}

/// All runs of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Each run, or the error that stopped it.
    pub runs: Vec<Result<Finished, String>>,
    /// Contents of the case's maps after the last run; `None` for maps whose elements are not bytes.
    pub maps: Vec<Option<Contents>>,
}

/// A run that ended with the program's exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// `r0`, as far as the engine reports it.
    pub r0: Return,
    /// The packet or memory.
    pub data: Vec<u8>,
    /// Metadata before the packet.
    pub meta: Vec<u8>,
    /// Target of a redirected packet, in the syntax of cases, if the engine reports it.
    pub redirect: Option<String>,
    /// Nonzero fields of the `sk_buff` after a TC classifier, in the syntax of cases, if the engine reports them.
    pub skb: Option<String>,
    /// Instructions executed, if the engine counts them.
    pub instructions: Option<u64>,
}

impl Finished {
    /// A run with only `r0`.
    #[must_use]
    pub fn new(r0: Return) -> Self {
        Self { r0, data: Vec::new(), meta: Vec::new(), redirect: None, skb: None, instructions: None }
    }
}

/// `r0` as an engine reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// All 64 bits.
    Full(u64),
    /// The low 32 bits.
    Low(u32),
    /// The number of bytes kept of a packet: the low 32 bits, or the packet's length if that is less.
    Kept {
        /// Bytes kept.
        bytes: u32,
        /// Length of the packet.
        of: u32,
    },
    /// The verdict that it means for programs of a type.
    Verdict {
        /// The number.
        code: u32,
        /// The type.
        of: ProgramKind,
    },
}

impl Return {
    /// Whether it can be this value of `r0`.
    #[must_use]
    pub fn can_be(self, r0: u64) -> bool {
        match self {
            Self::Full(value) => value == r0,
            Self::Low(value) => value == r0 as u32,
            Self::Kept { bytes, of } => bytes == of.min(r0 as u32),
            Self::Verdict { code, of } => code == of.rules().meaning.code(r0),
        }
    }

    /// The low 32 bits.
    #[must_use]
    pub fn low(self) -> u32 {
        match self {
            Self::Full(value) => value as u32,
            Self::Low(value) => value,
            Self::Kept { bytes, .. } => bytes,
            Self::Verdict { code, .. } => code,
        }
    }

    /// Whether both can stand for the same value of `r0`.
    #[must_use]
    pub fn agrees(self, other: Self) -> bool {
        match (self, other) {
            (Self::Full(a), Self::Full(b)) => a == b,
            (Self::Verdict { code: a, .. }, Self::Verdict { code: b, .. }) => a == b,
            (kept @ (Self::Kept { .. } | Self::Verdict { .. }), other)
            | (other, kept @ (Self::Kept { .. } | Self::Verdict { .. })) => kept.can_be(other.low().into()),
            _ => self.low() == other.low(),
        }
    }
}

impl Display for Return {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full(value) => write!(f, "{value:#x}"),
            Self::Low(value) => write!(f, "{value:#x} (low 32 bits)"),
            Self::Verdict { code, .. } => write!(f, "verdict {code}"),
            Self::Kept { bytes, of } => write!(f, "{bytes:#x} ({of} at most)"),
        }
    }
}

/// Differences between an outcome and the case's expectations; empty if there are none. `verifies` is whether the engine
/// verifies programs before it runs them.
#[must_use]
pub fn against_case(case: &Case, outcome: &Outcome, verifies: bool) -> Vec<String> {
    match (outcome, &case.verifier) {
        (Outcome::Refused(refusal), Verifier::Refuses { place, text }) if verifies => {
            against_refusal(case, refusal, *place, text)
        }
        (Outcome::Refused(Refusal { reason, .. }), _) => {
            vec![format!("line {}: refuses the program: {reason}", case.line)]
        }
        (Outcome::Ran(_), Verifier::Refuses { .. }) if verifies => {
            vec![format!("line {}: accepts the program, which should be refused", case.line)]
        }
        (Outcome::Ran(ran), _) => against_expectations(case, ran),
        (Outcome::Unasked(reason), _) => vec![format!("line {}: {reason}", case.line)],
    }
}

/// Whether a refusal is at the instruction that the case marks, if the engine reports it, and has the case's text.
fn against_refusal(
    case: &Case,
    refusal: &Refusal,
    expected: Option<(usize, usize)>,
    text: &str,
) -> Vec<String> {
    let reason = &refusal.reason;
    let mut differences = Vec::new();
    if let (Some((program, slot)), Some(guilty)) = (refusal.place, expected)
        && guilty != (program, slot)
    {
        differences.push(format!(
            "line {}: refuses instruction {slot} of program {program}, not instruction {} of program {}: {reason}",
            case.line, guilty.1, guilty.0
        ));
    }
    if refusal.in_our_words && !reason.contains(text) {
        differences.push(format!("line {}: refuses with `{reason}`, expected `{text}`", case.line));
    }
    differences
}

fn against_expectations(case: &Case, ran: &Ran) -> Vec<String> {
    let mut differences = Vec::new();
    for (run, came) in case.runs.iter().zip(&ran.runs) {
        for difference in against_run(&run.expect, came) {
            differences.push(format!("line {}: {difference}", run.line));
        }
    }
    for (index, expected) in &case.after {
        let name = case.maps.get(*index).map_or("?", |map| &map.name);
        match ran.maps.get(*index) {
            Some(Some(found)) => differences.extend(contents_diff(name, "expected", expected, found)),
            _ => differences.push(format!("map {name}: its contents cannot be read")),
        }
    }
    differences
}

fn against_run(expect: &Expect, came: &Result<Finished, String>) -> Vec<String> {
    let mut differences = Vec::new();
    let finished = match (came, &expect.error) {
        (Err(error), Some(text)) if error.contains(text) => return differences,
        (Err(error), Some(text)) => {
            return vec![format!("stops with `{error}`, expected an error with `{text}`")];
        }
        (Err(error), None) => return vec![format!("stops: {error}")],
        (Ok(finished), Some(text)) => {
            return vec![format!("returns {}, expected an error with `{text}`", finished.r0)];
        }
        (Ok(finished), None) => finished,
    };
    if let Some(r0) = expect.r0
        && !finished.r0.can_be(r0)
    {
        differences.push(format!("returns {}, expected {r0:#x}", finished.r0));
    }
    if let Some(verdict) = expect.verdict
        && finished.r0.low() != verdict as u32
    {
        differences.push(format!("returns {}, expected {verdict} ({})", finished.r0, verdict as u32));
    }
    if let (Some(expected), Some(found)) = (&expect.redirect, &finished.redirect)
        && expected != found
    {
        differences.push(format!("redirects to {found}, expected {expected}"));
    }
    if let (Some(expected), Some(found)) = (&expect.skb, &finished.skb)
        && expected != found
    {
        differences.push(format!("leaves skb {found}, expected {expected}"));
    }
    let bytes =
        [("output", &expect.output, &finished.data), ("output_meta", &expect.output_meta, &finished.meta)];
    for (what, expected, found) in bytes {
        if let Some(expected) = expected
            && expected != found
        {
            differences.push(format!("{what} differs\n{}", bytes_diff("expected", expected, found)));
        }
    }
    differences
}

/// Differences between two engines' outcomes; empty if there are none. `other` is the name of the engine that `outcome` is
/// compared with.
#[must_use]
pub fn against_other(case: &Case, outcome: &Ran, other: &str, reference: &Ran) -> Vec<String> {
    let mut differences = Vec::new();
    for ((run, mine), theirs) in case.runs.iter().zip(&outcome.runs).zip(&reference.runs) {
        for difference in run_diff(mine, other, theirs) {
            differences.push(format!("line {}: {difference}", run.line));
        }
    }
    for ((map, mine), theirs) in case.maps.iter().zip(&outcome.maps).zip(&reference.maps) {
        if let (Some(mine), Some(theirs)) = (mine, theirs) {
            differences.extend(contents_diff(&map.name, other, theirs, mine));
        }
    }
    differences
}

/// Differences between one run on two engines.
#[must_use]
pub fn run_diff(
    mine: &Result<Finished, String>,
    other: &str,
    theirs: &Result<Finished, String>,
) -> Vec<String> {
    let mut differences = Vec::new();
    match (mine, theirs) {
        (Ok(mine), Ok(theirs)) => {
            if !mine.r0.agrees(theirs.r0) {
                differences.push(format!("returns {}, {other} {}", mine.r0, theirs.r0));
            }
            if mine.data != theirs.data {
                differences.push(format!("output differs\n{}", bytes_diff(other, &theirs.data, &mine.data)));
            }
            if mine.meta != theirs.meta {
                differences
                    .push(format!("metadata differs\n{}", bytes_diff(other, &theirs.meta, &mine.meta)));
            }
            if let (Some(mine), Some(theirs)) = (&mine.redirect, &theirs.redirect)
                && mine != theirs
            {
                differences.push(format!("redirects to {mine}, {other} to {theirs}"));
            }
            if let (Some(mine), Some(theirs)) = (&mine.skb, &theirs.skb)
                && mine != theirs
            {
                differences.push(format!("leaves skb {mine}, {other} {theirs}"));
            }
            if let (Some(mine), Some(theirs)) = (mine.instructions, theirs.instructions)
                && mine != theirs
            {
                differences.push(format!("executes {mine} instructions, {other} {theirs}"));
            }
        }
        // Error messages differ between engines.
        (Err(_), Err(_)) => {}
        (Ok(mine), Err(error)) => differences.push(format!("returns {}, {other} stops: {error}", mine.r0)),
        (Err(error), Ok(theirs)) => {
            differences.push(format!("stops: {error}, {other} returns {}", theirs.r0))
        }
    }
    differences
}

/// Maximum number of elements of a map that are printed.
const SHOWN: usize = 8;

/// Differences between the contents of a map and those on `other`.
#[must_use]
pub fn contents_diff(name: &str, other: &str, theirs: &Contents, mine: &Contents) -> Option<String> {
    let keys = theirs.keys().chain(mine.keys().filter(|key| !theirs.contains_key(*key)));
    let different: Vec<_> = keys.filter(|key| theirs.get(*key) != mine.get(*key)).collect();
    if different.is_empty() {
        return None;
    }
    let mut text = format!("map {name} differs in {} elements", different.len());
    let show = |value: Option<&Vec<u8>>| value.map_or("nothing".to_owned(), |value| plain_hex(value));
    for key in different.iter().take(SHOWN) {
        let (mine, theirs) = (show(mine.get(*key)), show(theirs.get(*key)));
        let _ = write!(text, "\n    [{}] = {mine}, {other}: {theirs}", plain_hex(key));
    }
    Some(text)
}

fn plain_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A hex dump of the 16-byte rows that differ.
#[must_use]
pub fn bytes_diff(other: &str, theirs: &[u8], mine: &[u8]) -> String {
    let mut text = String::new();
    if theirs.len() != mine.len() {
        let _ = writeln!(text, "    {} bytes, {other}: {}", mine.len(), theirs.len());
    }
    let row =
        |bytes: &[u8], start: usize| -> Vec<u8> { bytes.iter().copied().skip(start).take(16).collect() };
    for start in (0..theirs.len().max(mine.len())).step_by(16) {
        let (a, b) = (row(mine, start), row(theirs, start));
        if a != b {
            let _ = writeln!(text, "    {start:04x}  {}", spaced_hex(&a));
            let _ = writeln!(text, "          {}  {other}", spaced_hex(&b));
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn spaced_hex(bytes: &[u8]) -> String {
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{Contents, bytes_diff, contents_diff};

    #[test]
    fn shows_only_what_differs() {
        let mine = [0u8; 40];
        let mut theirs = mine;
        theirs[33] = 5;
        let expected = "    0020  00 00 00 00 00 00 00 00\n          00 05 00 00 00 00 00 00  kernel";
        assert_eq!(bytes_diff("kernel", &theirs, &mine), expected);
        assert_eq!(
            bytes_diff("kernel", &mine[..1], &mine[..0]),
            "    0 bytes, kernel: 1\n    0000  \n          00  kernel"
        );
    }

    #[test]
    fn finds_missing_and_changed_elements() {
        let one = Contents::from([(vec![1], vec![10]), (vec![2], vec![20])]);
        let two = Contents::from([(vec![2], vec![21]), (vec![3], vec![30])]);
        let text = contents_diff("m", "kernel", &one, &two).expect("they differ");
        assert_eq!(
            text,
            "map m differs in 3 elements\n    [01] = nothing, kernel: 0a\n    [02] = 15, kernel: 14\n    [03] = 1e, kernel: nothing"
        );
        assert_eq!(contents_diff("m", "kernel", &one, &one), None);
    }
}
