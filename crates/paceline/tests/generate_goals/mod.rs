//! Goals other than sides, further inputs, and two programs that are compared.

use std::time::{Duration, Instant};

use paceline::generate::{
    Differences, Edge, Generated, Goal, Goals, Meets, Options, Progress, Side, Variant, differences,
    differences_of_paths, generate, generate_watched,
};
use paceline::{Object, Verdict};
use paceline_spec::{MapKind, MapSpec};

use super::{LOOK_UP, array, hash, xdp};

fn of(object: &Object, goals: Goals) -> Generated {
    let options = Options { time: Duration::from_secs(30), goals, boundaries: true, ..Options::default() };
    let generated = generate(object, &object.programs()[0], &options).unwrap();
    assert!(generated.failures.is_empty(), "{:?}", generated.failures);
    generated
}

#[test]
fn verdicts_are_reached_or_proved_unreachable() {
    let object = xdp("r4 = *(u8 *)(r1 + 0)\nr0 = r4\nr0 &= 2\nif r4 != 7 goto out\nr0 = 4", vec![]);
    let generated = of(&object, Goals::Verdicts);
    let verdict = |goal: &Goal| match goal {
        Goal::Return { verdict, .. } => *verdict,
        other => panic!("{other:?}"),
    };
    let reached: Vec<_> = generated.reached.keys().map(verdict).collect();
    // The length check returns 1.
    assert_eq!(reached, [Verdict::Aborted, Verdict::Drop, Verdict::Pass, Verdict::Redirect]);
    assert_eq!(generated.unreachable.keys().map(verdict).collect::<Vec<_>>(), [Verdict::Tx]);
    assert!(generated.given_up.is_empty());
}

/// Another number than those of verdicts is a failure of the program.
#[test]
fn other_numbers_abort() {
    let generated = of(&xdp("r0 = 9", vec![]), Goals::Verdicts);
    let aborts = |(goal, confirmed): (&Goal, &paceline::generate::Confirmed)| {
        matches!(goal, Goal::Return { verdict: Verdict::Aborted, .. }) && confirmed.returned == 9
    };
    assert!(generated.reached.iter().any(aborts));
}

const UPDATE: &str = "
    *(u64 *)(r10 - 16) = 7
    r2 = r10
    r2 += -4
    r3 = r10
    r3 += -16
    r4 = 0
    r1 = map[0] ll
    call 2
";

fn met(generated: &Generated) -> [Vec<Meets>; 2] {
    let meets = |goal: &Goal| match goal {
        Goal::Operation { meets, .. } => *meets,
        other => panic!("{other:?}"),
    };
    assert!(generated.given_up.is_empty(), "{:?}", generated.given_up);
    [generated.reached.keys().map(meets).collect(), generated.unreachable.keys().map(meets).collect()]
}

#[test]
fn map_operations_meet_all_they_may() {
    use Meets::{Found, Full, NotFound};
    let text = format!("{LOOK_UP}\n{UPDATE}\nr0 = 2");
    let [reached, unreachable] = met(&of(&xdp(&text, vec![hash()]), Goals::Operations));
    assert_eq!(reached, [Found, NotFound, Found, NotFound, Full]);
    assert!(unreachable.is_empty());
    // A look-up of an index that is within the array finds it.
    let text = "*(u32 *)(r10 - 4) = 3\nr2 = r10\nr2 += -4\nr1 = map[0] ll\ncall 1\nr0 = 2";
    let [reached, unreachable] = met(&of(&xdp(text, vec![array()]), Goals::Operations));
    assert_eq!((reached, unreachable), (vec![Found], vec![NotFound]));
}

/// Two independent branches behind the length check have four paths, and the check has one more.
#[test]
fn all_paths_are_found() {
    let text = "
        r4 = *(u8 *)(r1 + 0)
        if r4 == 1 goto one
        r0 = 2
    one:
        r4 = *(u8 *)(r1 + 1)
        if r4 == 1 goto out
        r0 = 3";
    let object = xdp(text, vec![]);
    let generated = of(&object, Goals::Paths(100));
    assert_eq!(generated.reached.len(), 5);
    assert!(generated.left.is_empty());
    let mut sides: Vec<_> = generated.reached.values().map(|confirmed| &confirmed.input.sides).collect();
    sides.dedup();
    assert_eq!(sides.len(), 5);
    assert_eq!(of(&object, Goals::Paths(3)).reached.len(), 3);
}

/// Without a branch on it, whether a helper succeeds, finds an element, or calls another program distinguishes paths.
#[test]
fn what_helpers_lead_to_distinguishes_paths() {
    let count = |text: &str, maps: Vec<MapSpec>| {
        let generated = of(&xdp(text, maps), Goals::Paths(100));
        assert!(generated.left.is_empty(), "{:?}", generated.left);
        generated.reached.len()
    };
    // The length check has a path of its own. A packet may be too long for a buffer to grow, or not.
    assert_eq!(count("r1 = r6\nr2 = -20\ncall 65\nr0 = 2", vec![]), 3);
    assert_eq!(count(&format!("{LOOK_UP}\nr0 = 2"), vec![hash()]), 3);
    assert_eq!(
        count(&format!("r7 = *(u32 *)(r1 + 0)\n*(u32 *)(r10 - 4) = r7\n{UPDATE}r0 = 2"), vec![hash()]),
        3
    );
    let mut programs = MapSpec::new("programs", MapKind::ProgArray, 4, 4, 4);
    let program = paceline_spec::InitialValue::Program("test".to_owned());
    programs.contents =
        vec![(1_u32.to_ne_bytes().to_vec(), program.clone()), (3_u32.to_ne_bytes().to_vec(), program)];
    let call = "r3 = *(u8 *)(r1 + 0)\nr1 = r6\nr2 = map[0] ll\ncall 12\nr0 = 2";
    let generated = of(&xdp(call, vec![programs]), Goals::Paths(100));
    // To either program, and to none; a call of the object's programs that fails needs more than an input gives.
    assert_eq!(generated.reached.len(), 4);
}

#[test]
fn the_limit_tells_what_it_left_out() {
    let object = xdp("r4 = *(u8 *)(r1 + 3)\nif r4 > 100 goto out\nr0 = 2", vec![]);
    let unvaried = |time, wait| {
        let options = Options { time, boundaries: true, ..Options::default() };
        let end = Instant::now() + wait;
        // All goals are reached, and the time passes.
        let mut tell = |progress: Progress| {
            if progress.open == 0 {
                std::thread::sleep(end.saturating_duration_since(Instant::now()));
            }
        };
        let generated = generate_watched(&object, &object.programs()[0], &options, &mut tell).unwrap();
        assert_eq!(generated.reached.len(), 4);
        generated.unvaried
    };
    assert_eq!(unvaried(Duration::from_secs(60), Duration::ZERO), 0);
    assert!(unvaried(Duration::from_secs(10), Duration::from_secs(10)) > 0);
}

#[test]
fn paths_that_are_given_up_are_told() {
    // The fill level of a ring buffer is not modelled.
    let ring = MapSpec::new("ring", MapKind::RingBuf, 0, 0, 4096);
    let text = "r4 = *(u8 *)(r1 + 0)\nif r4 == 1 goto out\nr1 = map[0] ll\nr2 = 0\ncall 134\nr0 = 2";
    let generated = of(&xdp(text, vec![ring]), Goals::Paths(100));
    assert!(generated.left.iter().any(|place| place.why.to_string().contains("bpf_ringbuf_query")));
}

#[test]
fn bytes_that_decide_nothing_differ() {
    // Bytes 6 and 7 go to bytes 8 and 9.
    let text =
        "r4 = *(u16 *)(r1 + 6)\n*(u16 *)(r1 + 8) = r4\nr4 = *(u8 *)(r1 + 1)\nif r4 == 9 goto out\nr0 = 2";
    let generated = of(&xdp(text, vec![]), Goals::Sides);
    let filled: Vec<_> = generated
        .more
        .iter()
        .filter(|more| more.variant == Variant::Filled)
        .map(|more| &more.confirmed)
        .collect();
    assert!(!filled.is_empty());
    for confirmed in filled.iter().filter(|confirmed| confirmed.bytes != confirmed.input.packet) {
        let moved = &confirmed.bytes[8..10];
        assert!(moved[0] != moved[1] && confirmed.bytes[10] != 0, "{:?}", confirmed.bytes);
    }
    // A second input has their bits inverted.
    let byte = |variant| {
        let of = generated.more.iter().filter(|more| more.variant == variant);
        of.map(|more| &more.confirmed.input.packet).find(|packet| packet.len() >= 32).map(|packet| packet[7])
    };
    assert!(byte(Variant::Filled).is_some());
    assert_eq!(byte(Variant::Inverted), byte(Variant::Filled).map(|byte| !byte));
    // The byte that decides stays.
    assert!(filled.iter().any(|confirmed| confirmed.input.packet[1] == 9));
}

#[test]
fn comparisons_have_inputs_at_their_boundaries() {
    let text = "r4 = *(u8 *)(r1 + 3)\nif r4 > 100 goto out\nr0 = 2";
    let object = xdp(text, vec![]);
    let generated = of(&object, Goals::Sides);
    let jump = generated.reached.keys().map(Goal::slot).max().unwrap();
    let inputs = generated.inputs();
    for (edge, byte) in [(Edge::Equal, 100), (Edge::Above, 101), (Edge::Below, 99)] {
        let is_there = inputs.iter().any(|(_, _, confirmed)| {
            confirmed.edges.contains(&(jump, edge)) && confirmed.input.packet[3] == byte
        });
        assert!(is_there, "{edge:?}");
    }
    assert!(generated.reached.contains_key(&Goal::Side(Side { slot: jump, taken: true })));
}

/// What is known of two programs with the same maps.
fn compared(old: &str, new: &str, maps: &[MapSpec]) -> Differences {
    let (old, new) = (xdp(old, maps.to_vec()), xdp(new, maps.to_vec()));
    let options = Options { time: Duration::from_secs(30), ..Options::default() };
    let sides = ((&old, &old.programs()[0]), (&new, &new.programs()[0]));
    let found = differences_of_paths(sides.0, sides.1, &options, 10, &mut |_| {}).unwrap();
    assert!(found.unconfirmed.is_empty(), "{:?}", found.unconfirmed);
    found
}

fn are_equal(old: &str, new: &str, maps: &[MapSpec]) -> bool {
    let found = compared(old, new, maps);
    assert!(found.left.is_empty(), "{:?}", found.left);
    found.found.is_empty()
}

#[test]
fn equal_programs_are_proved_equal() {
    let load = "r4 = *(u8 *)(r1 + 0)\n";
    let old = format!("{load}if r4 > 9 goto out\nr0 = 2");
    assert!(are_equal(&old, &old, &[]));
    // The same in other words, and bytes in another way.
    assert!(are_equal(&old, &format!("{load}if r4 >= 10 goto out\nr0 = 2"), &[]));
    let swapped = "r4 = *(u16 *)(r1 + 0)\nr4 = be16 r4\n*(u16 *)(r1 + 2) = r4\nr0 = 2";
    let bytes =
        "r4 = *(u8 *)(r1 + 0)\nr5 = *(u8 *)(r1 + 1)\n*(u8 *)(r1 + 3) = r4\n*(u8 *)(r1 + 2) = r5\nr0 = 2";
    assert_eq!(are_equal(swapped, bytes, &[]), cfg!(target_endian = "little"));
}

#[test]
fn one_packet_in_many_is_found() {
    let load = "r4 = *(u32 *)(r1 + 4)\n";
    let found = compared(
        &format!("{load}if r4 > 12345 goto out\nr0 = 2"),
        &format!("{load}if r4 >= 12345 goto out\nr0 = 2"),
        &[],
    );
    assert_eq!(found.found.len(), 1);
    assert_eq!(found.found[0].old.input.packet[4..8], 12345_u32.to_ne_bytes());
    assert_eq!((found.found[0].old.verdict, found.found[0].new.verdict), (Verdict::Pass, Verdict::Drop));
}

#[test]
fn bytes_lengths_and_targets_are_compared() {
    let store = |number| format!("*(u8 *)(r1 + 5) = {number}\nr0 = 2");
    assert!(are_equal(&store(1), &store(1), &[]));
    assert!(!are_equal(&store(1), &store(2), &[]));
    // A byte that is written to what it was.
    assert!(are_equal("r4 = *(u8 *)(r1 + 5)\n*(u8 *)(r1 + 5) = r4\nr0 = 2", "r0 = 2", &[]));
    let shorter = |by| format!("r1 = r6\nr2 = -{by}\ncall 65\nr0 = 2");
    assert!(are_equal(&shorter(3), &shorter(3), &[]));
    assert!(!are_equal(&shorter(3), &shorter(4), &[]));
    let redirect = |to| format!("r1 = {to}\nr2 = 0\ncall 23");
    assert!(are_equal(&redirect(3), &redirect(3), &[]));
    assert!(!are_equal(&redirect(3), &redirect(4), &[]));
    // A target that no verdict makes use of.
    let unused = |to| format!("{}\nr0 = 2", redirect(to));
    assert!(are_equal(&unused(3), &unused(4), &[]));
}

#[test]
fn maps_are_compared_from_the_same_start() {
    let found = format!("{LOOK_UP}\nif r0 == 0 goto out\n");
    let add = |by| format!("{found}r5 = *(u64 *)(r0 + 0)\nr5 += {by}\n*(u64 *)(r0 + 0) = r5\nr0 = 2");
    for map in [hash(), array()] {
        assert!(are_equal(&add(1), &add(1), std::slice::from_ref(&map)));
        assert!(!are_equal(&add(1), &add(2), std::slice::from_ref(&map)));
        // What a look-up finds is the same for both.
        let value = format!("{found}r0 = *(u64 *)(r0 + 0)\nr0 &= 1");
        let again = format!("{LOOK_UP}\n{value}");
        assert!(are_equal(&value, &value, std::slice::from_ref(&map)));
        let again = again.replacen("r7 = *(u32 *)(r1 + 0)", "r8 = r1\nr7 = *(u32 *)(r1 + 0)", 1);
        let again = again.replace("call 1\n\n\n", "call 1\nr1 = r8\n");
        assert!(again.matches("call 1").count() == 2);
        assert!(are_equal(&value, &again, std::slice::from_ref(&map)), "{again}");
    }
}

#[test]
fn insertions_and_removals_are_compared() {
    let key = "r7 = *(u32 *)(r1 + 0)\n*(u32 *)(r10 - 4) = r7\n";
    let insert = format!("{key}{UPDATE}r0 = 2");
    let other = insert.replace("r10 - 16) = 7", "r10 - 16) = 8");
    let remove = format!("{key}r2 = r10\nr2 += -4\nr1 = map[0] ll\ncall 3\nr0 = 2");
    let maps = [hash()];
    assert!(are_equal(&insert, &insert, &maps));
    assert!(!are_equal(&insert, &other, &maps));
    assert!(!are_equal(&insert, &remove, &maps));
    assert!(!are_equal(&remove, &format!("{key}r0 = 2"), &maps));
    // An update and a removal leave no element, as a removal does, but for an update that finds a full map: the element is not there then.
    let both = format!("{key}{UPDATE}r2 = r10\nr2 += -4\nr1 = map[0] ll\ncall 3\nr0 = 2");
    assert!(are_equal(&both, &remove, &maps));
}

#[test]
fn tail_calls_are_compared_by_their_target() {
    let mut programs = MapSpec::new("programs", MapKind::ProgArray, 4, 4, 4);
    let program = paceline_spec::InitialValue::Program("test".to_owned());
    programs.contents = (0..4_u32).map(|index| (index.to_ne_bytes().to_vec(), program.clone())).collect();
    let call = |index, byte| {
        format!("*(u8 *)(r1 + 9) = {byte}\nr1 = r6\nr2 = map[0] ll\nr3 = {index}\ncall 12\nr0 = 1")
    };
    let maps = [programs];
    assert!(are_equal(&call(1, 7), &call(1, 7), &maps));
    let found = |old: &str, new: &str| {
        let (old, new) = (xdp(old, maps.to_vec()), xdp(new, maps.to_vec()));
        let sides = ((&old, &old.programs()[0]), (&new, &new.programs()[0]));
        differences_of_paths(sides.0, sides.1, &Options::default(), 10, &mut |_| {}).unwrap()
    };
    // Other bytes are seen by the program that is called; here it is the program itself, which runs 33 times.
    assert!(!found(&call(1, 7), &call(1, 8)).found.is_empty());
}

#[test]
fn what_is_given_up_is_no_proof() {
    let text = format!("r7 = *(u32 *)(r1 + 0)\n*(u32 *)(r10 - 4) = r7\n{UPDATE}r0 = 2");
    let lru = MapSpec::new("lru", MapKind::LruHash, 4, 8, 8);
    let found = compared(&text, &text, &[lru]);
    assert!(found.found.is_empty() && !found.is_complete(), "{found:?}");
    // The result of a helper that is not modelled.
    let fib = "r1 = r6\nr2 = r10\nr2 += -64\nr3 = 64\nr4 = 0\ncall 69\nr0 = 2";
    assert!(!compared(fib, fib, &[]).is_complete());
}

/// Pairs that leave the same in a run of the one program, and something else for what comes after it, or in other circumstances.
#[test]
fn what_only_others_can_tell_apart_is_not_proved_equal() {
    let mut programs = MapSpec::new("programs", MapKind::ProgArray, 4, 4, 4);
    let empty = programs.clone();
    let program = paceline_spec::InitialValue::Program("test".to_owned());
    programs.contents = vec![(0_u32.to_ne_bytes().to_vec(), program)];
    let call = |index| format!("r1 = r6\nr2 = map[0] ll\nr3 = {index}\ncall 12\nr0 = 2");
    let redirect = |to| format!("r1 = {to}\nr2 = 0\ncall 23\n{}", call(0));
    let move_start = |by: i32| format!("r1 = r6\nr2 = {by}\ncall 44\n{}", call(0));
    let key = "r7 = *(u32 *)(r1 + 0)\n*(u32 *)(r10 - 4) = r7\n";
    let remove = "r2 = r10\nr2 += -4\nr1 = map[0] ll\ncall 3\n";
    let found = format!("{LOOK_UP}\nif r0 == 0 goto out\n");
    let map = |kind| vec![MapSpec::new("map", kind, 4, 8, 8)];
    let pairs = [
        // The target of a redirect, bytes before the packet, and other targets, for the program that a tail call leads to.
        (redirect(3), redirect(4), vec![programs.clone()]),
        (format!("*(u8 *)(r1 + 0) = 7\n{}", move_start(8)), move_start(8), vec![programs.clone()]),
        (move_start(8), call(0), vec![programs]),
        // User space may have put programs into the array.
        (call(3), call(1), vec![empty.clone()]),
        (call(3), "r0 = 2".to_owned(), vec![empty]),
        // Clocks differ by the time that a machine slept.
        ("call 5\nr0 &= 1".to_owned(), "call 125\nr0 &= 1".to_owned(), Vec::new()),
        // A value that is made anew is zero for other CPUs.
        (format!("{key}{remove}{UPDATE}r0 = 2"), format!("{key}{UPDATE}r0 = 2"), map(MapKind::PerCpuHash)),
        // An update of what is there may remove something else.
        (
            format!("{found}{UPDATE}r0 = 2"),
            format!("{found}r7 = 7\n*(u64 *)(r0 + 0) = r7\nr0 = 2"),
            map(MapKind::LruHash),
        ),
    ];
    for (old, new, maps) in pairs {
        let objects = [&old, &new].map(|text| xdp(text, maps.clone()));
        let [a, b] = &objects;
        let options = Options { time: Duration::from_secs(30), ..Options::default() };
        let sides = ((a, &a.programs()[0]), (b, &b.programs()[0]));
        let told = differences_of_paths(sides.0, sides.1, &options, 10, &mut |_| {}).unwrap();
        assert!(!told.found.is_empty() || !told.is_complete(), "{old}\n\n{new}\n{told:?}");
    }
}

#[test]
fn codes_of_one_verdict_are_not_equal() {
    let kind = paceline_spec::ProgramKind::SchedCls;
    // Drop and steal; the same code, which more than one way leads to.
    for (old, new, complete) in [(2, 4, false), (2, 2, true)] {
        let objects = [old, new].map(|code| super::object(kind, &format!("r0 = {code}"), Vec::new()));
        let [a, b] = &objects;
        let sides = ((a, &a.programs()[0]), (b, &b.programs()[0]));
        let told = differences_of_paths(sides.0, sides.1, &Options::default(), 10, &mut |_| {}).unwrap();
        assert_eq!((told.found.len(), told.is_complete()), (0, complete), "{told:?}");
    }
}

#[test]
fn maps_of_another_shape_are_refused() {
    let (old, new) =
        (xdp(LOOK_UP, vec![hash()]), xdp(LOOK_UP, vec![MapSpec::new("hash", MapKind::Hash, 4, 16, 8)]));
    let sides = ((&old, &old.programs()[0]), (&new, &new.programs()[0]));
    let error = differences_of_paths(sides.0, sides.1, &Options::default(), 10, &mut |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "map hash has another kind, size or initial contents");
}

/// What is generated for either program runs on both before paths are compared, and tells apart what these leave unknown.
#[test]
fn generated_inputs_are_run_on_both_first() {
    // bpf_fib_lookup is not modelled for two programs.
    let zeros: String = (1..=8).map(|word| format!("*(u64 *)(r10 - {}) = 0\n", word * 8)).collect();
    let text =
        |verdict| format!("{zeros}r1 = r6\nr2 = r10\nr2 += -64\nr3 = 64\nr4 = 0\ncall 69\nr0 = {verdict}");
    let objects = [2, 1].map(|verdict| xdp(&text(verdict), Vec::new()));
    let [old, new] = objects.each_ref().map(|object| (object, &object.programs()[0]));
    let options = Options { time: Duration::from_secs(20), ..Options::default() };
    let paths = differences_of_paths(old, new, &options, 10, &mut |_| {}).unwrap();
    assert!(paths.found.is_empty() && !paths.is_complete() && paths.is_of_paths);
    let all = differences(old, new, &options, 10, &mut |_| {}).unwrap();
    assert!(!all.found.is_empty() && !all.is_of_paths && !all.is_complete());
    let one = &all.found[0];
    assert_eq!((one.old.verdict, one.new.verdict), (Verdict::Pass, Verdict::Drop));
    // Without a difference, paths are compared.
    let same = differences(old, old, &options, 10, &mut |_| {}).unwrap();
    assert!(same.found.is_empty() && same.is_of_paths);
}
