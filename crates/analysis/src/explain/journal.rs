//! Elements of maps that a run may have changed, to be put back.
//!
//! They are saved before an instruction that may change them, or give the program a pointer to them: look-ups by the key of the
//! value that was found, `for_each` all elements, direct addresses of global data the whole section. `Host::rehearse` winds random
//! numbers back and gives events and traces to nobody.

use std::collections::HashSet;
use std::sync::Arc;

use paceline_engine::Observed;
use paceline_isa::{Callee, Imm64, Insn};
use paceline_maps::Map;
use paceline_spec::helper::{Arg, Callback, Helper};

/// The elements as they were before a run could change them. Order of use in LRU maps, queues, stacks and ring buffers are not kept.
#[derive(Default)]
pub(crate) struct Journal {
    /// Oldest first.
    saved: Vec<Saved>,
    seen: HashSet<(u32, Vec<u8>)>,
    /// A map of which the run is about to have the address of a value.
    looked_up: Option<Arc<Map>>,
}

/// An element as it was.
struct Saved {
    map: Arc<Map>,
    key: Vec<u8>,
    /// `None` if there was none.
    value: Option<Vec<u8>>,
}

impl Journal {
    /// Saves what the next instruction may change, or give the program a pointer to.
    pub(crate) fn note(&mut self, observed: &Observed<'_>) {
        if let Some(map) = self.looked_up.take()
            && let Some(key) = map.for_programs().key_at(observed.registers[0])
        {
            self.save(&map, key);
        }
        match observed.insn() {
            Some(Insn::LoadImm64 { value: Imm64::MapValueIndex { index, .. }, .. }) => {
                if let Some(map) = observed.map_at(*index).cloned() {
                    self.save(&map, vec![0; map.spec().key_size as usize]);
                }
            }
            Some(Insn::Call(Callee::Helper(id))) => {
                if let Some(helper) = Helper::from_imm(*id) {
                    self.note_call(observed, helper);
                }
            }
            _ => {}
        }
    }

    fn note_call(&mut self, observed: &Observed<'_>, helper: &Helper) {
        let args = helper.prototype.as_ref().map_or(&[][..], |prototype| prototype.args);
        let argument = |wanted: Arg| {
            let index = args.iter().position(|arg| *arg == wanted)?;
            observed.registers.get(index + 1).copied()
        };
        let Some(map) = argument(Arg::Map).and_then(|handle| observed.map(handle)).cloned() else { return };
        if helper.callback() == Some(Callback::Elements) {
            map.keys().into_iter().flatten().for_each(|key| self.save(&map, key));
        }
        let key =
            argument(Arg::MapKey).and_then(|address| observed.read(address, map.spec().key_size as usize));
        if let Some(key) = key {
            self.save(&map, key);
        }
        self.looked_up = Some(map);
    }

    fn save(&mut self, map: &Arc<Map>, key: Vec<u8>) {
        if self.seen.insert((map.id(), key.clone())) {
            let value = map.lookup(&key).ok();
            self.saved.push(Saved { map: Arc::clone(map), key, value });
        }
    }

    /// Puts everything back.
    pub(crate) fn undo(self) {
        for Saved { map, key, value: before } in self.saved.into_iter().rev() {
            let now = map.lookup(&key).ok();
            // A map that user space may not change is one that no program changes either, or was not read.
            let _ = match &before {
                _ if before == now => Ok(()),
                Some(value) => map.insert(&key, value),
                None => map.delete(&key),
            };
        }
    }
}
