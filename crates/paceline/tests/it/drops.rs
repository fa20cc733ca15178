//! Users' data in targets and domains is dropped by the collecting thread, perhaps in the midst of a change; it may come back to
//! what is being changed.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use paceline::epoch::Domain;
use paceline::{Change, Collection, LiveChain, LoadOptions, Object, Order, Pipeline, Target};

fn load(name: &str) -> Collection {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    Object::open(path).unwrap().load(&LoadOptions::default()).unwrap()
}

/// Calls a function when it is dropped.
struct Bye(Box<dyn Fn() + Send + Sync>);

impl Drop for Bye {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Runs on another thread, which may not come to a stop.
fn within_a_minute(run: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        run();
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(60)).expect("it does not wait for itself");
}

#[test]
fn a_chain_can_be_asked_and_changed_by_what_its_change_drops() {
    within_a_minute(|| {
        let counter = load("counter.o");
        let (program, member) = (counter.program(None).unwrap(), counter.member("x", None).unwrap());
        let (pipeline, dropped) = (Pipeline::new(), Arc::new(AtomicUsize::new(0)));
        let chain = LiveChain::on(&pipeline, 1, vec![member.clone()], Order::Given).unwrap();
        let changes = move || vec![Change::All { members: vec![member.clone()], order: Order::Given }];
        for _ in 0..200 {
            let (own, site, changed) = (chain.clone(), pipeline.clone(), changes.clone());
            let count = Arc::clone(&dropped);
            let bye = Bye(Box::new(move || {
                assert_eq!(own.members().len(), 1);
                assert!(own.preview(None, changed()).is_ok());
                assert_eq!(site.site().slots(), 1);
                if count.fetch_add(1, Ordering::Relaxed) % 8 == 0 {
                    own.change(None, changed()).unwrap();
                }
            }));
            pipeline.set_program(1, Some(&Target::from(program.program()).with_data(bye))).unwrap();
            chain.change(None, changes()).unwrap();
        }
        assert_ne!(dropped.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn a_program_array_can_be_changed_by_what_its_change_drops() {
    within_a_minute(|| {
        let protocols = load("protocols.o");
        let drop = protocols.program(Some("drop")).unwrap();
        let dropped = Arc::new(AtomicUsize::new(0));
        for _ in 0..200 {
            let (own, count) = (protocols.clone(), Arc::clone(&dropped));
            let bye = Bye(Box::new(move || {
                own.uninstall("protocols", 17).unwrap();
                count.fetch_add(1, Ordering::Relaxed);
            }));
            Domain::global().retire(bye);
            // Each retires the one before: most collections are theirs.
            (0..4).for_each(|_| protocols.install("protocols", 17, drop.program()).unwrap());
        }
        assert_ne!(dropped.load(Ordering::Relaxed), 0);
    });
}
