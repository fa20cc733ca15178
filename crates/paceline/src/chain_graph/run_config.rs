//! libxdp's metadata of a program: run priority and chain call actions.

use paceline_btf::{Btf, BtfError, Composite, Member, SymbolLinkage, Type, TypeId};
use paceline_frame::Verdict;

use super::actions::Actions;

/// Default run priority (`XDP_DEFAULT_RUN_PRIO` in `xdp_helpers.h`).
pub const DEFAULT_PRIORITY: u32 = 50;

/// Section of the metadata (`XDP_RUN_CONFIG` in `xdp_helpers.h`).
const SECTION: &str = ".xdp_run_config";

/// Maximum number of members, with room for repetitions; hostile types could share thousands.
const MOST_MEMBERS: usize = 32;

/// Run priority and chain call actions of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunConfig {
    /// Programs with lower priority numbers run earlier.
    pub priority: u32,
    /// The verdicts after which the next program runs.
    pub actions: Actions,
}

impl Default for RunConfig {
    /// Priority 50, continuing after [`Verdict::Pass`].
    fn default() -> Self {
        Self { priority: DEFAULT_PRIORITY, actions: Actions::PASS }
    }
}

/// Errors in a program's metadata.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunConfigError {
    /// Malformed types.
    #[error("XDP_RUN_CONFIG({program})")]
    Types {
        /// The program.
        program: String,
        /// The error.
        source: BtfError,
    },
    /// The variable is only declared, and defined in another object.
    #[error("XDP_RUN_CONFIG({0}) is defined in another object")]
    Extern(String),
    /// The variable is not a structure.
    #[error("XDP_RUN_CONFIG({0}) is not a struct")]
    NoStruct(String),
    /// A member does not have the form of `__uint`.
    #[error("XDP_RUN_CONFIG({program}): {member} is not given with __uint")]
    Form {
        /// The program.
        program: String,
        /// The member.
        member: String,
    },
    /// An unknown member.
    #[error("XDP_RUN_CONFIG({program}): unknown member {member}{}", did_you_mean(.suggestion.as_deref()))]
    UnknownMember {
        /// The program.
        program: String,
        /// The member.
        member: String,
        /// The closest known member.
        suggestion: Option<String>,
    },
}

pub(crate) fn did_you_mean(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Verdicts by their names in `enum xdp_action`.
const NAMES: [(&str, Verdict); 5] = [
    ("XDP_ABORTED", Verdict::Aborted),
    ("XDP_DROP", Verdict::Drop),
    ("XDP_PASS", Verdict::Pass),
    ("XDP_TX", Verdict::Tx),
    ("XDP_REDIRECT", Verdict::Redirect),
];

impl RunConfig {
    /// The metadata of a program in an object's types; `None` without `XDP_RUN_CONFIG`.
    ///
    /// Missing members have their defaults: continuing after pass is disabled by `__uint(XDP_PASS, 0)` only, as in libxdp.
    ///
    /// # Errors
    /// [`RunConfigError`]; libxdp refuses such objects as well.
    pub fn of(btf: &Btf, program: &str) -> Result<Option<Self>, RunConfigError> {
        let Some(ty) = variable(btf, program)? else { return Ok(None) };
        let failed = |source| RunConfigError::Types { program: program.to_owned(), source };
        let (_, Type::Struct(fields)) = btf.resolve(ty).map_err(failed)? else {
            return Err(RunConfigError::NoStruct(program.to_owned()));
        };
        Self::read(btf, program, fields).map(Some)
    }

    fn read(btf: &Btf, program: &str, fields: &Composite) -> Result<Self, RunConfigError> {
        let mut config = Self::default();
        if fields.members.len() > MOST_MEMBERS {
            return Err(RunConfigError::NoStruct(program.to_owned()));
        }
        for member in &fields.members {
            let name = btf.name(member.name);
            let form = || RunConfigError::Form { program: program.to_owned(), member: name.to_owned() };
            let value = || number(btf, member).ok_or_else(form);
            match NAMES.iter().find(|(action, _)| *action == name) {
                Some((_, verdict)) => config.actions = config.actions.with(*verdict, value()? != 0),
                None if name == "priority" => config.priority = value()?,
                None => return Err(unknown(program, name)),
            }
        }
        Ok(config)
    }
}

fn unknown(program: &str, member: &str) -> RunConfigError {
    let known = NAMES.iter().map(|(name, _)| *name).chain(["priority"]);
    let suggestion = paceline_suggest::nearest(member, known).map(str::to_owned);
    RunConfigError::UnknownMember { program: program.to_owned(), member: member.to_owned(), suggestion }
}

/// The type of the variable with the program's name, prefixed by an underscore.
fn variable(btf: &Btf, program: &str) -> Result<Option<TypeId>, RunConfigError> {
    let Some((_, section)) = btf.data_section(SECTION) else { return Ok(None) };
    for entry in &section.vars {
        let Some(Type::Var { name, ty, linkage }) = btf.get(entry.ty) else { continue };
        if btf.name(*name).strip_prefix('_') != Some(program) {
            continue;
        }
        return match linkage {
            SymbolLinkage::Extern => Err(RunConfigError::Extern(program.to_owned())),
            SymbolLinkage::Static | SymbolLinkage::Global => Ok(Some(*ty)),
        };
    }
    Ok(None)
}

/// The number of `__uint(name, number)`: `int (*name)[number]`.
fn number(btf: &Btf, member: &Member) -> Option<u32> {
    let (_, Type::Ptr(target)) = btf.resolve(member.ty).ok()? else { return None };
    match btf.resolve(*target).ok()? {
        (_, Type::Array { count, .. }) => Some(*count),
        _ => None,
    }
}
