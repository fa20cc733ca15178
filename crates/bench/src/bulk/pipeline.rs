//! Complete pipelines over memory ports: bursts against single packets.

use std::error::Error;
use std::sync::Arc;

use paceline::port::{FramePool, Generator, MemoryPort};
use paceline::{
    Engine, FrameMeta, MAX_BURST, Map, MapKind, MapSpec, Pipeline, Program, Target, Worker, XdpAttach,
};
use paceline_testkit::text;

use crate::measure::{Work, interleaved};
use crate::report::{Bar, Figure, Row};
use crate::settings::{Rows, Settings};

/// Packets of a round.
const PACKETS: usize = 1 << 16;

/// Like the kernel's sample xdp2: exchanges the MAC addresses and sends the packet back.
const TRANSMIT: &str = "
    r2 = *(u32 *)(r1 + 0)
    r3 = *(u32 *)(r1 + 4)
    r0 = 1
    r4 = r2
    r4 += 14
    if r4 > r3 goto end
    r3 = *(u32 *)(r2 + 0)
    r4 = *(u16 *)(r2 + 4)
    r5 = *(u32 *)(r2 + 6)
    *(u32 *)(r2 + 0) = r5
    r5 = *(u16 *)(r2 + 10)
    *(u16 *)(r2 + 4) = r5
    *(u32 *)(r2 + 6) = r3
    *(u16 *)(r2 + 10) = r4
    r0 = 3
end:
    exit
";

/// Redirects to the other interface by a device map.
const REDIRECT: &str = "
    r2 = *(u32 *)(r1 + 12)
    r1 = map[devices] ll
    r3 = 0
    call bpf_redirect_map
    exit
";

/// All verdicts, by the packet's first byte.
const MIXED: &str = "
    r2 = *(u32 *)(r1 + 0)
    r3 = *(u32 *)(r1 + 4)
    r0 = 1
    r4 = r2
    r4 += 14
    if r4 > r3 goto end
    r0 = *(u8 *)(r2 + 0)
    if r0 != 4 goto end
    r2 = *(u32 *)(r1 + 12)
    r1 = map[devices] ll
    r3 = 0
    call bpf_redirect_map
end:
    exit
";

/// Interface 1 redirects to 2, and 2 to 1.
fn devices() -> Result<Arc<Map>, Box<dyn Error>> {
    let map = text::map(&MapSpec::new("devices", MapKind::DevMap, 4, 4, 4), 1)?;
    for (key, device) in [(1_u32, 2_u32), (2, 1)] {
        map.insert(&key.to_ne_bytes(), &device.to_ne_bytes()).map_err(|error| error.to_string())?;
    }
    Ok(map)
}

fn load(program: &str, map: &Arc<Map>) -> Result<Target, Box<dyn Error>> {
    let maps = vec![Arc::clone(map)];
    let verified = text::verified(program, XdpAttach::Interface, &maps)?;
    Ok(Target::from(&Program::load(&verified, maps, Engine::best())?))
}

/// Mode of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Bursts, with one send per group.
    Groups,
    /// Each packet through all steps, then the next one.
    OneByOne,
}

impl Way {
    const ALL: [Self; 2] = [Self::Groups, Self::OneByOne];

    fn worker(self, pipeline: &Pipeline) -> Worker {
        let mut worker = pipeline.worker(0);
        match self {
            Self::Groups => {}
            Self::OneByOne => worker.set_burst(1),
        }
        worker
    }
}

/// Circulating packets: a worker receives the packets that it sent.
fn loopback(worker: &mut Worker, ifindex: u32, pool: &Arc<FramePool>) {
    let port = MemoryPort::loopback_in(pool, 4 * MAX_BURST);
    for _ in 0..2 * MAX_BURST {
        assert!(port.push(&[7; 64], FrameMeta::default()), "the ring has room");
    }
    worker.attach(ifindex, 0, port);
}

type Attach = fn(&mut Worker);

/// Frames for two ports and the burst.
fn pool() -> Arc<FramePool> {
    FramePool::on_heap(12 * MAX_BURST as u32)
}

fn transmitting(worker: &mut Worker) {
    loopback(worker, 1, &pool());
}

fn redirecting(worker: &mut Worker) {
    let pool = pool();
    loopback(worker, 1, &pool);
    loopback(worker, 2, &pool);
}

/// An endless sequence of packets with all verdicts in random order; sent packets are discarded.
fn mixing(worker: &mut Worker) {
    let mut rng = fastrand::Rng::with_seed(5);
    let packets = (0..1000).map(|_| vec![rng.u8(1..=4); 64]).collect();
    worker.attach(1, 0, Generator::new(packets, None));
    worker.attach(2, 0, Generator::new(Vec::new(), None));
    worker.deliver_to(Generator::new(Vec::new(), None));
}

pub(super) fn rows(settings: Settings) -> Rows {
    let scenarios: [(&str, &str, Attach, bool); 3] = [
        ("transmit in a pipeline", TRANSMIT, transmitting, true),
        ("redirect in a pipeline", REDIRECT, redirecting, true),
        ("drop, pass, transmit and redirect in a pipeline", MIXED, mixing, false),
    ];
    let mut rows = Vec::new();
    for (name, text, attach, asked) in scenarios {
        let map = devices()?;
        let target = load(text, &map)?;
        let packets = if settings.smoke { MAX_BURST } else { PACKETS };
        let mut works: Vec<Work<'_>> = Vec::new();
        for way in Way::ALL {
            let pipeline = Pipeline::new();
            pipeline.set_program(1, Some(&target))?;
            pipeline.set_program(2, Some(&target))?;
            let mut worker = way.worker(&pipeline);
            attach(&mut worker);
            works.push(Box::new(move || {
                let mut done = 0;
                while done < packets {
                    done += worker.poll()?;
                }
                let counts = pipeline.counts();
                if counts.refused + counts.no_target > 0 {
                    return Err(format!("{way:?}: packets were lost: {counts:?}").into());
                }
                Ok(done as u64)
            }));
        }
        let times = interleaved(settings.smoke, &mut works)?;
        let row = |against: &str, other: usize| {
            Row::new(name, against, Figure::Time { ours: times[0], against: Some(times[other]) })
        };
        let (bar, reach) = (asked.then_some(Bar::Ratio(1.6)), asked.then_some(Bar::Ratio(2.0)));
        rows.push(Row { reach, ..row("the same, one by one", 1).with_bar(bar) });
    }
    Ok(rows)
}
