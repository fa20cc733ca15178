//! Handmade objects: dangling references, and files that request far more memory than their size.

use std::time::{Duration, Instant};

use paceline_object::{LoadError, MapProblem, Object};
use paceline_spec::MapKind;

const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const NOBITS: u32 = 8;
const REL: u32 = 9;
/// Section flags: allocated, and code.
const DATA: u64 = 2;
const CODE: u64 = 6;
/// Symbol types.
const OBJECT: u8 = 1;
const FUNC: u8 = 2;
const SECTION: u8 = 3;
/// Symbol bindings.
const LOCAL: u8 = 0;
const GLOBAL: u8 = 1;
const WEAK: u8 = 2;
/// Relocation types.
const R_64_64: u32 = 1;
const R_64_ABS32: u32 = 3;
const R_64_32: u32 = 10;

const EXIT: [u8; 8] = [0x95, 0, 0, 0, 0, 0, 0, 0];
/// A call of a subprogram, as the compiler emits it for a relocation.
const CALL: [u8; 8] = [0x85, 0x10, 0, 0, 0xff, 0xff, 0xff, 0xff];
/// A 64-bit load into r1, as the compiler emits it for a relocation.
const LOAD: [u8; 16] = [0x18, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

struct Section {
    name: String,
    kind: u32,
    flags: u64,
    data: Vec<u8>,
    /// `sh_size`, if it differs from the size of the data.
    size: Option<u64>,
    link: u32,
    info: u32,
    entry: u64,
}

/// Writer of ELF files, without any checks.
#[derive(Default)]
struct Elf {
    sections: Vec<Section>,
    symbols: Vec<u8>,
    names: Vec<u8>,
}

impl Elf {
    fn section(&mut self, name: &str, kind: u32, flags: u64, data: &[u8]) -> u16 {
        let (name, data) = (name.to_owned(), data.to_vec());
        self.sections.push(Section { name, kind, flags, data, size: None, link: 0, info: 0, entry: 0 });
        self.sections.len() as u16
    }

    fn symbol(&mut self, name: &str, binding: u8, kind: u8, section: u16, value: u64, size: u64) -> u32 {
        if self.symbols.is_empty() {
            self.symbols.resize(24, 0);
            self.names.push(0);
        }
        let at = self.names.len() as u32;
        self.names.extend_from_slice(name.as_bytes());
        self.names.push(0);
        self.symbols.extend_from_slice(&at.to_le_bytes());
        self.symbols.extend_from_slice(&[binding << 4 | kind, 0]);
        self.symbols.extend_from_slice(&section.to_le_bytes());
        self.symbols.extend_from_slice(&value.to_le_bytes());
        self.symbols.extend_from_slice(&size.to_le_bytes());
        self.symbols.len() as u32 / 24 - 1
    }

    /// A relocation section: offset, type and symbol.
    fn relocations(&mut self, target: u16, relocations: &[(u64, u32, u32)]) {
        let mut data = Vec::new();
        for (offset, kind, symbol) in relocations {
            data.extend_from_slice(&offset.to_le_bytes());
            data.extend_from_slice(&(u64::from(*symbol) << 32 | u64::from(*kind)).to_le_bytes());
        }
        let index = self.section(".rel", REL, 0, &data);
        let section = &mut self.sections[usize::from(index) - 1];
        (section.info, section.entry) = (u32::from(target), 16);
    }

    fn build(mut self) -> Vec<u8> {
        let symbols = std::mem::take(&mut self.symbols);
        let names = std::mem::take(&mut self.names);
        let strtab = self.section(".strtab", STRTAB, 0, &names);
        let symtab = self.section(".symtab", SYMTAB, 0, &symbols);
        self.sections[usize::from(symtab) - 1].link = u32::from(strtab);
        self.sections[usize::from(symtab) - 1].entry = 24;
        let mut section_names = vec![0];
        let name_offsets: Vec<u32> = self
            .sections
            .iter()
            .map(|s| {
                let at = section_names.len() as u32;
                section_names.extend_from_slice(s.name.as_bytes());
                section_names.push(0);
                at
            })
            .collect();
        let shstrtab = self.section(".shstrtab", STRTAB, 0, &section_names);
        let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.resize(64, 0);
        let mut headers = vec![0; 64];
        for (i, s) in self.sections.iter().enumerate() {
            let name = name_offsets.get(i).copied().unwrap_or(0);
            headers.extend_from_slice(&name.to_le_bytes());
            headers.extend_from_slice(&s.kind.to_le_bytes());
            let size = s.size.unwrap_or(s.data.len() as u64);
            for word in [s.flags, 0, bytes.len() as u64, size] {
                headers.extend_from_slice(&word.to_le_bytes());
            }
            headers.extend_from_slice(&s.link.to_le_bytes());
            headers.extend_from_slice(&s.info.to_le_bytes());
            for word in [8, s.entry] {
                headers.extend_from_slice(&word.to_le_bytes());
            }
            bytes.extend_from_slice(&s.data);
        }
        let put =
            |bytes: &mut Vec<u8>, at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let offset = bytes.len() as u64;
        put(&mut bytes, 16, &1u16.to_le_bytes());
        put(&mut bytes, 18, &247u16.to_le_bytes());
        put(&mut bytes, 20, &1u32.to_le_bytes());
        put(&mut bytes, 40, &offset.to_le_bytes());
        put(&mut bytes, 52, &64u16.to_le_bytes());
        put(&mut bytes, 58, &64u16.to_le_bytes());
        put(&mut bytes, 60, &(self.sections.len() as u16 + 1).to_le_bytes());
        put(&mut bytes, 62, &shstrtab.to_le_bytes());
        bytes.extend_from_slice(&headers);
        bytes
    }

    fn parse(self) -> Result<Object, LoadError> {
        let start = Instant::now();
        let result = Object::parse(&self.build());
        assert!(start.elapsed() < Duration::from_secs(60), "takes {:?}", start.elapsed());
        result
    }

    fn refused(self) -> String {
        self.parse().expect_err("it is refused").to_string()
    }
}

/// An object with one program of this code; its symbol table can be extended.
fn program(code: &[u8]) -> Elf {
    let mut elf = Elf::default();
    let xdp = elf.section("xdp", PROGBITS, CODE, code);
    elf.symbol("main", GLOBAL, FUNC, xdp, 0, code.len() as u64);
    elf
}

#[test]
fn the_smallest_object_loads() {
    let object = program(&EXIT).parse().expect("it is good");
    assert_eq!(object.programs[0].insns.len(), 1);
    assert_eq!((object.license.as_str(), object.btf), ("", None));
}

#[test]
fn programs_are_in_the_order_of_the_code() {
    let mut elf = Elf::default();
    let xdp = elf.section("xdp", PROGBITS, CODE, &EXIT.repeat(3));
    for (name, offset) in [("c", 16), ("a", 0), ("b", 8)] {
        elf.symbol(name, GLOBAL, FUNC, xdp, offset, 8);
    }
    let object = elf.parse().expect("it is good");
    assert_eq!(object.programs.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn functions_outside_of_their_code_are_refused() {
    for (offset, size) in
        [(0, 0), (0, 16), (4, 8), (8, 8), (0, 7), (u64::MAX, 8), (0, u64::MAX), (u64::MAX, u64::MAX)]
    {
        let mut elf = Elf::default();
        let xdp = elf.section("xdp", PROGBITS, CODE, &EXIT);
        elf.symbol("main", GLOBAL, FUNC, xdp, offset, size);
        let error = elf.parse().expect_err("it is refused");
        assert!(matches!(error, LoadError::FunctionBounds { .. }), "{offset:#x}, {size:#x}: {error}");
    }
}

#[test]
fn relocations_to_nowhere_are_refused_with_their_place() {
    let with = |code: &[u8], offset, kind, add: &dyn Fn(&mut Elf) -> u32| {
        let mut elf = program(&[code, &EXIT].concat());
        let symbol = add(&mut elf);
        elf.relocations(1, &[(offset, kind, symbol)]);
        elf.refused()
    };
    assert_eq!(
        with(&CALL, 0, R_64_32, &|_| 99),
        "section xdp: relocation at 0x0 against symbol 99 has no valid target"
    );
    assert_eq!(
        with(&CALL, 4, R_64_32, &|_| 1),
        "section xdp: relocation at 0x4 against symbol 1 has no valid target"
    );
    assert_eq!(
        with(&CALL, 0, R_64_32, &|e| e.symbol("away", GLOBAL, 0, 0, 0, 0)),
        "section xdp, offset 0x0: `away` is not defined; link the object that defines it with `bpftool gen object`"
    );
    assert!(with(&EXIT, 0, R_64_32, &|_| 1).contains("against `main` cannot be applied to opcode 0x95"));
}

#[test]
fn calls_lead_to_the_starts_of_functions() {
    let call = |target: u64| {
        let mut elf = program(&[CALL, EXIT].concat());
        let text = elf.section(".text", PROGBITS, CODE, &[EXIT, EXIT].concat());
        elf.symbol("callee", LOCAL, FUNC, text, 8, 8);
        let symbol = elf.symbol("label", LOCAL, 0, text, target, 0);
        elf.relocations(1, &[(0, R_64_32, symbol)]);
        elf
    };
    let object = call(8).parse().expect("it leads to a function");
    assert_eq!(object.programs[0].functions[1].name, "callee");
    assert_eq!(object.programs[0].insns[0].imm, 1, "over the exit");
    assert_eq!(call(0).refused(), "section xdp, offset 0x0: no function starts at .text+0x0");
    assert!(call(4).refused().contains("cannot be applied"));
    assert!(call(u64::MAX).refused().contains("cannot be applied"));
    // Without a relocation, to a slot far outside of the section.
    let lost = [0x85, 0x10, 0, 0, 0xff, 0xff, 0xff, 0x7f];
    assert_eq!(
        program(&[lost, EXIT].concat()).refused(),
        "section xdp, offset 0x0: no function starts at xdp+0x400000000"
    );
}

#[test]
fn loads_lead_to_code_data_or_maps() {
    let load = |add: &dyn Fn(&mut Elf) -> u32, kind| {
        let mut elf = program(&[&LOAD[..], &EXIT].concat());
        let symbol = add(&mut elf);
        elf.relocations(1, &[(0, kind, symbol)]);
        elf
    };
    let in_data = |e: &mut Elf| {
        let data = e.section(".data", PROGBITS, DATA, &[0; 8]);
        e.symbol("x", GLOBAL, OBJECT, data, 4, 4)
    };
    let object = load(&in_data, R_64_64).parse().expect("it leads to data");
    assert_eq!((object.programs[0].insns[0].src, object.programs[0].insns[1].imm), (6, 4));
    let object =
        load(&|e| e.symbol("gone", WEAK, 0, 0, 0, 0), R_64_64).parse().expect("a weak one may be nowhere");
    assert_eq!((object.programs[0].insns[0].src, object.programs[0].insns[0].imm), (0, 0));
    assert_eq!(
        load(&in_data, R_64_ABS32).refused(),
        "section xdp, offset 0x0: relocation of type 3 against `x` cannot be applied to opcode 0x18"
    );
    let elsewhere = |e: &mut Elf| {
        let other = e.section("features", PROGBITS, DATA, &[0; 8]);
        e.symbol("", LOCAL, SECTION, other, 0, 0)
    };
    assert_eq!(
        load(&elsewhere, R_64_64).refused(),
        "section xdp, offset 0x0: `features` in section features is neither code, data nor a map"
    );
    let absolute = |e: &mut Elf| e.symbol("absolute", GLOBAL, OBJECT, 0xfff1, 8, 8);
    assert!(load(&absolute, R_64_64).refused().contains("against `absolute` cannot be applied"));
    let common = |e: &mut Elf| e.symbol("common", GLOBAL, OBJECT, 0xfff2, 8, 8);
    let refused = load(&common, R_64_64).refused();
    assert!(
        refused.contains("the variable `common` is in no section") && refused.contains("-fno-common"),
        "{refused}"
    );
    let beside_a_map = |e: &mut Elf| {
        let maps = e.section("maps", PROGBITS, DATA, &legacy_map(2));
        e.symbol("m", GLOBAL, OBJECT, maps, 0, 20);
        e.symbol("", LOCAL, 0, maps, 4, 0)
    };
    assert_eq!(load(&beside_a_map, R_64_64).refused(), "section xdp, offset 0x0: no map starts at maps+0x4");
    // Static maps are referenced by section, with the offset in the instruction.
    let mut second = LOAD;
    second[4] = 20;
    let mut elf = program(&[&second[..], &EXIT].concat());
    let maps = elf.section("maps", PROGBITS, DATA, &[legacy_map(2), legacy_map(1)].concat());
    elf.symbol("first", LOCAL, OBJECT, maps, 0, 20);
    elf.symbol("second", LOCAL, OBJECT, maps, 20, 20);
    let symbol = elf.symbol("", LOCAL, SECTION, maps, 0, 0);
    elf.relocations(1, &[(0, R_64_64, symbol)]);
    let object = elf.parse().expect("a map starts there");
    assert_eq!((object.programs[0].insns[0].src, object.programs[0].insns[0].imm), (5, 1));
    // The first half at the end of the code, without the second one.
    let mut elf = program(&LOAD[..8]);
    let symbol = in_data(&mut elf);
    elf.relocations(1, &[(0, R_64_64, symbol)]);
    assert!(elf.refused().contains("cannot be applied"));
}

/// A definition of 20 bytes.
fn legacy_map(kind: u32) -> Vec<u8> {
    [kind, 4, 8, 1, 0].iter().flat_map(|w| w.to_le_bytes()).collect()
}

#[test]
fn legacy_definitions_have_the_size_that_their_number_says() {
    let maps = |data: &[u8], places: &[u64]| {
        let mut elf = program(&EXIT);
        let maps = elf.section("maps", PROGBITS, DATA, data);
        for (i, place) in places.iter().enumerate() {
            elf.symbol(&format!("m{i}"), GLOBAL, OBJECT, maps, *place, 0);
        }
        elf
    };
    let object = maps(&[legacy_map(1), legacy_map(9)].concat(), &[0, 20]).parse().expect("two maps");
    assert_eq!(object.maps.iter().map(|m| m.kind).collect::<Vec<_>>(), [MapKind::Hash, MapKind::LruHash]);
    let object = maps(&legacy_map(1)[..16], &[0]).parse().expect("flags left out");
    assert_eq!(object.maps[0].max_entries, 1);
    assert_eq!(
        maps(&legacy_map(1), &[0, 4, 8]).refused(),
        "section maps: 20 bytes cannot contain 3 definitions"
    );
    assert_eq!(maps(&legacy_map(1), &[8]).refused(), "map m0: its definition lies outside of the section");
    assert_eq!(maps(&legacy_map(99), &[0]).refused(), "map m0: unknown map type 99");
    let mut long = legacy_map(1);
    long.extend([0, 0, 0, 0, 5, 0, 0, 0]);
    let error = maps(&long, &[0]).parse().expect_err("a member that nobody knows");
    assert!(matches!(error, LoadError::Map { problem: MapProblem::Unknown(24), .. }), "{error}");
}

#[test]
fn absurd_sizes_take_no_memory() {
    let bss = |size| {
        let mut elf = program(&EXIT);
        let index = elf.section(".bss", NOBITS, DATA, &[]);
        elf.sections[usize::from(index) - 1].size = Some(size);
        elf
    };
    let object = bss(u64::from(u32::MAX)).parse().expect("who makes the map will judge");
    assert_eq!(object.maps[0].value_size, u32::MAX);
    assert_eq!(
        bss(1 << 40).refused(),
        "section .bss: 1099511627776 bytes exceed the maximum size of a map value"
    );
    let mut elf = program(&EXIT);
    let license = vec![b'G'; 100_000];
    elf.section("license", PROGBITS, DATA, &license);
    assert_eq!(elf.parse().expect("it is good").license.len(), 127, "as much as the kernel looks at");
}

#[test]
fn functions_that_share_code_cannot_multiply_it() {
    // Many programs that share all of the code.
    let mut elf = Elf::default();
    let xdp = elf.section("xdp", PROGBITS, CODE, &EXIT.repeat(1000));
    for i in 0..10_000 {
        elf.symbol(&format!("p{i}"), GLOBAL, FUNC, xdp, 0, 8000);
    }
    assert!(elf.refused().contains("programs of more than 2097152 instruction slots in total"));
    // Programs with one call that all reach the same large function.
    let mut elf = Elf::default();
    let xdp = elf.section("xdp", PROGBITS, CODE, &[CALL, EXIT].concat().repeat(2000));
    let text = elf.section(".text", PROGBITS, CODE, &EXIT.repeat(5000));
    let large = elf.symbol("large", LOCAL, FUNC, text, 0, 40_000);
    for i in 0..2000 {
        elf.symbol(&format!("p{i}"), GLOBAL, FUNC, xdp, i * 16, 16);
    }
    elf.relocations(xdp, &(0..2000).map(|i| (i * 16, R_64_32, large)).collect::<Vec<_>>());
    assert!(elf.refused().contains("instruction slots in total"));
    // One program larger than the kernel's limit.
    assert!(program(&EXIT.repeat(1_000_001)).refused().contains("more than 1000000 instruction slots"));
}

#[test]
fn functions_that_call_each_other_are_linked_once() {
    let mut elf = program(&[CALL, EXIT].concat());
    let text = elf.section(".text", PROGBITS, CODE, &[CALL, EXIT, CALL, EXIT].concat());
    let f = elf.symbol("f", LOCAL, FUNC, text, 0, 16);
    let g = elf.symbol("g", LOCAL, FUNC, text, 16, 16);
    elf.relocations(1, &[(0, R_64_32, f)]);
    // In any order.
    elf.relocations(text, &[(16, R_64_32, f), (0, R_64_32, g)]);
    let object = elf.parse().expect("a verifier will judge recursion");
    let program = &object.programs[0];
    assert_eq!(program.functions.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["main", "f", "g"]);
    assert_eq!(program.insns.iter().step_by(2).map(|i| i.imm).collect::<Vec<_>>(), [1, 1, -3]);
}

#[test]
fn a_long_chain_of_calls_is_followed_without_a_deep_stack() {
    const LINKS: u64 = 100_000;
    let mut elf = program(&[CALL, EXIT].concat());
    let text = elf.section(".text", PROGBITS, CODE, &[CALL, EXIT].concat().repeat(LINKS as usize));
    let mut relocations = Vec::new();
    for i in 0..LINKS {
        let symbol = elf.symbol("f", LOCAL, FUNC, text, i * 16, 16);
        relocations.push((if i == 0 { 0 } else { (i - 1) * 16 }, R_64_32, symbol));
    }
    let last = relocations[0].2;
    elf.relocations(1, &[(0, R_64_32, relocations[0].2)]);
    relocations.remove(0);
    relocations.push(((LINKS - 1) * 16, R_64_32, last));
    elf.relocations(text, &relocations);
    let object = elf.parse().expect("it is long, not wrong");
    assert_eq!(object.programs[0].functions.len() as u64, LINKS + 1);
}

#[test]
fn relocations_and_names_that_are_shared_cannot_multiply() {
    // Many relocation sections that share the same bytes.
    let mut elf = program(&[CALL, EXIT].concat());
    elf.relocations(1, &[(0, R_64_32, 1); 2000]);
    let bytes = elf.sections.last().expect("the relocations").data.clone();
    for _ in 0..500 {
        elf.section(".rel", REL, 0, &[]);
        let section = elf.sections.last_mut().expect("just added");
        (section.info, section.entry, section.size) = (1, 16, Some(bytes.len() as u64));
    }
    assert!(elf.refused().starts_with("malformed ELF"));
    // Many symbols whose names are suffixes of one long text.
    let mut elf = program(&EXIT);
    elf.symbol(&"x".repeat(200_000), GLOBAL, FUNC, 1, 0, 8);
    assert_eq!(elf.refused(), "the name of symbol 2 is not UTF-8 text of at most 1024 bytes");
}

#[test]
fn programs_that_nobody_asks_for_may_need_what_is_not_there() {
    let mut elf = program(&EXIT);
    let unasked = elf.section("?xdp", PROGBITS, CODE, &[CALL, EXIT].concat());
    elf.symbol("optional", GLOBAL, FUNC, unasked, 0, 16);
    let away = elf.symbol("away", GLOBAL, 0, 0, 0, 0);
    elf.relocations(unasked, &[(0, R_64_32, away)]);
    let object = elf.parse().expect("the other one is good");
    assert_eq!(object.programs.len(), 1);
    let [skipped] = &object.skipped[..] else { panic!("one is skipped") };
    assert_eq!((skipped.name.as_str(), skipped.section.as_str()), ("optional", "?xdp"));
    assert!(matches!(skipped.error.as_deref(), Some(LoadError::Undefined { name, .. }) if name == "away"));
}
