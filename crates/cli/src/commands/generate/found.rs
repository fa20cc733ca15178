//! A program's generated inputs, in the order in which they are written.

use std::time::Duration;

use paceline::ProgramSpec;
use paceline::generate::{Confirmed, Edge, Generated, Goal, Goals, Meets, Side, Variant};

/// A program with what was generated for it.
pub(super) struct Found {
    pub(super) program: ProgramSpec,
    pub(super) generated: Generated,
    /// The goal of the input.
    pub(super) goals: Goals,
    pub(super) time: Duration,
}

impl Found {
    /// The inputs that are written, with their goals and what is special about them.
    pub(super) fn inputs(&self) -> Vec<(Goal, Option<Variant>, &Confirmed)> {
        self.generated.inputs()
    }

    /// File and line of a slot, such as `firewall.bpf.c:181`.
    pub(super) fn place(&self, slot: usize) -> String {
        match self.program.line_of(slot).filter(|line| line.line > 0) {
            Some(line) => format!("{}:{}", file_name(&line.file), line.line),
            None => format!("{}+{slot}", self.program.name),
        }
    }

    /// The text of the source line of a slot.
    pub(super) fn text(&self, slot: usize) -> &str {
        self.program.line_of(slot).map_or("", |line| line.text.trim())
    }

    /// A goal in words: its place, and what happens there.
    pub(super) fn goal(&self, goal: Goal) -> String {
        let place = self.place(goal.slot());
        let slot = goal.slot();
        match goal {
            Goal::Side(Side { taken, .. }) => {
                format!("{place}, slot {slot} {}", if taken { "jumps" } else { "goes on" })
            }
            Goal::Return { verdict, .. } => format!("{place}, slot {slot} returns {}", verdict.name()),
            Goal::Operation { meets, .. } => format!("{place}, slot {slot} {}", met(meets)),
            Goal::Path { number, .. } => format!("path {}, to {place}", number + 1),
        }
    }

    /// An input in words: its goal, and what is special about it.
    pub(super) fn purpose(&self, goal: Goal, variant: Option<Variant>) -> String {
        let goal = self.goal(goal);
        match variant {
            None => goal,
            Some(Variant::Filled) => format!("{goal}, other bytes"),
            Some(Variant::Inverted) => format!("{goal}, inverted bytes"),
            Some(Variant::At(edge)) => format!("{goal}, {}", at(edge)),
            Some(Variant::Whole) => goal,
            Some(Variant::AtJump(slot, edge)) => {
                format!("{goal}, {} at {}, slot {slot}", at(edge), self.place(slot))
            }
        }
    }
}

/// The boundary of a comparison as text.
const fn at(edge: Edge) -> &'static str {
    match edge {
        Edge::Equal => "equal",
        Edge::Above => "one more",
        Edge::Below => "one less",
        Edge::Signs => "with other signs",
    }
}

/// The outcome of a map operation as text.
pub(super) const fn met(meets: Meets) -> &'static str {
    match meets {
        Meets::Found => "finds an element",
        Meets::NotFound => "finds no element",
        Meets::Full => "finds a full map",
    }
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
