//! How to compile.

/// Instructions that not every x86-64 processor has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// BMI2: shifts by any register.
    pub bmi2: bool,
    /// MOVBE: loads that reverse the bytes.
    pub movbe: bool,
}

impl Features {
    /// What every x86-64 processor has.
    pub const BASELINE: Self = Self { bmi2: false, movbe: false };

    /// The values common to both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { bmi2: self.bmi2 && other.bmi2, movbe: self.movbe && other.movbe }
    }

    /// What this machine has.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        return Self {
            bmi2: std::arch::is_x86_feature_detected!("bmi2"),
            movbe: std::arch::is_x86_feature_detected!("movbe"),
        };
        #[cfg(not(target_arch = "x86_64"))]
        Self::BASELINE
    }
}

/// How far ahead the loop over a burst has the packets' first bytes fetched into the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefetch {
    /// As far as pays, for programs for which it does.
    #[default]
    Auto,
    /// So many packets; 0 for not at all.
    Ahead(u8),
}

/// How to compile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Instructions that may be used.
    pub features: Features,
    /// Whether every access to memory is checked when it happens: slow, and for programs that nobody verified.
    pub checked: bool,
    /// Whether every function saves all callee-saved registers and has all of its stack, needed or not: a baseline for the
    /// benchmark of prologues.
    #[cfg(feature = "variants")]
    pub full_prologue: bool,
    /// How far ahead packets are fetched.
    pub prefetch: Prefetch,
}

impl Settings {
    /// Whether every function has the full prologue.
    pub(crate) fn full_prologue(&self) -> bool {
        #[cfg(feature = "variants")]
        return self.full_prologue;
        #[cfg(not(feature = "variants"))]
        false
    }
}
