//! Every example, every whole XDP program in Debian's packages, and those among the kernel's samples and self-tests in its
//! `linux-source`, compiled here, over the shipped and real captures, on the kernel and on our engines: verdicts, packets
//! and maps must be equal. Prints a table.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};

use paceline_testkit::adapted;
use paceline_testkit::case::parse_data;
use paceline_testkit::kernel;
use paceline_testkit::whole::{Comparison, Fill, Workload, compare, fills_from_packets};

const DEBIAN_OBJECTS: &str = "/usr/lib/x86_64-linux-gnu/bpf";
const DEBIAN_CAPTURES: &str = "/usr/lib/python3/dist-packages/pathspider/tests/data";

/// Objects of the tests of cilium's library, in `golang-github-cilium-ebpf-dev`.
const CILIUM: &str = "/usr/share/gocode/src/github.com/cilium/ebpf";
const CILIUM_FOLDERS: [&str; 2] = ["testdata", "btf/testdata"];

/// Objects and programs that do not run, with a part of the message; see docs/PROGRAMS.md.
const NOT_RUN: &[(&str, &str)] = &[
    // Must be refused: an ordinary program reads a field that only programs of device maps may read.
    ("linux/test_xdp_devmap_helpers:xdpdm_devlog", "invalid context read at offset 20"),
    // The version of Linux 6.1, which current kernels refuse as well.
    ("linux/xdp_synproxy_kern:syncookie_xdp", "the program is too complex"),
    ("linux/xdp_synproxy_kern:syncookie_tc", "the program is too complex"),
    // Must be refused by loaders.
    ("cilium/fwd_decl-el", "`fwd` is not defined"),
    ("cilium/invalid_map-el", "unknown members in its definition"),
    // Only cilium's loader defines the undefined symbols.
    ("cilium/loader-clang-14-el", "`MY_CONST` is not defined"),
    ("cilium/loader-clang-9-el", "`MY_CONST` is not defined"),
    ("cilium/loader-el", "`MY_CONST` is not defined"),
    // No kernel has their types.
    ("cilium/relocs-el:fields", "`struct s._1` is not in the target's types"),
    ("cilium/relocs_read-el:reads", "`struct s.a` is not in the target's types"),
    // Its license is MIT.
    ("cilium/strings-el:filter", "from programs under the GPL only"),
];

/// Entries of the samples' maps whose size their loaders set: at least one for each CPU.
const SET_BY_USERS: u32 = 64;

/// Elements of the examples' maps, in the data language of text cases: those of the JSON files beside the examples.
const FILLS: &[(&str, &str, &str, &str)] = &[
    ("balancer", "vips", "c000020a u16 80 u8 6 00", "u32 1 u32 16 u32 3"),
    ("balancer", "vips", "c000020a u16 443 u8 6 00", "u32 0 u32 16 u32 3"),
    ("balancer", "vips", "c0000235 u16 53 u8 17 00", "u32 0 u32 32 u32 1"),
    ("balancer", "backends", "u32 16", "020000000101 01 00 c6336401"),
    ("balancer", "backends", "u32 17", "020000000102 01 00 c6336402"),
    ("balancer", "backends", "u32 18", "020000000103 01 00 c6336403"),
    ("balancer", "backends", "u32 32", "020000000201 01 00 c6336435"),
    ("firewall", "rules", "u16 22 u8 6 00", "u32 1 u32 0 u64 0"),
    ("firewall", "rules", "u16 139 u8 6 00", "u32 0 u32 0 u64 0"),
    ("firewall", "rules", "u16 0 u8 47 00", "u32 1 u32 0 u64 0"),
    ("firewall", "blocked_v4", "cb007142", "u64 0"),
    ("firewall", "blocked_v4", "c6336407", "u64 0"),
];

/// Packets from one capture unless `PACELINE_ALL_PACKETS=1` is set: one of the real captures is very long and uniform.
const SOME_PACKETS: u64 = 3000;

type Table = Arc<Mutex<BTreeMap<String, Result<Comparison, String>>>>;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let table = Table::default();
    let mut trials = Vec::new();
    if arguments.list || kernel::available_for("objects") {
        let all = std::env::var("PACELINE_ALL_PACKETS").is_ok_and(|value| value == "1");
        let most = if all { u64::MAX } else { SOME_PACKETS };
        let shipped = Arc::new(Workload::read(captures(&examples), most));
        let real = Arc::new(Workload::read(captures(Path::new(DEBIAN_CAPTURES)), most));
        for (captures, workload) in [("shipped", &shipped), ("pathspider", &real)] {
            if workload.packets.is_empty() {
                paceline_testkit::skip(&format!("objects over {captures} captures"), &"there are none");
                continue;
            }
            trials.extend(
                objects(&examples)
                    .iter()
                    .flat_map(|path| trial(path, "examples", captures, workload, &table)),
            );
            let debian = objects(Path::new(DEBIAN_OBJECTS));
            if debian.is_empty() {
                paceline_testkit::skip("Debian's objects", &"xdp-tools and libxdp1 are not installed");
            }
            trials.extend(debian.iter().flat_map(|path| trial(path, "debian", captures, workload, &table)));
            if captures == "shipped" {
                for (from, path) in sources(&table) {
                    trials.extend(trial(&path, from, captures, workload, &table));
                }
            }
            if !arguments.list {
                for (path, reason) in &workload.refused {
                    eprintln!("capture {} not run: {reason}", path.display());
                }
                if workload.left > 0 {
                    eprintln!(
                        "{captures}: {} packets left out (PACELINE_ALL_PACKETS=1 takes all)",
                        workload.left
                    );
                }
            }
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    print_table(&table.lock().unwrap_or_else(PoisonError::into_inner));
    conclusion.exit_code()
}

/// Objects that are compiled here, and those of cilium's library.
fn sources(table: &Table) -> Vec<(&'static str, PathBuf)> {
    let mut found = Vec::new();
    match paceline_testkit::sources::build(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(built) => {
            found.extend(built.objects.into_iter().map(|path| ("linux", path)));
            let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
            for (name, error) in built.failed {
                table.insert(format!("linux/{name}"), Err(format!("does not compile: {error}")));
            }
        }
        Err(reason) => paceline_testkit::skip("the kernel's samples", &reason),
    }
    let little = |path: &PathBuf| path.to_string_lossy().ends_with("-el.elf");
    let folders = CILIUM_FOLDERS.iter().map(|folder| Path::new(CILIUM).join(folder));
    let cilium: Vec<PathBuf> = folders.flat_map(|folder| files(&folder, &["elf"])).filter(little).collect();
    if cilium.is_empty() {
        paceline_testkit::skip("cilium's objects", &"golang-github-cilium-ebpf-dev is not installed");
    }
    found.extend(cilium.into_iter().map(|path| ("cilium", path)));
    found
}

/// Reason why a program is known not to run.
fn known(name: &str) -> Option<&'static str> {
    NOT_RUN.iter().find(|(known, _)| *known == name).map(|(_, part)| *part)
}

/// Compares the result with the list of programs that are known not to run.
fn hold(name: &str, result: Result<(), Failed>) -> Result<(), Failed> {
    match (known(name), result) {
        (None, result) => result,
        (Some(part), Err(failed)) => {
            let text = failed.message().unwrap_or_default();
            if text.contains(part) { Ok(()) } else { Err(format!("not because of {part:?}: {text}").into()) }
        }
        (Some(_), Ok(())) => Err("runs, and is listed as not running".into()),
    }
}

fn files(directory: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let wanted =
        |path: &PathBuf| path.extension().is_some_and(|e| extensions.iter().any(|wanted| e == *wanted));
    let mut found: Vec<PathBuf> = entries.filter(wanted).collect();
    found.sort();
    found
}

fn objects(directory: &Path) -> Vec<PathBuf> {
    files(directory, &["o"])
}

fn captures(directory: &Path) -> Vec<PathBuf> {
    files(directory, &["pcap", "pcapng"])
}

fn trial(path: &Path, from: &str, captures: &str, workload: &Arc<Workload>, table: &Table) -> Vec<Trial> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = format!("{from}/{stem}");
    let object = match adapted::open(path) {
        Ok(object) => object,
        Err(error) => {
            let text = format!("{}: {error}", path.display());
            table.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), Err(error.to_string()));
            return vec![Trial::test(name.clone(), move || hold(&name, Err(text.into())))];
        }
    };
    if object.programs().is_empty() {
        let sections: Vec<String> = object.skipped().iter().map(|skipped| skipped.section.clone()).collect();
        let reason = format!("no XDP program, only {}", sections.join(", "));
        table.lock().unwrap_or_else(PoisonError::into_inner).insert(name, Err(reason));
        return Vec::new();
    }
    let mut object = object;
    let unset = object.specs_mut().maps.iter_mut().filter(|map| from == "linux" && map.max_entries == 0);
    unset.for_each(|map| map.max_entries = SET_BY_USERS);
    let object = Arc::new(object);
    let programs = object.programs().iter().map(|program| program.name.clone());
    let trial = |program: String| {
        let (object, workload, table, stem) = (object.clone(), workload.clone(), table.clone(), stem.clone());
        let short = format!("{name}:{program}");
        let name = format!("{short} over {captures}");
        Trial::test(name.clone(), move || {
            let fills = if stem.starts_with("xdpfilt") {
                // xdp-filter's flags: source, destination, TCP and UDP.
                fills_from_packets(&object, &workload, 0xf)
            } else {
                listed_fills(&stem)
            };
            let result = compare(&object, &program, &fills, &workload).map_err(|error| error.to_string());
            table.lock().unwrap_or_else(PoisonError::into_inner).insert(name, result.clone());
            hold(&short, judge(result))
        })
    };
    programs.map(trial).collect()
}

fn judge(result: Result<Comparison, String>) -> Result<(), Failed> {
    let comparison = result?;
    if comparison.packets == 0 {
        return Err("no packet was compared".into());
    }
    if comparison.differences.is_empty() { Ok(()) } else { Err(comparison.differences.join("\n").into()) }
}

fn listed_fills(stem: &str) -> Vec<Fill> {
    let mine = FILLS.iter().filter(|(object, ..)| *object == stem);
    let data = |text: &str| parse_data(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    mine.map(|(_, map, key, value)| Fill { map: (*map).to_owned(), key: data(key), value: data(value) })
        .collect()
}

#[allow(clippy::print_stdout, reason = "the table is for people")]
fn print_table(table: &BTreeMap<String, Result<Comparison, String>>) {
    if table.is_empty() {
        return;
    }
    println!(
        "{:64} {:>8} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>5}  agrees",
        "program", "packets", "skipped", "aborted", "drop", "pass", "tx", "redirect", "changed", "maps"
    );
    for (name, result) in table {
        match result {
            Ok(c) => {
                let [aborted, drop, pass, tx, redirect, other] = c.verdicts;
                let mut notes = String::from(if c.only_loaded { "; the kernel only loads it" } else { "" });
                if other > 0 {
                    notes += &format!("; {other} other return values");
                }
                if !c.opaque_maps.is_empty() {
                    notes += &format!("; not compared: {}", c.opaque_maps.join(", "));
                }
                if !c.replaced.is_empty() {
                    notes += &format!("; replaced: {}", c.replaced.join(", "));
                }
                if !c.untyped.is_empty() {
                    notes += &format!("; without types: {}", c.untyped.join(", "));
                }
                println!(
                    "{name:64} {:>8} {:>7} {aborted:>8} {drop:>8} {pass:>8} {tx:>8} {redirect:>8} {:>8} {:>5}  {}{notes}",
                    c.packets,
                    c.skipped,
                    c.changed,
                    c.maps.len(),
                    if c.differences.is_empty() { "yes" } else { "NO" },
                );
            }
            Err(reason) => println!("{name:64} {reason}"),
        }
    }
}
