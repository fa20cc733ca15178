//! Values by type: compiler-generated data is decoded, and encoded again bit by bit.

use crate::common::fixture;
use paceline_btf::{Btf, TypeId, Value, ValueProblem};
use paceline_object::Object;
use paceline_spec::InitialValue;

/// The types of an object, the type of its `.data`, and its bytes.
fn data(name: &str) -> (std::sync::Arc<Btf>, TypeId, Vec<u8>) {
    let object = Object::parse(&fixture(name)).expect("the fixture is good");
    let map = object.map(".data").expect("it has data");
    let [(_, InitialValue::Bytes(bytes))] = &map.contents[..] else { panic!("one value") };
    (object.btf.clone().expect("it has types"), map.value_type, bytes.clone())
}

fn named(members: &[(&str, Value)]) -> Value {
    Value::Struct(members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

fn unsigned(numbers: &[u128]) -> Value {
    Value::Array(numbers.iter().map(|n| Value::Unsigned(*n)).collect())
}

fn color(name: &str, value: i128) -> Value {
    Value::Enum { name: Some(name.to_owned()), value }
}

/// The expected `value` of the fixture.
fn expected() -> Value {
    let point = |x, y| named(&[("x", Value::Signed(x)), ("y", Value::Signed(y))]);
    let mut v6 = [0; 16];
    (v6[0], v6[3]) = (0x7f, 1);
    named(&[
        ("name", Value::Text("eth0".into())),
        ("up", Value::Bool(true)),
        ("small", Value::Signed(-5)),
        ("port", Value::Unsigned(8080)),
        ("points", Value::Array(vec![point(1, -2), point(3, 4)])),
        ("address", named(&[("v4", Value::Unsigned(0x0100_007f)), ("v6", unsigned(&v6))])),
        ("anonymous", Value::Signed(9)),
        ("word", Value::Unsigned(0x0102_0304)),
        ("bytes", unsigned(&[4, 3, 2, 1])),
        ("color", color("BLUE", 6)),
        ("sign", color("MINUS", -1)),
        (
            "flags",
            named(&[
                ("a", Value::Unsigned(1)),
                ("b", Value::Unsigned(5)),
                ("c", color("GREEN", 5)),
                ("d", Value::Signed(-3)),
                ("e", Value::Unsigned(0x12_3456_7890)),
            ]),
        ),
        ("pointer", Value::Pointer(0x1000)),
        ("big", Value::Signed(-1)),
        ("huge", Value::Unsigned(u128::from(u64::MAX))),
        ("enormous", Value::Signed(1 << 100)),
        ("raw", unsigned(&[1, 2, 3])),
    ])
}

fn member<'a>(value: &'a Value, name: &str) -> &'a Value {
    let Value::Struct(members) = value else { panic!("{value} is not a struct") };
    &members.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("{name} in {value}")).1
}

#[test]
fn values_of_all_types_are_read_and_written_back() {
    for compiler in ["clang14", "clang16", "clang19"] {
        let (btf, ty, bytes) = data(&format!("types.{compiler}.o"));
        let value = btf.decode(ty, &bytes).expect("it fits its type");
        let mut found = member(&value, "value").clone();
        if compiler == "clang14" {
            // This compiler does not mark enumerations as signed.
            let Value::Struct(members) = &mut found else { panic!("{found}") };
            let sign = members.iter_mut().find(|(n, _)| n == "sign").expect("a member");
            assert_eq!(sign.1, color("MINUS", i128::from(u32::MAX)));
            sign.1 = color("MINUS", -1);
        }
        assert_eq!(found, expected(), "{compiler}");
        assert_eq!(member(&value, "fraction"), &Value::Float(1.5));
        if compiler != "clang14" {
            assert_eq!(member(&value, "wide"), &color("LARGE", 0x0123_4567_89ab_cdef));
        }
        assert_eq!(btf.encode(ty, &value).expect("it fits its type"), bytes, "{compiler}");
    }
}

#[test]
fn values_are_written_as_c_writes_them() {
    let (btf, ty, bytes) = data("types.clang19.o");
    let value = btf.decode(ty, &bytes).expect("it fits its type");
    let value = member(&value, "value");
    let text = member(value, "points").to_string();
    assert_eq!(text, "{ { .x = 1, .y = -2 }, { .x = 3, .y = 4 } }");
    assert_eq!(
        member(value, "flags").to_string(),
        "{ .a = 1, .b = 5, .c = GREEN, .d = -3, .e = 78187493520 }"
    );
    assert_eq!(
        format!("{:#}", Value::Array(vec![member(value, "name").clone(), member(value, "pointer").clone()])),
        "{\n    \"eth0\",\n    0x1000,\n}"
    );
}

/// The type of `value` in the fixture, and the error for a value that does not fit.
fn refuse(value: &Value) -> String {
    let (btf, ..) = data("types.clang19.o");
    let ty = btf.find("all", |_| true).expect("struct all");
    btf.encode(ty, value).expect_err("it does not fit").to_string()
}

#[test]
fn values_that_do_not_fit_are_refused_with_place_and_cause() {
    let one = |name: &str, value| refuse(&named(&[(name, value)]));
    assert_eq!(one("port", Value::Unsigned(70_000)), ".port: 70000 does not fit into `__u16` (0 to 65535)");
    assert_eq!(one("small", Value::Signed(-129)), ".small: -129 does not fit into `__s8` (-128 to 127)");
    assert_eq!(one("prot", Value::Unsigned(1)), "`struct all` has no member `prot`; did you mean `port`?");
    assert_eq!(one("wrod", Value::Unsigned(1)), "`struct all` has no member `wrod`; did you mean `word`?");
    assert_eq!(one("xyzzy", Value::Unsigned(1)), "`struct all` has no member `xyzzy`");
    assert_eq!(
        one("color", Value::Text("BLEU".into())),
        ".color: `BLEU` is not a value of `enum color`; did you mean `BLUE`?"
    );
    assert_eq!(
        one("points", Value::Array(vec![named(&[]), named(&[("y", Value::Signed(40_000))])])),
        ".points[1].y: 40000 does not fit into `__s16` (-32768 to 32767)"
    );
    assert_eq!(one("raw", unsigned(&[1, 2, 3, 4])), ".raw: 4 elements do not fit into an array of 3");
    assert_eq!(
        one("name", Value::Text("123456789".into())),
        ".name: 9 elements do not fit into an array of 8"
    );
    assert_eq!(one("up", Value::Unsigned(2)), ".up: 2 does not fit into `_Bool` (0 to 1)");
    assert_eq!(one("port", Value::Text("http".into())), ".port: `__u16` takes a number, not the text `http`");
    assert_eq!(
        one("flags", named(&[("b", Value::Unsigned(8))])),
        ".flags.b: 8 does not fit into `__u8` (0 to 7)"
    );
    assert_eq!(
        one("flags", named(&[("d", Value::Signed(-65))])),
        ".flags.d: -65 does not fit into `int` (-64 to 63)"
    );
    assert_eq!(refuse(&Value::Unsigned(1)), "`struct all` takes a structure, not a number");
    assert_eq!(
        refuse(&named(&[("up", Value::Bool(true)), ("up", Value::Bool(true))])),
        "member `up` is given twice"
    );
    let both = |v4, last| {
        let v6 = [127, 0, 0, last];
        named(&[("address", named(&[("v4", Value::Unsigned(v4)), ("v6", unsigned(&v6))]))])
    };
    assert_eq!(
        refuse(&both(0x0100_007f, 2)),
        ".address.v6: members `v4` and `v6` of a union disagree about the same bytes"
    );
    let (btf, ..) = data("types.clang19.o");
    let ty = btf.find("all", |_| true).expect("struct all");
    assert!(btf.encode(ty, &both(0x0100_007f, 1)).is_ok(), "members that agree may both be given");
    let short = btf.decode(ty, &[0; 3]).expect_err("too few bytes");
    assert!(matches!(*short.problem, ValueProblem::Length { found: 3, .. }));
}

#[test]
fn characters_are_a_text_only_if_nothing_is_lost() {
    let (btf, ..) = data("types.clang19.o");
    let ty = btf.find("all", |_| true).expect("struct all");
    let size = btf.size_of(ty).expect("a structure") as usize;
    let name = |bytes: &[u8]| {
        let mut all = vec![0; size];
        all[..bytes.len()].copy_from_slice(bytes);
        let value = btf.decode(ty, &all).expect("it fits");
        assert_eq!(btf.encode(ty, &value).expect("it fits"), all, "and back");
        member(&value, "name").clone()
    };
    assert_eq!(name(b"eth0"), Value::Text("eth0".into()));
    assert_eq!(name(b"12345678"), Value::Text("12345678".into()), "without a zero byte at the end");
    assert!(matches!(name(b"eth0\0x"), Value::Array(_)), "something follows the zero byte");
    assert!(matches!(name(b"a\x01"), Value::Array(_)), "it cannot be printed");
    assert!(matches!(name(b"\xff\xfe"), Value::Array(_)), "it is no text");
}

#[test]
fn what_is_left_out_is_zero_and_numbers_may_be_texts() {
    let (btf, ..) = data("types.clang19.o");
    let ty = btf.find("all", |_| true).expect("struct all");
    let given = named(&[
        ("port", Value::Text("0x50".into())),
        ("bytes", unsigned(&[1])),
        ("color", Value::Unsigned(5)),
        ("big", Value::Text("-9223372036854775808".into())),
        ("up", Value::Text("true".into())),
        ("pointer", Value::Text("0xffff888000000000".into())),
    ]);
    let bytes = btf.encode(ty, &given).expect("it fits");
    let value = btf.decode(ty, &bytes).expect("it fits");
    assert_eq!(member(&value, "port"), &Value::Unsigned(80));
    assert_eq!(member(&value, "word"), &Value::Unsigned(1));
    assert_eq!(member(&value, "color"), &color("GREEN", 5));
    assert_eq!(member(&value, "big"), &Value::Signed(i128::from(i64::MIN)));
    assert_eq!(member(&value, "up"), &Value::Bool(true));
    assert_eq!(member(&value, "pointer"), &Value::Pointer(0xffff_8880_0000_0000));
    assert_eq!(member(&value, "name"), &Value::Text(String::new()));
    assert_eq!(member(&value, "huge"), &Value::Unsigned(0));
}
