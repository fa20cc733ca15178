//! The kernel as oracle.

pub use paceline_kernel::*;

/// Whether a test that needs the kernel can run; otherwise prints `SKIP name: reason`.
///
/// # Panics
/// If the kernel is not available and `PACELINE_REQUIRE_ALL=1` is set.
#[must_use]
pub fn available_for(name: &str) -> bool {
    match probe() {
        Ok(()) => true,
        Err(reason) => {
            crate::skip(name, &reason);
            false
        }
    }
}
