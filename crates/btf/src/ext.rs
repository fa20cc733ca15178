//! The `.BTF.ext` section: function and source line information of instructions, and CO-RE relocations.

use super::error::BtfError;
use crate::parse::{order_of, part};
use crate::reader::Reader;
use crate::types::{ByteOrder, Name, TypeId};

/// The records of one code section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtRecords<T> {
    /// Name of the section, a string of the `.BTF` section.
    pub section: Name,
    /// The records, in file order.
    pub records: Vec<T>,
}

/// Start of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuncRecord {
    /// Offset in bytes of its first instruction in the section.
    pub offset: u32,
    /// Its `FUNC` type.
    pub ty: TypeId,
}

/// Start of a source line's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRecord {
    /// Offset in bytes of the first instruction in the section.
    pub offset: u32,
    /// Offset of the file's name in the strings of `.BTF`.
    pub file: u32,
    /// Offset of the line's text in the strings of `.BTF`.
    pub text: u32,
    /// Line number from 1.
    pub line: u32,
    /// Column from 1, or 0 if unknown.
    pub column: u32,
}

/// Kind of a CO-RE relocation (`enum bpf_core_relo_kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoreKind {
    /// Offset of a field in bytes.
    FieldOffset,
    /// Size of a field in bytes.
    FieldSize,
    /// Whether a field exists.
    FieldExists,
    /// Whether a field is signed.
    FieldSigned,
    /// Left shift that moves a bitfield to the most significant bits of 64.
    FieldLeftShift,
    /// Right shift that moves it from there to the least significant bits.
    FieldRightShift,
    /// Id of a type in the object's own BTF.
    LocalTypeId,
    /// Id of a type in the target's BTF.
    TargetTypeId,
    /// Whether a type exists.
    TypeExists,
    /// Size of a type in bytes.
    TypeSize,
    /// Whether an enumerator exists.
    EnumeratorExists,
    /// Value of an enumerator.
    EnumeratorValue,
    /// Whether a type exists and matches the object's, including members.
    TypeMatches,
}

impl CoreKind {
    /// The kind with a number of `enum bpf_core_relo_kind`.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::FieldOffset,
            1 => Self::FieldSize,
            2 => Self::FieldExists,
            3 => Self::FieldSigned,
            4 => Self::FieldLeftShift,
            5 => Self::FieldRightShift,
            6 => Self::LocalTypeId,
            7 => Self::TargetTypeId,
            8 => Self::TypeExists,
            9 => Self::TypeSize,
            10 => Self::EnumeratorExists,
            11 => Self::EnumeratorValue,
            12 => Self::TypeMatches,
            _ => return None,
        })
    }

    /// The name in libbpf's messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FieldOffset => "byte_off",
            Self::FieldSize => "byte_sz",
            Self::FieldExists => "field_exists",
            Self::FieldSigned => "signed",
            Self::FieldLeftShift => "lshift_u64",
            Self::FieldRightShift => "rshift_u64",
            Self::LocalTypeId => "local_type_id",
            Self::TargetTypeId => "target_type_id",
            Self::TypeExists => "type_exists",
            Self::TypeSize => "type_size",
            Self::EnumeratorExists => "enumval_exists",
            Self::EnumeratorValue => "enumval_value",
            Self::TypeMatches => "type_matches",
        }
    }
}

/// An instruction that depends on the layout of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreRelocation {
    /// Offset in bytes of the instruction in the section.
    pub offset: u32,
    /// The root type, in the object's own BTF.
    pub ty: TypeId,
    /// Offset of the access path, such as `0:1:2`, in the strings of `.BTF`.
    pub access: u32,
    /// Kind of the relocation.
    pub kind: CoreKind,
}

/// The records of a `.BTF.ext` section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BtfExt {
    /// Functions.
    pub functions: Vec<ExtRecords<FuncRecord>>,
    /// Source lines.
    pub lines: Vec<ExtRecords<LineRecord>>,
    /// CO-RE relocations.
    pub relocations: Vec<ExtRecords<CoreRelocation>>,
}

/// Size in bytes of the header without the fields for CO-RE relocations, which old compilers omit.
const HEADER_WITHOUT_CORE: u32 = 24;

impl BtfExt {
    /// Parses a `.BTF.ext` section in either byte order.
    ///
    /// # Errors
    /// If the bytes are not `.BTF.ext` of version 1, or a record is out of bounds.
    pub fn parse(bytes: &[u8]) -> Result<Self, BtfError> {
        let order = order_of(bytes)?;
        let mut header = Reader::new(bytes, order);
        header.u16()?;
        if let &[version, _flags] = header.take(2)?
            && version != 1
        {
            return Err(BtfError::Version(version));
        }
        let size = header.u32()?;
        let body = bytes.get(size as usize..).ok_or(BtfError::Truncated { offset: size as usize })?;
        let mut records = |name| -> Result<_, BtfError> {
            Ok(Records { bytes: part(body, header.u32()?, header.u32()?, name)?, order, name })
        };
        let functions =
            records("function")?.sections(8, |r| Ok(FuncRecord { offset: r.u32()?, ty: r.u32()? }))?;
        let lines = records("line")?.sections(16, line_record)?;
        let relocations = match size > HEADER_WITHOUT_CORE {
            true => records("relocation")?.sections(16, core_relocation)?,
            false => Vec::new(),
        };
        Ok(Self { functions, lines, relocations })
    }
}

fn line_record(r: &mut Reader<'_>) -> Result<LineRecord, BtfError> {
    let (offset, file, text, position) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?);
    Ok(LineRecord { offset, file, text, line: position >> 10, column: position & 0x3ff })
}

fn core_relocation(r: &mut Reader<'_>) -> Result<CoreRelocation, BtfError> {
    let (offset, ty, access, kind) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?);
    let kind = CoreKind::from_number(kind).ok_or(BtfError::CoreKind(kind))?;
    Ok(CoreRelocation { offset, ty, access, kind })
}

/// One of the three parts: a record size, then for each section its name, the number of records, and the records.
struct Records<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
    name: &'static str,
}

impl Records<'_> {
    fn sections<T>(
        self,
        least: u32,
        read: impl Fn(&mut Reader<'_>) -> Result<T, BtfError>,
    ) -> Result<Vec<ExtRecords<T>>, BtfError> {
        let mut sections = Vec::new();
        if self.bytes.is_empty() {
            return Ok(sections);
        }
        let mut r = Reader::new(self.bytes, self.order);
        let size = r.u32()?;
        if size < least || size % 4 != 0 {
            return Err(BtfError::RecordSize { part: self.name, size });
        }
        while !r.is_at_end() {
            let section = Name(r.u32()?);
            let count = r.u32()? as usize;
            if count > r.room_for(size as usize) {
                return Err(BtfError::Truncated { offset: r.at() });
            }
            let one = |r: &mut Reader<'_>| read(&mut Reader::new(r.take(size as usize)?, self.order));
            let records = (0..count).map(|_| one(&mut r)).collect::<Result<_, _>>()?;
            sections.push(ExtRecords { section, records });
        }
        Ok(sections)
    }
}
