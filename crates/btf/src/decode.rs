//! Decoding of bytes to values.

use crate::error::{BtfError, ValueError, ValueProblem};
use crate::types::{Btf, ByteOrder, Composite, DataSection, Enum, Int, IntEncoding, Member, Type, TypeId};
use crate::value::{MOST_DEPTH, Value};
use crate::written::{is_one_address, prefix_form, written_form};

/// Maximum number of parts (numbers, elements, members) of a value. Malformed types can describe far more parts than bytes: empty
/// elements, overlapping members.
const MOST_PARTS: usize = 1 << 20;
/// Number of bytes of names that count as one part.
const NAME_SHARE: usize = 16;

impl Btf {
    /// Decodes `bytes`, in native byte order, as a value of a type.
    ///
    /// # Errors
    /// If the number of bytes differs from the type's size, or the type is malformed.
    pub fn decode(&self, id: TypeId, bytes: &[u8]) -> Result<Value, ValueError> {
        self.decode_to(id, bytes, false)
    }

    /// The same, with addresses and numbers in network byte order as [`Value::Written`]: the types tell them, `__be32`, `__be16`,
    /// `struct in6_addr` and their like, and the names of arrays of bytes that are addresses, such as `h_dest`.
    ///
    /// # Errors
    /// As of [`decode`](Self::decode).
    pub fn decode_written(&self, id: TypeId, bytes: &[u8]) -> Result<Value, ValueError> {
        self.decode_to(id, bytes, true)
    }

    /// Decodes a key of a longest-prefix trie: the length of a prefix as 32 bits in native byte order, then an IPv4 or IPv6 address. It is
    /// [`Value::Written`] as `10.9.1.0/24`, unless its type says that there is more behind the length than an address.
    ///
    /// # Errors
    /// As of [`decode`](Self::decode).
    pub fn decode_prefix(&self, id: TypeId, key: &[u8]) -> Result<Value, ValueError> {
        match prefix_form(key).filter(|_| is_one_address(self, id)) {
            Some(text) => Ok(Value::Written { text, plain: Box::new(self.decode(id, key)?) }),
            None => self.decode_written(id, key),
        }
    }

    fn decode_to(&self, id: TypeId, bytes: &[u8], is_written: bool) -> Result<Value, ValueError> {
        let expected = self.size_of(id)?;
        if u64::try_from(bytes.len()) != Ok(expected) {
            return Err(ValueProblem::Length { expected, found: bytes.len() }.into());
        }
        Decoder { btf: self, is_written, parts: MOST_PARTS }.value(id, "", bytes, 0)
    }
}

impl Value {
    /// A key of a longest-prefix trie without a type: as of [`Btf::decode_prefix`], and bytes where it is no prefix of an address.
    #[must_use]
    pub fn untyped_prefix(key: &[u8]) -> Self {
        let plain = Self::Bytes(key.to_vec());
        match prefix_form(key) {
            Some(text) => Self::Written { text, plain: Box::new(plain) },
            None => plain,
        }
    }
}

impl From<ValueProblem> for ValueError {
    fn from(problem: ValueProblem) -> Self {
        Self { path: String::new(), problem: Box::new(problem) }
    }
}

impl From<BtfError> for ValueError {
    fn from(error: BtfError) -> Self {
        ValueProblem::Btf(error).into()
    }
}

impl ValueError {
    /// The same error, located in a member or element.
    pub(crate) fn within(mut self, part: &str) -> Self {
        self.path.insert_str(0, part);
        self
    }
}

/// Bit offset and width of a member that is a bitfield.
pub(crate) fn bitfield(btf: &Btf, m: &Member) -> Result<Option<(u32, u32)>, BtfError> {
    if m.bit_size != 0 {
        return Ok(Some((m.bit_offset, u32::from(m.bit_size))));
    }
    match btf.resolve(m.ty)?.1 {
        // Compilers before clang 7 encode the bitfield's width in the integer type.
        Type::Int(int) if u32::from(int.bits) != int.size * 8 || !m.bit_offset.is_multiple_of(8) => {
            Ok(Some((m.bit_offset.saturating_add(u32::from(int.bit_offset)), u32::from(int.bits))))
        }
        _ => Ok(None),
    }
}

/// The bits of a bitfield as an unsigned number; `None` if they are more than 64 or out of bounds.
pub(crate) fn bits_at(bytes: &[u8], offset: u32, count: u32) -> Option<u64> {
    if count > 64 {
        return None;
    }
    let mut value = 0u64;
    for i in 0..count {
        let at = offset.checked_add(i)?;
        let byte = u64::from(*bytes.get(at as usize / 8)?);
        match ByteOrder::NATIVE {
            ByteOrder::Little => value |= (byte >> (at % 8) & 1) << i,
            ByteOrder::Big => value = value << 1 | byte >> (7 - at % 8) & 1,
        }
    }
    Some(value)
}

/// A number of at most 16 bytes in native byte order.
fn number(bytes: &[u8]) -> Option<u128> {
    let mut wide = [0; 16];
    match ByteOrder::NATIVE {
        ByteOrder::Little => wide.get_mut(..bytes.len())?.copy_from_slice(bytes),
        ByteOrder::Big => wide.get_mut(16usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes),
    }
    Some(u128::from_ne_bytes(wide))
}

/// The low `bits` bits of a number, sign-extended.
fn sign_extend(value: u128, bits: u32) -> i128 {
    let unused = 128 - bits.clamp(1, 128);
    (value << unused).cast_signed() >> unused
}

fn int_value(int: &Int, raw: u128, bits: u32) -> Value {
    match int.encoding {
        IntEncoding::Bool => Value::Bool(raw != 0),
        IntEncoding::Signed | IntEncoding::Char => Value::Signed(sign_extend(raw, bits)),
        IntEncoding::Unsigned => Value::Unsigned(raw),
    }
}

/// Whether the elements of an array are characters.
pub(crate) fn is_char(btf: &Btf, element: TypeId) -> bool {
    match btf.resolve(element) {
        Ok((_, Type::Int(int))) => {
            int.size == 1 && (int.encoding == IntEncoding::Char || btf.name(int.name) == "char")
        }
        _ => false,
    }
}

/// The text in an array of characters, if it is printable and padded with zeros only.
fn printable(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let (text, rest) = bytes.split_at_checked(end)?;
    let text = std::str::from_utf8(text).ok()?;
    (rest.iter().all(|&b| b == 0) && !text.contains(char::is_control)).then(|| text.to_owned())
}

struct Decoder<'a> {
    btf: &'a Btf,
    /// Whether addresses are decoded as [`Value::Written`].
    is_written: bool,
    /// Remaining number of parts.
    parts: usize,
}

impl Decoder<'_> {
    fn spend(&mut self, parts: usize) -> Result<(), ValueError> {
        self.parts = self.parts.checked_sub(parts).ok_or(ValueProblem::TooManyParts(MOST_PARTS))?;
        Ok(())
    }

    /// The length of `bytes` is the type's size; `name` is that of the member or variable, empty where there is none.
    fn value(&mut self, id: TypeId, name: &str, bytes: &[u8], depth: usize) -> Result<Value, ValueError> {
        let plain = self.plain(id, name, bytes, depth)?;
        let text = if self.is_written { written_form(self.btf, id, name, bytes) } else { None };
        Ok(match text {
            Some(text) => Value::Written { text, plain: Box::new(plain) },
            None => plain,
        })
    }

    fn plain(&mut self, id: TypeId, name: &str, bytes: &[u8], depth: usize) -> Result<Value, ValueError> {
        self.spend(1)?;
        if depth > MOST_DEPTH {
            return Err(BtfError::TooDeep(id).into());
        }
        let (id, ty) = self.btf.resolve(id)?;
        let width = || ValueError::from(BtfError::Width { ty: id });
        Ok(match ty {
            Type::Int(int) if u32::from(int.bits) == int.size * 8 => {
                int_value(int, number(bytes).ok_or_else(width)?, u32::from(int.bits))
            }
            Type::Int(int) => {
                let raw = bits_at(bytes, u32::from(int.bit_offset), u32::from(int.bits)).ok_or_else(width)?;
                int_value(int, u128::from(raw), u32::from(int.bits))
            }
            Type::Ptr(_) => Value::Pointer(bytes.try_into().map(u64::from_ne_bytes).map_err(|_| width())?),
            Type::Enum(e) => {
                self.enumeration(e, number(bytes).ok_or_else(width)?, e.size.saturating_mul(8))?
            }
            Type::Float { .. } => match *bytes {
                [a, b, c, d] => Value::Float(f64::from(f32::from_ne_bytes([a, b, c, d]))),
                [a, b, c, d, e, f, g, h] => Value::Float(f64::from_ne_bytes([a, b, c, d, e, f, g, h])),
                _ => Value::Bytes(bytes.to_vec()),
            },
            Type::Array { element, count, .. } => self.array((*element, *count), name, bytes, depth)?,
            Type::Struct(c) | Type::Union(c) => {
                let mut members = Vec::new();
                self.members(id, c, bytes, depth, &mut members)?;
                Value::Struct(members)
            }
            Type::DataSection(section) => self.section(id, section, bytes, depth)?,
            Type::Var { name, ty, .. } => return self.value(*ty, self.btf.name(*name), bytes, depth + 1),
            _ => return Err(BtfError::NoSize(id).into()),
        })
    }

    fn enumeration(&mut self, e: &Enum, raw: u128, bits: u32) -> Result<Value, ValueError> {
        self.spend(e.values.len() / NAME_SHARE)?;
        let mask = u128::MAX >> (128 - bits.clamp(1, 128));
        let values = if e.is_cut() { &[] } else { &*e.values };
        let named = values.iter().find(|v| u128::from(v.value.cast_unsigned()) & mask == raw & mask);
        let value = if e.signed { sign_extend(raw, bits) } else { raw.cast_signed() };
        let name = named.map(|v| self.btf.name(v.name).to_owned());
        self.spend(name.as_ref().map_or(0, String::len) / NAME_SHARE)?;
        Ok(Value::Enum { name, value })
    }

    fn array(
        &mut self,
        (element, count): (TypeId, u32),
        name: &str,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Value, ValueError> {
        if is_char(self.btf, element)
            && let Some(text) = printable(bytes)
        {
            self.spend(bytes.len() / NAME_SHARE)?;
            return Ok(Value::Text(text));
        }
        let size = usize::try_from(self.btf.size_of(element)?).unwrap_or(usize::MAX);
        if size == 0 || count == 0 {
            return Ok(Value::Array(Vec::new()));
        }
        let mut elements = Vec::new();
        for (i, chunk) in bytes.chunks_exact(size).enumerate() {
            let value = self.value(element, name, chunk, depth + 1);
            let value = value.map_err(|e| e.within(&format!("[{i}]")))?;
            elements.push(value);
        }
        Ok(Value::Array(elements))
    }

    fn members(
        &mut self,
        id: TypeId,
        composite: &Composite,
        bytes: &[u8],
        depth: usize,
        members: &mut Vec<(String, Value)>,
    ) -> Result<(), ValueError> {
        for m in &composite.members {
            let name = self.btf.name(m.name);
            self.spend(name.len() / NAME_SHARE)?;
            self.member(id, m, bytes, depth, members).map_err(|e| match name {
                "" => e,
                name => e.within(&format!(".{name}")),
            })?;
        }
        Ok(())
    }

    fn member(
        &mut self,
        id: TypeId,
        m: &Member,
        bytes: &[u8],
        depth: usize,
        members: &mut Vec<(String, Value)>,
    ) -> Result<(), ValueError> {
        let outside = || ValueError::from(BtfError::Width { ty: id });
        let name = self.btf.name(m.name);
        if let Some((offset, count)) = bitfield(self.btf, m)? {
            let raw = u128::from(bits_at(bytes, offset, count).ok_or_else(outside)?);
            self.spend(1)?;
            let value = match self.btf.resolve(m.ty)?.1 {
                Type::Int(int) => int_value(int, raw, count),
                Type::Enum(e) => self.enumeration(e, raw, count)?,
                _ => return Err(outside()),
            };
            // Unnamed bitfields are padding.
            if !name.is_empty() {
                members.push((name.to_owned(), value));
            }
            return Ok(());
        }
        let size = usize::try_from(self.btf.size_of(m.ty)?).map_err(|_| outside())?;
        let start = m.bit_offset as usize / 8;
        let part = start.checked_add(size).and_then(|end| bytes.get(start..end)).ok_or_else(outside)?;
        match self.btf.resolve(m.ty)? {
            (inner, Type::Struct(c) | Type::Union(c)) if name.is_empty() => {
                self.spend(1)?;
                if depth > MOST_DEPTH {
                    return Err(BtfError::TooDeep(id).into());
                }
                self.members(inner, c, part, depth + 1, members)
            }
            _ => {
                let value = self.value(m.ty, name, part, depth + 1)?;
                members.push((name.to_owned(), value));
                Ok(())
            }
        }
    }

    fn section(
        &mut self,
        id: TypeId,
        section: &DataSection,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Value, ValueError> {
        let mut values = Vec::new();
        for var in &section.vars {
            let name = self.btf.type_name(var.ty);
            self.spend(name.len() / NAME_SHARE)?;
            let part = section_part(self.btf, var.ty, var.offset, bytes.len())?
                .and_then(|range| bytes.get(range))
                .ok_or(BtfError::Width { ty: id })?;
            let value =
                self.value(var.ty, name, part, depth + 1).map_err(|e| e.within(&format!(".{name}")))?;
            values.push((name.to_owned(), value));
        }
        Ok(Value::Struct(values))
    }
}

/// The byte range of a variable in its section, if it is within bounds.
pub(crate) fn section_part(
    btf: &Btf,
    ty: TypeId,
    offset: u32,
    len: usize,
) -> Result<Option<std::ops::Range<usize>>, BtfError> {
    let (start, size) = (offset as usize, btf.size_of(ty)?);
    let end = usize::try_from(size).ok().and_then(|size| start.checked_add(size));
    Ok(end.filter(|end| *end <= len).map(|end| start..end))
}
