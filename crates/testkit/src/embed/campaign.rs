//! Sequences in processes of their own, what became of them, and the fewest operations that still do it.

use std::fmt;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A sequence may take so long.
const PATIENCE: Duration = Duration::from_secs(90);

/// Operations are left out for so long.
const SHRINKING: Duration = Duration::from_secs(20);

/// What a campaign runs.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The program that runs one sequence.
    pub program: PathBuf,
    /// Its arguments besides the seed and the operations to leave out.
    pub arguments: Vec<String>,
}

/// How a sequence failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The operation that ran last.
    pub last: String,
    /// What an oracle said, or how the process ended.
    pub words: String,
}

/// A sequence that fails.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// The operations that can be left out.
    pub skip: Vec<usize>,
    /// How it fails.
    pub found: Found,
}

impl Found {
    /// The same fault, as far as its words without numbers tell.
    #[must_use]
    pub fn signature(&self) -> String {
        let words: String = self.words.chars().filter(|c| !c.is_ascii_digit()).take(70).collect();
        format!("{}: {words}", self.last)
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in `{}`: {}", self.last, self.words)
    }
}

/// Waits for a child for a limited time; `None` if it had to be killed.
fn wait(child: &mut Child) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Campaign {
    /// Runs a sequence without some of its operations.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn run(&self, seed: u64, skip: &[usize]) -> Result<Option<Found>, String> {
        let skipped: Vec<String> = skip.iter().map(usize::to_string).collect();
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(["--child", "--seed", &seed.to_string()]);
        // What glibc keeps for reuse counts as in use.
        command.env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0");
        if !skipped.is_empty() {
            command.args(["--skip", &skipped.join(",")]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut run = || -> std::io::Result<_> {
            let mut child = command.spawn()?;
            let mut pipe = child.stderr.take();
            let reader = std::thread::spawn(move || {
                let mut bytes = Vec::new();
                // What is no text any more is of no use.
                let _ = pipe.as_mut().map(|pipe| pipe.read_to_end(&mut bytes));
                String::from_utf8_lossy(&bytes).into_owned()
            });
            let status = wait(&mut child)?;
            Ok((status, reader.join().unwrap_or_default()))
        };
        let (status, text) = run().map_err(|error| format!("{}: {error}", self.program.display()))?;
        Ok(judge(status, &text))
    }

    /// Leaves out operations, the last first, as long as the sequence fails in the same way.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn shrink(&self, seed: u64, length: usize, found: Found) -> Result<Failure, String> {
        let mut failure = Failure { seed, skip: Vec::new(), found };
        let start = Instant::now();
        for index in (0..length).rev().take_while(|_| start.elapsed() < SHRINKING) {
            let skip = [failure.skip.clone(), vec![index]].concat();
            match self.run(seed, &skip)? {
                Some(found) if found.signature() == failure.found.signature() => failure.skip = skip,
                _ => {}
            }
        }
        failure.skip.sort_unstable();
        Ok(failure)
    }
}

/// What an ended child tells.
fn judge(status: Option<ExitStatus>, text: &str) -> Option<Found> {
    let last = text.lines().rev().find_map(|line| line.strip_prefix("op ")).unwrap_or("0 start");
    let last = last.split_once(' ').map_or(last, |(_, name)| name).to_owned();
    let line =
        |start: &str| text.lines().find_map(|line| line.split_once(start)).map(|(_, rest)| rest.to_owned());
    let told = || {
        let abort = || line("memory allocation of ").map(|bytes| format!("memory allocation of {bytes}"));
        line("FAIL ").or_else(|| line("ERROR: AddressSanitizer: ")).or_else(abort).or_else(|| {
            let panic =
                text.lines().skip_while(|line| !line.contains("panicked at")).take(2).collect::<Vec<_>>();
            (!panic.is_empty()).then(|| panic.join(" "))
        })
    };
    let words = match status {
        Some(status) if status.success() => return None,
        None => "does not end".to_owned(),
        Some(status) => match (status.signal(), told()) {
            (Some(signal), told) => format!("signal {signal} {}", told.unwrap_or_default()),
            (None, Some(told)) => told,
            (None, None) => format!("{status}"),
        },
    };
    let child = line("child: ").map_or_else(String::new, |words| format!(" ({words})"));
    Some(Found { last, words: words + &child })
}
