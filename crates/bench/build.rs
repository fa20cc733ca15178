//! Records the versions of rivals, and compiles the C sources if their features are enabled.

use std::fs;

fn main() {
    println!("cargo::rerun-if-changed=workloads");
    versions();
    #[cfg(feature = "native")]
    native();
    #[cfg(feature = "dpdk")]
    dpdk();
}

/// Crates whose versions the tables print.
const CRATES: &[&str] = &["rbpf", "solana-sbpf", "pcap-parser", "pcap-file"];

/// Sets `VERSION_CRATE` from the lock file, which has the versions that are built.
fn versions() {
    let lock = "../../Cargo.lock";
    println!("cargo::rerun-if-changed={lock}");
    let lock = fs::read_to_string(lock).unwrap_or_default();
    let lines: Vec<&str> = lock.lines().collect();
    for name in CRATES {
        let found = lines.windows(2).find_map(|pair| {
            (pair[0] == format!("name = \"{name}\"")).then(|| pair[1].trim_start_matches("version = "))
        });
        let variable = name.replace('-', "_").to_uppercase();
        println!("cargo::rustc-env=VERSION_{variable}={}", found.unwrap_or("").trim_matches('"'));
    }
}

#[cfg(feature = "native")]
fn native() {
    let mut build = cc::Build::new();
    build.file("workloads/native.c").file("workloads/balancer.c").opt_level(2).warnings(false);
    let version = build.get_compiler().to_command().arg("--version").output();
    let version =
        version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    println!("cargo::rustc-env=VERSION_CC={}", version.lines().next().unwrap_or("C").trim());
    build.compile("workloads");
}

#[cfg(feature = "dpdk")]
fn dpdk() {
    // The benchmark links only two of DPDK's libraries.
    let library = pkg_config::Config::new().cargo_metadata(false).probe("libdpdk").expect("libdpdk-dev");
    let mut build = cc::Build::new();
    build.file("workloads/dpdk.c").opt_level(2).warnings(false).includes(&library.include_paths);
    build.flag("-include").flag("rte_config.h").flag("-march=corei7").compile("dpdk_shim");
    for path in &library.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    for library in ["rte_bpf", "rte_eal"] {
        println!("cargo::rustc-link-lib={library}");
    }
}
