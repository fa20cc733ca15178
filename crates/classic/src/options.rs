//! Options of the conversion.

/// Return value of the program for a filter's result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Returns {
    /// The result: the number of bytes to keep, 0 for no match.
    #[default]
    Number,
    /// One constant for a match and one for no match, such as XDP's `PASS` (2) and `DROP` (1), which makes the filter a link of a
    /// chain.
    Verdict {
        /// For nonzero results.
        matched: u32,
        /// For the result 0.
        unmatched: u32,
    },
}

impl Returns {
    /// XDP's `PASS` for a match and `DROP` for no match: a link of a chain.
    pub const PASS_OR_DROP: Self = Self::Verdict { matched: 2, unmatched: 1 };

    pub(super) fn unmatched(self) -> u32 {
        match self {
            Self::Number => 0,
            Self::Verdict { unmatched, .. } => unmatched,
        }
    }

    pub(super) fn of(self, answer: u32) -> u32 {
        match self {
            Self::Number => answer,
            Self::Verdict { matched, .. } if answer != 0 => matched,
            Self::Verdict { unmatched, .. } => unmatched,
        }
    }
}

/// Semantics to follow where the kernel and libpcap differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// The kernel's, as for a filter attached to a socket.
    #[default]
    Kernel,
    /// libpcap's (`bpf_filter`), which tcpdump uses for captures: the length is that on the wire, negative offsets and sums over
    /// 2^32 are out of bounds, shifts by 32 and more give 0.
    ///
    /// An XDP program takes the wire length from the first four bytes of the packet's metadata, in native byte order; without
    /// metadata it is the captured length.
    Libpcap,
}

/// Options of the conversion, set one after the other: `ConvertOptions::new().returns(Returns::PASS_OR_DROP)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConvertOptions {
    /// Return values.
    pub returns: Returns,
    /// Size of the link-layer header in bytes, the base of `SKF_NET_OFF`: 14 for Ethernet.
    pub network_offset: u32,
    /// Semantics.
    pub rules: Rules,
}

impl ConvertOptions {
    /// The number that the filter returns, Ethernet, the kernel's semantics.
    #[must_use]
    pub const fn new() -> Self {
        Self { returns: Returns::Number, network_offset: 14, rules: Rules::Kernel }
    }

    /// Sets the return values.
    #[must_use]
    pub const fn returns(mut self, returns: Returns) -> Self {
        self.returns = returns;
        self
    }

    /// Sets the size of the link-layer header in bytes.
    #[must_use]
    pub const fn network_offset(mut self, bytes: u32) -> Self {
        self.network_offset = bytes;
        self
    }

    /// Sets the semantics.
    #[must_use]
    pub const fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self::new()
    }
}
