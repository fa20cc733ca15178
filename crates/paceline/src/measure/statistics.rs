//! Statistics of rounds.

/// Minimum, median and 99th percentile of rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// The least, in nanoseconds as the others.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl Summary {
    /// The summary of at least one round; zeros of none.
    #[must_use]
    pub fn of(times: &[f64]) -> Self {
        let sorted = sorted(times);
        let at = |share: f64| {
            let index = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
            sorted.get(index).copied().unwrap_or(0.0)
        };
        Self { min: at(0.0), median: at(0.5), p99: at(0.99) }
    }
}

fn sorted(numbers: &[f64]) -> Vec<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The ratio of two programs' times, round by round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Median of ours to theirs: above 1 if ours takes longer.
    pub median: f64,
    /// Interval that has the true median with a probability of at least 95%.
    pub low: f64,
    /// Its end.
    pub high: f64,
}

/// Result of a comparison of two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Ours is, by more than 2%.
    Faster,
    /// Ours is, by more than 2%.
    Slower,
    /// No difference beyond noise.
    Equal,
}

/// Differences up to this are not told: code that is equal, at another address, differs by as much.
const INDIFFERENT: f64 = 0.02;

impl Ratio {
    /// The ratios of times round by round.
    #[must_use]
    pub fn of(ours: &[f64], theirs: &[f64]) -> Self {
        let ratios: Vec<_> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs.max(1e-9)).collect();
        let sorted = sorted(&ratios);
        let (low, high) = interval(sorted.len());
        let at = |index: usize| sorted.get(index).copied().unwrap_or(1.0);
        Self { median: Summary::of(&ratios).median, low: at(low), high: at(high) }
    }

    /// `1.12 times as fast (1.10 to 1.14)`
    #[must_use]
    pub fn in_words(&self) -> String {
        let Self { median, low, high } = *self;
        match self.comparison() {
            Comparison::Faster => {
                format!("{:.2} times as fast ({:.2} to {:.2})", 1.0 / median, 1.0 / high, 1.0 / low)
            }
            Comparison::Slower => format!("{median:.2} times as long ({low:.2} to {high:.2})"),
            Comparison::Equal => format!("no difference beyond noise (ratio {low:.2} to {high:.2})"),
        }
    }

    /// The result of the comparison.
    #[must_use]
    pub fn comparison(&self) -> Comparison {
        if self.high < 1.0 - INDIFFERENT {
            Comparison::Faster
        } else if self.low > 1.0 + INDIFFERENT {
            Comparison::Slower
        } else {
            Comparison::Equal
        }
    }
}

/// Indices of the order statistics that enclose the median of `rounds` values with a probability of at least 95%: the number of
/// values below it is binomial.
fn interval(rounds: usize) -> (usize, usize) {
    let mut below = 0.5_f64.powi(i32::try_from(rounds).unwrap_or(i32::MAX));
    let (mut sum, mut index) = (0.0, 0);
    while sum + below <= 0.025 && index + 1 < rounds.div_ceil(2) {
        sum += below;
        below *= (rounds - index) as f64 / (index + 1) as f64;
        index += 1;
    }
    let low = index.saturating_sub(1);
    (low, rounds.saturating_sub(1 + low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_sign_test() {
        // Tables of the binomial distribution: of 30 values the 10th to the 21st.
        assert_eq!(interval(30), (9, 20));
        assert_eq!(interval(10), (1, 8));
        assert_eq!(interval(5), (0, 4));
    }

    /// Rounds with a spread of 5%, and some that take half as long again.
    fn rounds(rng: &mut fastrand::Rng, scale: f64) -> (Vec<f64>, Vec<f64>) {
        let mut time = |scale: f64| {
            let noise = 0.95 + 0.1 * rng.f64();
            let disturbed = if rng.u8(..10) == 0 { 1.5 } else { 1.0 };
            scale * noise * disturbed
        };
        (0..30).map(|_| (time(scale), time(1.0))).unzip()
    }

    #[test]
    fn ten_percent_are_told_and_nothing_is_not() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut count = |scale, expected| {
            (0..100)
                .filter(|_| {
                    let (ours, theirs) = rounds(&mut rng, scale);
                    Ratio::of(&ours, &theirs).comparison() == expected
                })
                .count()
        };
        assert!(count(1.1, Comparison::Slower) >= 95);
        assert!(count(0.9, Comparison::Faster) >= 95);
        assert!(count(1.0, Comparison::Equal) >= 95);
    }
}
