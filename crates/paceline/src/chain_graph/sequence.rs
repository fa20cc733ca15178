//! Relative order with revisions, by the rules of the kernel's multi-program hooks (`kernel/bpf/mprog.c`).

/// Position of a new member in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place<T> {
    /// Before all others (`BPF_F_BEFORE` alone).
    First,
    /// After all others (no flag, or `BPF_F_AFTER` alone).
    Last,
    /// Right before a member.
    Before(T),
    /// Right after a member.
    After(T),
}

/// New position of a member that is in a sequence already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement<T> {
    /// At a place.
    At(Place<T>),
    /// In place of another member, which is removed (`BPF_F_REPLACE`).
    Replacing(T),
}

impl<T> Placement<T> {
    /// Converts the reference to another member.
    pub fn map<U>(self, to: impl FnOnce(T) -> U) -> Placement<U> {
        match self {
            Self::At(Place::First) => Placement::At(Place::First),
            Self::At(Place::Last) => Placement::At(Place::Last),
            Self::At(Place::Before(other)) => Placement::At(Place::Before(to(other))),
            Self::At(Place::After(other)) => Placement::At(Place::After(to(other))),
            Self::Replacing(other) => Placement::Replacing(to(other)),
        }
    }
}

/// Reasons why a change of a sequence is refused, without effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SequenceError {
    /// The sequence was changed concurrently (`ESTALE`).
    #[error("the chain has changed: it is at revision {current}, not {expected}")]
    Stale {
        /// The expected revision.
        expected: u64,
        /// The current revision.
        current: u64,
    },
    /// The member is already in the sequence (`EEXIST`).
    #[error("the program is in the chain already")]
    Exists,
    /// The referenced member is not in the sequence (`ENOENT`).
    #[error("the program is not in the chain")]
    Missing,
}

/// An ordered set of members with a revision number.
///
/// ```
/// use paceline::chain::{Place, Sequence, SequenceError};
///
/// let mut chain = Sequence::default();
/// chain.insert("balancer", Place::Last, None)?;
/// let seen = chain.revision();
/// chain.insert("firewall", Place::Before("balancer"), Some(seen))?;
/// assert_eq!(chain.members(), ["firewall", "balancer"]);
/// let stale = chain.remove(&"balancer", Some(seen));
/// assert_eq!(stale, Err(SequenceError::Stale { expected: seen, current: seen + 1 }));
/// # Ok::<(), SequenceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence<T> {
    members: Vec<T>,
    revision: u64,
}

impl<T> Default for Sequence<T> {
    /// No members, at revision 1 as in the kernel.
    fn default() -> Self {
        Self { members: Vec::new(), revision: 1 }
    }
}

#[cfg(feature = "json")]
impl<T> Sequence<T> {
    /// A sequence of these members, which must be distinct, at revision 1.
    pub(crate) fn of(members: Vec<T>) -> Self {
        Self { members, revision: 1 }
    }
}

impl<T: PartialEq> Sequence<T> {
    /// The members, in order.
    #[must_use]
    pub fn members(&self) -> &[T] {
        &self.members
    }

    /// The revision, which every change increments by one. A change that specifies an older one is refused.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Adds a member.
    ///
    /// # Errors
    /// [`SequenceError`].
    pub fn insert(&mut self, member: T, place: Place<T>, expected: Option<u64>) -> Result<(), SequenceError> {
        self.check(expected)?;
        if self.members.contains(&member) {
            return Err(SequenceError::Exists);
        }
        let index = self.index_of(&place)?;
        self.members.insert(index, member);
        self.revision += 1;
        Ok(())
    }

    /// Replaces a member by another one (`BPF_F_REPLACE`).
    ///
    /// # Errors
    /// [`SequenceError`].
    pub fn replace(&mut self, old: &T, new: T, expected: Option<u64>) -> Result<(), SequenceError> {
        self.check(expected)?;
        if self.members.contains(&new) {
            return Err(SequenceError::Exists);
        }
        let place = self.members.iter_mut().find(|member| *member == old);
        *place.ok_or(SequenceError::Missing)? = new;
        self.revision += 1;
        Ok(())
    }

    /// Removes a member.
    ///
    /// # Errors
    /// [`SequenceError`].
    pub fn remove(&mut self, member: &T, expected: Option<u64>) -> Result<(), SequenceError> {
        self.check(expected)?;
        let index = self.position(member)?;
        self.members.remove(index);
        self.revision += 1;
        Ok(())
    }

    /// Moves a member to another place, in one change.
    ///
    /// # Errors
    /// [`SequenceError`]; a member cannot be placed relative to itself.
    pub fn reorder(
        &mut self,
        member: &T,
        place: Place<T>,
        expected: Option<u64>,
    ) -> Result<(), SequenceError> {
        self.check(expected)?;
        let from = self.position(member)?;
        let moved = self.members.remove(from);
        match self.index_of(&place) {
            Ok(index) => self.members.insert(index, moved),
            Err(error) => {
                self.members.insert(from, moved);
                return Err(error);
            }
        }
        self.revision += 1;
        Ok(())
    }

    /// Moves a member by a placement, in one change.
    ///
    /// # Errors
    /// [`SequenceError`]; a member cannot be placed relative to itself.
    pub fn settle(
        &mut self,
        member: &T,
        placement: Placement<T>,
        expected: Option<u64>,
    ) -> Result<(), SequenceError> {
        let old = match placement {
            Placement::At(place) => return self.reorder(member, place, expected),
            Placement::Replacing(old) => old,
        };
        self.check(expected)?;
        let from = self.position(member)?;
        let to = self.position(&old)?;
        if from == to {
            return Err(SequenceError::Missing);
        }
        self.members.swap(from, to);
        self.members.remove(from);
        self.revision += 1;
        Ok(())
    }

    /// Increments the revision for a change of something other than the order.
    ///
    /// # Errors
    /// [`SequenceError::Stale`].
    pub fn touch(&mut self, expected: Option<u64>) -> Result<(), SequenceError> {
        self.check(expected)?;
        self.revision += 1;
        Ok(())
    }

    fn check(&self, expected: Option<u64>) -> Result<(), SequenceError> {
        match expected {
            Some(expected) if expected != self.revision => {
                Err(SequenceError::Stale { expected, current: self.revision })
            }
            _ => Ok(()),
        }
    }

    fn position(&self, member: &T) -> Result<usize, SequenceError> {
        self.members.iter().position(|other| other == member).ok_or(SequenceError::Missing)
    }

    fn index_of(&self, place: &Place<T>) -> Result<usize, SequenceError> {
        match place {
            Place::First => Ok(0),
            Place::Last => Ok(self.members.len()),
            Place::Before(member) => self.position(member),
            Place::After(member) => Ok(self.position(member)? + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(members: &[u32]) -> Sequence<u32> {
        let mut sequence = Sequence::default();
        members.iter().for_each(|member| sequence.insert(*member, Place::Last, None).unwrap());
        sequence
    }

    #[test]
    fn places_are_relative_to_what_is_there() {
        let mut sequence = sequence(&[1, 2]);
        sequence.insert(3, Place::First, None).unwrap();
        sequence.insert(4, Place::Before(2), None).unwrap();
        sequence.insert(5, Place::After(1), None).unwrap();
        assert_eq!(sequence.members(), [3, 1, 5, 4, 2]);
        assert_eq!(sequence.revision(), 6);
        sequence.reorder(&3, Place::Last, Some(6)).unwrap();
        sequence.reorder(&1, Place::After(4), None).unwrap();
        assert_eq!(sequence.members(), [5, 4, 1, 2, 3]);
        sequence.settle(&5, Placement::At(Place::After(3)), None).unwrap();
        assert_eq!(sequence.members(), [4, 1, 2, 3, 5]);
        sequence.settle(&5, Placement::Replacing(1), None).unwrap();
        assert_eq!(sequence.members(), [4, 5, 2, 3]);
        sequence.settle(&4, Placement::Replacing(3), Some(10)).unwrap();
        assert_eq!((sequence.members(), sequence.revision()), ([5, 2, 4].as_slice(), 11));
    }

    #[test]
    fn what_is_refused_changes_nothing() {
        let mut sequence = sequence(&[1, 2]);
        let before = sequence.clone();
        assert_eq!(sequence.insert(1, Place::First, None), Err(SequenceError::Exists));
        assert_eq!(sequence.insert(3, Place::After(9), None), Err(SequenceError::Missing));
        assert_eq!(sequence.replace(&1, 1, None), Err(SequenceError::Exists));
        assert_eq!(sequence.replace(&9, 3, None), Err(SequenceError::Missing));
        assert_eq!(sequence.reorder(&1, Place::Before(1), None), Err(SequenceError::Missing));
        let stale = SequenceError::Stale { expected: 2, current: 3 };
        assert_eq!(sequence.remove(&1, Some(2)), Err(stale));
        assert_eq!(sequence.touch(Some(2)), Err(stale));
        assert_eq!(sequence.settle(&1, Placement::Replacing(1), None), Err(SequenceError::Missing));
        assert_eq!(sequence.settle(&9, Placement::Replacing(1), None), Err(SequenceError::Missing));
        assert_eq!(sequence.settle(&1, Placement::Replacing(9), None), Err(SequenceError::Missing));
        assert_eq!(sequence.settle(&1, Placement::Replacing(2), Some(2)), Err(stale));
        assert_eq!(sequence, before);
    }
}
