//! Grace periods: values that workers may still be using are neither freed nor reused.
//!
//! A [`Domain`] knows the workers by their [`Reader`]s. Each pins itself around a burst. To replace a value, first publish the new
//! one. Then pass the old one to [`Domain::retire`], which drops it after a grace period; or, for many values, collect several, get
//! a tag for them from [`Domain::advance`], and ask [`Domain::has_passed`] whether they may be reused.
//!
//! ```
//! use paceline_epoch::Domain;
//!
//! let domain = Domain::new();
//! let mut reader = domain.reader();
//! let burst = reader.pin();
//! let tag = domain.advance();
//! assert!(!domain.has_passed(tag));
//! drop(burst);
//! assert!(domain.has_passed(tag));
//! ```

#![deny(unsafe_code)]

mod defer;
mod domain;
mod fence;
mod garbage;
#[allow(unsafe_code, reason = "a pointer that is replaced under readers has no safe form")]
mod rcu;
mod slots;
mod sync;

pub use defer::{Deferral, defer_drops};
pub use domain::{Domain, Pin, Reader};
pub use garbage::{Backlog, Limit, Stalled};
pub use rcu::Rcu;
pub use slots::{NoSlot, Slots};
