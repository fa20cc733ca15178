//! System interfaces that the standard library lacks: memory in use, processor time of a thread, limits and filters of
//! system calls, and a child that continues after `fork`.
#![allow(unsafe_code)]

use std::time::Duration;

/// Writes a line to the parent process, without locks.
pub(super) fn say(line: &str) {
    let line = format!("{line}\n");
    // SAFETY: the bytes are there.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// Exits immediately.
pub(super) fn leave(status: i32) -> ! {
    // SAFETY: nothing of the process is used after it.
    unsafe { libc::_exit(status) }
}

/// Heap memory in use in bytes; `None` if the allocator does not report it, as AddressSanitizer's.
pub(super) fn heap() -> Option<usize> {
    // SAFETY: a plain function of the C library.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks > 0).then_some(info.uordblks + info.hblkhd)
}

/// Peak memory of the process since the last [`reset_peak`], in bytes; `None` if the kernel does not report it.
pub(super) fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(1024 * line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?)
}

/// Resets the peak to the current memory (`clear_refs` in `proc(5)`). `None` if the allocator keeps freed memory, as
/// AddressSanitizer's.
pub(super) fn reset_peak() -> Option<usize> {
    heap()?;
    // Returns freed memory to the kernel, so that new allocations count.
    // SAFETY: a plain function of the C library.
    unsafe { libc::malloc_trim(0) };
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    peak()
}

/// Processor time of this thread.
pub(super) fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is there to be written.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Runs a closure in a forked child, which has only this thread. Returns its message if it failed.
pub(super) fn in_child(
    meanwhile: impl FnOnce(),
    child: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    // SAFETY: the child runs nothing but the closure, and ends without running destructors of the parent's.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: the default action of the signal ends a child that hangs.
        unsafe { libc::alarm(10) };
        match child() {
            Ok(()) => leave(0),
            Err(words) => {
                say(&format!("child: {words}"));
                leave(3)
            }
        }
    }
    if pid < 0 {
        return Ok(());
    }
    meanwhile();
    let mut status = 0;
    // SAFETY: our own child.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    match (libc::WIFSIGNALED(status), libc::WEXITSTATUS(status)) {
        (true, _) => Err(format!("the child of a fork died of signal {}", libc::WTERMSIG(status))),
        (false, 0) => Ok(()),
        (false, 3) => Err("the child of a fork found something".to_owned()),
        (false, other) => Err(format!("the child of a fork ended with {other}")),
    }
}

/// Makes `membarrier(2)` fail with `EPERM` for all threads of the process, from now on.
pub(super) fn deny_membarrier() -> bool {
    let filter = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let Ok(number) = u32::try_from(libc::SYS_membarrier) else { return false };
    let mut program = [
        filter(0x20, 0, 0, 0),
        filter(0x15, 0, 1, number),
        filter(0x06, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs()),
        filter(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the filter lives through the call.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_TSYNC,
                &raw const program,
            ) == 0
    }
}

/// Runs a closure with at most this many more bytes of address space, if that can be limited.
pub(super) fn short_of_memory<T>(bytes: u64, run: impl FnOnce() -> T) -> T {
    let used = std::fs::read_to_string("/proc/self/statm").ok().and_then(|text| {
        let pages: u64 = text.split(' ').next()?.parse().ok()?;
        Some(pages * 4096)
    });
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is there to be written.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut before) } == 0;
    let (Some(used), true, Some(_)) = (used, known, heap()) else { return run() };
    let limit = libc::rlimit { rlim_cur: used + bytes, ..before };
    // SAFETY: the structures live through the calls.
    unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
    let result = run();
    // SAFETY: as above.
    unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const before) };
    result
}
