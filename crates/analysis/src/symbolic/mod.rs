//! Programs run over unknown inputs: one input for each side of a branch, or a proof that there is none.
//!
//! [`explore`] runs a verified program with variables in the place of the packet's bytes and length, the fields of the context, what maps
//! hold, the time and random numbers. Registers hold terms over them, or pointers with a region. At a branch the solver says which sides can
//! be taken; a model of the conditions on the way is an input. Whatever is not modelled ends the path, and the branch sides that could have
//! come after it are given up with that reason, so that a side that is called unreachable is.

mod access;
mod alu;
mod ask;
mod assumed;
mod boundary;
mod bounds;
mod choose;
mod claim;
mod clock;
mod compare;
mod compare_packet;
mod compare_sent;
mod corner;
mod csum;
mod effects;
mod effort;
mod explorer;
mod fates;
mod fixed;
mod flow;
mod give_up;
mod goal;
mod goals;
mod helpers;
mod input;
mod join;
mod maps;
mod meet;
mod memory;
mod network;
mod options;
mod order;
mod plausible;
mod product;
mod property;
mod prove;
mod queue;
mod returns;
mod room;
mod settle;
mod source;
mod stack_live;
mod state;
mod step;
mod twin;
mod value;
mod waiting;

pub use bounds::{Assumption, Bounds};
pub use claim::Proof;
pub use compare::compare;
pub use explorer::explore;
pub use give_up::{GiveUp, Place};
pub use goal::{
    Boundary, Call, CallResult, Decided, Edge, Element, Fate, Goal, Goals, Input, Meets, Route, RouteOutcome,
    Side,
};
pub use options::{Exploration, Options, Progress};
pub use plausible::{Role, roles, set_checksums};
pub use property::{Formula, Moment, Number, Relation, Rest};
pub use prove::prove;
pub use twin::Comparison;
