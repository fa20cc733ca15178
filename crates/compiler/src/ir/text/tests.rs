use super::names::NUMBERS;
use super::*;
use crate::ir::arena::Key;
use crate::ir::entity::Value;
use crate::ir::function::Terminator;
use crate::ir::op::Op;
use crate::ir::types::Type;

/// Every operation, in the form that is printed.
const ALL: &str = r#"function 0 "main" (r1) stack 24 zeroed 0x3 shared 0x2 prints {
block0(v0: i64 context):
    v1: packet = context_load.u32 v0+0 @0
    v2 = context_load.s8 v0+5
    v3 = const.i64 -9223372036854775808 @1
    v4 = const.i32 -1
    v5: map = map_address 3
    v6: map_value = value_address 2+8
    v7 = function_address 1
    v8: stack = stack_address -8
    v9 = add.i64 v2, v3
    v10 = ashr.i32 v4, v4
    v11 = neg.i32 v10
    v12 = sext8.i32 v11
    v13 = sext32.i64 v12
    v14 = zext v12
    v15 = trunc v14
    v16 = swap16.i32 v15
    v17 = swap64.i64 v14
    v18 = compare.set.i64 v14, v17
    v19 = load.u16 packet v1+12 in 12..80 of 82 @7
    v20 = load.s32 map_value(2) v6-4
    store.u64 stack v8+0, v9 in -8..-8
    store.u8 map_value(2 inner) v6+0, v9
    atomic.add.i32 map_value v6+0, v9
    v21 = atomic.fetch_xor.i64 memory v6+0, v9
    v22 = atomic.cmpxchg.i64 mixed v6+0, v9, v3 in 0..0
    v23 = load_acquire.u32 caller_stack v6+0
    store_release.u32 map_value(0) v6+0, v9
    v34 = load.u64 constant(1) v6+8 in 8..8
    context_store.u32 v0+8, v9
    v24 = packet_load.u16 v0, 14
    v25 = packet_load.u8 v0, v24-3
    v26: map_value = call bpf_map_lookup_elem(v5, v8) map 3 key 7 reads -8..-4 @9
    v27 = call helper 9999()
    v35: map_value = call look_up 3(v9)
    v28 = call kfunc 2:1(v8, v9)
    v29 = call bpf_loop(v3, v7, v8, v3) callback 40
    v30 = call function 1(v9)
    tail_call(v0, v5, v9) map ? key ? callback ? @11
    branch.sle.i32 v4, v4, block1(v9, v4), block2 @12
block1(v31: i64, v32: i32):
    may_goto block2, block3
block2:
    return v9 @14
block3:
    jump block1(v31, v32)
}

function 1 "step \"x\" \\" (r3) slot 40 callback {
block0(v0: i64):
    return v0
}
"#;

#[test]
fn text_is_kept() {
    let module = parse(ALL).expect("valid");
    assert_eq!(module.to_string(), ALL);
}

#[test]
fn a_function_with_great_numbers_is_printed_with_small_ones() {
    let mut module = parse(ALL).expect("valid");
    let function = module.functions.values_mut().next().expect("one");
    function.reserve_value(Value::new(NUMBERS));
    let entry = function.entry().expect("one");
    let great = function.append(entry, Op::constant(Type::I64, 7), None).expect("a result");
    let last = function.layout[2];
    function.terminate(last, Terminator::Return(great), Some(14));
    let text = module.to_string();
    let again = parse(&text).expect("valid").to_string();
    assert_eq!(again, text);
    assert!(text.contains("v33 = const.i64 7\n") && text.contains("return v33 @14"), "{text}");
}

#[test]
fn every_operation_is_in_the_text() {
    let named = |names: &[&'static str]| {
        for name in names {
            let text =
                format!("function 0 \"f\" (r1) {{\nblock0(v0: i64):\nv1 = {name} v0, v0\nreturn v0\n}}\n");
            let module = parse_unchecked(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(module.to_string().contains(name), "{module}");
        }
    };
    let binary = crate::ir::op::BinaryOp::NAMES.map(|(_, name)| format!("{name}.i64"));
    named(&binary.each_ref().map(|name| &*name.clone().leak()));
    let compare = crate::ir::op::CONDITIONS.map(|(_, name)| format!("compare.{name}.i64"));
    named(&compare.each_ref().map(|name| &*name.clone().leak()));
}

#[test]
fn errors_name_line_and_cause() {
    let with = |line: &str| format!("function 0 \"f\" (r1) {{\nblock0(v0: i64):\n{line}\nreturn v0\n}}");
    for (text, expected) in [
        ("functio".to_owned(), "line 1: expected function, found 'functio'"),
        ("function 1".to_owned(), "line 1: this must be function 0"),
        ("function 0 x".to_owned(), "line 1: expected a name, found 'x'"),
        ("function 0 \"x".to_owned(), "line 1: expected a name, found '\"'"),
        ("function 0 \"x\" (r6) {".to_owned(), "line 1: expected one of r1 to r5, found 'r6'"),
        ("function 0 \"x\" (r1) {\n".to_owned(), "line 1: expected a block, found the end"),
        (with("v1 = ad.i64 v0, v0"), "line 3: there is no operation 'ad.i64'"),
        (with("v1 = add.i64 v0 v0"), "line 3: expected ,, found 'v0'"),
        (with("v1 = add.i64 v0, 7"), "line 3: expected a value, found 7"),
        (with("v0 = neg.i64 v0"), "line 3: 'v0' is defined twice"),
        (with("neg.i64 v0"), "line 3: the operation has a result, which is given no name"),
        (with("v1 = store.u8 packet v0+0, v0"), "line 3: the operation has no result"),
        (with("v1 = load.u16 paket v0+0"), "line 3: expected a region, found 'paket'"),
        (with("v1 = call bpf_map_look(v0)"), "line 3: there is no helper 'bpf_map_look'"),
        (with("v1 = call helper 1(v0, v0, v0, v0, v0, v0)"), "line 3: a call has at most 5 arguments"),
        (with("v1 = const.i32 4294967296"), "line 3: 4294967296 is out of range here"),
        (with("v9999999999 = const.i32 1"), "line 3: expected a value, found 'v9999999999'"),
        (with("v1: lake = const.i32 1"), "line 3: expected what the value points to, found 'lake'"),
        (with("jump block0\nblock0:"), "line 4: 'block0' is defined twice"),
        (with("v1 = swap8.i64 v0"), "line 5: function 0, block0: swap8.i64 v0 is no valid operation"),
        (with("%"), "line 3: expected an operation, found '%'"),
    ] {
        let error = parse(&text).expect_err(&text);
        assert_eq!(error.to_string(), expected, "{text}");
    }
}
