//! Resolution of names by the caller.

/// Resolves the names of helpers, kernel functions and maps for the assembler. `()` resolves none.
pub trait Names {
    /// The number of a helper, as in `call bpf_map_lookup_elem`.
    fn helper(&self, _name: &str) -> Option<i32> {
        None
    }

    /// The index of a kernel function in the program's list, as in `call bpf_iter_num_new`; called for names that are neither
    /// labels nor helpers.
    fn kfunc(&self, _name: &str) -> Option<i32> {
        None
    }

    /// The index of a map in the program's list, as in `r1 = map[counters] ll`.
    fn map(&self, _name: &str) -> Option<i32> {
        None
    }

    /// The index of the map with this kernel id, as in bpftool's `r1 = map[id:5]`.
    fn map_by_id(&self, _id: u32) -> Option<i32> {
        None
    }
}

impl Names for () {}
