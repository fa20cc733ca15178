//! The chain-call map of the kernel patches for XDP chain calls: for each program, the one that runs next after each verdict.

use std::collections::BTreeMap;

use paceline_frame::Verdict;

use paceline_spec::graph::{Edges, Graph, Next, Node};

/// An entry of a chain-call map: the id of the next program for each verdict, 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Calls {
    wildcard: u32,
    by_verdict: [u32; Verdict::ALL.len()],
}

impl Calls {
    /// The entry with the program after a verdict replaced.
    #[must_use]
    pub fn with(mut self, verdict: Verdict, program: u32) -> Self {
        self.by_verdict[verdict as usize] = program;
        self
    }

    /// The entry with the wildcard replaced: the program for all values without one of their own, including values that are no
    /// verdict.
    #[must_use]
    pub fn with_wildcard(mut self, program: u32) -> Self {
        self.wildcard = program;
        self
    }

    /// The program after a verdict, 0 if only the wildcard applies.
    #[must_use]
    pub fn of(&self, verdict: Verdict) -> u32 {
        self.by_verdict[verdict as usize]
    }

    /// The program for values without one of their own, or 0.
    #[must_use]
    pub fn wildcard(&self) -> u32 {
        self.wildcard
    }

    /// The nonzero program ids.
    pub fn programs(&self) -> impl Iterator<Item = u32> {
        self.by_verdict.into_iter().chain([self.wildcard]).filter(|id| *id != 0)
    }
}

impl From<[u32; 6]> for Calls {
    /// Decodes an entry in memory order: wildcard, aborted, drop, pass, tx, redirect.
    fn from([wildcard, aborted, drop, pass, tx, redirect]: [u32; 6]) -> Self {
        Self { wildcard, by_verdict: [aborted, drop, pass, tx, redirect] }
    }
}

/// Errors of a chain-call map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallMapError {
    /// Program ids start at 1.
    #[error("0 is no program")]
    NoProgram,
}

/// A chain as a map: the key is a program id, the value the ids of the programs that it calls.
///
/// A program without an entry ends the chain with its verdict, and so does a verdict for which the entry has neither a program nor
/// a wildcard.
///
/// ```
/// use paceline::chain::{CallMap, Calls, Next, Node};
/// use paceline_frame::Verdict;
///
/// let mut map = CallMap::default();
/// map.set(7, Calls::default().with(Verdict::Pass, 9))?;
/// let (graph, programs) = map.graph(7)?;
/// assert_eq!(programs, [7, 9]);
/// assert_eq!(graph.after(Node::new(0), Verdict::Pass as u32), Next::Program(Node::new(1)));
/// # Ok::<(), paceline::chain::CallMapError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallMap {
    entries: BTreeMap<u32, Calls>,
}

impl CallMap {
    /// Sets the entry of a program.
    ///
    /// # Errors
    /// [`CallMapError::NoProgram`] for key 0.
    pub fn set(&mut self, program: u32, calls: Calls) -> Result<(), CallMapError> {
        if program == 0 {
            return Err(CallMapError::NoProgram);
        }
        self.entries.insert(program, calls);
        Ok(())
    }

    /// Removes an entry; returns false if it did not exist.
    pub fn remove(&mut self, program: u32) -> bool {
        self.entries.remove(&program).is_some()
    }

    /// The entry of a program.
    #[must_use]
    pub fn get(&self, program: u32) -> Option<&Calls> {
        self.entries.get(&program)
    }

    /// All entries, by program id.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Calls)> {
        self.entries.iter().map(|(id, calls)| (*id, calls))
    }

    /// The graph of all programs reachable from `first`, and the program id of each node, in the order of discovery.
    ///
    /// # Errors
    /// [`CallMapError::NoProgram`] if `first` is 0.
    pub fn graph(&self, first: u32) -> Result<(Graph, Vec<u32>), CallMapError> {
        if first == 0 {
            return Err(CallMapError::NoProgram);
        }
        let mut programs = vec![first];
        let mut nodes = BTreeMap::from([(first, Node::ENTRY)]);
        let mut edges = Vec::new();
        while let Some(program) = programs.get(edges.len()) {
            let calls = self.get(*program).copied().unwrap_or_default();
            for id in calls.programs() {
                nodes.entry(id).or_insert_with(|| {
                    programs.push(id);
                    Node::new(programs.len() - 1)
                });
            }
            edges.push(edges_of(&calls, &nodes));
        }
        // Every edge leads to a program that was discovered, and `first` is a node.
        let graph = Graph::new(edges).map_err(|_| CallMapError::NoProgram)?;
        Ok((graph, programs))
    }
}

fn edges_of(calls: &Calls, nodes: &BTreeMap<u32, Node>) -> Edges {
    let next = |id: u32| nodes.get(&id).map(|node| Next::Program(*node));
    let mut edges = Edges::NONE;
    for verdict in Verdict::ALL {
        if let Some(next) = next(calls.of(verdict)) {
            edges = edges.with(verdict, next);
        }
    }
    next(calls.wildcard()).map_or(edges, |next| edges.with_wildcard(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_first_program_can_come_to_is_in_the_graph() {
        let mut map = CallMap::default();
        map.set(5, Calls::default().with(Verdict::Pass, 3).with_wildcard(5)).unwrap();
        map.set(8, Calls::default().with_wildcard(5)).unwrap();
        let (graph, programs) = map.graph(5).unwrap();
        assert_eq!(programs, [5, 3]);
        assert_eq!(graph.after(Node::new(0), Verdict::Pass as u32), Next::Program(Node::new(1)));
        assert_eq!(graph.after(Node::new(0), 17), Next::Program(Node::new(0)));
        assert_eq!(graph.after(Node::new(1), Verdict::Tx as u32), Next::End(Verdict::Tx));
    }

    #[test]
    fn zero_is_no_program() {
        let mut map = CallMap::default();
        assert_eq!(map.set(0, Calls::default()), Err(CallMapError::NoProgram));
        assert_eq!(map.graph(0), Err(CallMapError::NoProgram));
        assert!(!map.remove(1));
    }

    #[test]
    fn a_value_has_its_ids_in_the_order_of_the_seed() {
        let calls = Calls::from([1, 2, 3, 4, 5, 6]);
        assert_eq!(
            calls,
            Verdict::ALL
                .into_iter()
                .zip(2..)
                .fold(Calls::default().with_wildcard(1), |calls, (v, id)| calls.with(v, id))
        );
    }
}
