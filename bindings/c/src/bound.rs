//! Programs that handles name, and their faults.

use std::ffi::CString;
use std::sync::Arc;

use paceline::chain::RunConfig;
use paceline::{BurstFault, Fault, Member, Program, VerifiedProgram};

use crate::handles::Table;
use crate::object::names_of;
use crate::opaque::paceline_program;
use crate::status::{Failure, Report, paceline_status};

/// A program with its names as strings of C.
pub(crate) struct Bound {
    pub(crate) program: Program,
    /// With its proof, if it was verified.
    verified: Option<VerifiedProgram>,
    config: RunConfig,
    pub(crate) names: [CString; 2],
}

pub(crate) static PROGRAMS: Table<Arc<Bound>, paceline_program> = Table::new();

impl Bound {
    pub(crate) fn verified(program: VerifiedProgram, config: RunConfig) -> Self {
        let names = names_of(program.spec());
        Self { program: program.program().clone(), verified: Some(program), config, names }
    }

    pub(crate) fn unverified(program: Program, config: RunConfig) -> Self {
        let names = names_of(program.spec());
        Self { program, verified: None, config, names }
    }

    pub(crate) fn give(self) -> Result<*mut paceline_program, Failure> {
        PROGRAMS.give(Arc::new(self))
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// The program as a member of a chain, with what its object says of priority and actions.
    pub(crate) fn member(&self, name: &str) -> Member {
        let member = match &self.verified {
            Some(verified) => Member::new(name, verified),
            None => Member::unverified(name, self.program.clone()),
        };
        member.with_config(self.config)
    }
}

/// The fault of a run, with the instruction and its source line.
#[cold]
pub(crate) fn of_fault(fault: &Fault, program: &Program) -> Failure {
    let mut report = Report {
        status: Some(paceline_status::Fault),
        message: format!("program {}: {fault}", program.spec().name),
        ..Report::default()
    };
    report.locate(fault.tail_called.as_ref().unwrap_or(program.spec()), fault.slot);
    Failure::told(report)
}

/// The fault of a packet of a burst.
#[cold]
pub(crate) fn of_burst_fault(fault: &BurstFault, program: &Program) -> Failure {
    of_fault(&fault.fault, program).at(fault.index)
}
