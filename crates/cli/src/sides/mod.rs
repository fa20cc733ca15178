//! Two sides that run the same packets: programs, chains, engines or the kernel; what differs, and why. Knows no command.

mod compare;
mod differences;
mod found;
mod group;
mod ignored;
mod maps;
mod parting;
mod side;

pub(crate) use compare::compare;
pub(crate) use differences::Differences;
pub(crate) use found::{Found, find};
pub(crate) use ignored::Ignored;
pub(crate) use side::{Fate, Side, SideArgs, SideMaker, run_both};
