//! Neighbors, as `ip -j neigh` prints them.

use serde_json::Value;

use super::error::Problem;
use crate::iproute::draft::Draft;
use crate::iproute::json::{Object, mac};

impl Draft {
    pub(crate) fn neighbor(&mut self, object: &Object) -> Result<(), Problem> {
        // `NUD_VALID`
        const VALID: [&str; 6] = ["PERMANENT", "NOARP", "REACHABLE", "PROBE", "STALE", "DELAY"];
        let states = object.get("state").and_then(Value::as_array);
        let is_valid = states.is_some_and(|states| {
            states.iter().any(|state| state.as_str().is_some_and(|state| VALID.contains(&state)))
        });
        if !is_valid {
            return Ok(());
        }
        let address = object.address("dst")?.ok_or(Problem::Missing("dst"))?;
        let interface = self.index_of(object.text("dev")?.ok_or(Problem::Missing("dev"))?)?;
        let header = self.builder.network().interface(interface).map_or(0, |interface| interface.header);
        let lladdr = match object.text("lladdr")? {
            Some(text) if header != 0 => mac("lladdr", text)?,
            _ => [0; 6],
        };
        self.builder.neighbor(interface, address, lladdr);
        Ok(())
    }
}
