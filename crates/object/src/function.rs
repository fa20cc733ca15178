//! Functions: ranges of code sections, delimited by symbols.

use std::collections::HashMap;

use paceline_isa::RawInsn;
use paceline_spec::Linkage;

use super::error::LoadError;
use crate::elf_file::{ElfFile, Place, SymbolKind};

/// A function of the object.
#[derive(Debug)]
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    pub(crate) section: usize,
    /// First slot in its section.
    pub(crate) start: usize,
    /// End slot, exclusive.
    pub(crate) end: usize,
    pub(crate) linkage: Linkage,
    /// Whether its symbol is visible outside of the object: only such functions are programs.
    pub(crate) exported: bool,
}

/// The functions of an object by section and offset.
#[derive(Debug)]
pub(crate) struct Functions<'a> {
    list: Vec<Function<'a>>,
    by_start: HashMap<(usize, usize), usize>,
}

impl<'a> Functions<'a> {
    pub(crate) fn find_all(elf: &ElfFile<'a>) -> Result<Self, LoadError> {
        let mut list = Vec::new();
        for symbol in elf.symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Function) {
            let Place::Section(section) = symbol.place else { continue };
            let Some(s) = elf.sections.get(section).filter(|s| s.is_code()) else { continue };
            let (start, end) =
                slots(symbol.value, symbol.size, s.data.len()).ok_or_else(|| LoadError::FunctionBounds {
                    section: s.name.to_owned(),
                    function: symbol.name.to_owned(),
                    offset: symbol.value,
                    size: symbol.size,
                })?;
            // As in libbpf: hidden functions are verified like static ones, together with their callers.
            let linkage = if symbol.local || symbol.hidden { Linkage::Static } else { Linkage::Global };
            list.push(Function { name: symbol.name, section, start, end, linkage, exported: !symbol.local });
        }
        list.sort_by_key(|f| (f.section, f.start));
        let mut by_start = HashMap::new();
        for (index, function) in list.iter().enumerate() {
            by_start.entry((function.section, function.start)).or_insert(index);
        }
        Ok(Self { list, by_start })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Function<'a>)> {
        self.list.iter().enumerate()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Function<'a>> {
        self.list.get(index)
    }

    /// The function whose first slot is `slot` of `section`.
    pub(crate) fn starting_at(&self, section: usize, slot: i64) -> Option<usize> {
        self.by_start.get(&(section, usize::try_from(slot).ok()?)).copied()
    }
}

/// Start and end slot of a range of bytes, if it consists of whole slots within `len` bytes.
fn slots(offset: u64, size: u64, len: usize) -> Option<(usize, usize)> {
    let bytes = RawInsn::BYTES as u64;
    let end = offset.checked_add(size)?;
    if size == 0 || !offset.is_multiple_of(bytes) || !size.is_multiple_of(bytes) || end > len as u64 {
        return None;
    }
    Some((usize::try_from(offset / bytes).ok()?, usize::try_from(end / bytes).ok()?))
}

/// The slots of a function, as in its section.
pub(crate) fn decode_slots(data: &[u8], function: &Function<'_>) -> Vec<RawInsn> {
    let code = data.get(function.start * RawInsn::BYTES..function.end * RawInsn::BYTES).unwrap_or_default();
    let from_bytes =
        if cfg!(target_endian = "little") { RawInsn::from_le_bytes } else { RawInsn::from_be_bytes };
    code.as_chunks().0.iter().copied().map(from_bytes).collect()
}
