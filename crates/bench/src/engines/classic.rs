//! Cost of tcpdump's filters (`classic`): the two filters that were measured for the kernel's first converter, as compiled
//! by libpcap, on libpcap's interpreter, and the output of our converter on our engines and on others.

use std::error::Error;

use paceline::filter::{ConvertOptions, Filter, Libpcap, Purpose, Returns, Target, program};
use paceline::{Engine, FrameMut, Host, ProgramSpec};

use super::column::Column;
use super::contender::{Contender, Role};
use super::measure::measure;
use super::packets::Packets;
use super::workload::WORKLOADS;
use crate::measure::Timing;
use crate::report::{Bar, Matrix, Report};
use crate::settings::{Settings, Table};

const OPTIONS: ConvertOptions =
    ConvertOptions::new().returns(Returns::PASS_OR_DROP).rules(paceline::filter::Rules::Libpcap);

/// `DROP` and `PASS`: a filter says how many bytes to keep.
const VERDICTS: [u64; 2] = [1, 2];

pub(crate) fn table(settings: Settings) -> Table {
    let libpcap = Libpcap::open()?;
    let mut report = Report { matrix: Some(Matrix::default()), ..Report::default() };
    for workload in WORKLOADS {
        let Some(expression) = workload.expression else { continue };
        let filter = Filter::new(
            libpcap.compile(expression, Target { optimize: true, ..Target::default() })?,
            Purpose::Socket,
        )?;
        let spec = filter.to_xdp("filter", &OPTIONS)?;
        for mut packets in [Packets::hit()?, Packets::miss()?] {
            let is_hit = packets.name == "hit";
            let mut contenders = ours(&filter)?;
            contenders.push(Contender::new("the loop alone", Role::Loop, |frame| {
                std::hint::black_box(frame);
                0
            }));
            contenders.push(interpreter(&libpcap, &filter));
            contenders.extend(others(&filter, &spec, is_hit)?);
            let title = format!("{}, {}", workload.title, packets.name);
            let column = Column { title, hit: is_hit, bars };
            let times = measure(settings, &column.title, &mut packets.frames(), &mut contenders)?;
            let results: Vec<(&Contender<'_>, Timing)> = contenders.iter().zip(times).collect();
            column.report(&results, &mut report);
        }
    }
    Ok(report)
}

/// The bar of an engine against another, with the packet in the cache or not.
fn bars(engine: Engine, other: Role, is_hit: bool) -> (Option<Bar>, Option<Bar>) {
    let least = match (engine, other) {
        (Engine::Threaded | Engine::Jit, Role::Libpcap) if !is_hit => 1.0,
        (Engine::Threaded, Role::Libpcap) => 2.0,
        (Engine::Jit, Role::Libpcap) => 6.0,
        _ => return (None, None),
    };
    (Some(Bar::Ratio(least)), None)
}

fn ours<'a>(filter: &Filter) -> Result<Vec<Contender<'a>>, Box<dyn Error>> {
    let mut contenders = Vec::new();
    for engine in Engine::ALL.into_iter().rev().filter(|engine| engine.is_available()) {
        let (program, mut host) =
            (program("filter", filter, &OPTIONS, engine)?.into_program(), Host::default());
        let run = move |frame: &mut FrameMut<'_>| program.run_raw(frame, &mut host).unwrap_or(u64::MAX);
        contenders.push(Contender::new(engine.name(), Role::Ours(engine), run));
    }
    Ok(contenders)
}

/// libpcap's interpreter.
fn interpreter<'a>(libpcap: &'a Libpcap, filter: &Filter) -> Contender<'a> {
    let filter = libpcap.prepare(filter);
    let version = libpcap.version();
    let version = version.split(" (").next().unwrap_or_default().replace(" version", "");
    let run = move |frame: &mut FrameMut<'_>| {
        let kept = filter.run(frame.packet(), frame.len() as u32);
        VERDICTS[usize::from(kept != 0)]
    };
    Contender::new(format!("{version} bpf_filter"), Role::Libpcap, run)
}

/// Other engines, on the output of our converter.
fn others<'a>(
    filter: &Filter,
    spec: &ProgramSpec,
    is_hit: bool,
) -> Result<Vec<Contender<'a>>, Box<dyn Error>> {
    #[allow(unused_mut, reason = "features add more")]
    let mut others = Vec::new();
    #[cfg(feature = "rivals")]
    others.extend(super::rbpf::contenders(super::rbpf::for_descriptor(spec))?);
    #[cfg(feature = "dpdk")]
    {
        // A failed load returns 0 in DPDK, whatever the numbers of verdicts.
        let options = OPTIONS.returns(Returns::Number);
        others.extend(super::dpdk::filters(&filter.to_socket_filter("filter", &options)?, VERDICTS)?);
    }
    #[cfg(feature = "kernel")]
    if is_hit {
        others.push(super::kernel::program(spec, "XDP")?);
        others.push(super::kernel::program(&filter.to_socket_filter("filter", &OPTIONS)?, "socket filter")?);
    }
    let _ = (filter, spec, is_hit);
    Ok(others)
}
