//! Chains of cases: several of a case's programs, and what runs after what.

use paceline::chain::{
    Actions, DEFAULT_PRIORITY, Edges, Entrant, Next, Place, Placement, Plan, PlanError, RunConfig, Sequence,
};
use paceline_frame::Verdict;
use paceline_spec::ProgramSpec;

use super::{ParseError, Problem};

/// A chain of a case's programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseChain {
    /// Programs by their index, when each runs, and after which verdicts the chain goes on; one after the other.
    Given(Vec<(usize, RunConfig)>),
    /// The same, by priority.
    Priority(Vec<(usize, RunConfig)>),
    /// The edges of all programs, by index, and where packets enter.
    Edges(usize, Vec<Edges>),
}

impl CaseChain {
    /// Reads `chain: priority|given|edges` with its block; `names` are those of the programs.
    pub(super) fn read(
        (line, value): (usize, &str),
        block: &[(usize, &str)],
        names: &[&str],
    ) -> Result<Self, ParseError> {
        let members = || block.iter().map(|line| member(*line, names)).collect::<Result<_, ParseError>>();
        match value {
            "given" => Ok(Self::Given(placed(members()?, block, names)?)),
            "priority" => Ok(Self::Priority(members()?)),
            "edges" => edges(line, block, names),
            other => Err(not_a(line, "order: priority, given or edges", other)),
        }
    }

    /// The graph and the program of each node.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn plan(&self, programs: &[ProgramSpec]) -> Result<(Plan, Vec<usize>), PlanError> {
        let (plan, given): (Plan, Vec<usize>) = match self {
            Self::Given(members) => {
                let actions: Vec<_> = members.iter().map(|(_, config)| config.actions).collect();
                (Plan::in_sequence(&actions)?, members.iter().map(|(program, _)| *program).collect())
            }
            Self::Priority(members) => {
                let entrant = |(program, config): &(usize, RunConfig)| {
                    let spec = &programs[*program];
                    let slots = spec.functions.get(1).map_or(spec.insns.len(), |function| function.start);
                    Entrant { name: spec.name.clone(), config: *config, slots, attached: None }
                };
                let entrants: Vec<_> = members.iter().map(entrant).collect();
                (Plan::by_priority(&entrants)?, members.iter().map(|(program, _)| *program).collect())
            }
            Self::Edges(first, edges) => (Plan::by_edges(*first, edges)?, (0..edges.len()).collect()),
        };
        let nodes = plan.order.iter().map(|index| given[*index]).collect();
        Ok((plan, nodes))
    }
}

/// Words that begin a place.
const PLACES: [&str; 5] = ["first", "last", "before", "after", "replace"];

fn not_a(line: usize, what: &'static str, found: &str) -> ParseError {
    ParseError { line, problem: Problem::NotA { what, found: found.to_owned() } }
}

pub(super) fn program(line: usize, name: &str, names: &[&str]) -> Result<usize, ParseError> {
    names.iter().position(|known| *known == name).ok_or_else(|| not_a(line, "program of the case", name))
}

fn verdict(line: usize, name: &str) -> Result<Verdict, ParseError> {
    let found = Verdict::ALL.into_iter().find(|verdict| verdict.name() == name);
    found.ok_or_else(|| not_a(line, "verdict", name))
}

/// `NAME [priority N] [actions VERDICT...|none] [PLACE]`; places are read apart.
fn member((line, text): (usize, &str), names: &[&str]) -> Result<(usize, RunConfig), ParseError> {
    let mut words = text.split_whitespace().peekable();
    let index = program(line, words.next().unwrap_or_default(), names)?;
    let mut config = RunConfig { priority: DEFAULT_PRIORITY, actions: Actions::PASS };
    if words.next_if_eq(&"priority").is_some() {
        let number = words.next().unwrap_or_default();
        config.priority = number.parse().map_err(|_| not_a(line, "priority", number))?;
    }
    if words.next_if_eq(&"actions").is_some() {
        let mut actions = Vec::new();
        while let Some(word) = words.next_if(|word| !PLACES.contains(word)) {
            actions.push(word);
        }
        let actions = actions.into_iter().filter(|word| *word != "none").map(|word| verdict(line, word));
        config.actions = actions.collect::<Result<_, _>>()?;
    }
    match words.next() {
        Some(word) if PLACES.contains(&word) => Ok((index, config)),
        Some(word) => Err(not_a(line, "part of `NAME [priority N] [actions VERDICT...]`", word)),
        None => Ok((index, config)),
    }
}

/// The members as they stand, each then taken to where its line says.
fn placed(
    members: Vec<(usize, RunConfig)>,
    block: &[(usize, &str)],
    names: &[&str],
) -> Result<Vec<(usize, RunConfig)>, ParseError> {
    let mut sequence = Sequence::default();
    for ((member, _), (line, text)) in members.iter().zip(block) {
        let twice = |_| not_a(*line, "program that is not in the chain yet", text.trim());
        sequence.insert(*member, Place::Last, None).map_err(twice)?;
    }
    for ((member, _), &(line, text)) in members.iter().zip(block) {
        let Some(placement) = placement((line, text), names)? else { continue };
        let refused = |_| not_a(line, "place in the chain", text.trim());
        sequence.settle(member, placement, None).map_err(refused)?;
    }
    let find = |index: &usize| members.iter().find(|(member, _)| member == index).copied();
    Ok(sequence.members().iter().filter_map(find).collect())
}

/// The end of a member's line: `first|last|before NAME|after NAME|replace NAME`.
fn placement((line, text): (usize, &str), names: &[&str]) -> Result<Option<Placement<usize>>, ParseError> {
    let words: Vec<_> = text.split_whitespace().collect();
    let by = |name: &str| program(line, name, names);
    Ok(Some(match words.as_slice() {
        [_, .., "before", other] => Placement::At(Place::Before(by(other)?)),
        [_, .., "after", other] => Placement::At(Place::After(by(other)?)),
        [_, .., "replace", other] => Placement::Replacing(by(other)?),
        [_, .., "first"] => Placement::At(Place::First),
        [_, .., "last"] => Placement::At(Place::Last),
        _ => return Ok(None),
    }))
}

/// Lines of `NAME VERDICT|* -> NAME|end VERDICT`; packets enter at the program of the first line.
fn edges(at: usize, block: &[(usize, &str)], names: &[&str]) -> Result<CaseChain, ParseError> {
    let mut all = vec![Edges::NONE; names.len()];
    let mut first = None;
    for &(line, text) in block {
        let words: Vec<_> = text.split_whitespace().collect();
        let (from, after, next) = match words.as_slice() {
            [from, after, "->", "end", end] => (*from, *after, Next::End(verdict(line, end)?)),
            [from, after, "->", to] => (*from, *after, Next::Program(program(line, to, names)?)),
            _ => return Err(not_a(line, "edge `NAME VERDICT -> NAME`, or `-> end VERDICT`", text.trim())),
        };
        let from = program(line, from, names)?;
        first.get_or_insert(from);
        let edges = &mut all[from];
        *edges = match after {
            "*" => edges.with_wildcard(next),
            after => edges.with(verdict(line, after)?, next),
        };
    }
    let first =
        first.ok_or(ParseError { line: at, problem: Problem::Missing("edges below `chain: edges`") })?;
    Ok(CaseChain::Edges(first, all))
}
