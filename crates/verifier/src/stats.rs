//! What a verification costs.

/// Cost of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Instructions simulated.
    pub instructions: usize,
    /// States kept for comparison, in total.
    pub states: usize,
    /// Maximum number of states kept at one time.
    pub peak_states: usize,
    /// Maximum number of branches waiting at one time.
    pub peak_branches: usize,
    /// Maximum number of bytes of both at one time. Shared parts of states are counted in each state.
    pub peak_bytes: usize,
    /// Steps of comparing and keeping states: values, slots and ids compared, checkpoints passed.
    pub work: usize,
    /// How often a path ended because its state was covered by an earlier one.
    pub pruned: usize,
}
