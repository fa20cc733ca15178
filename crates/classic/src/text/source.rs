//! Filters and converted programs as source code.

use std::fmt::Write;

use paceline_isa::RawInsn;

use super::super::insn::SockFilter;

/// A language of source code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C, with the types of `linux/filter.h` and `linux/bpf.h`.
    C,
    /// Rust; instructions are tuples, as `libc` has a type for classic instructions only.
    Rust,
}

/// A filter as an array with this name, which must be an identifier of the language.
#[must_use]
pub fn filter_source(insns: &[SockFilter], language: Language, name: &str) -> String {
    let (start, end) = match language {
        Language::C => (format!("static const struct sock_filter {name}[] = {{\n"), "};\n"),
        Language::Rust => {
            let note = "/// Each instruction: `code`, `jt`, `jf`, `k`.\n";
            (format!("{note}pub const {name}: [(u16, u8, u8, u32); {}] = [\n", insns.len()), "];\n")
        }
    };
    let mut text = start;
    for SockFilter { code, jt, jf, k } in insns {
        let _ = match language {
            Language::C => writeln!(text, "\t{{ {code:#04x}, {jt}, {jf}, {k:#010x} }},"),
            Language::Rust => writeln!(text, "    ({code:#04x}, {jt}, {jf}, {k:#010x}),"),
        };
    }
    text + end
}

/// A program as an array with this name, which must be an identifier of the language, with the disassembly as comments.
#[must_use]
pub fn program_source(insns: &[RawInsn], language: Language, name: &str) -> String {
    let (start, end) = match language {
        Language::C => (format!("static const struct bpf_insn {name}[] = {{\n"), "};\n"),
        Language::Rust => {
            let note = "/// Each instruction: `code`, `dst_reg`, `src_reg`, `off`, `imm`.\n";
            (format!("{note}pub const {name}: [(u8, u8, u8, i16, i32); {}] = [\n", insns.len()), "];\n")
        }
    };
    let mut text = start;
    for (insn, line) in insns.iter().zip(paceline_isa::disassemble(insns)) {
        let RawInsn { opcode, dst, src, offset, imm } = insn;
        let _ = match language {
            Language::C => {
                writeln!(text, "\t/* {line} */ {{ {opcode:#04x}, {dst}, {src}, {offset}, {imm} }},")
            }
            Language::Rust => writeln!(text, "    ({opcode:#04x}, {dst}, {src}, {offset}, {imm}), // {line}"),
        };
    }
    text + end
}
