//! Options of the commands that look for inputs, or for a proof that there are none.

use std::time::Duration;

use paceline::generate::Options;

/// How far is looked.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct SearchArgs {
    /// Most seconds for each program, up to a year.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    limit: u64,
    /// Greatest length of packets in bytes, up to 65535. If left out 3520, the most that a test run of the kernel and the buffers of drivers
    /// have in one piece.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(14..))]
    length: Option<u16>,
    /// Programs of the object that are explored at the same time. The result is the same for any number.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: u16,
}

/// Paths that were followed, in words.
pub(crate) fn followed(paths: u64) -> String {
    format!("{paths} {} followed", if paths == 1 { "path" } else { "paths" })
}

impl SearchArgs {
    pub(crate) fn options(&self) -> Options {
        let options = Options { time: Duration::from_secs(self.limit), ..Options::default() };
        match self.length {
            Some(longest) => Options { length: (options.length.0, longest), ..options },
            None => options,
        }
    }

    /// Threads that explore programs.
    pub(crate) fn workers(&self) -> usize {
        self.workers.into()
    }
}
