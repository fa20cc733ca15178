//! Encoding of values to bytes.

use std::cell::Cell;

use crate::address::address_bytes;
use crate::decode::{bitfield, is_char, section_part};
use crate::error::{BtfError, ValueError, ValueProblem};
use crate::number::{Number, put_number};
use crate::overlay::{Clash, Overlay};
use crate::types::{Btf, Composite, DataSection, Enum, Int, IntEncoding, Member, Type, TypeId};
use crate::value::{MOST_DEPTH, Value};

/// Maximum size of a value in bytes: memory is allocated by the type's size before the value is examined.
const MOST_BYTES: u64 = 1 << 26;

/// Maximum number of members that are searched for one name: anonymous structures that contain each other many times have more
/// members than can be searched.
const MOST_LOOKS: usize = 1 << 20;

impl Btf {
    /// Encodes a value of a type, in native byte order. Parts that the value lacks are zero: omitted members, elements and
    /// characters after the last one given.
    ///
    /// Numbers may be given as texts (`"0x50"`), enumerators by name or number, truth values as 0 and 1, members of nested
    /// anonymous structures and unions directly, and 2, 4, 6 or 16 bytes that are not characters as an address or a number in network
    /// byte order ([`address_bytes`]).
    ///
    /// # Errors
    /// If the value does not fit the type; the error has the position and, for misspelled names, the closest one.
    pub fn encode(&self, id: TypeId, value: &Value) -> Result<Vec<u8>, ValueError> {
        let size = self.size_of(id)?;
        if size > MOST_BYTES {
            return Err(ValueProblem::TooLarge(size).into());
        }
        let mut bytes = vec![0; usize::try_from(size).map_err(|_| ValueProblem::TooLarge(size))?];
        Encoder { btf: self, looks: Cell::new(MOST_LOOKS) }.value(id, value, &mut bytes, 0)?;
        Ok(bytes)
    }
}

/// Most characters of a text that a message repeats.
const MOST_TEXT: usize = 60;

/// A value in a message: its kind, and what is short enough to repeat.
fn described(value: &Value) -> String {
    match value {
        Value::Text(text) if text.chars().nth(MOST_TEXT).is_none() => format!("the text `{text}`"),
        value => value.kind().to_owned(),
    }
}

struct Encoder<'a> {
    btf: &'a Btf,
    /// Remaining number of members that may be searched.
    looks: Cell<usize>,
}

impl Encoder<'_> {
    /// `bytes` are zero, and their length is the type's size.
    fn value(&self, id: TypeId, value: &Value, bytes: &mut [u8], depth: usize) -> Result<(), ValueError> {
        if depth > MOST_DEPTH {
            return Err(BtfError::TooDeep(id).into());
        }
        if let Value::Written { plain, .. } = value {
            return self.value(id, plain, bytes, depth);
        }
        let (resolved, ty) = self.btf.resolve(id)?;
        if let Value::Text(text) = value
            && self.may_hold_address(ty)
            && let Some(address) = address_bytes(text, bytes.len())
        {
            bytes.copy_from_slice(&address);
            return Ok(());
        }
        match ty {
            Type::Int(int) => {
                let raw = self.int(id, int, value, u32::from(int.bits))?;
                put_number(bytes, raw << int.bit_offset);
            }
            Type::Ptr(_) => put_number(bytes, self.ranged(id, value, 64, false)?),
            Type::Enum(e) => put_number(bytes, self.enumeration(id, e, value, e.size.saturating_mul(8))?),
            Type::Float { .. } => self.float(id, value, bytes)?,
            Type::Array { element, count, .. } => self.array(id, *element, *count, value, bytes, depth)?,
            Type::Struct(c) | Type::Union(c) => {
                let members = self.named(id, value)?;
                self.composite(resolved, c, members, bytes, depth)?;
            }
            Type::DataSection(section) => {
                let variables = self.named(id, value)?;
                self.section(id, section, variables, bytes, depth)?;
            }
            Type::Var { ty, .. } => self.value(*ty, value, bytes, depth + 1)?,
            _ => return Err(ValueProblem::NoValue(self.btf.c_name(id)).into()),
        }
        Ok(())
    }

    /// Whether a text that is an address of the type's size is parsed as one: for these types it has no other meaning.
    fn may_hold_address(&self, ty: &Type) -> bool {
        match ty {
            Type::Int(int) => int.encoding != IntEncoding::Bool,
            Type::Array { element, .. } => !is_char(self.btf, *element),
            Type::Struct(_) | Type::Union(_) => true,
            _ => false,
        }
    }

    fn mismatch(&self, id: TypeId, expected: &'static str, value: &Value) -> ValueError {
        ValueProblem::Mismatch { ty: self.btf.c_name(id), expected, found: described(value) }.into()
    }

    fn named<'v>(&self, id: TypeId, value: &'v Value) -> Result<&'v [(String, Value)], ValueError> {
        match value {
            Value::Struct(members) => Ok(members),
            other => Err(self.mismatch(id, "a structure", other)),
        }
    }

    /// The low `bits` bits of an integer's value.
    fn int(&self, id: TypeId, int: &Int, value: &Value, bits: u32) -> Result<u128, ValueError> {
        let as_bool = match value {
            Value::Bool(b) => Some(*b),
            Value::Text(text) if int.encoding == IntEncoding::Bool => text.parse().ok(),
            _ => None,
        };
        match (int.encoding, as_bool) {
            (IntEncoding::Bool, Some(b)) => Ok(u128::from(b)),
            (IntEncoding::Bool, None) => self.ranged(id, value, 1, false),
            (encoding, _) => self.ranged(id, value, bits, encoding != IntEncoding::Unsigned),
        }
    }

    /// The low `bits` bits of a number, with a range check.
    fn ranged(&self, id: TypeId, value: &Value, bits: u32, signed: bool) -> Result<u128, ValueError> {
        let number = Number::of(value).ok_or_else(|| self.mismatch(id, "a number", value))?;
        let unused = 128 - bits.clamp(1, 128);
        let (min, max) = match signed {
            true => (i128::MIN >> unused, (i128::MAX >> unused).cast_unsigned()),
            false => (0, u128::MAX >> unused),
        };
        let fits = match number {
            Number::Negative(n) => n >= min,
            Number::Positive(n) => n <= max,
        };
        if !fits {
            let value = number.to_string();
            return Err(ValueProblem::Range { value, ty: self.btf.c_name(id), min, max }.into());
        }
        Ok(number.bits() & u128::MAX >> unused)
    }

    fn enumeration(&self, id: TypeId, e: &Enum, value: &Value, bits: u32) -> Result<u128, ValueError> {
        let name = match value {
            Value::Text(text) if Number::of(value).is_none() => text,
            // The sign is cut as well.
            _ => {
                let is_negative = matches!(Number::of(value), Some(Number::Negative(_)));
                return self.ranged(id, value, bits, e.signed || e.is_cut() && is_negative);
            }
        };
        if e.is_cut() {
            return Err(ValueProblem::CutEnumerator { text: name.clone(), ty: self.btf.c_name(id) }.into());
        }
        let named = e.values.iter().find(|v| self.btf.name(v.name) == name);
        let named = named.ok_or_else(|| ValueProblem::NoEnumerator {
            text: name.clone(),
            ty: self.btf.c_name(id),
            suggestion: paceline_suggest::nearest(name, e.values.iter().map(|v| self.btf.name(v.name)))
                .map(str::to_owned),
        })?;
        let mask = u128::MAX >> (128 - bits.clamp(1, 128));
        Ok(i128::from(named.value).cast_unsigned() & mask)
    }

    fn float(&self, id: TypeId, value: &Value, bytes: &mut [u8]) -> Result<(), ValueError> {
        let number = match (value, Number::of(value)) {
            (Value::Float(n), _) => *n,
            (Value::Text(text), _) if text.parse::<f64>().is_ok() => text.parse().unwrap_or_default(),
            (_, Some(Number::Negative(n))) => n as f64,
            (_, Some(Number::Positive(n))) => n as f64,
            _ => return Err(self.mismatch(id, "a number", value)),
        };
        match bytes.len() {
            // Rounded, as in a C initializer.
            4 => bytes.copy_from_slice(&(number as f32).to_ne_bytes()),
            8 => bytes.copy_from_slice(&number.to_ne_bytes()),
            _ => return Err(BtfError::Width { ty: id }.into()),
        }
        Ok(())
    }

    fn array(
        &self,
        id: TypeId,
        element: TypeId,
        count: u32,
        value: &Value,
        bytes: &mut [u8],
        depth: usize,
    ) -> Result<(), ValueError> {
        let size = usize::try_from(self.btf.size_of(element)?).unwrap_or(usize::MAX);
        let fits = |found: usize| match u32::try_from(found) {
            Ok(found) if found <= count => Ok(()),
            _ => Err(ValueError::from(ValueProblem::Count { count, found })),
        };
        let given = match value {
            Value::Array(elements) => {
                fits(elements.len())?;
                for (i, (element_value, chunk)) in
                    elements.iter().zip(bytes.chunks_mut(size.max(1))).enumerate()
                {
                    self.value(element, element_value, chunk, depth + 1)
                        .map_err(|e| e.within(&format!("[{i}]")))?;
                }
                return Ok(());
            }
            Value::Text(text) if is_char(self.btf, element) => text.as_bytes(),
            Value::Bytes(given) if size == 1 => given,
            other => return Err(self.mismatch(id, "an array", other)),
        };
        fits(given.len())?;
        if let Some(place) = bytes.get_mut(..given.len()) {
            place.copy_from_slice(given);
        }
        Ok(())
    }

    fn composite(
        &self,
        id: TypeId,
        composite: &Composite,
        members: &[(String, Value)],
        bytes: &mut [u8],
        depth: usize,
    ) -> Result<(), ValueError> {
        let mut overlay = Overlay::new(bytes);
        for (name, value) in members {
            if overlay.has(name) {
                return Err(ValueProblem::Repeated(name.clone()).into());
            }
            self.looks.set(MOST_LOOKS);
            let Some((m, base)) = self.find_member(composite, name, 0, depth)? else {
                return Err(self.no_member(id, composite, name));
            };
            let within = |e: ValueError| e.within(&format!(".{name}"));
            let part = self.member(m, base, value, depth).map_err(within)?;
            let put = match part {
                Part::Bits { offset, count, number } => overlay.put_bits(name, offset, count, number),
                Part::Bytes { offset, bytes } => overlay.put_bytes(name, offset, &bytes),
            };
            put.map_err(|clash| within(self.clash(id, clash, name)))?;
        }
        Ok(())
    }

    fn clash(&self, id: TypeId, clash: Clash<'_>, name: &str) -> ValueError {
        match clash {
            Clash::Outside => BtfError::Width { ty: id }.into(),
            Clash::With(first) => {
                ValueProblem::Disagreement { first: first.to_owned(), second: name.to_owned() }.into()
            }
        }
    }

    /// A member by name, including those of nested anonymous structures; with the bit offset of its structure.
    fn find_member<'c>(
        &'c self,
        composite: &'c Composite,
        name: &str,
        base: u32,
        depth: usize,
    ) -> Result<Option<(&'c Member, u32)>, ValueError> {
        self.look(composite.members.len())?;
        if let Some(m) = composite.members.iter().find(|m| self.btf.name(m.name) == name && !name.is_empty())
        {
            return Ok(Some((m, base)));
        }
        if depth > MOST_DEPTH {
            return Ok(None);
        }
        for m in composite.members.iter().filter(|m| self.btf.name(m.name).is_empty()) {
            let (_, Type::Struct(inner) | Type::Union(inner)) = self.btf.resolve(m.ty)? else { continue };
            self.look(1)?;
            let base = base.saturating_add(m.bit_offset);
            if let Some(found) = self.find_member(inner, name, base, depth + 1)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn look(&self, members: usize) -> Result<(), ValueError> {
        let left = self.looks.get().checked_sub(members).ok_or(ValueProblem::TooManyParts(MOST_LOOKS))?;
        self.looks.set(left);
        Ok(())
    }

    fn no_member(&self, id: TypeId, composite: &Composite, name: &str) -> ValueError {
        let mut names = Vec::new();
        self.member_names(composite, &mut names, 0);
        ValueProblem::NoMember {
            name: name.to_owned(),
            ty: self.btf.c_name(id),
            suggestion: paceline_suggest::nearest(name, names).map(str::to_owned),
        }
        .into()
    }

    fn member_names<'c>(&'c self, composite: &'c Composite, names: &mut Vec<&'c str>, depth: usize) {
        /// Enough names for a suggestion.
        const MOST_NAMES: usize = 4096;
        for m in &composite.members {
            if depth > MOST_DEPTH || names.len() >= MOST_NAMES || self.look(1).is_err() {
                return;
            }
            match (self.btf.name(m.name), self.btf.resolve(m.ty)) {
                ("", Ok((_, Type::Struct(inner) | Type::Union(inner)))) => {
                    self.member_names(inner, names, depth + 1);
                }
                (name, _) => names.push(name),
            }
        }
    }

    /// The bits or bytes of a member; `base` is the bit offset of its structure.
    fn member(&self, m: &Member, base: u32, value: &Value, depth: usize) -> Result<Part, ValueError> {
        if let Some((offset, count)) = bitfield(self.btf, m)? {
            let number = match self.btf.resolve(m.ty)?.1 {
                Type::Int(int) => self.int(m.ty, int, value, count)?,
                Type::Enum(e) => self.enumeration(m.ty, e, value, count)?,
                _ => return Err(BtfError::Width { ty: m.ty }.into()),
            };
            return Ok(Part::Bits { offset: base.saturating_add(offset), count, number });
        }
        let size = self.btf.size_of(m.ty)?;
        if size > MOST_BYTES {
            return Err(ValueProblem::TooLarge(size).into());
        }
        let mut bytes = vec![0; usize::try_from(size).map_err(|_| ValueProblem::TooLarge(size))?];
        self.value(m.ty, value, &mut bytes, depth + 1)?;
        Ok(Part::Bytes { offset: base.saturating_add(m.bit_offset), bytes })
    }

    fn section(
        &self,
        id: TypeId,
        section: &DataSection,
        variables: &[(String, Value)],
        bytes: &mut [u8],
        depth: usize,
    ) -> Result<(), ValueError> {
        for (i, (name, value)) in variables.iter().enumerate() {
            if variables.iter().take(i).any(|(earlier, _)| earlier == name) {
                return Err(ValueProblem::Repeated(name.clone()).into());
            }
            let var = section.vars.iter().find(|var| self.btf.type_name(var.ty) == name);
            let var = var.ok_or_else(|| ValueProblem::NoMember {
                name: name.clone(),
                ty: self.btf.type_name(id).to_owned(),
                suggestion: paceline_suggest::nearest(
                    name,
                    section.vars.iter().map(|v| self.btf.type_name(v.ty)),
                )
                .map(str::to_owned),
            })?;
            let part = section_part(self.btf, var.ty, var.offset, bytes.len())?
                .and_then(|range| bytes.get_mut(range))
                .ok_or(BtfError::Width { ty: id })?;
            self.value(var.ty, value, part, depth + 1).map_err(|e| e.within(&format!(".{name}")))?;
        }
        Ok(())
    }
}

/// The encoded form of a member.
enum Part {
    /// The low bits of a number.
    Bits {
        /// Offset in bits.
        offset: u32,
        /// Width in bits.
        count: u32,
        /// The number.
        number: u128,
    },
    /// Byte-aligned.
    Bytes {
        /// Offset in bits.
        offset: u32,
        /// The bytes.
        bytes: Vec<u8>,
    },
}
