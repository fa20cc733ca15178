//! Uses of maps by a program.

use std::sync::Arc;

use paceline_isa::{Callee, Code, Imm64, Insn};
use paceline_maps::{Map, MapUser};
use paceline_spec::helper::Helper;

use crate::form::MalformedProgram;

/// The maps of a program that hold programs, and what runs must keep.
pub(crate) struct Uses {
    /// Makes the program a user of the maps that it names and that hold programs.
    pub(crate) tables: Vec<MapUser>,
    /// Whether runs are pinned, because others may remove programs or elements that the program uses.
    pub(crate) pins: bool,
}

impl Uses {
    /// The uses of a program with a context of this type.
    pub(crate) fn of(code: &Code, maps: &[Arc<Map>], kind: u64) -> Result<Self, MalformedProgram> {
        // Only the maps that it names: an object's programs of other types may use the other maps.
        let named = code.iter().filter_map(|(_, insn)| match insn {
            Insn::LoadImm64 { value: Imm64::MapIndex(index), .. } => maps.get(usize::try_from(*index).ok()?),
            _ => None,
        });
        let is_tail_call = |insn: &Insn| matches!(insn, Insn::Call(Callee::Helper(Helper::TAIL_CALL)));
        let tail_calls = code.iter().any(|(_, insn)| is_tail_call(insn));
        let mut uses = Self { tables: Vec::new(), pins: tail_calls };
        for map in named {
            uses.pins |= map.for_programs().frees_values();
            if map.for_programs().prog_array().is_some_and(|array| !array.admits(kind)) {
                return Err(MalformedProgram::ProgramArray { map: map.spec().name.clone() });
            }
            uses.tables.extend(MapUser::new(map));
        }
        Ok(uses)
    }
}
