//! Each form by itself, with all relevant operands.

use paceline_jit::x64::{Alu, AssembleError, Assembler, Cond, Gpr, Mem, OpSize, Width};

use iced_x86::{InstructionInfoFactory, OpAccess, Register};

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

/// Registers that an instruction writes according to the decoder, without the stack pointer for push and pop.
fn written(factory: &mut InstructionInfoFactory, code: &[u8]) -> Vec<Gpr> {
    let instruction = decode(code).pop().unwrap();
    let written = factory.info(&instruction).used_registers().iter().filter(|used| {
        let writes = [OpAccess::Write, OpAccess::ReadWrite, OpAccess::CondWrite, OpAccess::ReadCondWrite];
        writes.contains(&used.access()) && used.register().is_gpr()
    });
    let mut written: Vec<Gpr> = written
        .map(|used| used.register().full_register())
        .filter(|&full| full != Register::RSP || !instruction.is_stack_instruction())
        .map(|full| Gpr::ALL[full.number()])
        .collect();
    written.sort_unstable();
    written.dedup();
    written
}

/// Values held in registers that an instruction writes are invalidated, and no others.
#[test]
fn writes_are_known() {
    let memories = forms::memories();
    let mut factory = InstructionInfoFactory::new();
    // A part of the operands; CI takes more.
    let step = std::env::var("PACELINE_OPERANDS").ok().and_then(|text| text.parse().ok()).unwrap_or(97);
    // The decoder does not list the registers that a callee clobbers.
    for form in forms::all().iter().filter(|form| !form.name.starts_with("call")) {
        for operands in operands(form.kind, &memories).iter().step_by(step) {
            let mut asm = Assembler::new();
            form.emit(&mut asm, operands);
            let code = asm.finish().unwrap().bytes;
            let written = written(&mut factory, &code);
            for gpr in Gpr::ALL
                .into_iter()
                .filter(|&gpr| gpr != Gpr::Rsp || !matches!(form.name.as_str(), "push" | "pop"))
            {
                let mut asm = Assembler::new();
                // Registers start with different values, none of them pushed.
                Gpr::ALL.iter().for_each(|&gpr| asm.mov_ri(gpr, 1));
                let held = asm.hold(gpr);
                form.emit(&mut asm, operands);
                assert_eq!(asm.held(held), gpr);
                let lost = asm.finish().is_err();
                let overwritten = written.contains(&gpr);
                // 8-bit division uses ax alone, and a move of a register to itself does not change it.
                let may_differ = matches!(gpr, Gpr::Rax | Gpr::Rdx) && form.kind == Kind::R
                    || operands.a == operands.b
                        && matches!(form.name.as_str(), "mov_rr" | "movzx_rr" | "movsx_rr" | "xchg_rr");
                assert!(
                    lost == overwritten || may_differ,
                    "{}: {operands:?}, {gpr:?}: {written:?}",
                    form.name
                );
            }
        }
    }
}

/// At a label, a value is held only if it is held on every incoming edge.
#[test]
fn ways_meet() {
    let meet = |change: fn(&mut Assembler), falls: bool| {
        let mut asm = Assembler::new();
        let label = asm.new_label();
        asm.mov_ri(Gpr::Rax, 1);
        let held = asm.hold(Gpr::Rax);
        asm.jcc(Cond::E, label);
        change(&mut asm);
        if !falls {
            asm.ret();
        }
        asm.bind(label);
        asm.held(held);
        asm.finish().is_ok()
    };
    assert!(meet(|asm| asm.mov_ri(Gpr::Rcx, 2), true));
    assert!(!meet(|asm| asm.mov_ri(Gpr::Rax, 2), true));
    assert!(meet(|asm| asm.mov_ri(Gpr::Rax, 2), false));
    assert!(meet(
        |asm| {
            asm.push(Gpr::Rax);
            asm.mov_ri(Gpr::Rax, 2);
            asm.pop(Gpr::Rax);
        },
        true
    ));
    assert!(meet(
        |asm| {
            asm.mov_rr(Width::Q64, Gpr::R10, Gpr::Rax);
            asm.mov_ri(Gpr::Rax, 2);
            asm.mov_rr(Width::Q64, Gpr::Rax, Gpr::R10);
        },
        true
    ));
    assert!(!meet(
        |asm| {
            asm.mov_rr(Width::D32, Gpr::R10, Gpr::Rax);
            asm.mov_rr(Width::Q64, Gpr::Rax, Gpr::R10);
        },
        true
    ));
}

/// Calls invalidate the caller-saved registers only.
#[test]
fn calls_overwrite() {
    for gpr in Gpr::ALL {
        let mut asm = Assembler::new();
        let function = asm.new_label();
        asm.bind(function);
        let held = asm.hold(gpr);
        asm.call(function);
        asm.held(held);
        let kept = [Gpr::Rbx, Gpr::Rsp, Gpr::Rbp, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15].contains(&gpr);
        match asm.finish() {
            Ok(_) => assert!(kept, "{gpr:?}"),
            Err(error) => {
                assert!(!kept, "{gpr:?}");
                assert_eq!(error, AssembleError::Overwritten { register: gpr, offset: 5 });
            }
        }
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
    asm.load(OpSize::B8, Gpr::Rax, Mem::indexed(Gpr::Rax, Gpr::Rsp, paceline_jit::x64::Scale::One, 0));
    asm.lock_alu_mr(Alu::Cmp, OpSize::D32, Mem::at(Gpr::Rax, 0), Gpr::Rax);
    assert_eq!(asm.finish(), Err(AssembleError::RspIndex { offset: 1 }));

    let mut asm = Assembler::new();
    asm.lock_alu_mi(Alu::Cmp, OpSize::D32, Mem::at(Gpr::Rax, 0), 1);
    assert_eq!(asm.finish(), Err(AssembleError::LockedCompare { offset: 0 }));
}
