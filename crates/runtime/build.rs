//! Finds out whether the compiler turns a call at the end of a function into a jump, which the handlers of the
//! threaded interpreter rely on: it does when it optimizes, on the architectures that were looked at.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(tail_jumps)");
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let optimized = matches!(variable("OPT_LEVEL").as_str(), "2" | "3" | "s" | "z");
    let known = matches!(variable("CARGO_CFG_TARGET_ARCH").as_str(), "x86_64" | "aarch64");
    if optimized && known {
        println!("cargo::rustc-cfg=tail_jumps");
    }
}
