//! Tests of the command, one file for each subject, in one binary, which links once.

mod common;

mod bad_input;
mod balancer;
mod bench;
mod chains;
mod container;
mod control;
mod diff;
mod dpdk;
mod engines;
mod filter;
mod filter_bad_input;
mod generate;
mod help;
mod limits;
mod live;
mod live_changes;
mod loading;
mod maps;
mod memif;
mod objects;
mod readme;
mod report;
mod reports;
mod run;
mod scan;
mod sockets;
mod state;
mod tail_calls;
mod testing;
mod verify;
mod why;
mod workers;
mod world;
