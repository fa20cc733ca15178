//! Compares a classic program on everything that runs it.

use std::collections::BTreeMap;

use paceline::{Burst, FrameMeta, Host};
use paceline_classic::libpcap::Libpcap;
use paceline_classic::{ConvertOptions, Filter, Purpose, Rules};
use paceline_engine::{Engine, Program};
use paceline_spec::{Errno, ProgramKind, ProgramSpec};
use paceline_verifier::{Options, verify};

use super::generate::{Sample, is_comparable};
use super::packet_socket::{Interface, attach_errno};
use super::reference;
use crate::AnyEngine;
use crate::kernel::{self, Packet, Request};

/// A disagreement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// The kernel's checker has another verdict.
    #[error("the checker says {ours}, the kernel {kernel}")]
    Verdict {
        /// Our verdict.
        ours: String,
        /// The kernel's verdict.
        kernel: String,
    },
    /// A verifier refuses the converted program.
    #[error("{who} refuses the {kind}: {why}")]
    Refused {
        /// `verifier` or `kernel`.
        who: &'static str,
        /// The type that it was converted to.
        kind: &'static str,
        /// Reason.
        why: String,
    },
    /// Return values differ.
    #[error("packet {packet}: {one} returns {ones}, {other} {others}")]
    Value {
        /// Index of the packet.
        packet: usize,
        /// One side.
        one: String,
        /// Its return value.
        ones: String,
        /// The other side.
        other: String,
        /// Its return value.
        others: String,
    },
    /// Another failure, as text.
    #[error("{0}")]
    Failed(String),
}

impl Difference {
    /// Whether it is the same kind of difference; shrinking preserves it.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Verdict { .. }, Self::Verdict { .. }) | (Self::Failed(_), Self::Failed(_)) => true,
            (Self::Refused { who, kind, .. }, Self::Refused { who: w, kind: k, .. }) => (who, kind) == (w, k),
            (Self::Value { one, other, .. }, Self::Value { one: o, other: p, .. }) => (one, other) == (o, p),
            _ => false,
        }
    }
}

/// Statistics of samples.
pub type Tally = BTreeMap<&'static str, u64>;

/// All references for filters.
pub struct Bench {
    interface: Option<Interface>,
    libpcap: Option<Libpcap>,
    /// Whether the kernel's verifier is used.
    kernel: bool,
    host: Host,
    burst: Burst,
    /// Statistics so far.
    pub tally: Tally,
}

impl Bench {
    /// With the available references. If packet sockets are available the calling thread is in its own network namespace
    /// from then on.
    #[must_use]
    pub fn new(interface: Option<Interface>, libpcap: Option<Libpcap>, kernel: bool) -> Self {
        Self { interface, libpcap, kernel, host: Host::default(), burst: Burst::new(1), tally: Tally::new() }
    }

    fn count(&mut self, what: &'static str) {
        *self.tally.entry(what).or_default() += 1;
    }

    /// Checks, converts, verifies and runs a sample on everything.
    ///
    /// # Errors
    /// The first [`Difference`].
    pub fn check(&mut self, sample: &Sample) -> Result<(), Difference> {
        let checked = Filter::new(sample.insns.clone(), Purpose::Socket);
        if self.interface.is_some() {
            let errno = attach_errno(&sample.insns)
                .map_err(|error| Difference::Failed(paceline::with_causes(&error)))?;
            if errno.is_some() != checked.is_err() {
                let ours = checked.map_or_else(|error| paceline::with_causes(&error), |_| "yes".to_owned());
                let kernel = errno.map_or_else(|| "yes".to_owned(), |errno| format!("errno {errno}"));
                return Err(Difference::Verdict { ours, kernel });
            }
        }
        let Ok(filter) = checked else {
            self.count("refused by the checker");
            return Ok(());
        };
        let options = ConvertOptions::default();
        let (Ok(xdp), Ok(socket_filter)) =
            (filter.to_xdp("filter", &options), filter.to_socket_filter("filter", &options))
        else {
            self.count("not converted");
            return Ok(());
        };
        let comparable = is_comparable(&sample.insns);
        self.count(if comparable { "run" } else { "verified only" });
        let expected = self.oracles(&filter, sample, comparable)?;
        for (kind, spec) in [("XDP program", &xdp), ("socket filter", &socket_filter)] {
            self.engines(kind, spec, sample, &expected)?;
            if !spec.kfuncs.is_empty() {
                self.count("calling what no program of the kernel can");
            } else if self.kernel {
                kernel_runs(kind, spec, sample, &expected)?;
            }
        }
        self.by_libpcaps_rules(&filter, sample)
    }

    /// Converts by libpcap's rules and compares the results with libpcap, without exceptions.
    fn by_libpcaps_rules(&mut self, filter: &Filter, sample: &Sample) -> Result<(), Difference> {
        let Some(libpcap) = &self.libpcap else { return Ok(()) };
        let prepared = libpcap.prepare(filter);
        let options = ConvertOptions::default().rules(Rules::Libpcap);
        let failed = |error: &dyn std::fmt::Display| Difference::Failed(error.to_string());
        let xdp = filter.to_xdp("filter", &options).map_err(|error| failed(&error))?;
        let socket_filter = filter.to_socket_filter("filter", &options).map_err(|error| failed(&error))?;
        let kinds = [
            ("XDP program by libpcap's rules", xdp, 1000),
            ("socket filter by libpcap's rules", socket_filter, 0),
        ];
        for (kind, spec, cut) in kinds {
            let refused = |why: String| Difference::Refused { who: "verifier", kind, why };
            let verified = verify(&spec, &[], None, &Options::default())
                .map_err(|refusal| refused(refusal.to_string()))?;
            let program = Program::load(&verified, Vec::new(), Engine::best());
            let program = program.map_err(|error| failed(&error))?;
            for (packet, data) in sample.packets.iter().enumerate() {
                // The wire length, which a program has no other way to know.
                let wire_len = (data.len() + cut) as u32;
                self.burst.clear();
                self.burst.push(data, FrameMeta::default()).map_err(|error| failed(&error))?;
                let mut frame = self.burst.frame_mut(0);
                if cut != 0 {
                    frame.set_metadata(&wire_len.to_ne_bytes()).map_err(|error| failed(&error))?;
                }
                let value = program.run_raw(&mut frame, &mut self.host).map_err(|fault| failed(&fault))?;
                let expected = prepared.run(data, wire_len);
                if value != u64::from(expected) {
                    return Err(Difference::Value {
                        packet,
                        one: kind.to_owned(),
                        ones: format!("{value:#x}"),
                        other: "libpcap".to_owned(),
                        others: format!("{expected:#x}"),
                    });
                }
            }
        }
        *self.tally.entry("compared with libpcap by its own rules").or_default() += 1;
        Ok(())
    }

    /// Return values by the reference, confirmed by the kernel's filters and by libpcap; nothing if they are not defined.
    fn oracles(
        &mut self,
        filter: &Filter,
        sample: &Sample,
        comparable: bool,
    ) -> Result<Vec<u32>, Difference> {
        if !comparable {
            return Ok(Vec::new());
        }
        let spec = filter.to_socket_filter("filter", &ConvertOptions::default());
        let spec = spec.map_err(|error| Difference::Failed(paceline::with_causes(&error)))?;
        // The plain interpreter supports ancillary words.
        let plain = Program::new(spec.into(), Vec::new());
        let plain = plain.map_err(|error| Difference::Failed(paceline::with_causes(&error)))?;
        if let Some(interface) = &self.interface {
            interface
                .attach(filter.insns())
                .map_err(|error| Difference::Failed(paceline::with_causes(&error)))?;
        }
        let mut values = Vec::new();
        for (index, packet) in sample.packets.iter().enumerate() {
            let value = run(&plain, packet, &mut self.burst, &mut self.host)? as u32;
            let differs = |other: &str, ones: u32, others: u32| Difference::Value {
                packet: index,
                one: "plain socket filter".to_owned(),
                ones: format!("{ones:#x}"),
                other: other.to_owned(),
                others: format!("{others:#x}"),
            };
            if let Some(interface) = &self.interface {
                let kept = interface
                    .run(packet)
                    .map_err(|error| Difference::Failed(paceline::with_causes(&error)))?;
                let expected = (packet.len() as u32).min(value);
                if kept as u32 != expected {
                    return Err(differs("packet socket", expected, kept as u32));
                }
            }
            let by_steps = reference::run(filter, packet);
            if let Some(libpcap) = &self.libpcap
                && !by_steps.libpcap_differs
            {
                let theirs = libpcap.run(filter, packet, packet.len() as u32);
                if theirs != value {
                    return Err(differs("libpcap", value, theirs));
                }
                *self.tally.entry("packets compared with libpcap").or_default() += 1;
            }
            values.push(value);
        }
        Ok(values)
    }

    fn engines(
        &mut self,
        kind: &'static str,
        spec: &ProgramSpec,
        sample: &Sample,
        expected: &[u32],
    ) -> Result<(), Difference> {
        let refused = |why: String| Difference::Refused { who: "verifier", kind, why };
        let verified =
            verify(spec, &[], None, &Options::default()).map_err(|refusal| refused(refusal.to_string()))?;
        for engine in AnyEngine::available() {
            let program = match engine.load(&verified, Vec::new()) {
                Ok(program) => program,
                Err(error) => return Err(Difference::Failed(format!("{engine}: {kind}: {error}"))),
            };
            for (packet, (data, expected)) in sample.packets.iter().zip(expected).enumerate() {
                let value = run(&program, data, &mut self.burst, &mut self.host)?;
                if value != u64::from(*expected) {
                    return Err(Difference::Value {
                        packet,
                        one: format!("{engine} {kind}"),
                        ones: format!("{value:#x}"),
                        other: "plain socket filter".to_owned(),
                        others: format!("{expected:#x}"),
                    });
                }
            }
        }
        Ok(())
    }
}

fn run(program: &Program, packet: &[u8], burst: &mut Burst, host: &mut Host) -> Result<u64, Difference> {
    let failed = |error: &dyn std::fmt::Display| Difference::Failed(error.to_string());
    burst.clear();
    burst.push(packet, FrameMeta::default()).map_err(|error| failed(&error))?;
    let mut frame = burst.frame_mut(0);
    frame.set_ingress(1, 0);
    program.run_raw(&mut frame, host).map_err(|fault| failed(&fault))
}

fn kernel_runs(
    kind: &'static str,
    spec: &ProgramSpec,
    sample: &Sample,
    expected: &[u32],
) -> Result<(), Difference> {
    let request = Request { kind: spec.kind, ..Request::xdp(&spec.insns) };
    let program = kernel::Program::load(&request).map_err(|error| Difference::Refused {
        who: "kernel",
        kind,
        why: error.to_string(),
    })?;
    for (packet, (data, expected)) in sample.packets.iter().zip(expected).enumerate() {
        let header = if spec.kind == ProgramKind::SocketFilter { kernel::ETHERNET_LEN } else { 0 };
        if !kernel::check_packet(data.len() + header, 0) {
            continue;
        }
        let ran = match program.test_run(&Packet::new(data)) {
            Ok(ran) => ran,
            // A test run refuses IP packets that are shorter than their header.
            Err(error) if error.errno == Errno::EINVAL => continue,
            Err(error) => return Err(Difference::Failed(paceline::with_causes(&error))),
        };
        if ran.retval != *expected {
            return Err(Difference::Value {
                packet,
                one: format!("kernel {kind}"),
                ones: format!("{:#x}", ran.retval),
                other: "plain socket filter".to_owned(),
                others: format!("{expected:#x}"),
            });
        }
    }
    Ok(())
}
