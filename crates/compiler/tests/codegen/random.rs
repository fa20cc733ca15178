//! Random modules on machines of different sizes.

use paceline_compiler::codegen::{Plan, Room, generate};
use paceline_compiler::ir::random::{module, run, run_with};
use paceline_compiler::ir::{Module, Passes, optimize};

use crate::toy::{self, Toy};

/// Modules, unless `PACELINE_CODEGEN_MODULES` says how many.
const MODULES: u64 = 100;
const INPUTS: u64 = 2;

fn modules() -> u64 {
    std::env::var("PACELINE_CODEGEN_MODULES").map_or(MODULES, |count| count.parse().expect("a number"))
}

/// Compares the code of a module with its form; returns the machine.
fn compare(seed: u64, module: &Module, registers: u8, room: &mut Room<toy::Op>) -> Toy {
    let mut toy = Toy::new(registers);
    let (_, function) = module.functions.iter().next().expect("one");
    let slots = generate(&Plan::of(function), &mut toy, room, true)
        .unwrap_or_else(|error| panic!("seed {seed}, {registers} registers: {error}\n{module}"));
    for input in 0..INPUTS {
        let memory = seed.wrapping_add(input << 48);
        let expected = run(module, memory);
        let found = run_with(memory, |memory, context| toy::run(&toy, slots, module, memory, context));
        assert!(
            expected == found,
            "seed {seed}, {registers} registers: {expected:?}, and then {found:?}\n{module}"
        );
    }
    toy
}

/// Lays out the blocks behind the entry in reverse, so that some come before those that dominate them.
fn reverse(module: &mut Module) {
    for function in module.functions.values_mut() {
        if let Some((_, others)) = function.layout.split_first_mut() {
            others.reverse();
        }
    }
}

#[test]
fn code_does_what_the_form_does() {
    // What a function leaves in memory is nothing to the next one.
    let (mut reloads, mut room) = ([0; 2], Room::default());
    for seed in 0..modules() {
        let mut module = module(seed);
        for passes in [None, Some(Passes::none()), Some(Passes::default().checked(false))] {
            match passes {
                Some(passes) => optimize(&mut module, &passes).expect("not checked"),
                None => reverse(&mut module),
            }
            for (few, registers) in [4, 5, 7, 10, 14].into_iter().enumerate() {
                let toy = compare(seed, &module, registers, &mut room);
                match few {
                    0 => reloads[0] += toy.reloads(),
                    4 => reloads[1] += toy.reloads(),
                    _ => {}
                }
            }
        }
    }
    assert!(reloads[0] > 4 * reloads[1], "{reloads:?}: with fewer registers more is reloaded");
}

#[test]
fn parameters_and_arguments_share_registers() {
    let module = paceline_compiler::ir::parse(
        "function 0 \"main\" (r1) {
        block0(v0: i64 context):
            v1 = const.i64 0 @7
            v2 = const.i64 10 @8
            v3 = const.i64 1
            jump block1(v1, v3)
        block1(v4: i64, v5: i64):
            branch.uge.i64 v4, v2, block3, block2
        block2:
            v6 = add.i64 v5, v5
            v7 = add.i64 v4, v3
            jump block1(v7, v6)
        block3:
            return v5 @9
        }",
    )
    .expect("valid");
    let toy = compare(0, &module, 8, &mut Room::default());
    assert_eq!((toy.reloads(), toy.origins()), (0, &[7, 8, 9][..]));
    // The context's register, the two that stay while the sum is computed, and the result's.
    assert!(toy.copies() <= 5, "{toy:?}");
}

/// The argument is computed before the parameter, which needs a register that a call leaves alone.
#[test]
fn an_argument_has_the_register_that_its_parameter_needs() {
    let module = paceline_compiler::ir::parse(
        "function 0 \"main\" (r1) {
        block0(v0: i64 context):
            v1 = context_load.u32 v0+12
            v2 = context_load.u32 v0+16
            branch.eq.i64 v1, v2, block2(v1), block1
        block1:
            v3 = neg.i64 v2
            branch.eq.i64 v2, v3, block2(v3), block3
        block2(v4: i64):
            v5 = call bpf_ktime_get_ns()
            v6 = add.i64 v4, v5
            return v6
        block3:
            return v2
        }",
    )
    .expect("valid");
    let toy = compare(0, &module, 8, &mut Room::default());
    assert_eq!((toy.reloads(), toy.jumps()), (0, 0), "{toy:?}");
}

#[test]
fn blocks_that_only_go_on_have_no_code() {
    let module = paceline_compiler::ir::parse(
        "function 0 \"main\" (r1) {
        block0(v0: i64 context):
            v1 = context_load.u32 v0+12
            branch.eq.i64 v1, v0, block1, block2
        block1:
            jump block3
        block2:
            jump block1
        block3:
            branch.ne.i64 v1, v0, block5, block4
        block4:
            jump block6
        block6:
            jump block3
        block5:
            return v1
        }",
    )
    .expect("valid");
    let toy = compare(0, &module, 8, &mut Room::default());
    // A way back to such a block keeps one jump.
    assert_eq!((toy.blocks(), toy.jumps()), (4, 0), "{toy:?}");
}
