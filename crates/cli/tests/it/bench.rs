//! `paceline bench`: what is measured, compared and allowed.

use std::process::Command;

use crate::common::{Done, Folder, command, example, fixture, paceline};

fn bench(arguments: &[&str]) -> Done {
    // Short rounds: the figures of a test mean nothing.
    paceline([&["bench"], arguments, &["--rounds", "8", "--round-ms", "1"]].concat())
}

#[test]
fn the_option_that_bench_replaces_is_gone_with_a_hint() {
    for command in [&["run"][..], &["chain", "status"]] {
        let arguments = [command, &["--time"]].concat();
        paceline(arguments).fails(
            2,
            "invalid value '' for '--time'",
            &["`paceline bench OBJECT --in FILE` measures"],
        );
    }
}

#[test]
fn times_instructions_and_code_are_reported() {
    let (firewall, capture) = (example("firewall.o"), example("traffic.pcap"));
    let out = bench(&[&firewall, "--in", &capture, "--by-verdict", "--cold", "--engine", "threaded"]).ok();
    for part in [
        " on threaded, ",
        " instructions a packet\n",
        "492 packets of ",
        "\nin bursts ",
        "\nalone ",
        "\ncold ",
        "\ndrop ",
        "\npass ",
    ] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    let json = bench(&[&firewall, "--in", &capture, "--json"]).json();
    let times = ["min_ns", "median_ns", "p99_ns"].map(|name| json["bursts"][name].as_f64().unwrap());
    assert!(0.0 < times[0] && times[0] <= times[1] && times[1] <= times[2], "{json}");
    // As many as the plain interpreter counts.
    assert!((50.0..200.0).contains(&json["subjects"][0]["instructions"].as_f64().unwrap()), "{json}");
    let has_code = json["subjects"][0]["native_bytes"].as_u64().is_some();
    assert_eq!(has_code, json["subjects"][0]["engine"] == "jit", "{json}");
}

#[test]
fn another_program_is_compared_and_limits_are_kept() {
    let (firewall, counter) = (example("firewall.o"), example("counter.o"));
    // Who is faster is not tested here, beside other tests: the statistics have tests of their own.
    let json = bench(&[
        &firewall,
        "--engine",
        "threaded",
        "--against",
        &firewall,
        "--against-engine",
        "plain",
        "--json",
    ])
    .json();
    let ratio = ["low", "median", "high"].map(|name| json["bursts"]["ratio"][name].as_f64().unwrap());
    assert!(0.0 < ratio[0] && ratio[0] <= ratio[1] && ratio[1] <= ratio[2], "{json}");
    assert_eq!(
        (&json["subjects"][0]["engine"], &json["subjects"][1]["engine"]),
        (&"threaded".into(), &"plain".into())
    );
    let out = bench(&[&firewall, "--against", &counter]).ok();
    assert!(out.contains("\nagainst ") && out.contains("  the other"), "{out}");
    bench(&[&firewall, "--max-ns", "0.001"]).fails(
        1,
        "the median in bursts is ",
        &["more than --max-ns 0.001"],
    );
    bench(&[&firewall, "--max-ns", "1e9"]).ok();
    bench(&[&firewall, "--against", &firewall, "--max-ratio", "0.001"]).fails(
        1,
        "the ratio in bursts is ",
        &["above --max-ratio 0.001"],
    );
    bench(&[&firewall, "--max-ratio", "1"]).fails(2, "", &["--against"]);
    bench(&["no.o"]).fails(1, "no.o: No such file", &[]);
}

#[test]
fn instructions_by_line_are_all_instructions() {
    let capture = example("traffic.pcap");
    let json = bench(&[&example("firewall.o"), "--in", &capture, "--by-line", "--json"]).json();
    let subject = &json["subjects"][0];
    let lines = subject["lines"].as_array().unwrap();
    let sum = |member: &str| lines.iter().map(|line| line[member].as_f64().unwrap()).sum::<f64>();
    // Counted in another run.
    assert!((sum("instructions") - subject["instructions"].as_f64().unwrap()).abs() < 1e-6, "{subject}");
    assert!((sum("share") - 1.0).abs() < 1e-6, "{subject}");
    assert!(lines.is_sorted_by(|a, b| a["share"].as_f64() >= b["share"].as_f64()));
    let out = bench(&[&example("firewall.o"), "--in", &capture, "--by-line"]).ok();
    assert!(out.contains("by line (counts of the plain interpreter, no times)\n"), "{out}");
    assert!(out.contains("firewall.bpf.c:189 ") && out.contains(" more lines\n"), "{out}");
}

/// Pairs of programs with the verdict that they must get.
const PAIRS: [(&str, &str, &str); 6] = [
    ("steps_200", "steps_220", "faster"),
    ("steps_220", "steps_200", "slower"),
    ("steps_200", "steps_200_again", "equal"),
    ("lookups_100", "lookups_110", "faster"),
    ("lookups_110", "lookups_100", "slower"),
    ("lookups_100", "lookups_100_again", "equal"),
];

/// Attempts at a verdict beside other tests, which take the machine away for longer than a round.
const ATTEMPTS: usize = 5;

/// A difference of a tenth is told, and none where there is none: 95 times in 100 over all engines and pairs on a machine with nothing else
/// to do, which `PACELINE_PAIRS=100` checks and prints. Beside other tests one right verdict in a few is enough.
#[test]
fn programs_that_differ_by_a_tenth_are_ordered() {
    let campaign = std::env::var("PACELINE_PAIRS").ok().and_then(|count| count.parse::<usize>().ok());
    let (object, folder) = (fixture("work.o"), Folder::new());
    let capture = folder.capture("64.pcap", &[&[0; 60][..]; 64]);
    // Verdicts, and right ones, of pairs that differ and of equal ones.
    let mut sums = [(0, 0); 2];
    for engine in ["jit", "threaded", "plain"] {
        for (ours, theirs, expected) in PAIRS {
            let of = |program: &str| format!("{object}:{program}");
            let compare = || {
                let pair = ["bench", &of(ours), "--against", &of(theirs), "--in", &capture];
                let how = ["--engine", engine, "--round-ms", "1", "--json"];
                let json = paceline([&pair[..], &how].concat()).json();
                json["bursts"]["ratio"]["comparison"].as_str().unwrap().to_owned()
            };
            let what = format!("{engine}: {ours} against {theirs}");
            match campaign {
                // Beside other tests, what they take from one side tells equal programs apart.
                None if expected == "equal" => {}
                None => {
                    let found: Vec<_> =
                        (0..ATTEMPTS).map(|_| compare()).take_while(|found| found != expected).collect();
                    assert!(found.len() < ATTEMPTS, "{what}: {found:?}");
                }
                Some(count) => {
                    let found: Vec<_> = (0..count).map(|_| compare()).collect();
                    let right = found.iter().filter(|found| *found == expected).count();
                    eprintln!("{what}: {expected} {right} times of {count}");
                    let sum = &mut sums[usize::from(expected == "equal")];
                    *sum = (sum.0 + count, sum.1 + right);
                }
            }
        }
    }
    assert!(sums.iter().all(|(all, right)| right * 100 >= 95 * all), "right of all: {sums:?}");
}

/// A capture of one packet fills bursts and windows: neither the clock nor the set-up of a burst is paid by it alone.
#[test]
fn one_packet_takes_what_many_take() {
    let (object, folder) = (format!("{}:steps_200", fixture("work.o")), Folder::new());
    let one = folder.capture("one.pcap", &[&[0; 60]]);
    let many = folder.capture("many.pcap", &[&[0; 60][..]; 256]);
    let best = |capture: &str, what: &str| {
        bench(&[&object, "--in", capture, "--json"]).json()[what]["min_ns"].as_f64().unwrap()
    };
    for what in ["bursts", "alone"] {
        let ratios = (0..ATTEMPTS).map(|_| best(&one, what) / best(&many, what));
        let found: Vec<_> = ratios.take_while(|ratio| !(0.8..1.25).contains(ratio)).collect();
        assert!(found.len() < ATTEMPTS, "{what}: {found:?}");
    }
}

#[test]
fn other_programs_on_the_processor_are_told() {
    let firewall = example("firewall.o");
    let cpu = rustix::thread::sched_getcpu().to_string();
    let on_it = |command: &mut Command| {
        let arguments = [
            &["-c".as_ref(), cpu.as_ref(), command.get_program()][..],
            &command.get_args().collect::<Vec<_>>(),
        ]
        .concat();
        let mut pinned = Command::new("taskset");
        pinned.args(arguments);
        pinned
    };
    let mut other = on_it(Command::new("sh").args(["-c", "while :; do :; done"])).spawn().unwrap();
    let arguments = ["bench", &firewall, "--round-ms", "5", "--json"];
    let done = Done::from(on_it(command().args(arguments)).output().unwrap());
    other.kill().unwrap();
    other.wait().unwrap();
    let json = done.json();
    let busy = json["busy"][0].as_str().unwrap();
    assert!(
        busy.contains("% of the time other programs had the processor (/proc/thread-self/schedstat)"),
        "{json}"
    );
}

#[test]
fn the_kernel_measures_its_own_runs() {
    if !paceline_testkit::kernel::available_for("the_kernel_measures_its_own_runs") {
        return;
    }
    let json = bench(&[&example("firewall.o"), "--kernel", "--json"]).json();
    assert!(json["kernel"]["median_ns"].as_f64().unwrap() > 1.0, "{json}");
}

#[test]
fn manual_pages_have_all_commands() {
    let folder = Folder::new();
    paceline(["man", &folder.text("man1")]).ok();
    let page = std::fs::read_to_string(folder.path("man1/paceline-run.1")).unwrap();
    assert!(page.contains(".TH paceline-run 1") && page.contains("Examples:"), "{page}");
    let pages = std::fs::read_dir(folder.path("man1")).unwrap().count();
    assert!(pages > 18, "{pages}");
}
