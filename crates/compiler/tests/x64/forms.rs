//! One entry per method of the assembler: its call, and the expected text in Intel's syntax.

use paceline_compiler::native::machine::x64::{
    Alu, Assembler, Cond, Gpr, Mem, OpSize, Scale, Shift, ShiftX, Width,
};

/// Operands for any form, which uses those it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands {
    pub(crate) a: Gpr,
    pub(crate) b: Gpr,
    pub(crate) c: Gpr,
    pub(crate) size: OpSize,
    pub(crate) width: Width,
    pub(crate) mem: Mem,
    pub(crate) imm: i32,
}

/// Kinds of operands of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    None,
    R,
    Rr,
    Rrr,
    Ri,
    Rri,
    M,
    Rm,
    Mi,
}

pub(crate) struct Form {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    emit: Emit,
}

/// Mnemonics and their methods.
type Methods<F, const N: usize> = [(&'static str, F); N];

type Emit = Box<dyn Fn(&mut Assembler, &Operands) -> String>;

impl Form {
    /// Appends the instruction and returns its text.
    pub(crate) fn emit(&self, asm: &mut Assembler, operands: &Operands) -> String {
        (self.emit)(asm, operands)
    }
}

fn form(
    name: impl ToString,
    kind: Kind,
    emit: impl Fn(&mut Assembler, &Operands) -> String + 'static,
) -> Form {
    Form { name: name.to_string(), kind, emit: Box::new(emit) }
}

/// A register's name at a size.
pub(crate) fn name(reg: Gpr, size: impl Into<OpSize>) -> String {
    const OLD: [&str; 8] = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
    let number = reg as usize;
    match (OLD.get(number), size.into()) {
        (Some(old), OpSize::Q64) => format!("r{old}"),
        (Some(old), OpSize::D32) => format!("e{old}"),
        (Some(old), OpSize::W16) => old.to_string(),
        (Some(old), OpSize::B8) => format!("{}l", old.trim_end_matches('x')),
        (None, OpSize::Q64) => format!("r{number}"),
        (None, OpSize::D32) => format!("r{number}d"),
        (None, OpSize::W16) => format!("r{number}w"),
        (None, OpSize::B8) => format!("r{number}b"),
    }
}

pub(crate) fn hex(value: i64) -> String {
    format!("{}{:#x}", if value < 0 { "-" } else { "" }, value.unsigned_abs())
}

/// An immediate truncated to the operand size.
fn cut(imm: i32, size: impl Into<OpSize>) -> String {
    hex(match size.into() {
        OpSize::B8 => (imm as i8).into(),
        OpSize::W16 => (imm as i16).into(),
        OpSize::D32 | OpSize::Q64 => imm.into(),
    })
}

fn address(mem: &Mem) -> String {
    let Mem::Reg { base, index, disp } = *mem else { panic!("labels have tests of their own") };
    let index = index.map_or(String::new(), |(index, scale)| {
        let factor = 1 << scale as u32;
        // iced omits a factor of 1.
        if factor == 1 {
            format!("+{}", name(index, OpSize::Q64))
        } else {
            format!("+{}*{factor}", name(index, OpSize::Q64))
        }
    });
    let disp = match disp {
        0 => String::new(),
        1.. => format!("+{}", hex(disp.into())),
        _ => hex(disp.into()),
    };
    format!("[{}{index}{disp}]", name(base, OpSize::Q64))
}

fn pointer(mem: &Mem, size: impl Into<OpSize>) -> String {
    let size = match size.into() {
        OpSize::B8 => "byte",
        OpSize::W16 => "word",
        OpSize::D32 => "dword",
        OpSize::Q64 => "qword",
    };
    format!("{size} ptr {}", address(mem))
}

fn mnemonic(op: impl std::fmt::Debug) -> String {
    format!("{op:?}").to_lowercase()
}

pub(crate) fn all() -> Vec<Form> {
    let mut forms = Vec::new();
    arithmetic(&mut forms);
    unary(&mut forms);
    shifts(&mut forms);
    bits(&mut forms);
    moves(&mut forms);
    extensions(&mut forms);
    atomics(&mut forms);
    control(&mut forms);
    forms
}

fn arithmetic(forms: &mut Vec<Form>) {
    for op in Alu::ALL {
        let m = mnemonic(op);
        let text = [m.clone(), m.clone(), m.clone(), m.clone(), m];
        let [rr, ri, rm, mr, mi] = text;
        forms.push(form(format!("{rr}_rr"), Kind::Rr, move |asm, o| {
            asm.alu_rr(op, o.size, o.a, o.b);
            format!("{rr} {},{}", name(o.a, o.size), name(o.b, o.size))
        }));
        forms.push(form(format!("{ri}_ri"), Kind::Ri, move |asm, o| {
            asm.alu_ri(op, o.size, o.a, o.imm);
            format!("{ri} {},{}", name(o.a, o.size), cut(o.imm, o.size))
        }));
        forms.push(form(format!("{rm}_rm"), Kind::Rm, move |asm, o| {
            asm.alu_rm(op, o.size, o.a, o.mem);
            format!("{rm} {},{}", name(o.a, o.size), pointer(&o.mem, o.size))
        }));
        forms.push(form(format!("{mr}_mr"), Kind::Rm, move |asm, o| {
            asm.alu_mr(op, o.size, o.mem, o.a);
            format!("{mr} {},{}", pointer(&o.mem, o.size), name(o.a, o.size))
        }));
        forms.push(form(format!("{mi}_mi"), Kind::Mi, move |asm, o| {
            asm.alu_mi(op, o.size, o.mem, o.imm);
            format!("{mi} {},{}", pointer(&o.mem, o.size), cut(o.imm, o.size))
        }));
    }
    forms.push(form("test_rr", Kind::Rr, |asm, o| {
        asm.test_rr(o.size, o.a, o.b);
        format!("test {},{}", name(o.a, o.size), name(o.b, o.size))
    }));
    forms.push(form("test_ri", Kind::Ri, |asm, o| {
        asm.test_ri(o.size, o.a, o.imm);
        format!("test {},{}", name(o.a, o.size), cut(o.imm, o.size))
    }));
    forms.push(form("test_mi", Kind::Mi, |asm, o| {
        asm.test_mi(o.size, o.mem, o.imm);
        format!("test {},{}", pointer(&o.mem, o.size), cut(o.imm, o.size))
    }));
    forms.push(form("imul_rr", Kind::Rr, |asm, o| {
        asm.imul_rr(o.width, o.a, o.b);
        format!("imul {},{}", name(o.a, o.width), name(o.b, o.width))
    }));
    forms.push(form("imul_rri", Kind::Rri, |asm, o| {
        asm.imul_rri(o.width, o.a, o.b, o.imm);
        // In Intel's syntax a register that is both destination and source is named once.
        let src = if o.a == o.b { String::new() } else { format!("{},", name(o.b, o.width)) };
        format!("imul {},{src}{}", name(o.a, o.width), hex(o.imm.into()))
    }));
}

fn unary(forms: &mut Vec<Form>) {
    let methods: Methods<fn(&mut Assembler, OpSize, Gpr), 4> = [
        ("mul", Assembler::mul),
        ("div", Assembler::div),
        ("idiv", Assembler::idiv),
        ("neg", Assembler::neg),
    ];
    for (mnemonic, method) in methods {
        forms.push(form(mnemonic, Kind::R, move |asm, o| {
            method(asm, o.size, o.a);
            format!("{mnemonic} {}", name(o.a, o.size))
        }));
    }
    forms.push(form("inc", Kind::M, |asm, o| {
        asm.inc_m(o.size, o.mem);
        format!("inc {}", pointer(&o.mem, o.size))
    }));
    forms.push(form("sign_to_rdx", Kind::None, |asm, o| {
        asm.sign_to_rdx(o.width);
        if o.width == Width::D32 { "cdq".into() } else { "cqo".into() }
    }));
}

fn shifts(forms: &mut Vec<Form>) {
    for op in Shift::ALL {
        let m = mnemonic(op);
        let n = m.clone();
        forms.push(form(format!("{m}_ri"), Kind::Ri, move |asm, o| {
            let count = o.imm as u8 & 0x3f;
            asm.shift_ri(op, o.size, o.a, count);
            format!("{m} {},{}", name(o.a, o.size), hex(count.into()))
        }));
        forms.push(form(format!("{n}_rcl"), Kind::R, move |asm, o| {
            asm.shift_rcl(op, o.size, o.a);
            format!("{n} {},cl", name(o.a, o.size))
        }));
    }
    for op in ShiftX::ALL {
        let m = mnemonic(op);
        forms.push(form(m.clone(), Kind::Rrr, move |asm, o| {
            asm.shiftx(op, o.width, o.a, o.b, o.c);
            format!("{m} {},{},{}", name(o.a, o.width), name(o.b, o.width), name(o.c, o.width))
        }));
    }
    forms.push(form("mulx", Kind::Rrr, |asm, o| {
        asm.mulx(o.width, o.a, o.b, o.c);
        format!("mulx {},{},{}", name(o.a, o.width), name(o.b, o.width), name(o.c, o.width))
    }));
    forms.push(form("rorx", Kind::Rri, |asm, o| {
        let count = o.imm as u8 & 0x3f;
        asm.rorx(o.width, o.a, o.b, count);
        format!("rorx {},{},{}", name(o.a, o.width), name(o.b, o.width), hex(count.into()))
    }));
    forms.push(form("bswap", Kind::R, |asm, o| {
        asm.bswap(o.width, o.a);
        format!("bswap {}", name(o.a, o.width))
    }));
}

fn bits(forms: &mut Vec<Form>) {
    for cond in Cond::ALL {
        let m = mnemonic(cond);
        let n = m.clone();
        forms.push(form(format!("set{m}"), Kind::R, move |asm, o| {
            asm.setcc(cond, o.a);
            format!("set{m} {}", name(o.a, OpSize::B8))
        }));
        forms.push(form(format!("cmov{n}"), Kind::Rr, move |asm, o| {
            asm.cmovcc(cond, o.width, o.a, o.b);
            format!("cmov{n} {},{}", name(o.a, o.width), name(o.b, o.width))
        }));
    }
}

fn moves(forms: &mut Vec<Form>) {
    forms.push(form("mov_rr", Kind::Rr, |asm, o| {
        asm.mov_rr(o.size, o.a, o.b);
        format!("mov {},{}", name(o.a, o.size), name(o.b, o.size))
    }));
    forms.push(form("mov_ri", Kind::Ri, |asm, o| {
        asm.mov_ri(o.a, o.imm as i64 as u64);
        let dst = if o.imm < 0 { name(o.a, OpSize::Q64) } else { name(o.a, OpSize::D32) };
        format!("mov {dst},{}", hex(o.imm.into()))
    }));
    forms.push(form("mov_ri of 32 bits", Kind::Ri, |asm, o| {
        asm.mov_ri(o.a, o.imm as u32 as u64);
        format!("mov {},{}", name(o.a, OpSize::D32), hex(o.imm.into()))
    }));
    forms.push(form("mov_ri of 64 bits", Kind::Ri, |asm, o| {
        let imm = i64::from(o.imm) << 32 | 1 << 31;
        asm.mov_ri(o.a, imm as u64);
        match o.imm {
            0 => format!("mov {},{}", name(o.a, OpSize::D32), hex(i32::MIN.into())),
            -1 => format!("mov {},{}", name(o.a, OpSize::Q64), hex(imm)),
            _ => format!("mov {},{}", name(o.a, OpSize::Q64), hex(imm)),
        }
    }));
    forms.push(form("load", Kind::Rm, |asm, o| {
        asm.load(o.size, o.a, o.mem);
        let (m, width) = match o.size {
            OpSize::B8 | OpSize::W16 => ("movzx", OpSize::D32),
            OpSize::D32 | OpSize::Q64 => ("mov", o.size),
        };
        format!("{m} {},{}", name(o.a, width), pointer(&o.mem, o.size))
    }));
    forms.push(form("store", Kind::Rm, |asm, o| {
        asm.store(o.size, o.mem, o.a);
        format!("mov {},{}", pointer(&o.mem, o.size), name(o.a, o.size))
    }));
    forms.push(form("store_imm", Kind::Mi, |asm, o| {
        asm.store_imm(o.size, o.mem, o.imm);
        format!("mov {},{}", pointer(&o.mem, o.size), cut(o.imm, o.size))
    }));
    forms.push(form("lea", Kind::Rm, |asm, o| {
        asm.lea(o.width, o.a, o.mem);
        format!("lea {},{}", name(o.a, o.width), address(&o.mem))
    }));
    forms.push(form("push", Kind::R, |asm, o| {
        asm.push(o.a);
        format!("push {}", name(o.a, OpSize::Q64))
    }));
    forms.push(form("pop", Kind::R, |asm, o| {
        asm.pop(o.a);
        format!("pop {}", name(o.a, OpSize::Q64))
    }));
    forms.push(form("prefetcht0", Kind::M, |asm, o| {
        asm.prefetcht0(o.mem);
        format!("prefetcht0 {}", pointer(&o.mem, OpSize::B8))
    }));
}

fn extensions(forms: &mut Vec<Form>) {
    forms.push(form("movzx_rr", Kind::Rr, |asm, o| {
        asm.movzx_rr(o.size, o.a, o.b);
        let (m, width) = match o.size {
            OpSize::B8 | OpSize::W16 => ("movzx", OpSize::D32),
            OpSize::D32 | OpSize::Q64 => ("mov", o.size),
        };
        format!("{m} {},{}", name(o.a, width), name(o.b, o.size))
    }));
    let sign = |from, width| match (from, width) {
        (OpSize::B8 | OpSize::W16, _) => ("movsx", from),
        (OpSize::D32, Width::Q64) => ("movsxd", from),
        _ => ("mov", OpSize::from(width)),
    };
    forms.push(form("movsx_rr", Kind::Rr, move |asm, o| {
        asm.movsx_rr(o.width, o.size, o.a, o.b);
        let (m, from) = sign(o.size, o.width);
        format!("{m} {},{}", name(o.a, o.width), name(o.b, from))
    }));
    forms.push(form("load_sx", Kind::Rm, move |asm, o| {
        asm.load_sx(o.width, o.size, o.a, o.mem);
        let (m, from) = sign(o.size, o.width);
        format!("{m} {},{}", name(o.a, o.width), pointer(&o.mem, from))
    }));
}

fn atomics(forms: &mut Vec<Form>) {
    for op in Alu::ALL.into_iter().filter(|&op| op != Alu::Cmp) {
        let m = mnemonic(op);
        let n = m.clone();
        forms.push(form(format!("lock_{m}_mr"), Kind::Rm, move |asm, o| {
            asm.lock_alu_mr(op, o.size, o.mem, o.a);
            format!("lock {m} {},{}", pointer(&o.mem, o.size), name(o.a, o.size))
        }));
        forms.push(form(format!("lock_{n}_mi"), Kind::Mi, move |asm, o| {
            asm.lock_alu_mi(op, o.size, o.mem, o.imm);
            format!("lock {n} {},{}", pointer(&o.mem, o.size), cut(o.imm, o.size))
        }));
    }
    let methods: Methods<fn(&mut Assembler, OpSize, Mem, Gpr), 3> = [
        ("xchg", Assembler::xchg_mr),
        ("lock xadd", Assembler::lock_xadd),
        ("lock cmpxchg", Assembler::lock_cmpxchg),
    ];
    for (mnemonic, method) in methods {
        forms.push(form(mnemonic, Kind::Rm, move |asm, o| {
            method(asm, o.size, o.mem, o.a);
            format!("{mnemonic} {},{}", pointer(&o.mem, o.size), name(o.a, o.size))
        }));
    }
}

fn control(forms: &mut Vec<Form>) {
    let methods: Methods<fn(&mut Assembler), 3> =
        [("ret", Assembler::ret), ("lfence", Assembler::lfence), ("pause", Assembler::pause)];
    for (mnemonic, method) in methods {
        forms.push(form(mnemonic, Kind::None, move |asm, _| {
            method(asm);
            mnemonic.into()
        }));
    }
    let methods: Methods<fn(&mut Assembler, Gpr), 2> =
        [("jmp", Assembler::jmp_r), ("call", Assembler::call_r)];
    for (mnemonic, method) in methods {
        forms.push(form(format!("{mnemonic}_r"), Kind::R, move |asm, o| {
            method(asm, o.a);
            format!("{mnemonic} {}", name(o.a, OpSize::Q64))
        }));
    }
    let methods: Methods<fn(&mut Assembler, Mem), 2> =
        [("jmp", Assembler::jmp_m), ("call", Assembler::call_m)];
    for (mnemonic, method) in methods {
        forms.push(form(format!("{mnemonic}_m"), Kind::M, move |asm, o| {
            method(asm, o.mem);
            format!("{mnemonic} {}", pointer(&o.mem, OpSize::Q64))
        }));
    }
}

/// Displacements at the limits of their encodings.
pub(crate) const DISPLACEMENTS: [i32; 9] = [0, 1, -1, 127, 128, -128, -129, i32::MAX, i32::MIN];

/// Immediates at the limits of their encodings, for every size.
pub(crate) const IMMEDIATES: [i32; 15] =
    [0, 1, -1, 2, 127, 128, -128, -129, 255, 256, 32767, 32768, -32769, i32::MAX, i32::MIN];

/// Every base with every index, cycling through displacements and scales.
pub(crate) fn memories() -> Vec<Mem> {
    let mut memories = Vec::new();
    for base in Gpr::ALL {
        memories.extend(DISPLACEMENTS.map(|disp| Mem::at(base, disp)));
        for index in Gpr::ALL.into_iter().filter(|&index| index != Gpr::Rsp) {
            for disp in DISPLACEMENTS {
                memories.push(Mem::indexed(base, index, Scale::ALL[memories.len() % 4], disp));
            }
        }
    }
    memories
}
