//! Random programs with spin locks: what the verifier accepts has every lock that it releases.

use paceline_testkit::kernel::available_for;
use paceline_testkit::verdict::try_locks;

/// Programs; more with `PACELINE_LOCKS`, from `PACELINE_SEED` on.
#[test]
fn accepted_programs_have_the_locks_that_they_release() {
    let kernel = available_for("accepted_programs_have_the_locks_that_they_release");
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |number| number.parse().expect("a number"))
    };
    let (first, count) = (number("PACELINE_SEED", 0), number("PACELINE_LOCKS", 400));
    let (mut accepted, mut only_kernel, mut stopped) = (0_u64, 0_u64, 0_u64);
    let mut wrong = Vec::new();
    for seed in first..first + count {
        match try_locks(seed, kernel) {
            Ok(trial) => {
                accepted += u64::from(trial.accepted);
                only_kernel += u64::from(trial.only_kernel);
                stopped += u64::from(trial.stopped);
            }
            Err(error) => wrong.push(format!("seed {seed}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {count}: {:#?}", wrong.len(), &wrong[..wrong.len().min(8)]);
    paceline_testkit::say!(
        "{accepted} accepted, {stopped} stop at a lock, {only_kernel} by the kernel alone"
    );
    assert!(accepted > 0 && stopped > 0, "{accepted} accepted, {stopped} stop at a lock");
    assert!(!kernel || only_kernel > 0, "the kernel's verifier refuses the same");
}
