//! The names of ports.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use paceline::device::{AttachMode, MemifOptions, MemifRole, XdpOptions};
use paceline::port::{Direction, Faults};

use crate::common::files::Taken;

/// Names of the kinds, with the form of their arguments.
pub(crate) const FORMS: &str = "xdp:IFACE[@QUEUES][,OPTION...], packet:IFACE, tap:NAME, memif:SOCKET[,OPTION...], \
    dpdk:DEVARGS, pcap:IN[,OUT], gen:[KEY=VALUE,...], loop:, null:, or one of these behind rate:N+ or fault:KEY=VALUE,...+";

/// A port, as the command line names it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PortSpec {
    /// As it was given.
    pub(crate) text: String,
    /// The option that it was given by.
    pub(crate) option: &'static str,
    pub(crate) kind: Kind,
    /// Wrappers of the port, the outermost first.
    pub(crate) wrappers: Vec<Wrapper>,
}

/// Wrapper of a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wrapper {
    /// A maximum number of received packets per second.
    Rate(u64),
    /// Faults of received packets, sent ones, or both.
    Faults(Faults),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Queues of an interface by AF_XDP; all of them without a range.
    Xdp { interface: String, queues: Option<RangeInclusive<u32>>, options: XdpOptions },
    /// A packet socket.
    Packet { interface: String },
    /// A TAP interface.
    Tap { name: String },
    /// A shared-memory interface, by the path of its socket or `@` with an abstract name.
    Memif { socket: String, options: MemifOptions },
    /// A device of DPDK's, by its name and arguments.
    Dpdk { devargs: String },
    /// A capture that is read, and one that is written.
    Pcap { input: Option<PathBuf>, output: Option<PathBuf> },
    /// Generated packets.
    Generate(Traffic),
    /// Sent packets are received again.
    Loop,
    /// No packet arrives, and those that are sent are counted.
    Null,
}

/// Packets that a generator makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Lengths in bytes, from the Ethernet header on, without a frame check sequence.
    pub(crate) sizes: RangeInclusive<usize>,
    /// Number of different flows.
    pub(crate) flows: u32,
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) ipv6: bool,
    /// Packets per second.
    pub(crate) rate: Option<u64>,
    /// Number of packets.
    pub(crate) count: Option<u64>,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            sizes: 64..=64,
            flows: 1,
            protocols: vec![Protocol::Udp],
            ipv6: false,
            rate: None,
            count: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Udp,
    Tcp,
}

impl PortSpec {
    /// The same for another option than `--port`.
    pub(crate) fn of_option(self, option: &'static str) -> Self {
        Self { option, ..self }
    }

    /// The option and its value, for messages.
    pub(crate) fn told(&self) -> String {
        format!("{} {}", self.option, self.text)
    }

    /// The file that the port reads, if there is one.
    pub(crate) fn input(&self) -> Option<Taken> {
        match &self.kind {
            Kind::Pcap { input: Some(input), .. } => {
                Taken::of_path(input, &format!("the capture {}", input.display()))
            }
            _ => None,
        }
    }

    /// Name of the interface that the port needs.
    pub(crate) fn interface(&self) -> Option<&str> {
        match &self.kind {
            Kind::Xdp { interface, .. } | Kind::Packet { interface } => Some(interface),
            _ => None,
        }
    }

    /// Whether the port begins again where it is opened again: a capture would be read or written from its start.
    pub(crate) fn is_repeated(&self) -> bool {
        matches!(self.kind, Kind::Pcap { .. } | Kind::Generate(Traffic { count: Some(_), .. }))
    }

    /// Whether packets can come from the port.
    pub(crate) fn receives(&self) -> bool {
        !matches!(self.kind, Kind::Null | Kind::Pcap { input: None, .. })
    }

    /// Whether DPDK's drivers and threads run in the process.
    pub(crate) fn is_dpdk(&self) -> bool {
        matches!(self.kind, Kind::Dpdk { .. })
    }

    /// Whether the port connects to other processes.
    pub(crate) fn is_memif(&self) -> bool {
        matches!(self.kind, Kind::Memif { .. })
    }
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for PortSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (wrappers, inner) = wrappers(text)?;
        let (kind, argument) = inner.split_once(':').ok_or_else(|| format!("it must be one of {FORMS}"))?;
        let kind = match kind {
            "xdp" => xdp(argument)?,
            "packet" => Kind::Packet { interface: named("the interface", argument)? },
            "tap" => Kind::Tap { name: named("the interface", argument)? },
            "memif" => memif(argument)?,
            "dpdk" => Kind::Dpdk { devargs: named("the device", argument)? },
            "pcap" => pcap(argument)?,
            "gen" => Kind::Generate(traffic(argument)?),
            "loop" => without_argument(kind, argument, Kind::Loop)?,
            "null" => without_argument(kind, argument, Kind::Null)?,
            _ => return Err(format!("`{kind}` is no kind of port; it must be one of {FORMS}")),
        };
        Ok(Self { text: text.to_owned(), option: "--port", kind, wrappers })
    }
}

/// The wrappers before a port, and the port: `fault:drop=1%+rate:10K+xdp:eth0`.
fn wrappers(mut text: &str) -> Result<(Vec<Wrapper>, &str), String> {
    let mut wrappers = Vec::new();
    while let Some((kind @ ("rate" | "fault"), rest)) = text.split_once(':') {
        let (settings, inner) =
            rest.split_once('+').ok_or_else(|| format!("`{kind}:` is before a port: {kind}:...+xdp:eth0"))?;
        wrappers.push(match kind {
            "rate" => match amount(settings, kind)? {
                0 => return Err("the rate is at least 1 packet per second".to_owned()),
                rate => Wrapper::Rate(rate),
            },
            _ => Wrapper::Faults(faults(settings)?),
        });
        text = inner;
    }
    Ok((wrappers, text))
}

fn faults(settings: &str) -> Result<Faults, String> {
    const KEYS: &str = "direction, drop, duplicate, reorder, corrupt, truncate or seed";
    let mut faults = Faults::default();
    for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
        let (key, value) =
            setting.split_once('=').ok_or_else(|| format!("`{setting}` is no KEY=VALUE; keys are {KEYS}"))?;
        match key {
            "direction" => faults.direction = direction(value)?,
            "drop" => faults.drop = probability(value, key)?,
            "duplicate" => faults.duplicate = probability(value, key)?,
            "reorder" => faults.reorder = probability(value, key)?,
            "corrupt" => faults.corrupt = probability(value, key)?,
            "truncate" => faults.truncate = probability(value, key)?,
            "seed" => faults.seed = u64::from(number(value, key)?),
            _ => return Err(format!("`{key}` is no key of `fault`; keys are {KEYS}")),
        }
    }
    Ok(faults)
}

fn direction(text: &str) -> Result<Direction, String> {
    match text {
        "in" => Ok(Direction::In),
        "out" => Ok(Direction::Out),
        "both" => Ok(Direction::Both),
        _ => Err(format!("direction: `{text}` must be in, out or both")),
    }
}

/// `0.01` or `1%`.
fn probability(text: &str, what: &str) -> Result<f64, String> {
    let (digits, unit) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 0.01));
    let number = digits.parse::<f64>().ok().map(|number| number * unit);
    let number = number.filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| format!("{what}: `{text}` is no probability, from 0 to 1 or from 0% to 100%"))
}

fn named(what: &str, argument: &str) -> Result<String, String> {
    if argument.is_empty() { Err(format!("the name of {what} is missing")) } else { Ok(argument.to_owned()) }
}

fn without_argument(kind: &str, argument: &str, value: Kind) -> Result<Kind, String> {
    if argument.is_empty() { Ok(value) } else { Err(format!("`{kind}:` takes no argument")) }
}

fn xdp(argument: &str) -> Result<Kind, String> {
    let mut parts = argument.split(',');
    let first = parts.next().unwrap_or_default();
    let (interface, queues) = match first.split_once('@') {
        Some((interface, queues)) => (interface, Some(range(queues, "queues")?)),
        None => (first, None),
    };
    let mut options = XdpOptions::default();
    for option in parts {
        match option {
            "native" => options.mode = AttachMode::Native,
            "generic" => options.mode = AttachMode::Generic,
            "zero-copy" => options.zero_copy = Some(true),
            "copy" => options.zero_copy = Some(false),
            "multi-buffer" => options.multi_buffer = true,
            "metadata" => options.metadata = true,
            _ => match option.strip_prefix("busy-poll=") {
                Some(time) => options.busy_poll_us = number(time, "busy-poll")?,
                None => {
                    return Err(format!(
                        "`{option}` is no option of `xdp`; it must be native, generic, zero-copy, copy, multi-buffer, \
                         metadata or busy-poll=MICROSECONDS"
                    ));
                }
            },
        }
    }
    if options.metadata && options.mode == AttachMode::Generic {
        return Err("metadata is there in native mode only".to_owned());
    }
    Ok(Kind::Xdp { interface: named("the interface", interface)?, queues, options })
}

fn memif(argument: &str) -> Result<Kind, String> {
    const FORMS: &str = "server, client, id=N, secret=TEXT, queues=N, ring=ENTRIES or buffer=BYTES";
    let mut parts = argument.split(',');
    let socket = named("the socket", parts.next().unwrap_or_default())?;
    let mut options = MemifOptions::default();
    for option in parts {
        match option.split_once('=') {
            None if option == "server" => options.role = MemifRole::Server,
            None if option == "client" => options.role = MemifRole::Client,
            Some(("id", id)) => options.id = number(id, "id")?,
            Some(("secret", secret)) if secret.len() <= MemifOptions::MAX_SECRET => {
                options.secret = secret.to_owned();
            }
            Some(("secret", _)) => {
                return Err(format!("secret: a secret has at most {} bytes", MemifOptions::MAX_SECRET));
            }
            Some(("queues", queues)) => {
                let most = MemifOptions::MAX_QUEUES;
                let queues = number(queues, "queues")?;
                let found = u16::try_from(queues).ok().filter(|queues| (1..=most).contains(queues));
                options.queues = found.ok_or_else(|| format!("queues: there are 1 to {most} queues"))?;
            }
            Some(("ring", entries)) => {
                let (entries, most) = (number(entries, "ring")?, 1 << MemifOptions::MAX_LOG2_ENTRIES);
                if !entries.is_power_of_two() || entries > most {
                    return Err(format!("ring: the number of entries is a power of two up to {most}"));
                }
                options.log2_entries = entries.ilog2() as u8;
            }
            Some(("buffer", len)) => {
                options.buffer_len = number(len, "buffer")?;
                if !(1..=MemifOptions::MAX_BUFFER).contains(&options.buffer_len) {
                    return Err(format!("buffer: a buffer has 1 to {} bytes", MemifOptions::MAX_BUFFER));
                }
            }
            _ => return Err(format!("`{option}` is no option of `memif`; it must be {FORMS}")),
        }
    }
    Ok(Kind::Memif { socket, options })
}

fn pcap(argument: &str) -> Result<Kind, String> {
    let (input, output) = argument.split_once(',').unwrap_or((argument, ""));
    let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
    let (input, output) = (path(input), path(output));
    if input.is_none() && output.is_none() {
        return Err(
            "a capture to read or one to write is missing: pcap:IN, pcap:IN,OUT or pcap:,OUT".to_owned()
        );
    }
    Ok(Kind::Pcap { input, output })
}

fn traffic(argument: &str) -> Result<Traffic, String> {
    const KEYS: &str = "size, flows, proto, ip, rate or count";
    let mut traffic = Traffic::default();
    for setting in argument.split(',').filter(|setting| !setting.is_empty()) {
        let (key, value) =
            setting.split_once('=').ok_or_else(|| format!("`{setting}` is no KEY=VALUE; keys are {KEYS}"))?;
        match key {
            "size" => {
                let sizes = range(value, "size")?;
                traffic.sizes = *sizes.start() as usize..=*sizes.end() as usize;
            }
            "flows" => traffic.flows = number(value, key)?,
            "proto" => traffic.protocols = value.split('+').map(protocol).collect::<Result<_, _>>()?,
            "ip" => traffic.ipv6 = ip_version(value)?,
            "rate" => traffic.rate = Some(amount(value, key)?),
            "count" => traffic.count = Some(amount(value, key)?),
            _ => return Err(format!("`{key}` is no key of `gen`; keys are {KEYS}")),
        }
    }
    check(&traffic)?;
    Ok(traffic)
}

fn check(traffic: &Traffic) -> Result<(), String> {
    let least = if traffic.ipv6 { 74 } else { 60 };
    match () {
        () if *traffic.sizes.start() < least || *traffic.sizes.end() > 9014 => {
            Err(format!("sizes are from {least} to 9014 bytes"))
        }
        () if !(1..=1 << 20).contains(&traffic.flows) => Err("there are 1 to 1048576 flows".to_owned()),
        () if traffic.rate == Some(0) => Err("the rate is at least 1 packet per second".to_owned()),
        () => Ok(()),
    }
}

fn protocol(text: &str) -> Result<Protocol, String> {
    match text {
        "udp" => Ok(Protocol::Udp),
        "tcp" => Ok(Protocol::Tcp),
        _ => Err(format!("`{text}` is no protocol; it must be udp, tcp or udp+tcp")),
    }
}

fn ip_version(text: &str) -> Result<bool, String> {
    match text {
        "4" => Ok(false),
        "6" => Ok(true),
        _ => Err(format!("`{text}` is no version of IP; it must be 4 or 6")),
    }
}

/// `0` or `0-3`.
pub(crate) fn range(text: &str, what: &str) -> Result<RangeInclusive<u32>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (number(first, what)?, number(last, what)?);
    if first > last { Err(format!("{what}: {first} is after {last}")) } else { Ok(first..=last) }
}

fn number(text: &str, what: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{what}: `{text}` is no number"))
}

/// A number of packets: `1000`, `10K`, `14.88M`.
fn amount(text: &str, what: &str) -> Result<u64, String> {
    let units = [('K', 1e3), ('M', 1e6), ('G', 1e9)];
    let found = units.into_iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)));
    let (digits, unit) = found.unwrap_or((text, 1.0));
    let number = digits.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    let number = number.map(|number| number * unit).filter(|&number| number < 1e18);
    number
        .map(|number| number as u64)
        .ok_or_else(|| format!("{what}: `{text}` is no number, which may end in K, M or G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Kind {
        text.parse::<PortSpec>().unwrap_or_else(|error| panic!("{text}: {error}")).kind
    }

    #[test]
    fn ports_have_a_kind_and_an_argument() {
        let mut options = XdpOptions::default();
        assert_eq!(kind("xdp:eth0"), Kind::Xdp { interface: "eth0".to_owned(), queues: None, options });
        (options.mode, options.zero_copy, options.busy_poll_us) = (AttachMode::Native, Some(true), 20);
        let expected = Kind::Xdp { interface: "eth0".to_owned(), queues: Some(0..=3), options };
        assert_eq!(kind("xdp:eth0@0-3,native,zero-copy,busy-poll=20"), expected);
        assert_eq!(kind("tap:pl0"), Kind::Tap { name: "pl0".to_owned() });
        assert_eq!(kind("pcap:,b"), Kind::Pcap { input: None, output: Some("b".into()) });
        assert_eq!(kind("pcap:a,b"), Kind::Pcap { input: Some("a".into()), output: Some("b".into()) });
        let mut memif = MemifOptions::default();
        assert_eq!(
            kind("memif:/run/a.sock"),
            Kind::Memif { socket: "/run/a.sock".to_owned(), options: memif.clone() }
        );
        (memif.role, memif.id, memif.queues) = (MemifRole::Server, 7, 2);
        (memif.secret, memif.log2_entries, memif.buffer_len) = ("x=y".to_owned(), 8, 4096);
        assert_eq!(
            kind("memif:@vpp,server,id=7,queues=2,secret=x=y,ring=256,buffer=4096"),
            Kind::Memif { socket: "@vpp".to_owned(), options: memif }
        );
        let traffic = Traffic {
            sizes: 64..=1514,
            flows: 1000,
            protocols: vec![Protocol::Udp, Protocol::Tcp],
            rate: Some(1_500_000),
            count: Some(10),
            ..Traffic::default()
        };
        assert_eq!(
            kind("gen:size=64-1514,flows=1000,proto=udp+tcp,rate=1.5M,count=10"),
            Kind::Generate(traffic)
        );
        assert_eq!((kind("gen:"), kind("null:")), (Kind::Generate(Traffic::default()), Kind::Null));
    }

    #[test]
    fn wrappers_are_before_a_port() {
        let spec: PortSpec =
            "fault:direction=out,drop=1%,reorder=0.5,seed=7+rate:10K+pcap:a+b,c".parse().expect("a port");
        let faults =
            Faults { direction: Direction::Out, drop: 0.01, reorder: 0.5, seed: 7, ..Faults::default() };
        assert_eq!(spec.wrappers, [Wrapper::Faults(faults), Wrapper::Rate(10_000)]);
        assert_eq!(spec.kind, Kind::Pcap { input: Some("a+b".into()), output: Some("c".into()) });
    }

    #[test]
    fn wrong_names_of_ports_say_what_is_right() {
        for (text, part) in [
            ("eth0", "it must be one of xdp:IFACE"),
            ("dpkd:x", "`dpkd` is no kind of port"),
            ("dpdk:", "the name of the device is missing"),
            ("xdp:", "the name of the interface is missing"),
            ("xdp:eth0@x", "queues: `x` is no number"),
            ("xdp:eth0@3-1", "queues: 3 is after 1"),
            ("xdp:eth0,fast", "`fast` is no option of `xdp`"),
            ("memif:", "the name of the socket is missing"),
            ("memif:a,master", "`master` is no option of `memif`; it must be server, client"),
            ("memif:a,queues=0", "there are 1 to 256 queues"),
            ("memif:a,ring=1000", "a power of two up to 16384"),
            ("memif:a,ring=32768", "a power of two up to 16384"),
            ("memif:a,buffer=0", "a buffer has 1 to 65536 bytes"),
            ("memif:a,secret=0123456789012345678901234", "a secret has at most 24 bytes"),
            ("xdp:eth0,generic,metadata", "metadata is there in native mode only"),
            ("pcap:", "a capture to read or one to write is missing"),
            ("gen:size=20", "sizes are from 60 to 9014 bytes"),
            ("gen:ip=6", "sizes are from 74 to 9014 bytes"),
            ("gen:flows=0", "there are 1 to 1048576 flows"),
            ("gen:rate=fast", "rate: `fast` is no number"),
            ("gen:speed=1", "`speed` is no key of `gen`"),
            ("gen:proto=sctp", "`sctp` is no protocol"),
            ("null:x", "`null:` takes no argument"),
            ("rate:5", "`rate:` is before a port"),
            ("rate:0+null:", "the rate is at least 1"),
            ("fault:drop=2+null:", "drop: `2` is no probability"),
            ("fault:drop=101%+null:", "no probability"),
            ("fault:direction=up+null:", "direction: `up` must be in, out or both"),
            ("fault:loss=1+null:", "`loss` is no key of `fault`"),
            ("fault:drop=1%+nul:", "`nul` is no kind of port"),
        ] {
            let error = text.parse::<PortSpec>().expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
