//! Code that checks every access at run time and counts instructions: for unverified programs, and to find unsoundness of the
//! verifier. So it relies on no fact and shares nothing with the code generator but the assembler: each instruction is translated by
//! itself, and each register of the program is always in the same one of the machine.
//!
//! The runtime decides: stubs pass it `r0` to `r5` in memory, the slot and the accessed pointer. BPF stack frames lie outside the native
//! stack, so that no store of a program can overwrite a return address. When the runtime ends a run, the stack is unwound to the entry.
//!
//! | | |
//! |---|---|
//! | `r0` to `r5` | `rax`, `rdi`, `rsi`, `rdx`, `rcx`, `r8` |
//! | `r6` to `r9` | `rbx`, `r13`, `r14`, `r15` |
//! | `r10` | `rbp` |
//! | the state of the run | `r12` |
//! | scratch | `r10`, `r11`, `r9` |

mod alu;
mod atomic;
mod compile;
mod divide;
mod emitter;
mod jump;
mod memory;
mod runtime;

pub(crate) use compile::compile;
