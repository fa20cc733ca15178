//! Compiles units in this process, and runs their programs on all engines.

use std::path::Path;

use fastrand::Rng;
use paceline::Object;
use paceline_verifier::Verified;

use super::compiler::Compiler;
use super::program::{CProgram, PROGRAMS, unit_text};
use crate::AnyEngine;
use crate::compare::random_graph;
use crate::object_runs::{
    ChainTrial, Findings, Trial, chain_difference, fill_from_seed, is_pure, packets_of, pool, try_program,
};

/// Settings of runs.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The engines, the reference first.
    pub engines: Vec<AnyEngine>,
    /// Packets per program.
    pub runs: usize,
    /// Whether the kernel runs them too.
    pub kernel: bool,
    /// The CPU that this thread is pinned to.
    pub cpu: usize,
}

/// The programs of a unit that compile, and their object.
pub struct Unit {
    /// Its number.
    pub number: u64,
    /// The compiler.
    pub compiler: Compiler,
    /// The programs.
    pub programs: Vec<CProgram>,
    /// Programs that do not compile, with the reason.
    pub failed: Vec<(u64, String)>,
    object: Object,
}

impl Unit {
    /// Generates and compiles a unit in a directory. Programs that do not compile are omitted.
    ///
    /// # Errors
    /// No compiler; or programs that compile separately do not compile together; or the object does not load.
    pub fn make(number: u64, versions: &[u32], directory: &Path) -> Result<Self, String> {
        let compiler = Compiler::of_seed(number, versions).ok_or("no compiler")?;
        let generate = |index| CProgram::generate(number * PROGRAMS + index, compiler);
        let mut programs: Vec<CProgram> = (0..PROGRAMS).map(generate).collect();
        let mut failed = Vec::new();
        let object = match compile(&programs, compiler, directory) {
            Ok(object) => object,
            Err(_) => {
                programs.retain(|program| {
                    match compile(std::slice::from_ref(program), compiler, directory) {
                        Ok(_) => true,
                        Err(error) => {
                            failed.push((program.number, error));
                            false
                        }
                    }
                });
                compile(&programs, compiler, directory)?
            }
        };
        Ok(Self { number, compiler, programs, failed, object })
    }

    /// Runs a program. Its difference, if any, is in `findings`.
    #[must_use]
    pub fn try_one(&self, number: u64, setup: &Setup) -> Option<Findings> {
        let program = self.programs.iter().find(|program| program.number == number)?;
        Some(try_named(&self.object, &program.name(), number, setup))
    }

    /// Runs a program after the one or two before it, as a chain. Returns the difference between ways to run it, if any, and
    /// the programs.
    #[must_use]
    pub fn try_chain(&self, number: u64, setup: &Setup) -> Option<(String, Vec<CProgram>)> {
        let index = self.programs.iter().position(|program| program.number == number)?;
        let first = index.saturating_sub(1 + (number % 2) as usize);
        let programs = self.programs.get(first..=index)?;
        let names: Vec<String> = programs.iter().map(CProgram::name).collect();
        let text = chain_of(&self.object, &names, number, setup)?;
        Some((text, programs.to_vec()))
    }
}

fn compile(programs: &[CProgram], compiler: Compiler, directory: &Path) -> Result<Object, String> {
    compile_text(&unit_text(programs), compiler, directory)
}

/// The object of a C text.
///
/// # Errors
/// The compiler's message, or the reason why the object does not load.
pub fn compile_text(text: &str, compiler: Compiler, directory: &Path) -> Result<Object, String> {
    let (source, object) = (directory.join("unit.c"), directory.join("unit.o"));
    std::fs::write(&source, text).map_err(|error| paceline::with_causes(&error))?;
    compiler.compile(&source, &object)?;
    Object::open(&object).map_err(|error| format!("{}: {error}", object.display()))
}

/// Runs a program of an object on all engines and the kernel, over packets and maps of a seed.
#[must_use]
pub fn try_named(object: &Object, name: &str, seed: u64, setup: &Setup) -> Findings {
    let inputs = packets_of(pool(), seed, setup.runs);
    let mut object = object.clone();
    object.specs_mut().programs.retain(|spec| spec.name == name);
    fill_from_seed(&mut object, seed);
    let trial = Trial {
        object: &object,
        program: name,
        inputs: &inputs,
        seed,
        engines: &setup.engines,
        network: None,
        cpu: setup.cpu,
    };
    try_program(&trial, setup.kernel)
}

/// Runs the accepted ones of these programs as a chain. Returns the difference between ways to run it.
#[must_use]
pub fn chain_of(object: &Object, names: &[String], seed: u64, setup: &Setup) -> Option<String> {
    let mut object = object.clone();
    fill_from_seed(&mut object, seed);
    let specs = names.iter().filter_map(|name| object.programs().iter().find(|spec| spec.name == *name));
    let verified: Vec<Verified> = specs.filter_map(|spec| object.verify(spec).ok()).collect();
    let graph = random_graph(verified.len(), &mut Rng::with_seed(seed)).filter(|_| verified.len() > 1)?;
    let inputs = packets_of(pool(), seed, setup.runs);
    let trial = Trial {
        object: &object,
        program: "",
        inputs: &inputs,
        seed,
        engines: &setup.engines,
        network: None,
        cpu: setup.cpu,
    };
    let difference = chain_difference(&ChainTrial { trial, programs: verified.iter().collect(), graph })?;
    verified.iter().all(|verified| is_pure(&trial, verified)).then_some(difference)
}
