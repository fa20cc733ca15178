//! `embed`: random sequences of the public API, each in a process of its own.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use paceline::Engine;
use paceline_frame::guard::Side;
use paceline_testkit::embed::{self, Campaign, Failure, Settings};
use paceline_testkit::say;

use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seed of the first sequence; the others follow
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many sequences
    #[arg(long, default_value_t = 100)]
    count: u64,
    /// Stop after so many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Engines to choose from, separated by commas
    #[arg(long, value_delimiter = ',', default_values = ["jit", "threaded", "plain"])]
    engines: Vec<String>,
    /// Where the pages are that nothing may touch: after what programs reach, before it, by turns, or nowhere
    #[arg(long, default_value = "turns", value_parser = ["end", "start", "turns", "off"])]
    guard: String,
    /// Operations of one theme only, or of one name
    #[arg(long)]
    theme: Option<String>,
    /// Go on after a failure, and list the different ones in the end
    #[arg(long)]
    keep_going: bool,
    /// Show the operations of a sequence that fails without shrinking it
    #[arg(long)]
    keep: bool,
    /// Run one sequence in this process
    #[arg(long, hide = true)]
    child: bool,
    /// Operations to leave out
    #[arg(long, value_delimiter = ',', requires = "child", hide = true)]
    skip: Vec<usize>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    if let Some(theme) = &options.theme
        && !embed::themes().contains(&theme.as_str())
    {
        return Err(format!("no theme {theme} (available: {})", embed::themes().join(", ")));
    }
    if options.child { child(options) } else { campaign(options) }
}

fn child(options: &Options) -> Outcome {
    let side = match (options.guard.as_str(), options.seed % 2) {
        ("off", _) => None,
        ("start", _) | ("turns", 1) => Some(Side::Start),
        _ => Some(Side::End),
    };
    if let Some(side) = side
        && !paceline_frame::guard::enable(side)
    {
        return Err("memory cannot be guarded".to_owned());
    }
    let parse = |name: &String| name.parse::<Engine>().map_err(|error| paceline::with_causes(&error));
    let engines = options.engines.iter().map(parse).collect::<Result<_, _>>()?;
    let settings = Settings { seed: options.seed, engines, theme: options.theme.clone() };
    match embed::run(&settings, |line| eprintln!("op {line}"), |index| !options.skip.contains(&index)) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(words) => {
            eprintln!("FAIL {words}");
            Ok(ExitCode::from(9))
        }
    }
}

fn arguments(options: &Options) -> Vec<String> {
    let mut arguments = vec![
        "embed".to_owned(),
        "--guard".to_owned(),
        options.guard.clone(),
        "--engines".to_owned(),
        options.engines.join(","),
    ];
    arguments.extend(options.theme.iter().flat_map(|theme| ["--theme".to_owned(), theme.clone()]));
    arguments
}

fn show(options: &Options, failure: &Failure) {
    say!("seed {} fails {}", failure.seed, failure.found);
    for (index, name) in embed::names(failure.seed, options.theme.as_deref()).into_iter().enumerate() {
        if !failure.skip.contains(&index) {
            say!("  {index:2} {name}");
        }
    }
    let skip: Vec<String> = failure.skip.iter().map(usize::to_string).collect();
    let skip = if skip.is_empty() { String::new() } else { format!(" --skip {}", skip.join(",")) };
    say!(
        "  GLIBC_TUNABLES=glibc.malloc.tcache_count=0 paceline-testkit {} --child --seed {}{skip}",
        arguments(options).join(" "),
        failure.seed
    );
}

fn campaign(options: &Options) -> Outcome {
    let campaign = Campaign { arguments: arguments(options) };
    let (start, limit) = (Instant::now(), options.seconds.map(Duration::from_secs));
    let mut failures: BTreeMap<String, (u64, Duration, Failure)> = BTreeMap::new();
    let mut runs = 0;
    for seed in (0..options.count).map(|n| options.seed.wrapping_add(n)) {
        if limit.is_some_and(|limit| start.elapsed() > limit) {
            break;
        }
        runs += 1;
        let Some(found) = campaign.run(seed, &[])? else { continue };
        let signature = found.signature();
        if let Some((count, ..)) = failures.get_mut(&signature) {
            *count += 1;
            continue;
        }
        let after = start.elapsed();
        let length = embed::names(seed, options.theme.as_deref()).len();
        let failure = if options.keep {
            Failure { seed, skip: Vec::new(), found }
        } else {
            campaign.shrink(seed, length, found)?
        };
        say!("after {:.1} s, {runs} sequences:", after.as_secs_f64());
        show(options, &failure);
        failures.insert(signature, (1, after, failure));
        if !options.keep_going {
            break;
        }
    }
    say!("{runs} sequences in {:.1} s, {} different failures", start.elapsed().as_secs_f64(), failures.len());
    for (count, after, failure) in failures.values() {
        say!(
            "{count:5} times, first after {:.1} s, seed {}: {}",
            after.as_secs_f64(),
            failure.seed,
            failure.found
        );
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
