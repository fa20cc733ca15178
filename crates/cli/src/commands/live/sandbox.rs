//! Privileges that a live run drops once its ports are open: capabilities, and system calls that it does not need.

use std::io;

use paceline::filter::{CheckError, Filter, Purpose, text};
use rustix::process::getpid;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use seccompiler::{apply_filter_all_threads, sock_filter};

use crate::common::failure::CommandError;

/// Privileges cannot be dropped.
#[derive(Debug, thiserror::Error)]
pub(super) enum SandboxError {
    #[error("cannot drop capabilities: {0}")]
    Capabilities(io::Error),
    #[error("cannot filter system calls: {0}")]
    Apply(seccompiler::Error),
    #[error("the filter of system calls is malformed, which is a fault of Paceline: {0}")]
    Malformed(String),
}

impl CommandError for SandboxError {
    fn hint(&self) -> Option<String> {
        Some("--keep-privileges runs without".to_owned())
    }
}

/// Drops all capabilities, and makes system calls fail that the run does not need. Threads that are started afterwards inherit both.
/// `needs` are those of the ports.
pub(super) fn enter(needs: Needs) -> Result<(), SandboxError> {
    let none = CapabilitySet::empty();
    set_no_new_privs(true)
        .and_then(|()| {
            set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        })
        .map_err(|errno| SandboxError::Capabilities(errno.into()))?;
    let Some(arch) = ARCH else { return Ok(()) };
    let filter = filter(arch, getpid().as_raw_nonzero().get().cast_unsigned(), needs)?;
    let raw = filter.insns().iter().map(|insn| sock_filter {
        code: insn.code,
        jt: insn.jt,
        jf: insn.jf,
        k: insn.k,
    });
    apply_filter_all_threads(&raw.collect::<Vec<_>>()).map_err(SandboxError::Apply)
}

/// System calls of ports, beside those of each run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    /// DPDK's drivers and threads.
    pub(super) dpdk: bool,
    /// Connections of shared-memory interfaces, which begin again when a peer comes back.
    pub(super) memif: bool,
}

/// `AUDIT_ARCH_*` of the system calls below (`linux/audit.h`).
const ARCH: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

/// System calls of a run, with any arguments.
const ALLOWED: &[libc::c_long] = &[
    // Packets and requests.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_accept4,
    libc::SYS_shutdown,
    libc::SYS_ppoll,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_lseek,
    // Files of a chain that is read again, and their names.
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_getcwd,
    libc::SYS_readlinkat,
    libc::SYS_uname,
    libc::SYS_unlinkat,
    // Memory, and native code.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    libc::SYS_sendfile,
    libc::SYS_membarrier,
    // Threads, time, signals.
    libc::SYS_clone3,
    libc::SYS_clone,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_futex,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_yield,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_time,
];

/// System calls of DPDK's interrupt thread, alarms and connections (memif, vhost).
const OF_DPDK: &[libc::c_long] = &[
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_eventfd2,
    libc::SYS_pipe2,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_getsockname,
    libc::SYS_mlock,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_create,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
];

/// System calls of shared-memory interfaces: events, and connections of sockets of the family AF_UNIX.
const OF_MEMIF: &[libc::c_long] =
    &[libc::SYS_epoll_ctl, libc::SYS_eventfd2, libc::SYS_connect, libc::SYS_preadv2];

/// Requests of `ioctl` about terminals, sockets and the names of interfaces.
const REQUESTS: [u32; 4] = [
    libc::TCGETS as u32,
    libc::TIOCGWINSZ as u32,
    libc::FIONBIO as u32,
    0x8910, // SIOCGIFNAME
];

/// Options of `prctl`: names of threads and of memory, and what the kernel tells each process.
const OPTIONS: [u32; 3] = [
    libc::PR_SET_NAME as u32,
    0x5356_4d41, // PR_SET_VMA
    0x4155_5856, // PR_GET_AUXV
];

/// Flags of `openat` for files that are written.
const WRITES: u32 = (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) as u32;

/// Offsets in `struct seccomp_data` (`linux/seccomp.h`).
const NUMBER: usize = 0;
const ARCHITECTURE: usize = 4;

/// Offset of the lower half of an argument, on a little-endian machine.
const fn argument(number: usize) -> usize {
    16 + 8 * number
}

/// The filter: calls that are not allowed fail with `ENOSYS`, so that libraries use others, and arguments with `EPERM`.
fn filter(arch: u32, pid: u32, needs: Needs) -> Result<Filter, SandboxError> {
    let malformed = |error: CheckError| SandboxError::Malformed(error.to_string());
    let insns = text::parse(&listing(arch, pid, needs))
        .map_err(|error| SandboxError::Malformed(error.to_string()))?;
    Filter::new(insns, Purpose::Seccomp).map_err(malformed)
}

fn listing(arch: u32, pid: u32, needs: Needs) -> String {
    let of_dpdk = if needs.dpdk { OF_DPDK } else { &[] };
    let of_memif = if needs.memif { OF_MEMIF } else { &[] };
    let one_of = |at: usize, values: &[u32]| {
        let each = values.iter().map(|value| format!("jeq #{value}, allow\n"));
        format!("ld [{at}]\n{}ja deny\n", each.collect::<String>())
    };
    let own = one_of(argument(0), &[pid]);
    let limited = [
        (libc::SYS_openat, "open", format!("ld [{}]\njset #{WRITES}, deny, allow\n", argument(2))),
        (libc::SYS_ioctl, "control", one_of(argument(1), &REQUESTS)),
        (libc::SYS_prctl, "option", one_of(argument(0), &OPTIONS)),
        (libc::SYS_socket, "family", one_of(argument(0), &[libc::AF_UNIX as u32])),
        (libc::SYS_kill, "kill", own.clone()),
        (libc::SYS_tgkill, "tgkill", own),
    ];
    let mut text = format!("ld [{ARCHITECTURE}]\njne #{arch}, deny\nld [{NUMBER}]\n");
    for (number, label, _) in &limited {
        text += &format!("jeq #{number}, {label}\n");
    }
    for number in ALLOWED.iter().chain(of_dpdk).chain(of_memif) {
        text += &format!("jeq #{number}, allow\n");
    }
    // Classic programs jump forward only: the ends are last.
    text += "ja absent\n";
    for (_, label, check) in &limited {
        text += &format!("{label}: {check}");
    }
    text += &format!("absent: ret #{:#x}\n", libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);
    text += &format!("deny: ret #{:#x}\n", libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
    text += &format!("allow: ret #{:#x}\n", libc::SECCOMP_RET_ALLOW);
    text
}

#[cfg(test)]
mod tests {
    use paceline::Host;
    use paceline::filter::{Action, Seccomp, SystemCall};

    use super::*;

    #[test]
    fn the_filter_allows_what_a_run_does() {
        let (Some(arch), pid) = (ARCH, 77) else { return };
        let filter =
            |needs| Seccomp::new(&filter(arch, pid, needs).expect("a filter")).expect("for system calls");
        let plain = filter(Needs::default());
        let (of_dpdk, of_memif) = (
            filter(Needs { dpdk: true, ..Needs::default() }),
            filter(Needs { memif: true, ..Needs::default() }),
        );
        let ask = |filter: &Seccomp, arch, number: libc::c_long, arguments: &[u64]| {
            let mut call = SystemCall { number: number as i32, arch, ..SystemCall::default() };
            call.arguments[..arguments.len()].copy_from_slice(arguments);
            filter.action(&call, &mut Host::default()).expect("it ends")
        };
        let action = |arch, number, arguments: &[u64]| ask(&plain, arch, number, arguments);
        let errno = |errno: i32| Action::Errno(errno as u16);
        for number in OF_DPDK {
            assert_eq!(action(arch, *number, &[]), errno(libc::ENOSYS), "{number}");
            assert_eq!(ask(&of_dpdk, arch, *number, &[]), Action::Allow, "{number}");
        }
        for number in OF_MEMIF {
            assert_eq!(action(arch, *number, &[]), errno(libc::ENOSYS), "{number}");
            assert_eq!(ask(&of_memif, arch, *number, &[]), Action::Allow, "{number}");
        }
        for number in ALLOWED {
            assert_eq!(action(arch, *number, &[]), Action::Allow, "{number}");
        }
        for number in [libc::SYS_execve, libc::SYS_bpf, libc::SYS_connect, libc::SYS_ptrace] {
            assert_eq!(action(arch, number, &[]), errno(libc::ENOSYS), "{number}");
        }
        for (number, arguments) in [
            (libc::SYS_socket, vec![libc::AF_INET as u64]),
            (libc::SYS_openat, vec![0, 0, libc::O_WRONLY as u64]),
            (libc::SYS_openat, vec![0, 0, (libc::O_CREAT | libc::O_CLOEXEC) as u64]),
            (libc::SYS_kill, vec![78]),
            (libc::SYS_tgkill, vec![1]),
            (libc::SYS_ioctl, vec![0, libc::TIOCSTI]),
            (libc::SYS_prctl, vec![libc::PR_SET_DUMPABLE as u64]),
        ] {
            assert_eq!(action(arch, number, &arguments), errno(libc::EPERM), "{number}({arguments:?})");
        }
        for (number, arguments) in [
            (libc::SYS_openat, vec![0, 0, libc::O_CLOEXEC as u64]),
            (libc::SYS_socket, vec![libc::AF_UNIX as u64]),
            (libc::SYS_tgkill, vec![77]),
            (libc::SYS_ioctl, vec![3, libc::FIONBIO]),
            (libc::SYS_prctl, vec![libc::PR_SET_NAME as u64]),
        ] {
            assert_eq!(action(arch, number, &arguments), Action::Allow, "{number}({arguments:?})");
        }
        // Numbers of another calling convention.
        assert_eq!(action(0x4000_0003, libc::SYS_read, &[]), errno(libc::EPERM));
    }
}
