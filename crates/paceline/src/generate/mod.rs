//! Inputs for each side of each branch of a program, or for other goals, each of them run before it is called good.
//!
//! ```
//! use paceline::Object;
//! use paceline::generate::{Options, generate};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/vlan.o");
//! let object = Object::open(path)?;
//! let generated = generate(&object, &object.programs()[0], &Options::default())?;
//! assert!(generated.failures.is_empty());
//! for (goal, confirmed) in &generated.reached {
//!     println!("{}: {} bytes, {}", goal.slot(), confirmed.input.packet.len(), confirmed.verdict.name());
//! }
//! # Ok(())
//! # }
//! ```

mod confirm;
mod differences;
mod found;
mod goals;
mod left;
mod network;
mod paths;
mod receive;
mod run;
mod vary;
mod watch;

pub use paceline_analysis::symbolic::{
    Assumption, Bounds, Call, CallResult, Edge, Element, GiveUp, Goal, Goals, Input, Meets, Options, Place,
    Progress, Route, RouteOutcome, Side,
};

pub(crate) use confirm::Confirmer;
pub use differences::{CompareError, Difference, Differences, differences, differences_of_paths};
pub use found::{Confirmed, Failure, Further, GenerateError, Generated, Missed, Variant};
pub use goals::{generate, generate_watched};
pub use left::{Event, Handover, Target};
pub use network::{network, network_text};
pub use run::{Ran, burst, fill, host, outcome, run, run_in};
