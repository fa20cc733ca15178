//! Passes: each makes a function better and keeps what it does.
//!
//! Passes reorder nothing: they remove, replace and move loads over operations that do not write what these read. What they rely
//! on: `inline` facts about what calls read; `fold` the verifier's domain; `simplify_cfg` and `returns` the graph alone; `mem2reg`
//! constant offsets, facts about what calls read, prototypes for what helpers write; `gvn` versions of memory and dominance;
//! `bounds` the dominator tree; `load_merge` where each byte of a number comes from; `dce` liveness of values, and of stack bytes by
//! facts; `layout` the program's layout and the dominator tree.

mod bounds;
mod dce;
mod fold;
mod gvn;
mod inline;
mod layout;
mod load_merge;
mod mem2reg;
mod returns;
mod simplify_cfg;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::internal::Internal;
use crate::ir::analyses::{Analyses, Graph};
use crate::ir::arena::Key;
use crate::ir::check::{CheckError, check, check_function};
use crate::ir::entity::FuncId;
use crate::ir::function::{Function, Module};
use crate::ir::{kinds, stack};

/// A pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pass {
    /// Calls of functions of the program that become a part of their callers. It is nothing for a function alone.
    Inline,
    /// Constants, algebra and known ranges.
    Fold,
    /// Simplification of the graph: blocks that are not reached, empty, or the only way to the next one; parameters that are always the same.
    SimplifyCfg,
    /// Memory to registers: parts of the stack that become values.
    Mem2reg,
    /// Global value numbering, with folding: equal values are computed once, among them loads with no store in between.
    Gvn,
    /// Branches that an earlier one has decided.
    Bounds,
    /// Merging of loads: one load for bytes that are joined to a number.
    LoadMerge,
    /// Dead code elimination: values and stores that nobody reads.
    Dce,
    /// Returns without a jump to them.
    Returns,
    /// The layout of blocks in code.
    Layout,
}

impl Pass {
    /// All passes.
    pub const ALL: [Self; 10] = [
        Self::Inline,
        Self::Fold,
        Self::SimplifyCfg,
        Self::Mem2reg,
        Self::Gvn,
        Self::Bounds,
        Self::LoadMerge,
        Self::Dce,
        Self::Returns,
        Self::Layout,
    ];

    /// The order in which [`optimize`] runs them. All others see what functions have in common that are inlined. Promoted values are
    /// numbered, and equal values make equal bounds; what was joined or decided folds again.
    pub const ORDER: [Self; 11] = [
        Self::Inline,
        Self::Mem2reg,
        Self::Gvn,
        Self::Bounds,
        Self::SimplifyCfg,
        Self::LoadMerge,
        Self::Fold,
        Self::Dce,
        Self::SimplifyCfg,
        Self::Returns,
        Self::Layout,
    ];

    /// The order in which [`optimize_chain`] runs them over programs that are optimized already: what a program has loaded and compared is
    /// known in the next one. A second round of numbering and bounds finds nothing in the examples' chains.
    pub const CHAIN_ORDER: [Self; 9] = [
        Self::SimplifyCfg,
        Self::Gvn,
        Self::Bounds,
        Self::SimplifyCfg,
        Self::Fold,
        Self::Dce,
        Self::SimplifyCfg,
        Self::Returns,
        Self::Layout,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Fold => "fold",
            Self::SimplifyCfg => "simplify_cfg",
            Self::Mem2reg => "mem2reg",
            Self::Gvn => "gvn",
            Self::Bounds => "bounds",
            Self::LoadMerge => "load_merge",
            Self::Dce => "dce",
            Self::Returns => "returns",
            Self::Layout => "layout",
        }
    }

    /// Runs it over a function. A pass that changes the graph says so to the analyses.
    fn run(self, function: &mut Function, analyses: &mut Analyses) {
        match self {
            Self::Inline => {}
            Self::Fold => fold::run(function, analyses),
            Self::SimplifyCfg => simplify_cfg::run(function, analyses),
            Self::Mem2reg => mem2reg::run(function, analyses),
            Self::Gvn => gvn::run(function, analyses),
            Self::Bounds => bounds::run(function, analyses),
            Self::LoadMerge => load_merge::run(function, analyses),
            Self::Dce => dce::run(function, analyses),
            Self::Returns => returns::run(function, analyses),
            Self::Layout => layout::run(function, analyses),
        }
        debug_assert!(analyses.hold(function), "pass {self} did not say that it changed the graph");
    }
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No pass has the name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no pass '{0}'")]
pub struct NoSuchPass(String);

impl FromStr for Pass {
    type Err = NoSuchPass;

    fn from_str(name: &str) -> Result<Self, NoSuchPass> {
        let found = Self::ALL.into_iter().find(|pass| pass.name() == name);
        found.ok_or_else(|| NoSuchPass(name.to_owned()))
    }
}

/// Which passes run, and whether functions are checked after each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passes {
    on: [bool; Pass::ALL.len()],
    check: bool,
}

impl Default for Passes {
    /// All passes, checked in debug builds.
    fn default() -> Self {
        Self { on: [true; Pass::ALL.len()], check: cfg!(debug_assertions) }
    }
}

impl Passes {
    /// No pass.
    #[must_use]
    pub fn none() -> Self {
        Self { on: [false; Pass::ALL.len()], ..Self::default() }
    }

    /// With a pass on or off.
    #[must_use]
    pub const fn with(mut self, pass: Pass, on: bool) -> Self {
        self.on[pass as usize] = on;
        self
    }

    /// With functions checked after each pass, or not.
    #[must_use]
    pub const fn checked(mut self, check: bool) -> Self {
        self.check = check;
        self
    }

    /// Those of an order that are on.
    fn of(self, order: &[Pass]) -> impl Iterator<Item = Pass> {
        order.iter().copied().filter(move |pass| self.has(*pass))
    }

    /// Whether a pass is on.
    #[must_use]
    pub const fn has(&self, pass: Pass) -> bool {
        self.on[pass as usize]
    }
}

/// A pass left a function that is not well formed: a bug of Paceline, not of the program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("pass {pass}: {error}")]
pub struct PassError {
    /// The pass.
    pub pass: Pass,
    /// The rule that the function breaks.
    pub error: CheckError,
}

impl PassError {
    fn internal(pass: Pass, what: Internal) -> Self {
        Self { pass, error: CheckError { function: FuncId::new(0), block: None, cause: what.into() } }
    }
}

/// Runs the passes over a module and each of its functions, and computes anew what stack each uses. Functions that are only inlined are
/// removed.
///
/// # Errors
/// A pass broke a function, if [checks](Passes::checked) are on, or a function that is inlined was not well formed.
pub fn optimize(module: &mut Module, passes: &Passes) -> Result<(), PassError> {
    run_all(module, passes).map(drop)
}

/// As [`optimize`], for those who need the graphs of the functions: in the order of these.
///
/// # Errors
/// As [`optimize`].
pub fn optimize_with_graphs(module: &mut Module, passes: &Passes) -> Result<Vec<Graph>, PassError> {
    let analyses = run_all(module, passes)?;
    let functions = module.functions.iter().map(|(_, function)| function);
    Ok(functions.zip(analyses).map(|(function, mut analyses)| analyses.graph(function)).collect())
}

fn run_all(module: &mut Module, passes: &Passes) -> Result<Vec<Analyses>, PassError> {
    let mut order = passes.of(&Pass::ORDER).peekable();
    if order.peek() == Some(&Pass::Inline) {
        inline::run(module).map_err(|error| PassError { pass: Pass::Inline, error })?;
    }
    let mut analyses: Vec<Analyses> = module.functions.values_mut().map(begin).collect();
    while let Some(pass) = order.next() {
        for (function, analyses) in module.functions.values_mut().zip(&mut analyses) {
            pass.run(function, analyses);
            if order.peek().is_none() {
                stack::update(function, &analyses.cfg(function));
            }
            function.fault().map_err(|what| PassError::internal(pass, what))?;
        }
        if passes.check {
            check(module).map_err(|error| PassError { pass, error })?;
        }
    }
    Ok(analyses)
}

/// The analyses of a function, whose values have their kinds then.
fn begin(function: &mut Function) -> Analyses {
    let mut analyses = Analyses::default();
    if function.lacks_kinds {
        kinds::infer(function, &analyses.cfg(function));
    }
    analyses
}

/// Runs the passes over the main function of a [chain](fn@crate::ir::chain), whose programs were optimized before, and returns its graph;
/// `None` for a module without functions.
///
/// # Errors
/// As [`optimize`].
pub fn optimize_chain(module: &mut Module, passes: &Passes) -> Result<Option<Graph>, PassError> {
    let Some(main) = module.functions.values_mut().next() else { return Ok(None) };
    let mut analyses = run(main, &Pass::CHAIN_ORDER, passes)?;
    Ok(Some(analyses.graph(main)))
}

/// Runs the passes over one function.
///
/// # Errors
/// As [`optimize`].
pub fn optimize_function(function: &mut Function, passes: &Passes) -> Result<(), PassError> {
    run(function, &Pass::ORDER, passes).map(drop)
}

fn run(function: &mut Function, order: &[Pass], passes: &Passes) -> Result<Analyses, PassError> {
    let mut order = passes.of(order).peekable();
    let mut analyses = begin(function);
    while let Some(pass) = order.next() {
        pass.run(function, &mut analyses);
        if order.peek().is_none() {
            stack::update(function, &analyses.cfg(function));
        }
        function.fault().map_err(|what| PassError::internal(pass, what))?;
        if passes.check {
            check_function(FuncId::new(0), function).map_err(|error| PassError { pass, error })?;
        }
    }
    Ok(analyses)
}
