//! `corpus`: verdicts and results of each program of objects, here and in the kernel, over captures.
//!
//! Each program is a job of a child process. Clocks and random numbers are replaced by sequences in a map, so that runs can
//! be compared.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use paceline::Object;
use paceline::network::Network;
use paceline_testkit::adapted;
use paceline_testkit::child::{self, Event, Jobs};
use paceline_testkit::compare::{Input, Stopped};
use paceline_testkit::determinize::determinize;
use paceline_testkit::kernel::{self, KernelObject, LoadError};
use paceline_testkit::object_runs::{
    ENGINES, Observation, Trial, captured, files_below, fill_from_seed, has_large_maps, on_engine, on_kernel,
    size_maps,
};
use paceline_testkit::say;
use serde_json::{Value, json};

use crate::Outcome;

/// The output of `--json`.
const FIELDS: &str = "\
Fields of --json, one object a line for each program, in the order of the files and of the programs in them:
  job          its number
  object       path of the object
  program      name of the program; null where the object does not load
  ours         accepted; seconds of the verification; instructions that it simulated, or the message of the refusal, and
               whether that is for something unsupported
  kernel       the same without unsupported; accepted is null where it could not be asked, with the reason as message;
               untyped says that it took the program without its types. Not there with --no-kernel
  disagree     whether exactly one of the two accepts it
  replaced     names of the helpers for clocks and random numbers that a sequence in a map replaces
  runs         for each that ran it: its name, and error, or verdicts (packets by verdict: aborted, drop, pass, tx, redirect,
               other), bytes (a digest of all packets as they were left) and maps (a digest of what each map holds, by name).
               Not there for programs that are refused here, and for maps of more than 64 MiB
  differences  for people: each difference between the first of the runs and another; a run that stopped; CRASH and how, where
               the program ended its process, which leaves only job, object and program besides
Digests are comparable within one build of this command. The exit status is 1 if a program has differences.";

#[derive(clap::Args, Clone)]
#[command(after_help = FIELDS)]
pub(crate) struct Options {
    /// Objects, or directories of them
    #[arg(required = true)]
    objects: Vec<PathBuf>,
    /// Captures, or directories of them
    #[arg(long, required = true)]
    captures: Vec<PathBuf>,
    /// Interfaces, routes and neighbors, as `paceline run --network` takes them
    #[arg(long)]
    network: Option<PathBuf>,
    /// Seed of what maps hold
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Packets taken from each capture
    #[arg(long, default_value_t = 1000)]
    packets: u64,
    /// Seconds that one program may take
    #[arg(long, default_value_t = 60)]
    limit: u64,
    /// Leave the kernel out
    #[arg(long)]
    no_kernel: bool,
    /// One object of JSON for each program, instead of a table
    #[arg(long)]
    json: bool,
    /// Run jobs from this one on here
    #[arg(long, hide = true)]
    child: Option<u64>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let jobs = jobs(&options.objects);
    if let Some(first) = options.child {
        return run_jobs(options, &jobs, first);
    }
    let mut options = options.clone();
    options.no_kernel |= !kernel::available_for("corpus in the kernel");
    let mut rows: Vec<Value> = Vec::new();
    let range = Jobs { first: 0, end: jobs.len() as u64, limit: Duration::from_secs(options.limit) };
    child::supervise(
        range,
        |first| child_command(&options, first),
        |event| {
            match event {
                Event::Line(line) => match serde_json::from_str::<Value>(&line) {
                    Ok(row) => rows.push(row),
                    Err(_) => eprintln!("{line}"),
                },
                Event::Failed(number, ran) => {
                    let job = &jobs[number as usize];
                    let crash = format!("CRASH: {ran}");
                    rows.push(json!({"job": number, "object": job.path, "program": job.program, "differences": [crash]}));
                }
            }
            true
        },
    )?;
    rows.iter().for_each(|row| print_row(row, options.json));
    let differ = rows.iter().filter(|row| differs(row)).count();
    let crashed = |row: &Value| row["differences"][0].as_str().is_some_and(|text| text.starts_with("CRASH"));
    let one_sided = rows.iter().filter(|row| row["disagree"] == json!(true)).count();
    eprintln!(
        "{} programs: {} accepted here, {} in the kernel, {one_sided} verdicts that disagree; {differ} programs with differences, {} of them crashes",
        rows.len(),
        rows.iter().filter(|row| row["ours"]["accepted"] == json!(true)).count(),
        rows.iter().filter(|row| row["kernel"]["accepted"] == json!(true)).count(),
        rows.iter().filter(|row| crashed(row)).count()
    );
    Ok(if differ == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn differs(row: &Value) -> bool {
    row["differences"].as_array().is_some_and(|all| !all.is_empty())
}

fn child_command(options: &Options, first: u64) -> Result<Command, String> {
    let mut command = child::command()?;
    command.arg("corpus").args(&options.objects).args(["--child", &first.to_string()]);
    for capture in &options.captures {
        command.arg("--captures").arg(capture);
    }
    if let Some(network) = &options.network {
        command.arg("--network").arg(network);
    }
    command.args(["--seed", &options.seed.to_string(), "--packets", &options.packets.to_string()]);
    if options.no_kernel {
        command.arg("--no-kernel");
    }
    Ok(command)
}

/// A program of an object; `None` if the object does not load.
struct Job {
    path: PathBuf,
    program: Option<String>,
}

fn jobs(objects: &[PathBuf]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for path in files_below(objects, &["o", "elf"]) {
        match adapted::open(&path) {
            Ok(object) => jobs.extend(
                object
                    .programs()
                    .iter()
                    .map(|spec| Job { path: path.clone(), program: Some(spec.name.clone()) }),
            ),
            Err(_) => jobs.push(Job { path, program: None }),
        }
    }
    jobs
}

fn run_jobs(options: &Options, jobs: &[Job], first: u64) -> Outcome {
    let pinned = kernel::pin();
    let captures = files_below(&options.captures, &["pcap", "pcapng"]);
    let inputs: Vec<Input> = captured(&captures, options.packets)?
        .into_iter()
        .map(|data| Input { data, meta: Vec::new() })
        .collect();
    let network = options.network.as_deref().map(read_network).transpose()?;
    for (number, job) in (0_u64..).zip(jobs).skip(first as usize) {
        child::begin(number);
        let row = match adapted::open(&job.path) {
            Err(error) => json!({"ours": {"accepted": false, "message": error.to_string()}}),
            Ok(object) => match &job.program {
                Some(program) => examine(options, &object, program, &inputs, network.as_ref(), pinned.cpu()),
                None => json!({}),
            },
        };
        let mut row = row;
        row["job"] = json!(number);
        row["object"] = json!(job.path);
        row["program"] = json!(job.program);
        say!("{row}");
    }
    child::finish();
    Ok(ExitCode::SUCCESS)
}

fn read_network(path: &Path) -> Result<Arc<Network>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    paceline_network::iproute::parse(&text)
        .map(Arc::new)
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Both verdicts on a program, and the results of its runs.
fn examine(
    options: &Options,
    object: &Object,
    program: &str,
    inputs: &[Input],
    network: Option<&Arc<Network>>,
    cpu: usize,
) -> Value {
    let mut row = json!({"differences": []});
    let mut object = object.clone();
    size_maps(&mut object.specs_mut().maps);
    let start = Instant::now();
    let Some(spec) = object.programs().iter().find(|spec| spec.name == program) else { return row };
    let verified = object.verify(spec);
    let seconds = start.elapsed().as_secs_f64();
    row["ours"] = match &verified {
        Ok(verified) => {
            let instructions = verified.stats().instructions;
            json!({"accepted": true, "seconds": seconds, "instructions": instructions})
        }
        Err(refused) => json!({"accepted": false, "seconds": seconds, "message": refused.refusal.to_string(),
            "unsupported": refused.is_unsupported()}),
    };
    if !options.no_kernel {
        row["kernel"] = kernel_verdict(&object, program);
    }
    row["disagree"] = match (&row["ours"]["accepted"], &row["kernel"]["accepted"]) {
        (Value::Bool(ours), Value::Bool(kernel)) => json!(ours != kernel),
        _ => json!(false),
    };
    if verified.is_err() || has_large_maps(&object) {
        return row;
    }
    let depends_on_kernel = depends_on_kernel(spec);
    fill_from_seed(&mut object, options.seed);
    let specs = object.specs_mut();
    let types = specs.btf.as_mut().map(Arc::make_mut);
    row["replaced"] = json!(determinize(&mut specs.programs, &mut specs.maps, types));
    let seed = options.seed;
    let trial = Trial { object: &object, program, inputs, seed, engines: &ENGINES, network, cpu };
    let accepted = row["kernel"]["accepted"] == json!(true);
    let runs = runs(&trial, accepted && !depends_on_kernel);
    row["runs"] = json!(runs.iter().map(|(name, ran)| summary(&trial, name, ran)).collect::<Vec<_>>());
    row["differences"] = json!(differences(&trial, &runs));
    row
}

/// Whether the program's result in the kernel depends on the kernel's tables and clocks.
fn depends_on_kernel(spec: &paceline::ProgramSpec) -> bool {
    use paceline::isa::{Callee, Insn};
    let asks =
        |name: &str| matches!(name, "bpf_fib_lookup" | "bpf_check_mtu") || name.starts_with("bpf_timer");
    let helper = |id: &i32| paceline::helper::Helper::from_imm(*id);
    paceline::isa::decode(&spec.insns).is_ok_and(|code| {
        code.iter().any(|(_, insn)| {
            matches!(insn, Insn::Call(Callee::Helper(id)) if helper(id).is_some_and(|helper| asks(helper.name)))
        })
    })
}

fn kernel_verdict(object: &Object, program: &str) -> Value {
    let Some(spec) = object.programs().iter().find(|spec| spec.name == program) else { return Value::Null };
    let options = kernel::LoadOptions { btf: object.btf(), leave_out_types: true, ..Default::default() };
    match KernelObject::verify_timed(object.maps(), spec, options, 1) {
        Ok((stats, untyped)) => json!({"accepted": true, "seconds": stats.time.as_secs_f64(),
            "instructions": stats.instructions, "untyped": untyped}),
        Err(LoadError::Program { error, .. }) => {
            json!({"accepted": false, "message": format!("{}: {}", error.errno, error.reason())})
        }
        Err(error) => json!({"accepted": null, "message": error.to_string()}),
    }
}

type Runs = Vec<(String, Result<Observation, Stopped>)>;

fn runs(trial: &Trial<'_>, kernel: bool) -> Runs {
    let mut runs = Runs::new();
    if kernel {
        match on_kernel(trial, true) {
            Ok(run) => runs.extend(run.ran.map(|ran| ("kernel".to_owned(), ran))),
            Err(error) => {
                runs.push(("kernel".to_owned(), Err(Stopped::Refused(paceline::with_causes(&error)))))
            }
        }
    }
    // Other calls than those replaced do not change the verdict.
    let verified = trial.object.programs().iter().find(|spec| spec.name == trial.program);
    let verified = match verified.map(|spec| trial.object.verify(spec)) {
        Some(Ok(verified)) => verified,
        Some(Err(refused)) => {
            let reason = Stopped::Refused(refused.to_string());
            runs.push(("with replaced clocks".to_owned(), Err(reason)));
            return runs;
        }
        None => return runs,
    };
    for engine in trial.engines.iter().copied().filter(|engine| engine.is_available()) {
        for bursts in [false, true] {
            let name = format!("{engine}{}", if bursts { " in bursts" } else { "" });
            let ran = on_engine(trial, &verified, engine, bursts);
            runs.push((name, ran));
        }
    }
    runs
}

/// Verdicts, and digests of packets and maps, as JSON.
fn summary(trial: &Trial<'_>, name: &str, ran: &Result<Observation, Stopped>) -> Value {
    match ran {
        Err(error) => json!({"name": name, "error": error.to_string()}),
        Ok(observation) => {
            let mut verdicts = [0_u64; 6];
            observation.packets.iter().for_each(|left| verdicts[left.code.min(5) as usize] += 1);
            let packets: Vec<_> = observation.packets.iter().map(|left| (&left.data, &left.meta)).collect();
            let names = trial.object.maps().iter().zip(&observation.maps);
            let maps: serde_json::Map<String, Value> = names
                .filter_map(|(spec, contents)| Some((spec.name.clone(), json!(digest(contents.as_ref()?)))))
                .collect();
            json!({"name": name, "verdicts": verdicts, "bytes": digest(&packets), "maps": maps})
        }
    }
}

/// A digest that is equal for equal values in every run of this command.
fn digest(of: &impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn differences(trial: &Trial<'_>, runs: &Runs) -> Vec<String> {
    let mut differences = Vec::new();
    let mut reference: Option<(&String, &Observation)> = None;
    for (name, ran) in runs {
        match (ran, reference) {
            // Such as maps that cannot be created; these are in the summaries.
            (Err(Stopped::Refused(_)), _) => {}
            (Err(error), _) => differences.push(format!("{name}: {error}")),
            (Ok(observation), None) => reference = Some((name, observation)),
            (Ok(observation), Some((other, expected))) => {
                differences.extend(expected.difference(observation, [other, name], trial));
            }
        }
    }
    differences
}

fn print_row(row: &Value, as_json: bool) {
    if as_json {
        say!("{row}");
        return;
    }
    let name = Path::new(row["object"].as_str().unwrap_or("?")).file_stem().unwrap_or_default();
    let program = row["program"].as_str().unwrap_or("-");
    let side = |side: &Value| match &side["accepted"] {
        Value::Bool(true) => format!(
            "accepted {:>7} insns {:>9.1} ms",
            side["instructions"].as_u64().unwrap_or(0),
            1e3 * side["seconds"].as_f64().unwrap_or(0.0)
        ),
        Value::Bool(false) => format!("refused  {:>26}", ""),
        _ => format!("-        {:>26}", ""),
    };
    let verdicts = row["runs"].as_array().and_then(|runs| runs.iter().find(|run| run["verdicts"].is_array()));
    let verdicts = verdicts.map_or_else(|| "-".to_owned(), |run| run["verdicts"].to_string());
    let agrees = match (row["runs"].is_array(), differs(row)) {
        (_, true) => "DIFFERS",
        (true, false) => "agrees",
        (false, false) => "not run",
    };
    let label = format!("{}:{program}", name.to_string_lossy());
    say!("{label:48} ours {}  kernel {}  {verdicts:28} {agrees}", side(&row["ours"]), side(&row["kernel"]));
    for (who, side) in [("ours", &row["ours"]), ("kernel", &row["kernel"])] {
        if let Some(message) = side["message"].as_str() {
            say!("    {who}: {message}");
        }
    }
    for difference in row["differences"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        for line in difference.lines() {
            say!("    {}", line.chars().take(400).collect::<String>());
        }
    }
}
