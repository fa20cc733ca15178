//! The lines that wrote the bytes of a map's value.

use std::collections::BTreeMap;
use std::sync::Arc;

use paceline_engine::{Arrival, ArrivalError, Host, Observed, Steer};
use paceline_isa::{Callee, Insn};
use paceline_maps::Map;
use paceline_spec::helper::Helper;
use paceline_spec::{LineInfo, ProgramSpec};

use crate::explain::explainer::Explainer;

/// Stores of a run that wrote the value of an element, by their source lines.
#[derive(Clone, Debug, Default)]
pub struct Writes {
    /// Program and index of its line, by the offset of each byte in the value; the last store counts.
    by_offset: BTreeMap<u64, (Arc<ProgramSpec>, usize)>,
}

impl Writes {
    /// The line that wrote a byte last; `None` if no instruction with a line did.
    #[must_use]
    pub fn line(&self, offset: usize) -> Option<&LineInfo> {
        let (program, line) = self.by_offset.get(&(offset as u64))?;
        program.lines.get(*line)
    }
}

impl Explainer {
    /// Runs the program over a packet, and says which lines wrote the values of a map that it looked up: of its only element, as all
    /// elements count as one. Helpers that write count as no writer.
    ///
    /// # Errors
    /// [`ArrivalError`].
    pub fn writes(
        &mut self,
        packet: &Arrival<'_>,
        host: &mut Host,
        map: &Arc<Map>,
    ) -> Result<Writes, ArrivalError> {
        let mut watch = Watch { map, is_looked_up: false, values: Vec::new(), writes: Writes::default() };
        self.steered(packet, host, |observed| {
            watch.see(observed);
            Steer::Follow
        })?;
        Ok(watch.writes)
    }
}

/// Watches for stores into the values of a map.
struct Watch<'a> {
    map: &'a Arc<Map>,
    /// Whether the last instruction looked up a value.
    is_looked_up: bool,
    /// Addresses of the values that were looked up.
    values: Vec<u64>,
    writes: Writes,
}

impl Watch<'_> {
    fn see(&mut self, observed: &Observed<'_>) {
        if std::mem::take(&mut self.is_looked_up) && !self.values.contains(&observed.registers[0]) {
            self.values.extend(Some(observed.registers[0]).filter(|address| *address != 0));
        }
        match observed.insn() {
            Some(Insn::Call(Callee::Helper(id))) => {
                let is_lookup = Helper::from_imm(*id).is_some_and(|h| h.name == "bpf_map_lookup_elem");
                let map = observed.map(observed.registers[1]);
                self.is_looked_up = is_lookup && map.is_some_and(|map| map.id() == self.map.id());
            }
            Some(Insn::Store { size, base, offset, .. }) => {
                let base = observed.registers.get(usize::from(base.number())).copied().unwrap_or(0);
                self.store(observed, base.wrapping_add_signed(i64::from(*offset)), size.bytes() as u64);
            }
            _ => {}
        }
    }

    fn store(&mut self, observed: &Observed<'_>, address: u64, bytes: u64) {
        let size = u64::from(self.map.spec().value_size);
        let offsets = self.values.iter().map(|value| address.wrapping_sub(*value));
        let Some(offset) = offsets.filter(|offset| *offset < size).min() else { return };
        let lines = &observed.program().lines;
        let Some(line) = lines.partition_point(|line| line.slot <= observed.slot).checked_sub(1) else {
            return;
        };
        for byte in offset..offset + bytes {
            self.writes.by_offset.insert(byte, (Arc::clone(observed.program()), line));
        }
    }
}
