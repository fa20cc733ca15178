//! One scene through all doors.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use paceline::Burst;
use paceline::capture::CaptureReader;
use serde_json::Value as Json;

use super::languages::Language;
use super::problem::{Problem, io_problem, read};
use super::scene::{Scene, Subject};
use super::test_file::test_file;
use super::told::{Told, counts};

/// Who is asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The command `paceline`.
    pub command: PathBuf,
    /// Whether the kernel is asked, which takes root.
    pub kernel: bool,
    /// A Python that has the package, if it is asked.
    pub python: Option<PathBuf>,
    /// The compiled `door.c`, if it is asked.
    pub c: Option<PathBuf>,
}

/// The commands and languages, and a folder for what they write.
#[derive(Debug)]
pub struct Doors {
    asked: Asked,
    folder: PathBuf,
    languages: Vec<Language>,
    /// Scenes whose programs a language did not load, each time.
    pub unloaded: u64,
}

/// What `run` tells, which the others are compared with.
struct Truth {
    told: Vec<Told>,
    /// Packets that were passed, sent or redirected, and those that were dropped.
    out: Vec<Vec<u8>>,
    drops: Vec<Vec<u8>>,
    maps: Json,
}

impl Truth {
    /// What became of each packet, with its bytes.
    fn with_bytes(&self) -> Vec<Told> {
        let (mut out, mut drops) = (self.out.iter(), self.drops.iter());
        let told = self.told.iter().map(|told| {
            let bytes = if told.is_dropped() { drops.next() } else { out.next() };
            told.clone().with_bytes(bytes.map(Vec::as_slice))
        });
        told.collect()
    }

    /// The packets that came out with a verdict.
    fn with_verdict(&self, verdict: &str) -> impl Iterator<Item = Vec<u8>> {
        let out = self.told.iter().filter(|told| !told.is_dropped()).zip(&self.out);
        out.filter(move |(told, _)| told.get("verdict") == Some(&verdict.into()))
            .map(|(_, bytes)| bytes.clone())
    }
}

struct Done {
    status: Option<i32>,
    out: String,
    text: String,
}

type Answer = Result<Option<String>, Problem>;

impl Doors {
    /// Those that are asked, with a folder of their own.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn new(asked: Asked, folder: PathBuf) -> Result<Self, Problem> {
        let python = asked.python.as_deref().map(|python| Language::python(python, &folder)).transpose()?;
        let c = asked.c.as_deref().map(|c| Language::c(c, &folder));
        let languages = python.into_iter().chain(c).collect();
        Ok(Self { asked, folder, languages, unloaded: 0 })
    }

    /// The differences between the doors, each with its door. A subject that `run` refuses is an error.
    ///
    /// # Errors
    /// [`Problem`]
    pub fn differences(&mut self, scene: &Scene) -> Result<Vec<String>, Problem> {
        let truth = self.run(scene, "run", &[])?;
        let mut all = Vec::new();
        let mut ask = |door: &str, answer: Answer| -> Result<(), Problem> {
            all.extend(answer?.map(|difference| format!("{door}: {difference}")));
            Ok(())
        };
        ask("the sums of run", Ok(self.sums(scene, &truth)))?;
        for engine in ["plain", "threaded"] {
            let other = self.run(scene, engine, &["--engine", engine])?;
            ask(engine, Ok(same_runs(&truth, &other)))?;
        }
        ask("bursts", self.bursts(scene, &truth))?;
        if scene.of_one_worker {
            ask("workers", self.workers(scene, &truth))?;
        }
        ask("why", self.why(scene, &truth))?;
        ask("test", self.test(scene, &truth))?;
        ask("diff", self.diff(scene))?;
        if let Some(other) = &scene.other {
            ask("diff of two", self.diff_of_two(scene, other, &truth))?;
        }
        ask("report", self.report(scene, &truth))?;
        if scene.subject.is_xdp || scene.subject.is_classifier {
            ask("scan", self.scan(scene, &truth))?;
        }
        let is_plain = !scene.subject.asks_the_machine && scene.queue.is_none() && scene.ingress.is_none();
        if self.asked.kernel && is_plain && scene.subject.is_program() {
            ask("kernel", self.in_kernel(scene))?;
        }
        if is_plain && scene.subject.takes_xdp() && scene.is_of_one_interface() {
            ask("live", self.live(scene, &truth))?;
        }
        let with_bytes = truth.with_bytes();
        for language in &mut self.languages {
            let told = language.tell(scene)?;
            self.unloaded += u64::from(told.is_none());
            ask(language.name, Ok(told.and_then(|told| same_told(&told, &with_bytes))))?;
        }
        Ok(all)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn call(&self, arguments: &[String]) -> Result<Done, Problem> {
        call(Command::new(&self.asked.command).args(arguments))
    }

    /// A command that must succeed.
    fn ok(&self, arguments: &[String]) -> Result<String, Problem> {
        let done = self.call(arguments)?;
        match done.status {
            Some(0) => Ok(done.out),
            _ => Err(Problem::Failed { command: arguments.join(" "), stderr: done.text }),
        }
    }

    fn json(&self, arguments: &[String]) -> Result<Json, Problem> {
        let text = self.ok(arguments)?;
        serde_json::from_str(&text).map_err(|_| Problem::Json(arguments.join(" ")))
    }

    /// The subject, the capture and the options of a command, and more of them.
    fn arguments(&self, command: &str, scene: &Scene, more: &[&str]) -> Vec<String> {
        let capture = ["--in".to_owned(), scene.capture.display().to_string()];
        let head = std::iter::once(command.to_owned()).chain(scene.subject.targets.iter().cloned());
        let more = more.iter().map(|more| (*more).to_owned());
        head.chain(capture).chain(scene.options()).chain(more).collect()
    }

    fn run(&self, scene: &Scene, name: &str, more: &[&str]) -> Result<Truth, Problem> {
        let [log, out, drops] =
            ["log.json", "out.pcapng", "drops.pcapng"].map(|file| self.path(&format!("{name}.{file}")));
        let files = [&log, &out, &drops].map(|path| path.display().to_string());
        let options = ["--verdicts", &files[0], "--out", &files[1], "--drops", &files[2], "--maps", "--json"];
        let json = self.json(&self.arguments("run", scene, &[&options[..], more].concat()))?;
        let lines = read(&log)?;
        let line = |line: &str| serde_json::from_str(line).map(|json| Told::of_json(&json));
        let told = lines.lines().map(line).collect::<Result<_, _>>();
        let told = told.map_err(|_| Problem::Json(log.display().to_string()))?;
        Ok(Truth { told, out: packets(&out)?, drops: packets(&drops)?, maps: json["maps"].clone() })
    }

    /// Whether the log has each packet, and the captures all of them.
    fn sums(&self, scene: &Scene, truth: &Truth) -> Option<String> {
        let (told, written) = (truth.told.len(), truth.out.len() + truth.drops.len());
        let packets = scene.packets.len();
        (told != packets || written != packets)
            .then(|| format!("{packets} packets, {told} outcomes, {written} written"))
    }

    /// Without a log packets run in bursts.
    fn bursts(&self, scene: &Scene, truth: &Truth) -> Answer {
        let out = self.path("bursts.pcapng");
        let options = ["--out", &out.display().to_string(), "--maps", "--json"];
        let json = self.json(&self.arguments("run", scene, &options))?;
        let out = packets(&out)?;
        Ok(same_counts(&json["verdicts"], truth)
            .or_else(|| same_packets(&out, &truth.out))
            .or_else(|| (json["maps"] != truth.maps).then(|| "other maps".to_owned())))
    }

    fn workers(&self, scene: &Scene, truth: &Truth) -> Answer {
        let out = self.path("workers.pcapng");
        let options = ["--workers", "2", "--out", &out.display().to_string(), "--maps", "--json"];
        let json = self.json(&self.arguments("run", scene, &options))?;
        let out = packets(&out)?;
        let differs = without_cpus(&json["maps"]) != without_cpus(&truth.maps);
        Ok(same_counts(&json["verdicts"], truth)
            .or_else(|| same_packets(&out, &truth.out))
            .or_else(|| differs.then(|| "other maps".to_owned())))
    }

    fn why(&self, scene: &Scene, truth: &Truth) -> Answer {
        let all = format!("1-{}", scene.packets.len());
        let json = self.json(&self.arguments("why", scene, &["--packet", &all, "--json"]))?;
        let told = json["packets"].as_array().ok_or_else(|| Problem::Json("why".to_owned()))?;
        let told: Vec<_> = told.iter().map(Told::of_json).collect();
        Ok(same_told(&told, &truth.told))
    }

    /// The truth as a test file, which must pass.
    fn test(&self, scene: &Scene, truth: &Truth) -> Answer {
        let path = self.path("scene.test.toml");
        let text = test_file(scene, &truth.with_bytes(), &truth.maps);
        fs::write(&path, text).map_err(|source| io_problem(&path, source))?;
        let done = self.call(&["test".to_owned(), path.display().to_string()])?;
        Ok((done.status != Some(0)).then_some(done.out + &done.text))
    }

    fn diff(&self, scene: &Scene) -> Answer {
        let [target] = scene.subject.targets.as_slice() else { return Ok(None) };
        let mut arguments = self.arguments("diff", scene, &["--new-engine", "plain"]);
        arguments.insert(1, target.clone());
        let done = self.call(&arguments)?;
        Ok((done.status != Some(0)).then_some(done.out + &done.text))
    }

    /// The packets that `diff` names are those of which `run` tells another outcome.
    fn diff_of_two(&self, scene: &Scene, other: &Subject, truth: &Truth) -> Answer {
        let [old] = scene.subject.targets.as_slice() else { return Ok(None) };
        let scene = Scene { subject: other.clone(), ..scene.clone() };
        let others = match self.run(&scene, "other", &[]) {
            // A program that the command refuses has no outcome.
            Err(Problem::Failed { .. }) => return Ok(None),
            others => others?,
        };
        let pairs = (1..).zip(truth.with_bytes().into_iter().zip(others.with_bytes()));
        let right: BTreeSet<u64> = pairs
            .filter(|(_, (this, other))| this.fares_otherwise(other))
            .map(|(number, _)| number)
            .collect();
        let mut arguments = self.arguments(
            "diff",
            &scene,
            &["--json", "--ignore", "maps", "--ignore", "events", "--ignore", "metadata"],
        );
        arguments.insert(1, old.clone());
        let done = self.call(&arguments)?;
        let json: Json = serde_json::from_str(&done.out).map_err(|_| Problem::Json(done.text))?;
        let groups = json["groups"].as_array().into_iter().flatten();
        let found = groups.flat_map(|group| group["packets"].as_array().into_iter().flatten());
        let found: BTreeSet<u64> = found.filter_map(Json::as_u64).collect();
        let differs = found.symmetric_difference(&right).next();
        Ok(differs.map(|first| format!("packet {first} differs in one of diff and run")))
    }

    fn report(&self, scene: &Scene, truth: &Truth) -> Answer {
        let page = self.path("report.html");
        self.ok(&self.arguments("report", scene, &["-o", &page.display().to_string()]))?;
        let page = read(&page)?;
        let counts: Vec<_> =
            counts(&truth.told).as_object().into_iter().flat_map(|counts| counts.values().cloned()).collect();
        let wanted = format!("\"counts\":{}", Json::from(counts));
        Ok((!page.contains(&wanted)).then(|| format!("the page has no {wanted}")))
    }

    fn scan(&self, scene: &Scene, truth: &Truth) -> Answer {
        let out = self.path("scan.pcap");
        let [target] = scene.subject.targets.as_slice() else { return Ok(None) };
        let head = ["scan", "", &scene.capture.display().to_string(), "--program", target, "--json", "--out"];
        let mut arguments: Vec<_> = head.map(str::to_owned).to_vec();
        arguments.push(out.display().to_string());
        arguments.extend(scene.options());
        let json = self.json(&arguments)?;
        let out = packets(&out)?;
        Ok(same_counts(&json["verdicts"], truth).or_else(|| same_packets(&out, &truth.out)))
    }

    fn in_kernel(&self, scene: &Scene) -> Answer {
        let done = self.call(&self.arguments("diff", scene, &["--kernel"]))?;
        Ok((done.status != Some(0)).then_some(done.out + &done.text))
    }

    /// Packets of captures through ports, on the host's own clock and by interface 1 alone.
    fn live(&self, scene: &Scene, truth: &Truth) -> Answer {
        let passed = self.path("live.pcap");
        let mut arguments = vec!["live".to_owned()];
        arguments.extend(scene.subject.targets.iter().cloned());
        arguments.extend(["--port".to_owned(), format!("pcap:{}", scene.capture.display())]);
        arguments.extend(["--pass".to_owned(), format!("pcap:,{}", passed.display()), "--json".to_owned()]);
        arguments.extend(scene.map_options());
        let text = self.ok(&arguments)?;
        let last = text.lines().last().and_then(|line| serde_json::from_str::<Json>(line).ok());
        let counts = last.ok_or_else(|| Problem::Json(arguments.join(" ")))?;
        let right: Vec<_> = truth.with_verdict("pass").collect();
        let found = packets(&passed)?;
        Ok(same_counts(&counts["verdicts"], truth).or_else(|| same_packets(&found, &right)))
    }
}

fn call(command: &mut Command) -> Result<Done, Problem> {
    let output = command.output().map_err(|source| Problem::Io { what: format!("{command:?}"), source })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Done { status: output.status.code(), out: text(&output.stdout), text: text(&output.stderr) })
}

/// The packets of a capture.
fn packets(path: &Path) -> Result<Vec<Vec<u8>>, Problem> {
    let bytes = fs::read(path).map_err(|source| io_problem(path, source))?;
    let bad = |error: paceline::capture::ReadError| io_problem(path, io::Error::other(error.to_string()));
    let mut reader = CaptureReader::new(bytes.as_slice()).map_err(bad)?;
    let (mut burst, mut packets) = (Burst::default(), Vec::new());
    while reader.fill(&mut burst).map_err(bad)? > 0 {
        packets.extend(burst.iter().map(|frame| frame.packet().to_vec()));
    }
    Ok(packets)
}

/// Maps without those that have a value for each CPU, of which there are more with workers.
fn without_cpus(maps: &Json) -> Json {
    match maps {
        Json::Array(elements) if elements.iter().any(|element| element.get("values").is_some()) => Json::Null,
        Json::Object(maps) => {
            let maps = maps.iter().map(|(name, map)| (name.clone(), without_cpus(map)));
            maps.filter(|(_, map)| !map.is_null()).collect::<serde_json::Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

fn same_counts(verdicts: &Json, truth: &Truth) -> Option<String> {
    let right = counts(&truth.told);
    (*verdicts != right).then(|| format!("verdicts {verdicts}, and {right} in run"))
}

fn same_packets(packets: &[Vec<u8>], right: &[Vec<u8>]) -> Option<String> {
    let differs = packets.iter().zip(right).position(|(packet, right)| packet != right);
    let first = differs.or_else(|| (packets.len() != right.len()).then_some(packets.len().min(right.len())));
    first.map(|first| format!("packet {} that comes out is another one", first + 1))
}

fn same_told(told: &[Told], truth: &[Told]) -> Option<String> {
    if told.len() != truth.len() {
        return Some(format!("{} outcomes, and {} in run", told.len(), truth.len()));
    }
    let all = (1..).zip(told.iter().zip(truth));
    all.into_iter().find_map(|(number, (told, truth)): (usize, _)| {
        told.difference(truth).map(|difference| format!("packet {number}: {difference}"))
    })
}

fn same_runs(truth: &Truth, other: &Truth) -> Option<String> {
    same_told(&other.told, &truth.told)
        .or_else(|| same_packets(&other.out, &truth.out))
        .or_else(|| same_packets(&other.drops, &truth.drops))
        .or_else(|| (other.maps != truth.maps).then(|| "other maps".to_owned()))
}
