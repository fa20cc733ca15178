//! Lists of all kinds, told apart by the fields of their entries.

use super::error::{NetworkError, Problem};
use crate::address::Family;
use crate::iproute::draft::Draft;
use crate::iproute::json::Object;
use crate::iproute::rule::rule;
use crate::rule::Rule;

impl Draft {
    /// Adds the entries of a list with this number.
    pub(crate) fn add_list(&mut self, list: usize, entries: &[Object]) -> Result<(), NetworkError> {
        let mut rules = Vec::new();
        for (entry, object) in entries.iter().enumerate().filter(|(_, object)| !object.0.is_empty()) {
            let place = |problem| NetworkError::Entry { list, entry: entry + 1, problem };
            self.add(object, &mut rules).map_err(place)?;
        }
        self.add_rules(rules);
        Ok(())
    }

    fn add(&mut self, object: &Object, rules: &mut Vec<(Option<Family>, Rule)>) -> Result<(), Problem> {
        if object.has("ifname") {
            self.interface(object)
        } else if object.has("interface") {
            self.setting(object)
        } else if object.has("priority") {
            rules.push(rule(object)?);
            Ok(())
        } else if object.has("lladdr") || object.has("state") {
            self.neighbor(object)
        } else if object.has("dst") {
            self.route(object)
        } else {
            Err(Problem::UnknownEntry)
        }
    }

    /// A list of rules belongs to a single family.
    fn add_rules(&mut self, rules: Vec<(Option<Family>, Rule)>) {
        if rules.is_empty() {
            return;
        }
        let told = rules.iter().find_map(|(family, _)| *family);
        let next = if self.has_rules[Family::V4 as usize] { Family::V6 } else { Family::V4 };
        let family = told.unwrap_or(next);
        self.has_rules[family as usize] = true;
        self.builder.rules(family, rules.into_iter().map(|(_, rule)| rule));
    }
}
