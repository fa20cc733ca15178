//! Parsing of `.BTF` sections.

use super::error::BtfError;
use crate::reader::Reader;
use crate::types::{
    Btf, ByteOrder, Composite, DataSection, Enum, Enumerator, Int, IntEncoding, Member, Name, Param,
    SectionVar, SymbolLinkage, Type, TypeId,
};

pub(crate) const MAGIC: u16 = 0xeb9f;

/// The byte order, as determined by the magic number.
pub(crate) fn order_of(bytes: &[u8]) -> Result<ByteOrder, BtfError> {
    let magic = bytes.first_chunk().ok_or(BtfError::Truncated { offset: 0 })?;
    match u16::from_le_bytes(*magic) {
        MAGIC => Ok(ByteOrder::Little),
        magic if magic.swap_bytes() == MAGIC => Ok(ByteOrder::Big),
        magic => Err(BtfError::Magic(magic)),
    }
}

/// A part of `bytes` at an offset and size from the header.
pub(crate) fn part<'a>(
    bytes: &'a [u8],
    offset: u32,
    size: u32,
    part: &'static str,
) -> Result<&'a [u8], BtfError> {
    let start = offset as usize;
    start.checked_add(size as usize).and_then(|end| bytes.get(start..end)).ok_or(BtfError::Bounds {
        part,
        offset,
        size,
        len: bytes.len(),
    })
}

/// Maximum length of names and lines in bytes. Without a limit, many names that share one long string would take time quadratic in
/// its size.
const STRING_LIMIT: usize = 4096;

/// The string at an offset of a string section, truncated to 4096 bytes.
pub(crate) fn string_at(strings: &[u8], offset: u32) -> Option<&[u8]> {
    let rest = strings.get(offset as usize..).filter(|rest| !rest.is_empty())?;
    let window = rest.get(..STRING_LIMIT).unwrap_or(rest);
    let end = window.iter().position(|&b| b == 0).unwrap_or(window.len());
    window.get(..end)
}

impl Btf {
    /// Parses a `.BTF` section, or the kernel's `/sys/kernel/btf/vmlinux`, in either byte order.
    ///
    /// # Errors
    /// If the bytes are not BTF of version 1, or a record, name or type id is out of bounds.
    pub fn parse(bytes: &[u8]) -> Result<Self, BtfError> {
        let order = order_of(bytes)?;
        let mut header = Reader::new(bytes, order);
        header.u16()?;
        let version = header.take(2)?;
        if let &[version, _flags] = version
            && version != 1
        {
            return Err(BtfError::Version(version));
        }
        let header_size = header.u32()?;
        let (type_offset, type_size) = (header.u32()?, header.u32()?);
        let (string_offset, string_size) = (header.u32()?, header.u32()?);
        let body =
            bytes.get(header_size as usize..).ok_or(BtfError::Truncated { offset: header_size as usize })?;
        let strings = part(body, string_offset, string_size, "strings")?;
        if strings.first() != Some(&0) || strings.last() != Some(&0) {
            return Err(BtfError::Strings);
        }
        let types = parse_types(part(body, type_offset, type_size, "types")?, order, strings)?;
        let btf = Self { types, strings: strings.into() };
        btf.check_references()?;
        Ok(btf)
    }

    fn check_references(&self) -> Result<(), BtfError> {
        let last = TypeId::try_from(self.types.len() - 1).unwrap_or(TypeId::MAX);
        for (ty, t) in (0..).zip(&self.types) {
            let mut wrong = None;
            t.each_reference(|target| {
                if target > last {
                    wrong = Some(target);
                }
            });
            if let Some(target) = wrong {
                return Err(BtfError::TypeOutOfRange { ty, target, last });
            }
        }
        Ok(())
    }
}

impl Type {
    fn each_reference(&self, mut see: impl FnMut(TypeId)) {
        match self {
            Self::Void | Self::Int(_) | Self::Enum(_) | Self::Forward { .. } | Self::Float { .. } => {}
            Self::Ptr(ty) | Self::Volatile(ty) | Self::Const(ty) | Self::Restrict(ty) => see(*ty),
            Self::Typedef { ty, .. }
            | Self::Var { ty, .. }
            | Self::DeclTag { ty, .. }
            | Self::TypeTag { ty, .. }
            | Self::Func { proto: ty, .. } => see(*ty),
            Self::Array { element, index, .. } => {
                see(*element);
                see(*index);
            }
            Self::Struct(c) | Self::Union(c) => c.members.iter().for_each(|m| see(m.ty)),
            Self::FuncProto { result, params } => {
                see(*result);
                params.iter().for_each(|p| see(p.ty));
            }
            Self::DataSection(s) => s.vars.iter().for_each(|v| see(v.ty)),
        }
    }
}

fn parse_types(bytes: &[u8], order: ByteOrder, strings: &[u8]) -> Result<Vec<Type>, BtfError> {
    let utf8 = std::str::from_utf8(strings).ok();
    let mut parser = TypeParser { reader: Reader::new(bytes, order), strings, utf8, id: 0 };
    let mut types = vec![Type::Void];
    while !parser.reader.is_at_end() {
        parser.id = TypeId::try_from(types.len()).map_err(|_| BtfError::Truncated { offset: bytes.len() })?;
        types.push(parser.next_type()?);
    }
    Ok(types)
}

struct TypeParser<'a> {
    reader: Reader<'a>,
    strings: &'a [u8],
    /// The string section as text, if all of it is UTF-8; source lines may have another encoding.
    utf8: Option<&'a str>,
    /// The current type, for errors.
    id: TypeId,
}

impl TypeParser<'_> {
    fn next_type(&mut self) -> Result<Type, BtfError> {
        let name = self.name()?;
        let info = self.reader.u32()?;
        let size_or_type = self.reader.u32()?;
        let (count, kind, flag) = ((info & 0xffff) as usize, info >> 24 & 0x1f, info >> 31 != 0);
        Ok(match kind {
            1 => Type::Int(self.int(name, size_or_type)?),
            2 => Type::Ptr(size_or_type),
            3 => Type::Array {
                element: self.reader.u32()?,
                index: self.reader.u32()?,
                count: self.reader.u32()?,
            },
            4 => Type::Struct(self.composite(name, size_or_type, count, flag)?),
            5 => Type::Union(self.composite(name, size_or_type, count, flag)?),
            6 => Type::Enum(self.enumeration(name, size_or_type, count, flag, false)?),
            7 => Type::Forward { name, union: flag },
            8 => Type::Typedef { name, ty: size_or_type },
            9 => Type::Volatile(size_or_type),
            10 => Type::Const(size_or_type),
            11 => Type::Restrict(size_or_type),
            12 => Type::Func { name, proto: size_or_type, linkage: self.linkage(info & 0xffff)? },
            13 => Type::FuncProto { result: size_or_type, params: self.params(count)? },
            14 => {
                let linkage = self.reader.u32()?;
                Type::Var { name, ty: size_or_type, linkage: self.linkage(linkage)? }
            }
            15 => {
                let vars = self.many(count, 12, Self::section_var)?;
                Type::DataSection(DataSection { name, size: size_or_type, vars })
            }
            16 => Type::Float { name, size: size_or_type },
            17 => Type::DeclTag { name, ty: size_or_type, component: self.reader.u32()?.cast_signed() },
            18 => Type::TypeTag { name, ty: size_or_type },
            19 => Type::Enum(self.enumeration(name, size_or_type, count, flag, true)?),
            kind => return Err(BtfError::Kind { ty: self.id, kind }),
        })
    }

    fn name(&mut self) -> Result<Name, BtfError> {
        let name = self.reader.u32()?;
        let is_text = match self.utf8 {
            Some(utf8) => utf8.is_char_boundary(name as usize) && (name as usize) < utf8.len(),
            None => string_at(self.strings, name).is_some_and(|text| std::str::from_utf8(text).is_ok()),
        };
        is_text.then_some(Name(name)).ok_or(BtfError::NameOutOfRange { ty: self.id, name })
    }

    /// Reads `count` records of `size` bytes, after checking that enough bytes remain.
    fn many<T>(
        &mut self,
        count: usize,
        size: usize,
        read: impl Fn(&mut Self) -> Result<T, BtfError>,
    ) -> Result<Box<[T]>, BtfError> {
        if count > self.reader.room_for(size) {
            return Err(BtfError::Truncated { offset: self.reader.at() });
        }
        (0..count).map(|_| read(self)).collect()
    }

    fn int(&mut self, name: Name, size: u32) -> Result<Int, BtfError> {
        let info = self.reader.u32()?;
        let encoding = match info >> 24 & 0xf {
            0 => IntEncoding::Unsigned,
            e if e & 4 != 0 => IntEncoding::Bool,
            e if e & 2 != 0 => IntEncoding::Char,
            _ => IntEncoding::Signed,
        };
        let [bits, _, bit_offset, _] = info.to_le_bytes();
        let fits = u32::from(bits) + u32::from(bit_offset) <= size.saturating_mul(8);
        if !matches!(size, 1 | 2 | 4 | 8 | 16) || bits > 128 || !fits {
            return Err(BtfError::Width { ty: self.id });
        }
        Ok(Int { name, size, encoding, bit_offset, bits })
    }

    fn composite(&mut self, name: Name, size: u32, count: usize, flag: bool) -> Result<Composite, BtfError> {
        let members = self.many(count, 12, |p| {
            let (name, ty, offset) = (p.name()?, p.reader.u32()?, p.reader.u32()?);
            // With the flag set, the upper byte is the width of a bitfield (`BTF_MEMBER_BITFIELD_SIZE`).
            let [.., bit_size] = offset.to_le_bytes();
            Ok(match flag {
                true => Member { name, ty, bit_offset: offset & 0xff_ffff, bit_size },
                false => Member { name, ty, bit_offset: offset, bit_size: 0 },
            })
        })?;
        Ok(Composite { name, size, members })
    }

    fn enumeration(
        &mut self,
        name: Name,
        size: u32,
        count: usize,
        signed: bool,
        wide: bool,
    ) -> Result<Enum, BtfError> {
        if !matches!(size, 1 | 2 | 4 | 8) {
            return Err(BtfError::Width { ty: self.id });
        }
        let values = self.many(count, if wide { 12 } else { 8 }, |p| {
            let (name, low) = (p.name()?, p.reader.u32()?);
            let value = match (wide, signed) {
                (true, _) => (u64::from(p.reader.u32()?) << 32 | u64::from(low)).cast_signed(),
                (false, true) => i64::from(low.cast_signed()),
                (false, false) => i64::from(low),
            };
            Ok(Enumerator { name, value })
        })?;
        Ok(Enum { name, size, signed, wide, values })
    }

    fn params(&mut self, count: usize) -> Result<Box<[Param]>, BtfError> {
        self.many(count, 8, |p| Ok(Param { name: p.name()?, ty: p.reader.u32()? }))
    }

    fn section_var(&mut self) -> Result<SectionVar, BtfError> {
        Ok(SectionVar { ty: self.reader.u32()?, offset: self.reader.u32()?, size: self.reader.u32()? })
    }

    fn linkage(&self, linkage: u32) -> Result<SymbolLinkage, BtfError> {
        match linkage {
            0 => Ok(SymbolLinkage::Static),
            1 => Ok(SymbolLinkage::Global),
            2 => Ok(SymbolLinkage::Extern),
            linkage => Err(BtfError::Linkage { ty: self.id, linkage }),
        }
    }
}
