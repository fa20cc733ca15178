//! Moves that are made at the same time, one after the other.

use crate::codegen::lir::Reg;
use crate::codegen::reuse::empty;

/// Moves that are looked through for others.
const FEW: usize = 8;

/// A place for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loc {
    /// A register.
    Reg(Reg),
    /// A slot of the frame.
    Slot(u32),
}

/// A move. Not both places are slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Destination.
    pub to: Loc,
    /// Source.
    pub from: Loc,
}

/// Lists of moves by number, one behind the other. Most numbers have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoveLists {
    /// The moves of all lists.
    pub moves: Vec<Move>,
    /// The numbers that have moves, rising, each with the position of the first of them. They end where those of the next one begin.
    pub starts: Vec<(u32, u32)>,
}

impl MoveLists {
    /// The moves of a list, in their order; none for a number without one.
    #[must_use]
    pub fn get(&self, number: u32) -> &[Move] {
        match self.starts.binary_search_by_key(&number, |list| list.0) {
            Ok(at) => self.at(at),
            Err(_) => &[],
        }
    }

    /// The moves of a list by its position.
    fn at(&self, at: usize) -> &[Move] {
        let end = self.starts.get(at + 1).map_or(self.moves.len(), |list| list.1 as usize);
        &self.moves[self.starts[at].1 as usize..end]
    }

    /// Without lists, and with room for some.
    pub(super) fn clear(&mut self, some: usize) {
        empty(&mut self.moves, some);
        empty(&mut self.starts, some);
    }

    /// The lists by rising numbers.
    pub(crate) fn walk(&self) -> Walk<'_> {
        Walk { lists: self, next: 0, number: self.number(0) }
    }

    /// The number of a list by its position; the greatest one behind the last list.
    fn number(&self, at: usize) -> u32 {
        self.starts.get(at).map_or(u32::MAX, |list| list.0)
    }

    /// Adds the list of a number: moves that are made at the same time, as [`sequence`] does.
    pub(super) fn add(&mut self, number: u32, moves: &mut Vec<Move>, scratch: Reg, free_slot: u32) {
        self.starts.push((number, self.moves.len() as u32));
        sequence(moves, scratch, free_slot, &mut self.moves);
    }
}

/// A walk over lists by rising numbers.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'a> {
    lists: &'a MoveLists,
    /// Position of the first list that was not asked for.
    next: usize,
    /// Its number.
    number: u32,
}

impl<'a> Walk<'a> {
    /// The number of the next list; the greatest one if none is left.
    #[inline]
    pub(crate) const fn next(&self) -> u32 {
        self.number
    }

    /// The moves of a list, which has a greater number than those before.
    #[inline]
    pub(crate) fn get(&mut self, number: u32) -> &'a [Move] {
        if number < self.number { &[] } else { self.advance(number) }
    }

    fn advance(&mut self, number: u32) -> &'a [Move] {
        let mut moves: &[Move] = &[];
        while self.number <= number && self.number != u32::MAX {
            moves = if self.number == number { self.lists.at(self.next) } else { &[] };
            self.next += 1;
            self.number = self.lists.number(self.next);
        }
        moves
    }
}

/// Puts moves that are made at the same time, to places that differ from each other, into an order and at the end of others. A move
/// between slots goes through the scratch register, as does a circle; a circle with slots goes through a slot that nothing else uses.
/// The time is that of sorting the moves.
fn sequence(moves: &mut Vec<Move>, scratch: Reg, free_slot: u32, done: &mut Vec<Move>) {
    let scratch = Loc::Reg(scratch);
    match moves.as_slice() {
        [] => {}
        [only] => emit(done, *only, scratch),
        _ => {
            moves.sort_unstable_by_key(|one| one.to);
            let is_read = |place| moves.iter().any(|one| one.from == place);
            match moves.len() <= FEW && !moves.iter().any(|one| is_read(one.to)) {
                true => moves.iter().for_each(|one| emit(done, *one, scratch)),
                false => Sequence::new(moves, scratch).run(free_slot, done),
            }
        }
    }
    moves.clear();
}

const fn is_between_slots(one: &Move) -> bool {
    matches!((one.to, one.from), (Loc::Slot(_), Loc::Slot(_)))
}

fn emit(done: &mut Vec<Move>, one: Move, scratch: Loc) {
    if is_between_slots(&one) {
        done.extend([Move { to: scratch, from: one.from }, Move { to: one.to, from: scratch }]);
    } else {
        done.push(one);
    }
}

/// Two moves or more, by destination.
struct Sequence<'a> {
    moves: &'a mut [Move],
    /// For each, how many others that are not made yet read its destination.
    readers: Vec<u32>,
    /// Those whose destination nobody reads any more.
    ready: Vec<usize>,
    scratch: Loc,
}

impl<'a> Sequence<'a> {
    fn new(moves: &'a mut [Move], scratch: Loc) -> Self {
        let mut sequence = Self { readers: vec![0; moves.len()], moves, ready: Vec::new(), scratch };
        for at in 0..sequence.moves.len() {
            if let Some(writer) = sequence.writer_of(sequence.moves[at].from) {
                sequence.readers[writer] += 1;
            }
        }
        sequence.ready.extend((0..sequence.moves.len()).rev().filter(|at| sequence.readers[*at] == 0));
        sequence
    }

    /// The move that writes a place.
    fn writer_of(&self, place: Loc) -> Option<usize> {
        self.moves.binary_search_by_key(&place, |one| one.to).ok()
    }

    fn run(mut self, free_slot: u32, done: &mut Vec<Move>) {
        let mut made = vec![false; self.moves.len()];
        self.run_ready(&mut made, done);
        // All that is left are circles. Each puts one value aside, and what reads it reads it there.
        let between = self.moves.iter().zip(&made).any(|(one, made)| !made && is_between_slots(one));
        let aside = if between { Loc::Slot(free_slot) } else { self.scratch };
        for at in 0..self.moves.len() {
            if made[at] {
                continue;
            }
            let from = std::mem::replace(&mut self.moves[at].from, aside);
            emit(done, Move { to: aside, from }, self.scratch);
            self.release(from);
            self.run_ready(&mut made, done);
        }
    }

    /// A move that reads a place needs it no more.
    fn release(&mut self, from: Loc) {
        if let Some(writer) = self.writer_of(from) {
            self.readers[writer] -= 1;
            if self.readers[writer] == 0 {
                self.ready.push(writer);
            }
        }
    }

    fn run_ready(&mut self, made: &mut [bool], done: &mut Vec<Move>) {
        while let Some(at) = self.ready.pop() {
            made[at] = true;
            let one = self.moves[at];
            emit(done, one, self.scratch);
            self.release(one.from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_finds_what_a_search_finds() {
        let mut lists = MoveLists::default();
        for number in [2, 3, 7] {
            let moves = (0..number).map(|at| Move { to: Loc::Slot(at), from: Loc::Reg(Reg(at as u8)) });
            lists.add(number, &mut moves.collect(), Reg(9), 9);
        }
        let of = |number: u32| if [2, 3, 7].contains(&number) { number as usize } else { 0 };
        assert!((0..9).all(|number| lists.get(number).len() == of(number)));
        for step in 1..4 {
            let mut walk = lists.walk();
            assert!((0..9).step_by(step).all(|number| walk.get(number) == lists.get(number)), "{step}");
        }
    }

    /// All moves between five places, two of them slots: each place has at most one source.
    #[test]
    fn a_sequence_does_what_the_moves_do_at_once() {
        let places = [Loc::Reg(Reg(0)), Loc::Reg(Reg(1)), Loc::Reg(Reg(2)), Loc::Slot(0), Loc::Slot(1)];
        let (scratch, free) = (Reg(7), 9);
        let mut circles = 0;
        for mut number in 0..6_usize.pow(5) {
            let mut moves = Vec::new();
            for to in places {
                if let Some(from) = places.get(number % 6) {
                    moves.push(Move { to, from: *from });
                }
                number /= 6;
            }
            let mut values: Vec<(Loc, Loc)> = places.iter().map(|place| (*place, *place)).collect();
            let mut done = Vec::new();
            sequence(&mut moves.clone(), scratch, free, &mut done);
            for Move { to, from } in done {
                assert!(!matches!((to, from), (Loc::Slot(_), Loc::Slot(_))), "{moves:?}");
                let value = values.iter().find(|(place, _)| *place == from).expect("written before").1;
                values.retain(|(place, _)| *place != to);
                values.push((to, value));
                circles += usize::from(to == Loc::Slot(free));
            }
            for place in places {
                let from = moves.iter().find(|one| one.to == place).map_or(place, |one| one.from);
                assert!(values.contains(&(place, from)), "{moves:?}");
            }
        }
        assert!(circles > 0);
    }
}
