//! Queries of types.

use std::borrow::Cow;

use super::error::BtfError;
use crate::parse::string_at;
use crate::types::{Btf, DataSection, Name, Type, TypeId};

/// Maximum length of chains of typedefs, modifiers and arrays (`MAX_RESOLVE_DEPTH` of kernel and libbpf).
const MAX_DEPTH: usize = 32;

impl Type {
    /// The type's own name, if its kind has one.
    #[must_use]
    pub fn name(&self) -> Option<Name> {
        match self {
            Self::Int(int) => Some(int.name),
            Self::Struct(c) | Self::Union(c) => Some(c.name),
            Self::Enum(e) => Some(e.name),
            Self::DataSection(s) => Some(s.name),
            Self::Forward { name, .. }
            | Self::Typedef { name, .. }
            | Self::Func { name, .. }
            | Self::Var { name, .. }
            | Self::Float { name, .. }
            | Self::DeclTag { name, .. }
            | Self::TypeTag { name, .. } => Some(*name),
            Self::Void
            | Self::Ptr(_)
            | Self::Array { .. }
            | Self::Volatile(_)
            | Self::Const(_)
            | Self::Restrict(_)
            | Self::FuncProto { .. } => None,
        }
    }

    /// The underlying type of a typedef or modifier.
    #[must_use]
    pub fn unwrapped(&self) -> Option<TypeId> {
        match self {
            Self::Typedef { ty, .. } | Self::TypeTag { ty, .. } => Some(*ty),
            Self::Volatile(ty) | Self::Const(ty) | Self::Restrict(ty) => Some(*ty),
            _ => None,
        }
    }
}

impl Btf {
    /// The type with an id.
    #[must_use]
    pub fn get(&self, id: TypeId) -> Option<&Type> {
        self.types.get(id as usize)
    }

    /// The types with their ids, `void` first.
    pub fn types(&self) -> impl Iterator<Item = (TypeId, &Type)> {
        (0..).zip(&self.types)
    }

    /// The text of a name in this BTF; empty for no name.
    #[must_use]
    pub fn name(&self, name: Name) -> &str {
        string_at(&self.strings, name.0).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default()
    }

    /// The text at an offset of the string section. Invalid UTF-8 is replaced, as source lines may have any encoding.
    #[must_use]
    pub fn text(&self, offset: u32) -> Option<Cow<'_, str>> {
        string_at(&self.strings, offset).map(String::from_utf8_lossy)
    }

    /// The name of a type; empty if it has none or does not exist.
    #[must_use]
    pub fn type_name(&self, id: TypeId) -> &str {
        self.get(id).and_then(Type::name).map_or("", |name| self.name(name))
    }

    /// The first type with a name that satisfies `wanted`.
    #[must_use]
    pub fn find(&self, name: &str, wanted: impl Fn(&Type) -> bool) -> Option<TypeId> {
        let found = self.types().find(|(_, t)| wanted(t) && t.name().is_some_and(|n| self.is_named(n, name)));
        found.map(|(id, _)| id)
    }

    /// Whether a name equals `text`; takes time linear in the length of `text`.
    #[must_use]
    pub fn is_named(&self, name: Name, text: &str) -> bool {
        let rest = self.strings.get(name.0 as usize..).and_then(|s| s.strip_prefix(text.as_bytes()));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }

    /// The variables of a section.
    #[must_use]
    pub fn data_section(&self, name: &str) -> Option<(TypeId, &DataSection)> {
        let id = self.find(name, |t| matches!(t, Type::DataSection(_)))?;
        match self.get(id) {
            Some(Type::DataSection(section)) => Some((id, section)),
            _ => None,
        }
    }

    /// The type after typedefs and modifiers (`const`, `volatile`, `restrict`, type tags).
    ///
    /// # Errors
    /// If the type does not exist or the chain is longer than 32.
    pub fn resolve(&self, id: TypeId) -> Result<(TypeId, &Type), BtfError> {
        let mut at = id;
        for _ in 0..=MAX_DEPTH {
            let t = self.get(at).ok_or(BtfError::NoType(at))?;
            match t.unwrapped() {
                Some(next) => at = next,
                None => return Ok((at, t)),
            }
        }
        Err(BtfError::TooDeep(id))
    }

    /// Size of a type in bytes; 8 for pointers.
    ///
    /// # Errors
    /// If the type has no size, is nested too deep in arrays and typedefs, or its size overflows.
    pub fn size_of(&self, id: TypeId) -> Result<u64, BtfError> {
        let mut factor = 1u64;
        let mut at = id;
        for _ in 0..=MAX_DEPTH {
            let t = self.get(at).ok_or(BtfError::NoType(at))?;
            let size = match t {
                Type::Int(int) => u64::from(int.size),
                Type::Ptr(_) => 8,
                Type::Struct(c) | Type::Union(c) => u64::from(c.size),
                Type::Enum(e) => u64::from(e.size),
                Type::DataSection(s) => u64::from(s.size),
                Type::Float { size, .. } => u64::from(*size),
                Type::Array { element, count, .. } => {
                    factor = factor.checked_mul(u64::from(*count)).ok_or(BtfError::SizeOverflow(id))?;
                    at = *element;
                    continue;
                }
                Type::Var { ty, .. } => {
                    at = *ty;
                    continue;
                }
                other => {
                    at = other.unwrapped().ok_or(BtfError::NoSize(at))?;
                    continue;
                }
            };
            return factor.checked_mul(size).ok_or(BtfError::SizeOverflow(id));
        }
        Err(BtfError::TooDeep(id))
    }

    /// A type in C syntax, such as `struct flow_key *` or `__u32[4]`; for messages and listings.
    #[must_use]
    pub fn c_name(&self, id: TypeId) -> String {
        let mut after = String::new();
        let mut at = id;
        for _ in 0..MAX_DEPTH {
            let before = match self.get(at) {
                Some(Type::Ptr(ty)) => {
                    after.insert_str(0, " *");
                    at = *ty;
                    continue;
                }
                Some(Type::Array { element, count, .. }) => {
                    after.push_str(&format!("[{count}]"));
                    at = *element;
                    continue;
                }
                Some(
                    Type::Const(ty) | Type::Volatile(ty) | Type::Restrict(ty) | Type::TypeTag { ty, .. },
                ) => {
                    at = *ty;
                    continue;
                }
                Some(Type::Struct(_)) => self.tagged("struct", at),
                Some(Type::Union(_)) => self.tagged("union", at),
                Some(Type::Enum(_)) => self.tagged("enum", at),
                Some(Type::Forward { union, .. }) => self.tagged(if *union { "union" } else { "struct" }, at),
                Some(Type::Void) => "void".to_owned(),
                Some(Type::FuncProto { .. }) => "function".to_owned(),
                Some(_) => self.type_name(at).to_owned(),
                None => return format!("type {id}"),
            };
            return before + &after.replace("* *", "**");
        }
        format!("type {id}")
    }

    fn tagged(&self, keyword: &str, id: TypeId) -> String {
        match self.type_name(id) {
            "" => format!("{keyword} {{...}}"),
            name => format!("{keyword} {name}"),
        }
    }

    /// Sets the size of a section and the offsets of its variables, which compilers leave to the loader, and sorts the variables by
    /// offset. `offset_of` returns the offset of a variable by name, or `None` to keep it.
    pub fn lay_out_section(&mut self, id: TypeId, size: u32, offset_of: impl Fn(&str) -> Option<u32>) {
        let Some(Type::DataSection(section)) = self.get(id) else { return };
        let mut vars = section.vars.clone();
        for var in &mut vars {
            if let Some(offset) = offset_of(self.type_name(var.ty)) {
                var.offset = offset;
            }
        }
        vars.sort_by_key(|var| var.offset);
        if let Some(Type::DataSection(section)) = self.types.get_mut(id as usize) {
            section.vars = vars;
            section.size = size;
        }
    }
}
