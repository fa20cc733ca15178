//! Ring buffers: what goes in comes out, in order, and no more than fits.

use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use paceline_maps::{Limits, Map, Origin, OwnedRingReader, RingBuffer, RingError, RingReader};
use paceline_spec::{Errno, MapFlags, MapKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

fn create(bytes: u32) -> Arc<Map> {
    let spec = crate::common::spec(MapKind::RingBuf, 0, 0, bytes, MapFlags::default());
    Map::create(&spec, &Limits { cpus: 1, memory: 1 << 24 }).unwrap()
}

fn drain(reader: RingReader<'_>) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    reader.consume(|record| records.push(record.to_vec()));
    records
}

fn commit(record: NonNull<u8>, discard: bool) {
    // SAFETY: each test gives a record back once, and keeps the map.
    unsafe { RingBuffer::commit(record, discard, 0) };
}

#[test]
fn records_are_read_in_the_order_of_their_reservation() {
    let map = create(4096);
    let (ring, reader) = (map.for_programs().ring_buffer().unwrap(), map.ring_buffer().unwrap());
    let records = [8, 0, 13].map(|size| ring.reserve(size, 0).unwrap());
    for (record, size) in records.iter().zip([8, 0, 13]) {
        assert!(
            map.for_programs().contains(record.addr().get(), size)
                && !map.for_programs().contains(record.addr().get(), size.max(1) + 1)
        );
        assert!(ring.is_reserved(record.addr().get()) && !ring.is_reserved(record.addr().get() + 1));
    }
    // SAFETY: the record has 13 bytes.
    unsafe { records[2].as_ptr().write_bytes(7, 13) };
    commit(records[2], false);
    assert_eq!(drain(reader), [[0; 0]; 0], "the first is not done");
    commit(records[1], true);
    commit(records[0], false);
    assert_eq!(drain(reader), [vec![0; 8], vec![7; 13]], "one was discarded");
    assert_eq!([0, 1, 2, 3, 4].map(|question| ring.query(question)), [0, 4096, 48, 48, 0]);
    assert!(!ring.is_reserved(records[0].addr().get()));
}

#[test]
fn what_does_not_fit_is_refused() {
    let map = create(4096);
    let (ring, reader) = (map.for_programs().ring_buffer().unwrap(), map.ring_buffer().unwrap());
    assert!(ring.reserve(4089, 0).is_none() && ring.reserve(8, 1).is_none());
    assert!(ring.reserve(u64::from(u32::MAX), 0).is_none() && ring.reserve(u64::MAX, 0).is_none());
    // A ring is never quite full: positions a whole ring apart would look alike.
    assert!(ring.reserve(4088, 0).is_none());
    commit(ring.reserve(4080, 0).unwrap(), false);
    assert_eq!(ring.output(&[1], 0), Err(Errno::EAGAIN));
    assert_eq!(ring.output(&[1], 4), Err(Errno::EINVAL));
    assert_eq!(drain(reader).len(), 1);
    // A record that the program keeps holds up those after it, however much was read.
    let kept = ring.reserve(2000, 0).unwrap();
    commit(ring.reserve(2000, 0).unwrap(), false);
    assert!(ring.reserve(100, 0).is_none());
    commit(kept, false);
    assert_eq!(drain(reader).len(), 2);
    assert_eq!(ring.output(&[1; 100], 0), Ok(()));
}

#[test]
fn a_record_over_the_end_is_in_one_piece() {
    let map = create(4096);
    let (ring, reader) = (map.for_programs().ring_buffer().unwrap(), map.ring_buffer().unwrap());
    for round in 0..100_u8 {
        let bytes: Vec<u8> = (0..1001).map(|i| (i % 251) as u8 ^ round).collect();
        ring.output(&bytes, 0).unwrap();
        assert_eq!(drain(reader), [bytes]);
    }
}

#[test]
fn several_writers_and_a_reader_lose_nothing() {
    const EACH: u32 = 20_000;
    let map = create(4096);
    let (ring, reader) = (map.for_programs().ring_buffer().unwrap(), map.ring_buffer().unwrap());
    let done = AtomicBool::new(false);
    let mut seen = [0_u32; 2];
    std::thread::scope(|scope| {
        let writers = [0, 1].map(|writer: u32| {
            scope.spawn(move || {
                for number in 0..EACH {
                    let words = 2 + number % 7;
                    let bytes: Vec<u8> = (0..words)
                        .flat_map(|_| [writer.to_ne_bytes(), number.to_ne_bytes()].concat())
                        .collect();
                    while ring.output(&bytes, 0).is_err() {
                        std::thread::yield_now();
                    }
                }
            })
        });
        let (done, seen) = (&done, &mut seen);
        scope.spawn(move || {
            loop {
                let last = done.load(Ordering::Acquire);
                reader.consume(|record| {
                    let (pairs, rest) = record.as_chunks::<8>();
                    assert!(rest.is_empty() && pairs.iter().all(|pair| *pair == pairs[0]), "{record:?}");
                    let [a, b, c, d, e, f, g, h] = pairs[0];
                    let (writer, number) =
                        (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]));
                    assert_eq!(number, seen[writer as usize]);
                    assert_eq!(pairs.len() as u32, 2 + number % 7);
                    seen[writer as usize] += 1;
                });
                if last {
                    return;
                }
                reader.wait(Duration::from_millis(1));
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Release);
    });
    assert_eq!(seen, [EACH; 2]);
}

#[test]
fn a_reader_that_waits_is_woken() {
    let map = create(4096);
    let (ring, reader) = (map.for_programs().ring_buffer().unwrap(), map.ring_buffer().unwrap());
    assert!(!reader.wait(Duration::from_millis(1)));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| reader.wait(Duration::from_secs(20)));
        while !waiting.is_finished() {
            // Each wakes only who waits already.
            ring.output(&[1], 2).unwrap();
            drain(reader);
        }
        assert!(waiting.join().unwrap());
    });
}

#[test]
fn a_reader_may_use_the_ring_from_its_function() {
    let map = create(4096);
    let (ring, reader) = (map.for_programs().ring_buffer().unwrap(), map.ring_buffer().unwrap());
    (0..3).for_each(|byte| ring.output(&[byte], 0).unwrap());
    let mut inner = Vec::new();
    let outer = reader.consume(|record| {
        assert!(record != [0] || reader.wait(Duration::from_secs(5)), "there is another");
        reader.consume(|record| inner.push(record.to_vec()));
    });
    assert_eq!((outer, inner), (1, vec![vec![1], vec![2]]));
}

#[test]
fn a_record_whose_reader_panics_is_read() {
    let map = create(4096);
    let (ring, reader) = (map.for_programs().ring_buffer().unwrap(), map.ring_buffer().unwrap());
    (0..2).for_each(|byte| ring.output(&[byte], 0).unwrap());
    let first = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reader.consume(|_| panic!("stop"))));
    assert!(first.is_err());
    assert_eq!(drain(reader), [[1]]);
}

#[test]
fn what_made_a_record_is_asked_without_a_lock() {
    let map = create(4096);
    let (ring, reader) = (map.for_programs().ring_buffer().unwrap(), map.ring_buffer().unwrap());
    reader.keep_origins();
    let origin = Origin { packet: Some(1), cpu: 2, time_ns: 3, received_ns: 4 };
    let record = ring.reserve_from(8, 0, || {
        ring.output(&[7], 0).unwrap();
        Some(origin)
    });
    commit(record.unwrap(), false);
    let mut records = Vec::new();
    reader.consume_records(|record| records.push((record.data.len(), record.origin)));
    assert_eq!(records, [(1, None), (8, Some(origin))]);
}

/// Whether poll(2) finds the reader's descriptor readable within a number of milliseconds.
fn is_readable(reader: &OwnedRingReader, milliseconds: i64) -> bool {
    let timeout = Timespec { tv_sec: 0, tv_nsec: milliseconds * 1_000_000 };
    let mut fds = [PollFd::new(reader, PollFlags::IN)];
    poll(&mut fds, Some(&timeout)).unwrap() == 1
}

#[test]
fn poll_waits_for_records() {
    let map = create(4096);
    let ring = map.for_programs().ring_buffer().unwrap();
    commit(ring.reserve(8, 0).unwrap(), false);
    let reader = map.ring_reader().unwrap();
    assert!(is_readable(&reader, 0), "a record was there before");
    assert_eq!(reader.consume(|_| assert!(!is_readable(&reader, 0), "taken with the records")), 1);
    assert!(!is_readable(&reader, 0));
    // A record that a program holds is none yet, and one that is discarded wakes for nothing.
    let (held, discarded) = (ring.reserve(8, 0).unwrap(), ring.reserve(8, 0).unwrap());
    commit(discarded, true);
    assert!(!is_readable(&reader, 1));
    let writer = std::thread::spawn({
        let map = Arc::clone(&map);
        move || {
            std::thread::sleep(Duration::from_millis(20));
            map.for_programs().ring_buffer().unwrap().output(&[3; 4], 0).unwrap();
        }
    });
    commit(held, false);
    assert!(is_readable(&reader, 0));
    assert_eq!(reader.consume(|_| ()), 1);
    assert!(is_readable(&reader, 900), "another thread's record ends the wait");
    writer.join().unwrap();
    let mut records = Vec::new();
    assert_eq!(reader.consume(|record| records.push(record.to_vec())), 1);
    assert_eq!(records, [[3; 4]]);
    ring.output(&[1], 1).unwrap();
    assert!(!is_readable(&reader, 1), "BPF_RB_NO_WAKEUP");
    ring.output(&[1], 2).unwrap();
    assert!(is_readable(&reader, 0), "BPF_RB_FORCE_WAKEUP");
}

#[test]
fn a_reader_that_panics_stays_readable() {
    let map = create(4096);
    let (ring, reader) = (map.for_programs().ring_buffer().unwrap(), map.ring_reader().unwrap());
    (0..2).for_each(|value| ring.output(&[value], 0).unwrap());
    let read = std::panic::AssertUnwindSafe(|| reader.consume(|_| panic!("as expected")));
    assert!(std::panic::catch_unwind(read).is_err());
    assert!(is_readable(&reader, 0));
    assert_eq!(reader.consume(|record| assert_eq!(record, [1])), 1);
}

#[test]
fn a_closed_reader_is_woken_no_more() {
    let map = create(4096);
    let (first, second) = (map.ring_reader().unwrap(), map.ring_reader().unwrap());
    let kept = first.as_fd().try_clone_to_owned().unwrap();
    first.close();
    map.for_programs().ring_buffer().unwrap().output(&[1], 0).unwrap();
    assert!(is_readable(&second, 0));
    let mut fds = [PollFd::new(&kept, PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(&Timespec::default())), Ok(0), "the ring signals it no more");
    assert_eq!(Arc::strong_count(&map), 2, "the map and the second reader");
    let array = crate::common::spec(MapKind::Array, 4, 8, 1, MapFlags::default());
    let array = Map::create(&array, &Limits { cpus: 1, memory: 1 << 24 }).unwrap();
    assert!(matches!(array.ring_reader(), Err(RingError::Kind { .. })));
}
