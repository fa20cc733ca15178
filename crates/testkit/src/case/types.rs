//! The `types` of a case: declarations in C, read into BTF.

use paceline_btf::{Btf, Composite, Int, IntEncoding, Member, Name, Param, SymbolLinkage, Type, TypeId};
use paceline_spec::{KfuncRef, Linkage};

use super::error::{ParseError, Problem};

/// Predefined integer types: the words of the type, its size in bytes and its encoding.
const INTEGERS: &[(&[&str], u32, IntEncoding)] = &[
    (&["char", "s8", "__s8"], 1, IntEncoding::Signed),
    (&["unsigned char", "u8", "__u8"], 1, IntEncoding::Unsigned),
    (&["bool", "_Bool"], 1, IntEncoding::Bool),
    (&["short", "s16", "__s16"], 2, IntEncoding::Signed),
    (&["unsigned short", "u16", "__u16"], 2, IntEncoding::Unsigned),
    (&["int", "s32", "__s32"], 4, IntEncoding::Signed),
    (&["unsigned int", "unsigned", "u32", "__u32"], 4, IntEncoding::Unsigned),
    (&["long", "s64", "__s64"], 8, IntEncoding::Signed),
    (&["unsigned long", "u64", "__u64"], 8, IntEncoding::Unsigned),
];

/// Maximum nesting of structures; more than any case has.
const MOST_DEPTH: usize = 16;

/// A function with a declared type.
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) linkage: Linkage,
    pub(super) id: TypeId,
    pub(super) line: usize,
}

/// The types of a case.
#[derive(Default)]
pub(super) struct Types {
    pub(super) btf: Btf,
    /// Functions of its programs.
    pub(super) functions: Vec<Declared>,
    /// Functions of the kernel.
    pub(super) kfuncs: Vec<KfuncRef>,
}

impl Types {
    /// Reads the lines of a block.
    pub(super) fn read(lines: &[(usize, &str)]) -> Result<Self, ParseError> {
        let mut reader = Reader { tokens: tokens(lines), at: 0, types: Self::default() };
        while reader.peek().is_some() {
            reader.declaration()?;
        }
        Ok(reader.types)
    }

    /// The type that a map names: the tag of a structure or union, or an integer.
    pub(super) fn named(&mut self, name: &str) -> Option<TypeId> {
        self.tagged(name).or_else(|| self.integer(name))
    }

    /// An opaque type of a size in bytes.
    pub(super) fn of_size(&mut self, bytes: u32) -> TypeId {
        match bytes {
            1 => self.unsigned("u8"),
            2 => self.unsigned("u16"),
            4 => self.unsigned("u32"),
            8 => self.unsigned("u64"),
            count => {
                let (element, index) = (self.unsigned("u8"), self.unsigned("u32"));
                self.btf.add(Type::Array { element, index, count })
            }
        }
    }

    /// The type of an undeclared function: `static int NAME(void)`, or `int NAME(void)`.
    pub(super) fn undeclared(&mut self, name: &str, linkage: Linkage) -> TypeId {
        let result = self.integer("int").unwrap_or_default();
        let proto = self.btf.add(Type::FuncProto { result, params: Box::default() });
        let name = self.btf.add_name(name);
        self.btf.add(Type::Func { name, proto, linkage: symbol_linkage(linkage) })
    }

    fn unsigned(&mut self, name: &str) -> TypeId {
        self.integer(name).unwrap_or_default()
    }

    fn tagged(&self, name: &str) -> Option<TypeId> {
        self.btf.find(name, |ty| matches!(ty, Type::Struct(_) | Type::Union(_)))
    }

    fn integer(&mut self, name: &str) -> Option<TypeId> {
        let &(names, size, encoding) = INTEGERS.iter().find(|(names, ..)| names.contains(&name))?;
        let name = names.first()?;
        self.btf.find(name, |ty| matches!(ty, Type::Int(_))).or_else(|| {
            let name = self.btf.add_name(name);
            let bits = u8::try_from(size * 8).ok()?;
            Some(self.btf.add(Type::Int(Int { name, size, encoding, bit_offset: 0, bits })))
        })
    }

    /// Alignment in bytes, by C's rules.
    fn align_of(&self, id: TypeId, depth: usize) -> u32 {
        let Ok((_, ty)) = self.btf.resolve(id) else { return 1 };
        match ty {
            _ if depth > MOST_DEPTH => 1,
            Type::Int(int) => int.size,
            Type::Ptr(_) => 8,
            Type::Array { element, .. } => self.align_of(*element, depth + 1),
            Type::Struct(c) | Type::Union(c) => {
                c.members.iter().map(|m| self.align_of(m.ty, depth + 1)).max().unwrap_or(1)
            }
            _ => 1,
        }
    }
}

fn symbol_linkage(linkage: Linkage) -> SymbolLinkage {
    match linkage {
        Linkage::Static => SymbolLinkage::Static,
        Linkage::Global => SymbolLinkage::Global,
    }
}

/// Component of a BTF declaration tag (`btf_decl_tag.component_idx`), and the tag.
type Tag = (i32, String);

/// A word or punctuation mark, and its line.
type Token<'a> = (usize, &'a str);

fn tokens<'a>(lines: &[(usize, &'a str)]) -> Vec<Token<'a>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    for &(line, text) in lines {
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let end = match is_word(first) {
                true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                false => first.len_utf8(),
            };
            let (token, after) = rest.split_at(end);
            tokens.push((line, token));
            rest = after.trim_start();
        }
    }
    tokens
}

struct Reader<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    types: Types,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).map(|&(_, token)| token)
    }

    /// The line of the next token, or of the last one.
    fn line(&self) -> usize {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(0, |&(line, _)| line)
    }

    fn next(&mut self, what: &'static str) -> Result<&'a str, ParseError> {
        let line = self.line();
        let token = self.peek().ok_or(ParseError { line, problem: Problem::Missing(what) })?;
        self.at += 1;
        Ok(token)
    }

    fn accept(&mut self, wanted: &str) -> bool {
        let is_next = self.peek() == Some(wanted);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, wanted: &'static str) -> Result<(), ParseError> {
        let error = self.not_a(wanted);
        if self.accept(wanted) { Ok(()) } else { Err(error) }
    }

    /// An error at the next token.
    fn not_a(&self, what: &'static str) -> ParseError {
        let problem = match self.peek() {
            Some(found) => Problem::NotA { what, found: found.to_owned() },
            None => Problem::Missing(what),
        };
        ParseError { line: self.line(), problem }
    }

    fn identifier(&mut self, what: &'static str) -> Result<&'a str, ParseError> {
        let is_name = |token: &str| token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !self.peek().is_some_and(is_name) {
            return Err(self.not_a(what));
        }
        self.next(what)
    }

    /// A structure, a union, or a function.
    fn declaration(&mut self) -> Result<(), ParseError> {
        let is_composite = matches!(self.peek(), Some("struct" | "union"))
            && self.tokens.get(self.at + 2).is_some_and(|&(_, token)| token == "{");
        if is_composite {
            self.composite()?;
            return self.expect(";");
        }
        self.function()
    }

    fn composite(&mut self) -> Result<TypeId, ParseError> {
        let is_union = self.next("struct or union")? == "union";
        let line = self.line();
        let name = self.identifier("name of a type")?;
        if self.types.tagged(name).is_some() {
            return Err(ParseError { line, problem: Problem::Twice(name.to_owned()) });
        }
        self.expect("{")?;
        let mut members = Vec::new();
        let (mut size, mut align) = (0u32, 1);
        while !self.accept("}") {
            let base = self.type_name()?;
            let (name, ty) = self.declarator(base)?;
            self.expect(";")?;
            let member_align = self.types.align_of(ty, 0);
            let start = if is_union { 0 } else { size.next_multiple_of(member_align) };
            members.push(Member { name, ty, bit_offset: start.saturating_mul(8), bit_size: 0 });
            size = size.max(start.saturating_add(self.size_of(ty)?));
            align = align.max(member_align);
        }
        let name = self.types.btf.add_name(name);
        let composite = Composite { name, size: size.next_multiple_of(align), members: members.into() };
        let ty = if is_union { Type::Union(composite) } else { Type::Struct(composite) };
        Ok(self.types.btf.add(ty))
    }

    fn size_of(&self, ty: TypeId) -> Result<u32, ParseError> {
        let size = self.types.btf.size_of(ty).ok().and_then(|size| u32::try_from(size).ok());
        let line = self.line();
        size.ok_or(ParseError { line, problem: Problem::Missing("size of the type") })
    }

    /// The specifier before a declarator: an integer, `void`, or the tag of a structure.
    fn type_name(&mut self) -> Result<TypeId, ParseError> {
        let is_const = self.accept("const");
        let error = self.not_a("type");
        let ty = match self.next("type")? {
            "void" => Some(0),
            "struct" | "union" => {
                let tag = self.identifier("name of a type")?;
                Some(self.types.tagged(tag).unwrap_or_else(|| self.forward(tag)))
            }
            "unsigned" => {
                let name = match self.peek() {
                    Some(word @ ("char" | "short" | "int" | "long")) => format!("unsigned {word}"),
                    _ => "unsigned".to_owned(),
                };
                self.at += usize::from(name.contains(' '));
                self.types.integer(&name)
            }
            word => self.types.integer(word),
        };
        let ty = ty.ok_or(error)?;
        Ok(if is_const { self.types.btf.add(Type::Const(ty)) } else { ty })
    }

    /// An incomplete structure.
    fn forward(&mut self, tag: &str) -> TypeId {
        let known = self.types.btf.find(tag, |ty| matches!(ty, Type::Forward { .. }));
        known.unwrap_or_else(|| {
            let name = self.types.btf.add_name(tag);
            self.types.btf.add(Type::Forward { name, union: false })
        })
    }

    fn pointers(&mut self, mut ty: TypeId) -> TypeId {
        while self.accept("*") {
            ty = self.types.btf.add(Type::Ptr(ty));
        }
        ty
    }

    /// `*NAME[COUNT]`
    fn declarator(&mut self, base: TypeId) -> Result<(Name, TypeId), ParseError> {
        let mut ty = self.pointers(base);
        let name = self.identifier("name")?;
        if self.accept("[") {
            let error = self.not_a("number of elements");
            let count = self.next("number of elements")?.parse().map_err(|_| error)?;
            self.expect("]")?;
            let index = self.types.unsigned("u32");
            ty = self.types.btf.add(Type::Array { element: ty, index, count });
        }
        Ok((self.types.btf.add_name(name), ty))
    }

    /// `[extern|static] RESULT NAME(PARAMETERS);`; with `extern` it is a kernel function.
    fn function(&mut self) -> Result<(), ParseError> {
        let is_kernels = self.accept("extern");
        let linkage = if self.accept("static") { Linkage::Static } else { Linkage::Global };
        let base = self.type_name()?;
        let result = self.pointers(base);
        let line = self.line();
        let name = self.identifier("name of a function")?;
        let is_known = self.types.functions.iter().any(|known| known.name == name)
            || self.types.kfuncs.iter().any(|known| known.name == name);
        if is_known {
            return Err(ParseError { line, problem: Problem::Twice(name.to_owned()) });
        }
        let (params, tags) = self.parameters()?;
        let proto = self.types.btf.add(Type::FuncProto { result, params: params.into() });
        let symbol = if is_kernels { SymbolLinkage::Extern } else { symbol_linkage(linkage) };
        let in_btf = self.types.btf.add_name(name);
        let id = self.types.btf.add(Type::Func { name: in_btf, proto, linkage: symbol });
        for (component, tag) in tags {
            let name = self.types.btf.add_name(&tag);
            self.types.btf.add(Type::DeclTag { name, ty: id, component });
        }
        let name = name.to_owned();
        if is_kernels {
            self.expect("__ksym")?;
            let weak = self.accept("__weak");
            self.types.kfuncs.push(KfuncRef { name, weak, btf_id: id, converted: false });
        } else {
            self.types.functions.push(Declared { name, linkage, id, line });
        }
        self.expect(";")
    }

    /// The parameters, and their tags: `__arg_nonnull` becomes the BTF tag `arg:nonnull`, as in `bpf_helpers.h`.
    fn parameters(&mut self) -> Result<(Vec<Param>, Vec<Tag>), ParseError> {
        let (mut params, mut tags) = (Vec::new(), Vec::new());
        self.expect("(")?;
        if self.peek() == Some("void") && self.tokens.get(self.at + 1).is_some_and(|&(_, token)| token == ")")
        {
            self.at += 1;
        }
        while !self.accept(")") {
            if !params.is_empty() {
                self.expect(",")?;
            }
            let base = self.type_name()?;
            let (name, ty) = self.declarator(base)?;
            while let Some(tag) = self.peek().and_then(|token| token.strip_prefix("__arg_")) {
                tags.push((i32::try_from(params.len()).unwrap_or(i32::MAX), format!("arg:{tag}")));
                self.at += 1;
            }
            params.push(Param { name, ty });
        }
        Ok((params, tags))
    }
}
