//! Chains of cases: several programs of a case, and their graph.

use paceline::chain::{
    Actions, CallMap, Calls, ChainFile, DEFAULT_PRIORITY, Edges, Entrant, FileOrder, Meaning, Next, Place,
    Placement, Plan, PlanError, RunConfig, Sequence,
};
use paceline_frame::Verdict;
use paceline_spec::ProgramSpec;

use super::error::{ParseError, Problem};

/// A chain of a case's programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseChain {
    /// Programs in the given order, by index, each with its run configuration.
    Given(Vec<(usize, RunConfig)>),
    /// The same, ordered by run priority.
    Priority(Vec<(usize, RunConfig)>),
    /// The edges of all programs, by index, and the entry.
    Edges(usize, Vec<Edges<usize>>),
    /// A chain-call map, in which the id of a program is its index plus 1, and the entry.
    Calls(usize, CallMap),
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
            "calls" => calls(line, block, names),
            "file" => file(line, block, names),
            other => Err(not_a(line, "order: priority, given, edges, calls or file", other)),
        }
    }

    /// The reachable programs with their edges; the first one is the entry.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn meaning(&self, programs: &[ProgramSpec]) -> Result<Vec<(usize, Meaning<usize>)>, PlanError> {
        let (plan, nodes) = self.plan(programs)?;
        let named = |next: Next| match next {
            Next::Program(node) => Next::Program(nodes[node.index()]),
            Next::End(verdict) => Next::End(verdict),
        };
        let reached = plan.graph.reached();
        let all = nodes.iter().zip(plan.graph.meaning()).zip(reached).filter(|(_, reached)| *reached);
        let mut all: Vec<_> = all.map(|((program, meaning), _)| (*program, meaning.map(named))).collect();
        all[1..].sort_by_key(|(program, _)| *program);
        Ok(all)
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
            Self::Calls(first, map) => {
                let calls = |program: usize| map.get(program as u32 + 1).copied().unwrap_or_default();
                let edges: Vec<_> = (0..programs.len()).map(|program| edges_of(calls(program))).collect();
                (Plan::by_edges(*first, &edges)?, (0..edges.len()).collect())
            }
        };
        let nodes = plan.order.iter().map(|index| given[*index]).collect();
        Ok((plan, nodes))
    }
}

/// First words of a place.
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

/// `NAME [priority N] [actions VERDICT...|none] [PLACE]`; the place is parsed separately.
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

/// The successors in an entry of a chain-call map.
fn edges_of(calls: Calls) -> Edges<usize> {
    let next = |id: u32| id.checked_sub(1).map(|index| Next::Program(index as usize));
    let own = |edges: Edges<usize>, verdict| {
        next(calls.of(verdict)).map_or(edges, |next| edges.with(verdict, next))
    };
    let edges = Verdict::ALL.into_iter().fold(Edges::NONE, own);
    next(calls.wildcard()).map_or(edges, |next| edges.with_wildcard(next))
}

/// Lines of `NAME VERDICT|* -> NAME`; the entry of the chain is the program of the first line.
fn calls(at: usize, block: &[(usize, &str)], names: &[&str]) -> Result<CaseChain, ParseError> {
    let CaseChain::Edges(first, edges) = edges(at, block, names)? else {
        return Err(not_a(at, "chain-call map", ""));
    };
    let mut map = CallMap::default();
    for (program, edges) in edges.iter().enumerate() {
        let id = |next: Next<usize>| match next {
            Next::Program(to) => Ok(to as u32 + 1),
            Next::End(_) => Err(not_a(at, "chain-call map, which has no ends", names[program])),
        };
        let mut calls = edges.wildcard().map_or(Ok(Calls::default()), |next| {
            Ok::<_, ParseError>(Calls::default().with_wildcard(id(next)?))
        })?;
        for verdict in Verdict::ALL {
            if let Some(next) = edges.own(verdict) {
                calls = calls.with(verdict, id(next)?);
            }
        }
        map.set(program as u32 + 1, calls).map_err(|_| not_a(at, "chain-call map", names[program]))?;
    }
    Ok(CaseChain::Calls(first, map))
}

/// The lines of a chain file without its objects: each program is the case's program of that name.
fn file(at: usize, block: &[(usize, &str)], names: &[&str]) -> Result<CaseChain, ParseError> {
    // In TOML, keys of the file itself precede its tables.
    let split = block.iter().position(|(_, line)| line.trim_start().starts_with('[')).unwrap_or(block.len());
    let lines =
        |lines: &[(usize, &str)]| lines.iter().map(|(_, line)| format!("{line}\n")).collect::<String>();
    let (keys, tables) = block.split_at(split);
    let objects: String =
        names.iter().map(|name| format!("[objects.{name}]\nfile = \"{name}.o\"\n")).collect();
    let text = format!("{}{objects}{}", lines(keys), lines(tables));
    let file = ChainFile::parse(&text).map_err(|error| not_a(at, "chain file", &error.to_string()))?;
    let indices = file.programs.iter().map(|said| program(at, &said.name.value, names));
    let indices: Vec<usize> = indices.collect::<Result<_, _>>()?;
    let member = |index: &usize| {
        let said = &file.programs[*index];
        let actions = said.actions.unwrap_or(Actions::PASS);
        (indices[*index], RunConfig { priority: said.priority.unwrap_or(DEFAULT_PRIORITY), actions })
    };
    Ok(match &file.order {
        FileOrder::Given(order) => CaseChain::Given(order.iter().map(member).collect()),
        FileOrder::Priority => CaseChain::Priority((0..indices.len()).map(|index| member(&index)).collect()),
        FileOrder::Edges { first, edges } => {
            let mut all = vec![Edges::NONE; names.len()];
            for (index, edges) in indices.iter().zip(edges) {
                all[*index] = edges.map(|to| indices[to]);
            }
            CaseChain::Edges(indices[*first], all)
        }
    })
}

/// The members in the order of the lines, then each moved to the place that its line names. If a program is several members,
/// its name in a place means the first.
fn placed(
    members: Vec<(usize, RunConfig)>,
    block: &[(usize, &str)],
    names: &[&str],
) -> Result<Vec<(usize, RunConfig)>, ParseError> {
    let mut sequence = Sequence::default();
    for index in 0..members.len() {
        // Ids must be unique.
        let _ = sequence.insert(index, Place::Last, None);
    }
    for (index, &(line, text)) in block.iter().enumerate() {
        let Some(placement) = placement((line, text), names)? else { continue };
        let first = |program: usize| members.iter().position(|(member, _)| *member == program);
        let refused = |_| not_a(line, "place in the chain", text.trim());
        let placement = placement.map(|program| first(program).unwrap_or(usize::MAX));
        sequence.settle(&index, placement, None).map_err(refused)?;
    }
    Ok(sequence.members().iter().map(|index| members[*index]).collect())
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

/// Lines of `NAME VERDICT|* -> NAME|end VERDICT`; the entry of the chain is the program of the first line.
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
