//! Maps that outlive a program or serve several: shared between objects, and kept when an object is replaced.

use std::collections::BTreeMap;
use std::sync::Arc;

use paceline_maps::Map;
use paceline_spec::btf::{Btf, Type};
use paceline_spec::{MapKind, MapSpec};

use crate::{Collection, LoadOptions, Object, SetupError};

/// What two maps of one name do not have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// Their kinds.
    #[error("kinds differ")]
    Kind,
    /// The sizes of their keys.
    #[error("sizes of keys differ: {0} and {1} bytes")]
    KeySize(u32, u32),
    /// The sizes of their values.
    #[error("sizes of values differ: {0} and {1} bytes")]
    ValueSize(u32, u32),
    /// How much they hold.
    #[error("numbers of entries differ: {0} and {1}")]
    Entries(u32, u32),
    /// Their flags, or what else their kinds have.
    #[error("flags differ")]
    Flags,
    /// The locks, timers and pointers in their values.
    #[error("special fields of values differ")]
    Special,
    /// The maps that they hold.
    #[error("inner maps differ")]
    Inner,
    /// The global variables that they hold.
    #[error("variables differ")]
    Variables,
    /// They hold constants, which are part of a program.
    #[error("it holds constants")]
    Constants,
    /// They hold programs of their object.
    #[error("it holds programs")]
    Programs,
}

/// The first difference that keeps a map from being used in the place of another of the same name.
fn difference(wanted: &MapSpec, found: &MapSpec) -> Option<Difference> {
    let checks = [
        (wanted.frozen || found.frozen, Difference::Constants),
        (wanted.kind != found.kind, Difference::Kind),
        (wanted.kind == MapKind::ProgArray, Difference::Programs),
        (wanted.key_size != found.key_size, Difference::KeySize(wanted.key_size, found.key_size)),
        (wanted.value_size != found.value_size, Difference::ValueSize(wanted.value_size, found.value_size)),
        (wanted.max_entries != found.max_entries, Difference::Entries(wanted.max_entries, found.max_entries)),
        ((wanted.flags, wanted.extra) != (found.flags, found.extra), Difference::Flags),
        (wanted.special != found.special, Difference::Special),
    ];
    let first = checks.into_iter().find(|(differs, _)| *differs).map(|(_, difference)| difference);
    first.or_else(|| match (&wanted.inner, &found.inner) {
        (None, None) => None,
        (Some(wanted), Some(found)) => difference(wanted, found).map(|_| Difference::Inner),
        _ => Some(Difference::Inner),
    })
}

/// Names, places and types of the global variables in a map; `None` for other maps.
fn variables(object: &Object, spec: &MapSpec) -> Option<Vec<(String, u32, u32, String)>> {
    let btf: &Btf = object.btf.as_deref()?;
    let Type::DataSection(section) = btf.get(spec.value_type)? else { return None };
    let variable = |var: &paceline_spec::btf::SectionVar| {
        let ty = match btf.get(var.ty) {
            Some(Type::Var { ty, .. }) => btf.c_name(*ty),
            _ => String::new(),
        };
        (btf.type_name(var.ty).to_owned(), var.offset, var.size, ty)
    };
    Some(section.vars.iter().map(variable).collect())
}

/// Whether a map is a section of global data, whose meaning is known by the types of its variables alone.
fn is_section(spec: &MapSpec) -> bool {
    spec.name.starts_with('.')
}

impl Object {
    /// Loads the object with maps of others in the place of its own, by their names in this object. What the object
    /// itself would put into them is left out.
    ///
    /// # Errors
    /// [`SetupError`]; maps that are used in the place of others must be like them in all that a program can see.
    pub fn load_sharing(
        &self,
        options: &LoadOptions,
        shared: &BTreeMap<String, Arc<Map>>,
    ) -> Result<Collection, SetupError> {
        for (name, map) in shared {
            let spec = self.map(name).ok_or_else(|| SetupError::NoMap {
                map: name.clone(),
                names: self.maps.iter().map(|spec| spec.name.clone()).collect(),
            })?;
            let section = is_section(spec).then_some(Difference::Variables);
            if let Some(difference) = difference(spec, map.spec()).or(section) {
                return Err(SetupError::Differs { map: name.clone(), difference });
            }
        }
        self.load_with(options, |spec| shared.get(&spec.name).cloned())
    }

    /// Loads the object in the place of another, with the other's maps where name and shape agree, so that their contents
    /// survive. Also gives the names of the maps that were kept.
    ///
    /// Constants, and the programs in program arrays, are part of the programs and come from this object. Global
    /// variables are kept if all variables of their section are where they were and of the same types.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn load_after(
        &self,
        options: &LoadOptions,
        before: &Collection,
    ) -> Result<(Collection, Vec<String>), SetupError> {
        let kept = |spec: &MapSpec| {
            let map = before.map(&spec.name)?;
            let agrees = difference(spec, map.spec()).is_none();
            let theirs = before.object().map(&spec.name)?;
            let is_same = !is_section(spec)
                || variables(self, spec).is_some_and(|ours| Some(ours) == variables(before.object(), theirs));
            (agrees && is_same).then(|| Arc::clone(map))
        };
        let names =
            self.maps.iter().filter(|spec| kept(spec).is_some()).map(|spec| spec.name.clone()).collect();
        Ok((self.load_with(options, kept)?, names))
    }
}
