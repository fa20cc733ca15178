//! Relative order, compared with the kernel's hooks for several programs: random changes of the ingress hook of a loopback
//! interface, in a private network namespace.

use paceline::chain::{Place, Sequence, SequenceError};
use paceline_spec::Errno;
use paceline_testkit::classic::own_network;
use paceline_testkit::kernel::{Beside, Classifier, Ingress};

const NAME: &str = "changes_are_made_and_refused_as_in_the_kernel";
/// Programs that come and go.
const PROGRAMS: usize = 7;
/// Number of changes, unless `PACELINE_CHANGES` sets it: the kernel waits for a grace period after each.
const CHANGES: usize = 600;
/// `lo` is the first interface of a namespace.
const LOOPBACK: Ingress = Ingress { ifindex: 1 };

/// The kernel's error number of a refusal.
fn errno(error: SequenceError) -> Errno {
    match error {
        SequenceError::Stale { .. } => Errno(116),
        SequenceError::Exists => Errno::EEXIST,
        SequenceError::Missing => Errno::ENOENT,
    }
}

#[test]
fn changes_are_made_and_refused_as_in_the_kernel() {
    let programs: Result<Vec<Classifier>, _> = (0..PROGRAMS).map(|_| Classifier::load()).collect();
    let programs = match programs {
        Ok(programs) => programs,
        Err(error) => return paceline_testkit::skip(NAME, &error),
    };
    if let Err(error) = own_network() {
        return paceline_testkit::skip(NAME, &error);
    }
    if let Err(errno) = LOOPBACK.query() {
        return paceline_testkit::skip(NAME, &format!("no hook for several programs: {errno}"));
    }
    let seed = std::env::var("PACELINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(3);
    let changes = std::env::var("PACELINE_CHANGES").ok().and_then(|n| n.parse().ok()).unwrap_or(CHANGES);
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut ours: Sequence<usize> = Sequence::default();
    let (mut made, mut refused) = (0, [0; 3]);
    for change in 0..changes {
        let mut pick = || rng.usize(..PROGRAMS);
        let (program, other) = (pick(), pick());
        let expected = match rng.u8(..4) {
            0 => Some(ours.revision()),
            1 => Some(rng.u64(1..=ours.revision() + 1)),
            _ => None,
        };
        let theirs = expected.unwrap_or(0);
        let place = match rng.u8(..4) {
            0 => Place::First,
            1 => Place::Last,
            2 => Place::Before(other),
            _ => Place::After(other),
        };
        let (name, ours_is, theirs_is) = match rng.u8(..8) {
            0..5 => {
                let by = match place {
                    Place::First => Beside::First,
                    Place::Last => Beside::Last,
                    Place::Before(other) => Beside::Before(&programs[other]),
                    Place::After(other) => Beside::After(&programs[other]),
                };
                let theirs = LOOPBACK.attach(&programs[program], by, theirs);
                (format!("attach {program} {place:?}"), ours.insert(program, place, expected), theirs)
            }
            5 => {
                let theirs = LOOPBACK.replace(&programs[other], &programs[program], theirs);
                (format!("replace {other} by {program}"), ours.replace(&other, program, expected), theirs)
            }
            // The kernel does not check the revision of a hook without programs.
            _ if ours.members().is_empty() => continue,
            _ => {
                let theirs = LOOPBACK.detach(&programs[program], theirs);
                (format!("detach {program}"), ours.remove(&program, expected), theirs)
            }
        };
        let context = format!("seed {seed}, change {change}: {name}, expecting {expected:?}, now {ours:?}");
        assert_eq!(ours_is.map_err(errno), theirs_is, "{}", context);
        match ours_is {
            Ok(()) => made += 1,
            Err(error) => refused[[116, 17, 2].iter().position(|n| Errno(*n) == errno(error)).unwrap()] += 1,
        }
        if ours.members().is_empty() {
            // The hook is freed with its last program, and a new one has the initial revision.
            ours = Sequence::default();
        }
        let ids: Vec<u32> = ours.members().iter().map(|member| programs[*member].id()).collect();
        assert_eq!(LOOPBACK.query().expect("answers"), (ids, ours.revision()), "{}", context);
    }
    assert!(made > changes / 10 && refused.iter().all(|count| *count > changes / 50), "{made}, {refused:?}");
}
