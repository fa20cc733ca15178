//! The tests of an object, by the names of its sections: `xdp/test/NAME/pktgen`, `.../setup` and `.../check`.

use std::collections::BTreeMap;

use paceline::{Object, ProgramSpec};

/// A test: the names of its programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestInC {
    /// Unique in its object.
    pub(crate) name: String,
    /// Makes the packet.
    pub(super) pktgen: Option<String>,
    /// Prepares maps, and runs the program under test.
    pub(super) setup: Option<String>,
    /// Checks the outcome.
    pub(super) check: String,
    /// File and line of the check program, where the object has lines.
    pub(crate) source: Option<(String, u32)>,
}

impl TestInC {
    /// Its programs.
    pub(super) fn programs(&self) -> impl Iterator<Item = &str> {
        let before = [&self.pktgen, &self.setup].into_iter().flatten();
        before.chain([&self.check]).map(String::as_str)
    }
}

/// Programs that are no tests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FindError {
    #[error("test `{test}` has two {stage} programs, `{}` and `{}`", .programs[0], .programs[1])]
    Two { test: String, stage: &'static str, programs: [String; 2] },
    #[error("test `{0}` has no check program")]
    NoCheck(String),
}

const STAGES: [&str; 3] = ["pktgen", "setup", "check"];

/// Test and stage of a section.
fn of_section(section: &str) -> Option<(&str, usize)> {
    let parts: Vec<&str> = section.split('/').collect();
    let [_, "test", name, stage] = *parts.as_slice() else { return None };
    Some((name, STAGES.iter().position(|known| *known == stage)?)).filter(|_| !name.is_empty())
}

/// Whether the bytes of a file have what the name of a check program's section has.
pub(crate) fn may_have_tests(bytes: &[u8]) -> bool {
    let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    bytes.starts_with(b"\x7fELF") && has(b"/test/") && has(b"/check\0")
}

/// The tests of an object in the order of their names, which is the one that they run in.
pub(crate) fn find(object: &Object) -> Result<Vec<TestInC>, FindError> {
    let mut found: BTreeMap<&str, [Option<&ProgramSpec>; 3]> = BTreeMap::new();
    for program in object.programs() {
        let Some((test, stage)) = of_section(&program.section) else { continue };
        let Some(place) = found.entry(test).or_default().get_mut(stage) else { continue };
        if let Some(first) = place.replace(program) {
            let programs = [first.name.clone(), program.name.clone()];
            let stage = STAGES.get(stage).copied().unwrap_or_default();
            return Err(FindError::Two { test: test.to_owned(), stage, programs });
        }
    }
    found.into_iter().map(|(name, programs)| test(name, programs)).collect()
}

fn test(name: &str, [pktgen, setup, check]: [Option<&ProgramSpec>; 3]) -> Result<TestInC, FindError> {
    let Some(check) = check else { return Err(FindError::NoCheck(name.to_owned())) };
    let line = check.lines.iter().find(|line| line.line > 0);
    let named = |program: Option<&ProgramSpec>| program.map(|program| program.name.clone());
    Ok(TestInC {
        name: name.to_owned(),
        pktgen: named(pktgen),
        setup: named(setup),
        check: check.name.clone(),
        source: line.map(|line| (line.file.to_string(), line.line)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_name_tests_and_stages() {
        assert_eq!(of_section("xdp/test/ping/pktgen"), Some(("ping", 0)));
        assert_eq!(of_section("tc/test/a b/setup"), Some(("a b", 1)));
        assert_eq!(of_section("tc/test/ping/check"), Some(("ping", 2)));
        for other in
            ["xdp/test/ping", "xdp/test//check", "xdp/ping/check", "xdp/test/ping/checks", "test/ping/check"]
        {
            assert_eq!(of_section(other), None, "{other}");
        }
    }
}
