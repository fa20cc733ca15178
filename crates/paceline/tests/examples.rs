//! The programs under `examples/` run; each asserts its own results.

#[path = "../examples/bursts.rs"]
mod bursts;
#[path = "../examples/chain.rs"]
mod chain;
#[path = "../examples/events.rs"]
mod events;
#[path = "../examples/filter.rs"]
mod filter;
#[path = "../examples/maps.rs"]
mod maps;
#[path = "../examples/network.rs"]
mod network;
#[path = "../examples/replay.rs"]
mod replay;
#[path = "../examples/run_capture.rs"]
mod run_capture;
#[path = "../examples/update.rs"]
mod update;
#[path = "../examples/verify.rs"]
mod verify;

macro_rules! run {
    ($($name:ident),* $(,)?) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        mod run {
            $(#[test]
            fn $name() {
                super::$name::main().expect("runs to its end");
            })*
        }
    };
}

run!(bursts, chain, events, filter, maps, network, replay, run_capture, update, verify);

#[test]
fn all_are_here_and_in_the_documentation() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let files = std::fs::read_dir(folder).expect("a folder");
    let mut found: Vec<_> = files.map(|file| file.expect("a file").file_name()).collect();
    found.sort();
    assert_eq!(
        found,
        NAMES.iter().map(|name| format!("{name}.rs").into()).collect::<Vec<std::ffi::OsString>>()
    );
    let page = include_str!("../src/lib.rs");
    for name in NAMES {
        assert!(page.contains(&format!("| `{name}` |")), "{name} is not in src/lib.rs");
    }
}
