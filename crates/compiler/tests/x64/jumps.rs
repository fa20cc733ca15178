//! Labels, jumps of all lengths, alignment, marks and relocations, checked by following the decoded jumps.

use iced_x86::{Instruction, Mnemonic, OpKind};
use paceline_compiler::native::machine::x64::{
    Alu, AssembleError, Assembler, Code, Cond, Fill, Gpr, Label, Mem, OpSize, Relocation, RelocationKind,
    Width,
};

use crate::read::decode;

pub(crate) fn jump(asm: &mut Assembler, cond: Option<Cond>, label: Label) {
    match cond {
        Some(cond) => asm.jcc(cond, label),
        None => asm.jmp(label),
    }
}

const LONG: [(Option<Cond>, usize); 2] = [(None, 5), (Some(Cond::Ne), 6)];

#[test]
fn forward_jumps_are_short_up_to_127() {
    for (cond, long) in LONG {
        for (space, len) in [(0, 0), (1, 2), (126, 2), (127, 2), (128, long), (129, long), (100_000, long)] {
            let mut asm = Assembler::new();
            let label = asm.new_label();
            jump(&mut asm, cond, label);
            asm.nop(space);
            asm.bind(label);
            asm.ret();
            let code = asm.finish().unwrap();
            assert_eq!(code.bytes.len(), len + space + 1, "{cond:?} over {space}");
            assert_eq!(code.offset(label), Some((len + space) as u32));
            if len > 0 {
                assert_eq!(decode(&code.bytes)[0].near_branch_target(), (len + space) as u64);
            }
        }
    }
}

#[test]
fn backward_jumps_are_short_down_to_minus_128() {
    for (cond, long) in LONG {
        for (space, len) in [(0, 2), (1, 2), (125, 2), (126, 2), (127, long), (128, long), (100_000, long)] {
            let mut asm = Assembler::new();
            let label = asm.new_label();
            asm.ret();
            asm.bind(label);
            asm.nop(space);
            jump(&mut asm, cond, label);
            let code = asm.finish().unwrap();
            assert_eq!(code.bytes.len(), 1 + space + len, "{cond:?} over {space}");
            assert_eq!(decode(&code.bytes).last().unwrap().near_branch_target(), 1);
        }
    }
}

#[test]
fn jumps_over_nothing_are_dropped_and_loops_over_nothing_stay() {
    let mut asm = Assembler::new();
    let (end, again) = (asm.new_label(), asm.new_label());
    asm.jcc(Cond::E, end);
    asm.mark(7);
    asm.jmp(end);
    asm.jmp(end);
    asm.bind(end);
    asm.bind(again);
    asm.jmp(again);
    let code = asm.finish().unwrap();
    assert_eq!(code.bytes, [0xeb, 0xfe]);
    assert_eq!(code.marks[0].offset, 0);
}

/// Jumps that each span the next one (or, backward, the one before), with `spare` bytes to the limit while that one is short. Only
/// the last jump has to be long for a reason of its own.
fn chain(count: usize, spare: usize, backward: bool) -> (Assembler, Vec<Label>) {
    let mut asm = Assembler::new();
    let labels: Vec<Label> = (0..count).map(|_| asm.new_label()).collect();
    // Two adjacent spaces and the jump between take 127 bytes; backward, with the jump itself, 129.
    let space = |index: usize| if index.is_multiple_of(2) { 62 } else { 63 - spare };
    if backward {
        asm.bind(labels[0]);
        asm.nop(200);
    }
    for index in 0..count {
        if !backward {
            asm.jmp(labels[index]);
            asm.nop(space(index));
            if let Some(before) = index.checked_sub(1) {
                asm.bind(labels[before]);
            }
        } else {
            if let Some(&next) = labels.get(index + 1) {
                asm.bind(next);
            }
            asm.nop(space(index) - index % 2);
            asm.jmp(labels[index]);
        }
    }
    asm.nop(200);
    if !backward {
        asm.bind(labels[count - 1]);
    }
    (asm, labels)
}

#[test]
fn growth_carries_from_jump_to_jump() {
    for backward in [false, true] {
        for count in [10, 1000] {
            for spare in 0..5 {
                let (asm, labels) = chain(count, spare, backward);
                let code = asm.finish().unwrap();
                let jumps = follow(&code, &labels);
                // A long jump is 3 bytes longer.
                let expected = if spare < 3 { count } else { 1 };
                let long = jumps.iter().filter(|jump| jump.len() == 5).count();
                assert_eq!(long, expected, "{count} jumps, {spare} to spare, backward: {backward}");
            }
        }
    }
}

/// The jumps of the code, after comparing their targets with the labels.
fn follow(code: &Code, labels: &[Label]) -> Vec<Instruction> {
    let is_jump = |i: &Instruction| i.op0_kind() == OpKind::NearBranch64 && i.mnemonic() != Mnemonic::Call;
    let jumps: Vec<Instruction> = decode(&code.bytes).into_iter().filter(is_jump).collect();
    assert_eq!(jumps.len(), labels.len());
    for (jump, &label) in jumps.iter().zip(labels) {
        assert_eq!(Some(jump.near_branch_target()), code.offset(label).map(u64::from));
    }
    jumps
}

#[test]
fn alignment_survives_growth() {
    for space in 100..140 {
        for fill in [Fill::Nop, Fill::Int3] {
            let mut asm = Assembler::new();
            let (far, near, aligned) = (asm.new_label(), asm.new_label(), asm.new_label());
            asm.ret();
            asm.jcc(Cond::A, far);
            asm.jmp(near);
            asm.align(4, fill);
            asm.bind(aligned);
            asm.nop(space - 90);
            asm.bind(near);
            asm.align(5, fill);
            asm.mark(1);
            asm.nop(90);
            asm.jmp(aligned);
            asm.bind(far);
            asm.ret();
            let code = asm.finish().unwrap();
            follow(&code, &[far, near, aligned]);
            assert_eq!(code.offset(aligned).unwrap() % 16, 0);
            assert_eq!(code.marks[0].offset % 32, 0);
            let filled = code.bytes.contains(&0xcc);
            assert_eq!(filled, fill == Fill::Int3);
        }
    }
}

#[test]
fn labels_are_operands() {
    let mut asm = Assembler::new();
    let (ahead, behind) = (asm.new_label(), asm.new_label());
    asm.bind(behind);
    asm.lea(Width::Q64, Gpr::R9, Mem::Label(ahead));
    asm.jmp(ahead);
    asm.nop(300);
    asm.alu_mi(Alu::Cmp, OpSize::D32, Mem::Label(behind), 1000);
    asm.alu_mi(Alu::Cmp, OpSize::B8, Mem::Label(ahead), 1);
    asm.store_imm(OpSize::W16, Mem::Label(ahead), 1000);
    asm.lock_xadd(OpSize::Q64, Mem::Label(behind), Gpr::R15);
    asm.call(ahead);
    asm.call(behind);
    asm.align(4, Fill::Int3);
    asm.bind(ahead);
    asm.ret();
    let code = asm.finish().unwrap();
    let [ahead, behind] = [ahead, behind].map(|label| u64::from(code.offset(label).unwrap()));
    assert_eq!((ahead % 16, behind), (0, 0));
    let targets: Vec<u64> = decode(&code.bytes)
        .iter()
        .filter_map(|i| match i.op0_kind() {
            OpKind::NearBranch64 => Some(i.near_branch_target()),
            _ => i.is_ip_rel_memory_operand().then(|| i.ip_rel_memory_address()),
        })
        .collect();
    assert_eq!(targets, [ahead, ahead, behind, ahead, ahead, behind, ahead, behind]);
}

#[test]
fn relocations_reach_their_targets() {
    let mut asm = Assembler::new();
    let over = asm.new_label();
    asm.jcc(Cond::E, over);
    asm.call_extern(0x1234_5678_9abc);
    asm.nop(200);
    asm.bind(over);
    asm.jmp_extern(0x1234_0000_0000);
    let code = asm.finish().unwrap();
    let [call, jump]: [Relocation; 2] = code.relocations.clone().try_into().unwrap();
    assert_eq!((call.kind, call.offset), (RelocationKind::Call, 7));
    assert_eq!((jump.kind, jump.offset), (RelocationKind::Jump, 6 + 5 + 200 + 1));
    let start = 0x1234_4000_0000;
    let mut bytes = code.bytes.clone();
    for relocation in &code.relocations {
        let distance = relocation.distance(start).unwrap();
        bytes[relocation.offset as usize..][..4].copy_from_slice(&distance.to_le_bytes());
    }
    let targets: Vec<u64> = decode(&bytes)
        .iter()
        .filter(|i| matches!(i.op0_kind(), OpKind::NearBranch64) && i.len() == 5)
        .map(|i| i.near_branch_target().wrapping_add(start))
        .collect();
    assert_eq!(targets, [call.target, jump.target]);
    assert_eq!(call.distance(0), None);
    assert_eq!(call.distance(call.target + (1 << 31) - 11), Some(i32::MIN));
    assert_eq!(call.distance(call.target + (1 << 31) - 10), None);
}

#[test]
fn labels_are_bound_once_where_they_are_used() {
    let mut asm = Assembler::new();
    let (unused, used) = (asm.new_label(), asm.new_label());
    asm.bind(used);
    asm.jmp(used);
    assert_eq!(asm.finish().unwrap().offset(unused), None);

    let uses: [fn(&mut Assembler, Label); 4] = [
        |asm, label| asm.jmp(label),
        |asm, label| asm.jcc(Cond::O, label),
        |asm, label| asm.call(label),
        |asm, label| asm.lea(Width::Q64, Gpr::Rax, Mem::Label(label)),
    ];
    for used in uses {
        let mut asm = Assembler::new();
        let label = asm.new_label();
        used(&mut asm, label);
        assert_eq!(asm.finish(), Err(AssembleError::Unbound { label }));
    }

    let mut asm = Assembler::new();
    let label = asm.new_label();
    asm.bind(label);
    asm.bind(label);
    assert_eq!(asm.finish(), Err(AssembleError::BoundTwice { label }));

    let mut asm = Assembler::new();
    asm.align(13, Fill::Nop);
    assert_eq!(asm.finish(), Err(AssembleError::Alignment { log2: 13 }));
}

#[test]
fn a_hundred_thousand_jumps_are_placed() {
    // One pass per jump would take minutes.
    let (asm, labels) = chain(100_000, 0, false);
    follow(&asm.finish().unwrap(), &labels);
}
