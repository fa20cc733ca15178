//! `run --workers`: the same results as on one thread.

use std::fs;

use crate::common::{Folder, example, fixture, paceline};

/// Runs the command with outputs in a folder, on CPUs or threads; returns its report, without the time, and the outputs.
fn ran(arguments: &[&str], workers: [&str; 2]) -> (serde_json::Value, Vec<Vec<u8>>) {
    let folder = Folder::new();
    let (out, drops) = (folder.text("out"), folder.text("drops"));
    let outputs = ["--out", &*out, "--drops", &drops, "--maps", "--json"];
    let done = paceline([&["run"], arguments, &outputs, &workers].concat());
    let mut report: serde_json::Value =
        serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{}", done.err));
    report["seconds"] = 0.into();
    report["status"] = done.status.into();
    (report, [out, drops].map(|path| fs::read(path).expect("an output")).to_vec())
}

/// A capture of many flows, longer than a few windows.
fn many(folder: &Folder) -> String {
    let many = folder.text("many.pcap");
    let generate = [
        "live",
        "--port",
        "gen:flows=300,count=20K,proto=udp+tcp,size=60-1000",
        "--pass",
        &format!("pcap:,{many}"),
    ];
    paceline(generate).ok();
    many
}

#[test]
fn threads_give_what_one_gives() {
    let folder = Folder::new();
    let many = many(&folder);
    let captures = [example("traffic.pcap"), example("traffic.pcapng"), many];
    for input in &captures {
        for objects in [
            &["firewall.o"][..],
            &["balancer.o"],
            &["counter.o"],
            &["reflector.o"],
            &["firewall.o", "counter.o"],
        ] {
            let objects: Vec<_> = objects.iter().map(|object| example(object)).collect();
            let mut arguments: Vec<&str> = objects.iter().map(String::as_str).collect();
            arguments.extend(["--in", input, "--clock", "capture", "--seed", "1"]);
            for workers in ["2", "5"] {
                let one = ran(&arguments, ["--cpus", workers]);
                let several = ran(&arguments, ["--workers", workers]);
                assert!(one == several, "{arguments:?} --workers {workers}: {:#} {:#}", one.0, several.0);
            }
        }
    }
}

#[test]
fn a_count_and_a_fault_end_in_the_same_place() {
    let folder = Folder::new();
    let many = many(&folder);
    for count in ["0", "1", "63", "5000", "100000"] {
        let firewall = example("firewall.o");
        let arguments = [&*firewall, "--in", &many, "--count", count];
        assert!(ran(&arguments, ["--cpus", "3"]) == ran(&arguments, ["--workers", "3"]), "{count}");
    }
    // A capture that ends within a record.
    let cut = folder.text("cut.pcap");
    let bytes = fs::read(&many).expect("a capture");
    fs::write(&cut, &bytes[..bytes.len() / 2 + 3]).expect("a file");
    let firewall = example("firewall.o");
    let arguments = [&*firewall, "--in", &cut];
    let (one, several) = (ran(&arguments, ["--cpus", "3"]), ran(&arguments, ["--workers", "3"]));
    assert!(one == several, "{:#} {:#}", one.0, several.0);
    assert_eq!(one.0["status"], 1);
    // A program that is not verified, and reads behind a packet that is too short.
    let packets: Vec<Vec<u8>> =
        (0..9000).map(|number| vec![number as u8; if number == 7000 { 10 } else { 60 }]).collect();
    let short = folder.capture("short.pcap", &packets.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let unchecked = fixture("no_bounds_check.o");
    let arguments = [&*unchecked, "--in", &short, "--unverified"];
    let (one, several) = (ran(&arguments, ["--cpus", "3"]), ran(&arguments, ["--workers", "3"]));
    assert!(one == several, "{:#} {:#}", one.0, several.0);
    assert_eq!((&one.0["status"], &one.0["packets"]), (&1.into(), &7000.into()));
}

#[test]
fn options_that_need_one_thread_are_refused() {
    for option in [&["--cpus", "2"][..], &["--events", "-"], &["--stats"], &["--trace", "1"]] {
        let arguments = [&["run", "--workers", "2"], option].concat();
        paceline(arguments).fails(2, "the argument '--workers <N>' cannot be used with", &[option[0]]);
    }
    paceline(["run", "--workers", "0"]).fails(2, "invalid value '0' for '--workers <N>'", &["from 1 to 256"]);
}
