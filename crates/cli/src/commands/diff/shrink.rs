//! The shortest sequence of the simplest packets that differs, as a test file.

use std::collections::BTreeSet;
use std::path::Path;

use paceline::packet::{build, to_text};
use paceline::{FrameMeta, SkBuffMember, Verdict};
use serde_json::Value as Json;

use super::args::DiffArgs;
use crate::common::capture::CapturedPacket;
use crate::common::failure::Failure;
use crate::inputs::toml;
use crate::sides::{Fate, Ignored, SideMaker, compare, run_both};

/// Most attempts, each of which loads both sides.
const MOST: usize = 400;

/// A sequence whose last packet differs.
pub(super) struct Shrunk {
    packets: Vec<CapturedPacket>,
    /// Outcome of each packet on the old side.
    fates: Vec<Fate>,
}

struct Shrinker<'a> {
    makers: [&'a SideMaker<'a>; 2],
    ignored: &'a [Ignored],
    attempts: usize,
}

/// Shrinks the packets up to the first one that differs.
pub(super) fn shrink(
    makers: [&SideMaker<'_>; 2],
    packets: &[CapturedPacket],
    first: usize,
    left_out: &BTreeSet<usize>,
    ignored: &[Ignored],
) -> Result<Option<Shrunk>, Failure> {
    let mut shrinker = Shrinker { makers, ignored, attempts: 0 };
    let mut best = packets.get(..=first).unwrap_or_default().to_vec();
    // Packets that neither side runs have no outcome.
    best = best
        .into_iter()
        .enumerate()
        .filter(|(number, _)| !left_out.contains(number))
        .map(|(_, packet)| packet)
        .collect();
    shrinker.drop_packets(&mut best)?;
    shrinker.simplify(&mut best)?;
    let fates = shrinker.differs(&best)?;
    Ok(fates.map(|fates| Shrunk { packets: best, fates }))
}

impl Shrinker<'_> {
    /// Outcome of each packet on the old side, if the last packet differs.
    fn differs(&mut self, packets: &[CapturedPacket]) -> Result<Option<Vec<Fate>>, Failure> {
        self.attempts += 1;
        let (mut old, mut new) = (self.makers[0].make()?, self.makers[1].make()?);
        let (mut fates, mut differs) = (Vec::new(), false);
        for (number, packet) in packets.iter().enumerate() {
            let Some(both) = run_both(&mut old, &mut new, number, packet)? else { return Ok(None) };
            differs = compare(&both, self.ignored).is_some();
            let [ours, _] = both;
            fates.push(ours);
        }
        Ok(differs.then_some(fates))
    }

    fn is_spent(&self) -> bool {
        self.attempts >= MOST
    }

    /// Leaves out packets before the last one: all, then halves, then smaller parts.
    fn drop_packets(&mut self, packets: &mut Vec<CapturedPacket>) -> Result<(), Failure> {
        let mut len = packets.len().saturating_sub(1);
        while len > 0 {
            let mut at = 0;
            while at + 1 < packets.len() && !self.is_spent() {
                let end = (at + len).min(packets.len() - 1);
                let mut fewer = packets.clone();
                fewer.drain(at..end);
                match self.differs(&fewer)? {
                    Some(_) => *packets = fewer,
                    None => at = end,
                }
            }
            len /= 2;
        }
        Ok(())
    }

    /// Leaves out fields and bytes of packets, and sets times to the start.
    fn simplify(&mut self, packets: &mut [CapturedPacket]) -> Result<(), Failure> {
        for index in 0..packets.len() {
            let mut tokens: Vec<String> =
                tokens(&packets.get(index).map(|p| to_text(&p.bytes)).unwrap_or_default());
            let mut at = 0;
            while at < tokens.len() && !self.is_spent() {
                let is_part =
                    tokens.get(at).is_some_and(|token| token.contains(['=', '"']) || token.starts_with("0x"));
                if !is_part {
                    at += 1;
                    continue;
                }
                let mut fewer = tokens.clone();
                fewer.remove(at);
                if self.replaces(packets, index, &fewer)? { tokens = fewer } else { at += 1 }
            }
        }
        Ok(())
    }

    /// Whether a packet can be replaced by the one of a text; it is then.
    fn replaces(
        &mut self,
        packets: &mut [CapturedPacket],
        index: usize,
        tokens: &[String],
    ) -> Result<bool, Failure> {
        let text = tokens.join(" ").replace("/ /", "/");
        let Ok(bytes) = build(text.trim_end_matches([' ', '/'])) else { return Ok(false) };
        let mut changed = packets.to_vec();
        let Some(packet) = changed.get_mut(index) else { return Ok(false) };
        packet.meta = FrameMeta { original_len: bytes.len() as u32, ..packet.meta };
        packet.bytes = bytes;
        let differs = self.differs(&changed)?.is_some();
        if differs {
            packets.clone_from_slice(&changed);
        }
        Ok(differs)
    }
}

/// The words of a packet's text; quoted text is one.
fn tokens(text: &str) -> Vec<String> {
    let (mut tokens, mut quoted) = (vec![String::new()], false);
    let mut escaped = false;
    for c in text.chars() {
        match c {
            ' ' if !quoted => tokens.push(String::new()),
            c => {
                quoted ^= c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                if let Some(last) = tokens.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    tokens
}

impl Shrunk {
    /// Packets of the sequence.
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// A test file that expects of the new side what the old one does.
    pub(super) fn to_toml(&self, args: &DiffArgs, file: &Path) -> String {
        let quoted = |text: &str| Json::from(text).to_string();
        let (old, new) = (args.old.to_string_lossy(), args.new_target().to_string_lossy());
        let key = if new.ends_with(".toml") { "chain" } else { "object" };
        let mut text =
            format!("# What {old} does, and {new} does not.\n{key} = {}\n", quoted(&relative(&new, file)));
        for map in args.object.files() {
            let path = relative(&map.path.to_string_lossy(), file);
            text.push_str(&format!("maps.{} = {}\n", quoted(&map.map), quoted(&path)));
        }
        if let Some(network) = &args.world.network {
            let path = relative(&network.to_string_lossy(), file);
            text.push_str(&format!("network = {}\n", quoted(&path)));
        }
        if let Some(ingress) = &args.world.ingress {
            text.push_str(&format!("ingress = {}\n", quoted(ingress)));
        }
        if let Some(seed) = args.world.seed.0 {
            text.push_str(&format!("seed = {seed}\n"));
        }
        text.push_str(&format!("\n[[test]]\nname = {}\nstep = [\n", quoted(&format!("as {old}"))));
        let mut time_ns = 0;
        let steps = self.packets.iter().zip(&self.fates).enumerate();
        for (number, (packet, fate)) in steps {
            let is_last = number + 1 == self.packets.len();
            let mut step = format!("  {{ packet = {}", quoted(&to_text(&packet.bytes)));
            step.push_str(&arrival(args, packet, &mut time_ns));
            if is_last {
                step.push_str(&expectations(packet, fate));
            }
            text.push_str(&step);
            text.push_str(" },\n");
        }
        text.push_str("]\n");
        text
    }
}

/// Keys of a step that say how its packet arrives: after which time, on which interface and queue, with what context.
fn arrival(args: &DiffArgs, packet: &CapturedPacket, time_ns: &mut u64) -> String {
    let mut keys = String::new();
    let wait = packet.meta.timestamp_ns.checked_sub(*time_ns).filter(|wait| *wait > 0);
    if let Some(seconds) = wait.and_then(toml::seconds) {
        keys.push_str(&format!(", wait = {seconds:?}"));
        *time_ns = packet.meta.timestamp_ns;
    }
    if args.world.ingress.is_none() && packet.meta.interface > 0 {
        keys.push_str(&format!(", ingress = {}", packet.meta.interface.saturating_add(1)));
    }
    if let Some(queue) = args.world.rx_queue {
        keys.push_str(&format!(", queue = {queue}"));
    }
    if !args.world.context.is_empty() {
        let members = args
            .world
            .context
            .iter()
            .map(|member| format!("{} = {}", toml::string(&member.name), member.value));
        keys.push_str(&format!(", context = {{ {} }}", members.collect::<Vec<_>>().join(", ")));
    }
    keys
}

/// Keys of a step that say what becomes of its packet.
fn expectations(packet: &CapturedPacket, fate: &Fate) -> String {
    let outcome = &fate.outcome;
    let mut keys = format!(", verdict = \"{}\", returns = {}", outcome.verdict.name(), outcome.returned);
    if matches!(outcome.verdict, Verdict::Drop | Verdict::Aborted) {
        return keys;
    }
    let out = if outcome.bytes == packet.bytes { "same".to_owned() } else { to_text(&outcome.bytes) };
    keys.push_str(&format!(", out = {}", toml::string(&out)));
    if let Some(context) = &outcome.context {
        let all = SkBuffMember::ALL.iter().map(|member| (member.name, member.of(context)));
        let members = all.map(|(name, value)| format!("{} = {value}", toml::string(name)));
        keys.push_str(&format!(", context_out = {{ {} }}", members.collect::<Vec<_>>().join(", ")));
    }
    keys
}

/// A path as a test file names it: absolute, unless both are in this folder.
fn relative(path: &str, file: &Path) -> String {
    let is_here = file.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    match std::path::absolute(path) {
        Ok(absolute) if !is_here => absolute.display().to_string(),
        _ => path.to_owned(),
    }
}
