//! Program arrays as maps.

use paceline_spec::Errno;

use crate::create::{CreateErrorKind, REFERENCE_FLAGS, Request};
use crate::entries::Pair;
use crate::indices;
use crate::map_ops::{KeySpace, MapOps};
use crate::mode::UpdateMode;
use crate::prog_array::ProgArray;

pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
    indices::check(request, REFERENCE_FLAGS)?;
    request.check_value_is_one_of(&[4])?;
    Ok(Box::new(ProgArray::new(request)?))
}

impl MapOps for ProgArray {
    fn user_value_size(&self) -> usize {
        4
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        self.programs.get(key, 4, out)
    }

    fn set(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        if mode != UpdateMode::Any {
            return Err(Errno::EINVAL);
        }
        let index = self.programs.index(key).ok_or(Errno::E2BIG)?;
        self.put(index, Pair::from_value(value).first, None);
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        let index = self.programs.index(key).ok_or(Errno::E2BIG)?;
        if self.empty(index) { Ok(()) } else { Err(Errno::ENOENT) }
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::Entries(&self.programs)
    }

    fn prog_array(&self) -> Option<&ProgArray> {
        Some(self)
    }
}
