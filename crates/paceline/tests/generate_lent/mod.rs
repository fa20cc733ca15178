//! Words of a stack that others read through a pointer, behind a place where ways come together that left something else in them: functions that are
//! verified with their callers or alone, callbacks, and helpers that these call.

use std::sync::Arc;

use paceline::Object;
use paceline::btf::{Btf, Int, IntEncoding, Param, SymbolLinkage, Type};
use paceline::isa::decode;
use paceline_spec::{FunctionInfo, Linkage, MapSpec};

use super::generate_sound::programs;
use super::generate_spilled::{Case, SHAPES, told};
use super::{array, xdp};

const WAYS: [&str; 2] = ["*(u64 *)(r10 - 16) = 2", "*(u64 *)(r10 - 16) = 3"];

/// Calls a function with the word's address in `r1`, and a byte of the packet in `r2`.
const CALL: &str = "r1 = r10\nr1 += -16\nr2 = *(u8 *)(r9 + 4)\ncall f";

/// Calls a function twice as a callback, with the address of three words: the result, the word, and a byte of the packet.
const LOOP: &str = "*(u64 *)(r10 - 24) = 0\nr5 = *(u8 *)(r9 + 4)\n*(u64 *)(r10 - 8) = r5\nr1 = 2\nr2 = subprog[f]\nr3 = r10\nr3 += -24\nr4 = 0\ncall 181\n\
                    r0 = *(u64 *)(r10 - 24)";

/// Ways that come together in a function before the word is read, none, outside of loops and in one.
const MEETING: [&str; 3] = [
    "",
    "r3 = 1\nif r2 > 5 goto meet\nr3 = 2\nmeet:\n",
    "r3 = 0\nround:\nif r2 > 5 goto meet\nr2 += 1\nmeet:\nr3 += 1\nif r3 < 3 goto round\n",
];

/// Bodies of functions that return the word at the address in `r1`.
const READS: [(&str, &str); 7] = [
    ("a load", "r0 = *(u64 *)(r1 + 0)\nexit"),
    ("loads of bytes", "r0 = *(u8 *)(r1 + 0)\nr3 = *(u8 *)(r1 + 1)\nr0 += r3\nexit"),
    ("an atomic operation", "r0 = 0\nr0 = atomic64_fetch_add((u64 *)(r1 + 0), r0)\nexit"),
    ("a helper", "r3 = r1\nr1 = 0\nr2 = 0\nr4 = 4\nr5 = 0\ncall 28\nexit"),
    (
        "a spilled address",
        "*(u64 *)(r10 - 8) = r1\nif r2 > 9 goto spilled\nr3 = 1\nspilled:\nr3 = *(u64 *)(r10 - 8)\nr0 = *(u64 *)(r3 + 0)\nexit",
    ),
    (
        "another function",
        "r6 = r1\nr1 = 7\ncall none\nr1 = r6\ncall g\nexit\nnone:\nr0 = r1\nexit\ng:\nr0 = *(u64 *)(r1 + 0)\nexit",
    ),
    (
        "its callback",
        "*(u64 *)(r10 - 16) = r1\n*(u64 *)(r10 - 8) = 0\nr1 = 2\nr2 = subprog[g]\nr3 = r10\nr3 += -16\nr4 = 0\ncall 181\nr0 = *(u64 *)(r10 - 8)\nexit\n\
         g:\nr3 = *(u64 *)(r2 + 0)\nr3 = *(u64 *)(r3 + 0)\n*(u64 *)(r2 + 8) = r3\nr0 = 0\nexit",
    ),
];

#[test]
fn functions_read_words_of_their_callers() {
    for (name, read) in READS {
        for meeting in MEETING {
            let functions = format!("f:\n{meeting}{read}");
            Case { name, ways: WAYS, read: CALL, functions: &functions, ..Case::default() }.check();
        }
    }
}

/// What a function does in whose frame nothing is read, while the word waits in its caller's.
#[test]
fn words_wait_while_functions_run() {
    for meeting in MEETING {
        let functions = format!("f:\n{meeting}r0 = 0\nexit");
        let read = format!("{CALL}\nr0 = *(u64 *)(r10 - 16)");
        Case { name: "in the frame", ways: WAYS, read: &read, functions: &functions, ..Case::default() }
            .check();
        // In a register that the function saves, and as the address of a word.
        let functions = format!("f:\nr8 = 0\nr7 = 0\nr6 = 0\n{meeting}r0 = 0\nexit");
        let read = "r2 = *(u8 *)(r9 + 4)\nr1 = r6\n*(u64 *)(r10 - 56) = r6\nr6 = *(u64 *)(r10 - 48)\ncall f\nr0 = r6\nr6 = *(u64 *)(r10 - 56)";
        let ways = ["*(u64 *)(r10 - 48) = 2", "*(u64 *)(r10 - 48) = 3"];
        Case { name: "saved", ways, read, functions: &functions, ..Case::default() }.check();
        let read = "r2 = *(u8 *)(r9 + 4)\nr1 = r6\n*(u64 *)(r10 - 56) = r6\nr6 = *(u64 *)(r10 - 48)\ncall f\nr0 = *(u64 *)(r6 + 0)\nr6 = *(u64 *)(r10 - 56)";
        let ways =
            ["r5 = r10\nr5 += -16\n*(u64 *)(r10 - 48) = r5", "r5 = r10\nr5 += -24\n*(u64 *)(r10 - 48) = r5"];
        let before = "*(u64 *)(r10 - 16) = 2\n*(u64 *)(r10 - 24) = 3";
        Case { name: "a saved address", before, ways, read, functions: &functions, ..Case::default() }
            .check();
    }
}

#[test]
fn functions_write_words_of_their_callers() {
    let ways = [2, 3].map(|value| format!("r1 = r10\nr1 += -16\nr2 = {value}\ncall f"));
    Case {
        name: "a store",
        ways: [&ways[0], &ways[1]],
        read: "r0 = *(u64 *)(r10 - 16)",
        functions: "f:\n*(u64 *)(r1 + 0) = r2\nr0 = 0\nexit",
        ..Case::default()
    }
    .check();
    // A word at the same place of the function's own stack stays.
    let ways = [2, 3].map(|value| format!("r1 = r10\nr1 += -16\nr2 = {value}\ncall f"));
    Case {
        name: "another frame",
        ways: [&ways[0], &ways[1]],
        read: "",
        functions: "f:\nif r2 > 2 goto three\n*(u64 *)(r10 - 16) = 2\ngoto store\nthree:\n*(u64 *)(r10 - 16) = 3\nstore:\n*(u64 *)(r1 + 0) = 0\n\
                    r0 = *(u64 *)(r10 - 16)\nexit",
        ..Case::default()
    }
    .check();
    // The other bytes of the word are the caller's.
    let ways =
        [2, 3].map(|value| format!("*(u64 *)(r10 - 16) = {value}\nr1 = r10\nr1 += -16\nr2 = 0\ncall f"));
    Case {
        name: "a store of some bytes",
        ways: [&ways[0], &ways[1]],
        read: "r0 = *(u64 *)(r10 - 16)",
        functions: "f:\n*(u32 *)(r1 + 4) = r2\nr0 = 0\nexit",
        ..Case::default()
    }
    .check();
    // The ways are the function's.
    for (end, meeting) in [("exit", ""), ("goto end", "end:\nexit")] {
        let text = |first: u32, second: u32| {
            xdp(
                &format!(
                    "r2 = *(u8 *)(r1 + 0)\nr1 = r10\nr1 += -16\ncall f\nr0 = *(u64 *)(r10 - 16)\nout:\nexit\n\
                     f:\nr0 = 0\nif r2 > 5 goto other\n*(u64 *)(r1 + 0) = {first}\n{end}\nother:\n*(u64 *)(r1 + 0) = {second}\n{end}\n{meeting}"
                ),
                vec![],
            )
        };
        are_told_apart([text(2, 3), text(3, 2), text(2, 2), text(3, 3)]);
    }
}

/// The first program is itself, and none of the others.
fn are_told_apart(programs: [Object; 4]) {
    let [same, others @ ..] = &programs;
    assert!(told(same, same).is_complete() && told(same, same).found.is_empty());
    for other in others {
        assert!(!told(same, other).found.is_empty() && !told(other, same).found.is_empty());
    }
}

#[test]
fn a_function_reads_the_words_of_several_callers() {
    // Of functions at one depth, which have another word at the same place.
    let functions = "
    f:
        *(u64 *)(r10 - 8) = r1
        *(u64 *)(r10 - 16) = 7
        r1 = r10
        r1 += -8
        call h
        exit
    g:
        *(u64 *)(r10 - 8) = r1
        *(u64 *)(r10 - 16) = r1
        r0 = 1
        if r2 > 5 goto meet
        r0 = 2
    meet:
        r1 = r10
        r1 += -8
        call h
        exit
    h:
        r0 = *(u64 *)(r1 + 0)
        exit";
    let both = |first: &str, second: &str| {
        format!(
            "r1 = *(u64 *)(r10 - 16)\nr2 = *(u8 *)(r9 + 4)\ncall {first}\n*(u64 *)(r10 - 56) = r0\nr1 = *(u64 *)(r10 - 16)\nr2 = *(u8 *)(r9 + 4)\ncall {second}\n\
             r1 = *(u64 *)(r10 - 56)\nr0 += r1\nr0 >>= 1"
        )
    };
    for (first, second) in [("f", "g"), ("g", "f"), ("g", "g")] {
        let read = both(first, second);
        let functions = if second == "f" || first == "f" {
            functions
        } else {
            &functions[functions.find("g:").unwrap()..]
        };
        Case { name: first, ways: WAYS, read: &read, functions, ..Case::default() }.check();
    }
    // Of one function, at two places.
    let read =
        "r1 = r10\nr1 += -32\ncall f\nr7 = r0\nr1 = r10\nr1 += -16\ncall f\nr0 -= r7\nr7 = *(u8 *)(r10 - 40)";
    let ways = WAYS.map(|way| format!("{way}\n*(u64 *)(r10 - 40) = r7"));
    Case {
        name: "places",
        before: "*(u64 *)(r10 - 32) = 0",
        ways: [&ways[0], &ways[1]],
        read,
        functions: "f:\nr0 = *(u64 *)(r1 + 0)\nexit",
        ..Case::default()
    }
    .check();
}

#[test]
fn callbacks_read_words_of_the_stack() {
    let end = "*(u64 *)(r2 + 0) = r3\nr0 = 0\nexit";
    let ways = "if r4 > 5 goto meet\nr0 = 5\nmeet:\n";
    let callbacks = [
        ("a load", format!("r3 = *(u64 *)(r2 + 8)\n{end}")),
        ("behind ways", format!("r4 = *(u64 *)(r2 + 16)\nr0 = 4\n{ways}r3 = *(u64 *)(r2 + 8)\n{end}")),
        (
            "in the second round",
            format!("r3 = 0\nif r1 == 0 goto first\nr3 = *(u64 *)(r2 + 8)\nfirst:\n{end}"),
        ),
        (
            "by a function",
            format!(
                "r6 = r2\nr4 = *(u64 *)(r2 + 16)\nr1 = r2\ncall g\nr2 = r6\nr3 = r0\n{end}\ng:\n{ways}r0 = *(u64 *)(r1 + 8)\nexit"
            ),
        ),
        (
            "by a helper",
            format!(
                "r6 = r2\nr1 = 0\nr3 = r2\nr3 += 8\nr2 = 0\nr4 = 4\nr5 = 0\ncall 28\nr2 = r6\nr3 = r0\n{end}"
            ),
        ),
        (
            "by one of its own",
            format!(
                "r6 = r2\nr3 = r2\nr1 = 2\nr2 = subprog[g]\nr4 = 0\ncall 181\nr0 = 0\nexit\n\
                 g:\nr4 = *(u64 *)(r2 + 16)\nr0 = 4\n{ways}r3 = *(u64 *)(r2 + 8)\n{end}"
            ),
        ),
    ];
    for (name, callback) in callbacks {
        Case { name, ways: WAYS, read: LOOP, functions: &format!("f:\n{callback}"), ..Case::default() }
            .check();
    }
}

#[test]
fn callbacks_write_words_of_the_stack() {
    let text = |first: u32, second: u32, rounds: u32| {
        xdp(
            &format!(
                "r9 = r1\n*(u64 *)(r10 - 16) = 7\nr4 = *(u8 *)(r9 + 0)\n*(u64 *)(r10 - 8) = r4\nr1 = {rounds}\nr2 = subprog[f]\nr3 = r10\nr3 += -16\nr4 = 0\ncall 181\n\
                 r0 = *(u64 *)(r10 - 16)\nout:\nexit\n\
                 f:\nr3 = *(u64 *)(r2 + 8)\nr0 = 0\nif r3 > 5 goto other\n*(u64 *)(r2 + 0) = {first}\nexit\nother:\n*(u64 *)(r2 + 0) = {second}\nexit"
            ),
            vec![],
        )
    };
    are_told_apart([text(2, 3, 1), text(3, 2, 1), text(2, 2, 1), text(3, 3, 1)]);
    are_told_apart([text(2, 3, 3), text(3, 2, 3), text(2, 2, 3), text(2, 3, 0)]);
}

/// `bpf_for_each_map_elem` is given up, and nothing is proved of what it calls.
#[test]
fn callbacks_for_elements_are_given_up() {
    let text = |value: u32| {
        xdp(
            &format!(
                "*(u64 *)(r10 - 16) = {value}\n*(u64 *)(r10 - 24) = 0\nr1 = map[0] ll\nr2 = subprog[f]\nr3 = r10\nr3 += -24\nr4 = 0\ncall 164\n\
                 r0 = *(u64 *)(r10 - 24)\nout:\nexit\nf:\nr3 = *(u64 *)(r4 + 8)\n*(u64 *)(r4 + 0) = r3\nr0 = 0\nexit"
            ),
            vec![array()],
        )
    };
    assert!(!told(&text(2), &text(3)).is_complete() && !told(&text(2), &text(2)).is_complete());
}

fn global(text: &str, maps: Vec<MapSpec>) -> Object {
    global_of(text, 2, maps)
}

/// A program whose last function is global: it takes the address of so many words, and a number.
pub(super) fn global_of(text: &str, count: u32, maps: Vec<MapSpec>) -> Object {
    let mut object = xdp(text, maps);
    let mut btf = Btf::default();
    let names = ["u64", "words", "number", "global"].map(|name| btf.add_name(name));
    let int = Int { name: names[0], size: 8, encoding: IntEncoding::Unsigned, bit_offset: 0, bits: 64 };
    let int = btf.add(Type::Int(int));
    let words = btf.add(Type::Array { element: int, index: int, count });
    let pointer = btf.add(Type::Ptr(words));
    let params = [(names[1], pointer), (names[2], int)].map(|(name, ty)| Param { name, ty });
    let proto = btf.add(Type::FuncProto { result: int, params: params.into() });
    let btf_id = btf.add(Type::Func { name: names[3], proto, linkage: SymbolLinkage::Global });
    let specs = object.specs_mut();
    let code = decode(&specs.programs[0].insns).unwrap();
    let start = code.iter().filter_map(|(slot, insn)| insn.subprogram_target(slot)).max().unwrap();
    let start = usize::try_from(start).unwrap();
    let info = FunctionInfo { start, name: "global".to_owned(), linkage: Linkage::Global, btf_id };
    specs.programs[0].functions.push(info);
    specs.btf = Some(Arc::new(btf));
    object
}

/// Bodies of global functions that return the word at the address in `r1`, which is not null.
const GLOBAL_READS: [(&str, &str, &str); 6] = [
    ("a load", "r0 = *(u64 *)(r1 + 0)", ""),
    ("a helper", "r3 = r1\nr1 = 0\nr2 = 0\nr4 = 4\nr5 = 0\ncall 28", ""),
    (
        "a spilled address",
        "*(u64 *)(r10 - 8) = r1\nif r2 > 9 goto spilled\nr3 = 1\nspilled:\nr3 = *(u64 *)(r10 - 8)\nr0 = *(u64 *)(r3 + 0)",
        "",
    ),
    (
        "another function",
        "call g",
        "g:\nr0 = 1\nif r2 > 9 goto meet2\nr0 = 2\nmeet2:\nr0 = *(u64 *)(r1 + 0)\nexit\n",
    ),
    (
        "its callback",
        "*(u64 *)(r10 - 16) = r1\n*(u64 *)(r10 - 8) = 0\nr1 = 2\nr2 = subprog[g]\nr3 = r10\nr3 += -16\nr4 = 0\ncall 181\nr0 = *(u64 *)(r10 - 8)",
        "g:\nr3 = *(u64 *)(r2 + 0)\nr3 = *(u64 *)(r3 + 0)\n*(u64 *)(r2 + 8) = r3\nr0 = 0\nexit\n",
    ),
    (
        "a word of its own",
        "r3 = *(u64 *)(r1 + 0)\n*(u64 *)(r10 - 8) = r3\nr1 = r10\nr1 += -8\nif r2 > 9 goto spilled\nr3 = 1\nspilled:\ncall g",
        "g:\nr0 = *(u64 *)(r1 + 0)\nexit\n",
    ),
];

#[test]
fn global_functions_read_words_of_their_callers() {
    for (name, read, others) in GLOBAL_READS {
        for meeting in MEETING {
            // The word is the first one, or the second one, of the two that the function is given.
            for (place, add) in [(16, 0), (24, 8)] {
                let before = "*(u64 *)(r10 - 8) = 0\n*(u64 *)(r10 - 24) = 0";
                let call = format!("r1 = r10\nr1 += -{place}\nr2 = *(u8 *)(r9 + 4)\ncall f");
                let functions = format!(
                    "{others}f:\nr0 = 0\nif r1 == 0 goto null\nr1 += {add}\n{meeting}{read}\nnull:\nexit"
                );
                let case =
                    Case { name, before, ways: WAYS, read: &call, functions: &functions, ..Case::default() };
                Case { object: global, ..case }.check();
            }
        }
    }
}

#[test]
fn global_functions_are_called_from_everywhere() {
    let before = "*(u64 *)(r10 - 8) = 0\n*(u64 *)(r10 - 24) = 0";
    let read = "f:\nr0 = 0\nif r1 == 0 goto null\nr0 = *(u64 *)(r1 + 0)\nnull:\nexit";
    // By a function with the address of its caller's word, and by a callback.
    let by_function = format!("e:\nr0 = 1\nif r2 > 5 goto meet\nr0 = 2\nmeet:\ncall f\nexit\n{read}");
    let call = CALL.replace("call f", "call e");
    let case = Case {
        name: "a function",
        before,
        ways: WAYS,
        read: &call,
        functions: &by_function,
        ..Case::default()
    };
    Case { object: global, ..case }.check();
    let by_callback =
        format!("e:\nr6 = r2\nr1 = r2\nr1 += 8\nr2 = 0\ncall f\n*(u64 *)(r6 + 0) = r0\nr0 = 0\nexit\n{read}");
    let call = LOOP.replace("[f]", "[e]");
    let case = Case {
        name: "a callback",
        before,
        ways: WAYS,
        read: &call,
        functions: &by_callback,
        ..Case::default()
    };
    Case { object: global, ..case }.check();
}

#[test]
fn global_functions_write_words_of_their_callers() {
    let text = |first: u32, second: u32| {
        global(
            &format!(
                "*(u64 *)(r10 - 8) = 0\n*(u64 *)(r10 - 16) = 0\nr2 = *(u8 *)(r1 + 0)\nr1 = r10\nr1 += -16\ncall f\nr0 = *(u64 *)(r10 - 16)\nr1 = *(u64 *)(r10 - 8)\n\
                 r0 += r1\nout:\nexit\n\
                 f:\nr0 = 0\nif r1 == 0 goto end\nif r2 > 5 goto other\n*(u64 *)(r1 + 0) = {first}\ngoto end\nother:\n*(u64 *)(r1 + 8) = {second}\nend:\nexit"
            ),
            vec![],
        )
    };
    are_told_apart([text(2, 3), text(3, 2), text(2, 2), text(3, 3)]);
}

/// An address in a word that a global function is given is no number that is known.
#[test]
fn addresses_that_are_lent_are_given_up() {
    let text = |add: u32| {
        global(
            &format!(
                "*(u64 *)(r10 - 8) = 0\nr9 = r1\nr9 += {add}\n*(u64 *)(r10 - 16) = r9\nr2 = 0\nr1 = r10\nr1 += -16\ncall f\nr0 &= 1\nr0 += 1\nout:\nexit\n\
                 f:\nr0 = 0\nif r1 == 0 goto null\nr0 = *(u64 *)(r1 + 0)\nnull:\nexit"
            ),
            vec![],
        )
    };
    let found = told(&text(0), &text(1));
    assert!(!found.is_complete() || !found.found.is_empty(), "{found:?}");
}

#[test]
fn words_are_read_behind_tail_calls() {
    let maps = [programs(&[])];
    let call = |index: &str| format!("r1 = r6\nr2 = map[0] ll\nr3 = {index}\ncall 12\n");
    // One that fails, in the program and in a function.
    let read = format!("{}r0 = *(u64 *)(r10 - 16)", call("9"));
    Case { name: "in the program", ways: WAYS, read: &read, maps: &maps, ..Case::default() }.check();
    let functions = format!("f:\nr7 = r1\nr6 = r3\n{}r0 = *(u64 *)(r7 + 0)\nexit", call("9"));
    let read = CALL.replace("call f", "r3 = r6\ncall f");
    Case {
        name: "in a function",
        ways: WAYS,
        read: &read,
        functions: &functions,
        maps: &maps,
        ..Case::default()
    }
    .check_shapes(&SHAPES[..1]);
    let ways = |first: u32, second: u32, given: &[u32], then: &str| {
        xdp(
            &format!(
                "r4 = *(u8 *)(r1 + 0)\nif r4 > 5 goto other\n*(u64 *)(r10 - 16) = {first}\ngoto then\nother:\n*(u64 *)(r10 - 16) = {second}\nthen:\n{then}"
            ),
            vec![programs(given)],
        )
    };
    // One whose index is the word.
    let then = format!("{}r0 = 1", call("*(u64 *)(r10 - 16)"));
    let text = |first, second| ways(first, second, &[2, 3], &then);
    are_told_apart([text(2, 3), text(3, 2), text(2, 2), text(3, 3)]);
    // No input is known for one that may fail: what comes after it is not proved.
    let then = format!("{}r0 = *(u64 *)(r10 - 16)", call("2"));
    for given in [&[][..], &[2]] {
        let text = |first, second| ways(first, second, given, &then);
        assert!(told(&text(2, 3), &text(2, 3)).is_complete());
        assert!(
            [text(3, 2), text(2, 2), text(3, 3)].iter().all(|other| !told(&text(2, 3), other).is_complete())
        );
    }
}
