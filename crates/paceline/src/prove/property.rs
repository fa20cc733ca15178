//! Properties: predicates over a packet before and after a run, its verdict, and the maps.

use std::fmt;

use paceline_analysis::symbolic::Moment;
use paceline_capture::packet::{Field, Protocol};
use paceline_frame::Verdict;

/// A property of all runs of a program, as text: `eth.type == arp implies verdict != drop`.
#[derive(Clone, Debug)]
pub struct Property {
    pub(super) text: String,
    pub(super) root: Expr,
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Clone, Debug)]
pub(super) enum Expr {
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    /// The premise, the conclusion, and the premise as it was written.
    Implies(Box<Self>, Box<Self>, String),
    /// A packet has a header.
    Has(Moment, &'static Protocol),
    Verdict(Verdict),
    /// False if a value is not there.
    Compare(Comparison, Value, Value),
    /// The run changes a map, which is named at a column.
    Changes(String, usize),
}

impl Expr {
    /// The premises of implications that hold if the whole holds, each as what must hold for it and as text.
    pub(super) fn premises(&self) -> Vec<(Vec<&Self>, String)> {
        match self {
            Self::And(left, right) => [left.premises(), right.premises()].concat(),
            Self::Implies(premise, conclusion, text) => {
                let mut inner = conclusion.premises();
                if inner.is_empty() {
                    return vec![(vec![premise], text.clone())];
                }
                for (all, inner_text) in &mut inner {
                    all.insert(0, premise);
                    *inner_text = format!("({text}) and ({inner_text})");
                }
                inner
            }
            _ => Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Number(u128),
    Length(Moment),
    Returned,
    Field(Moment, &'static Protocol, &'static Field),
    /// Bytes from an offset to an end, or to the end of the packet.
    Bytes(Moment, usize, Option<usize>),
    Sum(Box<Self>, Box<Self>),
    Difference(Box<Self>, Box<Self>),
    Both(Box<Self>, Box<Self>),
}

/// What values of a form are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A number of at most 64 bits.
    Number,
    /// So many bytes, more than 8.
    Wide(usize),
    /// Bytes to the end of a packet.
    Rest,
}

impl Value {
    /// Bytes of the numbers that it may be, up to 8: no others are equal to it.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Bytes(_, start, Some(end)) => (end - start).min(8),
            Self::Returned => 4,
            _ => 8,
        }
    }

    /// Its form; that of a number says nothing about its size.
    pub(super) fn form(&self) -> Form {
        let bytes = match self {
            Self::Field(_, _, field) => field.bits.div_ceil(8),
            Self::Bytes(_, start, Some(end)) => end - start,
            Self::Bytes(_, _, None) => return Form::Rest,
            _ => return Form::Number,
        };
        if bytes <= 8 { Form::Number } else { Form::Wide(bytes) }
    }
}
