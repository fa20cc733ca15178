//! The ring alone, on threads and in the model checker.

#[cfg(loom)]
mod model {
    use std::sync::Arc;
    use std::time::Duration;

    use loom::thread;

    use super::super::RingBuffer;
    use crate::ring_reader::RingReader;

    impl RingBuffer {
        /// A record of one word, as a program makes it: reserved, written and given back. Not through its address, which
        /// leads to no plain memory here.
        fn write(&self, value: u64) {
            let position = self.produced.load(super::super::Ordering::Relaxed);
            self.reserve(8, 0).unwrap();
            let place = self.place(position);
            self.words()[place + 1].store(value, super::super::Ordering::Relaxed);
            self.finish(&self.words()[place], false, 0);
        }
    }

    /// A reader that reads until nothing is left and then waits gets all records: no wake-up is lost. The model
    /// checker finds a reader that nobody wakes to be a deadlock, for its clock does not advance.
    #[test]
    fn a_reader_that_waits_is_woken() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let ring = Arc::new(RingBuffer::new(64).unwrap());
            let writer = {
                let ring = Arc::clone(&ring);
                thread::spawn(move || (1..3).for_each(|value| ring.write(value)))
            };
            let mut read = Vec::new();
            while read.len() < 2 {
                RingReader::new(&ring)
                    .consume(|record| read.push(u64::from_ne_bytes(record.try_into().unwrap())));
                if read.len() < 2 {
                    assert!(ring.wait(Duration::MAX));
                }
            }
            assert_eq!(read, [1, 2]);
            writer.join().unwrap();
        });
    }
}

#[cfg(not(loom))]
mod threads {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::super::{Origin, RingBuffer};
    use crate::ring_reader::RingReader;

    /// Room for many records, and what it takes to give them back by their addresses.
    fn ring() -> Box<RingBuffer> {
        RingBuffer::boxed(1 << 12).unwrap()
    }

    #[test]
    fn what_is_there_already_ends_a_wait() {
        let ring = ring();
        assert!(!ring.wait(Duration::ZERO));
        ring.output(&[1; 8], 0).unwrap();
        ring.output(&[2; 8], 0).unwrap();
        assert!(ring.wait(Duration::from_secs(3600)), "nobody wakes it again");
        assert_eq!(RingReader::new(&ring).consume(|_| {}), 2);
        assert!(!ring.wait(Duration::from_millis(1)));
        let busy = ring.reserve(8, 0).unwrap();
        ring.output(&[3; 8], 0).unwrap();
        assert!(!ring.wait(Duration::from_millis(1)), "a program has the record before");
        // SAFETY: just reserved.
        unsafe { RingBuffer::commit(busy, false, 0) };
        assert!(ring.wait(Duration::from_secs(3600)));
    }

    /// Records come between the reader's last look and its wait, many times over.
    #[test]
    fn no_wake_up_is_lost() {
        let (ring, done) = (ring(), AtomicBool::new(false));
        const RECORDS: u64 = 20_000;
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..RECORDS {
                    while ring.output(&number.to_ne_bytes(), 0).is_err() {
                        thread::yield_now();
                    }
                    (0..number % 97 * 10).for_each(|_| std::hint::spin_loop());
                }
                done.store(true, Ordering::Release);
            });
            let mut read = 0;
            while read < RECORDS {
                let was_done = done.load(Ordering::Acquire);
                read += RingReader::new(&ring).consume(|_| {}) as u64;
                assert!(read == RECORDS || ring.wait(Duration::from_secs(60)) || was_done, "{read} read");
            }
        });
    }

    #[test]
    fn origins_of_discarded_records_go_with_them() {
        let ring = ring();
        ring.keep_origins();
        for number in 0..1000 {
            let origin = || Some(Origin { packet: Some(number), ..Origin::default() });
            let record = ring.reserve_from(8, 0, origin).unwrap();
            // SAFETY: just reserved.
            unsafe { RingBuffer::commit(record, number % 10 != 0, 0) };
            RingReader::new(&ring)
                .consume_records(|record| assert_eq!(record.origin.unwrap().packet, Some(number)));
            assert!(ring.origins.lock().unwrap().is_empty());
        }
    }
}
