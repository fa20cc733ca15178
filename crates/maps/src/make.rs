//! Making maps.

use std::sync::Arc;

use paceline_spec::{MapFlags, MapSpec};

use crate::create::{CreateError, CreateErrorKind, Limits, Request};
use crate::kinds;
use crate::map::Map;

impl Map {
    /// Makes an empty map, after the kernel's checks for its kind; see [`fill`](Self::fill) for its initial
    /// elements. Declares no more memory than the limits allow.
    ///
    /// # Errors
    /// A [`CreateError`] that names the map and the first rule it breaks.
    pub fn create(spec: &MapSpec, limits: &Limits) -> Result<Arc<Self>, CreateError> {
        try_create(spec, limits).map_err(|cause| CreateError {
            name: spec.name.clone(),
            kind: spec.kind,
            cause,
        })
    }
}

fn try_create(spec: &MapSpec, limits: &Limits) -> Result<Arc<Map>, CreateErrorKind> {
    if limits.cpus == 0 {
        return Err(CreateErrorKind::NoCpus);
    }
    let spec = MapSpec { contents: Vec::new(), ..spec.clone() };
    let try_inner = |spec: &MapSpec, limits: &Limits| Ok(try_create(spec, limits)?.spec().clone());
    let mut request = Request { spec, limits, try_inner };
    request.check_user_access()?;
    if !request.spec.kind.rules().has_extra {
        request.check_extra_at_most(0)?;
    }
    let storage = kinds::open(&mut request)?;
    request.check_special_fields()?;
    if request.spec.kind.is_read_only() {
        request.spec.flags = request.spec.flags | MapFlags::RDONLY_PROG;
    }
    Map::new(request, storage)
}
