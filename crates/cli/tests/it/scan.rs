//! `paceline scan`: many captures, compressed and damaged ones among them, through a filter and a program.

use std::fs;
use std::process::Command;

use crate::common::{Folder, capture, example, has_libpcap, has_tool, paceline, packets};

fn scan(arguments: &[&str]) -> crate::common::Done {
    paceline([&["scan"], arguments].concat())
}

#[test]
fn packets_are_those_that_tcpdump_takes() {
    let test = "scan::packets_are_those_that_tcpdump_takes";
    if !has_libpcap(test) || !has_tool(test, "tcpdump") {
        return;
    }
    let folder = Folder::new();
    let (ours, theirs) = (folder.text("ours.pcap"), folder.text("theirs.pcap"));
    let traffic = example("traffic.pcap");
    for expression in ["tcp port 22", "vlan and ip", "greater 1000", "ip6 protochain 6", "ip[2:2] & 1 = 1"] {
        let tcpdump = Command::new("tcpdump").args(["-r", &traffic, "-w", &theirs, expression]).output();
        assert!(tcpdump.expect("tcpdump was there").status.success());
        for workers in ["1", "3"] {
            scan(&[expression, &traffic, "--workers", workers, "--out", &ours]).ok();
            assert_eq!(fs::read(&ours).unwrap(), fs::read(&theirs).unwrap(), "{expression}");
        }
        scan(&[expression, &traffic, &traffic, "-w", &ours]).ok();
        assert_eq!(packets(&ours), [packets(&theirs), packets(&theirs)].concat(), "{expression}");
    }
}

#[test]
fn compressed_captures_are_captures() {
    let test = "scan::compressed_captures_are_captures";
    let folder = Folder::new();
    let traffic = folder.write("traffic.pcap", fs::read(example("traffic.pcap")).unwrap());
    let mut captures = vec![traffic.clone()];
    for (tool, ending) in [("gzip", "gz"), ("zstd", "zst")] {
        if has_tool(test, tool) {
            assert!(Command::new(tool).args(["-k", "-q", &traffic]).status().unwrap().success());
            captures.push(format!("{traffic}.{ending}"));
        }
    }
    for capture in &captures {
        let out = folder.text("out.pcap");
        let json = scan(&["", capture, "--json", "--out", &out]).json();
        assert_eq!((&json["packets"], &json["bytes"]), (&492.into(), &75_706.into()), "{capture}");
        assert_eq!(fs::read(&out).unwrap(), fs::read(&traffic).unwrap(), "{capture}");
    }
}

#[test]
fn a_program_gets_what_matches() {
    let (firewall, traffic) = (example("firewall.o"), example("traffic.pcap"));
    let rules = format!("rules={}", example("firewall-rules.json"));
    let folder = Folder::new();
    let (ours, theirs) = (folder.text("ours.pcap"), folder.text("theirs.pcap"));
    let run =
        paceline(["run", &firewall, "--in", &traffic, "--map", &rules, "--out", &theirs, "--json"]).json();
    let scanned =
        scan(&["", &traffic, "--program", &firewall, "--map", &rules, "--out", &ours, "--json"]).json();
    assert_eq!(scanned["verdicts"], run["verdicts"]);
    assert_eq!(fs::read(&ours).unwrap(), fs::read(&theirs).unwrap());
}

/// A long capture, so that there are several parts.
fn long(folder: &Folder) -> String {
    let traffic = fs::read(example("traffic.pcap")).unwrap();
    let (header, records) = traffic.split_at(24);
    folder.write("long.pcap", [header, &records.repeat(150)].concat())
}

#[test]
fn maps_of_workers_become_one() {
    let (folder, counter) = (Folder::new(), example("counter.o"));
    let long = long(&folder);
    let scan =
        |more: &[&str]| scan(&[&["", &long, "--program", &counter, "--json", "--maps"], more].concat());
    let mut one = scan(&["--workers", "1"]).json();
    let mut two = scan(&["--workers", "2", "--merge", "by_size=sum", "--merge", "sum"]).json();
    // An order of keys is no result.
    for json in [&mut one, &mut two] {
        for map in json["maps"].as_object_mut().expect("maps").values_mut() {
            if let Some(elements) = map.as_array_mut() {
                elements.sort_by_key(ToString::to_string);
            }
        }
    }
    assert_eq!((&two["workers"], &two["maps"]), (&2.into(), &one["maps"]));
    assert_ne!(one["maps"].to_string(), "{}");
    scan(&["--workers", "2"]).fails(
        1,
        "map by_ethertype: programs may change it, and no rule says how those of several workers become one",
        &["--merge by_ethertype=sum for counters", "--workers 1"],
    );
    scan(&["--merge", "by_size=product"]).fails(2, "", &["\"product\" is none of sum, union, fixed"]);
    scan(&["--merge", "by_size=sum", "--merge", "by_size=fixed"]).fails(
        2,
        "",
        &["two rules for map by_size"],
    );
}

#[test]
fn damage_is_told_and_the_rest_is_there() {
    let folder = Folder::new();
    let mut bytes = capture(&[&[0x55; 60][..]; 50]);
    bytes[24 + 20 * 76 + 8..][..4].fill(0xff);
    let damaged = folder.write("damaged.pcap", bytes);
    let done = scan(&["", &damaged, &example("traffic.pcap")]);
    done.fails(1, "1 of the captures is damaged: 76 bytes gave no packets", &["all other packets"]);
    assert!(done.out.contains("541 packets"), "{}", done.out);
    let told = "bytes 1544 to 1620 are lost: a record claims 4294967295 captured bytes";
    assert!(done.out.contains(told), "{}", done.out);
}

#[test]
fn errors_are_clear() {
    let (folder, traffic) = (Folder::new(), example("traffic.pcap"));
    let none = folder.write("none.pcap", "no capture");
    scan(&["", &traffic, "no.pcap"]).fails(1, "no.pcap: No such file", &[]);
    scan(&["", &traffic, &none]).fails(1, &format!("{none}: "), &[]);
    scan(&["", &traffic, "--out", &traffic]).fails(1, "", &["the capture"]);
    scan(&["", &traffic, "--columns", "time"]).fails(2, "", &["--parquet"]);
    let table = folder.text("table.parquet");
    scan(&["", &traffic, "--parquet", &table, "--columns", "verdict"]).fails(2, "", &["--program OBJECT"]);
    scan(&["", &traffic, "--out", "x.pcapng"]).fails(2, "", &["a pcap without compression"]);
    scan(&[""]).fails(2, "", &["CAPTURE"]);
    assert_eq!(folder.names(), ["none.pcap"]);
    if has_libpcap("scan::errors_are_clear") {
        scan(&["tcp prot 22", &traffic]).fails(1, "", &["tcp prot 22"]);
    }
}

#[test]
fn a_table_is_a_complete_parquet_file() {
    let folder = Folder::new();
    let table = folder.text("table.parquet");
    let firewall = example("firewall.o");
    scan(&["", &example("traffic.pcap"), "--program", &firewall, "--parquet", &table]).ok();
    let bytes = fs::read(&table).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    // tests/test_scan.py of the Python package reads the rows by pyarrow.
}

#[test]
fn a_capture_is_open_only_while_it_is_read() {
    let folder = Folder::new();
    let capture = fs::read(example("traffic.pcap")).unwrap();
    let captures: Vec<_> = (0..500).map(|number| folder.write(&format!("{number}.pcap"), &capture)).collect();
    for workers in ["1", "3"] {
        let limited = "ulimit -n 24; exec \"$0\" scan '' --workers \"$@\"";
        let scanned = Command::new("sh")
            .args(["-c", limited, env!("CARGO_BIN_EXE_paceline"), workers])
            .args(&captures)
            .output()
            .expect("there is a shell");
        let told = String::from_utf8_lossy(&scanned.stdout);
        assert!(scanned.status.success(), "{}", String::from_utf8_lossy(&scanned.stderr));
        assert!(told.contains(&(500 * 492).to_string()), "{told}");
    }
}
