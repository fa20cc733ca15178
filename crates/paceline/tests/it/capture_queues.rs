//! Queues of a capture: each flow stays in order on one worker, and nothing is lost.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use paceline::capture::{CaptureReader, CaptureWriter, Header, PcapHeader, Resolution};
use paceline::port::{CapturePort, CaptureQueue, Group, Port};
use paceline::{Burst, FrameMeta};

const FLOWS: u32 = 40;

/// A UDP packet of a flow with a number.
fn packet(flow: u32, number: u32) -> Vec<u8> {
    let mut packet = vec![0; 60 + (number % 900) as usize];
    (packet[12], packet[14], packet[23], packet[35]) = (8, 0x45, 17, flow as u8);
    packet[42..46].copy_from_slice(&number.to_be_bytes());
    packet
}

fn flow_and_number(packet: &[u8]) -> (u8, u32) {
    (packet[35], packet[42..46].iter().fold(0, |number, &byte| number << 8 | u32::from(byte)))
}

/// A capture of several windows, with its number of packets.
fn capture() -> (Vec<u8>, u32) {
    const COUNT: u32 = 20_000;
    let mut bytes = Vec::new();
    let mut writer =
        CaptureWriter::new(&mut bytes, &Header::Pcap(PcapHeader::new(Resolution::Nano))).expect("memory");
    for number in 0..COUNT {
        let packet = packet(number % FLOWS, number / FLOWS);
        let meta = FrameMeta { original_len: packet.len() as u32, ..FrameMeta::default() };
        writer.push(&packet, &meta).expect("memory");
    }
    drop(writer);
    (bytes, COUNT)
}

fn queues(bytes: Vec<u8>, workers: usize) -> Vec<CaptureQueue> {
    let reader = CaptureReader::new(io::Cursor::new(bytes)).expect("a capture");
    CapturePort::queues(Some(reader), None, workers).expect("no output")
}

/// Receives to the end; the numbers of each flow's packets, and the error.
fn drain(queue: &mut CaptureQueue, burst_len: usize) -> (HashMap<u8, Vec<u32>>, Option<String>) {
    let (mut burst, mut received) = (Burst::new(burst_len), HashMap::<u8, Vec<u32>>::new());
    while !queue.is_done() {
        burst.clear();
        let failure = queue.receive(&mut burst).err();
        for frame in burst.iter() {
            let (flow, number) = flow_and_number(frame.packet());
            received.entry(flow).or_default().push(number);
        }
        if let Some(error) = failure {
            return (received, Some(error.to_string()));
        }
    }
    (received, None)
}

#[test]
fn flows_stay_in_order_on_one_worker() {
    let (bytes, count) = capture();
    for workers in [1, 2, 5] {
        let threads: Vec<_> = queues(bytes.clone(), workers)
            .into_iter()
            .zip([64, 1, 7, 64, 33])
            .map(|(mut queue, burst_len)| thread::spawn(move || drain(&mut queue, burst_len)))
            .collect();
        let mut all = HashMap::new();
        for thread in threads {
            let (received, error) = thread.join().expect("no panic");
            assert_eq!(error, None);
            assert!(workers > 3 || !received.is_empty(), "each worker has flows");
            for (flow, numbers) in received {
                assert!(all.insert(flow, numbers).is_none(), "flow {flow} is on two workers");
            }
        }
        assert_eq!(all.len() as u32, FLOWS);
        assert!(
            all.values().all(|numbers| numbers.iter().copied().eq(0..count / FLOWS)),
            "{workers} workers"
        );
    }
}

#[test]
fn damage_is_reported_once_behind_all_packets_before_it() {
    let (mut bytes, count) = capture();
    bytes.truncate(bytes.len() - 5);
    let threads: Vec<_> =
        queues(bytes, 3).into_iter().map(|mut queue| thread::spawn(move || drain(&mut queue, 64))).collect();
    let done: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    let received: usize = done.iter().flat_map(|(received, _)| received.values()).map(Vec::len).sum();
    assert_eq!(received as u32, count - 1);
    let errors: Vec<_> = done.iter().filter_map(|(_, error)| error.as_ref()).collect();
    assert!(matches!(&errors[..], [error] if error.contains("packet 20000")), "{errors:?}");
}

#[test]
fn a_worker_that_leaves_does_not_stop_the_others() {
    let (bytes, _) = capture();
    for received_before in [0, 1] {
        let mut queues = queues(bytes.clone(), 2);
        let mut first = queues.remove(0);
        let mut burst = Burst::default();
        for _ in 0..received_before {
            assert!(first.receive(&mut burst).expect("a capture") > 0);
        }
        drop(first);
        let (received, error) = drain(&mut queues[0], 64);
        assert_eq!(error, None);
        assert!(received.values().all(|numbers| numbers.len() == 500));
    }
}

#[test]
fn a_worker_that_ends_receives_what_was_read_for_it() {
    let (bytes, _) = capture();
    let mut queues = queues(bytes, 2);
    let mut burst = Burst::default();
    assert_eq!(queues[0].receive(&mut burst).expect("a capture"), 64);
    queues[0].stop();
    let (first, _) = drain(&mut queues[0], 64);
    let (second, _) = drain(&mut queues[1], 64);
    let of = |received: &HashMap<u8, Vec<u32>>| received.values().map(Vec::len).sum::<usize>();
    let all = of(&first) + of(&second) + 64;
    assert!(all < 20_000, "the rest is not read");
    let longest = first.values().chain(second.values()).map(|numbers| numbers.last().copied()).max();
    let shortest = first.values().chain(second.values()).map(|numbers| numbers.last().copied()).min();
    assert!(longest.flatten().zip(shortest.flatten()).is_some_and(|(long, short)| long - short <= 1));
}

/// Gives a part with each read, and counts the reads.
struct Parts(std::vec::IntoIter<Vec<u8>>, Arc<AtomicUsize>);

impl Read for Parts {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let part = self.0.next().unwrap_or_default();
        buffer[..part.len()].copy_from_slice(&part);
        Ok(part.len())
    }
}

#[test]
fn a_source_that_waits_delays_no_packet() {
    let (bytes, _) = capture();
    let (mut parts, mut at) = (Vec::new(), 24);
    for number in 0..9 {
        let end = at + 16 + packet(number % FLOWS, number / FLOWS).len();
        parts.push(bytes[if at == 24 { 0 } else { at }..end].to_vec());
        at = end;
    }
    let reads = Arc::new(AtomicUsize::new(0));
    let reader = CaptureReader::new(Parts(parts.into_iter(), Arc::clone(&reads))).expect("a capture");
    let mut queues = CapturePort::queues(Some(reader), None, 1).expect("no output");
    let mut burst = Burst::default();
    for number in 1..=9 {
        assert_eq!(queues[0].receive(&mut burst).expect("a packet"), 1);
        assert_eq!(reads.load(Ordering::Relaxed), number, "the source is not asked for more than the packet");
    }
}

/// Memory that is written.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn sent_packets_are_written_by_all() {
    let output = Shared::default();
    let mut queues = CapturePort::queues(None, Some(Box::new(output.clone())), 2).expect("memory");
    for (number, queue) in (0..).zip(&mut queues) {
        let mut burst = Burst::default();
        assert_eq!((queue.receive(&mut burst).expect("no input"), queue.is_done()), (0, true));
        burst.push(&packet(1, number), FrameMeta::default()).expect("room");
        assert_eq!(queue.send(Group::new(&mut burst, &[0], 0)).expect("memory"), 1);
    }
    drop(queues);
    let written = output.0.lock().expect("no panic");
    let mut reader = CaptureReader::new(&written[..]).expect("a capture");
    let mut burst = Burst::default();
    assert_eq!(reader.fill(&mut burst).expect("packets"), 2);
}
