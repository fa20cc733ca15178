//! The side of the live run: a thread that accepts connections, and one for each connection.
//!
//! Requests are answered by the thread that runs the command, which passes packets to nobody, so that a client costs the workers
//! nothing. Connections, the length of requests and the time for them are bounded.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::Scope;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::process::umask;
use serde_json::{Value as Json, json};

use super::connection::{LOOK, PATIENCE, Place, accept};
use super::error::ControlError;
use super::question::{Answer, ENDED, Question, Stream, ask};
use super::request::Request;
use super::version::VERSION;

/// Maximum length of a request in bytes.
const MAX_REQUEST: u64 = 1 << 16;
/// Time within which a client must take a part of a stream.
const STREAM_PATIENCE: Duration = Duration::from_secs(5);

/// A control socket, which is removed with the value.
pub(crate) struct Server {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode: another instance may have replaced the socket.
    identity: Option<(u64, u64)>,
}

impl Server {
    /// Makes the socket, which its owner alone may use. One that no instance uses any more is replaced.
    pub(crate) fn bind(path: &Path) -> Result<Self, ControlError> {
        let name = || path.display().to_string();
        let failed = |source| ControlError::Socket { path: name(), source };
        if let Ok(metadata) = fs::symlink_metadata(path) {
            if !metadata.file_type().is_socket() {
                return Err(ControlError::NoSocket { path: name() });
            }
            match UnixStream::connect(path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    fs::remove_file(path).map_err(failed)?;
                }
                _ => return Err(ControlError::InUse { path: name() }),
            }
        }
        let before = umask(Mode::RWXG | Mode::RWXO);
        let listener = UnixListener::bind(path);
        umask(before);
        let listener = listener.map_err(|source| match source.kind() {
            io::ErrorKind::InvalidInput => ControlError::PathTooLong { path: name() },
            _ => failed(source),
        })?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { listener, path: path.to_owned(), identity: identity(path) })
    }

    /// Accepts connections until `stop` is set; requests go to `questions`. The error is that there is no thread for that.
    pub(crate) fn start<'scope, 'env, Q: From<Question> + Send + 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        questions: &Sender<Q>,
        stop: &'env AtomicBool,
    ) -> Result<(), ControlError> {
        let questions = questions.clone();
        let serve = move |stream, place| serve(stream, place, &questions, stop);
        accept(scope, stop, || Ok(self.listener.accept()?.0), serve)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Answers the requests of a connection until it ends, is silent for too long, or a request is none.
fn serve<Q: From<Question>>(stream: UnixStream, place: Place, questions: &Sender<Q>, stop: &AtomicBool) {
    // On Linux an accepted connection is not nonblocking; it is said for other systems.
    let limited = stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_read_timeout(Some(LOOK)))
        .and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    let Ok(mut writer) = limited.and_then(|()| stream.try_clone()) else { return };
    if place.is_over() {
        return refuse(stream, &mut writer, "too many connections");
    }
    let mut reader = BufReader::new(stream);
    while let Some(line) = next_line(&mut reader, stop) {
        let (answer, is_refused) = match answer(&line, questions) {
            Ok(Answer::Value(value)) => (json!({ "ok": value }), false),
            Ok(Answer::Stream(write)) => return stream_to(writer, stop, write),
            Err(error) => (json!({ "error": error }), true),
        };
        if writeln!(writer, "{answer}").is_err() || (is_refused && !line.ends_with('\n')) {
            return;
        }
    }
    if stop.load(Ordering::Relaxed) {
        refuse(reader.into_inner(), &mut writer, ENDED);
    }
}

/// Refuses a connection. Its request is read, because the end of a socket with unread data resets the connection before the client
/// sees the answer.
fn refuse(stream: UnixStream, writer: &mut UnixStream, error: &str) {
    let _ = writeln!(writer, "{}", json!({ "error": error }));
    let _ = writer.shutdown(Shutdown::Write);
    let _ = io::copy(&mut stream.take(MAX_REQUEST), &mut io::sink());
}

/// Answers with a stream of bytes, until the client closes its side of the connection or the run ends.
fn stream_to(mut writer: UnixStream, stop: &AtomicBool, write: Stream) {
    let _ = writer.set_write_timeout(Some(STREAM_PATIENCE));
    if writeln!(writer, "{}", json!({ "ok": null })).is_err() {
        return;
    }
    let Ok(client) = writer.try_clone() else { return };
    // A client sends nothing more: what arrives is the end.
    let has_closed = || {
        let mut waited = [PollFd::new(&client, PollFlags::IN)];
        poll(&mut waited, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    };
    write(&mut writer, &|| stop.load(Ordering::Relaxed) || has_closed());
}

/// The next line, or a part of one that is too long; `None` at the end of the connection or of patience, or when the run ends.
fn next_line(reader: &mut BufReader<UnixStream>, stop: &AtomicBool) -> Option<String> {
    let (start, mut line) = (Instant::now(), Vec::new());
    while !stop.load(Ordering::Relaxed) && start.elapsed() < PATIENCE {
        let room = MAX_REQUEST - line.len() as u64;
        match reader.take(room).read_until(b'\n', &mut line) {
            Ok(0) => return None,
            Ok(_) if line.ends_with(b"\n") || line.len() as u64 == MAX_REQUEST => {
                return String::from_utf8(line).ok();
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
    None
}

fn answer<Q: From<Question>>(line: &str, questions: &Sender<Q>) -> Result<Answer, String> {
    if !line.ends_with('\n') {
        return Err(format!("a request is a line of at most {MAX_REQUEST} bytes"));
    }
    let request: Json =
        serde_json::from_str(line).map_err(|error| format!("the request is no JSON: {error}"))?;
    match request.get("version").and_then(Json::as_u64) {
        Some(VERSION) => {}
        Some(other) => return Err(format!("version {other} of the protocol is not known, only {VERSION}")),
        None => return Err("`version` is missing".to_owned()),
    }
    ask(Request::parse(&request)?, questions)
}
