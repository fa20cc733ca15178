//! Options of loading.

use paceline_btf::Btf;
use paceline_spec::ProgramKind;

use crate::kernel::{Config, KernelVersion};
use crate::section::ProgramSection;

/// Properties of a kernel and other parameters of loading, set one after the other:
/// `ObjectOptions::default().target_btf(&types).config(&config)`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ObjectOptions<'a> {
    /// Target types for CO-RE relocations: a kernel's, from `/sys/kernel/btf/vmlinux`. Without them, fields have the offsets of the
    /// object's own BTF, and a program that reaches a question whether something exists is refused ([`Needs`](crate::Needs) lists what an object
    /// asks).
    pub target_btf: Option<&'a Btf>,
    /// The value of `LINUX_KERNEL_VERSION`.
    pub kernel_version: KernelVersion,
    /// Kernel configuration options by name, including `CONFIG_`. A program that uses a missing option is refused, unless it
    /// declares it `__weak`: then it is 0.
    pub config: Option<&'a Config>,
    /// Names of additional kernel functions, beside those that Paceline knows ([`paceline_spec::kfunc`]). Other `__weak` functions
    /// are null.
    pub kfuncs: &'a [&'a str],
    /// The type of programs in sections whose names do not determine it.
    pub given_type: Option<GivenType<'a>>,
    /// Whether programs get their local variables ([`ProgramSpec::variables`](paceline_spec::ProgramSpec::variables)), which are in
    /// DWARF. Damaged DWARF gives fewer, and no error.
    pub variables: bool,
}

impl<'a> ObjectOptions<'a> {
    /// Sets the target types for CO-RE relocations; `None` relocates nothing.
    #[must_use]
    pub fn target_btf(mut self, types: impl Into<Option<&'a Btf>>) -> Self {
        self.target_btf = types.into();
        self
    }

    /// Sets the value of `LINUX_KERNEL_VERSION`.
    #[must_use]
    pub const fn kernel_version(mut self, version: KernelVersion) -> Self {
        self.kernel_version = version;
        self
    }

    /// Sets the kernel's configuration options; `None` has none.
    #[must_use]
    pub fn config(mut self, config: impl Into<Option<&'a Config>>) -> Self {
        self.config = config.into();
        self
    }

    /// Sets the names of additional kernel functions.
    #[must_use]
    pub const fn kfuncs(mut self, names: &'a [&'a str]) -> Self {
        self.kfuncs = names;
        self
    }

    /// Sets the type of programs in sections whose names do not determine it.
    #[must_use]
    pub fn given_type(mut self, given: impl Into<Option<GivenType<'a>>>) -> Self {
        self.given_type = given.into();
        self
    }

    /// Sets whether programs get their local variables.
    #[must_use]
    pub const fn variables(mut self, variables: bool) -> Self {
        self.variables = variables;
        self
    }
}

/// A program type that a loader assigns, as `bpftool prog load ... type` does.
#[derive(Clone, Copy, Debug)]
pub struct GivenType<'a> {
    /// The type.
    pub kind: ProgramKind,
    /// The program to assign it to, regardless of its section. `None` for all programs in sections whose names do not determine a
    /// type that Paceline runs.
    pub program: Option<&'a str>,
}

impl GivenType<'_> {
    /// The section's type under this setting. A program that is not named explicitly is optional.
    pub(crate) fn section(&self, name: &str) -> Option<ProgramSection> {
        let named = self.program.is_some_and(|program| program == name);
        let given = named || self.program.is_none();
        given.then_some(ProgramSection { kind: self.kind, autoload: named })
    }
}

impl Default for ObjectOptions<'_> {
    fn default() -> Self {
        Self {
            target_btf: None,
            kernel_version: KernelVersion::DEFAULT,
            config: None,
            kfuncs: &[],
            given_type: None,
            variables: false,
        }
    }
}
