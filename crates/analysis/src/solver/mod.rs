//! Conditions over numbers of a fixed width, and whether they can hold.
//!
//! [`Terms`] keeps each term once and simplifies it when it is made. A [`Solver`] translates conditions to clauses (bit-blasting),
//! asks a SAT solver behind the trait [`Sat`], and gives a [`Model`], a proof that there is none, or the reason why it does not know.
//!
//! Terms have 1 to 64 bits; a condition is a term of one bit. Operations are those of SMT-LIB's bit vectors: a quotient by zero is all
//! ones, a remainder by zero the dividend, and a shift by the width or more gives zero (or the sign).

mod backend;
mod bits;
mod blast;
mod build;
mod cache;
mod check;
mod eval;
mod facts;
mod node;
mod prefer;
mod sat;
mod smt;
mod terms;

pub use backend::Batsat;
pub use check::{Answer, Solver, Unknown};
pub use eval::{Evaluator, Model};
pub use node::{Node, Term, Var};
pub use sat::{Lit, Outcome, Sat};
pub use smt::smt_lib;
pub use terms::Terms;
