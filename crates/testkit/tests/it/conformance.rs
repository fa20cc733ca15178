//! The conformance plugin, called as the suite calls it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use paceline_isa::{RawInsn, assemble};

/// A program in the suite's form: hex bytes with spaces between them.
fn hex(text: &str) -> String {
    let code = assemble(text, &()).expect("a good program");
    let slots = code.encode().expect("instructions that exist");
    let bytes: Vec<u8> = slots.into_iter().flat_map(RawInsn::to_le_bytes).collect();
    spaced(&bytes)
}

fn spaced(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x} ")).collect()
}

fn plugin(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_paceline-conformance"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the plugin starts");
    let mut stdin = child.stdin.take().expect("piped");
    // The plugin may end without reading its input.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("the plugin ends")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const SUM: &str = "
    r0 = *(u8 *)(r1 + 1)
    r3 = *(u32 *)(r1 + 4)
    r0 += r3
    r0 += r2
    exit";

#[test]
fn program_on_standard_input_and_memory_as_the_first_argument() {
    let output = plugin(&["00 10 00 00 ff ff 00 00 ", ""], &format!("{}\n", hex(SUM)));
    assert_eq!(stdout(&output), format!("{:x}\n", 0x10 + 0xffff + 8));
}

#[test]
fn program_as_an_option_and_all_options_in_one_argument() {
    let program = hex(SUM);
    let output = plugin(&["--program", &program, "0010000001000000", "--engine plain"], "");
    assert_eq!(stdout(&output), "19\n");
}

#[test]
fn all_of_r0_without_memory() {
    let output = plugin(&[""], &hex("r0 = -2\nr0 += r1\nr0 += r2\nexit"));
    assert_eq!(stdout(&output), "fffffffffffffffe\n");
}

#[test]
fn a_fault_is_exit_status_1_and_a_message() {
    let output = plugin(&["00 11"], &hex("r0 = *(u8 *)(r1 + 2)\nexit"));
    assert!(stderr(&output).contains("instruction 0: read of 1 bytes"), "{output:?}");
    assert!(output.stdout.is_empty());
}

#[test]
fn what_is_no_program_is_refused() {
    assert!(stderr(&plugin(&[], "95 00 00")).contains("3 bytes is not a whole number"));
    assert!(stderr(&plugin(&[], "zz")).contains("program: `zz` is no hex byte"));
    assert!(stderr(&plugin(&[], "ff 00 00 00 00 00 00 00")).contains("opcode"));
    assert!(stderr(&plugin(&["--engine", "fastest"], "")).contains("no engine \"fastest\""));
    assert!(stderr(&plugin(&["00", "00"], "")).contains("unexpected argument"));
}

#[test]
fn xdp_and_objects() {
    let xdp = "
        r2 = *(u32 *)(r1 + 4)
        r1 = *(u32 *)(r1 + 0)
        r2 -= r1
        r0 = r2
        exit";
    let memory = spaced(&[7; 20]);
    assert_eq!(stdout(&plugin(&[&memory, "--xdp"], &hex(xdp))), "14\n");
    assert_eq!(stdout(&plugin(&["01 02", "--xdp"], &hex(xdp))), "e\n", "filled up");
    let object =
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o")).expect("an example");
    assert_eq!(stdout(&plugin(&[&memory, "--xdp --elf"], &spaced(&object))), "2\n");
}

#[test]
fn every_engine_says_the_same() {
    let memory = "00 10 00 00 ff ff 00 00";
    for engine in ["plain", "jit", "checked-jit"] {
        let output = plugin(&[memory, &format!("--engine {engine}")], &hex(SUM));
        assert_eq!(stdout(&output), format!("{:x}\n", 0x10 + 0xffff + 8), "{engine}");
        // Native code does not run a program that faults on the interpreter.
        let fault = plugin(&["00 11", "--engine", engine], &hex("r0 = *(u8 *)(r1 + 2)\nexit"));
        assert!(stderr(&fault).contains("instruction 0: read of 1 bytes"), "{engine}: {fault:?}");
    }
    // Uninitialized registers are zero.
    let unset = hex("r0 += r3\nr0 += r4\nr0 += r5\nr0 += r6\nr0 += r7\nr0 += r8\nr0 += r9\nexit");
    for engine in ["plain", "jit", "checked-jit"] {
        assert_eq!(stdout(&plugin(&[memory, "--engine", engine], &unset)), "0\n", "{engine}");
    }
    let threaded = plugin(&[memory, "--engine=threaded"], &hex(SUM));
    assert!(stderr(&threaded).contains("engine threaded runs verified programs over packets only (--xdp)"));
    let object =
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o")).expect("an example");
    for engine in ["plain", "threaded", "jit", "checked-jit"] {
        let output = plugin(&[&spaced(&[7; 20]), "--xdp --elf", "--engine", engine], &spaced(&object));
        assert_eq!(stdout(&output), "2\n", "{engine}");
    }
    let refused = plugin(&[&spaced(&[7; 20]), "--xdp --engine=jit"], &hex("exit"));
    assert!(stderr(&refused).contains("r0 is read but not set"), "{refused:?}");
}

#[test]
fn the_kernel_says_the_same() {
    if !paceline_testkit::kernel::available_for("the_kernel_says_the_same") {
        return;
    }
    let program = hex("r0 = 7\nr0 <<= 33\nr0 >>= 31\nexit");
    let memory = spaced(&[0; 14]);
    assert_eq!(stdout(&plugin(&[&memory, "--engine=kernel"], &program)), "1c\n");
    assert_eq!(stdout(&plugin(&[&memory], &program)), "1c\n");
    // The kernel's test run needs at least an Ethernet header.
    for short in ["", "07"] {
        assert_eq!(stdout(&plugin(&[short, "--engine=kernel"], &program)), "1c\n", "{short}");
    }
    assert!(stderr(&plugin(&[&memory, "--engine=kernel"], &hex("exit"))).contains("R0 !read_ok"));
    // Memory below the minimum packet length, and no memory, are padded.
    for memory in ["01 02", ""] {
        assert_eq!(stdout(&plugin(&[memory, "--engine=kernel"], &program)), "1c\n", "{memory}");
    }
}
