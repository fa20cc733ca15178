//! Values to bytes.

use std::cell::Cell;

use super::decode::{MOST_DEPTH, bitfield, is_char, section_part};
use super::{
    Btf, BtfError, ByteOrder, Composite, DataSection, Enum, Int, IntEncoding, Member, Type, TypeId, Value,
    ValueError, ValueProblem,
};
use crate::suggest;

/// Most bytes of a value: what the types ask for is allocated before anything is known to be there.
const MOST_BYTES: u64 = 1 << 26;

/// Most members that are looked at in the search for one name: anonymous structures that hold each other many times
/// have more of them than could ever be searched.
const MOST_LOOKS: usize = 1 << 20;

impl Btf {
    /// The bytes, in this machine's order, of a value of a type. What the value does not give is zero: members left
    /// out, elements and characters past the last given one.
    ///
    /// Numbers may be given as texts (`"0x50"`), enumerators by name or number, truth values as 0 and 1, members of
    /// nested anonymous structures and unions directly.
    ///
    /// # Errors
    /// When the value does not fit the type; the error names the place and, for misspelled names, the closest one.
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

struct Encoder<'a> {
    btf: &'a Btf,
    /// Members that may still be looked at in the search for a name.
    looks: Cell<usize>,
}

impl Encoder<'_> {
    /// `bytes` are zero, and as many as the type takes.
    fn value(&self, id: TypeId, value: &Value, bytes: &mut [u8], depth: usize) -> Result<(), ValueError> {
        if depth > MOST_DEPTH {
            return Err(BtfError::TooDeep(id).into());
        }
        let (resolved, ty) = self.btf.resolve(id)?;
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

    fn mismatch(&self, id: TypeId, expected: &'static str, value: &Value) -> ValueError {
        ValueProblem::Mismatch { ty: self.btf.c_name(id), expected, found: value.kind() }.into()
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

    /// The low `bits` bits of a number, which has to fit.
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
            _ => return self.ranged(id, value, bits, e.signed),
        };
        let named = e.values.iter().find(|v| self.btf.name(v.name) == name);
        let named = named.ok_or_else(|| ValueProblem::NoEnumerator {
            text: name.clone(),
            ty: self.btf.c_name(id),
            suggestion: suggest::nearest(name, e.values.iter().map(|v| self.btf.name(v.name)))
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
            // Rounding is what a C initializer does.
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
        let mut written = Written { mask: vec![0; bytes.len()], members: Vec::new() };
        for (name, value) in members {
            if written.members.iter().any(|(written, ..)| *written == name) {
                return Err(ValueProblem::Repeated(name.clone()).into());
            }
            self.looks.set(MOST_LOOKS);
            let (m, base) = match self.find_member(composite, name, 0, depth)? {
                Some(found) => found,
                None => return Err(self.no_member(id, composite, name)),
            };
            let within = |e: ValueError| e.within(&format!(".{name}"));
            self.member(id, m, base, value, bytes, depth, &mut written, name).map_err(within)?;
        }
        Ok(())
    }

    /// A member by name, also of nested anonymous structures; with the offset in bits of what it is a member of.
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
            suggestion: suggest::nearest(name, names).map(str::to_owned),
        }
        .into()
    }

    fn member_names<'c>(&'c self, composite: &'c Composite, names: &mut Vec<&'c str>, depth: usize) {
        /// Enough to find a misspelled name in.
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

    #[expect(clippy::too_many_arguments, reason = "the place of a member takes that many words")]
    fn member<'v>(
        &self,
        id: TypeId,
        m: &Member,
        base: u32,
        value: &Value,
        bytes: &mut [u8],
        depth: usize,
        written: &mut Written<'v>,
        name: &'v str,
    ) -> Result<(), ValueError> {
        let outside = || ValueError::from(BtfError::Width { ty: id });
        if let Some((offset, count)) = bitfield(self.btf, m)? {
            let raw = match self.btf.resolve(m.ty)?.1 {
                Type::Int(int) => self.int(m.ty, int, value, count)?,
                Type::Enum(e) => self.enumeration(m.ty, e, value, count)?,
                _ => return Err(outside()),
            };
            let start = base.saturating_add(offset);
            let mut part = vec![0; bytes.len()];
            let mut mask = vec![0; bytes.len()];
            put_bits(&mut part, start, count, raw).ok_or_else(outside)?;
            put_bits(&mut mask, start, count, u128::MAX).ok_or_else(outside)?;
            return written.merge(bytes, &part, &mask, name, (start, start.saturating_add(count)));
        }
        let size = usize::try_from(self.btf.size_of(m.ty)?).map_err(|_| outside())?;
        let offset = base.saturating_add(m.bit_offset);
        let start = offset as usize / 8;
        let range = start.checked_add(size).filter(|end| *end <= bytes.len()).map(|end| start..end);
        let range = range.ok_or_else(outside)?;
        let mut part = vec![0; size];
        self.value(m.ty, value, &mut part, depth + 1)?;
        let end = offset.saturating_add(u32::try_from(size).unwrap_or(u32::MAX).saturating_mul(8));
        let place = bytes.get_mut(range.clone()).ok_or_else(outside)?;
        written.merge_at(place, range.start, &part, name, (offset, end))
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
                suggestion: suggest::nearest(name, section.vars.iter().map(|v| self.btf.type_name(v.ty)))
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

/// Which bits of a structure have been written, and by which members: members of unions share bits, and may be given
/// together if they agree.
struct Written<'v> {
    mask: Vec<u8>,
    /// Name, first bit and past-the-last bit.
    members: Vec<(&'v str, u32, u32)>,
}

impl<'v> Written<'v> {
    fn merge(
        &mut self,
        bytes: &mut [u8],
        part: &[u8],
        part_mask: &[u8],
        name: &'v str,
        bits: (u32, u32),
    ) -> Result<(), ValueError> {
        let differs =
            bytes.iter().zip(part).zip(self.mask.iter().zip(part_mask)).any(|((old, new), masks)| {
                let (written, mask) = masks;
                (old ^ new) & written & mask != 0
            });
        if differs {
            return Err(self.disagreement(name, bits));
        }
        for ((byte, new), (written, mask)) in
            bytes.iter_mut().zip(part).zip(self.mask.iter_mut().zip(part_mask))
        {
            *byte = *byte & !mask | new & mask;
            *written |= mask;
        }
        self.members.push((name, bits.0, bits.1));
        Ok(())
    }

    /// The same for whole bytes, at an offset in bytes.
    fn merge_at(
        &mut self,
        place: &mut [u8],
        at: usize,
        part: &[u8],
        name: &'v str,
        bits: (u32, u32),
    ) -> Result<(), ValueError> {
        let mask = self.mask.iter_mut().skip(at).take(part.len());
        let mut differs = false;
        for ((byte, new), written) in place.iter_mut().zip(part).zip(mask) {
            differs |= (*byte ^ new) & *written != 0;
            *byte = *new;
            *written = 0xff;
        }
        if differs {
            return Err(self.disagreement(name, bits));
        }
        self.members.push((name, bits.0, bits.1));
        Ok(())
    }

    fn disagreement(&self, name: &str, (start, end): (u32, u32)) -> ValueError {
        let overlaps = |(_, s, e): &&(&str, u32, u32)| *s < end && start < *e;
        let first = self.members.iter().find(overlaps).map_or("", |(first, ..)| first);
        ValueProblem::Disagreement { first: first.to_owned(), second: name.to_owned() }.into()
    }
}

/// A whole number with its sign.
#[derive(Clone, Copy)]
enum Number {
    Negative(i128),
    Positive(u128),
}

impl Number {
    fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Bool(b) => Self::Positive(u128::from(*b)),
            Value::Signed(n) | Value::Enum { value: n, .. } => Self::from_signed(*n),
            Value::Unsigned(n) => Self::Positive(*n),
            Value::Pointer(n) => Self::Positive(u128::from(*n)),
            Value::Text(text) => Self::parse(text)?,
            Value::Float(_) | Value::Bytes(_) | Value::Array(_) | Value::Struct(_) => return None,
        })
    }

    fn from_signed(n: i128) -> Self {
        u128::try_from(n).map_or(Self::Negative(n), Self::Positive)
    }

    fn parse(text: &str) -> Option<Self> {
        let magnitude = |digits: &str| match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            Some(hex) => u128::from_str_radix(hex, 16).ok(),
            None => digits.parse().ok(),
        };
        match text.strip_prefix('-') {
            Some(digits) => 0i128.checked_sub_unsigned(magnitude(digits)?).map(Self::from_signed),
            None => magnitude(text).map(Self::Positive),
        }
    }

    const fn bits(self) -> u128 {
        match self {
            Self::Negative(n) => n.cast_unsigned(),
            Self::Positive(n) => n,
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Negative(n) => n.fmt(f),
            Self::Positive(n) => n.fmt(f),
        }
    }
}

/// Writes the low bytes of a number in this machine's order.
fn put_number(bytes: &mut [u8], number: u128) {
    let count = bytes.len().min(16);
    let wide = number.to_le_bytes();
    for (byte, new) in bytes.iter_mut().zip(wide.iter().take(count)) {
        *byte = *new;
    }
    if ByteOrder::NATIVE == ByteOrder::Big {
        bytes.reverse();
    }
}

/// Writes the low `count` bits of a number, the reverse of [`bits_at`](super::decode::bits_at).
fn put_bits(bytes: &mut [u8], offset: u32, count: u32, number: u128) -> Option<()> {
    if count > 64 {
        return None;
    }
    for i in 0..count {
        let at = offset.checked_add(i)?;
        let byte = bytes.get_mut(at as usize / 8)?;
        let (bit, shift) = match ByteOrder::NATIVE {
            ByteOrder::Little => (number >> i & 1, at % 8),
            ByteOrder::Big => (number >> (count - 1 - i) & 1, 7 - at % 8),
        };
        *byte = *byte & !(1 << shift) | u8::from(bit != 0) << shift;
    }
    Some(())
}
