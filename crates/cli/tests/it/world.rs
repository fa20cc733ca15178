//! `paceline run` with a network, a clock, a seed, and events.

use std::fs;

use paceline::capture::{CaptureReader, CaptureWriter, Header, PcapHeader, Resolution};
use paceline::{Burst, FrameMeta};
use serde_json::{Value, json};

use crate::common::{Folder, example, fixture, paceline, packets};

const NETWORK: &str = r#"
[{"ifindex": 3, "ifname": "in0", "mtu": 1500, "address": "02:00:00:00:00:01", "link_type": "ether",
  "addr_info": [{"family": "inet", "local": "192.0.2.1", "prefixlen": 24}]},
 {"ifindex": 7, "ifname": "out0", "mtu": 1400, "address": "02:00:00:00:00:02", "link_type": "ether"}]
[{"dst": "10.0.0.0/8", "gateway": "10.0.0.1", "dev": "out0"}, {"type": "blackhole", "dst": "10.1.0.0/16"}]
[{"dst": "10.0.0.1", "dev": "out0", "lladdr": "02:00:00:00:00:99", "state": ["STALE"]}]
"#;

/// Ethernet and IPv4 to an address.
fn packet(to: [u8; 4], len: u16) -> Vec<u8> {
    let mut packet = vec![0; 14];
    packet[12..14].copy_from_slice(&[8, 0]);
    packet.extend([0x45, 0]);
    packet.extend(len.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 198, 51, 100, 1]);
    packet.extend(to);
    packet
}

#[test]
fn packets_go_where_the_network_says() {
    let folder = Folder::new();
    let all = [
        packet([10, 2, 3, 4], 20),
        packet([10, 1, 0, 1], 20),
        packet([192, 0, 2, 1], 20),
        packet([10, 2, 3, 4], 1401),
        packet([203, 0, 113, 1], 20),
    ];
    let input = folder.capture("in.pcap", &all.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let (network, out) = (folder.text("network.json"), folder.text("out.pcap"));
    fs::write(&network, NETWORK).unwrap();
    let object = fixture("router.o");
    let run = |more: &[&str]| {
        let args = ["run", &object, "--in", &input, "--json", "--maps", "--out", &out];
        paceline(args.iter().chain(more))
    };
    for ingress in ["in0", "3"] {
        let json = run(&["--network", &network, "--ingress", ingress]).json();
        // Success, black hole, not forwarded twice (own address, no route), fragmentation needed.
        assert_eq!(json["maps"][".bss"]["outcomes"], json!([1, 1, 0, 0, 2, 0, 0, 0, 1, 0]));
        assert_eq!(json["verdicts"]["redirect"], 1);
        assert_eq!(packets(&out)[0][..12], [2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 2]);
    }
    let done = run(&[]);
    assert!(
        done.err.contains("bpf_fib_lookup finds no routes") && done.err.contains("--network"),
        "{}",
        done.err
    );
    assert_eq!(done.json()["maps"][".bss"]["outcomes"][5], 5, "a loopback interface forwards nothing");
    run(&["--network", &network, "--ingress", "in1"]).fails(
        1,
        "--ingress in1: there is no such interface",
        &["`in0`"],
    );
    run(&["--network", &network, "--ingress", "4"]).fails(1, "--ingress 4", &[]);
    run(&["--network", &folder.text("none.json")]).fails(1, "--network", &["none.json: No such file"]);
    for (text, parts) in [
        ("[{]", &["line 1, column 3"][..]),
        (r#"[{"dst": "10.0.0.0/33", "dev": "x"}]"#, &["list 1, entry 1", "no interface x"]),
        (r#"[{"dst": "10.0.0.0/33"}]"#, &["list 1, entry 1", "dst", "10.0.0.0/33"]),
        (
            r#"[{"ifindex": 1, "ifname": "a", "mtu": 5}, {"ifindex": 1, "ifname": "b", "mtu": 5}]"#,
            &["entry 2"],
        ),
        (r#"[{"priority": 1, "l3mdev": null, "table": "x"}]"#, &["l3mdev", "not supported"]),
        (r#"[{"what": 1}]"#, &["this is nothing that ip-address"]),
    ] {
        fs::write(&network, text).unwrap();
        run(&["--network", &network]).fails(1, &format!("--network {network}"), parts);
    }
    fs::write(&network, NETWORK).unwrap();
    run(&["--network", &network, "--drops", &network]).fails(1, "--drops", &["same file as the network"]);
}

#[test]
fn a_run_can_be_repeated_bit_for_bit() {
    let folder = Folder::new();
    let input = example("traffic.pcapng");
    let events = |name: &str, more: &[&str]| {
        let file = folder.text(name);
        let args = ["run", &fixture("events.o:tell"), "--in", &input, "--events", &file];
        paceline(args.iter().chain(more)).ok();
        fs::read_to_string(file).unwrap()
    };
    let fixed = ["--clock", "capture", "--seed", "7", "--event-type", "perf=struct notice"];
    let first = events("one", &fixed);
    assert_eq!(first, events("two", &fixed));
    let more = ["--engine", "plain"];
    assert_eq!(first, events("three", &[&fixed[..], &more].concat()), "on another engine");
    assert_ne!(first, events("four", &["--clock", "capture", "--seed", "8", "--event-type", "perf=notice"]));
    assert_ne!(
        first,
        events("five", &["--clock", "system", "--seed", "7", "--event-type", "perf=notice"]),
        "the system's clock"
    );
    let line: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert_eq!(line["time_ns"], line["data"]["time"], "the packet's stamp");
    // Events of the perf event array are in the ring buffer too, of the same packet at the same time.
    let lines = first.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let (perf, ring): (Vec<_>, Vec<_>) = lines.partition(|line| line["map"] == "perf");
    let origin = |line: &Value| ["packet", "cpu", "time_ns"].map(|name| line[name].clone());
    assert_eq!(ring.iter().map(origin).collect::<Vec<_>>(), perf.iter().map(origin).collect::<Vec<_>>());
    assert!(ring.len() > 64, "more than a burst");
    assert!(line["time_ns"].as_u64() > Some(1_000_000_000_000_000_000), "{line}");
}

/// A capture of IPv4 packets from these addresses, each at so many milliseconds.
fn timed(packets: &[(u64, [u8; 4])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = Header::Pcap(PcapHeader::new(Resolution::Micro));
    let mut writer = CaptureWriter::new(&mut bytes, &header).unwrap();
    for (milliseconds, from) in packets {
        let mut packet = packet([10, 0, 0, 1], 20);
        packet[26..30].copy_from_slice(from);
        let timestamp_ns = 1_700_000_000_000_000_000 + milliseconds * 1_000_000;
        let meta = FrameMeta { original_len: packet.len() as u32, timestamp_ns, ..FrameMeta::default() };
        writer.push(&packet, &meta).unwrap();
    }
    drop(writer);
    bytes
}

#[test]
fn timers_fire_when_the_capture_says() {
    let (a, b, c) = ([192, 0, 2, 1], [192, 0, 2, 2], [192, 0, 2, 3]);
    let folder = Folder::new();
    let all = timed(&[(0, a), (100, a), (200, a), (300, b), (1000, a), (1200, c)]);
    let input = folder.write("in.pcap", all);
    let object = fixture("expire.o");
    for engine in ["plain", "threaded", "jit"] {
        // Alone, and in a chain.
        for objects in [&[object.as_str()][..], &[&object, &example("counter.o")]] {
            let options = ["--in", &input, "--json", "--maps", "--engine", engine, "--clock", "capture"];
            let json = paceline(["run"].iter().chain(objects).chain(&options)).json();
            let maps = json["maps"].get(&object).unwrap_or(&json["maps"]);
            let bss = &maps[".bss"];
            assert_eq!(bss["expired"], 2, "{engine}: {json}");
            assert_eq!(bss["packets_of_expired"], 4, "{engine}: {json}");
            assert_eq!(bss["expired_at"], 1_700_000_001_000_000_000_u64, "{engine}: {json}");
            let flows = maps["flows"].as_array().unwrap();
            assert_eq!(flows.len(), 2, "{engine}: {json}");
            assert!(flows.iter().all(|flow| flow["value"]["packets"] == 1), "{engine}: {json}");
        }
    }
}

/// No packet is at fault for what a timer does.
#[test]
fn a_fault_of_a_timer_is_told_as_one() {
    let folder = Folder::new();
    let object = fixture("timer_fault.o");
    let run = |times: &[u64]| {
        let all: Vec<_> = times.iter().map(|&time| (time, [192, 0, 2, 1])).collect();
        let input = folder.write("in.pcap", timed(&all));
        let options = ["run", &object, "--in", &input, "--clock", "capture", "--unverified"];
        (
            paceline(options),
            format!("{object}: program set_alarm, a timer after packet 2 of {input}: read of 8 bytes"),
        )
    };
    let parts = [
        "\n  in function ring\n",
        "alarm->count = alarm[9].count;",
        "the 2 packets before it have their verdicts",
    ];
    let (between, start) = run(&[0, 100, 700]);
    between.fails(1, &start, &parts);
    // In a chain too.
    let input = folder.text("in.pcap");
    let chain = paceline([
        "run",
        &object,
        &example("counter.o"),
        "--in",
        &input,
        "--clock",
        "capture",
        "--unverified",
    ]);
    chain.fails(1, "", &[&format!("a timer after packet 2 of {input}: ")]);
}

#[test]
fn events_are_lines_of_json() {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &[b"0123456789abcd", b"0123456789abcdefghijklmn"]);
    let object = fixture("events.o:tell");
    let run = |more: &[&str]| paceline(["run", &object, "--in", &input, "--events", "-"].iter().chain(more));
    let typed = ["--event-type", "perf=notice", "--event-type", "ring=notice", "--clock", "capture"];
    let done = run(&typed);
    assert!(done.err.contains("  events              4"), "the report goes aside: {}", done.err);
    let out = done.ok();
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let seen: Vec<_> = lines
        .iter()
        .map(|line| {
            (&line["map"], &line["packet"], &line["data"]["length"], &line["data"]["kind"], &line["bytes"])
        })
        .collect();
    let hex = |bytes: &[u8]| json!(bytes.iter().map(|b| format!("{b:02x}")).collect::<String>());
    let (first, second) = (hex(b"0123456789abcd"), hex(b"0123456789abcdefghijklmn"));
    let (short, long, perf, ring, none) =
        (&json!("SHORT"), &json!("LONG"), &json!("perf"), &json!("ring"), &Value::Null);
    let expected = [
        (perf, &json!(1), &json!(14), short, &first),
        (perf, &json!(2), &json!(24), long, &second),
        (ring, &json!(1), &json!(14), short, none),
        (ring, &json!(2), &json!(24), long, none),
    ];
    assert_eq!(seen, expected, "{out}");
    let out = run(&[]).ok();
    let untyped: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!(untyped["data"][0], "0x0e");
    assert_eq!(untyped["data"].as_array().map(Vec::len), Some(24));
    run(&["--event-type", "perv=notice"]).fails(
        1,
        "--event-type perv=notice: there is no such map",
        &["`perf`"],
    );
    run(&["--event-type", "perf=notic"]).fails(1, "--event-type perf=notic", &["no such type"]);
    let to = folder.text("e.json");
    paceline(["run", &object, "--in", &input, "--events", &to, "--out", &to]).fails(
        1,
        "--events",
        &["same file"],
    );
    assert!(!fs::exists(&to).unwrap());
    paceline(["run", &object, "--in", &input, "--event-type", "perf=notice"]).fails(2, "", &["--events"]);
}

#[test]
fn packets_among_events_go_to_a_capture() {
    let folder = Folder::new();
    let all: [&[u8]; 2] = [b"0123456789abcd", b"0123456789abcdefghijklmn"];
    let input = folder.capture("in.pcap", &all);
    let out = folder.text("events.pcapng");
    let json =
        paceline(["run", &fixture("events.o:tell"), "--in", &input, "--events", &out, "--json"]).json();
    // Records of the ring buffer are no frames.
    assert_eq!(json["events"], json!({ "written": 2, "lost": 0, "left_out": 2 }));
    assert_eq!(packets(&out), all);
    let run = |more: &[&str]| {
        let traffic = example("traffic.pcap");
        let args = ["run", &fixture("events.o:tell"), "--in", &traffic, "--events", &out];
        let done = paceline(args.iter().chain(more));
        assert!(done.ok().contains("  left out          "));
        times(&out)
    };
    let of_capture = times(&example("traffic.pcap"));
    for more in [&[][..], &["--clock", "capture"], &["--cpus", "3"]] {
        assert_eq!(run(more), of_capture, "{more:?}");
    }
}

/// Time stamps of a capture.
fn times(path: &str) -> Vec<u64> {
    let mut reader = CaptureReader::new(fs::File::open(path).unwrap()).unwrap();
    let (mut burst, mut times) = (Burst::default(), Vec::new());
    while reader.fill(&mut burst).unwrap() > 0 {
        times.extend(burst.iter().map(|frame| frame.meta().timestamp_ns));
    }
    times
}

#[test]
fn lost_events_are_counted() {
    let folder = Folder::new();
    let many = vec![&[0u8; 60][..]; 10];
    let input = folder.capture("in.pcap", &many);
    let to = folder.text("events.json");
    let json =
        paceline(["run", &fixture("events.o:flood"), "--in", &input, "--events", &to, "--json"]).json();
    assert_eq!(json["events"], json!({ "written": 1, "lost": 9, "left_out": 0 }));
    assert_eq!(fs::read_to_string(to).unwrap().lines().count(), 1);
}
