//! Text cases on the plain interpreter, with each instruction checked against the verifier's facts and states.

use std::path::Path;
use std::sync::Arc;

use paceline::{Burst, FrameMeta, Host, Limits, Map, Program};
use paceline_spec::InitialValue;
use paceline_testkit::case::{Case, CaseKind, find_files, read_file};
use paceline_testkit::engine::fill_map;
use paceline_testkit::verdict::{States, Witness};
use paceline_verifier::{Options, verify};

/// Whether the case has no faults, no plain memory, and only maps whose initial values are bytes.
fn is_plain(case: &Case) -> bool {
    let bytes = |value: &InitialValue| matches!(value, InitialValue::Bytes(_));
    case.kind != CaseKind::Raw
        && !case.is_faulty()
        && case.maps.iter().all(|map| map.contents.iter().all(|(_, value)| bytes(value)))
}

fn maps(case: &Case) -> Option<Vec<Arc<Map>>> {
    let limits = Limits { cpus: 1, memory: 1 << 30 };
    let make = |spec| {
        let map = Map::create(spec, &limits).ok()?;
        fill_map(&map, spec, &[], 0).ok().map(|()| map)
    };
    case.maps.iter().map(make).collect()
}

/// Number of runs that were checked against facts, and of those also checked against states.
fn check(case: &Case) -> Result<(usize, usize), String> {
    let Some(program) = case.programs.first().filter(|_| is_plain(case)) else { return Ok((0, 0)) };
    let Ok(verified) = verify(program, &case.maps, Some(&case.btf), &Options::default()) else {
        return Ok((0, 0));
    };
    let has_globals = program.functions.iter().skip(1).any(|f| f.linkage == paceline::Linkage::Global);
    let states = if has_globals { None } else { States::of(program, &case.maps, None)? };
    let with_states = states.is_some();
    let Some(maps) = maps(case) else { return Ok((0, 0)) };
    let Ok(program) = Program::new(Arc::new(program.clone()), maps.clone()) else { return Ok((0, 0)) };
    let witness = Witness::new(&verified, states, &maps);
    let mut host = Host::default();
    let mut runs = 0;
    for run in &case.runs {
        let mut burst = Burst::new(1);
        if burst.push(&run.data, FrameMeta::default()).is_err() {
            continue;
        }
        let mut frame = burst.frame_mut(0);
        frame.set_ingress(run.context.ingress_ifindex, 0);
        if frame.set_metadata(&run.meta).is_err() {
            continue;
        }
        witness.run(&program, &mut burst, &mut host)?;
        runs += 1;
    }
    Ok((runs, if with_states { runs } else { 0 }))
}

#[test]
fn cases_stay_within_what_was_said_of_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let (mut runs, mut with_states) = (0, 0);
    for file in find_files(&root).expect("the cases") {
        for case in read_file(&file).unwrap_or_else(|error| panic!("{error}")) {
            match check(&case) {
                Ok((checked, stated)) => (runs, with_states) = (runs + checked, with_states + stated),
                Err(wrong) => panic!("{}: {}: {wrong}", file.display(), case.name),
            }
        }
    }
    eprintln!("{runs} runs, {with_states} of them against states");
    assert!(with_states > 500, "most programs are short");
}
