//! Parts of the command line that commands share.

use std::time::Duration;

use clap::builder::styling::{AnsiColor, Styles};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use paceline::{Engine, LookAhead};

/// Colors of help and of errors of usage.
pub(crate) const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Engines by their names.
pub(crate) fn engine_names() -> impl TypedValueParser<Value = Engine> {
    // `checked-jit` is for tests: slower than `jit`, with the same results.
    let name = |engine: Engine| PossibleValue::new(engine.name()).hide(engine == Engine::CheckedJit);
    PossibleValuesParser::new(Engine::ALL.map(name)).try_map(|name| name.parse::<Engine>())
}

/// Settings of look-ups ahead by their names.
pub(crate) fn look_ahead_names() -> impl TypedValueParser<Value = LookAhead> {
    let names = PossibleValuesParser::new(LookAhead::ALL.map(LookAhead::name));
    names.try_map(|name| name.parse::<LookAhead>())
}

/// An error of usage that the description of a command's arguments cannot express.
pub(crate) fn usage_error<A: clap::Args>(command: &'static str, kind: ErrorKind, text: &str) -> clap::Error {
    let described = clap::Command::new(command).bin_name(format!("paceline {command}")).styles(STYLES);
    let mut described = A::augment_args(described);
    described.build();
    described.error(kind, text)
}

/// Seconds, such as `0.5`.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds: f64 = text.parse().map_err(|_| "it must be a number of seconds")?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| "it must be a number of seconds")?;
    if time.is_zero() { Err("it must be more than 0") } else { Ok(time) }
}
