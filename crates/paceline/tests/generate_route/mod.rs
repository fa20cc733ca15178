//! Look-ups of routes: each outcome comes with a network that gives it.

use paceline::Object;
use paceline::generate::{GiveUp, Goal, RouteOutcome};

use super::{counts, generated, xdp};

/// A look-up for the interface that the packet came in on, with parameters at `r10 - 64`: the length and both addresses are of the packet.
fn look_up(family: u8, flags: u32) -> String {
    let zeros: String =
        (1..=8).map(|word| format!("*(u64 *)(r10 - {}) = 0\n", word * 8)).collect::<Vec<_>>().concat();
    let addresses: String = (0..4)
        .map(|word| {
            format!(
                "r4 = *(u32 *)(r7 + {})\n*(u32 *)(r10 - {}) = r4\nr4 = *(u32 *)(r7 + {})\n*(u32 *)(r10 - {}) = r4\n",
                word * 4,
                48 - word * 4,
                12 + word * 4,
                32 - word * 4
            )
        })
        .collect();
    format!(
        "
        r7 = r1
        {zeros}{addresses}
        *(u8 *)(r10 - 64) = {family}
        r4 = *(u16 *)(r7 + 30)
        *(u16 *)(r10 - 58) = r4
        r4 = *(u32 *)(r6 + 12)
        *(u32 *)(r10 - 56) = r4
        r1 = r6
        r2 = r10
        r2 += -64
        r3 = 64
        r4 = {flags}
        call 69
        "
    )
}

/// How a comparison after a successful look-up fares: sides that are reached and unreachable, those of the length check and of the test for
/// success included.
fn after_success(family: u8, text: &str) -> [usize; 2] {
    let text = format!("{}\nif r0 != 0 goto out\n{text}", look_up(family, 0));
    let [reached, unreachable, given_up] = counts(&text, vec![]);
    assert_eq!(given_up, 0, "{text}");
    [reached, unreachable]
}

#[test]
fn each_outcome_is_that_of_a_network() {
    for family in [2, 10] {
        let tests: String = (0..=9).map(|outcome| format!("if r0 == {outcome} goto out\n")).collect();
        let text = format!("{}\n{tests}r0 = 0", look_up(family, 0));
        let object = xdp(&text, vec![]);
        let generated = generated(&object);
        // Without BPF_FIB_LOOKUP_SRC every route has a source address.
        assert_eq!((generated.unreachable.len(), generated.given_up.len()), (1, 0), "{family}");
        let mut outcomes: Vec<_> = (generated.reached.values())
            .filter_map(|confirmed| confirmed.input.route.map(|route| route.outcome as u8))
            .collect();
        outcomes.sort_unstable();
        outcomes.dedup();
        assert_eq!(outcomes, (0..=9).collect::<Vec<_>>(), "{family}");
    }
}

#[test]
fn the_parameters_are_what_the_network_says() {
    for (family, text, expected) in [
        (2, "r1 = *(u32 *)(r10 - 56)\nif r1 == 77 goto out", [6, 0]),
        (2, "r1 = *(u32 *)(r10 - 56)\nif r1 == 0 goto out", [5, 1]),
        (2, "r1 = *(u32 *)(r10 - 52)\nif r1 == 5 goto out", [6, 0]),
        (2, "r1 = *(u16 *)(r10 - 58)\nif r1 == 1000 goto out", [6, 0]),
        // The MTU of a route may have more bits than are told.
        (2, "r1 = *(u16 *)(r10 - 58)\nr2 = *(u16 *)(r7 + 30)\nif r1 < r2 goto out", [6, 0]),
        (2, "r1 = *(u32 *)(r10 - 16)\nif r1 != 0 goto out", [5, 1]),
        // A gateway, and one of the other family.
        (2, "r1 = *(u32 *)(r10 - 32)\nr2 = *(u32 *)(r7 + 12)\nif r1 != r2 goto out", [6, 0]),
        (2, "r1 = *(u8 *)(r10 - 64)\nif r1 == 10 goto out", [6, 0]),
        (2, "r1 = *(u32 *)(r10 - 24)\nif r1 == 0x1020304 goto out", [6, 0]),
        (10, "r1 = *(u64 *)(r10 - 24)\nr2 = 0x102030405060708 ll\nif r1 == r2 goto out", [6, 0]),
        (10, "r1 = *(u8 *)(r10 - 64)\nif r1 == 2 goto out", [5, 1]),
        (2, "r1 = *(u32 *)(r10 - 12)\nif r1 == 0x1020304 goto out", [6, 0]),
        (2, "r1 = *(u32 *)(r10 - 4)\nif r1 == 0x1020304 goto out", [6, 0]),
        (2, "r1 = *(u32 *)(r10 - 48)\nr2 = *(u32 *)(r7 + 0)\nif r1 != r2 goto out", [5, 1]),
    ] {
        assert_eq!(after_success(family, text), expected, "{text}");
    }
}

#[test]
fn addresses_of_one_link_have_no_route() {
    for (place, bytes, mask) in
        [(12, 0xff_u32, 0xff_u32), (12, 0x80fe, 0xc0ff), (12, 0xbffe, 0xffff), (0, 0xff, 0xff)]
    {
        let text = format!(
            "r4 = *(u32 *)(r1 + {place})\nr4 &= {mask}\nr0 = 1\nif r4 != {bytes} goto out\n{}\nif r0 != 4 goto out",
            look_up(10, 0)
        );
        // An interface that does not exist makes no difference.
        assert_eq!(counts(&text, vec![]), [5, 1, 0], "{text}");
    }
}

#[test]
fn an_unknown_neighbor_is_no_outcome_if_it_is_not_looked_for() {
    let text = |flags| format!("{}\nif r0 == 7 goto out", look_up(2, flags));
    assert_eq!(counts(&text(0), vec![]), [4, 0, 0]);
    assert_eq!(counts(&text(4), vec![]), [3, 1, 0]);
}

#[test]
fn bad_arguments_are_errors() {
    assert_eq!(counts(&format!("{}\nif r0 != -97 goto out", look_up(3, 0)), vec![]), [3, 1, 0]);
    assert_eq!(counts(&format!("{}\nif r0 != -22 goto out", look_up(2, 64)), vec![]), [3, 1, 0]);
}

#[test]
fn what_is_not_modelled_is_given_up() {
    let reason = |object: &Object| {
        let generated = generated(object);
        generated.given_up.values().map(|place| place.why).collect::<Vec<_>>()
    };
    let with_source = format!("{}\nif r0 == 9 goto out", look_up(10, 16));
    let why = GiveUp::HelperUse("bpf_fib_lookup", "with such flags");
    assert_eq!(reason(&xdp(&with_source, vec![])), [why; 2]);
    let again = format!("{}\nr0 = 0\nr1 = r7\n{}\nif r0 == 0 goto out", look_up(2, 0), look_up(2, 0));
    let why = GiveUp::HelperUse("bpf_fib_lookup", "a second time");
    assert_eq!(reason(&xdp(&again, vec![])), [why; 2]);
}

#[test]
fn a_packet_that_is_too_long_meets_a_small_mtu() {
    let text = format!("{}\nif r0 != 8 goto out", look_up(2, 0));
    let generated = generated(&xdp(&text, vec![]));
    let routes = generated.reached.iter().filter_map(|(goal, confirmed)| match goal {
        Goal::Side(side) if !side.taken => confirmed.input.route,
        _ => None,
    });
    let long = routes.filter(|route| route.outcome == RouteOutcome::FragmentationNeeded);
    assert!(long.count() > 0);
}
