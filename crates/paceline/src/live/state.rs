//! Description of a chain, before it is built.

use std::collections::BTreeMap;

use crate::chain_graph::{CallMap, Calls, Entrant, Place, Plan, Sequence};
#[cfg(feature = "jit")]
use paceline_engine::LookAhead;
use paceline_engine::{Chain, ChainError};
use paceline_frame::Verdict;
use paceline_spec::graph::{Edges, Graph, Next};

use super::change::{Change, ChangeError, Link, LinkTarget, Order};
use super::member::Member;
use crate::version::{Layout, Version};

/// Order of the programs of a chain, by their ids.
#[derive(Clone, Default)]
enum Rule {
    #[default]
    Given,
    Priority,
    /// The nodes of edges are ids.
    Edges {
        first: u32,
        edges: BTreeMap<u32, Edges<u32>>,
    },
}

/// A member, and when it came.
#[derive(Clone)]
struct Seat {
    member: Member,
    /// Number among all that ever came; `None` while the change is being made that brings it.
    attached: Option<u64>,
}

/// Members and what decides, with the revision.
#[derive(Clone, Default)]
pub(super) struct State {
    sequence: Sequence<u32>,
    seats: BTreeMap<u32, Seat>,
    rule: Rule,
}

impl State {
    /// The members, in the order in which they were put.
    pub(super) fn members(&self) -> impl Iterator<Item = &Member> {
        self.sequence.members().iter().filter_map(|id| self.seats.get(id)).map(|seat| &seat.member)
    }

    pub(super) fn check(&self, expected: Option<u64>) -> Result<(), ChangeError> {
        Ok(self.sequence.clone().touch(expected)?)
    }

    /// The state after changes, each of which counts the revision up.
    pub(super) fn apply(mut self, changes: Vec<Change>) -> Result<Self, ChangeError> {
        // Existing members come before new ones.
        let before = self.sequence.revision();
        for seat in self.seats.values_mut() {
            seat.attached.get_or_insert(before);
        }
        for change in changes {
            self.make(change)?;
        }
        Ok(self)
    }

    fn make(&mut self, change: Change) -> Result<(), ChangeError> {
        match change {
            Change::Add { member, place } => self.add(member, place),
            Change::Remove { name } => self.remove(&name),
            Change::Replace { name, member } => self.replace(&name, member),
            Change::Reorder { name, place } => {
                let (id, place) = (self.id(&name)?, self.place(Some(place))?);
                Ok(self.sequence.reorder(&id, place, None)?)
            }
            Change::Configure { name, config } => {
                let id = self.id(&name)?;
                if let Some(seat) = self.seats.get_mut(&id) {
                    seat.member.set_config(config);
                }
                Ok(self.sequence.touch(None)?)
            }
            Change::Link { name, links } => {
                let (id, edges) = (self.id(&name)?, self.edges(&name, &links)?);
                self.set_edges(id, edges)
            }
            Change::Call { program, calls } => {
                let edges = self.edges_of_calls(program, calls)?;
                self.set_edges(program, edges)
            }
            Change::Arrange(order) => {
                self.rule = self.rule_of(order)?;
                Ok(self.sequence.touch(None)?)
            }
            Change::All { members, order } => {
                for id in self.sequence.members().to_vec() {
                    self.sequence.remove(&id, None)?;
                }
                self.seats.clear();
                self.rule = Rule::Given;
                members.into_iter().try_for_each(|member| self.add(member, None))?;
                self.rule = self.rule_of(order)?;
                Ok(())
            }
        }
    }

    fn add(&mut self, member: Member, place: Option<Place<String>>) -> Result<(), ChangeError> {
        if self.members().any(|other| other.name() == member.name()) {
            return Err(ChangeError::NameTaken(member.name().to_owned()));
        }
        let (id, place) = (member.program().id(), self.place(place)?);
        self.sequence.insert(id, place, None)?;
        self.seats.insert(id, Seat { member, attached: None });
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), ChangeError> {
        let id = self.id(name)?;
        if let Rule::Edges { first, edges } = &mut self.rule {
            let leads = |edges: &Edges<u32>| edges.iter().any(|next| next == Next::Program(id));
            let by = edges.iter().find(|(from, edges)| **from != id && leads(edges)).map(|(from, _)| *from);
            if *first == id || by.is_some() {
                let by = by.and_then(|by| self.seats.get(&by)).map(|seat| seat.member.name().to_owned());
                return Err(ChangeError::Needed { name: name.to_owned(), by });
            }
            edges.remove(&id);
        }
        self.sequence.remove(&id, None)?;
        self.seats.remove(&id);
        Ok(())
    }

    fn replace(&mut self, name: &str, member: Member) -> Result<(), ChangeError> {
        let (old, new) = (self.id(name)?, member.program().id());
        if member.name() != name && self.members().any(|other| other.name() == member.name()) {
            return Err(ChangeError::NameTaken(member.name().to_owned()));
        }
        self.sequence.replace(&old, new, None)?;
        self.seats.remove(&old);
        self.seats.insert(new, Seat { member, attached: None });
        if let Rule::Edges { first, edges } = &mut self.rule {
            let renamed = |id: u32| if id == old { new } else { id };
            *first = renamed(*first);
            let moved = |(id, of): (&u32, &Edges<u32>)| (renamed(*id), of.map(renamed));
            *edges = edges.iter().map(moved).collect();
        }
        Ok(())
    }

    fn set_edges(&mut self, id: u32, of: Edges<u32>) -> Result<(), ChangeError> {
        let Rule::Edges { edges, .. } = &mut self.rule else { return Err(ChangeError::NoLinks) };
        edges.insert(id, of);
        Ok(self.sequence.touch(None)?)
    }

    fn id(&self, name: &str) -> Result<u32, ChangeError> {
        let member = self.members().find(|member| member.name() == name);
        member.map(|member| member.program().id()).ok_or_else(|| ChangeError::NoMember {
            name: name.to_owned(),
            names: self.members().map(|member| member.name().to_owned()).collect(),
        })
    }

    fn place(&self, place: Option<Place<String>>) -> Result<Place<u32>, ChangeError> {
        match (place, &self.rule) {
            (None, _) => Ok(Place::Last),
            (Some(_), Rule::Priority | Rule::Edges { .. }) => Err(ChangeError::NoPlaces),
            (Some(Place::First), _) => Ok(Place::First),
            (Some(Place::Last), _) => Ok(Place::Last),
            (Some(Place::Before(name)), _) => Ok(Place::Before(self.id(&name)?)),
            (Some(Place::After(name)), _) => Ok(Place::After(self.id(&name)?)),
        }
    }

    fn rule_of(&self, order: Order) -> Result<Rule, ChangeError> {
        match order {
            Order::Given => Ok(Rule::Given),
            Order::Priority => Ok(Rule::Priority),
            Order::Links { first, links } => {
                let edges = links.iter().map(|(name, links)| Ok((self.id(name)?, self.edges(name, links)?)));
                let edges = edges.collect::<Result<_, ChangeError>>()?;
                Ok(Rule::Edges { first: self.id(&first)?, edges })
            }
            Order::Calls { first, map } => self.rule_of_calls(first, &map),
        }
    }

    fn rule_of_calls(&self, first: u32, map: &CallMap) -> Result<Rule, ChangeError> {
        // The map itself says what is wrong with the first.
        map.graph(first)?;
        self.seats.get(&first).ok_or(ChangeError::NoId(first))?;
        let edges = map.iter().map(|(id, calls)| Ok((id, self.edges_of_calls(id, *calls)?)));
        Ok(Rule::Edges { first, edges: edges.collect::<Result<_, ChangeError>>()? })
    }

    fn edges(&self, name: &str, links: &[Link]) -> Result<Edges<u32>, ChangeError> {
        let mut edges = Edges::NONE;
        for link in links {
            let next = match &link.target {
                LinkTarget::Program(target) => Next::Program(self.id(target)?),
                LinkTarget::End(verdict) => Next::End(*verdict),
            };
            let taken = link.after.map_or(edges.wildcard(), |verdict| edges.own(verdict));
            if taken.is_some() {
                return Err(ChangeError::TwoLinks { name: name.to_owned(), after: link.after });
            }
            edges = match link.after {
                Some(verdict) => edges.with(verdict, next),
                None => edges.with_wildcard(next),
            };
        }
        Ok(edges)
    }

    fn edges_of_calls(&self, program: u32, calls: Calls) -> Result<Edges<u32>, ChangeError> {
        let missing = [program].into_iter().chain(calls.programs()).find(|id| !self.seats.contains_key(id));
        if let Some(id) = missing {
            return Err(ChangeError::NoId(id));
        }
        let next = |id: u32| (id != 0).then_some(Next::Program(id));
        let own = |edges: Edges<u32>, verdict| {
            next(calls.of(verdict)).map_or(edges, |next| edges.with(verdict, next))
        };
        let edges = Verdict::ALL.into_iter().fold(Edges::NONE, own);
        Ok(next(calls.wildcard()).map_or(edges, |next| edges.with_wildcard(next)))
    }

    /// Plans and compiles the chain.
    pub(super) fn build(&self) -> Result<Version, ChangeError> {
        let plan = self.plan()?;
        let all: Vec<_> = self.members().collect();
        let members: Vec<_> = plan.order.iter().filter_map(|index| all.get(*index).copied()).collect();
        let programs: Vec<_> = members.iter().map(|member| member.program().clone()).collect();
        let layout = Layout {
            revision: self.sequence.revision(),
            names: members.iter().map(|member| member.name().to_owned()).collect(),
            ids: programs.iter().map(|program| program.id()).collect(),
            configs: members.iter().map(|member| member.config()).collect(),
            graph: plan.graph.clone(),
            reasons: plan.reasons,
            warnings: plan.warnings,
        };
        let chain = match native_chain(&members, &plan.graph)? {
            Some(chain) => chain,
            None => Chain::new(programs.clone(), plan.graph)?,
        };
        Ok(Version { layout, chain, programs })
    }

    fn plan(&self) -> Result<Plan, ChangeError> {
        let ids = self.sequence.members();
        let seats = || ids.iter().filter_map(|id| self.seats.get(id));
        Ok(match &self.rule {
            Rule::Given => {
                Plan::in_sequence(&seats().map(|seat| seat.member.config().actions).collect::<Vec<_>>())?
            }
            Rule::Priority => {
                let entrants: Vec<Entrant> = seats().map(|seat| seat.member.entrant(seat.attached)).collect();
                Plan::by_priority(&entrants)?
            }
            Rule::Edges { first, edges } => {
                let index = |id: u32| ids.iter().position(|other| *other == id).unwrap_or(usize::MAX);
                let of = |id| edges.get(id).copied().unwrap_or_default();
                let edges = ids.iter().map(|id| of(id).map(index));
                Plan::by_edges(index(*first), &edges.collect::<Vec<_>>())?
            }
        })
    }
}

/// The programs of a chain as one function; `None` if one of them is not native code, or the chain has no such function.
#[cfg(feature = "jit")]
fn native_chain(members: &[&Member], graph: &Graph) -> Result<Option<Chain>, ChainError> {
    let mut parts = Vec::with_capacity(members.len());
    for ((node, _), member) in graph.iter().zip(members) {
        match member.part() {
            None => return Ok(None),
            Some(Ok(part)) => parts.push(part.clone()),
            Some(Err(error)) => {
                let error = ChainError::Program { node, error: error.clone() };
                return if error.is_lack() { Ok(None) } else { Err(error) };
            }
        }
    }
    let look_ahead = members.first().map_or(LookAhead::Never, |first| first.program().look_ahead());
    match Chain::fused(parts, graph.clone(), look_ahead) {
        Err(error) if error.is_lack() => Ok(None),
        made => made.map(Some),
    }
}

#[cfg(not(feature = "jit"))]
fn native_chain(_: &[&Member], _: &Graph) -> Result<Option<Chain>, ChainError> {
    Ok(None)
}
