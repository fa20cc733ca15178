//! Every instruction of the arm64 encoder, against LLVM's assembler.

mod forms;
mod immediates;
mod jumps;
mod llvm;
mod reach;
