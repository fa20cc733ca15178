//! Special fields of random value types: the kernel and our verifier find the same locks and timers at the same offsets, and refuse loads
//! of the same bytes.

use std::fmt::Write;

use fastrand::Rng;
use paceline::{Limits, Map};
use paceline_btf::{
    Btf, Composite, DataSection, Int, IntEncoding, Member, SectionVar, SymbolLinkage, Type, TypeId,
};
use paceline_isa::{Names, assemble};
use paceline_spec::helper::Helper;
use paceline_spec::{MapKind, MapSpec, ProgramKind, ProgramSpec, XdpAttach};
use paceline_testkit::kernel::{KernelObject, LoadError, LoadOptions, available_for, possible_cpus};
use paceline_verifier::{Options, verify};

const MOST_BYTES: u32 = 160;

/// Structures that are special by their name, with the size that the kernel expects.
const SPECIAL: [(&str, u32); 8] = [
    ("bpf_spin_lock", 4),
    ("bpf_res_spin_lock", 4),
    ("bpf_timer", 16),
    ("bpf_wq", 16),
    ("bpf_task_work", 8),
    ("bpf_refcount", 4),
    ("bpf_list_node", 24),
    ("bpf_spin_locks", 4),
];

/// A type with its size and alignment in bytes.
#[derive(Clone, Copy)]
struct Sized {
    ty: TypeId,
    size: u32,
    align: u32,
}

/// A random type of values.
struct Types<'a> {
    btf: Btf,
    rng: &'a mut Rng,
    int: TypeId,
}

impl<'a> Types<'a> {
    fn new(rng: &'a mut Rng) -> Self {
        let mut btf = Btf::default();
        let name = btf.add_name("u32");
        let int = Int { name, size: 4, encoding: IntEncoding::Unsigned, bit_offset: 0, bits: 32 };
        let int = btf.add(Type::Int(int));
        Self { btf, rng, int }
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.rng.u32(..count) == 0
    }

    fn structure(&mut self, name: &str, size: u32, members: Vec<(TypeId, u32)>) -> TypeId {
        let named = self.btf.add_name(name);
        let member = |(number, (ty, offset)): (usize, (TypeId, u32))| {
            let name = self.btf.add_name(&format!("m{number}"));
            Member { name, ty, bit_offset: offset * 8, bit_size: 0 }
        };
        let members = members.into_iter().enumerate().map(member).collect();
        self.btf.add(Type::Struct(Composite { name: named, size, members }))
    }

    /// Structure with words as members.
    fn of_words(&mut self, name: &str, size: u32) -> TypeId {
        let members = (0..size / 4).map(|word| (self.int, word * 4)).collect();
        self.structure(name, size, members)
    }

    fn special(&mut self) -> Sized {
        let (name, size) = SPECIAL[self.rng.usize(..SPECIAL.len())];
        let size = if self.one_in(24) { size + 4 } else { size };
        let align = if size.is_multiple_of(8) && !self.one_in(16) { 8 } else { 4 };
        Sized { ty: self.of_words(name, size), size, align }
    }

    fn pointer(&mut self) -> Sized {
        let mut to = if self.one_in(6) { self.int } else { self.of_words("paceline_object", 8) };
        if self.one_in(4) {
            to = self.btf.add(Type::Const(to));
        }
        for _ in 0..self.rng.u32(0..3).min(if self.one_in(8) { 2 } else { 1 }) {
            let tag = ["kptr_untrusted", "kptr_untrusted", "kptr_untrusted", "user"][self.rng.usize(..4)];
            let name = self.btf.add_name(tag);
            to = self.btf.add(Type::TypeTag { name, ty: to });
        }
        Sized { ty: self.btf.add(Type::Ptr(to)), size: 8, align: 8 }
    }

    /// A modifier or a typedef of a type, whose name may be that of a special structure.
    fn modified(&mut self, of: Sized) -> Sized {
        let ty = match self.rng.u8(..6) {
            0 => Type::Const(of.ty),
            1 | 2 => Type::Volatile(of.ty),
            3 if self.one_in(4) => {
                let name = self.btf.add_name("bpf_timer");
                Type::Typedef { name, ty: of.ty }
            }
            _ => {
                let name = self.btf.add_name("other_name");
                Type::Typedef { name, ty: of.ty }
            }
        };
        Sized { ty: self.btf.add(ty), ..of }
    }

    fn member(&mut self, depth: u32) -> Sized {
        let mut found = match self.rng.u8(..8) {
            0 | 1 => Sized { ty: self.int, size: 4, align: 4 },
            2 => self.pointer(),
            3..6 => self.special(),
            _ if depth == 0 => self.special(),
            _ => self.composite(depth - 1),
        };
        if self.one_in(5) {
            found = self.modified(found);
        }
        if self.one_in(6) {
            let count = self.rng.u32(0..3);
            let array = Type::Array { element: found.ty, index: self.int, count };
            found = Sized { ty: self.btf.add(array), size: found.size * count, ..found };
            if self.one_in(5) {
                found = self.modified(found);
            }
        }
        found
    }

    fn composite(&mut self, depth: u32) -> Sized {
        let (mut members, mut size) = (Vec::new(), 0_u32);
        for _ in 0..self.rng.u32(1..4) {
            let member = self.member(depth);
            // Packed structures have members at any multiple of 4.
            let align = if self.one_in(24) { 4 } else { member.align };
            let offset = size.next_multiple_of(align);
            members.push((member.ty, offset));
            size = offset + member.size;
        }
        let size = size.max(4).next_multiple_of(8);
        if self.one_in(12) {
            let first = members.iter().map(|&(ty, _)| (ty, 0)).next().into_iter().collect();
            let ty = self.structure("either", size, first);
            let Some(Type::Struct(composite)) = self.btf.get(ty).cloned() else { unreachable!() };
            return Sized { ty: self.btf.add(Type::Union(composite)), size, align: 8 };
        }
        if self.one_in(24) {
            members.reverse();
        }
        Sized { ty: self.structure("inner", size, members), size, align: 8 }
    }

    /// The section of a random object, with one or two variables.
    fn section(&mut self) -> Sized {
        let (mut vars, mut size) = (Vec::new(), 0_u32);
        for number in 0..self.rng.u32(1..3) {
            let member = self.member(1);
            let name = self.btf.add_name(&format!("v{number}"));
            let var = Type::Var { name, ty: member.ty, linkage: SymbolLinkage::Global };
            let offset = size.next_multiple_of(8);
            vars.push(SectionVar { ty: self.btf.add(var), offset, size: member.size });
            size = offset + member.size;
        }
        vars.retain(|var| var.size > 0);
        let name = self.btf.add_name(".data");
        let size = size.max(4).next_multiple_of(8);
        let section = DataSection { name, size, vars: vars.into() };
        Sized { ty: self.btf.add(Type::DataSection(section)), size, align: 8 }
    }

    fn value(&mut self) -> Sized {
        if self.one_in(6) {
            return self.section();
        }
        let mut value = self.composite(2);
        for _ in 0..self.rng.u32(0..4) {
            value = self.modified(value);
        }
        value
    }
}

struct Helpers;

impl Names for Helpers {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }

    fn map(&self, _: &str) -> Option<i32> {
        Some(0)
    }
}

/// The ways to use bytes at an offset of the value.
const USES: [(&str, &str); 3] = [
    ("load", "r0 = *(u8 *)(r1 + 0)"),
    ("lock", "r6 = r1\n call bpf_spin_lock\n r1 = r6\n call bpf_spin_unlock"),
    ("timer", "r2 = map[0] ll\n r3 = 1\n call bpf_timer_init"),
];

fn program(what: &str, offset: u32) -> ProgramSpec {
    let text = format!("r1 = map_value[0] + {offset} ll\n {what}\n r0 = 2\n exit");
    let insns = assemble(&text, &Helpers).expect("assembles").encode().expect("encodes");
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    ProgramSpec { license: "GPL".into(), ..ProgramSpec::new("uses", kind, insns) }
}

fn kernels(map: &MapSpec, programs: &[&ProgramSpec], btf: &Btf) -> Result<(), String> {
    let options = LoadOptions { btf: Some(btf), ..LoadOptions::default() };
    match KernelObject::load(std::slice::from_ref(map), programs.iter().copied(), options) {
        Ok(_) => Ok(()),
        Err(LoadError::Map { error, .. }) => Err(format!("no map: {}", error.errno)),
        Err(LoadError::Program { error, .. }) => Err(error.reason().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The first difference between the kernel and us over the value type of a seed; `Ok(None)` if no map has such values.
fn difference(seed: u64, seen: &mut [usize; USES.len()]) -> Result<Option<()>, String> {
    let mut rng = Rng::with_seed(seed);
    let mut types = Types::new(&mut rng);
    let value = types.value();
    let (btf, int) = (types.btf, types.int);
    if value.size > MOST_BYTES {
        return Ok(None);
    }
    let is_section = matches!(btf.get(value.ty), Some(Type::DataSection(_)));
    let key_type = if is_section { 0 } else { int };
    let mut map = MapSpec::new("m", MapKind::Array, 4, value.size, 1);
    (map.key_type, map.value_type) = (key_type, value.ty);
    map.find_special_fields(&btf);
    let kernel = kernels(&map, &[], &btf);
    if kernel.as_ref().is_err_and(|error| !error.starts_with("no map")) {
        // The types are none: a misaligned or overlapping member, say.
        return Ok(None);
    }
    let limits = Limits { cpus: possible_cpus(), memory: 1 << 20 };
    let ours = Map::create(&map, &limits).map(drop).map_err(|error| format!("no map: {}", error.errno()));
    if ours != kernel {
        return Err(format!("our map: {ours:?}, the kernel's: {kernel:?}, fields {:?}", map.special));
    }
    if ours.is_err() {
        return Ok(Some(()));
    }
    for ((name, what), seen) in USES.into_iter().zip(seen) {
        for offset in (0..value.size).step_by(4) {
            let program = program(what, offset);
            let ours = verify(&program, std::slice::from_ref(&map), Some(&btf), &Options::default());
            let kernel = kernels(&map, &[&program], &btf);
            if ours.is_ok() != kernel.is_ok() {
                let ours = ours.err().map(|refusal| refusal.to_string());
                let found = &map.special;
                return Err(format!("{name} at {offset}: ours {ours:?}, the kernel's {kernel:?}; {found:?}"));
            }
            *seen += usize::from((name == "load") != ours.is_ok());
        }
    }
    Ok(Some(()))
}

/// Value types; more with `PACELINE_VALUES`, from `PACELINE_SEED` on.
#[test]
fn the_kernel_finds_the_same_special_fields() {
    if !available_for("the_kernel_finds_the_same_special_fields") {
        return;
    }
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |number| number.parse().expect("a number"))
    };
    let (first, count) = (number("PACELINE_SEED", 0), number("PACELINE_VALUES", 400));
    let (mut differences, mut seen, mut values) = (String::new(), [0; USES.len()], 0);
    for seed in first..first + count {
        match difference(seed, &mut seen) {
            Ok(found) => values += usize::from(found.is_some()),
            Err(difference) => writeln!(differences, "seed {seed}: {difference}").expect("to a string"),
        }
    }
    paceline_testkit::say!("{values} value types; refused loads, locks, timers: {seen:?}");
    assert!(differences.is_empty(), "{differences}");
    assert!(seen.iter().all(|&seen| seen > 0), "{seen:?}");
}
