//! Parts of the command line that commands share.

use std::borrow::Cow;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Styles};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ErrorKind};
use paceline::{Engine, LookAhead};

/// Colors of help and of errors of usage.
pub(crate) const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Engines by their names.
pub(crate) fn engine_names() -> impl TypedValueParser<Value = Engine> {
    PossibleValuesParser::new(Engine::ALL.map(Engine::name)).try_map(|name| name.parse::<Engine>())
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

/// An error of usage, whose cause is in words where a number or address of Rust's own parsers is wrong.
pub(crate) fn in_words(error: clap::Error, command: &clap::Command) -> clap::Error {
    let text = |kind| error.get(kind).map(ToString::to_string);
    let (Some(argument), Some(value)) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue))
    else {
        return error;
    };
    let Some(cause) = std::error::Error::source(&error).and_then(|source| cause(source, &value)) else {
        return error;
    };
    let text = format!("invalid value '{value}' for '{argument}': {cause}");
    clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command)
}

fn cause(source: &(dyn std::error::Error + 'static), value: &str) -> Option<Cow<'static, str>> {
    if let Some(error) = source.downcast_ref::<ParseIntError>() {
        return Some(Cow::Borrowed(match error.kind() {
            IntErrorKind::PosOverflow => "the number is too large",
            IntErrorKind::NegOverflow => "the number is too small",
            IntErrorKind::InvalidDigit
                if value.strip_prefix('-').is_some_and(|rest| rest.parse::<u64>().is_ok()) =>
            {
                "it cannot be negative"
            }
            _ => "it must be a whole number",
        }));
    }
    if source.is::<ParseFloatError>() {
        return Some("it must be a number".into());
    }
    // clap has a range of Rust's in its message, and no type for it.
    let text = source.to_string();
    let (_, range) = text.split_once(" is not in ")?;
    let (least, most) = range.split_once("..")?;
    Some(match most.trim_start_matches('=') {
        most if most == u64::MAX.to_string() || most == i64::MAX.to_string() => {
            format!("it must be at least {least}").into()
        }
        most => format!("it must be from {least} to {most}").into(),
    })
}

/// The description of a command line in which a number below 0 is a value of the option before it, and not another option.
pub(crate) fn taking_negative_numbers(command: clap::Command) -> clap::Command {
    let takes_value = |arg: &clap::Arg| {
        !arg.is_positional()
            && arg.get_action().takes_values()
            && arg.get_num_args().is_none_or(|values| values.takes_values())
    };
    let command =
        command.mut_args(|arg| if takes_value(&arg) { arg.allow_negative_numbers(true) } else { arg });
    command.mut_subcommands(taking_negative_numbers)
}

/// Seconds, such as `0.5`.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds: f64 = text.parse().map_err(|_| "it must be a number of seconds")?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| "it must be a number of seconds")?;
    if time.is_zero() { Err("it must be more than 0") } else { Ok(time) }
}
