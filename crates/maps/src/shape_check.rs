//! Shapes of Rust types against the types of C in an object.

use std::ops::Range;

use paceline_btf::{Btf, Composite, IntEncoding, Type, TypeId};
use thiserror::Error;

use crate::shape::{Shape, ShapeField};

/// Nesting of types: a structure of C that contains itself ends here.
const MAX_DEPTH: usize = 32;

/// A field of a Rust type is not that of the object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}the object has {expected}, the Rust type has {found}", of(.field))]
pub struct FieldMismatch {
    /// Path of the field, as `.peer.address`; empty for the type itself.
    pub field: String,
    /// What the object has.
    pub expected: String,
    /// What the Rust type has.
    pub found: String,
}

fn of(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!("{field}: ") }
}

/// Compares a Rust type with one of C, field by field: names, offsets, sizes, and signs of integers of more than a byte.
///
/// An array of bytes stands for anything of its size, and so does a field for a union; an array for a structure whose members are all of the
/// element's type; an integer for a pointer or enumeration, and for a structure with one member; a structure of one field for a scalar. A field
/// without a member must lie where the structure of C has padding or bitfields.
///
/// # Errors
/// The first field that differs.
pub fn check_shape(shape: &Shape, btf: &Btf, id: TypeId) -> Result<(), FieldMismatch> {
    Check { btf, path: Vec::new() }.check(shape, id)
}

struct Check<'a> {
    btf: &'a Btf,
    path: Vec<String>,
}

impl Check<'_> {
    fn check(&mut self, shape: &Shape, id: TypeId) -> Result<(), FieldMismatch> {
        let Ok((_, ty)) = self.btf.resolve(id) else { return Err(self.differs(shape, id)) };
        if self.path.len() > MAX_DEPTH || self.btf.size_of(id) != Ok(shape.size() as u64) {
            return Err(self.differs(shape, id));
        }
        match (shape, ty) {
            (Shape::Bytes(_), _) | (_, Type::Union(_)) => Ok(()),
            (Shape::Array { element: Shape::Int { size: 1, .. }, .. }, _) => Ok(()),
            (Shape::Int { .. }, Type::Ptr(_) | Type::Enum(_)) => Ok(()),
            (Shape::Int { size, signed }, Type::Int(int)) => {
                let is_same = *size == 1 || *signed == (int.encoding == IntEncoding::Signed);
                if is_same { Ok(()) } else { Err(self.differs(shape, id)) }
            }
            (Shape::Array { element, count }, Type::Array { element: ty, count: of, .. })
                if *count == *of as usize =>
            {
                self.inside("[]".to_owned(), element, *ty)
            }
            (Shape::Array { element, count }, Type::Struct(c)) if *count == c.members.len() => {
                self.elements(element, c)
            }
            (Shape::Struct(fields), Type::Struct(c)) => self.fields(shape, id, fields, c),
            (Shape::Struct([field]), _) => self.check(&field.shape, id),
            (_, Type::Struct(c)) => match &*c.members {
                [only] => self.inside(format!(".{}", self.btf.name(only.name)), shape, only.ty),
                _ => Err(self.differs(shape, id)),
            },
            _ => Err(self.differs(shape, id)),
        }
    }

    fn inside(&mut self, part: String, shape: &Shape, id: TypeId) -> Result<(), FieldMismatch> {
        self.path.push(part);
        self.check(shape, id)?;
        self.path.pop();
        Ok(())
    }

    /// The members of a structure, each as an element of an array.
    fn elements(&mut self, element: &Shape, c: &Composite) -> Result<(), FieldMismatch> {
        for (index, member) in c.members.iter().enumerate() {
            let name = format!(".{}", self.btf.name(member.name));
            let offset = index * element.size();
            if member.bit_size != 0 || member.bit_offset as usize != offset * 8 {
                self.path.push(name);
                return Err(self.misplaced(member.bit_offset, offset));
            }
            self.inside(name, element, member.ty)?;
        }
        Ok(())
    }

    fn fields(
        &mut self,
        shape: &Shape,
        id: TypeId,
        fields: &[ShapeField],
        c: &Composite,
    ) -> Result<(), FieldMismatch> {
        let mut members = Vec::new();
        self.members(c, 0, Depth::default(), &mut members);
        for field in fields {
            let name = field.name.trim_start_matches("r#");
            let Some(member) = members.iter().find(|member| member.name == name) else {
                self.padding(name, field, &members)?;
                continue;
            };
            self.path.push(format!(".{name}"));
            if member.bits.start != field.offset as u64 * 8 {
                return Err(self.misplaced(member.bits.start as u32, field.offset));
            }
            self.check(&field.shape, member.ty)?;
            self.path.pop();
        }
        let is_named =
            |member: &&Member| fields.iter().any(|field| field.name.trim_start_matches("r#") == member.name);
        match members.iter().filter(|member| member.is_needed).find(|member| !is_named(member)) {
            Some(member) => {
                self.path.push(format!(".{}", member.name));
                let found = format!("no such field in {shape}");
                Err(self.mismatch(self.btf.c_name(member.ty), found))
            }
            None if fields.is_empty() => Err(self.differs(shape, id)),
            None => Ok(()),
        }
    }

    /// A field that no member has the name of: not where there is one.
    fn padding(&mut self, name: &str, field: &ShapeField, members: &[Member]) -> Result<(), FieldMismatch> {
        let start = field.offset as u64 * 8;
        let bits = start..start + field.shape.size() as u64 * 8;
        let overlaps = |member: &&Member| {
            member.is_needed && member.bits.start < bits.end && bits.start < member.bits.end
        };
        let Some(member) = members.iter().find(overlaps) else { return Ok(()) };
        self.path.push(format!(".{name}"));
        let expected = format!("{} {} there", self.btf.c_name(member.ty), member.name);
        Err(self.mismatch(expected, field.shape.to_string()))
    }

    /// The members of a structure with those of anonymous ones, which C names alike.
    fn members(&self, c: &Composite, base: u64, depth: Depth, into: &mut Vec<Member>) {
        for member in &c.members {
            let start = base + u64::from(member.bit_offset);
            match self.btf.resolve(member.ty) {
                Ok((_, Type::Struct(inner))) if member.name.is_empty() && depth.levels < MAX_DEPTH => {
                    self.members(inner, start, depth.inside(false), into);
                }
                Ok((_, Type::Union(inner))) if member.name.is_empty() && depth.levels < MAX_DEPTH => {
                    self.members(inner, start, depth.inside(true), into);
                }
                _ => {
                    let size = self.btf.size_of(member.ty).unwrap_or(0) * 8;
                    let len = if member.bit_size == 0 { size } else { member.bit_size.into() };
                    // Of a union one member is enough, and no field of Rust is a bitfield.
                    let is_needed = !depth.in_union && member.bit_size == 0 && !member.name.is_empty();
                    let name = self.btf.name(member.name).to_owned();
                    into.push(Member { name, ty: member.ty, bits: start..start + len, is_needed });
                }
            }
        }
    }

    fn differs(&self, shape: &Shape, id: TypeId) -> FieldMismatch {
        self.mismatch(self.btf.c_name(id), shape.to_string())
    }

    fn misplaced(&self, bits: u32, offset: usize) -> FieldMismatch {
        self.mismatch(format!("it at offset {}", bits / 8), format!("it at offset {offset}"))
    }

    fn mismatch(&self, expected: String, found: String) -> FieldMismatch {
        FieldMismatch { field: self.path.concat(), expected, found }
    }
}

/// Anonymous structures and unions around a member.
#[derive(Clone, Copy, Default)]
struct Depth {
    levels: usize,
    in_union: bool,
}

impl Depth {
    fn inside(self, is_union: bool) -> Self {
        Self { levels: self.levels + 1, in_union: self.in_union || is_union }
    }
}

struct Member {
    name: String,
    ty: TypeId,
    bits: Range<u64>,
    /// Whether the Rust type must have it.
    is_needed: bool,
}
