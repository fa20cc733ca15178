//! Captures with their filter, and the parts of them that are read.

use paceline::Engine;
use paceline::filter::{Libpcap, Purpose, target_of};
use paceline_archive::{Opened, Part, parts, set_filters};
use pyo3::prelude::*;

use super::failure::raised;
use super::source::source_of;
use super::split::PySplit;
use crate::error::{Class, Failure};
use crate::filter::{PyFilter, compiled, made};

/// A capture for a scan: its name for messages, its source, and the part of it if it is not all of it.
pub(super) type Given<'py> = (String, Bound<'py, PyAny>, Option<Py<PySplit>>);

/// Opens captures.
pub(super) fn open(given: &[Given<'_>]) -> PyResult<Vec<Opened>> {
    let open = |(name, source, _): &Given<'_>| {
        let source = source_of(name, source)?;
        Python::attach(|py| py.detach(|| Opened::open(source, None))).map_err(raised)
    };
    given.iter().map(open).collect()
}

/// The parts that are read: those that are given, or all of each capture, cut for so many workers.
pub(super) fn cut(
    given: &[Given<'_>],
    captures: &[Opened],
    workers: usize,
    has_program: bool,
) -> PyResult<Vec<(usize, Part)>> {
    let mut cut = Vec::new();
    for (index, ((_, _, split), capture)) in given.iter().zip(captures).enumerate() {
        let Some(split) = split else {
            let capture = std::slice::from_ref(capture);
            let found = Python::attach(|py| py.detach(|| parts(capture, workers, has_program)));
            cut.extend(found.map_err(raised)?.into_iter().map(|(_, part)| (index, part)));
            continue;
        };
        cut.push((index, split.get().part()));
    }
    Ok(cut)
}

/// Sets the filter of captures: an expression of tcpdump, compiled for each link, or a filter.
pub(super) fn filter(captures: &mut [Opened], given: &Bound<'_, PyAny>, engine: Engine) -> PyResult<()> {
    if let Ok(filter) = given.cast::<PyFilter>() {
        return Ok(set_filters(captures, |link| filter.get().for_link(link))?);
    }
    let expression: String = given.extract()?;
    if expression.trim().is_empty() {
        return Ok(());
    }
    let libpcap = Libpcap::open().map_err(|error| Failure::of(Class::Filter, &error))?;
    let compile = |link| made(compiled(&libpcap, &expression, target_of(link))?, Purpose::UserSpace, engine);
    Ok(set_filters(captures, compile)?)
}
