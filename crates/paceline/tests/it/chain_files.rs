//! Chain files, loaded by the library.

use paceline::chain::{ChainFileCause, ChainFileError, ChainLoadOptions, ChainSource, LoadedChain};
use paceline::contents::MapContents;
use paceline::{Burst, Change, FrameMeta, Host, LiveChain, ProgramError, Verdict};

const CHAIN: &str = r#"
[objects]
counter.file = "counter.o"
fw.file = "firewall.o"
fw.maps.rules.file = "firewall-rules.json"
fw.maps.blocked_v4.elements = [{ key = "203.0.113.9", value = 0 }]

[[program]]
name = "count"
object = "counter"

[[program]]
name = "filter"
object = "fw"
before = "count"
"#;

/// A text as a chain file beside the examples.
fn source(text: &str) -> Result<ChainSource, ChainFileError> {
    ChainSource::parse(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/chain.toml"), text)
}

fn load(text: &str) -> Result<LoadedChain, ChainFileError> {
    source(text)?.open()?.load(&ChainLoadOptions::default())
}

/// The error, without the folder of its files.
fn error(text: &str) -> String {
    let error = paceline::with_causes(&load(text).map(drop).unwrap_err());
    error.replace(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/"), "")
}

fn verdict(chain: &LiveChain) -> Verdict {
    let mut burst = Burst::default();
    burst.push(&[0; 60], FrameMeta::default()).unwrap();
    chain.worker().run_burst(&mut burst, &mut Host::default()).unwrap();
    burst.frame(0).verdict()
}

fn elements(chain: &LoadedChain, program: &str, map: &str) -> usize {
    chain.part(program).unwrap().collection.map(map).unwrap().keys().unwrap().count()
}

#[test]
fn a_chain_file_gives_a_chain_and_its_maps() {
    let loaded = load(CHAIN).unwrap();
    let names: Vec<_> = loaded.members.iter().map(|member| member.name()).collect();
    assert_eq!(names, ["filter", "count"]);
    assert_eq!(loaded.placed().len(), 1);
    assert_eq!(elements(&loaded, "filter", "blocked_v4"), 1);
    assert!(elements(&loaded, "filter", "rules") > 0);
    assert_eq!(verdict(&loaded.live().unwrap()), Verdict::Pass);
    assert_eq!(elements(&loaded, "count", "by_ethertype"), 1);
    assert!(loaded.part("counter").is_none(), "the name of an object is not that of a program");
}

#[test]
fn maps_are_kept_where_a_file_takes_the_place_of_another() {
    let before = load(CHAIN).unwrap();
    let live = before.live().unwrap();
    verdict(&live);
    let edges = CHAIN.replace("before = \"count\"", "next.wildcard = \"count\"");
    let first = edges.replace("\n[objects]", "first = \"filter\"\n[objects]");
    let contents =
        [vec![], vec![MapContents::parse("blocked_v4", "given", r#"{"203.0.113.7": 0}"#).unwrap()]];
    let options =
        ChainLoadOptions { replaces: &before.parts, contents: &contents, ..ChainLoadOptions::default() };
    let after = source(&first).unwrap().open().unwrap().load(&options).unwrap();
    assert!(after.kept.contains(&("counter".to_owned(), "by_ethertype".to_owned())), "{:?}", after.kept);
    assert_eq!(elements(&after, "filter", "blocked_v4"), 1, "a map that is kept is not filled again");
    live.change(None, vec![Change::All { members: after.members.clone(), order: after.order.clone() }])
        .unwrap();
    assert_eq!(verdict(&live), Verdict::Pass);

    let fresh = ChainLoadOptions { contents: &contents, ..ChainLoadOptions::default() };
    let fresh = source(CHAIN).unwrap().open().unwrap().load(&fresh).unwrap();
    assert_eq!(
        elements(&fresh, "filter", "blocked_v4"),
        2,
        "contents that are given come before those of the file"
    );
}

#[test]
fn errors_have_the_place_in_the_file_and_the_cause_as_data() {
    let wrong = [
        (
            "\"firewall.o\"",
            "\"firewal.o\"",
            "chain.toml:4:11: firewal.o: No such file or directory (os error 2)",
        ),
        (
            "fw.file = \"firewall.o\"",
            "fw.classic = \"firewall-rules.json\"",
            "chain.toml:4:14: firewall-rules.json: ",
        ),
        (
            "maps.rules.file = \"f",
            "maps.rules.file = \"F",
            "chain.toml:5:22: Firewall-rules.json: No such file or directory (os error 2)",
        ),
        (
            "maps.rules.",
            "maps.rulers.",
            "chain.toml:5:9: firewall-rules.json: the object has no map `rulers`",
        ),
        (
            "maps.rules.file = \"firewall-rules.json\"",
            "maps.rules.file = \"counter.bpf.c\"",
            "chain.toml:5:22: counter.bpf.c: line 1, column 1: ",
        ),
        ("maps.blocked_v4.", "maps.blocked.", "chain.toml:6:9: the object has no map `blocked`"),
        (
            "value = 0",
            "value = -1",
            "chain.toml:6:31: map blocked_v4, element 1, value: -1 does not fit into `__u64`",
        ),
        (
            "object = \"fw\"",
            "object = \"fw\"\nfunction = \"fire\"",
            "chain.toml:15:12: fw: no program fire (available: ",
        ),
        (
            "fw.maps.rules.file = \"firewall-rules.json\"",
            "fw.maps.stats.from = \"counter\"",
            "chain.toml:5:22: no map in that object `stats`",
        ),
        ("before", "befor", "chain.toml:15:1: unknown key `befor` in a program"),
        ("name = \"count\"", "name = 7", "chain.toml:9:8: `name` is a text"),
    ];
    for (from, to, expected) in wrong {
        assert!(CHAIN.contains(from), "{from}");
        let error = error(&CHAIN.replace(from, to));
        assert!(error.starts_with(expected), "{to}:\n{error}\n{expected}");
    }
    let error = load(&CHAIN.replace("object = \"fw\"", "object = \"fw\"\nfunction = \"fire\"")).map(drop);
    let Err(ChainFileError::At { at, cause, .. }) = error else { panic!("{error:?}") };
    let ChainFileCause::Program { name, source, .. } = &*cause else { panic!("{cause:?}") };
    assert!(matches!(**source, ProgramError::Unknown { .. }), "{source}");
    assert_eq!((at.line, name.as_str()), (15, "fw"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain.toml");
    std::fs::write(&path, b"# \xc3\xa4\n[objects]\n\xff").unwrap();
    let binary = ChainSource::read(&path).unwrap_err().to_string();
    assert_eq!(binary, format!("{}:3:1: not valid UTF-8", path.display()));
    let missing = paceline::with_causes(&ChainSource::read("none/chain.toml").unwrap_err());
    assert_eq!(missing, "none/chain.toml: No such file or directory (os error 2)");
}
