//! Rounds.

use std::time::{Duration, Instant};

use crate::measure::pass::{Contender, Manner, MeasureError, Packet, Room, WINDOW};
use crate::measure::statistics::Summary;

/// Captures with fewer packets are repeated until they fill windows.
const SHORT: usize = 1024;

/// A round lasts at most so many times its own time: filling packets in may take longer than running them.
const FILLING: u32 = 8;

/// Nanoseconds for a packet, in each round of each contender.
pub type Times = Vec<Vec<f64>>;

/// A capture as often as whole windows need it, so that one packet alone is a burst too.
fn repeated<'a>(packets: &[Packet<'a>]) -> Vec<Packet<'a>> {
    let mut times = 1;
    if packets.len() < SHORT {
        while !(packets.len() * times).is_multiple_of(WINDOW) {
            times += 1;
        }
    }
    packets.iter().copied().cycle().take(packets.len() * times).collect()
}

/// Measures contenders in turn, in another order each round, after a round that warms up. What the harness takes is measured beside, in
/// the same rounds, and its median is taken off. A round takes as many passes over the packets as make their times `round`.
///
/// # Errors
/// [`MeasureError`]
pub fn rounds(
    contenders: &mut [Contender<'_>],
    packets: &[Packet<'_>],
    manner: Manner,
    (rounds, round): (u32, Duration),
    room: &mut Room,
) -> Result<Times, MeasureError> {
    let mut times = vec![Vec::new(); contenders.len()];
    let packets = repeated(packets);
    let Some(first) = contenders.first_mut().filter(|_| !packets.is_empty()) else { return Ok(times) };
    // The last one is the harness.
    let mut best = vec![Vec::new(); times.len() + 1];
    let mut order: Vec<usize> = (0..best.len()).collect();
    // The first pass meets cold code and empty maps.
    room.pass(first, &packets, (manner, false), &mut Vec::new())?;
    let start = Instant::now();
    let once = room.pass(first, &packets, (manner, false), &mut Vec::new())?;
    let passes = passes(round, once, start.elapsed());
    let count = packets.len() as f64 * f64::from(passes);
    let mut idle = Vec::new();
    let mut rng = fastrand::Rng::with_seed(1);
    for number in 0..=rounds {
        rng.shuffle(&mut order);
        for &index in &order {
            let is_idle = index == contenders.len();
            let contender = contenders.get_mut(if is_idle { 0 } else { index });
            let (Some(contender), Some(best)) = (contender, best.get_mut(index)) else { continue };
            let mut time = Duration::ZERO;
            for _ in 0..passes {
                time += room.pass(contender, &packets, (manner, is_idle), best)?;
            }
            let of_packet = time.as_nanos() as f64 / count;
            let times = times.get_mut(index).unwrap_or(&mut idle);
            times.extend((number > 0).then_some(of_packet));
        }
    }
    let harness = Summary::of(&idle).median;
    times.iter_mut().flatten().for_each(|time| *time = (*time - harness).max(0.0));
    Ok(times)
}

/// Passes of a round, by the times of one: that of the packets, and that with what is done before the clock starts.
fn passes(round: Duration, of_packets: Duration, in_all: Duration) -> u32 {
    let times = |all: Duration, one: Duration| all.as_nanos() / one.as_nanos().max(1);
    times(round, of_packets).min(times(round * FILLING, in_all)).clamp(1, 1 << 20) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_end_where_filling_takes_longest() {
        let ms = Duration::from_millis;
        assert_eq!(passes(ms(5), ms(1), ms(2)), 5);
        assert_eq!(passes(ms(5), ms(1), ms(20)), 2);
        assert_eq!(passes(ms(5), ms(9), ms(10)), 1);
        assert_eq!(passes(ms(5), Duration::ZERO, ms(1)), 40);
    }

    #[test]
    fn short_captures_fill_windows() {
        let packet = Packet { bytes: &[0; 60], meta: Default::default() };
        for (packets, filled) in [(1, 64), (64, 64), (3, 192), (128, 128), (1500, 1500)] {
            assert_eq!(repeated(&vec![packet; packets]).len(), filled);
        }
    }
}
