//! `paceline report`: the data of the page, and the page in a browser.

use std::fs;
use std::process::Command;

use crate::common::{Folder, example, paceline, skip};

/// The data in a page.
fn data(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("type=\"application/json\">").expect("the data's place");
    let (data, _) = rest.split_once("</script>").expect("its end");
    serde_json::from_str(data).expect("JSON")
}

fn written(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.text("report.html");
    paceline([&["report"], arguments, &["-o", &output]].concat()).ok();
    fs::read_to_string(output).expect("the page")
}

#[test]
fn the_page_has_verdicts_reasons_packets_lines_and_flows() {
    let folder = Folder::new();
    let (firewall, capture) = (example("firewall.o"), example("traffic.pcap"));
    let page = written(&folder, &[&firewall, "--in", &capture]);
    assert!(page.len() < 400_000, "{}", page.len());
    let data = data(&page);
    let run = paceline(["run", &firewall, "--in", &capture, "--json"]).json();
    for (index, verdict) in ["aborted", "drop", "pass", "tx", "redirect"].iter().enumerate() {
        assert_eq!(data["verdicts"][index], *verdict);
        assert_eq!(data["counts"][index], run["verdicts"][verdict]);
        let bins = data["timeline"]["bins"].as_array().unwrap();
        let sum: u64 = bins.iter().map(|bin| bin[index].as_u64().unwrap()).sum();
        assert_eq!(sum, run["verdicts"][verdict].as_u64().unwrap());
    }
    let reasons: u64 =
        data["reasons"].as_array().unwrap().iter().map(|reason| reason[2].as_u64().unwrap()).sum();
    assert_eq!(reasons, 492);
    assert!(data["packets"].as_array().unwrap().len() > 100);
    let lines = data["sources"][0]["lines"].as_array().unwrap();
    assert!(lines.iter().any(|line| line[0] == 408 && line[1] == 492), "{lines:?}");
    let flows = data["flows"]["shown"].as_array().unwrap();
    assert!(flows.iter().any(|flow| flow[0].as_str().unwrap().starts_with("tcp ")), "{flows:?}");
    // A chain, and fewer explanations than packets.
    let data = self::data(&written(
        &folder,
        &[&firewall, &example("counter.o"), "--in", &capture, "--explain", "50"],
    ));
    assert_eq!(data["programs"].as_array().unwrap().len(), 2);
    assert_eq!(data["explained"], 50);
    // Nothing is left beside the page, and nothing is written in its place if it cannot be made.
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 1);
    paceline(["report", "no.o", "-o", &folder.text("other.html")]).fails(1, "no.o: No such file", &[]);
    assert!(!folder.path("other.html").exists());
    paceline(["report", &firewall, "-o", "/nowhere/x.html"]).fails(1, "/nowhere/x.html: No such file", &[]);
}

#[test]
fn the_page_has_a_chain_with_packets_both_sides_of_a_diff_and_times() {
    let folder = Folder::new();
    let (firewall, capture) = (example("firewall.o"), example("traffic.pcap"));
    let chain = [firewall.as_str(), &example("reflector.o")];
    let arguments = [&chain[..], &["--in", &capture, "--against", &firewall, "--bench"]].concat();
    let data = data(&written(&folder, &arguments));
    let run = paceline(["run", &firewall, "--in", &capture, "--json"]).json();
    let svg = data["chain"].as_str().unwrap();
    for verdict in ["pass", "drop"] {
        let edge = format!(">{verdict}: {}", run["verdicts"][verdict]);
        assert!(svg.contains(&edge), "no {edge:?} in {svg}");
    }
    let both = paceline(
        [&["diff"], &[firewall.as_str(), firewall.as_str()][..], &["--in", &capture, "--json"]].concat(),
    );
    assert_eq!(both.json()["groups"], serde_json::json!([]));
    // Outcomes of the chain alone, packet by packet.
    let run = paceline([&["run"], &chain[..], &["--in", &capture, "--json"]].concat()).json();
    let groups = data["diff"]["groups"].as_array().unwrap();
    let packets: usize = groups.iter().map(|group| group["packets"].as_array().unwrap().len()).sum();
    assert_eq!(packets as u64, run["verdicts"]["tx"].as_u64().unwrap(), "{groups:?}");
    assert!(groups[0]["old"].as_str().unwrap().starts_with("sent back at "), "{groups:?}");
    let measured = data["bench"]["measured"].as_array().unwrap();
    for one in measured {
        let times = one["times"].as_array().unwrap();
        assert!(times.len() == 2 && one["ratio"].is_string(), "{one}");
        for of in times {
            let rounds: Vec<_> =
                of["rounds"].as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect();
            assert_eq!(rounds.len(), 30);
            assert!(rounds.iter().all(|round| *round >= of["min"].as_f64().unwrap()), "{of}");
        }
    }
    // A page of one program without them has no such views.
    let data = self::data(&written(&folder, &[&firewall, "--in", &capture]));
    assert!(["chain", "diff", "bench"].iter().all(|name| data[name].is_null()), "{data}");
    let output = folder.text("report.html");
    fs::copy(&firewall, folder.path("new.o")).unwrap();
    paceline(["report", &firewall, "--against", &folder.text("new.o"), "-o", &folder.text("new.o")]).fails(
        1,
        "--output",
        &["is the same file as the object"],
    );
    paceline(["report", &firewall, "--against", "no.o", "-o", &output]).fails(1, "no.o: No such file", &[]);
}

/// Each view, as a browser without a screen shows it.
#[test]
fn a_browser_shows_every_view() {
    const TEST: &str = "a_browser_shows_every_view";
    if Command::new("chromium").arg("--version").output().is_err() {
        skip(TEST, &"no chromium");
        return;
    }
    let folder = Folder::new();
    let (firewall, reflector) = (example("firewall.o"), example("reflector.o"));
    let against = ["--against", &firewall, "--bench"];
    written(&folder, &[&[&firewall, &reflector, "--in", &example("traffic.pcap")], &against[..]].concat());
    for (view, parts) in [
        ("Overview", ["<svg", "67.5%"]),
        ("Reasons", ["firewall.bpf.c:385", "because eth.type is arp"]),
        ("Packets", ["class=\"row\"", "of 492 in all"]),
        ("Source", ["lines ran", "bpf_map_lookup_elem(&amp;counters, &amp;reason)"]),
        ("Flows", [" flows; those with the most packets", "tcp "]),
        ("Chain", ["pass: 377</text>", "tx: 45 → tx"]),
        ("Diff", ["45 of 492 packets differ", "sent back at reflector.bpf.c:"]),
        ("Bench", ["in bursts of 64", "class=\"rounds\""]),
    ] {
        let url = format!("file://{}#{view}", folder.text("report.html"));
        let shown = Command::new("timeout")
            .args([
                "60",
                "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ])
            .arg(format!("--user-data-dir={}", folder.text("profile")))
            .args(["--virtual-time-budget=3000", "--dump-dom", &url])
            .output()
            .expect("it starts");
        let dom = String::from_utf8_lossy(&shown.stdout);
        for part in parts {
            assert!(dom.contains(part), "{view}: no {part:?}: {}", String::from_utf8_lossy(&shown.stderr));
        }
    }
}
