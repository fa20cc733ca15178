//! What is known of a program without its paths, here behind a helper that is not modelled: `bpf_get_hash_recalc`.

use paceline::{Object, ProgramKind};
use paceline_spec::{MapKind, MapSpec};

use super::{object_of, of};

/// A classifier that calls the helper first; its context is in `r6`.
fn classifier(text: &str) -> Object {
    let mut jumps = MapSpec::new("jumps", MapKind::ProgArray, 4, 4, 4);
    jumps.contents.clear();
    let maps = vec![jumps, MapSpec::new("counts", MapKind::Array, 4, 8, 4)];
    object_of(ProgramKind::SchedCls, &format!("r6 = r1\ncall 34\n{text}"), maps)
}

/// Resizes the packet.
const RESIZE: &str = "r1 = r6\nr2 = 40\nr3 = 0\ncall 38\n";
/// Stores a byte to the packet.
const STORE: &str = "*(u8 *)(r10 - 1) = 7\nr1 = r6\nr2 = 0\nr3 = r10\nr3 += -1\nr4 = 1\nr5 = 0\ncall 9\n";
/// Looks an element up.
const LOOK_UP: &str =
    "*(u32 *)(r10 - 4) = 1\nr2 = r10\nr2 += -4\nr1 = map[1] ll\ncall 1\nif r0 == 0 goto none\n";

const LENGTH: &str = "out.len == in.len";
const BYTES: &str = "out[0:] == in[0:] and out.eth.src == eth.src or not eth";
const STILL: &str = "not changes(counts)";

/// Whether the three are proved, in their order.
fn known(text: &str) -> [Option<bool>; 3] {
    let object = classifier(text);
    [LENGTH, BYTES, STILL].map(|property| of(&object, property))
}

#[test]
fn what_changes_the_packet_is_looked_for_in_all_that_is_reached() {
    let (yes, no) = (Some(true), None);
    let end = "r0 = 0\nexit\n";
    assert_eq!(known(end)[..2], [yes, yes]);
    assert_eq!(known(&format!("{STORE}{end}"))[..2], [yes, no]);
    assert_eq!(known(&format!("{RESIZE}{end}"))[..2], [no, no]);
    // In a subprogram, and in a callback.
    let subprogram =
        |what: &str| format!("r1 = r6\ncall change\nr0 = 0\nexit\nchange:\nr6 = r1\n{what}{end}");
    assert_eq!(known(&subprogram(""))[..2], [yes, yes]);
    assert_eq!(known(&subprogram(STORE))[..2], [yes, no]);
    assert_eq!(known(&subprogram(RESIZE))[..2], [no, no]);
    // Where no path leads to.
    let dead = format!("r7 = 1\nif r7 == 1 goto end\n{RESIZE}end:\n{end}");
    assert_eq!(known(&dead)[..2], [yes, yes]);
    // Another program may do anything.
    let jump = format!("r1 = r6\nr2 = map[0] ll\nr3 = 1\ncall 12\n{end}");
    assert_eq!(known(&jump), [no, no, no]);
}

#[test]
fn stores_are_told_by_what_they_go_to() {
    let (yes, no) = (Some(true), None);
    let store = |to: &str| {
        let start =
            "r2 = *(u32 *)(r6 + 80)\nr1 = *(u32 *)(r6 + 76)\nr3 = r1\nr3 += 20\nif r3 > r2 goto none\n";
        known(&format!("{start}{to}none:\nr0 = 0\nexit\n"))
    };
    assert_eq!(store("r4 = *(u8 *)(r1 + 3)\n*(u8 *)(r10 - 9) = r4\n")[..2], [yes, yes]);
    assert_eq!(store("*(u8 *)(r1 + 3) = 5\n")[..2], [yes, no]);
    assert_eq!(store("*(u32 *)(r6 + 8) = 5\n")[..2], [yes, yes], "a field of the context");
    let value = format!("{LOOK_UP}*(u64 *)(r0 + 0) = 5\n");
    assert_eq!(store(&value), [yes, yes, no]);
}

/// Maps, behind a loop of more rounds than are followed.
#[test]
fn maps_that_are_only_read_do_not_change() {
    let after = |text: &str| {
        let object = super::xdp(
            &format!(
                "r7 = *(u16 *)(r1 + 20)
                 r8 = 0
             again:
                 if r8 >= r7 goto done
                 r8 += 1
                 if r8 < 4000 goto again
             done:
                 {LOOK_UP}{text}
             none:
                 r0 = 2"
            ),
            vec![
                MapSpec::new("other", MapKind::Array, 4, 8, 4),
                MapSpec::new("counts", MapKind::Array, 4, 8, 4),
            ],
        );
        [of(&object, STILL), of(&object, "not changes(other)")]
    };
    assert_eq!(after("r1 = *(u64 *)(r0 + 0)"), [Some(true), Some(true)]);
    assert_eq!(after("r1 = 1\nlock *(u64 *)(r0 + 0) += r1"), [Some(false), Some(true)]);
}

/// The numbers that reach the exits.
#[test]
fn verdicts_that_no_return_gives() {
    let verdicts = |text: &str| {
        let object = classifier(text);
        ["drop", "pass", "redirect"].map(|verdict| of(&object, &format!("verdict != {verdict}")))
    };
    let (yes, no) = (Some(true), None);
    assert_eq!(verdicts("r0 = 0\nexit"), [yes, no, yes]);
    assert_eq!(verdicts("r7 = 2\nif r0 > 5 goto end\nr7 = 0\nend:\nr0 = r7\nexit"), [no, no, yes]);
    assert_eq!(verdicts("exit"), [no, no, no], "a number of the helper");
    assert_eq!(verdicts("r0 &= 0\nexit"), [no, no, no]);
    assert_eq!(verdicts("r7 = 6\nr7 += 1\nw0 = w7\nexit"), [yes, yes, no]);
    // Of a function, and past one.
    assert_eq!(verdicts("call other\nexit\nother:\nr0 = 2\nexit"), [no, yes, yes]);
    assert_eq!(verdicts("r7 = 0\ncall other\nr0 = r7\nexit\nother:\nr0 = 2\nexit"), [yes, no, yes]);
    // One that counts: more numbers than are told apart.
    assert_eq!(verdicts("r7 = 0\nagain:\nr7 += 1\nif r7 < 100 goto again\nr0 = r7\nexit"), [no, no, no]);
    // The program at an index may return what it likes.
    assert_eq!(verdicts("r1 = r6\nr2 = map[0] ll\nr3 = 1\ncall 12\nr0 = 0\nexit"), [no, no, no]);
}
