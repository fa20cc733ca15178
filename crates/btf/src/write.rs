//! Writing of `.BTF` sections, to be passed to a kernel with a program.

use crate::parse::MAGIC;
use crate::types::{
    Btf, Composite, DataSection, Enum, Int, IntEncoding, Member, Name, SymbolLinkage, Type, TypeId,
};

/// Size of the header in bytes, `struct btf_header`.
const HEADER: u32 = 24;

/// The flag bit of `info`.
const FLAG: u32 = 1 << 31;

impl Default for Btf {
    /// A BTF with `void` as only type.
    fn default() -> Self {
        Self { types: vec![Type::Void], strings: vec![0] }
    }
}

impl Btf {
    /// Adds a name for types of this BTF; an empty text is no name.
    ///
    /// # Panics
    /// If the names take 4 GiB.
    pub fn add_name(&mut self, text: &str) -> Name {
        // A null byte terminates a name.
        let text = text.split('\0').next().unwrap_or_default();
        if text.is_empty() {
            return Name::default();
        }
        let at = u32::try_from(self.strings.len()).expect("names take less than 4 GiB");
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        Name(at)
    }

    /// Adds a type. It may refer to types that are added later; if it refers to types that are never added, the BTF is invalid.
    ///
    /// # Panics
    /// If there are 2^32 types.
    pub fn add(&mut self, ty: Type) -> TypeId {
        let id = TypeId::try_from(self.types.len()).expect("fewer than 2^32 types");
        self.types.push(ty);
        id
    }

    /// Mutable access to a type.
    pub fn get_mut(&mut self, id: TypeId) -> Option<&mut Type> {
        self.types.get_mut(id as usize)
    }

    /// The bytes of a `.BTF` section in native byte order, which [`Btf::parse`] parses to the same types. A kind with more than
    /// 65,535 parts is truncated to 65,535, the maximum of the format.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut types = Words::default();
        for ty in self.types.iter().skip(1) {
            types.put_type(ty);
        }
        let size = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let (types, strings) = (types.0, self.strings.as_slice());
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        // Version and flags.
        bytes.extend_from_slice(&[1, 0]);
        for word in [HEADER, 0, size(&types), size(&types), size(strings)] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        bytes.extend_from_slice(&types);
        bytes.extend_from_slice(strings);
        bytes
    }
}

/// The bytes of records, which consist of 32-bit words.
#[derive(Default)]
struct Words(Vec<u8>);

impl Words {
    fn put(&mut self, words: impl IntoIterator<Item = u32>) {
        self.0.extend(words.into_iter().flat_map(u32::to_ne_bytes));
    }

    /// The common header of all kinds; `info` has the kind's count and flag.
    fn head(&mut self, kind: u32, name: Name, info: u32, size_or_type: u32) {
        self.put([name.0, kind << 24 | info, size_or_type]);
    }

    /// The same for a kind with parts, followed by `words` for each of them.
    fn with_parts<T, const N: usize>(
        &mut self,
        head: (u32, Name, u32, u32),
        parts: &[T],
        words: impl Fn(&T) -> [u32; N],
    ) {
        let (kind, name, flag, size_or_type) = head;
        let parts = parts.get(..usize::from(u16::MAX)).unwrap_or(parts);
        self.head(kind, name, flag | parts.len() as u32, size_or_type);
        self.put(parts.iter().flat_map(words));
    }

    fn put_type(&mut self, ty: &Type) {
        let none = Name::default();
        match ty {
            Type::Void => {}
            Type::Int(int) => self.int(int),
            Type::Ptr(ty) => self.head(2, none, 0, *ty),
            Type::Array { element, index, count } => {
                self.head(3, none, 0, 0);
                self.put([*element, *index, *count]);
            }
            Type::Struct(composite) => self.composite(4, composite),
            Type::Union(composite) => self.composite(5, composite),
            Type::Enum(e) => self.enumeration(e),
            Type::Forward { name, union } => self.head(7, *name, if *union { FLAG } else { 0 }, 0),
            Type::Typedef { name, ty } => self.head(8, *name, 0, *ty),
            Type::Volatile(ty) => self.head(9, none, 0, *ty),
            Type::Const(ty) => self.head(10, none, 0, *ty),
            Type::Restrict(ty) => self.head(11, none, 0, *ty),
            Type::Func { name, proto, linkage } => self.head(12, *name, linkage_number(*linkage), *proto),
            Type::FuncProto { result, params } => {
                self.with_parts((13, none, 0, *result), params, |p| [p.name.0, p.ty]);
            }
            Type::Var { name, ty, linkage } => {
                self.head(14, *name, 0, *ty);
                self.put([linkage_number(*linkage)]);
            }
            Type::DataSection(DataSection { name, size, vars }) => {
                self.with_parts((15, *name, 0, *size), vars, |var| [var.ty, var.offset, var.size]);
            }
            Type::Float { name, size } => self.head(16, *name, 0, *size),
            Type::DeclTag { name, ty, component } => {
                self.head(17, *name, 0, *ty);
                self.put([component.cast_unsigned()]);
            }
            Type::TypeTag { name, ty } => self.head(18, *name, 0, *ty),
        }
    }

    fn int(&mut self, int: &Int) {
        let encoding = match int.encoding {
            IntEncoding::Unsigned => 0,
            IntEncoding::Signed => 1,
            IntEncoding::Char => 2,
            IntEncoding::Bool => 4,
        };
        self.head(1, int.name, 0, int.size);
        self.put([encoding << 24 | u32::from(int.bit_offset) << 16 | u32::from(int.bits)]);
    }

    fn composite(&mut self, kind: u32, composite: &Composite) {
        let has_bitfields = composite.members.iter().any(|m| m.bit_size != 0);
        let offset = |m: &Member| u32::from(m.bit_size) << 24 | m.bit_offset;
        let flag = if has_bitfields { FLAG } else { 0 };
        let head = (kind, composite.name, flag, composite.size);
        self.with_parts(head, &composite.members, |m| [m.name.0, m.ty, offset(m)]);
    }

    fn enumeration(&mut self, e: &Enum) {
        let head = |kind| (kind, e.name, if e.signed { FLAG } else { 0 }, e.size);
        if e.wide {
            self.with_parts(head(19), &e.values, |v| [v.name.0, v.value as u32, (v.value >> 32) as u32]);
        } else {
            self.with_parts(head(6), &e.values, |v| [v.name.0, v.value as u32]);
        }
    }
}

fn linkage_number(linkage: SymbolLinkage) -> u32 {
    match linkage {
        SymbolLinkage::Static => 0,
        SymbolLinkage::Global => 1,
        SymbolLinkage::Extern => 2,
    }
}
