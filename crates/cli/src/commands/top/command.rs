//! Asks a live run at intervals, and draws its answers until a key ends the view.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use serde_json::Value as Json;

use super::args::TopArgs;
use super::asker::Asker;
use super::history::History;
use super::view::{self, State};
use crate::common::console;
use crate::common::failure::{CommandError, Failure};
use crate::control::{ControlError, Request, request};

/// Time between two looks for an answer.
const LOOK: Duration = Duration::from_millis(20);

/// The view cannot be shown.
#[derive(Debug, thiserror::Error)]
enum TopError {
    #[error("standard output is no terminal")]
    NoTerminal,
    #[error("the terminal")]
    Terminal(#[from] io::Error),
    #[error(transparent)]
    Control(#[from] ControlError),
}

impl CommandError for TopError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoTerminal => Some("`paceline stats` prints the rates line by line".to_owned()),
            Self::Control(error) => error.hint(),
            Self::Terminal(_) => None,
        }
    }
}

/// Shows a live run until a key ends the view, or the run ends.
pub(crate) fn top(args: &TopArgs) -> Result<ExitCode, Failure> {
    if !io::stdout().is_terminal() {
        return Err(TopError::NoTerminal.into());
    }
    let history = History::new(status(args).map_err(TopError::from)?);
    // The terminal is restored also after a panic.
    let ended = show(args, history, &mut ratatui::try_init().map_err(TopError::from)?);
    ratatui::try_restore().map_err(TopError::from)?;
    if ended? == Ended::Over {
        console::note("the run has ended");
    }
    Ok(ExitCode::SUCCESS)
}

/// Why the view ended.
#[derive(PartialEq, Eq)]
enum Ended {
    Key,
    Over,
}

/// Action of a key.
enum Asked {
    Nothing,
    Pause,
    End,
}

fn show(args: &TopArgs, mut history: History, terminal: &mut DefaultTerminal) -> Result<Ended, TopError> {
    let mut asker = Asker::new({
        let args = args.clone();
        move || status(&args)
    });
    let (mut next, mut is_paused) = (Instant::now() + args.every, false);
    loop {
        let state = State { is_paused, is_silent: asker.is_silent() };
        terminal.draw(|frame| view::draw(frame, &history, state))?;
        let time = next.saturating_duration_since(Instant::now());
        match asked(if asker.waits() { LOOK } else { time })? {
            Asked::End => return Ok(Ended::Key),
            Asked::Pause => is_paused = !is_paused,
            Asked::Nothing => {}
        }
        match asker.answer() {
            Ok(status) => status.into_iter().for_each(|status| history.push(status)),
            Err(error) if error.is_over() => return Ok(Ended::Over),
            Err(error) => return Err(error.into()),
        }
        if Instant::now() >= next && !asker.waits() {
            next = Instant::now() + args.every;
            if !is_paused {
                asker.ask();
            }
        }
    }
}

fn status(args: &TopArgs) -> Result<Json, ControlError> {
    request(&args.control, &Request::Status { follow: true })
}

/// Waits for a key, or for another size of the terminal.
fn asked(time: Duration) -> io::Result<Asked> {
    if !event::poll(time)? {
        return Ok(Asked::Nothing);
    }
    let Event::Key(key) = event::read()? else { return Ok(Asked::Nothing) };
    if key.kind == KeyEventKind::Release {
        return Ok(Asked::Nothing);
    }
    Ok(match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Asked::End,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Asked::End,
        KeyCode::Char('p' | ' ') => Asked::Pause,
        _ => Asked::Nothing,
    })
}
