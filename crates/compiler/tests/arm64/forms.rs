//! Each method with many operands, against the text that it stands for.

use paceline_compiler::native::machine::aarch64::{
    Arith, Assembler, Cond, Divide, Gpr, Logic, Mem, Shift, Size, Width,
};

use crate::llvm::assemble;

const WIDTHS: [Width; 2] = [Width::D32, Width::Q64];

/// Instructions with the text that they stand for.
#[derive(Default)]
struct Forms {
    asm: Assembler,
    texts: Vec<String>,
}

impl Forms {
    fn add(&mut self, text: String, emit: impl FnOnce(&mut Assembler)) {
        emit(&mut self.asm);
        self.texts.push(text);
    }
}

/// All registers but the stack pointer.
fn registers() -> Vec<Gpr> {
    use Gpr::*;
    vec![
        X0, X1, X2, X3, X4, X5, X6, X7, X8, X9, X10, X11, X12, X13, X14, X15, X16, X17, X18, X19, X20, X21,
        X22, X23, X24, X25, X26, X27, X28, X29, X30, Zr,
    ]
}

/// Triples of registers in which each register is in each place.
fn triples() -> Vec<[Gpr; 3]> {
    let all = registers();
    let at = |index: usize| all[index % all.len()];
    (0..all.len()).map(|first| [at(first), at(first * 7 + 3), at(first * 11 + 9)]).collect()
}

fn name(width: Width, gpr: Gpr) -> String {
    match (width, gpr) {
        (Width::D32, Gpr::Zr) => "wzr".to_owned(),
        (Width::Q64, Gpr::Zr) => "xzr".to_owned(),
        (_, Gpr::Sp) => "sp".to_owned(),
        (Width::D32, gpr) => format!("{gpr:?}").replace('X', "w"),
        (Width::Q64, gpr) => format!("{gpr:?}").to_lowercase(),
    }
}

/// What can be a base or a sum, in place of zero the stack pointer.
fn base(gpr: Gpr) -> Gpr {
    if gpr == Gpr::Zr { Gpr::Sp } else { gpr }
}

fn arithmetic(forms: &mut Forms) {
    for (width, [d, n, m]) in
        WIDTHS.into_iter().flat_map(|width| triples().into_iter().map(move |three| (width, three)))
    {
        let [dn, nn, mn] = [d, n, m].map(|gpr| name(width, gpr));
        for (op, text) in
            [(Arith::Add, "add"), (Arith::Adds, "adds"), (Arith::Sub, "sub"), (Arith::Subs, "subs")]
        {
            for shift in [0, 1, 3, 31] {
                let suffix = if shift == 0 { String::new() } else { format!(", lsl #{shift}") };
                let text = format!("{text} {dn}, {nn}, {mn}{suffix}");
                forms.add(text, |asm| asm.arith(op, width, d, n, m, shift));
            }
            let (source, sets) = (base(n), matches!(op, Arith::Adds | Arith::Subs));
            let target = if sets { d } else { base(d) };
            let [to, from] = [target, source]
                .map(|gpr| name(width, gpr).replace("sp", if width == Width::D32 { "wsp" } else { "sp" }));
            for number in [0_u64, 1, 4095, 4096, 0xfff000, 0x123000] {
                let text = format!("{text} {to}, {from}, #{number}");
                forms.add(text, |asm| asm.arith_imm(op, width, target, source, number));
            }
            if width == Width::Q64 {
                let word = name(Width::D32, m);
                forms.add(format!("{text} {to}, {from}, {word}, sxtw"), |asm| {
                    asm.arith_extended(op, target, source, m, true);
                });
                forms.add(format!("{text} {to}, {from}, {mn}, uxtx"), |asm| {
                    asm.arith_extended(op, target, source, m, false);
                });
            }
        }
        for (op, text) in
            [(Logic::And, "and"), (Logic::Orr, "orr"), (Logic::Eor, "eor"), (Logic::Ands, "ands")]
        {
            forms.add(format!("{text} {dn}, {nn}, {mn}"), |asm| asm.logic(op, width, d, n, m));
        }
        forms.add(format!("mov {dn}, {mn}"), |asm| asm.mov(width, d, m));
        forms.add(format!("mul {dn}, {nn}, {mn}"), |asm| asm.mul(width, d, n, m));
        if width == Width::Q64 {
            forms.add(format!("umulh {dn}, {nn}, {mn}"), |asm| asm.umulh(d, n, m));
            let [low, other] = [n, m].map(|gpr| name(Width::D32, gpr));
            forms.add(format!("umull {dn}, {low}, {other}"), |asm| asm.umull(d, n, m));
        }
        forms.add(format!("msub {dn}, {nn}, {mn}, {dn}"), |asm| asm.msub(width, d, n, m, d));
        forms.add(format!("udiv {dn}, {nn}, {mn}"), |asm| asm.divide(Divide::Udiv, width, d, n, m));
        forms.add(format!("sdiv {dn}, {nn}, {mn}"), |asm| asm.divide(Divide::Sdiv, width, d, n, m));
        forms.add(format!("rev {dn}, {nn}"), |asm| asm.rev(width, d, n));
        let bits = if width == Width::D32 { 32 } else { 64 };
        for (op, text) in [(Shift::Lsl, "lsl"), (Shift::Lsr, "lsr"), (Shift::Asr, "asr"), (Shift::Ror, "ror")]
        {
            forms.add(format!("{text} {dn}, {nn}, {mn}"), |asm| asm.shift(op, width, d, n, m));
            for count in [0, 1, 7, 31, bits - 1] {
                forms
                    .add(format!("{text} {dn}, {nn}, #{count}"), |asm| asm.shift_imm(op, width, d, n, count));
            }
        }
        for (bits, text) in [(8, "sxtb"), (16, "sxth"), (32, "sxtw")] {
            if bits < 32 || width == Width::Q64 {
                let word = name(Width::D32, n);
                forms.add(format!("{text} {dn}, {word}"), |asm| asm.sign_extend(width, d, n, bits));
            }
        }
        for cond in Cond::ALL {
            let text = format!("{cond:?}").to_lowercase();
            forms.add(format!("csel {dn}, {nn}, {mn}, {text}"), |asm| asm.csel(cond, width, d, n, m));
        }
    }
    for [d, n, _] in triples() {
        let [dn, nn] = [d, n].map(|gpr| name(Width::D32, gpr));
        forms.add(format!("uxtb {dn}, {nn}"), |asm| asm.zero_extend(d, n, 8));
        forms.add(format!("uxth {dn}, {nn}"), |asm| asm.zero_extend(d, n, 16));
        forms.add(format!("rev16 {dn}, {nn}"), |asm| asm.rev16(d, n));
        for cond in Cond::ALL {
            let text = format!("{cond:?}").to_lowercase();
            forms.add(format!("cset {dn}, {text}"), |asm| asm.cset(cond, d));
        }
    }
}

fn memory(forms: &mut Forms) {
    for [t, n, m] in triples() {
        let n = base(n);
        for (size, suffix) in Size::ALL.into_iter().zip(["b", "h", "", ""]) {
            let bytes = 1 << size as i32;
            let width = if size == Size::X { Width::Q64 } else { Width::D32 };
            let signed = ["ldrsb", "ldrsh", "ldrsw", "ldr"][size as usize];
            let [tn, wide, nn, mn] =
                [(width, t), (Width::Q64, t), (Width::Q64, n), (Width::Q64, m)].map(|(w, gpr)| name(w, gpr));
            let mut places: Vec<(Mem, String, &str)> =
                vec![(Mem::Indexed(n, m), format!("[{nn}, {mn}]"), "r")];
            for offset in [0, bytes, 17 * bytes, 4095 * bytes] {
                places.push((Mem::At(n, offset), format!("[{nn}, #{offset}]"), "r"));
            }
            for offset in [-256, -1, if bytes > 1 { 255 } else { -3 }] {
                places.push((Mem::At(n, offset), format!("[{nn}, #{offset}]"), "ur"));
            }
            for (mem, text, kind) in places {
                forms.add(format!("ld{kind}{suffix} {tn}, {text}"), |asm| asm.load(size, t, mem));
                forms.add(format!("st{kind}{suffix} {tn}, {text}"), |asm| asm.store(size, t, mem));
                let signed = signed.replace("ldr", &format!("ld{kind}"));
                forms.add(format!("{signed} {wide}, {text}"), |asm| asm.load_signed(size, t, mem));
            }
            forms.add(format!("ldar{suffix} {tn}, [{nn}]"), |asm| asm.load_acquire(size, t, n));
            forms.add(format!("stlr{suffix} {tn}, [{nn}]"), |asm| asm.store_release(size, t, n));
        }
        let [nn, mn] = [n, m].map(|gpr| name(Width::Q64, gpr));
        forms.add(format!("prfm pldl1keep, [{nn}, #64]"), |asm| asm.prefetch(Mem::At(n, 64)));
        for width in WIDTHS {
            let tn = name(width, t);
            forms.add(format!("ldaxr {tn}, [{nn}]"), |asm| asm.load_exclusive(width, t, n));
            if m != t && m != n {
                let status = name(Width::D32, m);
                forms.add(format!("stlxr {status}, {tn}, [{nn}]"), |asm| asm.store_exclusive(width, m, t, n));
            }
        }
        if t != m {
            let tn = name(Width::Q64, t);
            forms.add(format!("stp {tn}, {mn}, [sp, #-96]!"), |asm| asm.push_pair(t, m, 96));
            forms.add(format!("ldp {tn}, {mn}, [sp], #96"), |asm| asm.pop_pair(t, m, 96));
            forms.add(format!("stp {tn}, {mn}, [sp, #16]"), |asm| asm.store_pair(t, m, 16));
            forms.add(format!("ldp {tn}, {mn}, [sp, #-512]"), |asm| asm.load_pair(t, m, -512));
        }
    }
}

fn control(forms: &mut Forms) {
    for [n, ..] in triples() {
        let nn = name(Width::Q64, n);
        forms.add(format!("br {nn}"), |asm| asm.br(n));
        forms.add(format!("blr {nn}"), |asm| asm.blr(n));
    }
    forms.add("ret".to_owned(), Assembler::ret);
    forms.add("dmb ish".to_owned(), Assembler::barrier);
}

#[test]
fn instructions_are_what_llvm_assembles() {
    let mut forms = Forms::default();
    arithmetic(&mut forms);
    memory(&mut forms);
    control(&mut forms);
    let Forms { asm, texts } = forms;
    let bytes = asm.finish().expect("all operands can be encoded").bytes;
    let Some(expected) = assemble("instructions_are_what_llvm_assembles", &texts) else { return };
    let found: Vec<u32> =
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect();
    assert_eq!((found.len(), expected.len()), (texts.len(), texts.len()));
    let differ = |(text, (found, expected)): (&String, (&u32, &u32))| {
        (found != expected).then(|| format!("{text}: {found:#010x}, and it is {expected:#010x}"))
    };
    let wrong: Vec<String> =
        texts.iter().zip(found.iter().zip(&expected)).filter_map(differ).take(20).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn operands_that_cannot_be_encoded_are_refused() {
    let refused = |emit: &dyn Fn(&mut Assembler)| {
        let mut asm = Assembler::new();
        emit(&mut asm);
        assert!(asm.finish().is_err());
    };
    refused(&|asm| asm.mov(Width::Q64, Gpr::Sp, Gpr::X0));
    refused(&|asm| asm.arith_imm(Arith::Add, Width::Q64, Gpr::Zr, Gpr::X0, 1));
    refused(&|asm| asm.arith_imm(Arith::Add, Width::Q64, Gpr::X0, Gpr::X0, 4097));
    refused(&|asm| asm.logic_imm(Logic::And, Width::Q64, Gpr::X0, Gpr::X0, 5));
    refused(&|asm| asm.logic_imm(Logic::Orr, Width::Q64, Gpr::Zr, Gpr::X0, 1));
    refused(&|asm| asm.load(Size::X, Gpr::X0, Mem::At(Gpr::X1, 257)));
    refused(&|asm| asm.load(Size::X, Gpr::X0, Mem::At(Gpr::Zr, 0)));
    refused(&|asm| asm.store_exclusive(Width::Q64, Gpr::X0, Gpr::X0, Gpr::X1));
    refused(&|asm| asm.push_pair(Gpr::X0, Gpr::X1, 12));
    refused(&|asm| asm.align(13));
}
