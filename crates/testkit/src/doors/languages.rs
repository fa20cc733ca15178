//! Doors of other languages: a process that reads names of files with scenes, and tells what becomes of each packet.
//!
//! A scene is lines of words between tabs, which C reads without a library: `program PATH NAME`, `classifier yes`, `element MAP KEY VALUE`
//! (JSON), `seed N`, `queue N`, `context MEMBER VALUE`, `packet TIME_NS IFINDEX BYTES`.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value as Json;

use super::problem::{Problem, io_problem, read};
use super::scene::Scene;
use super::told::Told;
use crate::hex::hex;

/// The script that is the door in Python.
const PYTHON: &str = include_str!("door.py");

/// A language.
#[derive(Debug)]
pub(super) struct Language {
    pub(super) name: &'static str,
    /// Its program and arguments.
    program: PathBuf,
    arguments: Vec<PathBuf>,
    /// A folder for its files.
    folder: PathBuf,
    /// Its process, if it runs.
    process: Option<Process>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Language {
    /// A Python that has the package.
    pub(super) fn python(program: &Path, folder: &Path) -> Result<Self, Problem> {
        let script = folder.join("door.py");
        fs::write(&script, PYTHON).map_err(|source| io_problem(&script, source))?;
        Ok(Self::new("python", program, vec![script], folder))
    }

    /// The compiled `door.c`.
    pub(super) fn c(program: &Path, folder: &Path) -> Self {
        Self::new("c", program, Vec::new(), folder)
    }

    fn new(name: &'static str, program: &Path, arguments: Vec<PathBuf>, folder: &Path) -> Self {
        Self { name, program: program.to_owned(), arguments, folder: folder.to_owned(), process: None }
    }

    fn path(&self, suffix: &str) -> PathBuf {
        self.folder.join(format!("{}.{suffix}", self.name))
    }

    fn start(&self) -> Result<Process, Problem> {
        let errors = self.path("stderr");
        let errors = File::create(&errors).map_err(|source| io_problem(&errors, source))?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().map_err(|source| io_problem(&self.program, source))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io_problem(&self.program, io::ErrorKind::BrokenPipe.into()));
        };
        Ok(Process { child, input, output: BufReader::new(output) })
    }

    /// What it tells of each packet of a scene; `None` if it does not load the programs.
    pub(super) fn tell(&mut self, scene: &Scene) -> Result<Option<Vec<Told>>, Problem> {
        let path = self.path("scene");
        fs::write(&path, text(scene)?).map_err(|source| io_problem(&path, source))?;
        let mut process = match self.process.take() {
            Some(process) => process,
            None => self.start()?,
        };
        let sent = writeln!(process.input, "{}", path.display()).and_then(|()| process.input.flush());
        sent.map_err(|source| io_problem(&self.program, source))?;
        let (mut told, mut is_refused) = (Vec::new(), false);
        loop {
            let mut line = String::new();
            let read_bytes = process.output.read_line(&mut line);
            if read_bytes.map_err(|source| io_problem(&self.program, source))? == 0 {
                let (command, stderr) = (self.name.to_owned(), read(&self.path("stderr"))?);
                return Err(Problem::Failed { command, stderr });
            }
            if line.trim().is_empty() {
                break;
            }
            let json: Json = serde_json::from_str(&line).map_err(|_| Problem::Json(line.clone()))?;
            is_refused |= json["refused"] == true;
            told.push(Told::of_json(&json));
        }
        self.process = Some(process);
        Ok((!is_refused).then_some(told))
    }
}

/// The scene as lines.
fn text(scene: &Scene) -> Result<String, Problem> {
    let mut text = String::new();
    for target in &scene.subject.targets {
        let (path, name) = target.rsplit_once(':').unwrap_or((target, ""));
        let _ = writeln!(text, "program\t{path}\t{name}");
    }
    if scene.subject.is_classifier {
        text.push_str("classifier\tyes\n");
    }
    for (name, path) in &scene.maps {
        let elements: Json = serde_json::from_str(&read(path)?).map_err(|_| Problem::Json(name.clone()))?;
        for element in elements.as_array().into_iter().flatten() {
            let _ = writeln!(text, "element\t{name}\t{}\t{}", element["key"], element["value"]);
        }
    }
    let _ = writeln!(text, "seed\t{}\nqueue\t{}", scene.seed, scene.queue.unwrap_or(0));
    for (name, value) in &scene.context {
        let _ = writeln!(text, "context\t{name}\t{value}");
    }
    for packet in &scene.packets {
        let ingress = scene.ingress.unwrap_or(packet.interface + 1);
        let _ = writeln!(text, "packet\t{}\t{ingress}\t{}", packet.time_ns, hex(&packet.bytes));
    }
    Ok(text)
}
