//! The same keys in Rust: a plain array, and the standard library's hash map.

use std::collections::HashMap;
use std::error::Error;
use std::hash::Hash;
use std::hint::black_box;

use super::differences::Pair;
use super::like::Like;
use super::program::{Keys, MULTIPLIER, Subject, key, number};

/// Keys per run, as in a program.
const TIMES: usize = 16;

/// Generates keys and calls a function with each.
struct Native<L> {
    keys: Keys,
    state: u64,
    look: L,
}

impl<L: FnMut(u32) -> u64> Subject for Native<L> {
    fn run(&mut self, runs: usize) -> Result<u64, Box<dyn Error>> {
        let mut sum = 0;
        for _ in 0..runs * TIMES {
            self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(1_442_695);
            sum += (self.look)(black_box(number(self.state, self.keys)));
        }
        black_box(sum);
        Ok((runs * TIMES) as u64)
    }
}

pub(crate) fn array(keys: Keys, looks: bool) -> Box<dyn Subject> {
    let values = vec![1_u64; keys.count as usize];
    let look = move |index: u32| {
        if looks { values.get(index as usize).copied().unwrap_or(0) } else { u64::from(index) }
    };
    Box::new(Native { keys, state: 1, look })
}

pub(crate) fn hash(like: Like, keys: Keys) -> Pair<'static> {
    match like.key_size {
        4 => pair::<4>(like, keys),
        16 => pair::<16>(like, keys),
        _ => pair::<40>(like, keys),
    }
}

/// Keys of `SIZE` bytes, with look-ups in a hash map and without.
fn pair<const SIZE: usize>(like: Like, keys: Keys) -> Pair<'static>
where
    [u8; SIZE]: Hash + Eq,
{
    let make = |number| <[u8; SIZE]>::try_from(key(like, number).as_slice()).unwrap_or([0; SIZE]);
    let mut map = HashMap::with_hasher(foldhash::fast::RandomState::default());
    map.extend((0..like.entries).map(|number| (make(number), 1_u64)));
    let (mut one, mut two) = (make(0), make(0));
    let look = move |number: u32| {
        one[..4].copy_from_slice(&number.to_ne_bytes());
        map.get(black_box(&one)).copied().unwrap_or(0)
    };
    let bare = move |number: u32| {
        two[..4].copy_from_slice(&number.to_ne_bytes());
        u64::from(black_box(&two)[0])
    };
    (Box::new(Native { keys, state: 1, look }), Box::new(Native { keys, state: 1, look: bare }))
}
