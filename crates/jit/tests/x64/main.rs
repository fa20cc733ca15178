//! Every instruction the encoder has, read back by the decoder and formatter of iced-x86.

mod forms;
mod gas;
mod jumps;
mod read;
mod sequences;
mod single;
