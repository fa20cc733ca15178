//! Workers whose ports and packets are at fault.

use std::io;
use std::time::Duration;

use paceline::isa::assemble;
use paceline::port::{Group, MemoryPort, Port, PortError, SendError};
use paceline::{
    Burst, FrameMeta, LoadOptions, Object, Pipeline, Program, ProgramSpec, Target, Verdict, WorkerError,
};

/// Does not end over packets that begin with a byte other than 0.
const LOOPS: &str =
    "r2 = *(u32 *)(r1 + 0)\nr3 = *(u8 *)(r2 + 0)\nagain:\nif r3 != 0 goto again\nr0 = 2\nexit\n";

fn loops() -> Program {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");
    let mut object = Object::open(path).unwrap();
    let insns = assemble(LOOPS, &()).unwrap().encode().unwrap();
    let spec = object.specs_mut().programs.first_mut().unwrap();
    *spec = ProgramSpec::new("loops", spec.kind, insns);
    let collection = object.load(&LoadOptions::default()).unwrap();
    collection.program_unverified(Some("loops")).unwrap().with_budget(100)
}

/// Does not work.
struct Broken;

impl Port for Broken {
    fn receive(&mut self, _: &mut Burst) -> Result<usize, PortError> {
        Err(PortError::Io(io::ErrorKind::NotConnected.into()))
    }

    fn send(&mut self, _: Group<'_>) -> Result<usize, SendError> {
        Err(PortError::Io(io::ErrorKind::BrokenPipe.into()).into())
    }
}

fn drain(port: &MemoryPort) -> usize {
    std::iter::from_fn(|| port.pop()).count()
}

#[test]
fn no_port_keeps_others_from_their_turn() {
    let pipeline = Pipeline::new();
    pipeline.set_program(1, Some(&Target::from(&loops()))).unwrap();
    let mut worker = pipeline.worker(0);
    let ((first, first_wire), (last, last_wire)) = (MemoryPort::link(64), MemoryPort::link(64));
    let (stack, host) = MemoryPort::link(4096);
    worker.attach(7, 0, Broken);
    worker.attach(1, 3, first);
    worker.attach(2, 0, last);
    worker.deliver_to(stack);
    for _ in 0..10 {
        // The first packet and the third pass; the second never ends.
        assert!([0, 1, 0].iter().all(|&byte| first_wire.push(&[byte; 60], FrameMeta::default())));
        assert!(last_wire.push(&[1; 60], FrameMeta::default()));
        let error = worker.poll().unwrap_err();
        assert!(matches!(error, WorkerError::Receive { ifindex: 7, .. }), "the first: {error}");
        assert_eq!(drain(&host), 2, "one before the fault, and that of the last port");
    }
    let (errors, counts) = (pipeline.errors(), pipeline.counts());
    assert_eq!((errors[&7].receive, errors[&1].faults, errors.get(&2)), (10, 10, None));
    assert_eq!((counts.of(Verdict::Pass), counts.sent, counts.lost), (20, 20, 20));
}

#[test]
fn what_a_broken_port_was_to_send_is_lost() {
    let pipeline = Pipeline::new();
    let mut worker = pipeline.worker(0);
    let (card, wire) = MemoryPort::link(64);
    worker.attach(1, 0, card);
    worker.deliver_to(Broken);
    assert!((0..5).all(|_| wire.push(&[0; 60], FrameMeta::default())));
    assert!(matches!(worker.poll(), Err(WorkerError::Send { ifindex: 1, port: 0, .. })));
    let counts = pipeline.counts();
    assert_eq!((counts.packets(), counts.sent, counts.lost, pipeline.errors()[&1].send), (5, 0, 5, 1));
    assert_eq!(worker.poll().unwrap(), 0, "it may be called again");
    assert_eq!(worker.polls().count(), 2);
}

/// Receives a packet and fails.
struct Failing;

impl Port for Failing {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.push(&[0; 60], FrameMeta::default()).unwrap();
        Err(PortError::Io(io::ErrorKind::NotConnected.into()))
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, SendError> {
        Ok(group.len())
    }
}

#[test]
fn what_sockets_send_is_counted_whatever_fails() {
    let pipeline = Pipeline::new();
    let mut worker = pipeline.worker(0);
    worker.attach(3, 0, MemoryPort::loopback(64));
    worker.attach_socket(9, Failing);
    assert!(matches!(worker.poll(), Err(WorkerError::Receive { ifindex: 9, .. })));
    assert_eq!((pipeline.counts().sent, pipeline.ports()[0].sent), (1, 1));

    let mut worker = pipeline.worker(1);
    let (socket, wire) = MemoryPort::link(64);
    worker.attach_to_send(3, Broken);
    worker.attach_socket(9, socket);
    assert!(wire.push(&[0; 60], FrameMeta::default()));
    let error = worker.poll().unwrap_err();
    assert!(matches!(error, WorkerError::Send { ifindex: 9, port: 3, .. }), "{error}");
    assert_eq!(pipeline.counts().lost, 1);
}

#[test]
fn an_observer_is_told_of_packets_up_to_a_fault_and_counts_what_it_loses() {
    let pipeline = Pipeline::new();
    pipeline.set_program(1, Some(&Target::from(&loops()))).unwrap();
    let mut worker = pipeline.worker(3);
    let (port, wire) = MemoryPort::link(64);
    worker.attach(1, 2, port);
    let send = |first: u8| assert!(wire.push(&[first, 7], FrameMeta::default()));
    let observer = pipeline.observe(2);
    [0, 0, 1, 0].into_iter().for_each(send);
    assert!(worker.poll().is_err());
    let told: Vec<_> = std::iter::from_fn(|| observer.next(Duration::ZERO)).collect();
    assert_eq!(told.len(), 2, "those before the fault");
    let first = &told[0];
    assert_eq!((first.worker, first.ifindex, first.queue, first.verdict), (3, 1, 2, Verdict::Pass));
    assert_eq!((&*first.before, &first.after, observer.lost()), (&[0, 7][..], &None, 0));
    // Two wait, and the third is lost; another observer has room.
    let other = pipeline.observe(10);
    (0..3).for_each(|_| send(0));
    assert_eq!(worker.poll().unwrap(), 3);
    assert_eq!((observer.lost(), other.lost()), (1, 0));
    assert_eq!(std::iter::from_fn(|| other.next(Duration::ZERO)).count(), 3);
    drop((observer, other));
    send(0);
    assert_eq!(worker.poll().unwrap(), 1);
}
