//! Test files: the keys that they may have, and what is read from them. A table of cases becomes one test each.

use paceline::with_causes;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use paceline::capture::CaptureReader;
use paceline::packet::{Layers, begins_with, build};
use paceline::text_file;
use paceline::{Burst, SkBuff, SkBuffMember, Verdict};
use paceline_suggest::meant;
use serde_json::Value as Json;

use super::case::{
    Case, EventData, Expectation, Expected, ExpectedEvent, MapContents, MapSource, Out, Returned, Setup,
    Step, Target, TestFile, Tests,
};
use super::error::{Problem, TestError};
use super::typed::{Located, Table, Text, Value};
use crate::common::console;

const ROOT: [&str; 9] = ["object", "objects", "chain", "network", "ingress", "seed", "time", "maps", "test"];
const STEP: [&str; 13] = [
    "packet",
    "wait",
    "repeat",
    "ingress",
    "queue",
    "context",
    "verdict",
    "returns",
    "out",
    "redirect",
    "context_out",
    "after",
    "events",
];
const TEST: [&str; 5] = ["name", "network", "maps", "step", "cases"];

/// Random numbers of tests that give no seed: the same in each run.
const SEED: u64 = 1;

/// Reads a test file.
pub(super) fn read(path: &Path) -> Result<TestFile, TestError> {
    let name = path.display().to_string();
    let text = text_file::read(path).map_err(|source| TestError::Read { name: name.clone(), source })?;
    let cases = cases(Text { name: &name, text: &text }, path.parent().unwrap_or(Path::new("")))?;
    Ok(TestFile { path: path.to_owned(), name, tests: Tests::Cases(text, cases) })
}

/// Reads a text as a test file, whose paths lead nowhere.
#[cfg(test)]
pub(crate) fn test_file(text: &str) -> Result<(), String> {
    let read = cases(Text { name: "mutant", text }, Path::new("/nowhere"));
    read.map(drop).map_err(|error| with_causes(&error))
}

/// All tests of a file, whose paths are relative to a folder.
pub(super) fn cases(text: Text<'_>, folder: &Path) -> Result<Vec<Case>, TestError> {
    let mut root = text.root()?;
    let targets = targets(&mut root, folder)?;
    let network = root.string("network")?.map(|path| relative(folder, &path.value));
    let ingress = interface(&mut root)?;
    let seed = root.number("seed")?.map_or(SEED, |seed| seed.value);
    let time = root.seconds("time")?.map_or(0.0, |time| time.value);
    let maps = maps(text, root.take("maps").as_ref(), folder)?;
    let tests = root.list("test")?;
    root.finish(&ROOT)?;
    let setup = Arc::new(Setup { targets, network, ingress, seed, maps });
    let mut reader = Reader { text, folder, setup, time, cases: Vec::new(), noted: RefCell::default() };
    for test in &tests {
        reader.test(test)?;
    }
    Ok(reader.cases)
}

/// A path of a file, relative to the folder that the file is in.
fn relative(folder: &Path, path: &str) -> PathBuf {
    folder.join(path)
}

fn targets(root: &mut Table<'_>, folder: &Path) -> Result<Vec<PathBuf>, TestError> {
    let one = root.string("object")?.map(|path| vec![relative(folder, &path.value)]);
    let chain = root.string("chain")?.map(|path| vec![relative(folder, &path.value)]);
    let text = root.text;
    let several = root.list("objects")?;
    let several: Vec<PathBuf> = several
        .iter()
        .map(|object| match object.value.to_json() {
            Json::String(path) => Ok(relative(folder, &path)),
            _ => Err(text.error(
                &object.span,
                Problem::Type { key: "objects".to_owned(), expected: "a list of paths" },
            )),
        })
        .collect::<Result<_, _>>()?;
    let several = (!several.is_empty()).then_some(several);
    let mut given = [one, chain, several].into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(targets), None) => Ok(targets),
        _ => Err(text.error(&(0..0), Problem::OneOf("`object`, `objects` and `chain`"))),
    }
}

/// An interface by its name or its index.
fn interface(keys: &mut Table<'_>) -> Result<Option<String>, TestError> {
    let Some(value) = keys.take("ingress") else { return Ok(None) };
    match value.value.to_json() {
        Json::String(name) => Ok(Some(name)),
        Json::Number(index) => Ok(Some(index.to_string())),
        _ => Err(keys.wrong("ingress", &value.span, "an interface, by name or index")),
    }
}

fn maps(
    text: Text<'_>,
    value: Option<&Located<Value>>,
    folder: &Path,
) -> Result<Vec<MapContents>, TestError> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let mut maps = Table::of(text, "maps", value)?;
    let contents = maps.rest().into_iter().map(|(map, value)| {
        let from = match value.value.to_json() {
            Json::String(path) => MapSource::File(relative(folder, &path)),
            json => MapSource::Inline(json),
        };
        MapContents { map, from, at: text.place(&value.span) }
    });
    Ok(contents.collect())
}

struct Reader<'a> {
    text: Text<'a>,
    folder: &'a Path,
    setup: Arc<Setup>,
    /// Seconds since the epoch at which each test starts.
    time: f64,
    cases: Vec<Case>,
    /// Starts of the packets without an Ethernet header, which are noted once and not for each case.
    noted: RefCell<BTreeSet<usize>>,
}

/// Values of the variables of one case.
type Variables = Vec<(String, Located<Value>)>;

/// The keys of a test that it has beside those of its only step.
const BESIDE: [&str; 2] = ["network", "maps"];

impl Reader<'_> {
    fn test(&mut self, value: &Located<Value>) -> Result<(), TestError> {
        let mut keys = Table::of(self.text, "a test", value)?;
        let (name, nameless) = (keys.string("name")?, keys.missing("a `name`"));
        let (steps, cases) = (keys.list("step")?, keys.list("cases")?);
        let all = STEP.iter().chain(&BESIDE);
        let own: Vec<_> = all.filter_map(|key| Some(((*key).to_owned(), keys.take(key)?))).collect();
        // A misspelled key is told before one that is missing for it.
        keys.finish(&[&TEST[..], &STEP].concat())?;
        let name = name.ok_or(nameless)?;
        if own.iter().any(|(key, _)| key == "packet") != steps.is_empty() {
            return Err(self.text.error(&name.span, Problem::PacketAndSteps));
        }
        if cases.is_empty() {
            return self.case(&name, &own, &steps, &[]);
        }
        for (number, case) in (1..).zip(&cases) {
            let mut variables = Variables::new();
            let mut overlay = own.clone();
            for (key, value) in Table::of(self.text, "a case", case)?.rest() {
                match STEP.contains(&key.as_str()) || BESIDE.contains(&key.as_str()) {
                    true => {
                        overlay.retain(|(other, _)| *other != key);
                        overlay.push((key, value));
                    }
                    false => variables.push((key, value)),
                }
            }
            let name =
                Located { value: name_of_case(&name.value, number, &variables), span: case.span.clone() };
            self.case(&name, &overlay, &steps, &variables)?;
        }
        Ok(())
    }

    fn case(
        &mut self,
        name: &Located<String>,
        own: &[(String, Located<Value>)],
        steps: &[Located<Value>],
        variables: &[(String, Located<Value>)],
    ) -> Result<(), TestError> {
        if self.cases.iter().any(|case| case.name == name.value) {
            return Err(self.text.error(&name.span, Problem::SameName(name.value.clone())));
        }
        let (beside, own): (Vec<_>, Vec<_>) =
            own.iter().cloned().partition(|(key, _)| BESIDE.contains(&key.as_str()));
        let beside = beside.into_iter().map(|(key, value)| Ok((key, self.substituted(value, variables)?)));
        let beside = beside.collect::<Result<Vec<_>, TestError>>()?;
        let given = |wanted: &str| beside.iter().find(|(key, _)| key == wanted).map(|(_, value)| value);
        let maps = maps(self.text, given("maps"), self.folder)?;
        let network = given("network").map(|value| self.path("network", value)).transpose()?;
        let mut time = self.time;
        let steps = match steps {
            [] => vec![self.step(own, name.span.clone(), variables, &mut time)?],
            steps => steps
                .iter()
                .map(|step| {
                    let keys = Table::of(self.text, "a step", step)?.rest();
                    self.step(keys, step.span.clone(), variables, &mut time)
                })
                .collect::<Result<_, _>>()?,
        };
        let (setup, at) = (Arc::clone(&self.setup), self.text.place(&name.span));
        self.cases.push(Case { name: name.value.clone(), at, setup, network, maps, steps });
        Ok(())
    }

    fn step(
        &self,
        entries: Vec<(String, Located<Value>)>,
        span: Range<usize>,
        variables: &[(String, Located<Value>)],
        time: &mut f64,
    ) -> Result<Step, TestError> {
        let entries = entries.into_iter().map(|(key, value)| {
            let value = self.substituted(value, variables)?;
            Ok((key, value.span.clone(), value))
        });
        let table = Located { value: Value::Table(entries.collect::<Result<_, TestError>>()?), span };
        let mut keys = Table::of(self.text, "a step", &table)?;
        let packet = keys.take("packet").ok_or_else(|| keys.missing("a `packet`"))?;
        *time += keys.seconds("wait")?.map_or(0.0, |wait| wait.value);
        let repeat = keys.number("repeat")?.map_or(1, |repeat| repeat.value.max(1));
        let queue = keys.number("queue")?;
        let too_large = |queue: &Located<u64>| {
            keys.text.error(
                &queue.span,
                Problem::Type { key: "queue".to_owned(), expected: "a queue, up to 65535" },
            )
        };
        let queue = queue.map_or(Ok(0), |queue| u16::try_from(queue.value).map_err(|_| too_large(&queue)))?;
        let ingress = interface(&mut keys)?;
        let context = context(&mut keys)?;
        let expected = self.expected(&mut keys)?;
        keys.finish(&STEP)?;
        Ok(Step {
            packet: self.packet(&packet)?,
            at: self.text.place(&packet.span),
            packet_span: packet.span,
            time_ns: (*time * 1e9) as u64,
            repeat,
            ingress,
            queue,
            context,
            expected,
        })
    }

    /// A path in this folder.
    fn path(&self, key: &str, value: &Located<Value>) -> Result<PathBuf, TestError> {
        let wrong = || Problem::Type { key: key.to_owned(), expected: "a text" };
        match &value.value {
            Value::Plain(Json::String(path)) => Ok(relative(self.folder, path)),
            _ => Err(self.text.error(&value.span, wrong())),
        }
    }

    /// Puts the values of variables into texts and names. A text that is only a variable becomes its value, whatever that is.
    fn substituted(
        &self,
        value: Located<Value>,
        variables: &[(String, Located<Value>)],
    ) -> Result<Located<Value>, TestError> {
        let Located { value, span } = value;
        let value = match value {
            Value::Plain(Json::String(text)) if !variables.is_empty() => {
                let whole = variables.iter().find(|(name, _)| text == format!("{{{name}}}"));
                match whole {
                    Some((_, variable)) => variable.value.clone(),
                    None => Value::Plain(Json::String(replaced(&text, variables))),
                }
            }
            Value::Plain(json) => Value::Plain(json),
            Value::List(elements) => Value::List(
                elements.into_iter().map(|e| self.substituted(e, variables)).collect::<Result<_, _>>()?,
            ),
            Value::Table(entries) => {
                let entry = |(key, span, value): (String, _, _)| {
                    Ok((replaced(&key, variables), span, self.substituted(value, variables)?))
                };
                Value::Table(entries.into_iter().map(entry).collect::<Result<_, TestError>>()?)
            }
        };
        Ok(Located { value, span })
    }

    fn packet(&self, value: &Located<Value>) -> Result<Vec<u8>, TestError> {
        let error = |problem| self.text.error(&value.span, problem);
        let wrong = || {
            error(Problem::Type {
                key: "packet".to_owned(),
                expected: "layers in words, `{ hex = \"...\" }` or `{ capture = FILE, number = N }`",
            })
        };
        match &value.value {
            Value::Plain(Json::String(text)) => {
                if let Some(name) = variable_in(text) {
                    return Err(error(Problem::Variable(name.to_owned())));
                }
                let bytes = build(text).map_err(|problem| error(Problem::Packet(problem)))?;
                self.note_without_ethernet(text, &value.span);
                Ok(bytes)
            }
            Value::Table(_) => {
                let mut keys = Table::of(self.text, "packet", value)?;
                let (hex, capture, number) =
                    (keys.string("hex")?, keys.string("capture")?, keys.number("number")?);
                keys.finish(&["hex", "capture", "number"])?;
                match (hex, capture) {
                    (Some(hex), None) => bytes_of(&hex.value).ok_or_else(|| {
                        let expected = "pairs of hexadecimal digits";
                        self.text.error(&hex.span, Problem::Type { key: "hex".to_owned(), expected })
                    }),
                    (None, Some(capture)) => {
                        let path = relative(self.folder, &capture.value);
                        let number = number.map_or(1, |number| number.value);
                        of_capture(&path, number).map_err(|cause| error(Problem::Capture(cause)))
                    }
                    _ => Err(wrong()),
                }
            }
            _ => Err(wrong()),
        }
    }

    fn expected(&self, keys: &mut Table<'_>) -> Result<Vec<Expected>, TestError> {
        let mut expected = Vec::new();
        let mut push = |what, span: &Range<usize>| expected.push(Expected { what, span: span.clone() });
        if let Some(Located { value, span }) = keys.string("verdict")? {
            push(
                Expectation::Verdict(
                    verdict(&value)
                        .ok_or_else(|| keys.wrong("verdict", &span, "aborted, drop, pass, tx or redirect"))?,
                ),
                &span,
            );
        }
        if let Some(value) = keys.take("returns") {
            let returned = returned(&value.value.to_json()).ok_or_else(|| {
                keys.wrong(
                    "returns",
                    &value.span,
                    "a number of 32 bits, or a name such as XDP_DROP or TC_ACT_SHOT",
                )
            })?;
            push(Expectation::Returns(returned), &value.span);
        }
        if let Some(value) = keys.take("out") {
            push(Expectation::Out(self.out(&value)?), &value.span);
        }
        if let Some(value) = keys.take("redirect") {
            let (target, flags) = self.target(&value)?;
            push(Expectation::Redirect(target, flags), &value.span);
        }
        if let Some(value) = keys.take("context_out") {
            push(Expectation::Context(members(keys, "context_out", &value)?), &value.span);
        }
        if let Some(value) = keys.take("after") {
            for (map, value) in Table::of(self.text, "after", &value)?.rest() {
                let elements = value.value.to_json();
                if !elements.is_array() && !elements.is_object() {
                    return Err(keys.wrong(&map, &value.span, "a list of elements, or a table of variables"));
                }
                push(Expectation::Map { map, elements }, &value.span);
            }
        }
        if let Some(value) = keys.take("events") {
            let Value::List(events) = &value.value else {
                return Err(keys.wrong("events", &value.span, "a list"));
            };
            let events = events.iter().map(|event| self.event(event)).collect::<Result<_, _>>()?;
            push(Expectation::Events(events), &value.span);
        }
        Ok(expected)
    }

    fn out(&self, value: &Located<Value>) -> Result<Out, TestError> {
        let error = |problem| self.text.error(&value.span, problem);
        match &value.value {
            Value::Plain(Json::String(text)) if text == "same" => Ok(Out::Same),
            Value::Plain(Json::String(_)) => self.packet(value).map(Out::Whole),
            Value::Table(entries) if entries.iter().any(|(key, ..)| key == "hex" || key == "capture") => {
                self.packet(value).map(Out::Whole)
            }
            Value::Table(entries) => {
                let field = |(path, span, value): &(String, Range<usize>, Located<Value>)| {
                    check_path(path).map_err(|problem| self.text.error(span, problem))?;
                    Ok((path.clone(), plain(&value.value.to_json())))
                };
                entries.iter().map(field).collect::<Result<_, _>>().map(Out::Fields)
            }
            _ => Err(error(Problem::Type {
                key: "out".to_owned(),
                expected: "`same`, layers in words, or a table of fields",
            })),
        }
    }

    /// Programs see the first bytes of a packet as an Ethernet header. Devices without one are the exception, so this is no error.
    fn note_without_ethernet(&self, text: &str, span: &Range<usize>) {
        let first = begins_with(text).filter(|first| first.name != "eth");
        if let Some(first) = first.filter(|_| self.noted.borrow_mut().insert(span.start)) {
            let (file, at, name) = (self.text.name, self.text.place(span), first.name);
            console::note(format_args!(
                "{file}:{}:{}: the packet begins with {name}, and programs see an Ethernet header there: `eth / {name} ...`",
                at.line, at.column
            ));
        }
    }

    /// A target, and its flags if they are named.
    fn target(&self, value: &Located<Value>) -> Result<(Target, Option<u32>), TestError> {
        let wrong = || {
            let expected =
                "an interface's index, { interface = N }, or { map = NAME, key = N }, perhaps with flags = N";
            self.text.error(&value.span, Problem::Type { key: "redirect".to_owned(), expected })
        };
        if let Value::Plain(json) = &value.value {
            let index = json.as_u64().and_then(|index| u32::try_from(index).ok());
            return index.map(|index| (Target::Interface(index), None)).ok_or_else(wrong);
        }
        let mut keys = Table::of(self.text, "redirect", value)?;
        let (map, key) = (keys.string("map")?, keys.number("key")?);
        let (interface, flags) = (keys.number("interface")?, keys.number("flags")?);
        keys.finish(&["interface", "map", "key", "flags"])?;
        let number = |number: Located<u64>| u32::try_from(number.value).map_err(|_| wrong());
        let flags = flags.map(number).transpose()?;
        let target = match (interface, map, key) {
            (Some(index), None, None) => Target::Interface(number(index)?),
            (None, Some(map), Some(key)) => Target::Map { map: map.value, key: number(key)? },
            _ => return Err(wrong()),
        };
        Ok((target, flags))
    }

    fn event(&self, value: &Located<Value>) -> Result<ExpectedEvent, TestError> {
        let mut keys = Table::of(self.text, "an event", value)?;
        let (map, ty, bytes) = (keys.string("map")?, keys.string("type")?, keys.string("bytes")?);
        let data = keys.take("data");
        let known = ["map", "type", "bytes", "data"];
        let data = match (ty, data, bytes) {
            (Some(ty), Some(data), None) => {
                Some(EventData::Typed { ty: ty.value, members: data.value.to_json() })
            }
            (None, None, Some(bytes)) => {
                let parsed = bytes_of(&bytes.value);
                Some(EventData::Bytes(
                    parsed.ok_or_else(|| keys.wrong("bytes", &bytes.span, "hexadecimal digits"))?,
                ))
            }
            (None, None, None) => None,
            _ => {
                return Err(self.text.error(&value.span, Problem::OneOf("`bytes`, and `type` with `data`,")));
            }
        };
        keys.finish(&known)?;
        Ok(ExpectedEvent { map: map.map(|map| map.value), data })
    }
}

/// Members of an `sk_buff`, by their names; `cb` is a list of its words.
fn members(
    keys: &Table<'_>,
    key: &'static str,
    value: &Located<Value>,
) -> Result<Vec<(String, u64)>, TestError> {
    let mut all = Vec::new();
    for (name, value) in Table::of(keys.text, key, value)?.rest() {
        let wrong = |text: String| keys.text.error(&value.span, Problem::Pattern(text));
        let json = value.value.to_json();
        let words = match (&json, name.as_str()) {
            (Json::Array(words), "cb") => {
                words.iter().enumerate().map(|(word, json)| (format!("cb[{word}]"), json)).collect()
            }
            _ => vec![(name.clone(), &json)],
        };
        for (name, json) in words {
            let number =
                json.as_u64().ok_or_else(|| wrong(format!("{key}.{name} must be a number from 0 on")))?;
            if SkBuffMember::named(&name).is_none() {
                let names = SkBuffMember::ALL.iter().map(|member| member.name);
                let hint = meant(&name, names).map_or_else(String::new, |hint| format!(", perhaps `{hint}`"));
                return Err(wrong(format!("`__sk_buff` has no field `{name}` that {key} knows{hint}")));
            }
            all.push((name, number));
        }
    }
    Ok(all)
}

/// The members that packets arrive with.
fn context(keys: &mut Table<'_>) -> Result<SkBuff, TestError> {
    let mut context = SkBuff::default();
    let Some(value) = keys.take("context") else { return Ok(context) };
    for (name, number) in members(keys, "context", &value)? {
        let set = context.set(&name, number);
        set.map_err(|error| keys.text.error(&value.span, Problem::Pattern(format!("context: {error}"))))?;
    }
    Ok(context)
}

/// A return value: negative numbers are those of `int`.
fn returned(json: &Json) -> Option<Returned> {
    match json {
        Json::String(name) => Some(Returned::Name(name.clone())),
        _ => {
            let number = json.as_i64()?;
            let unsigned = u32::try_from(number).ok();
            unsigned.or_else(|| i32::try_from(number).ok().map(i32::cast_unsigned)).map(Returned::Number)
        }
    }
}

/// A text with the values of variables.
fn replaced(text: &str, variables: &[(String, Located<Value>)]) -> String {
    variables.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), &plain(&value.value.to_json()))
    })
}

/// The name of a test with the values of a case, behind it those that it does not name.
fn name_of_case(name: &str, number: usize, variables: &[(String, Located<Value>)]) -> String {
    let is_named = |variable: &str| name.contains(&format!("{{{variable}}}"));
    let others = variables.iter().filter(|(variable, _)| !is_named(variable));
    let values: Vec<_> =
        others.map(|(variable, value)| format!("{variable}={}", plain(&value.value.to_json()))).collect();
    match (variables, values.as_slice()) {
        ([], _) => format!("{name} [case {number}]"),
        (_, []) => replaced(name, variables),
        (_, values) => format!("{} [{}]", replaced(name, variables), values.join(" ")),
    }
}

/// A name in braces.
fn variable_in(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('{')?;
    let (name, _) = rest.split_once('}')?;
    (!name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')).then_some(name)
}

/// A value as it stands in a packet's text.
fn plain(json: &Json) -> String {
    json.as_str().map_or_else(|| json.to_string(), str::to_owned)
}

/// A verdict by its name, with or without `XDP_`, in any case.
fn verdict(name: &str) -> Option<Verdict> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix("xdp_").unwrap_or(&name);
    Verdict::ALL.into_iter().find(|verdict| verdict.name() == name)
}

/// A field's path, or one of the words for whole packets.
fn check_path(path: &str) -> Result<(), Problem> {
    if matches!(path, "len" | "payload" | "layers") {
        return Ok(());
    }
    let (layer, field) = path.split_once('.').unwrap_or((path, ""));
    let name = layer.split('#').next().unwrap_or(layer);
    let known = paceline::packet::Protocol::ALL.iter().map(|protocol| protocol.name);
    let Some(protocol) = paceline::packet::Protocol::named(name) else {
        let hint = meant(name, known).map_or_else(String::new, |hint| format!(", perhaps `{hint}`"));
        return Err(Problem::Pattern(format!("no protocol is named `{name}`{hint}")));
    };
    match protocol.field(field) {
        Some(_) => Ok(()),
        None => {
            let known = protocol.fields.iter().map(|field| field.name);
            let hint = meant(field, known).map_or_else(String::new, |hint| format!(", perhaps `{hint}`"));
            Err(Problem::Pattern(format!("{name} has no field `{field}`{hint}")))
        }
    }
}

/// Bytes from hexadecimal digits, with or without `0x`, spaces and colons.
pub(super) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let digits: String =
        text.trim_start_matches("0x").chars().filter(|c| !c.is_whitespace() && *c != ':').collect();
    let digits = digits.as_bytes();
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
        _ => None,
    };
    digits.chunks(2).map(pair).collect()
}

/// A packet of a capture, by its number from 1.
fn of_capture(path: &Path, number: u64) -> Result<Vec<u8>, String> {
    let failed = |error: &dyn std::error::Error| format!("{}: {}", path.display(), with_causes(error));
    let file = fs::File::open(path).map_err(|error| failed(&error))?;
    let mut reader = CaptureReader::new(file).map_err(|error| failed(&error))?;
    let mut burst = Burst::new(1);
    for _ in 0..number {
        if reader.fill(&mut burst).map_err(|error| failed(&error))? == 0 {
            return Err(format!("{}: there is no packet {number}", path.display()));
        }
    }
    match burst.is_empty() {
        true => Err(format!("{}: packets are counted from 1", path.display())),
        false => Ok(burst.frame(0).packet().to_vec()),
    }
}

/// The names of the layers of a packet: `eth / ipv4 / tcp`.
pub(super) fn layers_of(bytes: &[u8]) -> String {
    Layers::new(bytes).headers().iter().map(|layer| layer.protocol.name).collect::<Vec<_>>().join(" / ")
}
