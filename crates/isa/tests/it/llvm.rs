//! The table's text and bytes against LLVM's: llvm-mc assembles Paceline's text to the same bytes, and Paceline parses the text
//! that llvm-objdump prints for them.
//!
//! Every installed LLVM of versions 19 to 22 and without a version is tested. Without any the tests print a line that starts with
//! SKIP, or fail if `PACELINE_REQUIRE_ALL=1`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use paceline_isa::table::{Cpu, Encoding, Field, Form, Imm64Kind, Source, TABLE};
use paceline_isa::{Callee, Code, Insn, Names, RawInsn, assemble, decode_at, encode};

/// The tools of one LLVM.
struct Llvm {
    suffix: &'static str,
    version: u32,
}

impl Llvm {
    /// All installed versions.
    fn all() -> Vec<Self> {
        ["", "-19", "-20", "-21", "-22"].into_iter().filter_map(Self::find).collect()
    }

    fn find(suffix: &'static str) -> Option<Self> {
        let output = Command::new(format!("llvm-mc{suffix}")).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.split("LLVM version ").nth(1)?.split('.').next()?.parse().ok()?;
        Command::new(format!("llvm-objdump{suffix}")).arg("--version").output().ok()?;
        // Before 19 the v4 instructions are missing or printed differently.
        (version >= 19).then_some(Self { suffix, version })
    }

    /// Whether this LLVM supports a form. Acquire and release require version 20.
    fn knows(&self, row: &Encoding) -> bool {
        self.version >= 20 || !matches!(row.form, Form::LoadAcquire(_) | Form::StoreRelease(_))
    }

    /// Assembles text; returns the bytes of each instruction.
    fn encodings(&self, text: &str) -> Vec<Vec<u8>> {
        let mut command = Command::new(format!("llvm-mc{}", self.suffix));
        command.args(["-triple=bpfel", "-mcpu=v4", "-show-encoding"]);
        let output = run_with_input(&mut command, text);
        output.lines().filter_map(|line| line.split("encoding: [").nth(1)).map(parse_encoding).collect()
    }

    /// Writes bytes to the text section of an object file.
    fn object(&self, name: &str, raw: &[RawInsn]) -> PathBuf {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}{}.o", self.suffix));
        let mut text = ".text\nprogram:\n".to_owned();
        for byte in raw.iter().copied().flat_map(RawInsn::to_le_bytes) {
            text += &format!(".byte {byte}\n");
        }
        let mut command = Command::new(format!("llvm-mc{}", self.suffix));
        command.args(["-triple=bpfel", "-filetype=obj", "-o"]).arg(&path);
        run_with_input(&mut command, &text);
        path
    }

    fn objdump(&self, object: &Path, options: &[&str]) -> String {
        let mut command = Command::new(format!("llvm-objdump{}", self.suffix));
        run_with_input(command.arg("-d").args(options).arg(object), "")
    }
}

fn run_with_input(command: &mut Command, input: &str) -> String {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// `0xb7,0x00,...]`
fn parse_encoding(text: &str) -> Vec<u8> {
    let digits = text.trim_end_matches(']').split(',');
    digits.map(|byte| u8::from_str_radix(byte.trim_start_matches("0x"), 16).unwrap()).collect()
}

/// Runs a check with every installed LLVM; reports if none is.
#[expect(clippy::print_stdout, reason = "how a test says that it was skipped")]
fn each_llvm(test: &str, check: impl Fn(&Llvm)) {
    let all = Llvm::all();
    if all.is_empty() {
        assert!(
            std::env::var_os("PACELINE_REQUIRE_ALL").is_none_or(|v| v != "1"),
            "no llvm-mc of version 19 or later"
        );
        println!("SKIP {test}: no llvm-mc of version 19 or later");
    }
    all.iter().for_each(check);
}

/// Instructions of a row with typical and boundary operands.
fn samples(row: &'static Encoding) -> Vec<Insn> {
    let operands = [
        (1, 2, 0, 0, 0),
        (10, 0, 12, 2, 1),
        (0, 10, -4, -5, -1),
        (9, 9, i16::MAX, i32::MAX, i32::MAX),
        (3, 7, i16::MIN, i32::MIN, i32::MIN),
    ];
    operands
        .into_iter()
        .map(|(dst, src, offset, imm, next)| {
            let fill = |field, operand| match field {
                Field::Is(value) => value,
                Field::Any => operand,
                Field::Zero => 0,
            };
            let first = RawInsn {
                opcode: row.opcode,
                dst: fill(row.dst, dst) as u8,
                src: fill(row.src, src) as u8,
                offset: fill(row.offset, i32::from(offset)) as i16,
                imm: fill(row.imm, imm),
            };
            let second =
                RawInsn { imm: row.next_imm.map_or(0, |field| fill(field, next)), ..RawInsn::default() };
            decode_at(&[first, second], 0).unwrap()
        })
        .collect()
}

/// Whether clang's assembly has the form; others have a syntax of Paceline's own.
fn has_llvm_text(insn: &Insn) -> bool {
    match insn.form() {
        Form::LoadImm64(kind) => kind == Imm64Kind::Value,
        Form::CallSubprogram | Form::CallKfunc => false,
        _ => has_llvm_operands(insn),
    }
}

/// Whether llvm-objdump prints all operands: it omits the immediate of an indirect packet load, the module of a kernel function,
/// and the second immediate of references.
fn has_llvm_operands(insn: &Insn) -> bool {
    let is_indirect = matches!(insn, Insn::LoadPacket { index: Some(_), offset: 1.. | ..=-1, .. });
    let is_of_module = matches!(insn, Insn::Call(Callee::Kfunc { module: 1.. | ..=-1, .. }));
    let is_value = matches!(insn.form(), Form::LoadImm64(Imm64Kind::Value));
    let has_second = encode(insn).unwrap().iter().nth(1).is_some_and(|second| second.imm != 0);
    !is_indirect && !is_of_module && (is_value || !has_second)
}

/// Whether llvm-mc accepts the operands as numbers: for a long jump only distances within the range of a short one.
fn has_llvm_mc_operands(insn: &Insn) -> bool {
    !matches!(insn, Insn::JumpLong { offset } if i16::try_from(*offset).is_err())
}

fn insns(llvm: &Llvm, wanted: impl Fn(&Insn) -> bool) -> Vec<Insn> {
    TABLE.iter().filter(|row| llvm.knows(row)).flat_map(samples).filter(wanted).collect()
}

fn bytes(insn: &Insn) -> Vec<u8> {
    encode(insn).unwrap().into_iter().flat_map(RawInsn::to_le_bytes).collect()
}

#[test]
fn llvm_mc_assembles_our_text_to_our_bytes() {
    each_llvm("llvm_mc_assembles_our_text_to_our_bytes", |llvm| {
        let insns = insns(llvm, |insn| has_llvm_text(insn) && has_llvm_mc_operands(insn));
        let text: String = insns.iter().map(|insn| format!("{insn}\n")).collect();
        let encodings = llvm.encodings(&text);
        assert_eq!(encodings.len(), insns.len());
        for (insn, encoding) in insns.iter().zip(encodings) {
            assert_eq!(bytes(insn), encoding, "{insn}");
        }
    });
}

#[test]
fn llvm_objdump_prints_our_text() {
    each_llvm("llvm_objdump_prints_our_text", |llvm| {
        // Without 32-bit registers for loads and stores, as Paceline prints them; with them for all other forms.
        let uses_value_register =
            |insn: &Insn| matches!(insn.form(), Form::Load(_) | Form::Store(_, Source::X));
        for (is_wanted, mattr) in [(true, "--mattr=-alu32"), (false, "--mattr=+alu32")] {
            let insns = insns(llvm, |insn| has_llvm_text(insn) && uses_value_register(insn) == is_wanted);
            let code: Code = insns.iter().copied().collect();
            let object = llvm.object(&format!("text{is_wanted}"), &code.encode().unwrap());
            let options = ["--mcpu=v4", mattr, "--no-print-imm-hex", "--no-show-raw-insn"];
            let listing = llvm.objdump(&object, &options);
            let lines = listing.lines().filter_map(|line| line.split_once(":\t"));
            let theirs = lines.map(|(_, text)| text.rsplit_once(" <program").map_or(text, |(text, _)| text));
            let theirs: Vec<&str> = theirs.filter(|text| !text.starts_with("file format")).collect();
            let ours: Vec<String> = insns.iter().map(Insn::to_string).collect();
            assert_eq!(theirs.len(), ours.len());
            theirs.iter().zip(&ours).for_each(|(theirs, ours)| assert_eq!(theirs, ours));
        }
    });
}

#[test]
fn we_read_what_llvm_objdump_prints() {
    each_llvm("we_read_what_llvm_objdump_prints", |llvm| {
        for number in ["--print-imm-hex", "--no-print-imm-hex"] {
            let with_bytes: Code = insns(llvm, has_llvm_operands).into_iter().collect();
            let object = llvm.object("bytes", &with_bytes.encode().unwrap());
            let listing = llvm.objdump(&object, &["--mcpu=v4", number]);
            assert_eq!(assemble(&listing, &()).unwrap(), with_bytes);

            let text_only: Code = insns(llvm, has_llvm_text).into_iter().collect();
            let object = llvm.object("text", &text_only.encode().unwrap());
            let listing = llvm.objdump(&object, &["--mcpu=v4", "--no-show-raw-insn", number]);
            assert_eq!(assemble(&listing, &()).unwrap(), text_only);
        }
    });
}

#[test]
fn llvm_knows_every_row_at_its_level() {
    each_llvm("llvm_knows_every_row_at_its_level", |llvm| {
        for (cpu, mcpu) in [(Cpu::V1, "v1"), (Cpu::V2, "v2"), (Cpu::V3, "v3"), (Cpu::V4, "v4")] {
            let rows = TABLE.iter().filter(|row| llvm.knows(row) && row.cpu <= cpu);
            let code: Code = rows.flat_map(|row| samples(row).into_iter().next()).collect();
            let object = llvm.object(mcpu, &code.encode().unwrap());
            let listing = llvm.objdump(&object, &[&format!("--mcpu={mcpu}")]);
            assert!(!listing.contains("<unknown>"), "{mcpu}: {listing}");
        }
    });
}

/// Resolves every map.
struct AnyMap;

impl Names for AnyMap {
    fn map(&self, _name: &str) -> Option<i32> {
        Some(0)
    }
}

/// Debian's own objects, built by clang 14: the assembler itself compares bytes and text of each line.
#[test]
fn we_read_listings_of_installed_objects() {
    each_llvm("we_read_listings_of_installed_objects", |llvm| {
        let objects = std::fs::read_dir("/usr/lib/x86_64-linux-gnu/bpf").into_iter().flatten().flatten();
        for object in
            objects.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "o"))
        {
            let plain = assemble(&llvm.objdump(&object, &["-S"]), &()).unwrap();
            let relocated = assemble(&llvm.objdump(&object, &["-r"]), &AnyMap).unwrap();
            assert!(!plain.is_empty() && plain.len() == relocated.len(), "{object:?}");
        }
    });
}
