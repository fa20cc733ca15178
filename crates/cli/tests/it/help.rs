//! The examples of the help texts are commands that succeed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use paceline_testkit::namespace::namespace;

use crate::common::{Folder, command, example, has_libpcap, paceline};

/// The names of files in the examples, with the committed file that each one stands for.
const FILES: [(&str, &str); 12] = [
    ("firewall.o", "firewall.o"),
    ("reflector_in_c.o", "tests/reflector_in_c.o"),
    ("balancer.o", "balancer.o"),
    ("vlan.o", "vlan.o"),
    ("sampler.o", "sampler.o"),
    ("router.o", "reflector.o"),
    ("reflector.o", "reflector.o"),
    ("xsk.o", "../crates/cli/tests/fixtures/xsk.o"),
    ("traffic.pcap", "traffic.pcap"),
    ("backends.json", "balancer-backends.json"),
    ("vips.json", "balancer-vips.json"),
    ("rules.json", "firewall-rules.json"),
];

/// Files that the examples name and users write.
const TEXTS: [(&str, &str); 8] = [
    (
        "net.json",
        r#"[{"ifindex":2,"ifname":"eth0","flags":["UP"],"mtu":1500,"address":"02:00:00:00:00:01","addr_info":[]}]"#,
    ),
    ("chain.toml", "[objects.fw]\nfile = \"firewall.o\"\n[[program]]\nname = \"fw\"\n"),
    (
        "firewall.test.toml",
        "object = \"firewall.o\"\n[[test]]\nname = \"telnet\"\npacket = \"eth / ipv4 / tcp dport=23\"\nverdict = \"drop\"\n",
    ),
    ("next.toml", "[objects.lb]\nfile = \"balancer.o\"\n[[program]]\nname = \"lb\"\n"),
    ("rules.txt", "ssh: tcp port 22\nweb: tcp port 80 or tcp port 443\n"),
    ("udp.txt", "1\n6 0 0 262144\n"),
    ("seccomp.txt", "ld [0]\nret #1\n"),
    ("calls.txt", "257 0xc000003e 0x7f0000001234 0xffffff9c 0x7ffc00001000 0\n"),
];

/// Tools that the examples pipe to and from. They may be absent and may need a network, so that others stand for them; these read
/// all of their input, as a writer to a closed pipe is no success.
const TOOLS: [(&str, &str); 4] = [
    ("genhtml", "test -s coverage.info"),
    ("jq", "cat"),
    ("less", "cat"),
    ("tcpdump", "case $1 in -w) cat traffic.pcap;; -ddd) printf '1\\n6 0 0 262144\\n';; *) cat >&2;; esac"),
];

/// All subcommands, by their words.
fn commands(words: &[&str]) -> Vec<Vec<String>> {
    let help = paceline(words.iter().chain(&["--help"])).ok();
    let mut found = vec![words.iter().map(|word| (*word).to_owned()).collect()];
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    for name in names.filter(|name| *name != "help") {
        let words: Vec<_> = words.iter().copied().chain([name]).collect();
        found.extend(commands(&words));
    }
    found
}

/// The commands among a help text's examples, without what follows in words.
fn examples(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    lines.map(|line| line.trim_start().split("    ").next().unwrap_or_default().trim().to_owned()).collect()
}

fn prepared() -> Folder {
    let folder = Folder::new();
    for (name, from) in FILES {
        fs::copy(example(from), folder.path(name)).expect("a committed file");
    }
    for (name, text) in TEXTS {
        fs::write(folder.path(name), text).expect("a new file");
    }
    for (name, script) in TOOLS {
        let path = folder.path(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a new file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("an own file");
    }
    fs::create_dir(folder.path("captures")).expect("an own folder");
    fs::copy(example("traffic.pcap"), folder.path("captures/traffic.pcap")).expect("a committed file");
    fs::create_dir(folder.path("tests")).expect("an own folder");
    fs::write(folder.path("tests/counter.test.toml"), COUNTER_TEST).expect("a new file");
    for folders in [".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"] {
        fs::create_dir_all(folder.path(folders)).expect("a new folder");
    }
    folder
}

/// A test file in a folder of its own, as examples name one.
const COUNTER_TEST: &str =
    "object = \"../firewall.o\"\n[[test]]\nname = \"passes\"\npacket = \"eth\"\nverdict = \"pass\"\n";

/// A command that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A live run with a control socket.
fn running(folder: &Folder) -> Running {
    let mut live = command();
    live.args(["live", "firewall.o", "--port", "gen:rate=1K", "--control", "pl.sock"]);
    let live = live.current_dir(folder.path("")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut live = Running(live.spawn().expect("it starts"));
    while !folder.path("pl.sock").exists() {
        assert!(live.0.try_wait().expect("its state").is_none(), "it runs");
        thread::sleep(Duration::from_millis(5));
    }
    live
}

const TEST: &str = "the_examples_of_the_help_are_commands_that_succeed";

#[test]
fn the_examples_of_the_help_are_commands_that_succeed() {
    let folder = prepared();
    let binaries = command().get_program().to_owned();
    let binaries = std::path::Path::new(&binaries).parent().expect("a folder").to_owned();
    let path = format!("{}:{}:/usr/bin:/bin", folder.path("").display(), binaries.display());
    let libpcap = has_libpcap(TEST);
    // Never on an interface of this machine.
    let script =
        "link add eth0 numrxqueues 2 numtxqueues 2 type veth peer name peer0 numrxqueues 2 numtxqueues 2
                  link set eth0 up
                  link set peer0 up";
    let has_interface = namespace(TEST, script).is_some();
    let can_run = |script: &str| match script {
        script
            if ["paceline filter", "paceline scan", "tcp port"].iter().any(|part| script.contains(part)) =>
        {
            libpcap
        }
        script if script.contains("paceline live") => has_interface,
        script if script.contains("--kernel ") => paceline_testkit::kernel::available_for(TEST),
        // It needs a terminal.
        script if script.contains("paceline top") => false,
        _ => true,
    };
    // For requests to a live run.
    let mut live = running(&folder);
    let mut tested = 0;
    for words in commands(&[]) {
        let help = paceline(words.iter().chain([&"--help".to_owned()])).ok();
        let examples = examples(&help);
        assert!(!examples.is_empty() || words.len() > 1, "{words:?} has no examples");
        for script in examples.iter().filter(|script| can_run(script)) {
            // Until an interrupt: a short time here. In the foreground `timeout` interrupts once, and not its group as well.
            let script = &script
                .replace("--seconds 1", "--seconds 0.2")
                .replace("--count 3", "--count 1")
                .replace("--every 0.5 --count 2", "--every 0.1 --count 2")
                .replace("paceline live", "timeout --foreground --preserve-status -s INT 0.3 paceline live");
            let mut shell = Command::new("bash");
            shell
                .args(["-o", "pipefail", "-e", "-c", script])
                .env("PATH", &path)
                .env("HOME", folder.path(""));
            let done = shell.current_dir(folder.path("")).output().expect("bash runs");
            assert!(done.status.success(), "{script}\n{}", String::from_utf8_lossy(&done.stderr));
            tested += 1;
            if script.starts_with("paceline stop") {
                assert!(live.0.wait().expect("it ends").success());
                live = running(&folder);
            }
        }
    }
    assert!(tested >= 20, "only {tested} examples were found");
}
