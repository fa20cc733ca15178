//! Loading of objects: alike in all commands.

use crate::common::{Done, Folder, fixture, paceline};
use serde_json::json;

fn loader(program: &str) -> String {
    format!("{}:{program}", fixture("loader.o"))
}

fn kernel(program: &str) -> String {
    format!("{}:{program}", fixture("kernel.o"))
}

/// Both commands over one program, with the same options.
fn verify_and_run(target: &str, options: &[&str]) -> [Done; 2] {
    ["verify", "run"].map(|command| paceline([command, target].into_iter().chain(options.iter().copied())))
}

#[track_caller]
fn both_accept(target: &str, options: &[&str]) -> serde_json::Value {
    let [verified, run] = verify_and_run(target, &[options, &["--json"]].concat());
    assert_eq!(verified.json()["programs"][0]["verdict"], "accepted");
    run.json()
}

#[track_caller]
fn both_refuse(target: &str, options: &[&str], parts: &[&str]) {
    for done in verify_and_run(target, options) {
        done.fails(1, "", parts);
    }
    let json = paceline(["verify", "--json", target].into_iter().chain(options.iter().copied()));
    assert_eq!(json.status, Some(1));
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["programs"][0]["verdict"], "refused", "{json}");
}

#[test]
fn a_program_is_not_kept_from_running_by_the_maps_of_others() {
    let run = both_accept(&loader("plain"), &["--btf", "none"]);
    assert_eq!(run["verdicts"]["pass"], run["packets"]);
    let run = paceline(["run", "--maps", "--json", &loader("plain")]).json();
    assert_eq!(run["maps"]["runs"][0]["value"], run["packets"], "{run}");
    assert!(run["maps"].get("groups").is_none(), "{run}");
    both_refuse(
        &loader("grouped"),
        &[],
        &["program grouped: map \"groups\": map type cgroup_array is not supported"],
    );
    let folder = Folder::new();
    let file = folder.write("groups.json", b"[]");
    both_refuse_map(&loader("plain"), &format!("groups={file}"));
}

/// A missing map is not filled.
fn both_refuse_map(target: &str, map: &str) {
    for done in verify_and_run(target, &["--map", map]) {
        done.fails(1, "", &["map type cgroup_array is not supported"]);
    }
}

#[test]
fn what_no_path_reaches_is_not_missed() {
    let run = both_accept(&loader("tracing"), &[]);
    assert_eq!(run["verdicts"]["tx"], run["packets"]);
    let inspected = paceline(["inspect", "--json", &fixture("loader.o")]).json();
    let missing = inspected["missing"].to_string();
    assert!(!missing.contains("tracing"), "{missing}");
    assert!(missing.contains("map groups"), "{missing}");
    let folder = Folder::new();
    let file = folder.write("variables.json", br#"{"traced": true}"#);
    let traced = format!(".rodata={file}");
    both_refuse(&loader("tracing"), &["--map", &traced], &["bpf_get_current_task"]);
}

#[test]
fn the_command_line_sets_what_loaders_set() {
    let hint = "hint: its loader sets how many entries it has; here `--map sized=entries:N` does";
    both_refuse(&loader("last"), &[], &["map \"sized\": max_entries is zero", hint]);
    for (entries, verdict) in [("2", "drop"), ("3", "pass")] {
        let run = both_accept(&loader("last"), &["--map", &format!("sized=entries:{entries}")]);
        assert_eq!(run["verdicts"][verdict], run["packets"], "{entries}");
    }
    paceline(["verify", &loader("plain"), "--map", "size=entries:3"]).fails(
        1,
        "--map: the object has no map `size`",
        &["hint: did you mean `sized`?"],
    );
    // Objects of chain files have no other way.
    let folder = Folder::new();
    let text = format!(
        "[objects.o]\nfile = \"{}\"\n[[program]]\nname = \"last\"\nobject = \"o\"\nfunction = \"last\"\n",
        fixture("loader.o")
    );
    let chain = folder.write("chain.toml", text);
    paceline(["run", &chain]).fails(1, &format!("{chain}:"), &["--map sized=entries:N"]);
    let json = paceline(["run", &chain, "--map", "sized=entries:3", "--json"]).json();
    assert_eq!(json["verdicts"]["pass"], json["packets"]);
    paceline(["run", &chain, "--map", "size=entries:3"]).fails(1, "--map: the object has no map `size`", &[]);
    // A map may be that of a program of another type.
    let mut bytes = std::fs::read(fixture("redirects.o")).unwrap();
    let one = u32::to_ne_bytes(1_000_000);
    let at: Vec<usize> = (0..bytes.len() - 4).filter(|&at| bytes[at..at + 4] == one).collect();
    assert!(!at.is_empty(), "the number of entries is in the types");
    at.into_iter().for_each(|at| bytes[at..at + 4].fill(0));
    let zero = folder.write("zero.o", &bytes);
    both_accept(&format!("{zero}:others"), &[]);
    both_refuse(&format!("{zero}:redirects"), &[], &["map \"large\": max_entries is zero"]);
    // Without a number a perf event array has an entry for each CPU, as with libbpf.
    let inspected = paceline(["run", &loader("plain"), "--maps"]).ok();
    assert!(inspected.contains("events (perf_event_array, at most 1 entries)"), "{inspected}");
}

#[test]
fn maps_in_a_map_are_given_by_their_elements() {
    let folder = Folder::new();
    let elements = json!([{ "key": 7, "value": [{ "key": 443, "value": 3 }, { "key": 80, "value": 1 }] }]);
    let file = folder.write("tenants.json", elements.to_string().as_bytes());
    let map = format!("tenants={file}");
    let run = both_accept(&loader("by_tenant"), &["--map", &map]);
    assert_eq!(run["verdicts"]["tx"], run["packets"]);
    let state = folder.text("state.json");
    let run =
        paceline(["run", &loader("by_tenant"), "--map", &map, "--maps", "--json", "--save-maps", &state]);
    let sorted = json!([{ "key": 7, "value": [{ "key": 80, "value": 1 }, { "key": 443, "value": 3 }] }]);
    assert_eq!(run.json()["maps"]["tenants"], sorted);
    let again = paceline(["run", &loader("by_tenant"), "--restore-maps", &state, "--maps", "--json"]).json();
    assert_eq!(again["maps"]["tenants"], sorted);
    assert_eq!(again["verdicts"]["tx"], again["packets"]);
    let text = paceline(["run", &loader("by_tenant"), "--map", &map, "--maps"]).ok();
    assert!(text.contains("  [7] = { [80] = 1, [443] = 3 }\n"), "{text}");
    let wrong = folder.write("wrong.json", br#"[{"key": 7, "value": [{"key": 70000, "value": 3}]}]"#);
    let done = paceline(["run", &loader("by_tenant"), "--map", &format!("tenants={wrong}")]);
    done.fails(
        1,
        &format!("{wrong}: line 1, column 31: map tenants, element 1, value, element 1, key: "),
        &[],
    );
}

#[test]
fn programs_whose_sections_tell_no_type_are_given_one() {
    let untold = loader("untold");
    let cause = "program untold is in section mine, which names no type of programs that run here";
    let hint = "`--type TYPE ";
    for done in verify_and_run(&untold, &[]) {
        done.fails(1, "", &[cause, hint]);
    }
    let run = both_accept(&untold, &["--type", "xdp"]);
    assert_eq!(run["verdicts"]["tx"], run["packets"]);
    paceline(["verify", &untold, "--type", "action"]).fails(2, "invalid value 'action'", &["it must be xdp"]);
    // Of objects with no program at all that is run, each is named.
    let folder = Folder::new();
    let bytes = std::fs::read(fixture("loader.o")).unwrap();
    let mut other = bytes.clone();
    // The name is the end of that of the section's relocations.
    let at = bytes.windows(8).position(|window| window == b".relxdp\0").unwrap();
    other[at + 4..at + 7].copy_from_slice(b"abc");
    let other = folder.write("other.o", &other);
    for target in [other.clone(), format!("{other}:nobody")] {
        for done in verify_and_run(&target, &[]) {
            done.fails(
                1,
                &format!("{other}: no XDP program, TC classifier or socket filter in the object; it has plain (section abc), "),
                &["untold (section mine)", "--type TYPE", "or socket for a socket filter"],
            );
        }
    }
}

#[test]
fn objects_are_adapted_to_the_kernel_that_is_given() {
    let types = fixture("kernel_types.o");
    let folder = Folder::new();
    let config = folder.write("config", b"# comment\nCONFIG_HZ=250\n");
    let given = ["--btf", &types, "--kernel-version", "6.1.55", "--kconfig", &config];
    let asks = both_accept(&kernel("asks"), &given);
    assert_eq!(asks["verdicts"]["drop"], asks["packets"], "the kernel has no such member");
    let version = both_accept(&kernel("version"), &given);
    assert_eq!(version["verdicts"]["pass"], version["packets"]);
    let older = both_accept(&kernel("version"), &["--btf", "none", "--kernel-version", "5.15"]);
    assert_eq!(older["verdicts"]["drop"], older["packets"]);
    let hertz = both_accept(&kernel("hertz"), &given);
    assert_eq!(hertz["verdicts"]["tx"], hertz["packets"]);
    let note = format!(
        "note: {}: 2 CO-RE relocations are by the types of {types}; the kernel's version is 6.1.55; its configuration \
         is {config}\n",
        fixture("kernel.o")
    );
    let run = paceline(["run", &kernel("asks")].into_iter().chain(given));
    assert!(run.err.starts_with(&note), "{}", run.err);

    // Where there are no types, what needs them says so, and what does not runs.
    let none = ["--btf", "none", "--kconfig", &config];
    let cause =
        "asks whether `struct subject.no_such_member` is in the kernel, and no kernel's types are given";
    for done in verify_and_run(&kernel("asks"), &none) {
        done.fails(1, "", &[cause, "--btf FILE gives types"]);
    }
    both_accept(&kernel("reads"), &none);

    let own = both_accept(&kernel("asks"), &["--btf", &fixture("kernel.o"), "--kconfig", &config]);
    assert_eq!(own["verdicts"]["pass"], own["packets"]);
    let not_there = folder.text("not_there");
    paceline(["verify", &kernel("asks"), "--btf", &not_there]).fails(1, &format!("--btf {not_there}: "), &[]);
    paceline(["verify", &kernel("asks"), "--btf", &config]).fails(1, &format!("--btf {config}: "), &[]);
    // Also where the object needs none.
    let plain = fixture("no_bounds_check.o");
    paceline(["verify", &plain, "--btf", &not_there]).fails(1, &format!("--btf {not_there}: "), &[]);
    paceline(["verify", &plain, "--kconfig", &not_there]).fails(1, &format!("--kconfig {not_there}: "), &[]);
    let wrong = folder.write("wrong", b"CONFIG_HZ\n");
    paceline(["verify", &kernel("hertz"), "--btf", "none", "--kconfig", &wrong]).fails(
        1,
        &format!("--kconfig {wrong}: line 1: `CONFIG_HZ` is not of the form CONFIG_NAME=VALUE"),
        &[],
    );
}
