//! What is computed of a function's graph, for as long as the graph stays as it is.

use std::rc::Rc;

use crate::cfg::{Cfg, Dominators};
use crate::function::Function;

/// Graph and dominators of a function, each computed when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct Analyses {
    cfg: Option<Rc<Cfg>>,
    dominators: Option<Rc<Dominators>>,
}

impl Analyses {
    pub(crate) fn cfg(&mut self, function: &Function) -> Rc<Cfg> {
        Rc::clone(self.cfg.get_or_insert_with(|| Rc::new(Cfg::of(function))))
    }

    pub(crate) fn dominators(&mut self, function: &Function) -> Rc<Dominators> {
        let cfg = self.cfg(function);
        Rc::clone(self.dominators.get_or_insert_with(|| Rc::new(Dominators::of(&cfg))))
    }

    /// Drops all: blocks were added or removed, or ends have other targets.
    pub(crate) fn graph_changed(&mut self) {
        *self = Self::default();
    }

    /// Whether what is kept is true of the function.
    pub(crate) fn hold(&self, function: &Function) -> bool {
        self.cfg.as_ref().is_none_or(|cfg| **cfg == Cfg::of(function))
    }
}
