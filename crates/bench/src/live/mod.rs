//! Live ports (`live`): what a pipeline adds to receiving, packets that are made and dropped beside DPDK's, and what a second worker
//! gains.

mod echo;
mod testpmd;
mod worker;

use std::error::Error;
use std::hint::black_box;
use std::io::{Cursor, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use paceline::capture::CaptureReader;
use paceline::device::{DpdkPort, Interface, Umem, XdpDevice, XdpOptions, XdpPort};
use paceline::port::{CapturePort, Generator, Group, Port, PortError, SendError};
use paceline::{Burst, LoadOptions, Object, Pipeline, Target, Worker};
use paceline_testkit::namespace::{namespace, veth};
use paceline_testkit::wire::Wire;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use testpmd::Testpmd;
use worker::{PAIRS, dropping_worker};

use crate::measure::{Timing, Work, interleaved, prepared, thread_time};
use crate::report::{Bar, Figure, Report, Row};
use crate::settings::{Rows, Settings, Table};

/// Packets that wait in the ring of a socket before a round: fewer than it has places.
const WAITING: usize = 960;
/// Rounds of them.
const ROUNDS: usize = 200;
/// Packets of a round of two workers.
const PACKETS: usize = 1 << 21;
/// Packets between two looks at the clock, and the time between two statistics.
const STRETCH: usize = 4096;
const SHOWN: Duration = Duration::from_millis(100);
/// Flows of the packets that workers share.
const FLOWS: u16 = 1000;

pub(crate) fn table(settings: Settings) -> Table {
    let mut report = Report::default();
    report.rows.extend(in_namespace(&veth("va", "vb"), || dropping(settings))?);
    report.rows.extend(in_namespace(&echo::interfaces(), || echo::rows(settings))?);
    report.rows.extend(generated_rows(settings)?);
    report.rows.push(statistics_row(settings)?);
    report.rows.extend(worker_rows(settings)?);
    Ok(report)
}

/// A port that two contenders use in turn.
#[derive(Clone)]
struct Shared(Arc<Mutex<XdpPort>>);

impl Port for Shared {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).receive(burst)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, SendError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).send(group)
    }
}

/// Rows that need interfaces, in a network namespace with them. None where there are no such namespaces.
fn in_namespace(interfaces: &str, rows: impl FnOnce() -> Rows + Send) -> Rows {
    // A thread, because a namespace is left only by ending.
    let rows = thread::scope(|scope| {
        let rows = scope.spawn(|| {
            let Some(()) = namespace("bench live", interfaces) else { return Ok(Vec::new()) };
            rows().map_err(|error| error.to_string())
        });
        rows.join().unwrap_or_else(|_| Err("the thread panicked".to_owned()))
    });
    Ok(rows?)
}

/// Packets that wait in the ring of an AF_XDP socket are received and dropped.
fn dropping(settings: Settings) -> Rows {
    let device = XdpDevice::open("va", &Umem::new(4096)?, XdpOptions::default())?;
    let port = Shared(Arc::new(Mutex::new(XdpPort::open(&device, 0)?)));
    device.attach()?;
    let wire = Wire::open(Interface::by_name("vb")?.index())?;
    let mut bare = (port.clone(), Burst::default());
    let mut worker = dropping_worker(port)?;
    let mut works: Vec<Work<'_>> = vec![
        Box::new(move || {
            let mut done = 0;
            while done < WAITING {
                bare.1.clear();
                done += bare.0.receive(&mut bare.1)?;
            }
            Ok(done as u64)
        }),
        Box::new(|| polled(&mut worker, WAITING)),
    ];
    // The packets cross the virtual wire before `send` returns, or soon after.
    let prepare = || (0..WAITING).for_each(|_| drop(wire.send(&[2; 64])));
    let times = prepared(if settings.smoke { 0 } else { ROUNDS }, &mut works, prepare)?;
    let figure = Figure::Time { ours: times[1], against: Some(times[0]) };
    let row = Row::new("AF_XDP on veth, drop", "receiving from the same socket alone", figure);
    Ok(vec![Row { reach: Some(Bar::Ratio(1.0)), ..row.with_bar(Some(Bar::Ratio(0.95))) }])
}

/// Polls until so many packets were processed.
fn polled(worker: &mut Worker, packets: usize) -> Result<u64, Box<dyn Error>> {
    let mut done = 0;
    while done < packets {
        done += worker.poll()?;
    }
    Ok(done as u64)
}

/// Packets that are made, dropped by a program, and released, on one CPU: beside testpmd with DPDK's null driver and a filter. The
/// same with that driver in Paceline where its library is.
fn generated_rows(settings: Settings) -> Rows {
    let Some(mut testpmd) = Testpmd::filtering(include_bytes!("../../workloads/dpdk_drop.v2.o"))? else {
        return Ok(Vec::new());
    };
    let packets = if settings.smoke { 6400 } else { PACKETS };
    let umem = Umem::new(4096)?;
    let mut contenders: Vec<(&str, Worker)> =
        vec![("generated packets, dropped", dropping_worker(Generator::new(vec![vec![2; 64]], None))?)];
    // Without the library there is no such row.
    if let Ok(mut ports) = DpdkPort::open("net_null0,size=64", umem.pool(), 1, 4096) {
        contenders.extend(
            ports
                .pop()
                .map(dropping_worker)
                .transpose()?
                .map(|worker| ("DPDK's null driver, dropped", worker)),
        );
    }
    let mut times = vec![Vec::new(); contenders.len()];
    let mut theirs = Vec::new();
    for round in 0..=if settings.smoke { 0 } else { PAIRS } {
        let spent = testpmd.forward(Duration::from_millis(if settings.smoke { 20 } else { 100 }))?;
        let mut ours = Vec::new();
        for (_, worker) in &mut contenders {
            let start = thread_time();
            let done = polled(worker, packets)?;
            ours.push((thread_time() - start) / done as f64);
        }
        // The first round is a warm-up.
        if round > 0 || settings.smoke {
            theirs.push(spent);
            times.iter_mut().zip(ours).for_each(|(times, time)| times.push(time));
        }
    }
    let against = Timing::of(theirs);
    let rows = contenders.iter().zip(times).map(|((name, _), times)| {
        let figure = Figure::Time { ours: Timing::of(times), against: Some(against) };
        let row = Row::new(*name, "testpmd, null driver, filter", figure).with_bar(Some(Bar::Ratio(1.0)));
        Row { reach: Some(Bar::Most(10.0)), ..row }
    });
    Ok(rows.collect())
}

/// Generated packets through the example firewall, while what `paceline top` shows is taken (a sample of packets that are followed,
/// and all counts, ten times a second), and without.
fn statistics_row(settings: Settings) -> Result<Row, Box<dyn Error>> {
    let packets = if settings.smoke { 6400 } else { PACKETS };
    let mut works: Vec<Work<'_>> = Vec::new();
    for is_on in [false, true] {
        let pipeline = firewall(1)?;
        pipeline.follow(is_on);
        let mut worker = pipeline.worker(0);
        worker.attach(1, 0, Generator::new(flows(), None));
        let mut shown = Instant::now();
        works.push(Box::new(move || {
            let mut done = 0;
            while done < packets {
                done += polled(&mut worker, STRETCH)? as usize;
                if is_on && shown.elapsed() >= SHOWN {
                    shown = Instant::now();
                    worker.update_counts();
                    black_box((pipeline.counts(), pipeline.ports(), pipeline.followed()));
                }
            }
            Ok(done as u64)
        }));
    }
    let times = interleaved(settings.smoke, &mut works)?;
    let figure = Figure::Time { ours: times[1], against: Some(times[0]) };
    let row = Row::new("statistics taken, firewall", "none taken", figure);
    Ok(Row { reach: Some(Bar::Ratio(0.99)), ..row.with_bar(Some(Bar::Ratio(0.97))) })
}

/// UDP packets of many flows.
fn flows() -> Vec<Vec<u8>> {
    let packet = |flow: u16| {
        let mut packet = vec![0; 64];
        (packet[12], packet[14], packet[17], packet[22], packet[23]) = (8, 0x45, 50, 64, 17);
        packet[34..36].copy_from_slice(&flow.to_be_bytes());
        packet
    };
    (0..FLOWS).map(packet).collect()
}

/// A capture of these packets: pcap, in microseconds, Ethernet.
fn capture(packets: usize) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let mut bytes = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, 1]);
    for packet in flows().iter().cycle().take(packets) {
        let len = packet.len() as u32;
        bytes.extend(words(&[0, 0, len, len]));
        bytes.extend(packet);
    }
    bytes
}

/// Ports of a number of workers that receive so many packets together.
type Ports<'a> = Box<dyn Fn(usize, usize) -> Result<Vec<Box<dyn Port>>, Box<dyn Error>> + 'a>;

/// Two workers on two CPUs against one, through the example firewall.
fn worker_rows(settings: Settings) -> Rows {
    let Some(others) = other_cpus()? else { return Ok(Vec::new()) };
    let packets = if settings.smoke { 6400 } else { PACKETS };
    let bytes: Arc<[u8]> = capture(packets).into();
    let sources: [(&str, Ports<'_>); 2] = [
        (
            "a memory port for each worker, firewall",
            Box::new(|workers, packets| {
                let port =
                    |_| Box::new(Generator::new(flows(), Some((packets / workers) as u64))) as Box<dyn Port>;
                Ok((0..workers).map(port).collect())
            }),
        ),
        (
            "a capture shared by flow, firewall",
            Box::new(|workers, _| {
                let source: Box<dyn Read + Send> = Box::new(Cursor::new(Arc::clone(&bytes)));
                let reader = CaptureReader::new(source)?;
                if workers == 1 {
                    return Ok(vec![Box::new(CapturePort::new(Some(reader), None)?) as Box<dyn Port>]);
                }
                let queues = CapturePort::queues(Some(reader), None, workers)?;
                Ok(queues.into_iter().map(|queue| Box::new(queue) as Box<dyn Port>).collect())
            }),
        ),
    ];
    let mut rows = Vec::new();
    for (name, ports) in sources {
        let mut works: Vec<Work<'_>> = Vec::new();
        for workers in [1, 2] {
            let (pipeline, ports, others) = (firewall(workers)?, &ports, &others);
            works.push(Box::new(move || together(&pipeline, ports(workers, packets)?, others)));
        }
        let times = interleaved(settings.smoke, &mut works)?;
        let figure = Figure::Time { ours: times[1], against: Some(times[0]) };
        let row = Row::new(format!("two workers: {name}"), "one worker", figure);
        rows.push(Row { reach: Some(Bar::Ratio(1.95)), ..row.with_bar(Some(Bar::Ratio(1.8))) });
    }
    Ok(rows)
}

/// CPUs beside that of this thread; `None` if the process may use no other.
fn other_cpus() -> Result<Option<CpuSet>, Box<dyn Error>> {
    let own = sched_getaffinity(None)?;
    let mut others = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|&cpu| !own.is_set(cpu)).for_each(|cpu| others.set(cpu));
    let usable = thread::scope(|scope| scope.spawn(|| sched_setaffinity(None, &others).is_ok()).join());
    Ok(usable.unwrap_or(false).then_some(others))
}

/// The example firewall on interface 1.
fn firewall(workers: usize) -> Result<Pipeline, Box<dyn Error>> {
    let object = Object::parse(include_bytes!("../../../../examples/firewall.o"))?;
    let collection = object.load(&LoadOptions::default().cpus(workers))?;
    let pipeline = Pipeline::new();
    pipeline.set_program(1, Some(&Target::from(collection.program(None)?.program())))?;
    Ok(pipeline)
}

/// Runs a worker for each port: the first one on this thread, which waits spinning, so that its time is the time of all.
fn together(pipeline: &Pipeline, ports: Vec<Box<dyn Port>>, others: &CpuSet) -> Result<u64, Box<dyn Error>> {
    let before = pipeline.counts().packets();
    let running = AtomicUsize::new(ports.len());
    let work = |number: usize, port: Box<dyn Port>| -> Result<(), String> {
        let mut worker = pipeline.worker(number);
        worker.attach(1, 0, port);
        let ran = worker.run(&Default::default(), paceline::Idle::Spin, |_| {});
        running.fetch_sub(1, Ordering::Release);
        ran.map_err(|error| error.to_string())
    };
    thread::scope(|scope| {
        let mut ports = ports.into_iter().enumerate();
        let first = ports.next();
        let threads: Vec<_> = ports
            .map(|(number, port)| {
                let work = &work;
                scope.spawn(move || {
                    sched_setaffinity(None, others).map_err(|error| error.to_string())?;
                    work(number, port)
                })
            })
            .collect();
        let mut result = first.map_or(Ok(()), |(number, port)| work(number, port));
        while running.load(Ordering::Acquire) > 0 && threads.iter().any(|thread| !thread.is_finished()) {
            std::hint::spin_loop();
        }
        for thread in threads {
            result = result.and(thread.join().unwrap_or_else(|_| Err("a worker panicked".to_owned())));
        }
        result
    })?;
    Ok(pipeline.counts().packets() - before)
}
