//! Local variables of BPF objects by their DWARF (versions 2 to 5): names, types, and the registers that hold them.
//!
//! BTF describes types, functions and lines, but no local variables: which register holds one at which instruction is in `.debug_info` and
//! the location lists. [`locals`] returns those of scalar and pointer types; others live on the stack, where no branch compares them.
//!
//! The bytes may be hostile. The work is limited ([`locals`]), and what is malformed ends a unit without losing the ones before.

mod enumeration;
mod local;
mod name;
mod scalar;
mod scope;
mod unit;

use gimli::{Dwarf, NativeEndian, SectionId};

pub(crate) use local::Local;
use local::Reader;

/// Compilation units that are read; an object that is linked of several has one for each.
const MOST_UNITS: usize = 1024;

/// Locals by sections of an object whose relocations were applied. `section` returns the bytes of a section by its name, such as
/// `.debug_info`, and none where there is no such section. They are in the machine's byte order.
///
/// At most 1,024 units, a million entries of them, 65,536 ranges and 65,536 members of enumerations are read.
pub(crate) fn locals<'a>(section: impl Fn(&str) -> &'a [u8]) -> Vec<Local> {
    let load = |id: SectionId| Ok::<_, gimli::Error>(Reader::new(section(id.name()), NativeEndian));
    let Ok(dwarf) = Dwarf::load(load) else { return Vec::new() };
    let (mut units, mut found) = (dwarf.units(), unit::Found::default());
    for _ in 0..MOST_UNITS {
        let Ok(Some(header)) = units.next() else { break };
        // The next unit is where the length of this one says, whatever is wrong within.
        if let Ok(unit) = dwarf.unit(header) {
            let _ = unit::read(&dwarf, &unit, &mut found);
        }
    }
    found.locals
}
