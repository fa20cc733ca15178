//! The C library through its dynamic library, as a C program loads it.
#![allow(unsafe_code, reason = "functions of a dynamic library")]

mod cases;
mod door;
mod engine;
mod hostile;
mod interface;
mod library;
mod threads;
