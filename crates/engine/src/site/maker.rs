//! How a site makes its images.

#[cfg(feature = "jit")]
use super::compile::{compile, is_native};
use super::error::{Fallback, UpdateError};
use super::image::Image;
use crate::target::Target;

/// How images are made.
#[derive(Clone, Copy)]
pub(super) struct Maker {
    /// Whether dispatchers are generated code.
    native: bool,
    /// For addresses as keys; keys are numbers otherwise.
    fallback: Option<Fallback>,
}

impl Maker {
    pub(super) fn by_program(fallback: Fallback) -> Self {
        Self { native: is_native(), fallback: Some(fallback) }
    }

    pub(super) fn by_key() -> Self {
        Self { native: is_native(), fallback: None }
    }

    #[cfg(feature = "variants")]
    pub(super) fn without_code(self) -> Self {
        Self { native: false, ..self }
    }

    /// An image without slots.
    pub(super) fn empty(self) -> Image {
        Image::searching(Vec::new(), self.fallback.is_some())
    }

    pub(super) fn make(self, targets: Vec<(u64, Target)>) -> Result<Image, UpdateError> {
        let image = Image::searching(targets, self.fallback.is_some());
        if self.native && !image.targets.is_empty() { compile(image, self.fallback) } else { Ok(image) }
    }
}

#[cfg(not(feature = "jit"))]
fn is_native() -> bool {
    false
}

#[cfg(not(feature = "jit"))]
fn compile(image: Image, _: Option<Fallback>) -> Result<Image, UpdateError> {
    Ok(image)
}
