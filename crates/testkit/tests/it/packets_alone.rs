//! A packet that runs alone has nothing of the one before in its `sk_buff`, whichever way its program is called: native code
//! initializes in bursts what a program uses, and all of it for a packet alone.

use paceline::{Burst, CallSite, Engine, Fallback, FrameMeta, Host, LoadOptions, Object, Program, Target};

/// `tc_mark_cb` sets the mark to 7, and `empty_tc` uses nothing.
const OBJECT: &[u8] = include_bytes!("../../../bench/workloads/helpers.o");

fn programs(engine: Engine) -> Option<[Program; 2]> {
    let collection = Object::parse(OBJECT).unwrap().load(&LoadOptions::default().engine(engine)).ok()?;
    let program = |name| Some(collection.program(Some(name)).ok()?.into_program());
    Some([program("tc_mark_cb")?, program("empty_tc")?])
}

fn packet() -> Burst {
    let mut burst = Burst::new(1);
    burst.push(&[0x45; 64], FrameMeta::default()).unwrap();
    burst
}

#[test]
fn by_run() {
    for engine in Engine::ALL {
        let Some(programs) = programs(engine) else { continue };
        let (mut host, mut burst) = (Host::new(0), packet());
        let marks = programs.each_ref().map(|program| {
            program.run(&mut burst.frame_mut(0), &mut host).unwrap();
            host.sk_buff().mark
        });
        assert_eq!(marks, [7, 0], "{engine}");
    }
}

#[test]
fn by_call_sites() {
    for engine in Engine::ALL {
        let Some(programs) = programs(engine) else { continue };
        let (site, targets) = (CallSite::new(Fallback::Indirect), programs.each_ref().map(Target::from));
        targets.iter().for_each(|target| site.update(None, Some(target)).unwrap());
        let (mut host, mut burst, mut caller) = (Host::new(0), packet(), site.caller());
        let marks = targets.each_ref().map(|target| {
            caller.enter(&mut host).run_raw(target, &mut burst.frame_mut(0)).unwrap();
            host.sk_buff().mark
        });
        assert_eq!(marks, [7, 0], "{engine}");
    }
}
