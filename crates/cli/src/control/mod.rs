//! The control socket of a live run: a Unix socket on which each line is a JSON object, a request or its answer
//! (`docs/LIVE.md` describes them). Its counts are also metrics for Prometheus.

mod client;
mod connection;
pub(crate) mod counts;
mod error;
mod metrics;
mod question;
mod rates;
mod request;
mod server;
mod text;
mod version;

pub(crate) use client::{ControlArgs, request, request_stream};
#[cfg_attr(not(feature = "top"), allow(unused_imports, reason = "the view names it"))]
pub(crate) use error::ControlError;
pub(crate) use metrics::{MetricsAddress, MetricsServer};
pub(crate) use question::{Answer, Question};
pub(crate) use rates::{rates, shortened};
pub(crate) use request::{Capture, ChainForm, Request};
pub(crate) use server::Server;
pub(crate) use text::write_counts;
#[cfg(feature = "top")]
pub(crate) use text::{AbortedPlace, aborted_places};
