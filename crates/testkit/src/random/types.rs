//! BTF types of the functions of random programs, by which global functions are verified.

use std::sync::OnceLock;

use paceline_btf::{Btf, TypeId};
use paceline_spec::ProgramKind;

/// Argument of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    /// A number.
    Number,
    /// The context.
    Context,
    /// Memory of this size in bytes; nullable in global functions.
    Memory(i16),
    /// A packet pointer with this number of checked bytes; static functions only.
    Packet(i16),
    /// The end of the packet; static functions only.
    PacketEnd,
}

/// Arguments of global functions.
pub(super) const SIGNATURES: [&[Parameter]; 9] = [
    &[Parameter::Number],
    &[Parameter::Number, Parameter::Number],
    &[Parameter::Memory(8)],
    &[Parameter::Memory(16), Parameter::Number],
    &[Parameter::Number, Parameter::Memory(8), Parameter::Memory(16)],
    &[Parameter::Context],
    &[Parameter::Context, Parameter::Number, Parameter::Memory(16)],
    &[Parameter::Context, Parameter::Memory(8)],
    &[Parameter::Memory(16), Parameter::Context],
];

/// Type of a global function with a signature.
pub(super) fn global(kind: ProgramKind, signature: usize) -> TypeId {
    let filters = if kind.context().name == "__sk_buff" { SIGNATURES.len() } else { 0 };
    image().globals[filters + signature]
}

/// Type of a main program.
pub(super) fn main(kind: ProgramKind) -> TypeId {
    // The type of a global function with the context.
    let context = SIGNATURES.iter().position(|params| *params == [Parameter::Context]);
    global(kind, context.unwrap_or_default())
}

/// Type of all static functions, whose parameters are not checked.
pub(super) fn local() -> TypeId {
    image().local
}

/// The types as BTF bytes for the kernel.
#[must_use]
pub fn btf_image() -> &'static [u8] {
    &image().bytes
}

/// The types.
///
/// # Panics
/// Never: the image is well-formed.
#[must_use]
pub fn btf() -> &'static Btf {
    static BTF: OnceLock<Btf> = OnceLock::new();
    BTF.get_or_init(|| Btf::parse(btf_image()).expect("the image is well-formed"))
}

struct Image {
    bytes: Vec<u8>,
    /// Global functions: all signatures of XDP programs, then of socket filters.
    globals: Vec<TypeId>,
    local: TypeId,
}

fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(build)
}

const KIND_INT: u32 = 1;
const KIND_PTR: u32 = 2;
const KIND_STRUCT: u32 = 4;
const KIND_FUNC: u32 = 12;
const KIND_FUNC_PROTO: u32 = 13;
const STATIC: u32 = 0;
const GLOBAL: u32 = 1;
const SIGNED: u32 = 1 << 24;

/// Builder of types and strings (`Documentation/bpf/btf.rst`).
#[derive(Default)]
struct Builder {
    types: Vec<u32>,
    strings: Vec<u8>,
    last: TypeId,
}

impl Builder {
    fn name(&mut self, name: &str) -> u32 {
        let at = self.strings.len() as u32;
        self.strings.extend(name.bytes().chain([0]));
        at
    }

    fn ty(&mut self, name: &str, kind: u32, count: u32, size_or_type: u32, more: &[u32]) -> TypeId {
        let name = if name.is_empty() { 0 } else { self.name(name) };
        self.types.extend([name, kind << 24 | count, size_or_type]);
        self.types.extend(more);
        self.last += 1;
        self.last
    }

    fn structure(&mut self, name: &str, words: u32, member: TypeId) -> TypeId {
        let members: Vec<u32> =
            (0..words).flat_map(|i| [self.name(&format!("m{i}")), member, i * 64]).collect();
        let structure = self.ty(name, KIND_STRUCT, words, words * 8, &members);
        self.ty("", KIND_PTR, 0, structure, &[])
    }

    fn function(&mut self, name: &str, linkage: u32, result: TypeId, params: &[TypeId]) -> TypeId {
        let params: Vec<u32> =
            params.iter().enumerate().flat_map(|(i, ty)| [self.name(&format!("p{i}")), *ty]).collect();
        let proto = self.ty("", KIND_FUNC_PROTO, params.len() as u32 / 2, result, &params);
        self.ty(name, KIND_FUNC, linkage, proto, &[])
    }
}

fn build() -> Image {
    let mut builder = Builder { strings: vec![0], ..Builder::default() };
    let int = builder.ty("int", KIND_INT, 0, 4, &[SIGNED | 32]);
    let number = builder.ty("unsigned long", KIND_INT, 0, 8, &[64]);
    let words = [builder.structure("one", 1, number), builder.structure("two", 2, number)];
    let contexts = [builder.structure("xdp_md", 3, number), builder.structure("__sk_buff", 24, number)];
    let mut globals = Vec::new();
    for context in contexts {
        for (i, signature) in SIGNATURES.iter().enumerate() {
            let params: Vec<TypeId> = signature
                .iter()
                .map(|param| match param {
                    Parameter::Context => context,
                    Parameter::Memory(bytes) => words[*bytes as usize / 8 - 1],
                    _ => number,
                })
                .collect();
            globals.push(builder.function(&format!("g{i}"), GLOBAL, int, &params));
        }
    }
    let local = builder.function("local", STATIC, int, &[]);
    let types_len = builder.types.len() as u32 * 4;
    let mut bytes = Vec::new();
    bytes.extend(0xeb9f_u16.to_ne_bytes());
    bytes.extend([1, 0]);
    for word in [24, 0, types_len, types_len, builder.strings.len() as u32] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(builder.types.iter().flat_map(|word| word.to_ne_bytes()));
    bytes.extend(&builder.strings);
    Image { bytes, globals, local }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_btf::Type;

    #[test]
    fn the_types_are_functions() {
        for kind in 0..SIGNATURES.len() * 2 {
            let id = image().globals[kind];
            assert!(matches!(btf().get(id), Some(Type::Func { .. })));
        }
        assert!(matches!(btf().get(local()), Some(Type::Func { .. })));
    }

    #[test]
    fn the_kernel_takes_them() {
        if crate::kernel::available_for("the_kernel_takes_them") {
            crate::kernel::load_btf(btf_image()).expect("good types");
        }
    }
}
