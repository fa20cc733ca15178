//! A run on the calling thread.

use std::ops::ControlFlow;

use paceline_capture::CaptureReader;
use paceline_engine::Host;
use paceline_frame::{Burst, MAX_BURST};
use paceline_ports::queue_of;

use super::error::ReplayError;
use super::options::ReplayOptions;
use super::outputs::{Outputs, finish, is_dropped};
use super::runner::{Runner, keep_bytes};
use super::tally::Tally;

/// Runs the packets of a capture through a program or a chain, and writes them where their verdicts send them.
///
/// The options' [`Origin`](crate::scenario::Origin) says on which interface and queue packets come in. Timers that are due fire before each burst, and at the end. `observe` is
/// called after every burst with what was counted so far, and may end the run, which is no error.
///
/// # Errors
/// [`ReplayError`]. The packets before the one at fault are in the outputs, complete, whatever the error is.
pub fn replay(
    mut runner: impl Runner,
    host: &mut Host,
    reader: &mut CaptureReader<'_>,
    outputs: Outputs<'_>,
    options: ReplayOptions,
    mut observe: impl FnMut(&Tally) -> ControlFlow<()>,
) -> (Tally, Result<(), ReplayError>) {
    replay_bursts(&mut runner, host, reader, outputs, options, &mut observe)
}

/// As [`replay`], which is compiled once.
fn replay_bursts(
    runner: &mut dyn Runner,
    host: &mut Host,
    reader: &mut CaptureReader<'_>,
    mut outputs: Outputs<'_>,
    options: ReplayOptions,
    observe: &mut dyn FnMut(&Tally) -> ControlFlow<()>,
) -> (Tally, Result<(), ReplayError>) {
    let mut tally = Tally::default();
    let alone = options.packet_by_packet || options.cpus > 1;
    let mut burst = Burst::new(if alone { 1 } else { MAX_BURST });
    host.set_arriving(options.origin.context);
    let run = loop {
        let left = options.count.map_or(u64::MAX, |count| count - tally.packets);
        let limits = (left, options);
        match step(runner, host, reader, &mut outputs, &mut burst, &mut tally, limits) {
            Ok(true) if observe(&tally).is_break() => break Ok(()),
            Ok(true) => {}
            Ok(false) => break fire_timers(host, tally.packets),
            Err(error) => break Err(error),
        }
    };
    // The error that stopped the run takes precedence over an error from closing the output.
    let finished = finish(outputs, reader);
    (tally, run.and(finished))
}

/// One burst: read, run, write, count. False at the end.
fn step(
    runner: &mut dyn Runner,
    host: &mut Host,
    reader: &mut CaptureReader<'_>,
    outputs: &mut Outputs<'_>,
    burst: &mut Burst,
    tally: &mut Tally,
    (left, options): (u64, ReplayOptions),
) -> Result<bool, ReplayError> {
    if left == 0 || reader.fill(burst).map_err(ReplayError::Read)? == 0 {
        return Ok(false);
    }
    burst.truncate(usize::try_from(left).unwrap_or(usize::MAX));
    let mut lengths = [0; MAX_BURST];
    for (index, length) in (0..burst.len()).zip(&mut lengths) {
        *length = burst.frame(index).len() as u64;
        let spread = options.cpus > 1;
        let cpu = if spread { queue_of(burst.frame(index).packet(), options.cpus) } else { 0 };
        let (ingress, queue) = options.origin.place(burst.frame(index).meta(), cpu as u16);
        burst.frame_mut(index).set_ingress(ingress, queue);
        if spread {
            host.set_cpu(cpu);
        }
    }
    host.arrive(burst);
    fire_timers(host, tally.packets)?;
    let ran = runner.run_burst(burst, host).map_err(|fault| {
        burst.truncate(fault.index);
        ReplayError::Fault { packet: tally.packets + fault.index as u64 + 1, fault: *fault.fault }
    });
    keep_bytes(runner, burst);
    for (frame, len) in burst.iter().zip(lengths) {
        tally.count_frame(frame, len);
    }
    if let Some(out) = &mut outputs.passed {
        out.write(burst, reader.records(), |frame| !is_dropped(frame.verdict()))
            .map_err(ReplayError::WritePassed)?;
    }
    if let Some(out) = &mut outputs.dropped {
        out.write(burst, reader.records(), |frame| is_dropped(frame.verdict()))
            .map_err(ReplayError::WriteDropped)?;
    }
    ran.map(|()| true)
}

/// Fires the timers that are due, after so many packets.
fn fire_timers(host: &mut Host, packets: u64) -> Result<(), ReplayError> {
    match host.fire_timers() {
        Ok(_) => Ok(()),
        Err(fault) => Err(ReplayError::Timer { packet: packets, fault: *fault }),
    }
}
