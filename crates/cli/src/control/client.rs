//! Requests to a live run.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueHint;
use serde_json::Value as Json;

use super::error::ControlError;
use super::request::Request;
use super::version::VERSION;
use crate::common::args::parse_seconds;

/// The option that names a live run.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ControlArgs {
    /// Control socket of the live run.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, env = "PACELINE_CONTROL")]
    control: PathBuf,
    /// Seconds to wait for the answer of a run that does not go on; the request may take effect afterwards. Packets that follow an answer
    /// (`capture`) have no such limit.
    #[arg(long, value_name = "N", default_value = "10", value_parser = parse_seconds)]
    timeout: Duration,
}

/// Sends a request, whose version is added, and returns the answer.
///
/// # Errors
/// [`ControlError`]; a refusal has the words of the live run.
pub(crate) fn request(args: &ControlArgs, request: &Request) -> Result<Json, ControlError> {
    Ok(send(args, request)?.0)
}

/// The same for a request whose answer is followed by bytes, which can be read from the connection.
///
/// # Errors
/// [`ControlError`]
pub(crate) fn request_stream(
    args: &ControlArgs,
    request: &Request,
) -> Result<BufReader<UnixStream>, ControlError> {
    Ok(send(args, request)?.1)
}

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

fn send(args: &ControlArgs, request: &Request) -> Result<(Json, BufReader<UnixStream>), ControlError> {
    let path = || args.control.display().to_string();
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::WouldBlock => ControlError::Silent { path: path(), timeout: args.timeout },
        _ => ControlError::Socket { path: path(), source },
    };
    let mut request = request.to_json();
    request["version"] = VERSION.into();
    let mut stream = UnixStream::connect(&args.control).map_err(|source| match source.kind() {
        // A socket's path of that length is refused before anybody looks for it.
        io::ErrorKind::InvalidInput => ControlError::PathTooLong { path: path() },
        io::ErrorKind::ConnectionRefused if !is_socket(&args.control) => {
            ControlError::NoSocket { path: path() }
        }
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            ControlError::NotRunning { path: path() }
        }
        _ => failed(source),
    })?;
    let limit = |stream: &UnixStream, time| {
        stream.set_read_timeout(time).and_then(|()| stream.set_write_timeout(time)).map_err(failed)
    };
    limit(&stream, Some(args.timeout))?;
    writeln!(stream, "{request}").map_err(failed)?;
    let (mut line, mut reader) = (String::new(), BufReader::new(stream));
    reader.read_line(&mut line).map_err(failed)?;
    // Bytes that follow the answer come when there are some.
    limit(reader.get_ref(), None)?;
    let mut answer: Json =
        serde_json::from_str(&line).map_err(|source| ControlError::Answer { path: path(), source })?;
    match answer.get("error").and_then(Json::as_str) {
        Some(error) => Err(ControlError::Refused(error.to_owned())),
        None => Ok((answer["ok"].take(), reader)),
    }
}
