//! Programs that tags put into program arrays: `__attribute__((btf_decl_tag("tail:MAP/INDEX")))` at a function, as Cilium's loader
//! reads it (`resolveTailCalls` in `pkg/bpf/collection.go`).

use std::collections::HashSet;

use paceline_btf::{Btf, Type};
use paceline_spec::{InitialValue, MapSpec};

use super::error::LoadError;
use crate::error::MapProblem;
use crate::function::Functions;

/// Adds the tagged functions to the initial values of their maps, and returns their names: these are programs, also if they are `static`.
/// Tags that name no program array of the object have other readers.
pub(crate) fn collect(
    btf: &Btf,
    functions: &Functions<'_>,
    maps: &mut [MapSpec],
) -> Result<HashSet<String>, LoadError> {
    let known: HashSet<&str> = functions.iter().map(|(_, function)| function.name).collect();
    let mut programs = HashSet::new();
    for (_, ty) in btf.types() {
        let Type::DeclTag { name, ty, component: -1 } = ty else { continue };
        let Some((map, index)) = entry(btf.name(*name)) else { continue };
        let Some(Type::Func { name, .. }) = btf.get(*ty) else { continue };
        let name = btf.name(*name);
        let array = maps.iter_mut().find(|spec| spec.name == map && spec.kind.holds_programs());
        let Some(spec) = array.filter(|_| known.contains(name)) else { continue };
        let key = index.to_ne_bytes().to_vec();
        if spec.contents.iter().any(|(known, _)| *known == key) {
            return Err(LoadError::Map { map: map.to_owned(), problem: MapProblem::TwoPrograms(index) });
        }
        spec.contents.push((key, InitialValue::Program(name.to_owned())));
        programs.insert(name.to_owned());
    }
    Ok(programs)
}

/// Map and index of a tag.
fn entry(tag: &str) -> Option<(&str, u32)> {
    let (map, index) = tag.strip_prefix("tail:")?.rsplit_once('/')?;
    Some((map, index.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::entry;

    #[test]
    fn tags_name_a_map_and_an_index() {
        assert_eq!(entry("tail:cilium_calls/7"), Some(("cilium_calls", 7)));
        for other in ["tail:cilium_calls", "tail:calls/x", "tail:calls/-1", "calls/7", ""] {
            assert_eq!(entry(other), None, "{other}");
        }
    }
}
