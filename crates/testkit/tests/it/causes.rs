//! Every reason of the verifier to refuse a program, and every hint, occurs in a text case.

use std::collections::BTreeSet;
use std::path::Path;

use paceline_testkit::case::{Case, find_files, read_file};
use paceline_verifier::{Hint, Options, Refusal, verify};

const ERRORS: &str = include_str!("../../../verifier/src/error/cause.rs");

/// Causes that no text case reaches, with the reason.
const UNREACHED: [(&str, &str); 9] = [
    ("Decode", "the assembler writes no slot that is no instruction"),
    ("Internal", "an invariant of the verifier holds"),
    ("Length", "a text of a million instructions"),
    ("NoMap", "the assembler refuses maps that the case does not have"),
    ("Poisoned", "only the loader of objects replaces instructions"),
    ("TooManyFunctions", "a text of 257 functions"),
    ("TooManyMaps", "a text of 65 maps"),
    ("TooMuchMemory", "the bound is for programs that take seconds"),
    ("TooMuchWork", "the bound is for programs that take seconds"),
];

/// The names of the causes, from their declaration: causes have data, so that there is no list of them.
fn causes() -> BTreeSet<String> {
    let declared = ERRORS.split("pub enum Cause {").nth(1).and_then(|rest| rest.split("\n}\n").next());
    let lines = declared.expect("the declaration").lines().filter_map(|line| line.strip_prefix("    "));
    let variants = lines.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    variants.map(variant).collect()
}

/// The name of the variant that a text begins with.
fn variant(text: &str) -> String {
    text.chars().take_while(char::is_ascii_alphanumeric).collect()
}

fn refusals(case: &Case) -> Vec<Refusal> {
    let verdict = |spec| verify(spec, &case.maps, Some(&case.btf), &Options::default());
    case.programs.iter().filter_map(|spec| verdict(spec).err().map(|refusal| *refusal)).collect()
}

#[test]
fn text_cases_reach_every_cause_and_hint() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let files = find_files(&root).expect("the text cases");
    let cases = files.iter().flat_map(|file| read_file(file).expect("a good file"));
    let refusals: Vec<_> = cases.flat_map(|case| refusals(&case)).collect();
    let reached: BTreeSet<_> =
        refusals.iter().map(|refusal| variant(&format!("{:?}", refusal.cause))).collect();
    let excused: BTreeSet<_> = UNREACHED.iter().map(|(name, _)| (*name).to_owned()).collect();
    let needless: Vec<_> = reached.intersection(&excused).collect();
    assert_eq!(needless, [""; 0], "cases reach causes of UNREACHED");
    let expected: BTreeSet<_> = causes().difference(&excused).cloned().collect();
    assert!(expected.len() > 50, "the causes are not found: {expected:?}");
    assert_eq!(expected.difference(&reached).collect::<Vec<_>>(), [""; 0], "causes that no case reaches");
    let hints: BTreeSet<_> =
        refusals.iter().filter_map(|refusal| refusal.hint).map(|hint| format!("{hint:?}")).collect();
    // The assembler has no calls through registers; `refusals_are_told_as_they_were` in the command's tests has one.
    // `verifier/tests/limits.rs` has programs with too many paths.
    let elsewhere = [Hint::Optimize, Hint::FewerPaths];
    let assembled = Hint::ALL.iter().filter(|hint| !elsewhere.contains(hint));
    let missing: Vec<_> =
        assembled.map(|hint| format!("{hint:?}")).filter(|hint| !hints.contains(hint)).collect();
    assert_eq!(missing, [""; 0], "hints that no case reaches");
}
