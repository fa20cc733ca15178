//! Keys of call sites.

use paceline_runtime::fault::Fault;
use paceline_runtime::host::Host;

use super::image::Image;
use crate::target::Target;

/// The key of a site: [`ByProgram`] or [`ByKey`].
pub trait Choice: Sealed + 'static {}

/// A dispatcher's key and the token.
type Words = (u64, u64);

/// The keys of calls.
pub trait Sealed {
    /// The argument that selects the program of a call.
    type Named<'a>: Copy;

    /// For a single packet.
    fn packet(named: Self::Named<'_>) -> Words;

    /// For a burst.
    fn burst(named: Self::Named<'_>) -> Words;

    /// Ensures that the host has its CPU in the per-CPU maps of the program.
    ///
    /// # Errors
    /// Another host has it, or the maps lack it.
    fn admit(named: Self::Named<'_>, image: &Image, host: &mut Host) -> Result<(), Box<Fault>>;
}

/// By the program: calls name a [`Target`]. Keys are the addresses of code, as in the seed, so that a dispatcher is nothing but
/// a faster way to jump to an address.
#[derive(Clone, Copy, Debug)]
pub struct ByProgram;

/// By a number, which is the key.
#[derive(Clone, Copy, Debug)]
pub struct ByKey;

impl Choice for ByProgram {}
impl Choice for ByKey {}

impl Sealed for ByProgram {
    type Named<'a> = &'a Target;

    #[inline(always)]
    fn packet(target: &Target) -> Words {
        (target.address(), target.token)
    }

    #[inline(always)]
    fn burst(target: &Target) -> Words {
        (target.burst_entry as usize as u64, target.token)
    }

    #[inline(always)]
    fn admit(target: &Target, _: &Image, host: &mut Host) -> Result<(), Box<Fault>> {
        // One comparison for most programs.
        if target.per_cpu.is_empty() { Ok(()) } else { host.admit(&target.per_cpu) }
    }
}

impl Sealed for ByKey {
    type Named<'a> = u64;

    #[inline(always)]
    fn packet(key: u64) -> Words {
        (key, 0)
    }

    #[inline(always)]
    fn burst(key: u64) -> Words {
        (key, 0)
    }

    /// In the maps of all targets at once, which takes no search; if the host cannot have its CPU in all of them, in those of the target.
    #[inline(always)]
    fn admit(key: u64, image: &Image, host: &mut Host) -> Result<(), Box<Fault>> {
        if image.per_cpu.is_empty() || host.is_admitted(&image.per_cpu) {
            Ok(())
        } else {
            admit_to_one(key, image, host)
        }
    }
}

#[cold]
#[inline(never)]
fn admit_to_one(key: u64, image: &Image, host: &mut Host) -> Result<(), Box<Fault>> {
    if host.admit(&image.per_cpu).is_ok() {
        return Ok(());
    }
    image.target(key).map_or(Ok(()), |target| host.admit(&target.per_cpu))
}
