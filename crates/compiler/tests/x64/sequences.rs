//! Random instructions, jumps, labels, marks and alignment, decoded as a whole.

use iced_x86::{Instruction, Mnemonic, OpKind};
use paceline_compiler::native::machine::x64::{
    Assembler, Code, Cond, Fill, Gpr, Label, Mem, OpSize, Scale, Width,
};

use crate::forms::{self, DISPLACEMENTS, Form, IMMEDIATES, Operands};
use crate::jumps::jump;
use crate::read::{Text, decode};

/// Expected element of a random sequence.
enum Expected {
    Text(String),
    /// A jump to a label, by its number.
    Jump(usize),
}

#[test]
fn random_sequences() {
    let forms = forms::all();
    for seed in 0..150 {
        eprintln!("seed {seed}");
        sequence(&mut fastrand::Rng::with_seed(seed), &forms);
    }
}

fn sequence(rng: &mut fastrand::Rng, forms: &[Form]) {
    let mut asm = Assembler::new();
    let labels: Vec<Label> = (0..rng.usize(1..60)).map(|_| asm.new_label()).collect();
    let mut order: Vec<usize> = (0..labels.len()).collect();
    rng.shuffle(&mut order);
    let mut expected = Vec::new();
    let mut aligned = Vec::new();
    // Positions of labels and marks, in instructions; the mark's tag gives the index.
    let mut bound = vec![0; labels.len()];
    let (density, aligning) = (rng.u32(1..60), rng.bool());
    for index in 0..rng.usize(1..1500) {
        asm.mark(expected.len() as u32);
        match rng.u32(0..100) {
            die if die < density => {
                let number = rng.usize(0..labels.len());
                jump(&mut asm, [None, Some(Cond::ALL[index % 16])][rng.usize(0..2)], labels[number]);
                expected.push(Expected::Jump(number));
            }
            99 if aligning => {
                let log2 = rng.u8(0..7);
                asm.align(log2, Fill::Nop);
                aligned.push((expected.len(), log2));
            }
            _ => expected
                .push(Expected::Text(rng.choice(forms).unwrap().emit(&mut asm, &random_operands(rng)))),
        }
        if rng.u32(0..20) == 0
            && let Some(number) = order.pop()
        {
            asm.bind(labels[number]);
            bound[number] = expected.len();
        }
    }
    for number in order {
        asm.bind(labels[number]);
        bound[number] = expected.len();
    }
    asm.mark(expected.len() as u32);
    let code = asm.finish().unwrap();
    compare(&code, &labels, &bound, &expected, !aligned.is_empty());
    let offset = |tag| code.marks.iter().rfind(|mark| mark.tag as usize == tag).unwrap().offset;
    for (index, log2) in aligned {
        assert_eq!(offset(index) % (1 << log2), 0);
    }
}

fn random_operands(rng: &mut fastrand::Rng) -> Operands {
    let mut reg = || Gpr::ALL[rng.usize(0..16)];
    let (a, b, c, base, index) = (reg(), reg(), reg(), reg(), reg());
    let disp = if rng.bool() { DISPLACEMENTS[rng.usize(0..DISPLACEMENTS.len())] } else { rng.i32(..) };
    let imm = if rng.bool() { IMMEDIATES[rng.usize(0..IMMEDIATES.len())] } else { rng.i32(..) };
    let scale = Scale::ALL[rng.usize(0..4)];
    let index = (index != Gpr::Rsp && rng.bool()).then_some((index, scale));
    let mem = Mem::Reg { base, index, disp };
    let (size, width) = (OpSize::ALL[rng.usize(0..4)], Width::ALL[rng.usize(0..2)]);
    Operands { a, b, c, size, width, mem, imm }
}

/// Compares the decoded code with the expected elements, and follows all jumps.
fn compare(code: &Code, labels: &[Label], bound: &[usize], expected: &[Expected], aligned: bool) {
    let mut text = Text::new();
    let instructions = decode(&code.bytes);
    let mut read = instructions.iter().filter(|i| i.mnemonic() != Mnemonic::Nop).peekable();
    let mut starts = Vec::new();
    for (index, wanted) in expected.iter().enumerate() {
        let start = read.peek().map_or(code.bytes.len() as u64, |i| i.ip());
        starts.push(start);
        match wanted {
            Expected::Text(wanted) => assert_eq!(&text.of(read.next().unwrap()), wanted),
            Expected::Jump(number) => {
                let target = u64::from(code.offset(labels[*number]).unwrap());
                // Elided: the label is ahead, and everything in between has length 0.
                if bound[*number] > index && target <= start {
                    continue;
                }
                let jump = read.next().unwrap();
                assert_eq!((jump.op0_kind(), jump.near_branch_target()), (OpKind::NearBranch64, target));
                // Alignment that shrank later can leave a jump longer than necessary.
                let distance = target as i64 - jump.next_ip() as i64;
                assert!(aligned || jump.len() == 2 || i8::try_from(distance).is_err());
            }
        }
    }
    assert!(read.next().is_none());
    starts.push(code.bytes.len() as u64);
    for (label, &index) in labels.iter().zip(bound) {
        let offset = u64::from(code.offset(*label).unwrap());
        // `nop`s of alignment may be in between.
        assert!(only_nops(&instructions, offset, starts[index]));
    }
    for mark in &code.marks {
        assert!(only_nops(&instructions, mark.offset.into(), starts[mark.tag as usize]));
    }
}

/// Whether only alignment lies between two offsets.
fn only_nops(instructions: &[Instruction], from: u64, to: u64) -> bool {
    let first = instructions.partition_point(|i| i.ip() < from);
    let between = instructions[first..].iter().take_while(|i| i.ip() < to);
    from <= to && between.into_iter().all(|i| i.mnemonic() == Mnemonic::Nop)
}
