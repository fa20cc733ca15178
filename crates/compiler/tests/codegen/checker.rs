//! The checker finds what is wrong in an allocation.

use paceline_compiler::codegen::allocate::check::{CheckError, check};
use paceline_compiler::codegen::allocate::{AllocateError, Allocation, MoveLists, allocate};
use paceline_compiler::codegen::lir::{Function, Operand, Place, Reg, RegSet, Role, Vreg};

const SCRATCH: Reg = Reg(9);

fn registers(count: u8) -> RegSet {
    (0..count).fold(RegSet::default(), |all, reg| all.with(Reg(reg)))
}

fn used(vreg: Vreg, place: Place) -> Operand {
    Operand { vreg, role: Role::Use, place }
}

fn defined(vreg: Vreg, place: Place) -> Operand {
    Operand { vreg, role: Role::Def, place }
}

/// A loop that swaps two values in each round, with a call in it and a value that is live through it.
fn function() -> Function<()> {
    let mut function = Function::default();
    let [a, b, kept, x, y, sum, result] = [(); 7].map(|()| function.add_vreg());
    let none = RegSet::default();
    function.begin(None, 0);
    let enter = [(a, 0), (b, 1), (kept, 2)].map(|(vreg, reg)| defined(vreg, Place::Fixed(Reg(reg))));
    function.push((), &enter, none, None);
    function.push((), &[], none, None);
    function.begin([x, y], 1);
    function.push((), &[used(x, Place::Any), used(y, Place::Any), defined(sum, Place::Reuse(0))], none, None);
    function.push((), &[used(sum, Place::Fixed(Reg(1)))], registers(2), None);
    function.push((), &[used(x, Place::Any), used(y, Place::Any)], none, None);
    function.begin(None, 0);
    let sum_of = [used(kept, Place::Any), used(x, Place::Any), defined(result, Place::Any)];
    function.push((), &sum_of, none, None);
    function.push((), &[used(result, Place::Fixed(Reg(0)))], none, None);
    function.set_targets(0, &[(1, &[a, b])]);
    function.set_targets(1, &[(1, &[y, x]), (2, &[])]);
    function
}

#[test]
fn what_is_read_has_a_definition_before_it() {
    let mut function = Function::default();
    let [a, b] = [(); 2].map(|()| function.add_vreg());
    function.begin(None, 0);
    function.push((), &[used(b, Place::Any), defined(a, Place::Any)], RegSet::default(), None);
    let error = allocate(&function, registers(4), SCRATCH, false).expect_err("it is nowhere");
    assert_eq!(error, AllocateError::Undefined(b.0));
    // The block that defines it comes after one that it dominates.
    let mut function = Function::default();
    let a = function.add_vreg();
    for operands in [&[][..], &[used(a, Place::Any)], &[defined(a, Place::Any)]] {
        function.begin(None, 0);
        function.push((), operands, RegSet::default(), None);
    }
    function.set_targets(0, &[(2, &[])]);
    function.set_targets(2, &[(1, &[])]);
    let error = allocate(&function, registers(4), SCRATCH, false).expect_err("it comes too late");
    assert_eq!(error, AllocateError::Order(a.0));
}

#[test]
fn allocations_are_right_until_something_is_changed() {
    let function = function();
    let (mut removed, mut found) = (0, 0);
    for count in 3..=8 {
        let registers = registers(count);
        let allocation = allocate(&function, registers, SCRATCH, true).expect("enough registers");
        assert_eq!(check(&function, &allocation, registers), Ok(()));
        for operand in 0..allocation.operands.len() {
            let mut changed = allocation.clone();
            changed.operands[operand] = SCRATCH;
            let wrong = check(&function, &changed, registers);
            assert!(wrong.is_err(), "{count} registers, operand {operand} elsewhere: {changed:?}");
        }
        // A value may be moved to a register that nobody reads before it is in its slot, so not every move is needed.
        for at in 0..lists(&mut allocation.clone()).iter().map(|lists| lists.moves.len()).sum() {
            let mut changed = allocation.clone();
            remove(&mut changed, at);
            removed += 1;
            found += usize::from(check(&function, &changed, registers).is_err());
        }
    }
    assert!(found * 10 > removed * 9, "{found} of {removed} moves are missed");
}

/// All lists of moves of an allocation.
fn lists(allocation: &mut Allocation) -> [&mut MoveLists; 2] {
    [&mut allocation.around, &mut allocation.edges]
}

/// Removes the move with a number.
fn remove(allocation: &mut Allocation, mut at: usize) {
    for lists in lists(allocation) {
        if at < lists.moves.len() {
            lists.moves.remove(at);
            lists.starts.iter_mut().filter(|list| list.1 as usize > at).for_each(|list| list.1 -= 1);
            return;
        }
        at -= lists.moves.len();
    }
}

#[test]
fn too_few_registers_are_an_error() {
    let mut function = Function::<()>::default();
    let [a, b] = [(); 2].map(|()| function.add_vreg());
    function.begin(None, 0);
    let enter = [(a, 0), (b, 1)].map(|(vreg, reg)| defined(vreg, Place::Fixed(Reg(reg))));
    function.push((), &enter, RegSet::default(), None);
    function.push((), &[used(a, Place::Any), used(b, Place::Any)], RegSet::default(), None);
    let found = allocate(&function, registers(1), SCRATCH, true).expect_err("two uses");
    assert_eq!(found, AllocateError::OutOfRegisters(1));
}

#[test]
fn an_early_definition_is_in_no_register_that_is_read() {
    let mut function = Function::<()>::default();
    let [a, b] = [(); 2].map(|()| function.add_vreg());
    function.begin(None, 0);
    let none = RegSet::default();
    function.push((), &[defined(a, Place::Fixed(Reg(0)))], none, None);
    function.push((), &[used(a, Place::Any), defined(b, Place::Early)], none, None);
    function.push((), &[used(b, Place::Fixed(Reg(0)))], none, None);
    let allocation = allocate(&function, registers(2), SCRATCH, true).expect("enough registers");
    let [.., read, early, _] = allocation.operands[..] else { panic!("four operands") };
    assert_ne!(read, early);
    let mut changed = allocation.clone();
    changed.operands[2] = read;
    assert_eq!(check(&function, &changed, registers(2)), Err(CheckError::Overlap { inst: 1, reg: read }));
    assert!(allocate(&function, registers(1), SCRATCH, true).is_err());
}
