//! bpftool as the oracle of the BTF reader: types of every fixture and of the running kernel print identically.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::common::{fixtures, section, skip};
use paceline_btf::{Btf, Composite, Enum, IntEncoding, SymbolLinkage, Type};

fn linkage(linkage: SymbolLinkage) -> &'static str {
    match linkage {
        SymbolLinkage::Static => "static",
        SymbolLinkage::Global => "global",
        SymbolLinkage::Extern => "extern",
    }
}

/// The types in the format of `bpftool btf dump ... format raw`.
fn raw(btf: &Btf) -> String {
    let mut text = String::new();
    for (id, ty) in btf.types().skip(1) {
        let name = ty.name().filter(|n| !n.is_empty()).map_or("(anon)", |n| btf.name(n));
        let kind = kind_of(ty);
        write!(text, "[{id}] {kind} '{name}'").expect("a String");
        text += &details(btf, ty);
        text.push('\n');
    }
    text
}

fn kind_of(ty: &Type) -> &'static str {
    match ty {
        Type::Void => "VOID",
        Type::Int(_) => "INT",
        Type::Ptr(_) => "PTR",
        Type::Array { .. } => "ARRAY",
        Type::Struct(_) => "STRUCT",
        Type::Union(_) => "UNION",
        Type::Enum(e) => ["ENUM", "ENUM64"][usize::from(e.wide)],
        Type::Forward { .. } => "FWD",
        Type::Typedef { .. } => "TYPEDEF",
        Type::Volatile(_) => "VOLATILE",
        Type::Const(_) => "CONST",
        Type::Restrict(_) => "RESTRICT",
        Type::Func { .. } => "FUNC",
        Type::FuncProto { .. } => "FUNC_PROTO",
        Type::Var { .. } => "VAR",
        Type::DataSection(_) => "DATASEC",
        Type::Float { .. } => "FLOAT",
        Type::DeclTag { .. } => "DECL_TAG",
        Type::TypeTag { .. } => "TYPE_TAG",
    }
}

fn details(btf: &Btf, ty: &Type) -> String {
    match ty {
        Type::Void => String::new(),
        Type::Int(int) => {
            let encoding = match int.encoding {
                IntEncoding::Unsigned => "(none)",
                IntEncoding::Signed => "SIGNED",
                IntEncoding::Char => "CHAR",
                IntEncoding::Bool => "BOOL",
            };
            let (size, offset, bits) = (int.size, int.bit_offset, int.bits);
            format!(" size={size} bits_offset={offset} nr_bits={bits} encoding={encoding}")
        }
        Type::Ptr(ty) | Type::Volatile(ty) | Type::Const(ty) | Type::Restrict(ty) => format!(" type_id={ty}"),
        Type::Typedef { ty, .. } | Type::TypeTag { ty, .. } => format!(" type_id={ty}"),
        Type::Array { element, index, count } => {
            format!(" type_id={element} index_type_id={index} nr_elems={count}")
        }
        Type::Struct(c) | Type::Union(c) => composite(btf, c),
        Type::Enum(e) => enumeration(btf, e),
        Type::Forward { union, .. } => format!(" fwd_kind={}", ["struct", "union"][usize::from(*union)]),
        Type::Func { proto, linkage: l, .. } => format!(" type_id={proto} linkage={}", linkage(*l)),
        Type::FuncProto { result, params } => {
            let mut text = format!(" ret_type_id={result} vlen={}", params.len());
            for p in params {
                let name = if p.name.is_empty() { "(anon)" } else { btf.name(p.name) };
                write!(text, "\n\t'{name}' type_id={}", p.ty).expect("a String");
            }
            text
        }
        Type::Var { ty, linkage: l, .. } => format!(" type_id={ty}, linkage={}", linkage(*l)),
        Type::DataSection(s) => {
            let mut text = format!(" size={} vlen={}", s.size, s.vars.len());
            for v in &s.vars {
                let kind = btf.get(v.ty).map_or("", kind_of);
                let name = btf.type_name(v.ty);
                write!(text, "\n\ttype_id={} offset={} size={} ({kind} '{name}')", v.ty, v.offset, v.size)
                    .expect("a String");
            }
            text
        }
        Type::Float { size, .. } => format!(" size={size}"),
        Type::DeclTag { ty, component, .. } => format!(" type_id={ty} component_idx={component}"),
    }
}

fn composite(btf: &Btf, c: &Composite) -> String {
    let mut text = format!(" size={} vlen={}", c.size, c.members.len());
    for m in &c.members {
        let name = if m.name.is_empty() { "(anon)" } else { btf.name(m.name) };
        write!(text, "\n\t'{name}' type_id={} bits_offset={}", m.ty, m.bit_offset).expect("a String");
        if m.bit_size != 0 {
            write!(text, " bitfield_size={}", m.bit_size).expect("a String");
        }
    }
    text
}

fn enumeration(btf: &Btf, e: &Enum) -> String {
    let encoding = if e.signed { "SIGNED" } else { "UNSIGNED" };
    let mut text = format!(" encoding={encoding} size={} vlen={}", e.size, e.values.len());
    for v in &e.values {
        let name = btf.name(v.name);
        match (e.signed, e.wide) {
            (true, true) => write!(text, "\n\t'{name}' val={}LL", v.value),
            (false, true) => write!(text, "\n\t'{name}' val={}ULL", v.value.cast_unsigned()),
            (_, false) => write!(text, "\n\t'{name}' val={}", v.value),
        }
        .expect("a String");
    }
    text
}

fn bpftool(path: &Path) -> Option<String> {
    let out =
        Command::new("bpftool").args(["btf", "dump", "file"]).arg(path).args(["format", "raw"]).output();
    let out = out.ok().filter(|out| out.status.success())?;
    String::from_utf8(out.stdout).ok()
}

fn compare(path: &Path, bytes: &[u8], theirs: &str) {
    let btf = Btf::parse(bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let ours = raw(&btf);
    for (number, (a, b)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(a, b, "{}, line {}: ours, theirs", path.display(), number + 1);
    }
    assert_eq!(ours.lines().count(), theirs.lines().count(), "{}", path.display());
    let written = Btf::parse(&btf.to_bytes());
    assert!(written.as_ref() == Ok(&btf), "{}: written and read again", path.display());
}

#[test]
fn types_are_what_bpftool_reads() {
    let mut compared = 0;
    for path in fixtures() {
        let bytes = std::fs::read(&path).expect("a fixture");
        let Some(types) = section(&bytes, ".BTF") else { continue };
        // bpftool accepts objects of native byte order only.
        if path.to_string_lossy().contains("big_endian") {
            Btf::parse(&types).expect("the reader takes either");
            continue;
        }
        let Some(theirs) = bpftool(&path) else { return skip("bpftool") };
        compare(&path, &types, &theirs);
        compared += 1;
    }
    assert!(compared > 20);
    let kernel = Path::new("/sys/kernel/btf/vmlinux");
    let Ok(bytes) = std::fs::read(kernel) else { return skip("the kernel's BTF") };
    let theirs = bpftool(kernel).expect("bpftool reads the kernel's BTF");
    compare(kernel, &bytes, &theirs);
}
