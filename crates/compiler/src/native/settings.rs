//! Compiler settings.

/// A set of optional extensions of x86-64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// BMI2: shifts with the count in any register, `rorx` and `mulx`.
    pub bmi2: bool,
}

impl Features {
    /// The instructions of all x86-64 CPUs.
    pub const BASELINE: Self = Self { bmi2: false };

    /// Extensions that both sets have.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { bmi2: self.bmi2 && other.bmi2 }
    }

    /// Extensions of this machine's CPU.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        return Self { bmi2: std::arch::is_x86_feature_detected!("bmi2") };
        #[cfg(not(target_arch = "x86_64"))]
        Self::BASELINE
    }
}

/// The machine that code is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// x86-64.
    X86_64,
    /// arm64 in little-endian order.
    Arm64,
}

impl Default for Architecture {
    /// This machine, if there is code for it, and x86-64 otherwise.
    fn default() -> Self {
        if cfg!(target_arch = "aarch64") { Self::Arm64 } else { Self::X86_64 }
    }
}

/// Prefetch distance of the loop over a burst, for the packets' first bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefetch {
    /// Chosen by the compiler, for programs that profit.
    #[default]
    Auto,
    /// Distance in packets; 0 disables prefetching.
    Ahead(u8),
}

/// Optimization level: the passes that run over a program in SSA form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OptLevel {
    /// None: code is generated from the form as it was built.
    None,
    /// All.
    #[default]
    Full,
}

/// Compiler settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The machine.
    pub architecture: Architecture,
    /// Extensions that may be used, of x86-64.
    pub features: Features,
    /// Whether every function saves all callee-saved registers and allocates the maximum stack, needed or not: the baseline of the
    /// prologue benchmark.
    #[cfg(feature = "variants")]
    pub full_prologue: bool,
    /// Prefetch distance.
    pub prefetch: Prefetch,
    /// Optimization level.
    pub opt_level: OptLevel,
    /// Whether the allocation of registers is checked in builds with optimization too.
    pub verify_allocation: bool,
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
