//! Input and results of seccomp programs (`linux/seccomp.h`).

use std::fmt;

/// Size of `struct seccomp_data` in bytes.
pub const SECCOMP_DATA_BYTES: u32 = 64;

/// A system call as input of a program, `struct seccomp_data`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SystemCall {
    /// System call number.
    pub number: i32,
    /// `AUDIT_ARCH_*` of the calling convention (`linux/audit.h`).
    pub arch: u32,
    /// Address of the calling instruction.
    pub instruction_pointer: u64,
    /// Arguments.
    pub arguments: [u64; 6],
}

impl SystemCall {
    /// `AUDIT_ARCH_X86_64`.
    pub const X86_64: u32 = 0xc000_003e;

    /// The bytes of `struct seccomp_data`, in native byte order.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; SECCOMP_DATA_BYTES as usize] {
        let mut bytes = [0; SECCOMP_DATA_BYTES as usize];
        let words = [self.number.cast_unsigned(), self.arch];
        let words = words.into_iter().flat_map(u32::to_ne_bytes);
        let longs = std::iter::once(self.instruction_pointer).chain(self.arguments);
        let all = words.chain(longs.flat_map(u64::to_ne_bytes));
        bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = byte);
        bytes
    }
}

/// Action for a system call; the `u16` is the low 16 bits of the return value (`SECCOMP_RET_DATA`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The process is killed; also the meaning of unknown actions.
    KillProcess,
    /// The thread is killed.
    KillThread,
    /// The thread receives `SIGSYS` with this data.
    Trap(u16),
    /// The call fails with this error number; the kernel reduces values above 4095 to 4095.
    Errno(u16),
    /// A listener in user space decides.
    UserNotify,
    /// A tracer is notified with this data.
    Trace(u16),
    /// The call is logged and executed.
    Log,
    /// The call is executed.
    Allow,
}

impl Action {
    /// Decodes a return value.
    #[must_use]
    pub fn from_return(value: u32) -> Self {
        const MAX_ERRNO: u16 = 4095;
        let data = value as u16;
        match value & 0xffff_0000 {
            0x0000_0000 => Self::KillThread,
            0x0003_0000 => Self::Trap(data),
            0x0005_0000 => Self::Errno(data.min(MAX_ERRNO)),
            0x7fc0_0000 => Self::UserNotify,
            0x7ff0_0000 => Self::Trace(data),
            0x7ffc_0000 => Self::Log,
            0x7fff_0000 => Self::Allow,
            _ => Self::KillProcess,
        }
    }
}

/// The names of libseccomp's `SCMP_ACT_*`, in lower case: `errno(13)`.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KillProcess => f.write_str("kill_process"),
            Self::KillThread => f.write_str("kill_thread"),
            Self::Trap(data) => write!(f, "trap({data})"),
            Self::Errno(errno) => write!(f, "errno({errno})"),
            Self::UserNotify => f.write_str("notify"),
            Self::Trace(data) => write!(f, "trace({data})"),
            Self::Log => f.write_str("log"),
            Self::Allow => f.write_str("allow"),
        }
    }
}
