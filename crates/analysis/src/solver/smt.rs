//! Conditions as text for other solvers: SMT-LIB 2, logic `QF_BV`, whose definitions of operations are those of the terms here.

use std::fmt::Write;

use crate::solver::node::{Node, Term};
use crate::solver::terms::Terms;

/// A script that asserts that conditions hold together. Each term is defined once, so that the text is as long as the terms are many.
/// Variables are named `v` and their number; nothing is asked and no option is set.
#[must_use]
pub fn smt_lib(terms: &Terms, conditions: &[Term]) -> String {
    let mut text = String::new();
    for term in terms.cone(conditions) {
        define(&mut text, terms, term);
    }
    for condition in conditions {
        // Writing to a string does not fail.
        let _ = writeln!(text, "(assert (= t{} #b1))", condition.0);
    }
    text
}

fn define(text: &mut String, terms: &Terms, term: Term) {
    let (number, width, node) = (term.0, terms.width(term), terms.node(term));
    let sort = format!("(_ BitVec {width})");
    if let Node::Var(var) = node {
        let _ = writeln!(text, "(declare-const v{} {sort})", var.number());
    }
    let _ = writeln!(text, "(define-fun t{number} () {sort} {})", value(node, width));
}

fn value(node: Node, width: u32) -> String {
    let both = |name: &str, a: Term, b: Term| format!("({name} t{} t{})", a.0, b.0);
    let bit = |condition: String| format!("(ite {condition} #b1 #b0)");
    match node {
        Node::Const(value) => format!("(_ bv{value} {width})"),
        Node::Var(var) => format!("v{}", var.number()),
        Node::Not(a) => format!("(bvnot t{})", a.0),
        Node::Add(a, b) => both("bvadd", a, b),
        Node::Sub(a, b) => both("bvsub", a, b),
        Node::Mul(a, b) => both("bvmul", a, b),
        Node::Udiv(a, b) => both("bvudiv", a, b),
        Node::Urem(a, b) => both("bvurem", a, b),
        Node::And(a, b) => both("bvand", a, b),
        Node::Or(a, b) => both("bvor", a, b),
        Node::Xor(a, b) => both("bvxor", a, b),
        Node::Shl(a, b) => both("bvshl", a, b),
        Node::Lshr(a, b) => both("bvlshr", a, b),
        Node::Ashr(a, b) => both("bvashr", a, b),
        Node::Concat(a, b) => both("concat", a, b),
        Node::Extract(a, low) => {
            format!("((_ extract {} {low}) t{})", u32::from(low) + width - 1, a.0)
        }
        Node::Eq(a, b) => bit(both("=", a, b)),
        Node::Ult(a, b) => bit(both("bvult", a, b)),
        Node::Ite(condition, a, b) => format!("(ite (= t{} #b1) t{} t{})", condition.0, a.0, b.0),
    }
}
