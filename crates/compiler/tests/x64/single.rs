//! Each form by itself, with all relevant operands.

use paceline_compiler::native::machine::x64::{Alu, AssembleError, Assembler, Cond, Gpr, Mem, OpSize, Width};

use crate::forms::{self, Form, IMMEDIATES, Kind, Operands};
use crate::read::{Text, decode};

/// Operands to try for a form.
pub(crate) fn operands(kind: Kind, memories: &[Mem]) -> Vec<Operands> {
    let mut all = Vec::new();
    let one = [Gpr::Rax];
    let registers = |used: bool| if used { &Gpr::ALL[..] } else { &one[..] };
    let (two, three) = (matches!(kind, Kind::Rr | Kind::Rrr | Kind::Rri), kind == Kind::Rrr);
    let immediates = if matches!(kind, Kind::Ri | Kind::Rri) { &IMMEDIATES[..] } else { &[0] };
    for size in OpSize::ALL {
        // Forms with two widths are combined with every size.
        for width in Width::ALL {
            let basic =
                Operands { a: Gpr::Rax, b: Gpr::Rax, c: Gpr::Rax, size, width, mem: memories[0], imm: 0 };
            if matches!(kind, Kind::M | Kind::Rm | Kind::Mi) {
                all.extend(memories.iter().enumerate().map(|(number, &mem)| {
                    // Both numbers are coprime to the number of memory operands per base, so that all combinations occur.
                    let imm = IMMEDIATES[number % IMMEDIATES.len()];
                    Operands { mem, a: Gpr::ALL[(number + number / 16) % 16], imm, ..basic }
                }));
                continue;
            }
            for &a in registers(kind != Kind::None) {
                for &b in registers(two) {
                    for &c in registers(three) {
                        all.extend(immediates.iter().map(|&imm| Operands { a, b, c, imm, ..basic }));
                    }
                }
            }
        }
    }
    all
}

fn check(form: &Form, memories: &[Mem]) {
    let mut asm = Assembler::new();
    let all = operands(form.kind, memories);
    let expected: Vec<String> = all.iter().map(|operands| form.emit(&mut asm, operands)).collect();
    let code = asm.finish().unwrap();
    let instructions = decode(&code.bytes);
    assert_eq!(instructions.len(), expected.len(), "{}", form.name);
    let mut text = Text::new();
    for ((instruction, expected), operands) in instructions.iter().zip(&expected).zip(&all) {
        let bytes = &code.bytes[instruction.ip() as usize..instruction.next_ip() as usize];
        assert_eq!(&text.of(instruction), expected, "{}: {bytes:02x?} for {operands:?}", form.name);
    }
}

#[test]
fn every_form_with_every_operand() {
    let memories = forms::memories();
    for form in forms::all() {
        check(&form, &memories);
    }
}

#[test]
fn conditions_invert() {
    for cond in Cond::ALL {
        assert_ne!(cond.invert(), cond);
        assert_eq!(cond.invert().invert(), cond);
    }
    assert_eq!(Cond::Le.invert(), Cond::G);
    assert_eq!(Cond::B.invert(), Cond::Ae);
}

#[test]
fn nops_have_the_length_asked_for() {
    for len in 0..40 {
        let mut asm = Assembler::new();
        asm.nop(len);
        let code = asm.finish().unwrap();
        assert_eq!(code.bytes.len(), len);
        let instructions = decode(&code.bytes);
        assert_eq!(instructions.len(), len.div_ceil(9));
        assert!(instructions.iter().all(|nop| nop.mnemonic() == iced_x86::Mnemonic::Nop));
    }
}

#[test]
fn what_has_no_encoding_is_refused() {
    let mut asm = Assembler::new();
    asm.ret();
    asm.load(
        OpSize::B8,
        Gpr::Rax,
        Mem::indexed(Gpr::Rax, Gpr::Rsp, paceline_compiler::native::machine::x64::Scale::One, 0),
    );
    asm.lock_alu_mr(Alu::Cmp, OpSize::D32, Mem::at(Gpr::Rax, 0), Gpr::Rax);
    assert_eq!(asm.finish(), Err(AssembleError::Operand { offset: 1 }));

    let mut asm = Assembler::new();
    asm.lock_alu_mi(Alu::Cmp, OpSize::D32, Mem::at(Gpr::Rax, 0), 1);
    assert_eq!(asm.finish(), Err(AssembleError::Operand { offset: 0 }));
}
