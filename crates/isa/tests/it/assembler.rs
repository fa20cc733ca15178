//! The assembler's language: labels, names, comments, and error messages.

use paceline_isa::{
    AluOp, Callee, Code, Condition, DecodeError, Imm64, Insn, Names, Operand, RawInsn, Reg, Width, assemble,
    disassemble,
};

/// Names as a program's author would provide: one helper, one kernel function, two maps.
struct Known;

impl Names for Known {
    fn helper(&self, name: &str) -> Option<i32> {
        (name == "bpf_map_lookup_elem").then_some(1)
    }

    fn kfunc(&self, name: &str) -> Option<i32> {
        ["bpf_map_lookup_elem", "bpf_iter_num_new"]
            .iter()
            .position(|known| *known == name)
            .map(|index| index as i32)
    }

    fn map(&self, name: &str) -> Option<i32> {
        ["counters", ".rodata"].iter().position(|known| *known == name).map(|index| index as i32)
    }

    fn map_by_id(&self, id: u32) -> Option<i32> {
        [5, 7].iter().position(|known| *known == id).map(|index| index as i32)
    }
}

fn code(text: &str) -> Code {
    assemble(text, &Known).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn error(text: &str) -> String {
    assemble(text, &Known).unwrap_err().to_string()
}

fn insn(text: &str) -> Insn {
    text.parse().unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn labels_reach_forward_and_back() {
    let program = "
        start:
            r0 = 1 ll           ; two slots
            if r1 == 0 goto out // forward
            if w1 s> w2 goto start
            goto out
            gotol start
            may_goto out
        out: exit # a label and an instruction on one line
    ";
    let plain = "
        r0 = 1 ll
        if r1 == 0 goto +4
        if w1 s> w2 goto -4
        goto +2
        gotol -6
        may_goto +0
        exit
    ";
    assert_eq!(code(program), code(plain));
    assert_eq!(code(program).len(), 8);
}

#[test]
fn subprograms_come_before_helpers_of_the_same_name() {
    let program = code("call sub\ncall bpf_map_lookup_elem\ncall 7\nr1 = subprog[sub] ll\nexit\nsub: exit");
    let insns: Vec<Insn> = program.iter().map(|(_, insn)| *insn).collect();
    assert_eq!(insns[0], Insn::Call(Callee::Subprogram(5)));
    assert_eq!(insns[1], Insn::Call(Callee::Helper(1)));
    assert_eq!(insns[2], Insn::Call(Callee::Helper(7)));
    assert_eq!(insns[3], Insn::LoadImm64 { dst: Reg::R1, value: Imm64::Code { offset: 2 } });
    assert_eq!(program.get(3).unwrap().subprogram_target(3), Some(6));

    let shadowed = code("call bpf_map_lookup_elem\nexit\nbpf_map_lookup_elem: exit");
    assert_eq!(shadowed.get(0), Some(&Insn::Call(Callee::Subprogram(1))));

    let kfunc = Insn::Call(Callee::Kfunc { btf_id: 1, module: 0 });
    assert_eq!(code("call bpf_iter_num_new").get(0), Some(&kfunc));
    assert_eq!(error("call bpf_iter"), "line 1, column 6: no subprogram or helper `bpf_iter`");
}

#[test]
fn maps_go_by_name_and_by_index() {
    assert_eq!(code("r1 = map[counters] ll"), code("r1 = map[0] ll"));
    assert_eq!(code("r1 = map_value[.rodata] + 4 ll"), code("r1 = map_value[1] + 0x4 ll"));
    let value = Imm64::MapValueIndex { index: 1, offset: u32::MAX };
    let loaded = insn("r1 = map_value[1] + 4294967295 ll");
    assert_eq!(loaded, Insn::LoadImm64 { dst: Reg::R1, value });
}

#[test]
fn immediates_may_be_signed_or_unsigned() {
    let minus_one = Insn::Alu { width: Width::W64, op: AluOp::Mov, dst: Reg::R1, src: Operand::Imm(-1) };
    for text in ["r1 = -1", "r1 = 0xffffffff", "r1=4294967295", "  r1  =  - 1  "] {
        assert_eq!(insn(text), minus_one);
    }
    assert_eq!(insn("r1 = 0xffffffffffffffff ll"), insn("r1 = -1 ll"));
    assert_eq!(insn("r0 = *(u8 *)skb[-4]"), insn("r0 = *(u8 *)skb[0xfffffffc]"));
}

#[test]
fn values_in_memory_have_either_prefix() {
    assert_eq!(insn("w0 = *(u16 *)(r1 + 12)"), insn("r0 = *(u16 *)(r1 + 12)"));
    assert_eq!(insn("*(u32 *)(r1 - 4) = w2"), insn("*(u32 *)(r1 -4) = r2"));
    assert_eq!(insn("lock *(u32 *)(r1 + 0) += r2"), insn("lock *(u32 *)(r1 + 0) += w2"));
    // But not where it would change the meaning, nor in addresses.
    for text in ["r1 += w2", "w1 = *(u64 *)(r2 + 0)", "r1 = *(u32 *)(w2 + 0)", "if r1 == w2 goto +1"] {
        assert!(text.parse::<Insn>().is_err(), "{text}");
    }
}

/// Output of `bpftool prog dump xlated` of Linux 6.18, with BTF and with `opcodes`.
#[test]
fn bpftool_listings_are_read() {
    let listing = "\
int counter(struct xdp_md * ctx):
; void *end = (void *)(long)ctx->data_end;
   0: (79) r7 = *(u64 *)(r1 +8)
       79 17 08 00 00 00 00 00
   1: (18) r1 = map[id:5]
       18 11 00 00 05 00 00 00 00 00 00 00 00 00 00 00
   3: (18) r2 = map[id:7][0]+4
   5: (18) r3 = 0x5
   7: (18) r4 = subprog[+9]
   9: (85) call bpf_map_lookup_elem#276560
  10: (55) if r0 != 0x0 goto pc+1
  11: (05) goto pc-2
  12: (db) r2 = atomic64_fetch_add((u64 *)(r0 +0), r2)
  13: (db) lock *(u64 *)(r0 +0) += r2
  14: (c3) r0 = atomic_cmpxchg((u32 *)(r1 -8), r0, r2)
  15: (a6) if w1 < 0xffffffff goto pc+0
  16: (85) call pc+1#bpf_prog_eaa8c821b0ab12fb_parse
  17: (95) exit
bool parse(struct xdp_md * ctx):
  18: (30) r0 = *(u8 *)skb[12]
  19: (50) r0 = *(u8 *)skb[r3 + 5]
  20: (b7) r0 = 5
  21: (95) exit
";
    let plain = "
        r7 = *(u64 *)(r1 + 8)
        r1 = map[0] ll
        r2 = map_value[1] + 4 ll
        r3 = 5 ll
        r4 = subprog[+9] ll
        call 1
        if r0 != 0 goto +1
        goto -2
        r2 = atomic_fetch_add((u64 *)(r0 + 0), r2)
        lock *(u64 *)(r0 + 0) += r2
        w0 = cmpxchg32_32(r1 - 8, w0, w2)
        if w1 < -1 goto +0
        call pc+1
        exit
        r0 = *(u8 *)skb[12]
        r0 = *(u8 *)skb[r3 + 5]
        r0 = 5
        exit
    ";
    assert_eq!(code(listing), code(plain));
}

/// Output of llvm-objdump -dr: two sections, a static function, a data section, CO-RE.
#[test]
fn relocations_are_read() {
    let listing = "
program.o:\tfile format elf64-bpf

Disassembly of section .text:

0000000000000000 <sub>:
       0:\tb7 00 00 00 01 00 00 00\tr0 = 0x1
0000000000000008 <LBB0_1>:
       1:\t95 00 00 00 00 00 00 00\texit

Disassembly of section xdp:

0000000000000000 <program>:
; int program(struct xdp_md *ctx)
       0:\t18 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00\tr1 = 0x0 ll
\t\t0000000000000000:  R_BPF_64_64\tcounters
       2:\t18 02 00 00 08 00 00 00 00 00 00 00 00 00 00 00\tr2 = 0x8 ll
\t\t0000000000000010:  R_BPF_64_64\t.rodata
       4:\t18 03 00 00 08 00 00 00 00 00 00 00 00 00 00 00\tr3 = 0x8 ll
\t\t0000000000000020:  R_BPF_64_64\t.text
       6:\t85 10 00 00 ff ff ff ff\tcall -0x1
\t\t0000000000000030:  R_BPF_64_32\tsub
       7:\t85 10 00 00 00 00 00 00\tcall 0x0
\t\t0000000000000038:  R_BPF_64_32\t.text
       8:\t61 11 04 00 00 00 00 00\tw1 = *(u32 *)(r1 + 0x4)
\t\t0000000000000040:  CO-RE <byte_off> [2] struct xdp_md::data_end (0:1)
       9:\t55 01 01 00 00 00 00 00\tif r1 != 0x0 goto +0x1 <program+0x58>
      10:\t95 00 00 00 00 00 00 00\texit
      11:\t95 00 00 00 00 00 00 00\texit
";
    let plain = "
        sub: r0 = 1
        second: exit
        r1 = map[0] ll
        r2 = map_value[1] + 8 ll
        r3 = subprog[second] ll
        call sub
        call second
        r1 = *(u32 *)(r1 + 4)
        if r1 != 0 goto +1
        exit
        exit
    ";
    assert_eq!(code(listing), code(plain));
}

#[test]
fn errors_say_where_and_what() {
    for (text, message) in [
        ("r0 = 2\n  r1 ? 3", "line 2, column 6: expected `+=`, "),
        ("r11 = 1", "line 1, column 1: expected a register w0 to w10, a register r0 to r10, "),
        ("r1 = *(u16 *)(r2)", "line 1, column 17: expected a number with its sign, found `)`"),
        ("r1 = *(u16 *)(r2 + 40000)", "line 1, column 18: 40000 is out of range, -32768 to 32767"),
        ("r1 += 99999999999", "line 1, column 7: 99999999999 is out of range, -2147483648 to 4294967295"),
        ("r1 = 99999999999", "line 1, column 17: expected `ll`, found the end of the line"),
        ("r1 = be16 r2", "line 1, column 11: expected register 1 again, found `r2`"),
        ("goto nowhere", "line 1, column 6: no label `nowhere`"),
        ("if r1 == 0 goto", "line 1, column 16: expected a label or a number, found the end of the line"),
        ("call bpf_nothing", "line 1, column 6: no subprogram or helper `bpf_nothing`"),
        ("r1 = map[nothing] ll", "line 1, column 10: no map `nothing`"),
        ("0: (18) r1 = map[id:6]", "line 1, column 21: no map with id 6"),
        ("a: exit\na: exit", "line 2, column 1: label `a` is already defined"),
        ("exit exit", "line 1, column 6: expected the end of the line, found `exit`"),
        ("0: (b7) r1 += 1", "line 1, column 12: expected `=`, found `+`"),
        ("0: (ff) r1 += 1", "line 1, column 9: unknown opcode 0xff in the listing"),
        ("0: exit\n2: exit", "line 2, column 4: the listing is at slot 2, but slot 1 comes next"),
        (
            "0: b7 00 00 00 02 00 00 00 r0 = 3",
            "line 1, column 28: the bytes beside `r0 = 3` say something else",
        ),
        ("0: R_BPF_64_64 counters", "line 1, column 16: the relocation belongs to no instruction"),
        ("é: r1 = ü", "line 1, column 9: expected a number"),
        ("0: <unknown>", "line 1, column 4: expected "),
    ] {
        let found = error(text);
        assert!(found.starts_with(message), "{text}\n  wanted: {message}\n  found:  {found}");
    }
}

#[test]
fn labels_too_far_are_refused() {
    // With opcodes the assembler skips most of the table.
    let filler = "(18) r0 = 0 ll\n".repeat(16_384);
    let message = error(&format!("goto out\n{filler}out: exit"));
    assert_eq!(message, "line 1, column 6: `out` is 32768 slots away, too far for this instruction");
    assert_eq!(
        code(&format!("gotol out\n{filler}out: exit")).get(0),
        Some(&Insn::JumpLong { offset: 32_768 })
    );
}

#[test]
fn one_instruction_needs_no_program() {
    let jump = Insn::JumpIf {
        width: Width::W32,
        condition: Condition::SLe,
        dst: Reg::R3,
        src: Operand::Reg(Reg::R10),
        offset: -7,
    };
    assert_eq!(insn("if w3 s<= w10 goto -7"), jump);
    for text in ["goto out", "", "goto3", "call7", "r1 =", "w1 = 2 ll"] {
        assert!(text.parse::<Insn>().is_err(), "{text}");
    }
}

#[test]
fn the_disassembler_goes_on_after_what_is_no_instruction() {
    let raw = [
        RawInsn { opcode: 0xff, ..RawInsn::default() },
        RawInsn { opcode: 0x95, ..RawInsn::default() },
        RawInsn { opcode: 0x18, ..RawInsn::default() },
    ];
    let lines = disassemble(&raw);
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    assert_eq!(
        text,
        [
            "       0: <slot 0: unknown opcode 0xff>",
            "       1: exit",
            "       2: <slot 2: the second slot of the 64-bit immediate load is missing>",
        ]
    );
    assert_eq!(lines[2].insn, Err(DecodeError::SecondMissing { slot: 2 }));
}
