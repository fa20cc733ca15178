//! Chain files: their contents, and error messages.

use std::path::Path;

use paceline::chain::{Actions, ChainFile, Edges, FileOrder, MapSource, Next, ObjectSource};
use paceline_frame::Verdict;

const WHOLE: &str = r#"
# All there is.
first = "firewall"

[objects.firewall]
file = "firewall.o"
maps.rules.file = "rules.json"
maps.".rodata".variables = { threshold = 10, name = "a\"b" }

[objects.balancer]
file = "balancer.o"
[objects.balancer.maps]
backends.elements = [{ key = 1, value = { ip = [10, 0, 0, 0x0a], up = true } }]
seen = { from = "firewall", map = "flows" }
stats.from = "firewall"

[objects.ssh]
classic = "ssh.bpf"

[[program]]
name = "firewall"
next.pass = "lb"
next.wildcard = "ssh"
end.drop = "tx"

[[program]]
name = "lb"
object = "balancer"
function = "balance"

[[program]]
name = "ssh"

[port]
in = "traffic.pcap"
out = "passed.pcap"
drops = "dropped.pcap"
"#;

#[test]
fn a_file_says_all_of_a_chain() {
    let file = ChainFile::parse(WHOLE).unwrap();
    let names: Vec<_> = file.objects.iter().map(|object| object.name.value.as_str()).collect();
    assert_eq!(names, ["firewall", "balancer", "ssh"]);
    let ObjectSource::Classic(path) = &file.objects[2].source else { panic!("{:?}", file.objects[2]) };
    assert_eq!(path.value, Path::new("ssh.bpf"));
    let source = |object: usize, map: &str| {
        let map = file.objects[object].maps.iter().find(|known| known.name.value == map);
        map.unwrap_or_else(|| panic!("{:?}", file.objects[object])).source.clone()
    };
    let MapSource::Inline(variables) = source(0, ".rodata") else { panic!("{:?}", source(0, ".rodata")) };
    assert_eq!(variables.value, r#"{"name":"a\"b","threshold":10}"#);
    let MapSource::Inline(elements) = source(1, "backends") else { panic!("{:?}", source(1, "backends")) };
    assert_eq!(elements.value, r#"[{"key":1,"value":{"ip":[10,0,0,10],"up":true}}]"#);
    assert_eq!((elements.at.line, elements.at.column), (13, 21));
    for (map, owner) in [("seen", "flows"), ("stats", "stats")] {
        let MapSource::Shared { object: 0, map } = source(1, map) else { panic!("{:?}", source(1, map)) };
        assert_eq!(map.value, owner);
    }
    assert_eq!(file.programs[1].function.as_ref().unwrap().value, "balance");
    let firewall = Edges::NONE
        .with(Verdict::Pass, Next::Program(1))
        .with_wildcard(Next::Program(2))
        .with(Verdict::Drop, Next::End(Verdict::Tx));
    let edges = vec![firewall, Edges::NONE, Edges::NONE];
    assert_eq!(file.order, FileOrder::Edges { first: 0, edges });
    assert_eq!(file.port.drops.unwrap().value, Path::new("dropped.pcap"));
}

#[test]
fn priorities_and_actions_take_the_place_of_the_objects_own() {
    let file = ChainFile::parse(
        "order = \"priority\"\n[objects.a]\nfile = \"a.o\"\n[[program]]\nname = \"a\"\npriority = 0x10\nactions = [\"pass\", \"tx\"]\n",
    );
    let file = file.unwrap();
    assert_eq!(file.order, FileOrder::Priority);
    assert_eq!(file.programs[0].priority, Some(16));
    assert_eq!(file.programs[0].actions, Some(Actions::from_iter([Verdict::Pass, Verdict::Tx])));
}

/// The error of a good file with one line changed.
fn broken(line: &str, by: &str) -> String {
    assert!(WHOLE.contains(line), "{line}");
    let text = WHOLE.replacen(line, by, 1);
    ChainFile::parse(&text).expect_err(&text).to_string()
}

#[test]
fn mistakes_have_their_place_and_a_way_out() {
    let cases = [
        (
            "first = \"firewall\"",
            "fist = \"firewall\"",
            "3:1: unknown key `fist` in a chain file; did you mean `first`?",
        ),
        (
            "first = \"firewall\"",
            "first = \"firewal\"",
            "3:9: no program `firewal`; did you mean `firewall`?",
        ),
        ("first = \"firewall\"", "first = 1", "3:9: `first` is a text"),
        (
            "first = \"firewall\"",
            "order = \"given\"",
            "3:9: `order` is for programs without `next` and `end`",
        ),
        ("file = \"firewall.o\"", "", "5:1: an object needs `file`, `classic` or `filter`"),
        (
            "file = \"firewall.o\"",
            "classic = \"x\"\nfile = \"y\"",
            "5:10: an object has one of `file`, `classic` and `filter`",
        ),
        (
            "file = \"firewall.o\"",
            "filter = \"ip\"\nclassic = \"y\"",
            "5:10: an object has one of `file`, `classic` and `filter`",
        ),
        ("file = \"firewall.o\"", "filter = \"\"", "6:10: `filter` is a text"),
        (
            "file = \"firewall.o\"",
            "files = \"y\"",
            "6:1: unknown key `files` in an object; did you mean `file`?",
        ),
        ("maps.rules.file = \"rules.json\"", "maps.rules.file = []", "7:19: `file` is a text"),
        (
            "maps.rules.file = \"rules.json\"",
            "maps.rules = {}",
            "7:14: a map needs `file`, `elements`, `variables` or `from`",
        ),
        ("maps.rules.file = \"rules.json\"", "maps.rules = 7", "7:14: `a map` is a table"),
        (
            "maps.rules.file = \"rules.json\"",
            "maps.rules.elements = 7",
            "7:23: `elements` is a list of elements { key = ..., value = ... }",
        ),
        (
            "maps.rules.file = \"rules.json\"",
            "maps.rules.elements = [1.5]",
            "7:24: a floating-point number is no value of a map",
        ),
        (
            "stats.from = \"firewall\"",
            "stats.from = \"firewal\"",
            "15:14: no object `firewal`; did you mean `firewall`?",
        ),
        (
            "maps.rules.file = \"rules.json\"",
            "maps.stats.from = \"ssh\"",
            "15:14: `firewall` has the map from another object itself; name that one",
        ),
        ("name = \"ssh\"", "name = \"lb\"", "32:8: another program is named `lb`"),
        ("name = \"ssh\"", "", "31:1: a program needs `name`"),
        (
            "object = \"balancer\"",
            "object = \"balanser\"",
            "28:10: no object `balanser`; did you mean `balancer`?",
        ),
        (
            "object = \"balancer\"",
            "object = \"balancer\"\npriority = 1",
            "29:12: `priority` and `actions` are for chains without `next` and `end`",
        ),
        ("next.pass = \"lb\"", "next.pas = \"lb\"", "22:6: no verdict `pas`; did you mean `pass`?"),
        ("next.pass = \"lb\"", "next.pass = \"balancer\"", "22:13: no program `balancer`"),
        ("next.pass = \"lb\"", "next.drop = \"lb\"", "24:5: a verdict has `next` or `end`, not both"),
        ("end.drop = \"tx\"", "end.drop = \"lb\"", "24:12: no verdict `lb`"),
        ("end.drop = \"tx\"", "end.drop = \"tx\"\nend.drop = \"tx\"", "25:5: duplicate key"),
        ("in = \"traffic.pcap\"", "input = \"traffic.pcap\"", "35:1: unknown key `input` in `port`"),
        ("[port]", "[port", "34:"),
    ];
    for (line, by, expected) in cases {
        let error = broken(line, by);
        assert!(error.starts_with(expected), "{by}: {error}, expected {expected}");
    }
}

/// Programs `a` to `d`, each with an additional line.
fn four(lines: [&str; 4]) -> Result<ChainFile, paceline::chain::FileError> {
    let program =
        |(name, line): (&str, &str)| format!("[[program]]\nname = \"{name}\"\nobject = \"o\"\n{line}\n");
    let programs = ["a", "b", "c", "d"].into_iter().zip(lines).map(program);
    ChainFile::parse(&format!("revision = 7\n[objects.o]\nfile = \"o.o\"\n{}", programs.collect::<String>()))
}

#[test]
fn programs_go_by_others() {
    let order = |lines| match four(lines).unwrap_or_else(|error| panic!("{error}")) {
        ChainFile { order: FileOrder::Given(order), revision: Some(7), .. } => order,
        other => panic!("{other:?}"),
    };
    assert_eq!(order(["", "", "", ""]), [0, 1, 2, 3]);
    assert_eq!(order(["place = 'last'", "", "place = 'first'", ""]), [2, 1, 3, 0]);
    // A placement may refer to a later program.
    assert_eq!(order(["after = 'd'", "before = 'a'", "", ""]), [2, 3, 1, 0]);
    assert_eq!(order(["", "replace = 'd'", "", ""]), [0, 2, 1]);
    let wrong = |lines| four(lines).unwrap_err().to_string();
    assert_eq!(wrong(["before = 'x'", "", "", ""]), "7:10: no program `x`; did you mean `a`?");
    assert_eq!(
        wrong(["after = 'a'", "", "", ""]),
        "7:9: `a` cannot be a neighbor: it is the program itself, or was replaced"
    );
    assert_eq!(
        wrong(["replace = 'b'", "", "after = 'b'", ""]),
        "15:9: `b` cannot be a neighbor: it is the program itself, or was replaced"
    );
    assert_eq!(
        wrong(["replace = 'b'", "place = 'last'", "", ""]),
        "9:8: a program above replaces it: it has no place"
    );
    assert_eq!(
        wrong(["priority = 3", "", "", ""]),
        "7:12: `priority` counts with `order = \"priority\"` alone"
    );
    assert_eq!(wrong(["place = 'frist'", "", "", ""]), "7:9: no place `frist`; did you mean `first`?");
    assert_eq!(
        wrong(["place = 'first'\nbefore = 'b'", "", "", ""]),
        "8:10: a program has one of `place`, `before`, `after` and `replace`"
    );
    assert_eq!(
        wrong(["", "end.pass = 'drop'", "place = 'first'", ""]),
        "15:9: `place`, `before`, `after` and `replace` are for chains in the given order"
    );
}

#[test]
fn what_is_empty_is_refused() {
    let error = |text: &str| ChainFile::parse(text).unwrap_err().to_string();
    assert_eq!(error(""), "1:1: a chain file needs `objects`");
    assert_eq!(error("[objects.a]\nfile = \"a\"\n"), "1:1: a chain file needs `program`");
    assert_eq!(error("program = []\n[objects.a]\nfile = \"a\"\n"), "1:1: a chain file needs `program`");
    assert_eq!(error("[program]\n[objects.a]\nfile = \"a\"\n"), "1:1: `program` is a list: say [[program]]");
}

#[test]
fn changed_files_are_refused_or_read_and_never_panic() {
    let changes = std::env::var("PACELINE_MUTATIONS").ok().and_then(|count| count.parse().ok());
    for seed in 0..changes.unwrap_or(1000) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut bytes = WHOLE.as_bytes().to_vec();
        for _ in 0..rng.usize(1..8) {
            let at = rng.usize(..bytes.len());
            match rng.u8(..4) {
                0 => bytes[at] = rng.u8(..),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, *rng.choice(b"\"'[]{}=.\n#0").unwrap()),
                _ => {
                    let end = (at + rng.usize(..40)).min(bytes.len());
                    let part = bytes[at..end].to_vec();
                    let to = rng.usize(..bytes.len());
                    bytes.splice(to..to, part);
                }
            }
        }
        if let Err(error) = ChainFile::parse(&String::from_utf8_lossy(&bytes)) {
            assert!(error.at.line > 0 && error.at.column > 0, "seed {seed}: {error}");
        }
    }
}

#[test]
fn objects_are_loaded_after_those_whose_maps_they_share() {
    let file = |objects: &str| ChainFile::parse(&format!("{objects}\n[[program]]\nname = \"a\"\n"));
    let chain = "objects.a = { file = \"a\", maps.m.from = \"b\" }\n\
                 objects.b = { file = \"b\", maps.n.from = \"c\" }\n\
                 objects.c = { file = \"c\" }\n";
    assert_eq!(file(chain).unwrap().load_order(), [2, 1, 0]);
    // Each of many waits for the next one; those of one line stand after their owners.
    let object = |name: usize, owner: usize| match owner {
        0 => format!("o{name} = {{ file = \"a\" }}"),
        _ => format!("o{name} = {{ file = \"a\", maps.m = {{ from = \"o{owner}\", map = \"m{owner}\" }} }}"),
    };
    let program = "[[program]]\nname = \"o1\"\n";
    let waiting = |name| format!("objects.{}\n", object(name, (name + 1) % 10_001));
    let read = ChainFile::parse(&((1..=10_000).map(waiting).collect::<String>() + program)).unwrap();
    assert!(read.load_order().into_iter().eq((0..10_000).rev()));
    let line = (1..=1000).map(|name| object(name, name - 1)).collect::<Vec<_>>().join(", ");
    let read = ChainFile::parse(&format!("objects = {{ {line} }}\n{program}")).unwrap();
    assert!(read.load_order().into_iter().eq(0..1000));
    let circle = chain.replace("file = \"c\" }", "file = \"c\", maps.k.from = \"a\" }");
    let error = file(&circle).unwrap_err().to_string();
    assert_eq!(error, "1:9: objects share maps with each other in a circle");
}
