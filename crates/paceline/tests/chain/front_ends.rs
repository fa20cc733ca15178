//! The four descriptions of a chain, compared on random chains that all of them can express.

use std::fmt::Write;

use fastrand::Rng;
use paceline::chain::{
    Actions, CallMap, Calls, ChainFile, Edges, Entrant, FileOrder, Graph, MAX_RUNS, Meaning, Next, Node,
    Place, Plan, RunConfig, Sequence,
};
use paceline_frame::Verdict;

/// A sequence of programs by number, and the actions of each.
struct Row {
    programs: Vec<u32>,
    actions: Vec<Actions>,
}

impl Row {
    fn random(rng: &mut Rng) -> Self {
        let mut programs: Vec<u32> = (1..=rng.u32(1..=MAX_RUNS)).collect();
        rng.shuffle(&mut programs);
        let mut actions: Vec<Actions> = programs
            .iter()
            .map(|_| Verdict::ALL.into_iter().filter(|_| rng.bool()).collect::<Actions>())
            .collect();
        // The rules for the end differ on purpose, unless the actions of the last program are at most pass.
        *actions.last_mut().unwrap() = if rng.bool() { Actions::PASS } else { Actions::NONE };
        Self { programs, actions }
    }

    /// Program numbers in random order, as input of sorting.
    fn shuffled(&self, rng: &mut Rng) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.programs.len()).collect();
        rng.shuffle(&mut order);
        order
    }

    fn edges<P: Copy>(&self, position: usize, target: impl Fn(usize) -> P) -> Edges<P> {
        let next = Next::Program(target(position + 1));
        let actions = if position + 1 < self.programs.len() { self.actions[position] } else { Actions::NONE };
        actions.iter().fold(Edges::NONE, |edges, verdict| edges.with(verdict, next))
    }

    fn by_call_map(&self) -> Vec<(u32, Meaning<u32>)> {
        let mut map = CallMap::default();
        for (position, pair) in self.programs.windows(2).enumerate() {
            let calls = self.actions[position]
                .iter()
                .fold(Calls::default(), |calls, verdict| calls.with(verdict, pair[1]));
            map.set(pair[0], calls).unwrap();
        }
        let (graph, programs) = map.graph(self.programs[0]).unwrap();
        reached(&graph, &programs)
    }

    fn by_priority(&self, rng: &mut Rng) -> Vec<(u32, Meaning<u32>)> {
        let order = self.shuffled(rng);
        let mut priorities: Vec<u32> = order.iter().map(|_| rng.u32(0..4)).collect();
        priorities.sort_unstable();
        let entrants: Vec<_> = order
            .iter()
            .map(|&position| Entrant {
                // Names break the ties.
                name: format!("p{position:02}"),
                config: RunConfig { priority: priorities[position], actions: self.actions[position] },
                slots: rng.usize(1..100),
                attached: rng.bool().then(|| rng.u64(..)),
            })
            .collect();
        let plan = Plan::by_priority(&entrants).unwrap();
        let programs: Vec<_> = plan.order.iter().map(|&given| self.programs[order[given]]).collect();
        reached(&plan.graph, &programs)
    }

    fn in_sequence(&self, rng: &mut Rng) -> Vec<(u32, Meaning<u32>)> {
        let mut sequence = Sequence::default();
        let mut present: Vec<usize> = Vec::new();
        for position in self.shuffled(rng) {
            let program = self.programs[position];
            let place = self.place(position, &present, rng);
            sequence.insert(program, place, Some(sequence.revision())).unwrap();
            present.push(position);
        }
        assert_eq!(sequence.members(), self.programs);
        let plan = Plan::in_sequence(&self.actions).unwrap();
        reached(&plan.graph, sequence.members())
    }

    /// The place of a program relative to those already present, which results in the sequence.
    fn place(&self, position: usize, present: &[usize], rng: &mut Rng) -> Place<u32> {
        let after = present.iter().filter(|other| **other < position).max();
        let before = present.iter().filter(|other| **other > position).min();
        match (after, before) {
            (None, _) => Place::First,
            (_, None) => Place::Last,
            (Some(after), _) if rng.bool() => Place::After(self.programs[*after]),
            (_, Some(before)) => Place::Before(self.programs[*before]),
        }
    }

    /// With edges, the programs in any order; or in any order with placements; or in file order.
    fn by_file(&self, rng: &mut Rng) -> Vec<(u32, Meaning<u32>)> {
        let order = if rng.bool() { self.shuffled(rng) } else { (0..self.programs.len()).collect() };
        let with_edges = rng.bool();
        let with_places = !with_edges && !order.is_sorted();
        let mut present = Vec::new();
        let mut text = String::new();
        if with_edges {
            writeln!(text, "first = \"p{}\"", self.programs[0]).unwrap();
        }
        text.push_str("[objects.o]\nfile = \"o.o\"\n");
        for &position in &order {
            writeln!(text, "[[program]]\nname = \"p{}\"\nobject = \"o\"", self.programs[position]).unwrap();
            let verdicts: Vec<_> = self.actions[position].iter().collect();
            if !with_edges {
                let names: Vec<_> = verdicts.iter().map(|verdict| format!("\"{verdict}\"")).collect();
                writeln!(text, "actions = [{}]", names.join(", ")).unwrap();
                if with_places {
                    let place = match self.place(position, &present, rng) {
                        Place::First => "place = \"first\"".to_owned(),
                        Place::Last => "place = \"last\"".to_owned(),
                        Place::Before(other) => format!("before = \"p{other}\""),
                        Place::After(other) => format!("after = \"p{other}\""),
                    };
                    writeln!(text, "{place}").unwrap();
                    present.push(position);
                }
            } else if let Some(next) = self.programs.get(position + 1) {
                verdicts.iter().for_each(|verdict| writeln!(text, "next.{verdict} = \"p{next}\"").unwrap());
            }
            if with_edges && (verdicts.is_empty() || position + 1 == self.programs.len()) {
                text.push_str("end.pass = \"pass\"\n");
            }
        }
        let file = ChainFile::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let plan = match &file.order {
            FileOrder::Edges { first, edges } => Plan::by_edges(*first, edges).unwrap(),
            FileOrder::Given(given) => {
                let actions: Vec<_> =
                    given.iter().map(|index| file.programs[*index].actions.unwrap()).collect();
                let plan = Plan::in_sequence(&actions).unwrap();
                Plan { order: given.clone(), ..plan }
            }
            FileOrder::Priority => unreachable!("not written"),
        };
        let programs: Vec<_> = plan.order.iter().map(|&given| self.programs[order[given]]).collect();
        reached(&plan.graph, &programs)
    }
}

/// Reachable programs in order of execution, with the successors of each by program.
fn reached(graph: &Graph, programs: &[u32]) -> Vec<(u32, Meaning<u32>)> {
    let reached = graph.reached();
    let named = |next| match next {
        Next::Program(node) => Next::Program(programs[Node::index(node)]),
        Next::End(verdict) => Next::End(verdict),
    };
    let meaning = graph.meaning();
    let mut all: Vec<_> = (0..programs.len())
        .filter(|node| reached[*node])
        .map(|node| (programs[node], meaning[node].map(named)))
        .collect();
    // Only the entry's position matters; other nodes may be numbered in any order.
    all[1..].sort_by_key(|(program, _)| *program);
    all
}

#[test]
fn all_four_ways_give_the_same_graph() {
    for seed in 0..500 {
        let mut rng = Rng::with_seed(seed);
        let row = Row::random(&mut rng);
        let nodes = (0..row.programs.len()).map(|position| row.edges(position, Node::new));
        let expected = reached(&Graph::new(nodes.collect()).unwrap(), &row.programs);
        assert_eq!(row.by_call_map(), expected, "chain-call map, seed {seed}");
        assert_eq!(row.by_priority(&mut rng), expected, "priorities, seed {seed}");
        assert_eq!(row.in_sequence(&mut rng), expected, "relative order, seed {seed}");
        assert_eq!(row.by_file(&mut rng), expected, "file, seed {seed}");
    }
}

#[test]
fn call_maps_and_files_say_any_graph_of_calls() {
    for seed in 0..500 {
        let mut rng = Rng::with_seed(seed);
        let programs = rng.u32(1..12);
        let mut text = "[objects.o]\nfile = \"o.o\"\n".to_owned();
        let mut map = CallMap::default();
        for program in 1..=programs {
            writeln!(text, "[[program]]\nname = \"p{program}\"\nobject = \"o\"\nend.aborted = \"aborted\"")
                .unwrap();
            let mut calls = Calls::default();
            for verdict in &Verdict::ALL[1..] {
                if rng.bool() {
                    continue;
                }
                let target = rng.u32(1..=programs);
                calls = calls.with(*verdict, target);
                writeln!(text, "next.{verdict} = \"p{target}\"").unwrap();
            }
            if rng.u8(..4) == 0 {
                let target = rng.u32(1..=programs);
                // The file above specifies the successor of aborted, while the map has a wildcard.
                calls = calls.with_wildcard(target).with(Verdict::Aborted, target);
                text = text.replace(
                    &format!("name = \"p{program}\"\nobject = \"o\"\nend.aborted = \"aborted\""),
                    &format!("name = \"p{program}\"\nobject = \"o\""),
                );
                writeln!(text, "next.wildcard = \"p{target}\"").unwrap();
            }
            map.set(program, calls).unwrap();
        }
        let (graph, ids) = map.graph(1).unwrap();
        let file = ChainFile::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let FileOrder::Edges { first, edges } = &file.order else { panic!("no edges in\n{text}") };
        let plan = Plan::by_edges(*first, edges).unwrap();
        let programs: Vec<u32> = plan.order.iter().map(|index| *index as u32 + 1).collect();
        assert_eq!(reached(&graph, &ids), reached(&plan.graph, &programs), "seed {seed}\n{text}");
    }
}
