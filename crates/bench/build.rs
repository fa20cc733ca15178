//! Compiles the workloads for the machine itself, where that is asked for.

fn main() {
    println!("cargo::rerun-if-changed=workloads");
    #[cfg(feature = "native")]
    cc::Build::new().file("workloads/native.c").opt_level(2).warnings(false).compile("workloads");
}
