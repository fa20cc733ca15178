//! Arguments of `paceline prove`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueHint;
use paceline::prove::Property;

use crate::inputs::SearchArgs;
use crate::object::ObjectArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline prove vlan.o 'arp implies verdict != drop'                 ARP is never dropped
  paceline prove reflector.o 'out[14:] == in[14:]' || true            only the Ethernet header is written; here not so
  paceline prove reflector.o 'verdict == tx and not arp implies out.eth.dst == eth.src and out.eth.src == eth.dst'
  paceline prove vlan.o:vlan_pop 'out.len <= in.len'
  paceline prove vlan.o:vlan_pop 'verdict == pass implies not out.vlan' --test found.test.toml || paceline test found.test.toml

A property is a predicate over the packet that comes in (eth.type, ipv4.ttl, in[12:14], in.len), the one that comes out
(out.ipv4.ttl, out[14:], out.len), verdict, returns (the number) and changes(MAP), with == != < <= > >= + - &, not, and, or,
implies. A comparison with a header or bytes that the packet does not have is false. docs/GENERATE.md has all of it.

All paths of the program are followed. An input with which the property does not hold is run before it is told. The proof is for
the packets and maps within the bounds that are told with it.

Exit status: 0 proved of all programs that are named; 1 it does not hold, is not known of one of them (given up, the time was over,
refused, without a map, of another type), or something could not be done; 2 wrong usage, also of the property.";

#[derive(Debug, clap::Args)]
pub(crate) struct ProveArgs {
    /// Object file, and one of its programs; all of them if none is named.
    #[arg(value_name = "OBJECT[:PROGRAM]", value_hint = ValueHint::FilePath)]
    pub(super) target: OsString,
    /// What must hold for all packets, such as `arp implies verdict != drop`.
    #[arg(value_name = "PROPERTY", value_parser = read)]
    pub(super) property: Property,
    #[command(flatten)]
    pub(super) how: ObjectArgs,
    /// Write the first input with which the property does not hold as a test file, which expects what the program does.
    #[arg(long, value_name = "FILE.test.toml", value_hint = ValueHint::FilePath)]
    pub(super) test: Option<PathBuf>,
    #[command(flatten)]
    pub(super) search: SearchArgs,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

fn read(text: &str) -> Result<Property, paceline::prove::PropertyError> {
    text.parse()
}
