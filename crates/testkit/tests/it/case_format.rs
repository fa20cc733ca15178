//! The case format: its semantics, and the messages for invalid files.

use paceline_btf::{Btf, Type};
use paceline_spec::{InitialValue, Linkage, MapFlags, MapKind};
use paceline_testkit::case::{CaseKind, Change, NoteKind, Verifier, parse_file, read_file};
use paceline_testkit::engine::{Engine, OurEngine, Unsupported};
use paceline_testkit::outcome::{Finished, Outcome, Ran, Return};
use paceline_testkit::{case::Case, runner};

fn error(text: &str) -> String {
    parse_file(text).expect_err("the file is wrong").to_string()
}

fn one(text: &str) -> Case {
    let mut cases = parse_file(text).expect("a good file");
    assert_eq!(cases.len(), 1);
    cases.remove(0)
}

const EXIT: &str = "program:\n    r0 = 2\n    exit\n";

#[test]
fn a_case_means_what_it_says() {
    let case = one("
# Why this case is here.
case: everything
kernel: since 6.12 because
map: hits percpu_array key 4 value 8 entries 2 flags rdonly_prog|0x400
    u32 1 = u64 7   # seven
map: jump prog_array key 4 value 4 entries 1
    u32 0 = program second
program:
    r1 = map[hits] ll
    if r1 == 0 goto out
    r0 = 1          # one
out:
    exit
program: second
    r0 = 2
    exit
packet: eth / ipv4 10.0.0.1 10.0.0.2 / udp 1 2
    / \"a # in a string\"
meta: 00 01 02 03
context: rx_queue_index 3
verdict: drop
packet: zeros 60
r0: -1
output: same
after: hits
    u32 1 = u64 8
");
    assert_eq!((case.name.as_str(), case.line, case.kind), ("everything", 3, CaseKind::Xdp));
    assert_eq!(case.notes[0].kind, NoteKind::Since(6, 12));
    let [hits, jump] = &case.maps[..] else { panic!("two maps") };
    assert_eq!((hits.kind, hits.flags), (MapKind::PerCpuArray, MapFlags::RDONLY_PROG | MapFlags::MMAPABLE));
    assert_eq!(hits.contents[0].1, InitialValue::Bytes(7u64.to_ne_bytes().to_vec()));
    assert_eq!(jump.contents[0].1, InitialValue::Program("second".to_owned()));
    assert_eq!(case.programs.iter().map(|p| p.insns.len()).collect::<Vec<_>>(), [5, 2]);
    let [first, second] = &case.runs[..] else { panic!("two runs") };
    assert_eq!(first.data.len(), 14 + 20 + 8 + 15);
    assert_eq!((first.meta.as_slice(), first.context.rx_queue_index), (&[0, 1, 2, 3][..], 3));
    assert_eq!((second.expect.r0, second.expect.output.as_deref()), (Some(u64::MAX), Some(&[0; 60][..])));
    // Unlisted elements are zero.
    assert_eq!(case.after[0].1.len(), 2);
    assert_eq!(case.verifier, Verifier::Accepts);
}

#[test]
fn types_become_btf() {
    let case = one("case: a
types:
    struct lock { u32 val; };
    struct value { u8 first; struct lock lock; u64 *next; u16 rest[3]; };
    union either { u32 number; u8 bytes[6]; };
    int sub(struct xdp_md *ctx, const struct value *value __arg_nonnull);
    static unsigned long other(void);
    extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym __weak;
map: values hash key either value value entries 2
map: sizes hash key 12 value u64 entries 2
map: plain hash key 12 value 8 entries 2
program:
    call sub
    call other
    call last
    call bpf_iter_num_destroy
    exit
sub:
    exit
    other: exit
last:
    exit
r0: 0
");
    let [values, sizes, plain] = &case.maps[..] else { panic!("three maps") };
    let name = |id| case.btf.c_name(id);
    assert_eq!((values.key_size, values.value_size), (8, 24));
    assert_eq!(name(values.key_type) + ", " + &name(values.value_type), "union either, struct value");
    let Some(Type::Struct(value)) = case.btf.get(values.value_type) else { panic!("a structure") };
    assert_eq!(value.members.iter().map(|m| m.bit_offset / 8).collect::<Vec<_>>(), [0, 4, 8, 16]);
    assert_eq!(name(sizes.key_type) + ", " + &name(sizes.value_type), "unsigned char[12], unsigned long");
    assert_eq!((plain.key_type, plain.value_type), (0, 0));
    let functions = &case.programs[0].functions;
    let shown: Vec<_> = functions.iter().map(|f| (f.name.as_str(), f.linkage, f.start)).collect();
    let (global, local) = (Linkage::Global, Linkage::Static);
    assert_eq!(shown, [("main", global, 0), ("sub", global, 5), ("other", local, 6), ("last", local, 7)]);
    for function in functions {
        assert_eq!(case.btf.type_name(function.btf_id), function.name);
    }
    let kfunc = &case.programs[0].kfuncs[0];
    assert_eq!((kfunc.name.as_str(), kfunc.weak), ("bpf_iter_num_destroy", true));
    assert_eq!(Btf::parse(&case.btf.to_bytes()), Ok(case.btf));
}

#[test]
fn errors_in_types_are_at_their_lines() {
    let types =
        |text: &str| error(&format!("case: a\ntypes:\n    {text}\nprogram:\nsub:\n    exit\nr0: 0\n"));
    assert_eq!(types("struct s { u32 a;\n float b; };"), "4: `float` is no type");
    assert_eq!(types("struct s { struct t a; };"), "3: missing: size of the type");
    assert_eq!(types("struct s { u32 a };"), "3: `}` is no ;");
    assert_eq!(types("struct s { u32 a; }"), "3: missing: ;");
    assert_eq!(types("struct s { u8 a[b]; };"), "3: `b` is no number of elements");
    assert_eq!(types("struct s { };\n struct s { };"), "4: `s` is given twice");
    assert_eq!(types("int away(int x);"), "3: `away` is no function of a program");
    assert_eq!(types("extern int f(int x);"), "3: `;` is no __ksym");
    assert_eq!(
        error(&format!("case: a\ntypes: int\n{EXIT}r0: 2\n")),
        "2: declarations are indented below `types:`"
    );
    let map = error(&format!("case: a\nmap: m array key 4 value pair entries 1\n{EXIT}r0: 2\n"));
    assert_eq!(map, "2: `pair` is no number");
}

#[test]
fn marks_say_which_instruction_is_guilty() {
    let case = one("case: a\nprogram:\n    r1 = 5 ll\nhere:\n    r0 = r7    #! R7 is not set\n    exit\n");
    let expected = Verifier::Refuses { text: "R7 is not set".to_owned(), place: Some((0, 2)) };
    assert_eq!(case.verifier, expected);
    assert!(case.runs.is_empty());
}

#[test]
fn an_error_means_that_the_verifier_refuses() {
    let case = one(&format!("case: a\n{EXIT}error: beyond the end\n"));
    assert_eq!(case.verifier, Verifier::Refuses { text: String::new(), place: None });
    assert_eq!(case.runs.len(), 1);
}

#[test]
fn errors_name_line_and_cause() {
    assert_eq!(error("type: xdp\n"), "1: `type` comes before the first `case`");
    assert_eq!(error("    r0 = 2\n"), "1: this line is indented but belongs to no block");
    assert_eq!(error("case: a\nno directive\n"), "2: expected a directive `name: value`");
    assert_eq!(error("case: A b\n"), "1: `A b` is no name of lower-case letters, digits and underscores");
    assert_eq!(error("case: a\nr0: 2\n"), "1: case `a` has no program");
    assert_eq!(error(&format!("case: a\n{EXIT}")), "1: case `a` expects nothing");
    assert_eq!(
        error(&format!("case: a\n{EXIT}r0: 2\ncase: a\n{EXIT}r0: 2\n")),
        "6: `case: a` is given twice"
    );
    assert_eq!(error(&format!("case: a\n{EXIT}r0: 2\nr0: 3\n")), "6: `r0` is given twice");
    assert_eq!(error(&format!("case: a\n{EXIT}result: 2\n")), "5: unknown directive `result`");
    assert_eq!(error(&format!("case: a\n{EXIT}verdict: dropped\n")), "5: `dropped` is no verdict");
    assert_eq!(error(&format!("case: a\n{EXIT}packet: 00 zz\n")), "5: unknown term `zz` in data");
    assert_eq!(error(&format!("case: a\n{EXIT}after: hits\n")), "5: no map `hits`");
    assert_eq!(error(&format!("case: a\nkernel: skip\n{EXIT}r0: 2\n")), "2: missing: reason");
    let late = format!("case: a\n{EXIT}r0: 2\nmap: m array key 4 value 4 entries 1\n");
    assert!(error(&late).starts_with("6: `map` cannot come here"), "{}", error(&late));
    let memory = format!("case: a\n{EXIT}memory: 00\n");
    assert!(error(&memory).starts_with("5: `memory` cannot come here"), "{}", error(&memory));
}

#[test]
fn errors_in_programs_and_maps_are_at_their_lines() {
    let program = "case: a\nprogram:\n    # comment\n    r0 = 2\n    r0 ?= 2\n    exit\nr0: 2\n";
    assert!(error(program).starts_with("5: column 8: expected"), "{}", error(program));
    let unknown = "case: a\nprogram:\n    call bpf_fly\n    exit\nr0: 2\n";
    assert_eq!(error(unknown), "3: column 10: no subprogram or helper `bpf_fly`");
    let map = format!("case: a\nmap: m array key 4 value 8 entries 1\n    u32 0 = u32 5\n{EXIT}r0: 2\n");
    assert_eq!(error(&map), "3: value has 4 bytes, the map's values have 8");
    let no_value = format!("case: a\nmap: m array key 4 value 8 entries 1\n    u32 0\n{EXIT}r0: 2\n");
    assert_eq!(error(&no_value), "3: expected `KEY = VALUE`");
    let dangling =
        format!("case: a\nmap: m prog_array key 4 value 4 entries 1\n    u32 0 = program p\n{EXIT}r0: 2\n");
    assert_eq!(error(&dangling), "1: `p` is no program of this case");
}

#[test]
fn updates_belong_to_the_run_behind_them() {
    let maps = "map: jump prog_array key 4 value 4 entries 2\n    u32 0 = program other\n";
    let programs = format!("{EXIT}program: other\n    r0 = 1\n    exit\n");
    let update = "update: jump\n    u32 0 = nothing\n    u32 1 = program other\n";
    let case =
        one(&format!("case: a\n{maps}{programs}packet: zeros 60\nr0: 2\n{update}packet: zeros 60\nr0: 2\n"));
    assert!(case.runs[0].changes.is_empty());
    let other = InitialValue::Program("other".to_owned());
    let change = |index: u32, value| Change { map: 0, key: index.to_ne_bytes().to_vec(), value };
    assert_eq!(case.runs[1].changes, [change(0, None), change(1, Some(other))]);
    let alone = error(&format!("case: a\n{maps}{programs}packet: zeros 60\nr0: 2\n{update}"));
    assert_eq!(alone, "12: missing: packet or memory after `update`");
    let early = error(&format!("case: a\n{maps}{programs}{update}r0: 2\n"));
    assert_eq!(early, "10: missing: packet or memory after `update`");
    let dangling = update.replace("other", "another");
    let dangling = error(&format!("case: a\n{maps}{programs}{dangling}packet: zeros 60\nr0: 2\n"));
    assert_eq!(dangling, "1: `another` is no program of this case");
}

#[test]
fn where_packets_are_redirected_is_compared() {
    let redirect = "program:\n    r1 = 7\n    r2 = 0\n    call bpf_redirect\n    exit\n";
    let failures = |expected: &str| {
        let case = one(&format!("case: a\n{redirect}redirect: {expected}\n"));
        runner::run(&case, &[Box::new(OurEngine::plain())]).failures
    };
    assert_eq!(failures("interface 7"), Vec::<String>::new());
    assert_eq!(failures("interface 8"), ["plain: line 1: redirects to interface 7, expected interface 8"]);
}

#[test]
fn two_engines_are_for_several_programs() {
    let engines: Vec<OurEngine> = OurEngine::all().collect();
    let mixed = engines.iter().find(|engine| engine.name() == "jit+plain").expect("each with each other");
    assert!(!mixed.concerns(&one(&format!("case: a\n{EXIT}r0: 2\n"))));
    assert!(mixed.concerns(&one(&format!("case: a\n{EXIT}program: other\n    r0 = 1\n    exit\nr0: 2\n"))));
    let notes = |name: &str| mixed.answers_to(name);
    assert!(notes("jit") && notes("plain") && notes("paceline") && !notes("kernel") && !notes("threaded"));
    let plain = OurEngine::plain();
    assert!(plain.answers_to("plain") && !plain.answers_to("paceline"));
}

#[test]
fn rows_of_a_table_are_cases() {
    let text = "
case: add_$name
each: name | number | note
    one    | 1      |
    two    | 2      | kernel: skip because
$note
program:
    r0 = 1
    r0 += $number
    exit
runs: packet | r0 one | r0 two | output
    zeros 14 | 2      | 3      | same
    count 14 | 2      | 3      |
";
    let [one, two] = &parse_file(text).expect("a good file")[..] else { panic!("two cases") };
    assert_eq!((one.name.as_str(), one.line, one.notes.len()), ("add_one", 4, 0));
    assert_eq!((two.name.as_str(), two.line, two.notes.len()), ("add_two", 5, 1));
    let runs: Vec<_> = two.runs.iter().map(|run| (run.line, run.expect.r0)).collect();
    assert_eq!(runs, [(12, Some(3)), (13, Some(3))]);
    assert!(two.runs[0].expect.output.is_some() && two.runs[1].expect.output.is_none());
    // A failing row is named, with its line.
    let wrong = text.replace("| 2      | 3      | same", "| 2      | 4      | same");
    let cases = parse_file(&wrong).expect("a good file");
    let failures = |case: &Case| runner::run(case, &[Box::new(OurEngine::plain())]).failures;
    assert_eq!(failures(&cases[0]), Vec::<String>::new());
    assert_eq!(failures(&cases[1]), ["plain: line 12: returns 0x3, expected 0x4"]);
}

#[test]
fn preludes_and_snippets_are_put_in() {
    let plain = "
case: a
license: MIT
map: m array key 4 value 8 entries 1
program:
    r0 = 1
    if r0 == 1 goto over_1
    r0 = 2
over_1:
    if r0 == 3 goto over_2
    r0 = 4
over_2:
    exit
r0: 4
";
    let short = "
snippet: unless(number, result)
    if r0 == $number goto over_$use
    r0 = $result
  over_$use:
prelude:
    map: m array key 4 value 4 entries 1
    program:
        r0 = 1
        @unless(1, 2)
        @unless(3, 4)
        exit
case: a
license: MIT
map: m array key 4 value 8 entries 1
r0: 4
";
    assert_eq!(one(short).canonical(), one(plain).canonical());
    let without = format!("{short}prelude:\ncase: b\n");
    assert_eq!(error(&without), "18: case `b` has no program");
}

#[test]
fn errors_in_expanded_lines_say_where() {
    let errors = [
        ("case: a\nprogram:\n    @none\n", "3: no snippet `none`"),
        ("snippet: s(a)\n    r0 = $a\ncase: a\nprogram:\n    @s\n", "5: snippet `s` has 1 parameters, not 0"),
        (
            "snippet: s(a)\n    r0 = $b\ncase: a\nprogram:\n    @s(1)\n",
            "5: no parameter `$b` (snippet, line 2)",
        ),
        ("snippet: s\n    @s\ncase: a\nprogram:\n    @s\n", "5: snippet `s` uses itself (snippet, line 2)"),
        ("snippet: s\nsnippet: s\n", "2: `snippet: s` is given twice"),
        ("case: a\neach: none\nprogram:\n    exit\n", "2: no table `none`"),
        ("case: a_$b\neach: b | c\n    1\n", "3: 1 cells in a table of 2 columns"),
        ("case: a_$b\neach: b | c\n    1 | 2\n", "1: column `c` is used nowhere"),
        ("case: a_$b\neach: b\n    1\nr0: $c\n", "4: no parameter `$c` (row, line 3)"),
        ("case: a_$b\neach: b\n    1\nruns: r0 2\n    3\n", "4: no row `2` in `each`"),
        ("include: x.snippets\n", "1: include: x.snippets: this text is in no directory"),
    ];
    for (text, expected) in errors {
        assert_eq!(error(text), expected);
    }
    let in_row = "case: a_$b\neach: b\n    1\n    x\nprogram:\n    r0 = $b\n    exit\nr0: 1\n";
    assert!(error(in_row).starts_with("6: column 10: "), "{}", error(in_row));
    assert!(error(in_row).ends_with("(row, line 4)"), "{}", error(in_row));
}

#[test]
fn cases_in_files_say_what_they_are_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("x.case");
    let written = |text: &str| {
        std::fs::write(&path, text).expect("is writable");
        read_file(&path).map(|cases| cases.len()).map_err(|error| error.to_string())
    };
    std::fs::write(directory.path().join("y.snippets"), "snippet: two\n    r0 = 2\n").expect("is writable");
    let uses = "include: y.snippets\n\n# Why.\ncase: a\nprogram:\n    @two\n    exit\nr0: 2\n";
    assert_eq!(written(uses), Ok(1));
    let place = path.display().to_string();
    let message = "case `b` has no comment line directly above it that says what it is for";
    for above in ["", "# Why.\n\n", "#\n"] {
        let text = format!("{uses}{above}case: b\n{EXIT}r0: 2\n");
        let line = 9 + above.lines().count();
        assert_eq!(written(&text), Err(format!("{place}:{line}: {message}")));
    }
    std::fs::write(directory.path().join("y.snippets"), "snippet: two\n    r0 = \n").expect("is writable");
    let error = written(uses).expect_err("the snippet is wrong");
    assert!(
        error.starts_with(&format!("{place}:6: column ")) && error.ends_with("(y.snippets:2)"),
        "{error}"
    );
    std::fs::write(directory.path().join("y.snippets"), "case: a\n").expect("is writable");
    let error = written(uses).expect_err("the included file is wrong");
    assert_eq!(
        error,
        format!("{place}:1: an included file holds `snippet:` and `table:` only (y.snippets:1)")
    );
}

/// An engine with a given outcome.
struct Fixed(&'static str, bool, Outcome);

impl Engine for Fixed {
    fn name(&self) -> &str {
        self.0
    }
    fn verifies(&self) -> bool {
        self.1
    }
    fn run(&self, _: &Case) -> Result<Outcome, Unsupported> {
        Ok(self.2.clone())
    }
}

fn ran(r0: Return, data: Vec<u8>) -> Outcome {
    Outcome::Ran(Ran { runs: vec![Ok(Finished { data, ..Finished::new(r0) })], maps: Vec::new() })
}

fn failures(text: &str, other: Fixed) -> Vec<String> {
    runner::run(&one(text), &[Box::new(OurEngine::plain()), Box::new(other)]).failures
}

#[test]
fn disagreements_are_found() {
    let case = format!("case: a\n{EXIT}verdict: pass\n");
    let same = ran(Return::Low(2), vec![0; 64]);
    assert_eq!(failures(&case, Fixed("jit", false, same.clone())), Vec::<String>::new());
    // The case only checks the low half; the engines must agree on all 64 bits.
    let upper = failures(&case, Fixed("jit", false, ran(Return::Full(1 << 32 | 2), vec![0; 64])));
    assert_eq!(upper, ["jit: line 1: returns 0x100000002, plain 0x2"]);
    let longer = failures(&case, Fixed("jit", false, ran(Return::Low(2), vec![0; 65])));
    assert!(longer[0].contains("65 bytes, plain: 64"), "{longer:?}");
    let refused = Outcome::Refused("no".to_owned().into());
    let refuses = failures(&case, Fixed("kernel", true, refused.clone()));
    assert_eq!(refuses, ["kernel: line 1: refuses the program: no"]);
    // Engines without the verifier ignore expectations about it.
    let faulty = format!("case: a\n{EXIT}verifier: refuses\nr0: 2\n");
    let accepts = failures(&faulty, Fixed("kernel", true, same.clone()));
    assert_eq!(accepts, ["kernel: line 1: accepts the program, which should be refused"]);
    assert_eq!(failures(&faulty, Fixed("kernel", true, refused)), Vec::<String>::new());
    // A `differs` line must be true.
    let differs = format!("case: a\nkernel: differs for some reason\n{EXIT}verdict: pass\n");
    let agrees = failures(&differs, Fixed("kernel", true, same));
    assert_eq!(agrees, ["kernel: line 1: agrees although the case says that it differs (for some reason)"]);
    assert_eq!(
        failures(&differs, Fixed("kernel", true, ran(Return::Low(3), vec![0; 64]))),
        Vec::<String>::new()
    );
}

#[test]
fn wrong_expectations_are_found() {
    let wrong = |expectation: &str| {
        let text = format!(
            "case: a\nmap: m array key 4 value 4 entries 2\n{EXIT}packet: zeros 20\n{expectation}\nafter: m\n    u32 1 = u32 1\n"
        );
        runner::run(&one(&text), &[Box::new(OurEngine::plain())]).failures
    };
    let all = wrong("r0: 3\nverdict: drop\noutput: 00\noutput_meta: 00 00 00 00");
    assert_eq!(all.len(), 5, "{all:?}");
    assert!(all[4].contains("[01000000] = 00000000, expected: 01000000"), "{all:?}");
    assert!(wrong("error: anything")[0].contains("returns 0x2, expected an error with `anything`"));
}
