//! Programs that may call a helper, and the parts that Paceline lacks for helpers that it does not have.

use super::program_kind::ProgramKind;

/// Program types that may call a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callers {
    /// None of the program types here.
    None,
    /// All network types.
    All,
    /// XDP programs.
    Xdp,
    /// TC classifiers.
    SchedCls,
    /// XDP programs and TC classifiers.
    XdpAndSchedCls,
    /// Programs whose context is a `__sk_buff`: socket filters and TC classifiers.
    SkBuff,
}

impl Callers {
    pub(crate) const fn has(self, kind: ProgramKind) -> bool {
        match kind {
            ProgramKind::Xdp { .. } => matches!(self, Self::All | Self::Xdp | Self::XdpAndSchedCls),
            ProgramKind::SocketFilter => matches!(self, Self::All | Self::SkBuff),
            ProgramKind::SchedCls => {
                matches!(self, Self::All | Self::SchedCls | Self::XdpAndSchedCls | Self::SkBuff)
            }
        }
    }
}

pub(crate) const IMPLEMENTATION: &str = "an implementation";
pub(crate) const SOCKETS: &str = "kernel sockets";
pub(crate) const TASKS: &str = "kernel tasks, control groups or memory";
pub(crate) const TUNNELS: &str = "kernel tunnel devices";
pub(crate) const USER_RING_BUFFERS: &str = "ring buffers that user space writes";

/// Licenses the kernel counts as compatible (`license_is_gpl_compatible` in `include/linux/license.h`).
const GPL_COMPATIBLE: &[&str] =
    &["GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL"];

/// Whether programs under a license may call helpers for GPL programs.
#[must_use]
pub fn is_gpl_compatible(license: &str) -> bool {
    GPL_COMPATIBLE.contains(&license)
}
