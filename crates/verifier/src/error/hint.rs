//! The commonest mistakes, and their fixes.

use std::fmt;

/// Declares the hints, their list and their texts.
macro_rules! hints {
    ($($(#[$doc:meta])* $hint:ident => $text:literal,)*) => {
        /// The commonest mistakes, which a message can help with.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Hint {
            $($(#[$doc])* $hint,)*
        }

        impl Hint {
            /// Every hint.
            pub const ALL: &[Self] = &[$(Self::$hint,)*];
        }

        impl fmt::Display for Hint {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$hint => $text,)*
                })
            }
        }
    };
}

hints! {
    /// The packet is read without a comparison with its end.
    MissingBoundsCheck => "compare the pointer plus the bytes you need with data_end first",
    /// There was a comparison, but for fewer bytes or of another pointer.
    ShortBoundsCheck => "the comparison with data_end must cover every byte of this access, and be of this pointer",
    /// The result of a look-up is used without a comparison with null.
    NullCheck => "compare the pointer with null first",
    /// A variable offset needs an upper (or lower) bound.
    BoundOffset => "bound the offset on both sides before adding it, or mask it with &",
    /// The pointer is from before a call that moved the packet.
    StalePacketPointer => "load data and data_end from the context again after the call",
    /// The slice may be a buffer that was overwritten since, or has ended.
    EndedSlice => "a slice may be the buffer passed for it: use it before a pointer or dynptr is stored there, and while the buffer exists",
    /// The loop needs a bound.
    BoundLoop => "give the loop a constant bound that the counter must reach",
    /// The register or variable is not set on this path.
    Initialize => "give it a value on every path that leads here",
    /// The program is no loop, and has too many paths.
    FewerPaths => "replace comparisons by a look-up in a map or table, or verify parts alone: functions that are not static, tail calls",
    /// A record of a ring buffer must be released on every path.
    ReleaseRecord => "submit or discard the record on every path",
    /// A socket must be released on every path.
    ReleaseSocket => "release the socket by bpf_sk_release on every path on which it is not null",
    /// A tracked connection must be released on every path.
    ReleaseConnection => "release the connection by bpf_ct_release on every path on which it is not null",
    /// A new connection must be put into the table.
    InsertConnection => "insert the new connection by bpf_ct_insert_entry on every path on which it is not null, and release what that returns",
    /// An iterator must be destroyed on every path.
    DestroyIterator => "call bpf_iter_num_destroy on every path; bpf_for and bpf_repeat of bpf_helpers.h do so",
    /// A lock must be released.
    Unlock => "call bpf_spin_unlock before, on every path",
    /// The stack is too small for large variables.
    StackTooDeep => "keep large variables in a per-CPU array map",
    /// The helper is for other program types.
    OtherHelper => "look up which helpers this type of program has",
    /// The helper is for programs under the GPL.
    License => "declare a license that is compatible with the GPL",
    /// The bound allows one element too many.
    OffByOne => "the bound lets the first index through that is past the end: compare with >= or less",
    /// The compiler did not optimize.
    Optimize => "compile with -O2: without, compilers call helpers and functions through registers",
}
