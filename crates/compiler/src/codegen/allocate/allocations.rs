//! The holders of a register by point. The scan looks at points in ascending order, so segments before the current one are skipped.

use std::ops::Range;

use super::point::Point;

/// The holder of a register in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// The instruction itself: a fixed operand, or a clobber.
    Fixed,
    /// A virtual register.
    Whole(u32),
    /// An operand.
    Operand,
}

/// Segments for which there is room at first.
const ROOM: usize = 32;

/// Points in a row, and who has the register there.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: Point,
    end: Point,
    holder: Holder,
}

/// Segments in their order, which do not overlap.
#[derive(Clone, Debug, Default)]
struct Segments {
    all: Vec<Segment>,
    /// Those before this one lie before the point where the scan is.
    first: usize,
}

impl Segments {
    fn clear(&mut self) {
        self.all.clear();
        self.first = 0;
    }

    #[inline]
    fn advance(&mut self, to: Point) {
        while self.all.get(self.first).is_some_and(|segment| segment.end <= to) {
            self.first += 1;
        }
    }

    /// The segments that are not skipped.
    fn rest(&self) -> &[Segment] {
        &self.all[self.first..]
    }

    /// Position of the first segment that ends behind a point.
    fn behind(&self, point: Point) -> usize {
        let rest = self.rest();
        // What is asked for is mostly near the beginning.
        let near = rest.iter().take(8).position(|segment| segment.end > point);
        // default: the search goes on behind those that are near.
        self.first + near.unwrap_or_else(|| rest.partition_point(|segment| segment.end <= point))
    }

    /// The first point of some segments that is in one of these, of which the first is near.
    #[inline]
    fn conflict_near(&self, segments: &[Range<Point>]) -> Option<Point> {
        let (held, wanted, last) = (self.all.get(self.first)?, segments.first()?, segments.last()?);
        if held.start >= last.end {
            None
        } else if held.start < wanted.end && held.end > wanted.start {
            Some(held.start.max(wanted.start))
        } else {
            self.conflict(segments)
        }
    }

    /// The first point of some segments that is in one of these.
    fn conflict(&self, segments: &[Range<Point>]) -> Option<Point> {
        let mut at = self.behind(segments.first()?.start);
        for wanted in segments {
            while self.all.get(at).is_some_and(|segment| segment.end <= wanted.start) {
                at += 1;
            }
            let segment = self.all.get(at)?;
            if segment.start < wanted.end {
                return Some(segment.start.max(wanted.start));
            }
        }
        None
    }

    fn within(&self, points: Range<Point>) -> impl Iterator<Item = Holder> + '_ {
        let rest = &self.all[self.behind(points.start)..];
        rest.iter().take_while(move |segment| segment.start < points.end).map(|segment| segment.holder)
    }
}

/// Segments of a register.
#[derive(Clone, Debug, Default)]
pub(super) struct Allocations {
    /// Those of instructions, which are known from the beginning.
    fixed: Segments,
    /// Those that the scan gives.
    given: Segments,
    /// No fixed segment that is not skipped begins before this point, ...
    fixed_from: Point,
    /// ... and no given one ends behind this one: most registers are free here, or from here to far away.
    given_until: Point,
}

impl Allocations {
    /// Frees the register at all points.
    pub(super) fn clear(&mut self) {
        self.fixed.clear();
        self.given.clear();
        (self.fixed_from, self.given_until) = (Point::MAX, 0);
    }

    /// Takes the register for an instruction; in the order of the code.
    pub(super) fn fix(&mut self, points: Range<Point>) {
        self.fixed_from = points.start.min(self.fixed_from);
        if let Some(last) = self.fixed.all.last_mut()
            && last.start <= points.start
            && points.start <= last.end
        {
            last.end = last.end.max(points.end);
            return;
        }
        if self.fixed.all.is_empty() {
            self.fixed.all.reserve(ROOM);
        }
        let at = match self.fixed.all.last().is_none_or(|last| last.start < points.start) {
            true => self.fixed.all.len(),
            false => self.fixed.all.partition_point(|segment| segment.start < points.start),
        };
        self.fixed.all.insert(at, Segment { start: points.start, end: points.end, holder: Holder::Fixed });
    }

    /// The first point of some segments, which begin where the scan is or behind that, at which somebody has the register.
    #[inline]
    pub(super) fn conflict(&self, segments: &[Range<Point>]) -> Option<Point> {
        let (first, last) = (segments.first()?, segments.last()?);
        let fixed = if last.end <= self.fixed_from { None } else { self.fixed.conflict(segments) };
        let given = if self.given_until <= first.start { None } else { self.given.conflict(segments) };
        match (fixed, given) {
            (Some(fixed), Some(given)) => Some(fixed.min(given)),
            (fixed, given) => fixed.or(given),
        }
    }

    /// The same for segments that begin where the scan is, which looks at no point before that any more.
    #[inline]
    pub(super) fn conflict_from(&mut self, segments: &[Range<Point>]) -> Option<Point> {
        let (first, last) = (segments.first()?, segments.last()?);
        let fixed =
            if last.end <= self.fixed_from { None } else { self.fixed_conflict(first.start, segments) };
        let given =
            if self.given_until <= first.start { None } else { self.given_conflict(first.start, segments) };
        match (fixed, given) {
            (Some(fixed), Some(given)) => Some(fixed.min(given)),
            (fixed, given) => fixed.or(given),
        }
    }

    fn fixed_conflict(&mut self, start: Point, segments: &[Range<Point>]) -> Option<Point> {
        self.fixed.advance(start);
        let next = self.fixed.all.get(self.fixed.first);
        self.fixed_from = next.map_or(Point::MAX, |next| next.start);
        self.fixed.conflict_near(segments)
    }

    fn given_conflict(&mut self, start: Point, segments: &[Range<Point>]) -> Option<Point> {
        self.given.advance(start);
        self.given.conflict_near(segments)
    }

    /// Gives the register, where nobody has it.
    pub(super) fn give(&mut self, points: Range<Point>, holder: Holder) {
        let segment = Segment { start: points.start, end: points.end, holder };
        if self.given_until <= points.start {
            if self.given.all.is_empty() {
                self.given.all.reserve(ROOM);
            }
            self.given.all.push(segment);
        } else {
            self.given.all.insert(self.given.behind(points.start), segment);
        }
        self.given_until = points.end.max(self.given_until);
    }

    /// Takes the register from a virtual register, from a point on, in its segments.
    pub(super) fn take(&mut self, vreg: u32, from: Point, segments: &[Range<Point>]) {
        let last = segments.last().map_or(0, |segment| segment.end);
        let mut at = self.given.behind(from);
        while let Some(segment) = self.given.all.get_mut(at).filter(|segment| segment.start < last) {
            if segment.holder != Holder::Whole(vreg) {
                at += 1;
            } else if segment.start >= from {
                self.given.all.remove(at);
            } else {
                segment.end = from;
                at += 1;
            }
        }
    }

    /// Who has the register within some points.
    pub(super) fn within(&self, points: Range<Point>) -> impl Iterator<Item = Holder> + '_ {
        self.fixed.within(points.clone()).chain(self.given.within(points))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_are_given_and_taken() {
        let mut held = Allocations::default();
        held.fix(4..6);
        held.fix(5..7);
        held.fix(20..21);
        held.give(10..14, Holder::Whole(1));
        held.give(16..20, Holder::Whole(1));
        held.give(0..4, Holder::Whole(2));
        let conflict =
            |held: &Allocations, points: Range<Point>| held.conflict(std::slice::from_ref(&points));
        assert_eq!(held.conflict(&[7..10, 14..16, 21..90]), None);
        assert_eq!(held.conflict(&[7..10, 14..17]), Some(16));
        assert_eq!(conflict(&held, 6..8), Some(6));
        assert_eq!(conflict(&held, 2..3), Some(2));
        assert_eq!(held.conflict_from(std::slice::from_ref(&(9..10))), None);
        assert_eq!(
            held.within(9..21).collect::<Vec<_>>(),
            [Holder::Fixed, Holder::Whole(1), Holder::Whole(1)]
        );
        held.take(1, 12, &[10..14, 16..20]);
        assert_eq!(conflict(&held, 11..12), Some(11));
        assert_eq!(conflict(&held, 12..20), None);
    }
}
