//! What is computed of a function's graph, for as long as the graph stays as it is, and of its values, which keep their ranges.
//!
//! A pass that changes the graph says so, and graph and dominators are dropped; debug builds compare them after each pass. Ranges
//! stay right whatever passes make of the graph. Dominators are where the ways up from all predecessors meet (Cooper, Harvey and
//! Kennedy), and for graphs for which that takes too many steps those of Lengauer and Tarjan.

use std::rc::Rc;

use crate::ir::cfg::{Cfg, Dominators};
use crate::ir::function::Function;
use crate::ir::ranges::Ranges;

/// Graph and dominators of a function.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The graph.
    pub cfg: Rc<Cfg>,
    /// The dominator tree of it.
    pub dominators: Rc<Dominators>,
}

impl Graph {
    /// The graph and the dominators of a function.
    #[must_use]
    pub fn of(function: &Function) -> Self {
        Analyses::default().graph(function)
    }
}

/// Graph and dominators of a function, each computed when it is first asked for, and ranges of its values.
#[derive(Default)]
pub(crate) struct Analyses {
    cfg: Option<Rc<Cfg>>,
    dominators: Option<Rc<Dominators>>,
    ranges: Option<Ranges>,
    folded: Option<Folded>,
}

/// State of the last walk of `fold` or `gvn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Folded {
    /// The number of instructions before the walk, which does not visit those that it makes.
    pub(crate) insts: usize,
    /// Whether values and edges are unchanged since, so that ranges which hold in the whole function decide no branch.
    pub(crate) is_current: bool,
}

impl Analyses {
    pub(crate) fn cfg(&mut self, function: &Function) -> Rc<Cfg> {
        Rc::clone(self.cfg.get_or_insert_with(|| Rc::new(Cfg::of(function))))
    }

    pub(crate) fn dominators(&mut self, function: &Function) -> Rc<Dominators> {
        let cfg = self.cfg(function);
        Rc::clone(self.dominators.get_or_insert_with(|| Rc::new(Dominators::of(&cfg))))
    }

    pub(crate) fn graph(&mut self, function: &Function) -> Graph {
        Graph { cfg: self.cfg(function), dominators: self.dominators(function) }
    }

    /// Takes the ranges that are known; none if no pass has left any. Those of values stay right in whatever a pass makes of the function,
    /// because it makes equal values.
    pub(crate) fn take_ranges(&mut self) -> Option<Ranges> {
        self.ranges.take()
    }

    /// Keeps ranges for later passes.
    pub(crate) fn keep_ranges(&mut self, ranges: Ranges) {
        self.ranges = Some(ranges);
    }

    /// The last walk that folds, if there was one.
    pub(crate) fn folded(&self) -> Option<Folded> {
        self.folded
    }

    /// Notes a walk that folds.
    pub(crate) fn set_folded(&mut self, folded: Folded) {
        self.folded = Some(folded);
    }

    /// Notes that values were replaced, or edges removed or led elsewhere.
    pub(crate) fn values_changed(&mut self) {
        if let Some(folded) = &mut self.folded {
            folded.is_current = false;
        }
    }

    /// Drops what is known of the graph: blocks were added or removed, or ends have other targets.
    pub(crate) fn graph_changed(&mut self) {
        (self.cfg, self.dominators) = (None, None);
    }

    /// Whether what is kept is true of the function.
    pub(crate) fn hold(&self, function: &Function) -> bool {
        self.cfg.as_ref().is_none_or(|cfg| **cfg == Cfg::of(function))
    }
}
