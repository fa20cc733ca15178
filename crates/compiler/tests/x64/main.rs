//! Every instruction of the encoder, decoded and formatted by iced-x86.

mod forms;
mod gas;
mod jumps;
mod read;
mod sequences;
mod single;
