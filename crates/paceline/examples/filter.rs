//! Filters packets with an expression of tcpdump.

use std::error::Error;
use std::fs::File;

use paceline::capture::CaptureReader;
use paceline::filter::{ConvertOptions, Filter, Libpcap, PacketFilter, Purpose, target_of};
use paceline::{Burst, Engine, Host};

const TRAFFIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traffic.pcap");

#[allow(clippy::print_stdout, reason = "the count is what it is for")]
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let mut capture = CaptureReader::new(File::open(TRAFFIC)?)?;
    let libpcap = match Libpcap::open() {
        Ok(libpcap) => libpcap,
        Err(missing) => {
            println!("{missing}");
            return Ok(());
        }
    };
    let insns = libpcap.compile("icmp or udp port 53", target_of(capture.link()))?;
    let filter = Filter::new(insns, Purpose::Socket)?; // checked as the kernel does
    let filter = PacketFilter::new("dns", filter, &ConvertOptions::default(), Engine::best())?;

    let (mut burst, mut host) = (Burst::default(), Host::default());
    let (mut packets, mut matched) = (0, 0);
    while capture.fill(&mut burst)? > 0 {
        packets += burst.len();
        matched += filter.matches(&mut burst, &mut host)?.count_ones(); // a bit for each packet
    }
    println!("{matched} of {packets} packets");
    assert!(matched > 0);
    Ok(())
}
