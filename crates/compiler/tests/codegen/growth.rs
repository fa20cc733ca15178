//! Large functions: the time grows with the size.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use paceline_compiler::codegen::allocate::allocate;
use paceline_compiler::codegen::lir::{Function, Operand, Place, Reg, RegSet, Role};

/// Time of the processor that the thread has had, or the time where the system does not say that.
fn now() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let status = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let used = status.and_then(|status| status.split(' ').next()?.parse().ok());
    used.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

/// Blocks of which each defines a value, reads the one before and the first, and may leave for the last one.
fn ladder(count: u32) -> Function<()> {
    let mut function = Function::default();
    let vregs: Vec<_> = (0..count).map(|_| function.add_vreg()).collect();
    for block in 0..count {
        function.begin(None, 0);
        let operand = |at: u32, role| Operand { vreg: vregs[at as usize], role, place: Place::Any };
        let before = [operand(block.saturating_sub(1), Role::Use), operand(0, Role::Use)];
        let defined = operand(block, Role::Def);
        let operands = if block == 0 { vec![defined] } else { vec![before[0], before[1], defined] };
        function.push((), &operands, RegSet::default(), None);
        function.push((), &[], RegSet::default().with(Reg(block as u8 % 4)), None);
        function.set_targets(block, &[(block + 1, &[]), (count, &[])]);
    }
    function.begin(None, 0);
    function.push((), &[], RegSet::default(), None);
    function
}

/// Rounds of `live` values each, all of which are defined before they are read.
fn rounds(live: u32, rounds: u32) -> Function<()> {
    let mut function = Function::default();
    function.begin(None, 0);
    for _ in 0..rounds {
        let vregs: Vec<_> = (0..live).map(|_| function.add_vreg()).collect();
        for role in [Role::Def, Role::Use] {
            for vreg in &vregs {
                let operand = Operand { vreg: *vreg, role, place: Place::Any };
                function.push((), &[operand], RegSet::default(), None);
            }
        }
    }
    function.push((), &[], RegSet::default(), None);
    function
}

#[test]
fn slots_are_reused() {
    let allocation = allocate(&rounds(20, 50), RegSet(0b11_1111), Reg(9), true).expect("enough registers");
    assert!((14..=20).contains(&allocation.slots), "{} slots", allocation.slots);
}

#[test]
fn allocation_of_a_ladder() {
    let registers = RegSet(0b11_1111);
    let time = |count: u32| {
        let function = ladder(count);
        let start = now();
        // The checker, which debug builds run, keeps what every place holds at every block, but the places are few.
        allocate(&function, registers, Reg(9), false).expect("enough registers");
        now() - start
    };
    let small: Duration = (0..8).map(|_| time(2000)).sum();
    let large = (0..3).map(|_| time(16_000)).min().unwrap_or_default();
    assert!(large < 3 * small + Duration::from_millis(20), "8 times 2000: {small:?}, 16000: {large:?}");
}
