//! Captures that are opened, with the filter for their link, and the header of a capture of their packets.

use std::path::PathBuf;

use paceline::Engine;
use paceline::capture::{Header, Link, LinkType, PcapHeader, Resolution};
use paceline::filter::{ConvertOptions, Filter, Libpcap, PacketFilter, Purpose, Rules, target_of};
use paceline_archive::{Opened, Source, set_filters};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::error::ScanError;
use crate::common::failure::Failure;
use crate::expression::{self, Passage};

/// Opens captures; the expression is compiled for each link among them.
pub(super) fn open(paths: &[PathBuf], expression: &str, engine: Engine) -> Result<Vec<Opened>, Failure> {
    allow_files();
    let open = |path| Opened::open(Source::open(path)?, None);
    let mut captures: Vec<_> = paths.iter().map(open).collect::<Result<_, _>>().map_err(ScanError::from)?;
    if !expression.trim().is_empty() {
        let libpcap = Libpcap::open().map_err(ScanError::Libpcap)?;
        let passage = Passage::of_text(expression.to_owned());
        set_filters(&mut captures, |link| filter(&libpcap, &passage, link, engine))?;
    }
    Ok(captures)
}

/// Allows as many open files as the process may have: each capture is one.
fn allow_files() {
    let limit = getrlimit(Resource::Nofile);
    // Without it as many captures can be opened as before.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn filter(libpcap: &Libpcap, passage: &Passage, link: Link, engine: Engine) -> Result<PacketFilter, Failure> {
    let options = ConvertOptions::default().rules(Rules::Libpcap);
    let insns = expression::compile_checked(libpcap, passage, target_of(link), &options)?;
    let filter = Filter::new(insns, Purpose::UserSpace).map_err(ScanError::Check)?;
    let filter = PacketFilter::new("filter", filter, &options, engine);
    Ok(filter.map_err(|error| ScanError::Filter(Box::new(error)))?)
}

/// The header of a pcap of packets of these captures.
pub(super) fn header(captures: &[Opened], has_program: bool) -> Result<Header, ScanError> {
    let [first, others @ ..] = captures else { return Ok(Header::Pcap(PcapHeader::new(Resolution::Nano))) };
    if let Some(other) = others.iter().find(|other| other.link.link_type != first.link.link_type) {
        let name = |capture: &Opened| capture.source.name.clone();
        let link_type = |capture: &Opened| -> LinkType { capture.link.link_type };
        return Err(ScanError::LinkTypes {
            first: name(first),
            one: link_type(first),
            second: name(other),
            other: link_type(other),
        });
    }
    match &first.header {
        // A program may make packets longer than the snapshot length.
        Header::Pcap(header)
            if !has_program
                && header.is_plain()
                && others.iter().all(|other| other.header == first.header) =>
        {
            Ok(first.header.clone())
        }
        _ => {
            // In pcapng each interface has a snapshot length of its own.
            let snaplen = first.link.link_type.max_snaplen();
            let is_micro = |capture: &Opened| matches!(&capture.header, Header::Pcap(header) if header.resolution() == Resolution::Micro);
            let resolution = if captures.iter().all(is_micro) { Resolution::Micro } else { Resolution::Nano };
            Ok(Header::Pcap(PcapHeader::new(resolution).of_link(Link { snaplen, ..first.link })))
        }
    }
}
