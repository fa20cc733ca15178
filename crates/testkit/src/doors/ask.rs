//! One scene through all doors.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use paceline::Burst;
use paceline::capture::CaptureReader;
use serde_json::Value as Json;

use super::scene::Scene;
use super::told::{Told, counts};

/// The commands, and a folder for what they write.
#[derive(Debug)]
pub struct Doors {
    /// The command `paceline`.
    pub command: PathBuf,
    /// A folder of its own.
    pub folder: PathBuf,
    /// Whether the kernel is asked, which takes root.
    pub kernel: bool,
    /// A Python that has the package, if it is asked.
    pub python: Option<PathBuf>,
}

/// The reason why a door does not answer.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A command ends with an error.
    #[error("{command}: {stderr}")]
    Failed {
        /// The command line.
        command: String,
        /// What it prints to standard error.
        stderr: String,
    },
    /// A command does not start, or its file is not there.
    #[error("{what}: {source}")]
    Io {
        /// The command or file.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// A command prints other JSON than it says.
    #[error("{0}: no such JSON")]
    Json(String),
}

/// What `run` tells, which the others are compared with.
struct Truth {
    told: Vec<Told>,
    /// Packets that were passed, sent or redirected, and those that were dropped.
    out: Vec<Vec<u8>>,
    drops: Vec<Vec<u8>>,
    maps: Json,
}

struct Done {
    status: Option<i32>,
    out: String,
    text: String,
}

type Answer = Result<Option<String>, Problem>;

impl Doors {
    /// The differences between the doors, each with its door. A subject that `run` refuses is an error.
    ///
    /// # Errors
    /// [`Problem`]
    pub fn differences(&self, scene: &Scene) -> Result<Vec<String>, Problem> {
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
        ask("report", self.report(scene, &truth))?;
        if scene.subject.is_program() {
            ask("scan", self.scan(scene, &truth))?;
        }
        if self.kernel && scene.subject.is_of_kernel && scene.queue.is_none() && scene.ingress.is_none() {
            ask("kernel", self.in_kernel(scene))?;
        }
        if let Some(python) = self.python.as_ref().filter(|_| scene.maps.is_empty()) {
            ask("python", self.python(python, scene, &truth))?;
        }
        Ok(all)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn call(&self, arguments: &[String]) -> Result<Done, Problem> {
        call(Command::new(&self.command).args(arguments))
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
        Ok(same_counts(&json["verdicts"], truth)
            .or_else(|| same_packets(&packets(&out).ok()?, &truth.out))
            .or_else(|| (json["maps"] != truth.maps).then(|| "other maps".to_owned())))
    }

    fn workers(&self, scene: &Scene, truth: &Truth) -> Answer {
        let out = self.path("workers.pcapng");
        let options = ["--workers", "2", "--out", &out.display().to_string(), "--json"];
        let json = self.json(&self.arguments("run", scene, &options))?;
        let out = packets(&out)?;
        Ok(same_counts(&json["verdicts"], truth).or_else(|| same_packets(&out, &truth.out)))
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
        let text = test_file(scene, truth);
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

    fn python(&self, python: &Path, scene: &Scene, truth: &Truth) -> Answer {
        let script = self.path("door.py");
        fs::write(&script, PYTHON).map_err(|source| io_problem(&script, source))?;
        let [target] = scene.subject.targets.as_slice() else { return Ok(None) };
        let given = serde_json::json!({
            "target": target,
            "ingress": scene.ingress,
            "queue": scene.queue.unwrap_or(0),
            "seed": scene.seed,
            "context": scene.context.iter().map(|(name, value)| ((*name).to_owned(), Json::from(*value))).collect::<serde_json::Map<_, _>>(),
            "packets": scene.packets.iter().map(|packet| serde_json::json!({
                "bytes": hex(&packet.bytes), "time": packet.time_ns, "interface": packet.interface,
            })).collect::<Vec<_>>(),
        });
        let input = self.path("door.json");
        fs::write(&input, given.to_string()).map_err(|source| io_problem(&input, source))?;
        let done = call(Command::new(python).arg(&script).arg(&input))?;
        if done.status != Some(0) {
            return Err(Problem::Failed { command: "python".to_owned(), stderr: done.text });
        }
        let line = |line: &str| serde_json::from_str(line).map(|json| Told::of_json(&json));
        let told = done.out.lines().map(line).collect::<Result<Vec<_>, _>>();
        Ok(same_told(&told.map_err(|_| Problem::Json("python".to_owned()))?, &truth.told))
    }
}

/// Prints what a run of each packet gives, as the command does. Random numbers go on from packet to packet, so the seed is given once.
const PYTHON: &str = r#"import json, sys
import paceline as pl
given = json.load(open(sys.argv[1]))
path, _, name = given["target"].rpartition(":")
program = pl.load(path, program=name)
for number, packet in enumerate(given["packets"]):
    ingress = given["ingress"] if given["ingress"] is not None else packet["interface"] + 1
    run = program.run(bytes.fromhex(packet["bytes"]), ingress=ingress, queue=given["queue"], context=given["context"],
                      time=packet["time"], **({"seed": given["seed"]} if number == 0 else {}))
    told = {"verdict": str(run.verdict.name).lower(), "action": run.action, "length": len(run.data)}
    if run.context is not None:
        told["context"] = {name: value for name, value in run.context.items() if value}
    print(json.dumps(told))
"#;

fn call(command: &mut Command) -> Result<Done, Problem> {
    let output = command.output().map_err(|source| Problem::Io { what: format!("{command:?}"), source })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Done { status: output.status.code(), out: text(&output.stdout), text: text(&output.stderr) })
}

fn io_problem(path: &Path, source: io::Error) -> Problem {
    Problem::Io { what: path.display().to_string(), source }
}

fn read(path: &Path) -> Result<String, Problem> {
    fs::read_to_string(path).map_err(|source| io_problem(path, source))
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A test of all packets, which expects what `run` tells of each.
fn test_file(scene: &Scene, truth: &Truth) -> String {
    let targets: Vec<_> = scene.subject.targets.iter().map(|target| format!("{target:?}")).collect();
    let mut text = match targets.as_slice() {
        [target] => format!("object = {target}\n"),
        several => format!("objects = [{}]\n", several.join(", ")),
    };
    for (name, path) in &scene.maps {
        let _ = writeln!(text, "maps.{name:?} = {:?}", path.display().to_string());
    }
    let _ = write!(text, "seed = {}\n\n[[test]]\nname = \"scene\"\nstep = [\n", scene.seed);
    let (mut time_ns, mut out) = (0, truth.out.iter());
    for (packet, told) in scene.packets.iter().zip(&truth.told) {
        let ingress = scene.ingress.unwrap_or(packet.interface + 1);
        let wait = (packet.time_ns - time_ns) as f64 / 1e9;
        time_ns = packet.time_ns;
        let _ = write!(
            text,
            "  {{ packet = {{ hex = \"{}\" }}, wait = {wait:?}, ingress = {ingress}, queue = {}",
            hex(&packet.bytes),
            scene.queue.unwrap_or(0)
        );
        if !scene.context.is_empty() {
            let members = scene.context.iter().map(|(name, value)| format!("\"{name}\" = {value}"));
            let _ = write!(text, ", context = {{ {} }}", members.collect::<Vec<_>>().join(", "));
        }
        let value = |name: &str| told.get(name).cloned().unwrap_or(Json::Null);
        let verdict = value("verdict");
        let _ = write!(text, ", verdict = {verdict}, returns = {}", value("returns"));
        let is_dropped = verdict == "drop" || verdict == "aborted";
        if let Some(bytes) = (!is_dropped).then(|| out.next()).flatten() {
            let _ = write!(text, ", out = {{ hex = \"{}\" }}", hex(bytes));
        }
        if let Json::Object(context) = value("context") {
            let members = context.iter().map(|(name, value)| format!("\"{name}\" = {value}"));
            let _ = write!(text, ", context_out = {{ {} }}", members.collect::<Vec<_>>().join(", "));
        }
        text.push_str(" },\n");
    }
    text + "]\n"
}
