//! Functions that are large in one way: the passes' time grows with the size, and their memory is bounded.

use std::fmt::Write;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use paceline_compiler::ir::cfg::{Cfg, Dominators};
use paceline_compiler::ir::{Module, Pass, Passes, optimize, parse};

/// The module of a text of `r1` and a body.
fn module(body: &str) -> Module {
    parse(&format!("function 0 \"f\" (r1) stack 512 {{\n{body}}}")).expect("valid")
}

/// Time of the processor that the thread has had, or the time where the system does not say that.
fn now() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let status = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let used = status.and_then(|status| status.split(' ').next()?.parse().ok());
    used.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

fn run(module: &Module, pass: Pass) -> (Module, Duration) {
    let mut module = module.clone();
    let start = now();
    optimize(&mut module, &Passes::none().with(pass, true).checked(false)).expect("not checked");
    (module, now() - start)
}

/// Demands that eight times the size takes less than three times as long as eight runs; what is quadratic takes eight times as long.
fn demand_linear(what: &str, size: usize, mut time: impl FnMut(usize) -> Duration) {
    let small: Duration = (0..8).map(|_| time(size)).sum();
    let large = (0..3).map(|_| time(8 * size)).min().unwrap_or_default();
    // The system counts time in steps of a few milliseconds.
    let bound = 3 * small + Duration::from_millis(20);
    assert!(large < bound, "{what}: 8 times {size} take {small:?}, {} take {large:?}", 8 * size);
}

/// Blocks that jump to the next one.
fn chain(count: usize) -> String {
    let mut text = "block0(v0: i64):\njump block1\n".to_owned();
    for block in 1..count {
        let _ = writeln!(text, "block{block}:\njump block{}", block + 1);
    }
    let _ = writeln!(text, "block{count}:\nreturn v0");
    text
}

/// Blocks of which each leaves for the same last one: parsers look so.
fn ladder(count: usize) -> String {
    let mut text = "block0(v0: i64):\njump block1\n".to_owned();
    for block in 1..count {
        let _ = writeln!(text, "block{block}:\nbranch.eq.i64 v0, v0, block{count}, block{}", block + 1);
    }
    let _ = writeln!(text, "block{count}:\nreturn v0");
    text
}

/// A block that puts numbers together from two bytes each.
fn fields(count: usize) -> String {
    let mut text =
        "block0(v0: i64 context):\nv1: packet = context_load.u32 v0+0\nv2 = const.i64 8\n".to_owned();
    for field in 0..count {
        let (first, offset) = (3 + 4 * field, field % 64);
        let _ = writeln!(
            text,
            "v{first} = load.u8 packet v1+{offset}\nv{} = load.u8 packet v1+{}\nv{} = shl.i64 v{}, v2\nv{} = or.i64 v{first}, v{}",
            first + 1,
            offset + 1,
            first + 2,
            first + 1,
            first + 3,
            first + 2
        );
    }
    text + "return v2\n"
}

#[test]
fn chains_of_empty_blocks_are_followed_once() {
    demand_linear("blocks", 4000, |count| {
        let (after, time) = run(&module(&chain(count)), Pass::SimplifyCfg);
        assert_eq!(after.functions.iter().map(|(_, function)| function.layout.len()).sum::<usize>(), 1);
        time
    });
}

#[test]
fn dominators_of_a_block_with_many_predecessors() {
    demand_linear("dominators", 8000, |count| {
        let module = module(&ladder(count));
        let (_, function) = module.functions.iter().next().expect("one");
        let cfg = Cfg::of(function);
        let start = now();
        let tree = Dominators::of(&cfg);
        let time = now() - start;
        assert_eq!(tree.children(1).len(), 2, "the first branch is before the last block");
        time
    });
}

#[test]
fn fields_of_a_long_block() {
    demand_linear("fields", 2000, |count| run(&module(&fields(count)), Pass::LoadMerge).1);
}

#[test]
fn promotion_of_each_byte_of_the_stack_in_many_blocks() {
    let count = if cfg!(debug_assertions) { 20_000 } else { 100_000 };
    let mut text = "block0(v0: i64):\n".to_owned();
    (1..=512).for_each(|offset| {
        let _ = writeln!(
            text,
            "v{offset} = stack_address -{offset}\nstore.u8 stack v{offset}+0, v0 in -{offset}..-{offset}"
        );
    });
    text += "jump block1\n";
    for block in 1..count {
        let _ = writeln!(text, "block{block}:\njump block{}", block + 1);
    }
    let _ = writeln!(text, "block{count}:");
    (1..=512).for_each(|offset| {
        let _ = writeln!(text, "v{} = load.u8 stack v{offset}+0 in -{offset}..-{offset}", 512 + offset);
    });
    text += "return v1024\n";
    let before = peak();
    let (after, time) = run(&module(&text), Pass::Mem2reg);
    assert!(!after.to_string().contains("load."), "all are promoted");
    assert!(time < Duration::from_secs(20), "{time:?}");
    if let Some((before, after)) = before.zip(peak()) {
        let bytes = after - before;
        assert!(bytes < 2000 * count, "{bytes} bytes for {count} blocks, of which each takes less than 2000");
    }
}

/// Greatest memory of the process so far in bytes, where the system says so.
fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok().map(|kilobytes: usize| kilobytes * 1024)
}
