//! The threaded interpreter as a machine of the code generator: its registers are words of memory, so that a call needs none of its own.
//!
//! Every value that is computed from operands only has an operation where the form computes it, unless all its users have made it a part of
//! theirs: what nobody has asked for in a register is left out when operations are emitted.

mod branch;
mod call;
mod choose;
mod emit;
mod memory;

use std::rc::Rc;
use std::sync::Arc;

use crate::machine::REGISTERS;
use crate::stack::MAX_FRAMES;
use paceline_compiler::codegen::GenerateError;
use paceline_compiler::internal::Internal;
use paceline_compiler::ir::arena::Side;
use paceline_compiler::ir::cfg::Cfg;
use paceline_compiler::ir::versions::Versions;
use paceline_compiler::ir::{FuncId, Function, Graph, Module, Value};
use paceline_maps::Map;
use paceline_spec::ProgramSpec;

use super::code::Code;
use super::error::TranslateError;
use super::kind::Kind;
use crate::interpreter::operations::Operations;

/// An instruction of the code generator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draft {
    /// `None` where a function is entered.
    kind: Option<Kind>,
    imm: i32,
    offset: i16,
    /// The word of the second part, and the function that it leads to.
    word: u64,
    function: Option<FuncId>,
    /// Bytes of the arguments of a call.
    args: [u8; 5],
    /// Whether the first operand is the end of the stack.
    in_stack: bool,
    /// The value that it is for, if it is left out where nobody asks for that.
    value: Option<Value>,
}

impl Draft {
    const fn new(kind: Kind) -> Self {
        Self {
            kind: Some(kind),
            imm: 0,
            offset: 0,
            word: 0,
            function: None,
            args: [1, 2, 3, 4, 5],
            in_stack: false,
            value: None,
        }
    }

    const fn imm(self, imm: i32) -> Self {
        Self { imm, ..self }
    }

    const fn word(self, word: u64) -> Self {
        Self { word, ..self }
    }
}

/// The function whose operations are selected.
#[derive(Default)]
struct Current {
    is_main: bool,
    /// Words of its stack to zero on entry.
    zeroed: u64,
    /// Whether it counts rounds.
    rounds: bool,
    /// Words of its window.
    window: usize,
    /// How often values are asked for in a register.
    asked: Side<Value, u32>,
    cfg: Option<Rc<Cfg>>,
    /// Where the packet may have moved, if it may.
    moves: Option<Versions<1>>,
    /// The last move before the instruction that is selected, and before fields of the context are loaded.
    moved: u32,
    loaded: Side<Value, u32>,
}

pub(super) struct Selector<'a> {
    module: &'a Module,
    program: &'a ProgramSpec,
    maps: &'a [Arc<Map>],
    code: Code,
    current: Current,
    /// Words of the largest window.
    words: usize,
    lack: Option<&'static str>,
}

impl<'a> Selector<'a> {
    pub(super) fn new(module: &'a Module, program: &'a ProgramSpec, maps: &'a [Arc<Map>]) -> Self {
        let (code, current) = (Code::default(), Current::default());
        Self { module, program, maps, code, current, words: REGISTERS, lack: None }
    }

    pub(super) fn begin_function(
        &mut self,
        function: &Function,
        graph: &Graph,
        is_main: bool,
    ) -> Result<(), TranslateError> {
        self.code.begin();
        self.current = Current {
            is_main,
            zeroed: function.zeroed,
            asked: Side::sized(function.value_count()),
            cfg: Some(Rc::clone(&graph.cfg)),
            moves: moves(function, &graph.cfg).map_err(GenerateError::from)?,
            ..Current::default()
        };
        Ok(())
    }

    pub(super) fn end_function(&mut self) -> Result<(), TranslateError> {
        self.words = self.words.max(self.current.window);
        self.code.end()
    }

    pub(super) fn finish(self) -> Result<Operations, TranslateError> {
        if let Some(what) = self.lack {
            return Err(TranslateError::Lack(what));
        }
        let windows = if self.module.functions.len() > 1 { MAX_FRAMES } else { 1 };
        let (ops, codes) = self.code.finish()?;
        Ok(Operations::new(&ops, &codes, windows * self.words))
    }

    /// Notes something without an operation.
    fn lacks(&mut self, what: &'static str) {
        self.lack.get_or_insert(what);
    }
}

/// The last operation before each block that may have moved the packet; `None` if none does.
fn moves(function: &Function, cfg: &Cfg) -> Result<Option<Versions<1>>, Internal> {
    let last = |block: &paceline_compiler::ir::Block| {
        let insts = function.block(*block).insts.iter().rev();
        let moves = |inst: &&paceline_compiler::ir::Inst| function.inst(**inst).op.moves_packet();
        [insts.clone().find(moves).map(|inst| version(*inst))]
    };
    let last: Vec<_> = cfg.order().iter().map(last).collect();
    last.iter().any(|[last]| last.is_some()).then(|| Versions::of(cfg, &last)).transpose()
}

/// The version of the packet's place that an instruction makes.
fn version(inst: paceline_compiler::ir::Inst) -> u32 {
    use paceline_compiler::ir::arena::Key;
    inst.index() as u32 + 1
}
