//! Branches, calls and addresses of labels, near and far, and alignment.

use paceline_compiler::native::machine::aarch64::{AssembleError, Assembler, Cond, Gpr, Label, Width};

use crate::llvm::assemble;

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
}

/// Text and method of what jumps to a label.
type Jump = (&'static str, fn(&mut Assembler, Label));

/// What jumps to a label.
const JUMPS: [Jump; 8] = [
    ("b", |asm, label| asm.b(label)),
    ("bl", |asm, label| asm.bl(label)),
    ("b.ne", |asm, label| asm.b_cond(Cond::Ne, label)),
    ("b.lt", |asm, label| asm.b_cond(Cond::Lt, label)),
    ("cbz w3,", |asm, label| asm.cbz(Width::D32, Gpr::X3, label)),
    ("cbnz w3,", |asm, label| asm.cbnz(Width::D32, Gpr::X3, label)),
    ("cbnz x30,", |asm, label| asm.cbnz(Width::Q64, Gpr::X30, label)),
    ("adr x5,", |asm, label| asm.adr(Gpr::X5, label)),
];

#[test]
fn near_ones_are_what_llvm_assembles() {
    let (mut found, mut texts) = (Vec::new(), Vec::new());
    for (text, jump) in JUMPS {
        for distance in [-3_i32, -1, 0, 1, 2, 1000] {
            // A jump to what comes next is dropped.
            if (text, distance) == ("b", 1) {
                continue;
            }
            let (mut asm, count) = (Assembler::new(), distance.unsigned_abs());
            let label = asm.new_label();
            let at = if distance <= 0 { count as usize } else { 0 };
            if distance <= 0 {
                asm.bind(label);
                (0..count).for_each(|_| asm.barrier());
                jump(&mut asm, label);
            } else {
                jump(&mut asm, label);
                (1..count).for_each(|_| asm.barrier());
                asm.bind(label);
            }
            found.push(words(&asm.finish().expect("all labels are bound").bytes)[at]);
            texts.push(format!("{text} #{}", 4 * distance));
        }
    }
    let Some(expected) = assemble("near_ones_are_what_llvm_assembles", &texts) else { return };
    for ((text, found), expected) in texts.iter().zip(&found).zip(&expected) {
        assert_eq!(found, expected, "{text}");
    }
    assert_eq!(expected.len(), texts.len());
}

#[test]
fn far_ones_take_more_instructions() {
    // More than 1 MiB.
    const COUNT: i32 = 300_000;
    let (mut found, mut texts) = (Vec::new(), Vec::new());
    let inverse = [
        ("b.ne", "b.eq"),
        ("b.lt", "b.ge"),
        ("cbz w3,", "cbnz w3,"),
        ("cbnz w3,", "cbz w3,"),
        ("cbnz x30,", "cbz x30,"),
    ];
    for (text, jump) in JUMPS {
        for forward in [true, false] {
            let mut asm = Assembler::new();
            let label = asm.new_label();
            if !forward {
                asm.bind(label);
            } else {
                jump(&mut asm, label);
            }
            (0..COUNT).for_each(|_| asm.barrier());
            if forward {
                asm.bind(label);
                asm.ret();
            } else {
                jump(&mut asm, label);
            }
            let code = asm.finish().expect("all labels are bound");
            let all = words(&code.bytes);
            // Instructions of the jump itself.
            let len = all.len() - COUNT as usize - usize::from(forward);
            let (start, target) = match forward {
                true => (0, code.offset(label).expect("is bound") as i32 / 4),
                false => (COUNT as usize, 0),
            };
            let distance = target - start as i32;
            found.extend_from_slice(&all[start..start + len]);
            match inverse.iter().find(|(of, _)| *of == text) {
                Some((_, inverse)) => {
                    texts.push(format!("{inverse} #8"));
                    texts.push(format!("b #{}", 4 * (distance - 1)));
                }
                None if text.starts_with("adr") => {
                    let bytes = 4 * i64::from(distance);
                    texts.push("adr x5, #0".to_owned());
                    texts.push(format!("movz x16, #{}", bytes & 0xffff));
                    texts.push(format!("movk x16, #{}, lsl #16", bytes >> 16 & 0xffff));
                    texts.push("add x5, x5, w16, sxtw".to_owned());
                }
                None => texts.push(format!("{text} #{}", 4 * distance)),
            }
        }
    }
    let Some(expected) = assemble("far_ones_take_more_instructions", &texts) else { return };
    assert_eq!(found, expected, "{texts:?}");
}

#[test]
fn positions_are_behind_padding() {
    let mut asm = Assembler::new();
    let [first, end, second] = [(); 3].map(|()| asm.new_label());
    asm.bind(first);
    asm.mark(7);
    asm.b(second);
    asm.bind(end);
    asm.align(4);
    asm.bind(second);
    asm.mark(8);
    asm.ret();
    let code = asm.finish().expect("all labels are bound");
    assert_eq!([first, end, second].map(|label| code.offset(label)), [Some(0), Some(4), Some(16)]);
    assert_eq!(code.marks.iter().map(|mark| (mark.offset, mark.tag)).collect::<Vec<_>>(), [(0, 7), (16, 8)]);
    assert_eq!(words(&code.bytes), [0x1400_0004, 0, 0, 0, 0xd65f_03c0]);
}

#[test]
fn jumps_to_what_comes_next_are_dropped() {
    let mut asm = Assembler::new();
    let [next, other, last] = [(); 3].map(|()| asm.new_label());
    asm.bind(other);
    asm.mark(1);
    asm.b(next);
    asm.bind(next);
    asm.ret();
    // Something is behind this one, and the last ones are no jumps.
    asm.b(last);
    asm.mark(2);
    asm.bind(last);
    asm.b(last);
    let end = asm.new_label();
    asm.bl(end);
    asm.bind(end);
    let code = asm.finish().expect("all labels are bound");
    assert_eq!(
        [other, next, last, end].map(|label| code.offset(label)),
        [Some(0), Some(0), Some(8), Some(16)]
    );
    assert_eq!(words(&code.bytes), [0xd65f_03c0, 0x1400_0001, 0x1400_0000, 0x9400_0001]);
}

#[test]
fn labels_are_bound_once() {
    let mut asm = Assembler::new();
    let label = asm.new_label();
    asm.b(label);
    assert_eq!(asm.finish(), Err(AssembleError::Unbound { label }));
    let mut asm = Assembler::new();
    let label = asm.new_label();
    asm.bind(label);
    asm.bind(label);
    assert_eq!(asm.finish(), Err(AssembleError::BoundTwice { label }));
}
