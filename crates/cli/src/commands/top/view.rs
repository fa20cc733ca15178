//! The view: counts and rates as tables, and the rate of packets over time.

use std::time::Duration;

use paceline::{PortCounts, Verdict};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Row, Sparkline, Table};
use serde_json::Value as Json;

use super::history::History;
use crate::common::console::shown;
use crate::control::counts::{Count, LOSSES, PORT};
use crate::control::{AbortedPlace, aborted_places, shortened};

/// Places of aborted packets that are shown.
const PLACES: usize = 3;

/// The states that the heading shows beside the counts.
#[derive(Clone, Copy, Default)]
pub(super) struct State {
    pub(super) is_paused: bool,
    /// Whether the run does not answer.
    pub(super) is_silent: bool,
}

/// Draws the view.
pub(super) fn draw(frame: &mut Frame<'_>, history: &History, state: State) {
    let ports = list(&history.status["ports"]).len() as u16;
    let workers = list(&history.status["workers"]).len();
    let ways = ways(history);
    let rows = [
        Constraint::Length(2),
        Constraint::Min(3),
        Constraint::Length(Verdict::ALL.len() as u16 + 3),
        Constraint::Length(ports + 3),
        Constraint::Length(workers.max(ways.len()) as u16 + 3),
    ];
    let [head, graph, middle, port_area, worker_area] = Layout::vertical(rows).areas(frame.area());
    let [worker_area, way_area] = Layout::horizontal([Constraint::Fill(1); 2]).areas(worker_area);
    let [verdict_area, loss_area] = Layout::horizontal([Constraint::Fill(1); 2]).areas(middle);
    draw_head(frame, head, history, state);
    draw_graph(frame, graph, history);
    frame.render_widget(verdicts(history), verdict_area);
    frame.render_widget(losses(history), loss_area);
    frame.render_widget(port_table(history), port_area);
    frame.render_widget(worker_table(history), worker_area);
    frame.render_widget(table(" ways, of a sample ", strings(["program", "share"]), ways, 1), way_area);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, history: &History, state: State) {
    let status = &history.status;
    let time = Duration::from_secs(status["seconds"].as_f64().unwrap_or(0.0) as u64);
    let programs: Vec<_> = list(&status["programs"]).iter().map(text).collect();
    let paused = if state.is_paused { ", paused" } else { "" };
    let silent = if state.is_silent { ", no answer" } else { "" };
    let first = format!(
        "paceline, process {}, {time:?}{paused}{silent}: {} packets, {} packets/s",
        status["pid"],
        status["packets"],
        shortened(&history.rates["packets"])
    );
    let second = format!("revision {}: {}", status["revision"], programs.join(" -> "));
    frame
        .render_widget(ratatui::widgets::Paragraph::new(vec![Line::from(first).bold(), second.into()]), area);
}

fn draw_graph(frame: &mut Frame<'_>, area: Rect, history: &History) {
    let width = usize::from(area.width.saturating_sub(2));
    let skipped = history.packets.len().saturating_sub(width);
    let data: Vec<u64> = history.packets.iter().skip(skipped).copied().collect();
    let most = data.iter().max().copied().unwrap_or(0);
    let title = format!(" packets/s, at most {} ", shortened(&most.into()));
    frame.render_widget(Sparkline::default().data(&data).block(Block::bordered().title(title)), area);
}

/// A table with a heading: a name, and numbers to the right.
fn table<'a>(title: &'a str, heading: Vec<String>, rows: Vec<Vec<String>>, numbers: usize) -> Table<'a> {
    let widths =
        [Constraint::Min(10)].into_iter().chain(std::iter::repeat_n(Constraint::Length(12), numbers));
    let aligned = |row: Vec<String>| {
        let mut cells = row.into_iter();
        let name = Line::from(cells.next().unwrap_or_default());
        Row::new([name].into_iter().chain(cells.map(|cell| Line::from(cell).right_aligned())))
    };
    Table::new(rows.into_iter().map(aligned), widths)
        .header(aligned(heading).style(Style::new().dim()))
        .block(Block::bordered().title(title))
}

fn strings<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn verdicts(history: &History) -> Table<'_> {
    let row = |verdict: Verdict| {
        let count = &history.status["verdicts"][verdict.name()];
        vec![
            verdict.name().to_owned(),
            count.to_string(),
            shortened(&history.rates["verdicts"][verdict.name()]),
        ]
    };
    let rows = Verdict::ALL.into_iter().map(row).collect();
    table(" verdicts ", strings(["verdict", "packets", "/s"]), rows, 2)
}

fn losses(history: &History) -> Table<'_> {
    let row = |loss: &Count<_>| {
        let (count, rate) = (&history.status[loss.name], &history.rates[loss.name]);
        vec![loss.heading(), count.to_string(), shortened(rate)]
    };
    let rows = LOSSES.iter().map(row).collect();
    table(" losses ", strings(["loss", "packets", "/s"]), rows, 2)
}

fn port_table(history: &History) -> Table<'_> {
    let row = |(index, port): (usize, &Json)| {
        let counts = PORT.iter().flat_map(|count| {
            let rate = has_rate(count).then(|| shortened(&history.rates["ports"][index][count.name]));
            [port[count.name].to_string()].into_iter().chain(rate)
        });
        [text(&port["name"])].into_iter().chain(counts).collect()
    };
    let rows = list(&history.status["ports"]).iter().enumerate().map(row).collect();
    let columns = PORT
        .iter()
        .flat_map(|count| [count.heading()].into_iter().chain(has_rate(count).then(|| "/s".to_owned())));
    let heading: Vec<String> = ["port".to_owned()].into_iter().chain(columns).collect();
    let numbers = heading.len() - 1;
    table(" ports ", heading, rows, numbers)
}

/// Rates of losses show in the counts.
fn has_rate(count: &Count<PortCounts>) -> bool {
    matches!(count.name, "received" | "sent")
}

fn worker_table(history: &History) -> Table<'_> {
    let row = |(index, worker): (usize, &Json)| {
        let count = |name: &str| worker[name].as_u64().unwrap_or(0);
        let filled = count("packets") as f64 / count("bursts").max(1) as f64;
        vec![
            worker["number"].to_string(),
            worker["packets"].to_string(),
            shortened(&history.rates["workers"][index]["packets"]),
            format!("{filled:.1}"),
        ]
    };
    let rows = list(&history.status["workers"]).iter().enumerate().map(row).collect();
    table(" workers ", strings(["worker", "packets", "/s", "per burst"]), rows, 3)
}

/// The ways of the packets through the chain, with their shares of the packets that left the program.
fn ways(history: &History) -> Vec<Vec<String>> {
    let mut ways = Vec::new();
    for (from, to) in history.rates["edges"].as_object().into_iter().flatten() {
        let ends = ["programs", "verdicts"].map(|kind| to[kind].as_object().into_iter().flatten());
        let [programs, verdicts] =
            ends.map(|ends| ends.map(|(name, rate)| (name, rate.as_f64().unwrap_or(0.0))));
        let all: Vec<_> = programs.chain(verdicts).filter(|(_, rate)| *rate > 0.0).collect();
        let sum: f64 = all.iter().map(|(_, rate)| rate).sum();
        ways.extend(all.into_iter().map(|(name, rate)| {
            vec![format!("{} -> {}", shown(from), shown(name)), format!("{:.1}%", rate * 100.0 / sum)]
        }));
    }
    ways.extend(aborted(&history.status["followed"]["aborted"]));
    ways
}

/// The places of aborted packets, with their shares of these.
fn aborted(places: &Json) -> Vec<Vec<String>> {
    let places = aborted_places(places);
    let sum: u64 = places.iter().map(|place| place.packets).sum();
    let row = |AbortedPlace { program, branch, packets }: AbortedPlace<'_>| {
        let share = packets as f64 * 100.0 / sum.max(1) as f64;
        vec![format!("aborted by {} at {}", shown(program), shown(branch)), format!("{share:.1}%")]
    };
    places.into_iter().take(PLACES).map(row).collect()
}

fn list(value: &Json) -> &[Json] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Json) -> String {
    shown(value.as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    use super::*;

    fn status(seconds: f64, packets: u64) -> Json {
        json!({
            "pid": 7, "revision": 2, "programs": ["fw", "lb\u{1b}[2J"], "seconds": seconds, "packets": packets,
            "verdicts": { "aborted": 0, "drop": packets, "pass": 0, "tx": 0, "redirect": 0 },
            "refused": 5, "no_target": 0, "stopped": 0, "lost": 0, "unknown_verdicts": 0,
            "ports": [{ "name": "xdp:va", "received": packets, "sent": 0, "refused": 5, "dropped": 1, "copied": 0 }],
            "followed": { "aborted": { "fw": { "fw.bpf.c:41": 3, "fw.bpf.c:7": 1 } }, "edges": { "fw": { "programs": { "lb": packets / 4 }, "verdicts": { "drop": packets / 4 * 3 } } } },
            "workers": [{ "number": 0, "packets": packets, "bursts": packets / 64 }],
        })
    }

    fn drawn(history: &History, (width, height): (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| draw(frame, history, State::default())).expect("it is drawn");
        terminal.backend().to_string()
    }

    #[test]
    fn counts_and_rates_are_shown() {
        let mut history = History::new(status(1.0, 6400));
        history.push(status(2.0, 1_006_400));
        let text = drawn(&history, (100, 40));
        for part in [
            "process 7, 2s: 1006400 packets, 1.00M packets/s",
            "revision 2: fw -> lb",
            "at most 1.00M",
            "drop",
            "refused",
            "xdp:va",
            "64.0",
            "fw -> lb",
            "25.0%",
            "fw -> drop",
            "aborted by fw at fw.bpf.c:41",
            "75.0%",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "names cannot control the terminal");
    }

    #[test]
    fn no_size_and_no_answer_ends_the_view() {
        for status in
            [status(0.0, 0), json!({}), json!([1]), json!({ "ports": 3, "workers": [null], "programs": [4] })]
        {
            let mut history = History::new(status.clone());
            history.push(status);
            for size in [(1, 1), (20, 5), (300, 3), (80, 24)] {
                drawn(&history, size);
            }
        }
    }
}
