//! The uses that programs may make of a map.

/// A use that a helper makes of the map among its arguments (`check_map_func_compatibility` in `kernel/bpf/verifier.c`, and
/// `map_for_each_callback` of the kind's `struct bpf_map_ops`). Helpers without such a use, such as `bpf_timer_init`, take maps
/// of every kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MapUse {
    /// `bpf_map_lookup_elem`
    Lookup,
    /// `bpf_map_lookup_percpu_elem`
    LookupPerCpu,
    /// `bpf_map_update_elem`
    Update,
    /// `bpf_map_delete_elem`
    Delete,
    /// `bpf_for_each_map_elem`
    ForEach,
    /// `bpf_map_push_elem`
    Push,
    /// `bpf_map_pop_elem`
    Pop,
    /// `bpf_map_peek_elem`
    Peek,
    /// `bpf_redirect_map`
    Redirect,
    /// `bpf_ringbuf_output`, `bpf_ringbuf_reserve`, `bpf_ringbuf_query`, `bpf_ringbuf_reserve_dynptr`
    RingBuffer,
    /// `bpf_perf_event_output`
    PerfEvent,
    /// `bpf_tail_call`
    TailCall,
}
