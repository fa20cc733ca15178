//! Processes that may not have writable and executable memory, and forks. Each test runs in its own process, because neither can be
//! undone.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::print_stderr, reason = "tests say there what they skip")]

use std::mem::transmute;
use std::process::Command;
use std::{env, io, process};

use paceline_engine::exec::{Arena, Code, CodeBlock, Domain, ExecError};

const ANSWER: [u8; 6] = [0xb8, 42, 0, 0, 0, 0xc3]; // mov eax, 42; ret

/// From `linux/prctl.h`; the libc crate does not define them for every C library.
const PR_SET_MDWE: libc::c_int = 65;
const PR_MDWE_REFUSE_EXEC_GAIN: libc::c_ulong = 1;

/// Reports a skipped test; fails if everything is required.
fn skip(test: &str, reason: &str) {
    eprintln!("SKIP {test}: {reason}");
    let required = env::var_os("PACELINE_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!required, "{test} must not be skipped: {reason}");
}

fn call(block: &CodeBlock) -> u32 {
    // SAFETY: ANSWER is a function of this type.
    let function = unsafe { transmute::<*const u8, extern "sysv64" fn() -> u32>(block.as_ptr()) };
    function()
}

/// Whether this is the process created for `test`; otherwise creates it and waits for it.
fn in_own_process(test: &str) -> bool {
    const VARIABLE: &str = "PACELINE_EXEC_TEST_OWN";
    if env::var(VARIABLE).is_ok_and(|value| value == test) {
        return true;
    }
    let mut own = Command::new(env::current_exe().unwrap());
    let output = own.args(["--exact", test, "--nocapture"]).env(VARIABLE, test).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    eprint!("{text}");
    assert!(output.status.success(), "{text}");
    false
}

/// The kernel denies memory that is writable and executable, or that becomes executable later (Linux 6.3).
#[test]
fn works_under_memory_deny_write_execute() {
    let test = "works_under_memory_deny_write_execute";
    if !in_own_process(test) {
        return;
    }
    // SAFETY: restricts this process only.
    if unsafe { libc::prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) } != 0 {
        return skip(test, &format!("PR_SET_MDWE: {}", io::Error::last_os_error()));
    }
    let block = Arena::global().unwrap().install(&Code::new(&ANSWER)).unwrap();
    assert_eq!(call(&block), 42);
}

#[test]
fn a_refusal_names_the_call_and_comes_again() {
    if !in_own_process("a_refusal_names_the_call_and_comes_again") {
        return;
    }
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: limits this process to its open files.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const none) }, 0);
    for _ in 0..2 {
        let error = Arena::global().unwrap_err();
        assert!(matches!(error, ExecError::Refused { call: "memfd_create", .. }), "{error}");
    }
}

#[test]
fn a_fork_may_run_code_but_not_change_it() {
    if !in_own_process("a_fork_may_run_code_but_not_change_it") {
        return;
    }
    let arena = Arena::new(1 << 20, Domain::new()).unwrap();
    let block = arena.install(&Code::new(&ANSWER)).unwrap();
    // SAFETY: the child uses nothing that another thread may have locked, and exits without running destructors.
    match unsafe { libc::fork() } {
        0 => {
            let refused = matches!(arena.install(&Code::new(&ANSWER)), Err(ExecError::Forked { .. }));
            let ran = call(&block) == 42;
            drop(block);
            arena.domain().collect();
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!(refused && ran))) };
        }
        child => {
            assert!(child > 0, "{}", io::Error::last_os_error());
            let mut status = 0;
            // SAFETY: waits for the process's own child, and the status is a local variable.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
            assert_eq!(
                call(&block),
                42,
                "the child has not overwritten the code of process {}",
                process::id()
            );
        }
    }
}

/// A fork that waits for a byte and then exits with the result of the code.
fn fork_that_calls(block: &CodeBlock) -> (libc::pid_t, io::PipeWriter) {
    let (mut reader, writer) = io::pipe().unwrap();
    // SAFETY: the child uses nothing that another thread may have locked, and exits without running destructors.
    match unsafe { libc::fork() } {
        0 => {
            let _ = io::Read::read(&mut reader, &mut [0]);
            // SAFETY: ends the child.
            unsafe { libc::_exit(call(block) as libc::c_int) }
        }
        child => (child, writer),
    }
}

fn wait(child: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    // SAFETY: waits for the process's own child, and the status is a local variable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// The child has a copy, so that the parent frees and reuses its memory as usual.
#[test]
fn a_fork_runs_what_its_parent_has_freed() {
    if !in_own_process("a_fork_runs_what_its_parent_has_freed") {
        return;
    }
    let arena = Arena::new(64 << 10, Domain::new()).unwrap();
    for round in 0..100 {
        // Half of the arena, so that the next block needs the memory of this one or of the previous one.
        let code = [ANSWER.as_slice(), &[0xc3; 30 << 10]].concat();
        let block = arena.install(&Code::new(&code)).unwrap();
        // Immediately, before the child can run, or later.
        let (child, mut writer) = fork_that_calls(&block);
        if round % 2 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        drop(block);
        assert_eq!(arena.domain().collect(), 1);
        let other =
            arena.install(&Code::new(&[[0xb8, 7, 0, 0, 0, 0xc3].as_slice(), &[0xc3; 1 << 10]].concat()));
        io::Write::write_all(&mut writer, &[1]).unwrap();
        assert_eq!(wait(child), 42 << 8, "round {round}");
        assert_eq!(call(&other.unwrap()), 7);
        arena.domain().collect();
    }
}

/// A child that cannot make a copy executes the shared memory, which the parent does not overwrite.
#[test]
fn a_fork_without_a_copy_runs_what_its_parent_has_freed() {
    if !in_own_process("a_fork_without_a_copy_runs_what_its_parent_has_freed") {
        return;
    }
    let arena = Arena::new(64 << 10, Domain::new()).unwrap();
    let block = arena.install(&Code::new(&ANSWER)).unwrap();
    let address = block.address();
    // SAFETY: the limit of open files is that of this process, which opens none until it is restored.
    let mut limit = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let (mut reader, mut writer) = io::pipe().unwrap();
    // SAFETY: as above; the child uses nothing that another thread may have locked.
    let child = unsafe {
        libc::setrlimit(libc::RLIMIT_NOFILE, &libc::rlimit { rlim_cur: 0, ..limit });
        let child = libc::fork();
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        child
    };
    if child == 0 {
        let _ = io::Read::read(&mut reader, &mut [0]);
        // SAFETY: ends the child.
        unsafe { libc::_exit(call(&block) as libc::c_int) }
    }
    drop(block);
    assert_eq!(arena.domain().collect(), 1);
    let other = arena.install(&Code::new(&ANSWER)).unwrap();
    assert_ne!(other.address(), address, "it may be run");
    io::Write::write_all(&mut writer, &[1]).unwrap();
    assert_eq!(wait(child), 42 << 8);
    // Code from after the fork is freed as usual.
    let address = other.address();
    drop(other);
    arena.domain().collect();
    let other = arena.install(&Code::new(&ANSWER)).unwrap();
    assert_eq!(other.address(), address);
    // Also after another fork that has a copy.
    let (child, mut writer) = fork_that_calls(&other);
    io::Write::write_all(&mut writer, &[1]).unwrap();
    assert_eq!(wait(child), 42 << 8);
    drop(other);
    arena.domain().collect();
    assert_eq!(arena.install(&Code::new(&ANSWER)).unwrap().address(), address);
}

/// More forks than words, none of which makes a copy.
#[test]
fn forks_without_a_copy_hold_back_what_they_have() {
    if !in_own_process("forks_without_a_copy_hold_back_what_they_have") {
        return;
    }
    let arena = Arena::new(64 << 10, Domain::new()).unwrap();
    let block = arena.install(&Code::new(&ANSWER)).unwrap();
    let address = block.address();
    // SAFETY: the limit is that of this process, which opens no file until it is restored; the children exit at once.
    unsafe {
        let mut limit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        libc::setrlimit(libc::RLIMIT_NOFILE, &libc::rlimit { rlim_cur: 0, ..limit });
        for _ in 0..600 {
            match libc::fork() {
                0 => libc::_exit(0),
                child => assert_eq!(wait(child), 0),
            }
        }
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
    drop(block);
    assert_eq!(arena.domain().collect(), 1);
    let other = arena.install(&Code::new(&ANSWER)).unwrap();
    assert_ne!(other.address(), address, "the last fork may run it");
    let (child, mut writer) = fork_that_calls(&other);
    io::Write::write_all(&mut writer, &[1]).unwrap();
    assert_eq!(wait(child), 42 << 8);
    let address = other.address();
    drop(other);
    arena.domain().collect();
    assert_eq!(arena.install(&Code::new(&ANSWER)).unwrap().address(), address);
}

/// A pin of a parent's thread would never end in the child, which does not have that thread.
#[test]
fn a_fork_forgets_the_workers_that_it_has_not() {
    if !in_own_process("a_fork_forgets_the_workers_that_it_has_not") {
        return;
    }
    let domain = Domain::new();
    let mut reader = domain.reader();
    let (pinned, until) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _pin = reader.pin();
            pinned.wait();
            until.wait();
        });
        pinned.wait();
        // SAFETY: the child exits without running destructors; the other thread holds no lock.
        let child = unsafe { libc::fork() };
        if child == 0 {
            domain.retire(());
            let before = domain.collect();
            // SAFETY: no pin lives on this thread, the only one.
            let done = unsafe { domain.after_fork() };
            let after = domain.collect();
            let mut reader = domain.reader();
            let pin = reader.pin();
            domain.retire(());
            let pinned = domain.collect();
            drop(pin);
            let is_right = (before, done, after, pinned, domain.collect()) == (0, true, 1, 0, 1);
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!is_right)) };
        }
        assert_eq!(wait(child), 0);
        domain.retire(());
        assert_eq!(domain.collect(), 0, "the parent's worker is where it was");
        until.wait();
    });
    assert_eq!(domain.collect(), 1);
}
