//! Handmade BTF: all kinds in both byte orders, and malformed types.

use std::time::{Duration, Instant};

use paceline_btf::{
    Btf, BtfError, BtfExt, ByteOrder, Composite, Int, IntEncoding, Member, Name, SpecialKind, Type, TypeId,
    Value, ValueProblem,
};

/// Writer of BTF without any checks, so that it can be malformed.
struct Writer {
    order: ByteOrder,
    types: Vec<u8>,
    strings: Vec<u8>,
    last: TypeId,
}

const INT: u32 = 1;
const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FORWARD: u32 = 7;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const FUNC: u32 = 12;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATA_SECTION: u32 = 15;
const FLOAT: u32 = 16;
const DECL_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;
/// The flag of `info`.
const FLAG: u32 = 1 << 31;

impl Writer {
    fn new(order: ByteOrder) -> Self {
        Self { order, types: Vec::new(), strings: vec![0], last: 0 }
    }

    fn bytes(&self, word: u32) -> [u8; 4] {
        match self.order {
            ByteOrder::Little => word.to_le_bytes(),
            ByteOrder::Big => word.to_be_bytes(),
        }
    }

    fn name(&mut self, text: &str) -> u32 {
        let at = self.strings.len() as u32;
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        if text.is_empty() { 0 } else { at }
    }

    /// Adds a type with a count and a flag in `info`; `words` follow.
    fn add(&mut self, name: u32, kind: u32, count: u32, size_or_type: u32, words: &[u32]) -> TypeId {
        let info = kind << 24 | count;
        for word in [name, info, size_or_type].iter().chain(words) {
            let bytes = self.bytes(*word);
            self.types.extend_from_slice(&bytes);
        }
        self.last += 1;
        self.last
    }

    fn int(&mut self, name: &str, size: u32) -> TypeId {
        let name = self.name(name);
        self.add(name, INT, 0, size, &[size * 8])
    }

    fn build(&self) -> Vec<u8> {
        let mut bytes = match self.order {
            ByteOrder::Little => 0xeb9fu16.to_le_bytes(),
            ByteOrder::Big => 0xeb9fu16.to_be_bytes(),
        }
        .to_vec();
        bytes.extend_from_slice(&[1, 0]);
        let types = self.types.len() as u32;
        for word in [24, 0, types, types, self.strings.len() as u32] {
            bytes.extend_from_slice(&self.bytes(word));
        }
        bytes.extend_from_slice(&self.types);
        bytes.extend_from_slice(&self.strings);
        bytes
    }

    fn parse(&self) -> Result<Btf, BtfError> {
        Btf::parse(&self.build())
    }
}

/// One type of every kind.
fn all_kinds(order: ByteOrder) -> Writer {
    let mut w = Writer::new(order);
    let int = w.int("int", 4);
    w.add(0, PTR, 0, int, &[]);
    w.add(0, ARRAY, 0, 0, &[int, int, 3]);
    let (s, a, b) = (w.name("s"), w.name("a"), w.name("b"));
    w.add(s, STRUCT, 2 | FLAG, 8, &[a, int, 0, b, int, 3 << 24 | 37]);
    w.add(0, UNION, 2, 4, &[a, int, 0, b, int, 0]);
    w.add(s, ENUM, 2 | FLAG, 4, &[a, 1, b, u32::MAX]);
    w.add(s, FORWARD, FLAG, 0, &[]);
    w.add(s, TYPEDEF, 0, int, &[]);
    w.add(0, VOLATILE, 0, int, &[]);
    w.add(0, CONST, 0, int, &[]);
    w.add(0, RESTRICT, 0, 2, &[]);
    let proto = w.add(0, FUNC_PROTO, 2, int, &[a, int, 0, 0]);
    w.add(s, FUNC, 1, proto, &[]);
    let var = w.add(b, VAR, 0, int, &[0]);
    w.add(s, DATA_SECTION, 1, 16, &[var, 4, 4]);
    w.add(s, FLOAT, 0, 8, &[]);
    w.add(s, DECL_TAG, 0, var, &[u32::MAX]);
    w.add(s, TYPE_TAG, 0, int, &[]);
    w.add(s, ENUM64, 1, 8, &[a, 2, 1]);
    w
}

#[test]
fn all_kinds_are_read_in_both_byte_orders() {
    let little = all_kinds(ByteOrder::Little).parse().expect("good BTF");
    let big = all_kinds(ByteOrder::Big).parse().expect("good BTF");
    assert_eq!(little, big);
    assert_eq!(little.types().count(), 20, "19 kinds and void");
    let mut kinds: Vec<_> = little.types().map(|(_, t)| std::mem::discriminant(t)).collect();
    kinds.dedup();
    assert_eq!(kinds.len(), 20, "each is another; both sorts of enumeration stand apart");
    assert_eq!(little.c_name(2), "int *");
    assert_eq!(little.c_name(3), "int[3]");
    assert_eq!(little.c_name(4), "struct s");
    assert_eq!(little.c_name(5), "union {...}");
    let Some(Type::Struct(s)) = little.get(4) else { panic!("a structure") };
    assert_eq!((s.members[1].bit_offset, s.members[1].bit_size), (37, 3));
    let Some(Type::Enum(e)) = little.get(6) else { panic!("an enumeration") };
    assert_eq!((e.signed, e.values[1].value), (true, -1));
    let Some(Type::Enum(e)) = little.get(19) else { panic!("an enumeration") };
    assert_eq!((e.wide, e.values[0].value), (true, 0x1_0000_0002));
    assert_eq!(little.size_of(3), Ok(12));
    assert_eq!(little.size_of(15), Ok(16));
    assert_eq!(little.size_of(13), Err(BtfError::NoSize(13)));
}

/// clang writes `enum e : __u64` as kind `ENUM` with 8 bytes and the low halves of the enumerators.
#[test]
fn names_of_enumerators_that_were_cut_mean_no_number() {
    let mut w = Writer::new(ByteOrder::NATIVE);
    let (e, low, one) = (w.name("e"), w.name("LOW"), w.name("ONE"));
    let cut = w.add(e, ENUM, 2, 8, &[low, 0x789a_bcde, one, 1]);
    let whole = w.add(e, ENUM, 1, 4, &[one, 1]);
    let btf = w.parse().expect("good BTF");
    let error = btf.encode(cut, &Value::Text("LOW".to_owned())).unwrap_err().to_string();
    assert!(error.starts_with("the types have only the low 32 bits of `LOW` of `enum e`"), "{error}");
    let number = 0x1234_5678_9abc_u64;
    assert_eq!(btf.encode(cut, &Value::Unsigned(number.into())), Ok(number.to_ne_bytes().to_vec()));
    assert_eq!(btf.encode(cut, &Value::Signed(-2)), Ok((-2i64).to_ne_bytes().to_vec()));
    let decoded = |ty, bytes: &[u8]| btf.decode(ty, bytes).expect("a value");
    assert_eq!(decoded(cut, &1u64.to_ne_bytes()), Value::Enum { name: None, value: 1 });
    assert_eq!(decoded(whole, &1u32.to_ne_bytes()), Value::Enum { name: Some("ONE".to_owned()), value: 1 });
}

#[test]
fn all_kinds_are_written_as_they_were_read() {
    let read = all_kinds(ByteOrder::Big).parse().expect("good BTF");
    assert_eq!(read.to_bytes(), all_kinds(ByteOrder::NATIVE).build());
    let mut made = Btf::default();
    let name = made.add_name("counter");
    assert_eq!(made.add_name(""), Name::default());
    let int = Int { name, size: 8, encoding: IntEncoding::Bool, bit_offset: 0, bits: 8 };
    assert_eq!(made.add(Type::Ptr(2)), 1);
    assert_eq!(made.add(Type::Int(int)), 2);
    assert_eq!(Btf::parse(&made.to_bytes()), Ok(made.clone()));
    assert_eq!(made.c_name(1), "counter *");
}

/// A structure of members with a name, a type and an offset in bytes.
fn structure(btf: &mut Btf, name: &str, size: u32, members: &[(TypeId, u32)]) -> TypeId {
    let name = btf.add_name(name);
    let member = |&(ty, offset): &(TypeId, u32)| Member { name, ty, bit_offset: offset * 8, bit_size: 0 };
    let members = members.iter().map(member).collect();
    btf.add(Type::Struct(Composite { name, size, members }))
}

#[test]
fn special_fields_are_found_in_what_values_hold() {
    let mut btf = Btf::default();
    let lock = structure(&mut btf, "bpf_spin_lock", 4, &[]);
    let timer = structure(&mut btf, "bpf_timer", 16, &[]);
    let list = structure(&mut btf, "bpf_list_head", 16, &[]);
    let name = btf.add_name("kptr");
    let tag = btf.add(Type::TypeTag { name, ty: lock });
    let pointer = btf.add(Type::Ptr(tag));
    let plain = btf.add(Type::Ptr(lock));
    let pointer = btf.add(Type::Volatile(pointer));
    let inner = structure(&mut btf, "inner", 16, &[(pointer, 0), (plain, 8)]);
    let array = btf.add(Type::Array { element: inner, index: lock, count: 2 });
    let nested = structure(&mut btf, "nested", 24, &[(plain, 0), (timer, 8)]);
    let members = [(plain, 0), (array, 8), (nested, 40), (lock, 64)];
    let mut value = structure(&mut btf, "value", 72, &members);
    let found = |btf: &Btf, value| -> Vec<_> {
        btf.special_fields(value).iter().map(|f| (f.kind, f.offset, f.size)).collect()
    };
    let (kptr, timer_kind) = (SpecialKind::KernelPointer, SpecialKind::Timer);
    let expected = [(kptr, 8, 8), (kptr, 24, 8), (timer_kind, 48, 16), (SpecialKind::SpinLock, 64, 4)];
    assert_eq!(found(&btf, value), expected);
    // Modifiers of the value are looked through, those of members are not.
    let name = btf.add_name("counted");
    value = btf.add(Type::Typedef { name, ty: value });
    value = btf.add(Type::Const(value));
    assert_eq!(found(&btf, value), expected);
    let of_typedef = btf.add(Type::Typedef { name, ty: lock });
    let value = structure(&mut btf, "value", 72, &[(of_typedef, 0), (timer, 8)]);
    assert_eq!(found(&btf, value), [(timer_kind, 8, 16)]);

    let mut none = |members: &[(TypeId, u32)]| {
        let value = structure(&mut btf, "value", 64, members);
        assert!(btf.special_fields(value).is_empty(), "{members:?}");
    };
    none(&[(lock, 0), (lock, 4)]);
    // Misaligned, which compilers do not generate.
    none(&[(lock, 2)]);
    none(&[(timer, 4)]);
    // A list without a lock.
    none(&[(list, 0)]);
    let timers = btf.add(Type::Array { element: timer, index: lock, count: 2 });
    let value = structure(&mut btf, "value", 64, &[(timers, 0), (lock, 32)]);
    assert!(btf.special_fields(value).is_empty(), "an array of timers");
}

#[test]
fn looking_for_special_fields_ends() {
    let mut btf = Btf::default();
    let mut inner = structure(&mut btf, "inner", 0, &[]);
    for _ in 0..30 {
        inner = structure(&mut btf, "inner", 0, &[(inner, 0); 100]);
    }
    let start = Instant::now();
    assert!(btf.special_fields(inner).is_empty());
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn names_and_types_that_are_not_there_are_refused() {
    let refuse = |name: u32, kind: u32, count: u32, ty: u32, words: &[u32]| {
        let mut w = Writer::new(ByteOrder::Little);
        w.add(name, kind, count, ty, words);
        w.parse().expect_err("it lies")
    };
    assert_eq!(refuse(0, PTR, 0, 2, &[]), BtfError::TypeOutOfRange { ty: 1, target: 2, last: 1 });
    assert_eq!(refuse(99, PTR, 0, 0, &[]), BtfError::NameOutOfRange { ty: 1, name: 99 });
    assert_eq!(refuse(1, PTR, 0, 0, &[]), BtfError::NameOutOfRange { ty: 1, name: 1 });
    assert_eq!(refuse(0, 20, 0, 0, &[]), BtfError::Kind { ty: 1, kind: 20 });
    assert_eq!(refuse(0, 0, 0, 0, &[]), BtfError::Kind { ty: 1, kind: 0 });
    assert_eq!(refuse(0, INT, 0, 3, &[24]), BtfError::Width { ty: 1 });
    assert_eq!(refuse(0, INT, 0, 4, &[33]), BtfError::Width { ty: 1 });
    assert_eq!(refuse(0, INT, 0, 4, &[1 << 16 | 32]), BtfError::Width { ty: 1 });
    assert_eq!(refuse(0, FUNC, 3, 0, &[]), BtfError::Linkage { ty: 1, linkage: 3 });
    assert_eq!(refuse(0, VAR, 0, 0, &[9]), BtfError::Linkage { ty: 1, linkage: 9 });
    assert_eq!(refuse(0, STRUCT, 0xffff, 4, &[0, 1, 0]), BtfError::Truncated { offset: 12 });
    assert_eq!(refuse(0, ENUM64, 2, 8, &[0, 1, 2]), BtfError::Truncated { offset: 12 });
    assert_eq!(refuse(0, ARRAY, 0, 0, &[1, 1]), BtfError::Truncated { offset: 20 });
}

#[test]
fn headers_that_lie_are_refused() {
    let good = all_kinds(ByteOrder::Little).build();
    for end in 0..good.len() {
        assert!(Btf::parse(&good[..end]).is_err(), "cut at {end}");
    }
    let change = |at: usize, bytes: &[u8]| {
        let mut changed = good.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        Btf::parse(&changed).expect_err("it lies")
    };
    assert_eq!(change(0, b"BT"), BtfError::Magic(0x5442));
    assert_eq!(change(2, &[2]), BtfError::Version(2));
    for (at, part) in [(8, "types"), (12, "types"), (16, "strings"), (20, "strings")] {
        let error = change(at, &[0xff; 4]);
        assert!(matches!(error, BtfError::Bounds { part: p, .. } if p == part), "{at}: {error}");
    }
    assert_eq!(change(4, &[0xff; 4]), BtfError::Truncated { offset: u32::MAX as usize });
    assert_eq!(change(good.len() - 1, b"x"), BtfError::Strings);
}

#[test]
fn circles_and_overflows_end() {
    let mut w = Writer::new(ByteOrder::NATIVE);
    let name = w.name("t");
    let typedef = w.add(name, TYPEDEF, 0, 2, &[]);
    w.add(0, CONST, 0, typedef, &[]);
    let array = w.add(0, ARRAY, 0, 0, &[3, 3, 2]);
    let pointer = w.add(0, PTR, 0, 4, &[]);
    // A structure that contains itself, of size 0, so that it fits into itself.
    let inside = w.add(name, STRUCT, 1, 0, &[name, 5, 0]);
    let int = w.int("int", 8);
    let mut huge = int;
    for _ in 0..3 {
        huge = w.add(0, ARRAY, 0, 0, &[huge, int, u32::MAX]);
    }
    let proto = w.add(0, FUNC_PROTO, 0, 0, &[]);
    let btf = w.parse().expect("every reference is there");
    assert_eq!(btf.resolve(typedef), Err(BtfError::TooDeep(typedef)));
    assert_eq!(btf.size_of(typedef), Err(BtfError::TooDeep(typedef)));
    assert_eq!(btf.size_of(array), Err(BtfError::TooDeep(array)));
    assert_eq!(btf.size_of(huge), Err(BtfError::SizeOverflow(huge)));
    assert_eq!(btf.size_of(99), Err(BtfError::NoType(99)));
    assert_eq!(btf.c_name(pointer), format!("type {pointer}"));
    let error = btf.decode(inside, &[]).expect_err("it never ends");
    assert_eq!(*error.problem, ValueProblem::Btf(BtfError::TooDeep(inside)));
    let value = Value::Struct(vec![("t".to_owned(), Value::Struct(Vec::new()))]);
    assert_eq!(btf.encode(inside, &value), Ok(Vec::new()), "as deep as the value goes, no deeper");
    let error = btf.encode(proto, &Value::Bool(true)).expect_err("a function is no value");
    assert_eq!(*error.problem, ValueProblem::Btf(BtfError::NoSize(proto)));
}

#[test]
fn types_with_far_more_parts_than_bytes_are_refused_in_time() {
    let mut w = Writer::new(ByteOrder::NATIVE);
    let int = w.int("int", 4);
    let name = w.name("u");
    // Nested unions: 1000 members of 1000 members of 1000 members in the same 4 bytes, named and anonymous.
    for member_name in [name, 0] {
        let mut inner = int;
        for _ in 0..3 {
            let members: Vec<u32> = [member_name, inner, 0].repeat(1000);
            inner = w.add(name, UNION, 1000, 4, &members);
        }
    }
    let unions = [4, 7];
    let empty = w.add(name, STRUCT, 0, 0, &[]);
    let many = w.add(0, ARRAY, 0, 0, &[empty, int, u32::MAX]);
    let large = w.add(0, ARRAY, 0, 0, &[int, int, u32::MAX / 4]);
    let btf = w.parse().expect("every reference is there");
    let start = Instant::now();
    let error = btf.decode(unions[0], &[0; 4]).expect_err("too many parts");
    assert!(matches!(*error.problem, ValueProblem::TooManyParts(_)), "{error}");
    let value = Value::Struct(vec![("nowhere".to_owned(), Value::Bool(true))]);
    let error = btf.encode(unions[1], &value).expect_err("too many members to search");
    assert!(matches!(*error.problem, ValueProblem::TooManyParts(_)), "{error}");
    assert_eq!(btf.decode(many, &[]), Ok(Value::Array(Vec::new())), "nothing, many times, is nothing");
    let error = btf.encode(large, &Value::Array(Vec::new())).expect_err("4 GiB");
    assert!(matches!(*error.problem, ValueProblem::TooLarge(_)), "{error}");
    assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
}

#[test]
fn members_outside_of_their_structure_are_refused() {
    let mut w = Writer::new(ByteOrder::NATIVE);
    let int = w.int("int", 4);
    let name = w.name("m");
    let behind = w.add(name, STRUCT, 1, 4, &[name, int, 8]);
    let bits = w.add(name, STRUCT, 1 | FLAG, 4, &[name, int, 8 << 24 | 30]);
    let wide = w.add(name, STRUCT, 1 | FLAG, 64, &[name, int, 65 << 24]);
    let var = w.add(name, VAR, 0, int, &[0]);
    let section = w.add(name, DATA_SECTION, 1, 4, &[var, 1, 4]);
    let btf = w.parse().expect("every reference is there");
    for (ty, size) in [(behind, 4), (bits, 4), (wide, 64), (section, 4)] {
        let error = btf.decode(ty, &vec![0; size]).expect_err("it lies");
        assert_eq!(*error.problem, ValueProblem::Btf(BtfError::Width { ty }));
        let value = Value::Struct(vec![("m".to_owned(), Value::Unsigned(1))]);
        let error = btf.encode(ty, &value).expect_err("it lies");
        assert_eq!(*error.problem, ValueProblem::Btf(BtfError::Width { ty }));
    }
}

#[test]
fn bitfields_of_old_compilers_are_read_from_their_integers() {
    let mut w = Writer::new(ByteOrder::NATIVE);
    let name = w.name("x");
    // Five bits at bit 3 of the member, which is at bit 8.
    let int = w.add(name, INT, 0, 4, &[1 << 24 | 3 << 16 | 5]);
    let s = w.add(name, STRUCT, 1, 4, &[name, int, 8]);
    let btf = w.parse().expect("good BTF");
    if ByteOrder::NATIVE == ByteOrder::Little {
        let value = btf.decode(s, &[0, 0b1111_0111, 0, 0]).expect("it fits");
        assert_eq!(value, Value::Struct(vec![("x".to_owned(), Value::Signed(-2))]));
        assert_eq!(btf.encode(s, &value), Ok(vec![0, 0b1111_0000, 0, 0]));
    }
}

#[test]
fn extension_records_that_lie_are_refused() {
    let header = |words: &[u32]| {
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        bytes.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        bytes
    };
    // Offset and length of functions, lines and relocations; then the functions: size, section, count, records.
    let good = header(&[32, 0, 20, 20, 0, 20, 0, 8, 5, 1, 16, 3]);
    let ext = BtfExt::parse(&good).expect("good records");
    assert_eq!(ext.functions[0].records[0].ty, 3);
    let without_relocations = header(&[24, 0, 20, 20, 0, 8, 5, 1, 16, 3]);
    assert_eq!(BtfExt::parse(&without_relocations), Ok(ext));
    for end in 0..good.len() {
        assert!(BtfExt::parse(&good[..end]).is_err(), "cut at {end}");
    }
    let refuse = |words: &[u32]| BtfExt::parse(&header(words)).expect_err("it lies");
    assert_eq!(
        refuse(&[24, 0, 20, 20, 0, 4, 5, 1, 16, 3]),
        BtfError::RecordSize { part: "function", size: 4 }
    );
    assert_eq!(
        refuse(&[24, 0, 20, 20, 0, 0, 5, 1, 16, 3]),
        BtfError::RecordSize { part: "function", size: 0 }
    );
    assert_eq!(refuse(&[24, 0, 20, 20, 0, 8, 5, u32::MAX, 16, 3]), BtfError::Truncated { offset: 12 });
    assert!(matches!(refuse(&[24, 0, 21, 20, 0, 8, 5, 1, 16, 3]), BtfError::Bounds { part: "function", .. }));
    assert_eq!(refuse(&[32, 0, 0, 0, 0, 0, 28, 16, 5, 1, 0, 1, 0, 13]), BtfError::CoreKind(13));
}
