//! Local variables as facts.

use paceline_engine::Observed;
use paceline_isa::Reg;
use paceline_spec::ScalarKind;

use crate::explain::trace::{Fact, FactKind};

/// The variables that some registers hold before the instruction that runs, each once. `sources` are those of the registers' values:
/// they tell already whether an address is null.
pub(crate) fn variables(observed: &Observed<'_>, registers: [Option<Reg>; 2], sources: &[Fact]) -> Vec<Fact> {
    let mut facts = Vec::new();
    for register in registers.into_iter().flatten() {
        let number = register.number();
        let held = observed.registers.get(usize::from(number)).copied().unwrap_or_default();
        let variables = observed.program().variables_at(observed.slot, number);
        for variable in variables.filter(|v| sources.is_empty() || v.scalar.kind != ScalarKind::Pointer) {
            let name = variable.name.to_string();
            let fact = Fact { kind: FactKind::Variable, name, value: variable.text(held), not: Vec::new() };
            if !facts.contains(&fact) {
                facts.push(fact);
            }
        }
    }
    facts
}
