//! libbpf's conventions one by one, on objects of three compilers.

use crate::common::fixture;
use paceline_btf::Type;
use paceline_object::{
    Config, ConfigValue, CoreProblem, GivenType, KernelVersion, LoadError, Object, ObjectOptions,
};
use paceline_spec::{
    InitialValue, Linkage, MapFlags, MapKind, Pinning, Poison, ProgramKind, ProgramSpec, XdpAttach,
};

const COMPILERS: [&str; 3] = ["clang14", "clang16", "clang19"];

fn load(name: &str) -> Object {
    Object::parse(&fixture(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn each_compiler(source: &str, check: impl Fn(Object)) {
    for compiler in COMPILERS {
        check(load(&format!("{source}.{compiler}.o")));
    }
}

fn program<'a>(object: &'a Object, name: &str) -> &'a ProgramSpec {
    object.program(name).unwrap_or_else(|| panic!("program {name}"))
}

fn key(number: u32) -> Vec<u8> {
    number.to_ne_bytes().to_vec()
}

#[test]
fn section_names_tell_types() {
    let kinds = |object: &Object| -> Vec<(String, XdpAttach, bool, bool)> {
        let kind = |p: &ProgramSpec| match p.kind {
            ProgramKind::Xdp { attach, frags } => Some((p.name.clone(), attach, frags, p.autoload)),
            _ => None,
        };
        object.programs.iter().filter_map(kind).collect()
    };
    use XdpAttach::{CpuMap, DevMap, Interface};
    let expected = |name: &str, attach, frags| (name.to_owned(), attach, frags, true);
    let mut all = vec![
        expected("first", Interface, false),
        expected("second", Interface, false),
        expected("third", Interface, false),
        expected("in_frags", Interface, true),
        expected("in_devmap", DevMap, false),
        expected("in_cpumap", CpuMap, false),
        expected("in_frags_devmap", DevMap, true),
        expected("in_frags_cpumap", CpuMap, true),
        ("unasked".to_owned(), Interface, false, false),
    ];
    each_compiler("sections", |object| {
        assert_eq!(kinds(&object), all);
        let skipped: Vec<_> = object.skipped.iter().map(|s| (s.name.as_str(), s.section.as_str())).collect();
        let filters = object.programs.iter().filter(|p| p.kind == ProgramKind::SocketFilter);
        assert_eq!(filters.map(|p| p.section.as_str()).collect::<Vec<_>>(), ["socket"]);
        assert_eq!(skipped, [("classifier", "action")]);
        assert_eq!(object.license, "Dual MIT/GPL");
        assert!(object.programs.iter().all(|p| p.license == "Dual MIT/GPL"));
    });
    all.extend([
        expected("named", Interface, false),
        expected("named_frags", Interface, true),
        expected("underscored", Interface, false),
        expected("iproute2", Interface, false),
    ]);
    assert_eq!(kinds(&load("old_names.clang14.o")), all);
}

/// Every call and function pointer refers to the start of a function of the same program.
fn assert_calls_lead_to_functions(program: &ProgramSpec) {
    let mut calls = 0;
    for (slot, insn) in program.insns.iter().enumerate() {
        let is_call = insn.opcode == 0x85 && insn.src == 1;
        let is_pointer = insn.opcode == 0x18 && insn.src == 4;
        if is_call || is_pointer {
            let target = slot as i64 + 1 + i64::from(insn.imm);
            let starts: Vec<_> = program.functions.iter().map(|f| f.start as i64).collect();
            assert!(
                starts.contains(&target),
                "{}: slot {slot} leads to {target} of {starts:?}",
                program.name
            );
            calls += 1;
        }
    }
    assert_eq!(calls > 0, program.functions.len() > 1, "{}", program.name);
}

#[test]
fn subprograms_are_linked_into_each_program_that_reaches_them() {
    each_compiler("subprograms", |object| {
        let functions = |name: &str| -> Vec<(String, Linkage)> {
            let program = program(&object, name);
            assert_calls_lead_to_functions(program);
            program.functions.iter().map(|f| (f.name.clone(), f.linkage)).collect()
        };
        let global = |name: &str| (name.to_owned(), Linkage::Global);
        let hidden = |name: &str| (name.to_owned(), Linkage::Static);
        assert_eq!(functions("one"), [global("one"), global("visible"), hidden("middle"), hidden("leaf")]);
        assert_eq!(
            functions("two"),
            [global("two"), hidden("hidden"), hidden("leaf"), global("overridable"), hidden("middle")]
        );
        assert_eq!(
            functions("pointers"),
            [global("pointers"), hidden("callback"), hidden("other_callback"), hidden("leaf")]
        );
        assert_eq!(functions("alone"), [global("alone")]);
    });
    for name in ["cross_section.clang14.o", "cross_section.clang19.o"] {
        let object = load(name);
        for program in &object.programs {
            assert_calls_lead_to_functions(program);
        }
        let names =
            |name| -> Vec<_> { program(&object, name).functions.iter().map(|f| f.name.as_str()).collect() };
        assert_eq!(names("caller"), ["caller", "callee"]);
        assert_eq!(names("neighbor"), ["neighbor", "beside", "leaf"]);
        assert_eq!(names("callee"), ["callee"]);
        assert!(object.program("beside").is_none(), "a static function is no program");
    }
}

#[test]
fn functions_and_lines_lead_back_to_the_source() {
    let source = std::fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/subprograms.bpf.c"),
    )
    .expect("the source is there");
    each_compiler("subprograms", |object| {
        let btf = object.btf.as_ref().expect("it has types");
        for program in &object.programs {
            assert!(!program.lines.is_empty());
            for line in &program.lines {
                assert!(line.file.ends_with("subprograms.bpf.c"), "{}", line.file);
                let text = source.lines().nth(line.line as usize - 1).expect("the line is there");
                assert_eq!(&*line.text, text, "line {}", line.line);
            }
            for function in &program.functions {
                let Some(Type::Func { name, .. }) = btf.get(function.btf_id) else {
                    panic!("{}", function.name)
                };
                assert_eq!(btf.name(*name), function.name);
            }
        }
        // The lines of a subprogram are moved with its code.
        let two = program(&object, "two");
        let leaf = two.functions.iter().find(|f| f.name == "leaf").expect("it is linked");
        assert!(
            two.line_of(leaf.start)
                .is_some_and(|l| l.text.contains("leaf(int x)") || l.text.contains("counter"))
        );
    });
}

#[test]
fn maps_defined_by_types_are_as_declared() {
    each_compiler("maps", |object| {
        let btf = object.btf.as_ref().expect("it has types");
        let map = |name: &str| object.map(name).unwrap_or_else(|| panic!("map {name}"));
        let index = |name: &str| object.maps.iter().position(|m| m.name == name).expect("a map");
        let flows = map("flows");
        assert_eq!((flows.kind, flows.key_size, flows.value_size), (MapKind::Hash, 8, 16));
        assert_eq!((flows.max_entries, flows.flags), (1000, MapFlags::NO_PREALLOC));
        assert_eq!(btf.c_name(flows.key_type), "struct key");
        assert_eq!(btf.c_name(flows.value_type), "struct value");
        let sizes = map("sizes");
        assert_eq!(
            (sizes.key_size, sizes.value_size, sizes.key_type, sizes.pinning),
            (4, 24, 0, Pinning::None)
        );
        let outer = map("outer");
        let inner = outer.inner.as_ref().expect("it says what inner maps are");
        assert_eq!((inner.kind, inner.max_entries, inner.value_size), (MapKind::Array, 4, 8));
        assert_eq!(inner.name, "outer.inner");
        assert_eq!(
            outer.contents,
            [(key(1), InitialValue::Map(index("left"))), (key(4), InitialValue::Map(index("right")))]
        );
        let nested = map("nested").inner.as_ref().expect("it says what inner maps are");
        assert_eq!((nested.kind, nested.key_size, nested.max_entries), (MapKind::Hash, 4, 16));
        assert_eq!(
            map("jumps").contents,
            [
                (key(0), InitialValue::Program("tail_one".into())),
                (key(2), InitialValue::Program("tail_two".into()))
            ]
        );
        assert_eq!((map("jumps").key_size, map("jumps").value_size), (4, 4));
        assert_eq!((map("bloom").extra, map("bloom").key_size), (3, 0));
        assert_eq!((map("events").kind, map("events").max_entries), (MapKind::RingBuf, 4096));
    });
}

#[test]
fn legacy_maps_are_as_declared() {
    for name in ["legacy_maps.clang14.o", "legacy_maps.clang19.o", "no_types.clang14.o"] {
        let object = load(name);
        let counts = object.map("counts").expect("a map");
        assert_eq!((counts.kind, counts.key_size, counts.value_size), (MapKind::PerCpuArray, 4, 8));
        let table = object.map("table").expect("a map");
        assert_eq!((table.max_entries, table.flags), (10, MapFlags::NO_PREALLOC));
        if let Some(btf) = &object.btf {
            assert_eq!(btf.c_name(counts.key_type), "__u32");
            assert_eq!(btf.c_name(counts.value_type), "__u64");
        }
        assert_eq!(map_references(&object, "count"), ["counts", "table"]);
    }
    let object = load("iproute2_maps.clang14.o");
    assert_eq!(object.map("shared").map(|m| m.pinning), Some(Pinning::ByName));
    let inner = object.map("outside").and_then(|m| m.inner.as_ref()).expect("it names its inner map");
    assert_eq!((inner.name.as_str(), inner.max_entries), ("inside", 7));
    assert_eq!(map_references(&object, "use"), ["outside", "shared", "inside"]);
}

/// Maps whose addresses a program loads, in order.
fn map_references<'a>(object: &'a Object, name: &str) -> Vec<&'a str> {
    let is_reference = |i: &&paceline_isa::RawInsn| i.opcode == 0x18 && matches!(i.src, 5 | 6);
    let references = program(object, name).insns.iter().filter(is_reference);
    references.map(|i| object.maps[i.imm as usize].name.as_str()).collect()
}

#[test]
fn global_variables_are_maps_of_one_value() {
    each_compiler("data", |object| {
        let btf = object.btf.as_ref().expect("it has types");
        let map = |name: &str| object.map(name).unwrap_or_else(|| panic!("map {name}"));
        for map in &object.maps {
            assert_eq!((map.kind, map.key_size, map.max_entries), (MapKind::Array, 4, 1), "{}", map.name);
            let read_only = map.name.starts_with(".rodata");
            assert_eq!((map.frozen, map.flags.contains(MapFlags::RDONLY_PROG)), (read_only, read_only));
            assert_eq!(map.contents.is_empty(), map.name.starts_with(".bss"), "{}", map.name);
        }
        let text = |name: &str| {
            let [(k, InitialValue::Bytes(bytes))] = &map(name).contents[..] else { panic!("{name}") };
            assert_eq!(*k, key(0));
            btf.decode(map(name).value_type, bytes).expect("it fits its type").to_string()
        };
        assert_eq!(
            text(".data"),
            "{ .initialized = 1234605616436508552, .use.calls = 5, .hidden_in_data = -7 }"
        );
        let expected =
            "{ .limit = 1500, .use.____fmt = \"calls %d\", .table = { 1, 1, 2, 3, 5, 8, 13, 21 } }";
        assert_eq!(text(".rodata"), expected);
        assert_eq!(text(".data.custom"), "{ .custom = 99 }");
        assert_eq!(text(".rodata.custom"), "{ .custom_const = 7 }");
        assert!((36..=40).contains(&map(".bss").value_size), "three compilers, two paddings");
        assert_eq!(map(".bss.custom").value_size, 4);
    });
}

#[test]
fn the_kernels_configuration_comes_from_the_options() {
    let config = [
        ("CONFIG_BPF_SYSCALL".to_owned(), ConfigValue::Yes),
        ("CONFIG_NOT_HERE".to_owned(), ConfigValue::Module),
        ("CONFIG_NR_NONE".to_owned(), ConfigValue::Number(64)),
        ("CONFIG_NO_NAME".to_owned(), ConfigValue::Text("a name".to_owned())),
    ];
    let config: Config = config.into_iter().collect();
    let options = ObjectOptions::default().config(&config).kernel_version(KernelVersion::new(1, 2, 3));
    for compiler in COMPILERS {
        let bytes = fixture(&format!("externs.{compiler}.o"));
        let object = Object::parse_with(&bytes, &options).expect("it loads");
        let map = object.map(".kconfig").expect("a map");
        let [(_, InitialValue::Bytes(value))] = &map.contents[..] else { panic!("one value") };
        let value =
            object.btf.as_ref().expect("types").decode(map.value_type, value).expect("it fits").to_string();
        assert!(value.contains(".LINUX_KERNEL_VERSION = 66051"), "{value}");
        assert!(value.contains(".CONFIG_BPF_SYSCALL = true"), "{value}");
        assert!(value.contains(".CONFIG_NOT_HERE = TRI_MODULE"), "{value}");
        assert!(value.contains(".CONFIG_NR_NONE = 64"), "{value}");
        assert!(value.contains(".CONFIG_NO_NAME = \"a name\""), "{value}");

        // Without a configuration, weak options are zero.
        let object = Object::parse(&bytes).expect("it loads");
        let map = object.map(".kconfig").expect("a map");
        let [(_, InitialValue::Bytes(value))] = &map.contents[..] else { panic!("one value") };
        assert_eq!(value.iter().filter(|b| **b != 0).count(), 2, "only the version 6.12: {value:?}");

        let needs = Object::needs(&bytes).expect("it is read");
        assert!(needs.version() && needs.options(), "{needs:?}");
        assert_eq!(needs.relocations, 0);
        assert!(needs.config.iter().any(|name| name == "CONFIG_BPF_SYSCALL"), "{needs:?}");
    }
    let config: Config = [("CONFIG_NR_NONE".to_owned(), ConfigValue::Yes)].into_iter().collect();
    let options = ObjectOptions::default().config(&config);
    let error =
        Object::parse_with(&fixture("externs.clang14.o"), &options).expect_err("a number is no truth value");
    assert_eq!(
        error.to_string(),
        "kernel configuration `CONFIG_NR_NONE`: its value is not of the variable's type"
    );
}

#[test]
fn weak_functions_of_the_kernel_are_there_only_if_the_engine_has_them() {
    for compiler in COMPILERS {
        let bytes = fixture(&format!("externs.{compiler}.o"));
        let object = Object::parse(&bytes).expect("it loads");
        let missing = program(&object, "missing");
        assert_eq!(missing.poisoned.len(), 1);
        let poison = &missing.poisoned[0];
        assert_eq!(missing.insns[poison.slot].imm, Poison::HELPER);
        assert!(poison.reason.contains("`no_such_kfunc`"), "{}", poison.reason);
        assert!(missing.kfuncs.is_empty());

        let options = ObjectOptions::default().kfuncs(&["no_such_kfunc"]);
        let object = Object::parse_with(&bytes, &options).expect("it loads");
        let there = program(&object, "missing");
        assert!(there.poisoned.is_empty());
        assert_eq!(there.kfuncs.len(), 1);
        assert!(there.kfuncs[0].weak);
    }
    for name in ["kfuncs.clang14.o", "kfuncs.clang19.o"] {
        let object = load(name);
        let metadata = program(&object, "metadata");
        let called: Vec<_> = metadata.insns.iter().filter(|i| i.opcode == 0x85 && i.src == 2).collect();
        let names: Vec<_> = called.iter().map(|i| metadata.kfuncs[i.imm as usize].name.as_str()).collect();
        assert_eq!(names, ["bpf_xdp_metadata_rx_hash", "bpf_xdp_metadata_rx_timestamp"]);
        assert!(metadata.kfuncs.iter().all(|k| !k.weak && k.btf_id != 0));
    }
}

#[test]
fn without_target_types_programs_see_their_own() {
    for compiler in COMPILERS {
        let bytes = fixture(&format!("core.{compiler}.o"));
        let plain = Object::parse(&bytes).expect("it loads");
        let own = plain.btf.as_deref().expect("it has types");
        let options = ObjectOptions::default().target_btf(own);
        // Without target types, questions whether something exists have no answer.
        for program in &plain.programs {
            let asks = program.name != "bitfields";
            assert_eq!(!program.poisoned.is_empty(), asks, "{compiler}: {}", program.name);
            let says =
                |reason: &str| reason.starts_with("asks whether `") && reason.contains("no kernel's types");
            assert!(program.poisoned.iter().all(|p| says(&p.reason)), "{:?}", program.poisoned);
        }
        assert!(Object::needs(&bytes).expect("it is read").relocations > 10);
        // With the object's own types as target, the values are the compiler's, except for types with several flavors.
        let relocated = Object::parse_with(&bytes, &options);
        match relocated {
            // The load that reads a bitfield is the compiler's choice, and libbpf's differs.
            Ok(relocated) => {
                for (a, b) in
                    plain.programs.iter().zip(&relocated.programs).filter(|(a, _)| a.name != "bitfields")
                {
                    let answered: Vec<_> = a.poisoned.iter().map(|poison| poison.slot).collect();
                    let mut slots = (0..).zip(a.insns.iter().zip(&b.insns));
                    let same = slots.all(|(slot, (a, b))| a == b || answered.contains(&slot));
                    assert!(same && b.poisoned.is_empty(), "{compiler}: {}", a.name);
                }
            }
            Err(LoadError::Core { problem, .. }) => {
                assert!(
                    matches!(problem, CoreProblem::OffsetAmbiguity { .. } | CoreProblem::Ambiguity),
                    "{problem}"
                );
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn instructions_without_an_answer_are_poisoned_with_the_reason() {
    let target = load("types.clang19.o").btf.expect("it has types");
    let options = ObjectOptions::default().target_btf(&*target);
    for compiler in COMPILERS {
        let object = Object::parse_with(&fixture(&format!("core.{compiler}.o")), &options).expect("it loads");
        let offsets = program(&object, "offsets");
        assert!(!offsets.poisoned.is_empty());
        for poison in &offsets.poisoned {
            assert_eq!(offsets.insns[poison.slot].imm, Poison::HELPER);
            assert_eq!(offsets.poison_at(poison.slot), Some(poison));
        }
        let reasons: Vec<_> = offsets.poisoned.iter().map(|p| &*p.reason).collect();
        assert!(
            reasons.contains(&"field or enumerator `struct net_device.name[3]` is not in the target's types"),
            "{reasons:?}"
        );
    }
}

#[test]
fn what_cannot_be_loaded_is_refused_with_its_place() {
    let error = |bytes: &[u8]| Object::parse(bytes).expect_err("it is refused").to_string();
    assert_eq!(error(b""), "not an ELF file");
    assert_eq!(error(b"#!/bin/sh\n"), "not an ELF file but text");
    assert_eq!(error(b"BC\xc0\xde\x35\x14\0\0"), "not an ELF file but LLVM bitcode");
    assert_eq!(
        error(&fixture("big_endian.clang19.o")),
        "compiled for big-endian machines, this one is not; compile with `-target bpf`"
    );
    let own = std::fs::read(std::env::current_exe().expect("this test is a file")).expect("it can be read");
    assert!(error(&own).starts_with("not a BPF object: ELF machine "));

    // A call of an undefined function, as the compiler emits it.
    let mut bytes = fixture("kfuncs.clang14.o");
    let name = b".ksyms\0";
    let at = bytes.windows(name.len()).position(|w| w == name).expect("the section's name is there");
    bytes[at + 1] = b'x';
    let error = error(&bytes);
    assert!(error.contains("`bpf_xdp_metadata_rx_hash` is not defined"), "{error}");
    assert!(error.starts_with("section xdp, offset 0x"), "{error}");
}

#[test]
fn addresses_in_data_are_listed() {
    for name in ["pointers.clang14.o", "pointers.clang19.o"] {
        let object = load(name);
        let mut symbols: Vec<_> = object.data_pointers.iter().map(|p| p.symbol.as_str()).collect();
        symbols.sort_unstable();
        symbols.dedup();
        assert_eq!(symbols, [".rodata.str1.1", "target"]);
        assert!(object.data_pointers.iter().all(|p| p.section == ".data"));
        assert!(load("data.clang14.o").data_pointers.is_empty());
    }
}

#[test]
fn linked_objects_have_one_of_each() {
    let object = load("linked.clang19.o");
    let names =
        |name| -> Vec<_> { program(&object, name).functions.iter().map(|f| f.name.as_str()).collect() };
    // Two static functions of the same name, and the strong one of two global ones.
    assert_eq!(names("first"), ["first", "other_file", "same_name", "same_name", "overridden"]);
    assert_eq!(names("second"), ["second", "same_name", "other_file"]);
    assert_eq!(object.maps.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["shared", ".data"]);
    let btf = object.btf.as_ref().expect("it has types");
    let data = object.map(".data").expect("a map");
    let [(_, InitialValue::Bytes(bytes))] = &data.contents[..] else { panic!("one value") };
    let value = btf.decode(data.value_type, bytes).expect("it fits").to_string();
    assert_eq!(value, "{ .own_data = 3, .local_data = 4, .other_data = 1, .local_data = 40 }");
}

#[test]
fn a_loader_may_give_a_type_where_the_section_tells_none() {
    let bytes = fixture("sections.clang19.o");
    let with = |program| {
        let given_type =
            paceline_object::type_of_section("xdp/cpumap").map(|kind| GivenType { kind, program });
        Object::parse_with(&bytes, &ObjectOptions::default().given_type(given_type)).expect("it loads")
    };
    let cpu_map = ProgramKind::Xdp { attach: XdpAttach::CpuMap, frags: false };
    let interface = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let kind = |object: &Object, name: &str| object.program(name).map(|program| program.kind);
    let plain = Object::parse(&bytes).expect("it loads");
    assert_eq!((kind(&plain, "classifier"), kind(&plain, "first")), (None, Some(interface)));
    let all = with(None);
    assert_eq!((kind(&all, "classifier"), kind(&all, "first")), (Some(cpu_map), Some(interface)));
    let named = with(Some("first"));
    assert_eq!((kind(&named, "classifier"), kind(&named, "first")), (None, Some(cpu_map)));
    assert_eq!(paceline_object::type_of_section("action"), None);
}
