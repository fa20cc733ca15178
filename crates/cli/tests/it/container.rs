//! `examples/Containerfile` suffices: a root with nothing but the command and its libraries, and the capabilities of its
//! `podman run`. No container engine is needed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use paceline_testkit::namespace::{namespace, veth};

use crate::common::live::{check_sums, json, stderr};
use crate::common::{Folder, example, skip};

/// The capabilities in the example's command line.
fn capabilities() -> Vec<String> {
    let text = fs::read_to_string(example("Containerfile")).expect("the example");
    let (_, rest) = text.split_once("--cap-drop=all --cap-add=").expect("its command line");
    let list = rest.split_whitespace().next().expect("capabilities");
    list.split(',').map(str::to_owned).collect()
}

/// Adds a file to a root.
fn add(root: &Path, from: &str, to: &str) {
    let to = root.join(to.trim_start_matches('/'));
    fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
    fs::copy(from, to).expect("a copy");
}

/// Adds a program and the libraries that it is linked with.
fn add_program(root: &Path, from: &str, to: &str) -> Result<(), String> {
    add(root, from, to);
    let listed = Command::new("ldd").arg(from).output().map_err(|error| format!("ldd: {error}"))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    listed
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
        .for_each(|library| add(root, library, library));
    Ok(())
}

/// Runs the command in the root, as root with these capabilities only.
fn run(root: &Path, capabilities: &[&str]) -> Output {
    let bounds: String = capabilities.iter().map(|capability| format!(",+{capability}")).collect();
    Command::new("unshare")
        .args(["--mount", "--pid", "--fork", &format!("--root={}", root.display())])
        .args(["/setpriv", "--inh-caps=-all", &format!("--bounding-set=-all{bounds}"), "--no-new-privs"])
        .args(["/paceline", "live", "/firewall.o", "--port", "xdp:va", "--seconds", "0.2", "--json"])
        .output()
        .expect("it starts")
}

#[test]
fn the_capabilities_of_the_container_example_suffice() {
    const TEST: &str = "the_capabilities_of_the_container_example_suffice";
    for tool in ["unshare", "setpriv"] {
        if let Err(error) = Command::new(tool).arg("--version").output() {
            return skip(TEST, &format!("{tool}: {error}"));
        }
    }
    let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
    let folder = Folder::new();
    let root = folder.path("root");
    let setpriv = Command::new("sh").args(["-c", "command -v setpriv"]).output().expect("a shell");
    let setpriv = String::from_utf8_lossy(&setpriv.stdout).trim().to_owned();
    let added = add_program(&root, env!("CARGO_BIN_EXE_paceline"), "paceline")
        .and_then(|()| add_program(&root, &setpriv, "setpriv"));
    if let Err(reason) = added {
        return skip(TEST, &reason);
    }
    add(&root, &example("firewall.o"), "firewall.o");
    let all = capabilities();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let output = run(&root, &all);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    check_sums(&json(&output), false);
    // None of them is too many; without `ipc_lock` it is the limit of locked memory that decides.
    for missing in all.iter().filter(|&&capability| capability != "ipc_lock") {
        let others: Vec<&str> = all.iter().copied().filter(|capability| capability != missing).collect();
        let output = run(&root, &others);
        assert_eq!(output.status.code(), Some(1), "{missing}: {}", stderr(&output));
        let name = format!("CAP_{}", missing.to_uppercase());
        assert!(stderr(&output).contains(&name), "{missing}: {}", stderr(&output));
    }
}
