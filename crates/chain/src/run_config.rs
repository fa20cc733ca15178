//! libxdp's metadata of a program: when it runs, and after which verdicts the chain goes on.

use paceline_btf::{Btf, BtfError, Composite, Member, SymbolLinkage, Type, TypeId};
use paceline_frame::Verdict;

use crate::Actions;

/// Run priority of programs that say none (`XDP_DEFAULT_RUN_PRIO` in `xdp_helpers.h`).
pub const DEFAULT_PRIORITY: u32 = 50;

/// Where the metadata is (`XDP_RUN_CONFIG` in `xdp_helpers.h`).
const SECTION: &str = ".xdp_run_config";

/// More members than a description has, with room for repetitions; hostile types could share thousands.
const MOST_MEMBERS: usize = 32;

/// When a program runs, and after which of its verdicts others do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunConfig {
    /// Programs with a lower one run earlier.
    pub priority: u32,
    /// The verdicts after which the next program runs.
    pub actions: Actions,
}

impl Default for RunConfig {
    /// Priority 50, going on after [`Verdict::Pass`].
    fn default() -> Self {
        Self { priority: DEFAULT_PRIORITY, actions: Actions::PASS }
    }
}

/// Why a program's metadata cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunConfigError {
    /// Its types contradict each other.
    #[error("XDP_RUN_CONFIG({program}): {source}")]
    Types {
        /// The program.
        program: String,
        /// How.
        source: BtfError,
    },
    /// The variable is declared and defined elsewhere.
    #[error("XDP_RUN_CONFIG({0}) is defined in another object")]
    Extern(String),
    /// It is no structure.
    #[error("XDP_RUN_CONFIG({0}) is no structure")]
    NoStruct(String),
    /// A member is not what `__uint` makes.
    #[error("XDP_RUN_CONFIG({program}): {member} is not given with __uint")]
    Form {
        /// The program.
        program: String,
        /// The member.
        member: String,
    },
    /// A member means nothing.
    #[error("XDP_RUN_CONFIG({program}): unknown member {member}{}", did_you_mean(.suggestion.as_deref()))]
    UnknownMember {
        /// The program.
        program: String,
        /// The member.
        member: String,
        /// What was most likely meant.
        suggestion: Option<String>,
    },
}

pub(crate) fn did_you_mean(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// `XDP_PASS` and the others, as `enum xdp_action` names them.
const NAMES: [(&str, Verdict); 5] = [
    ("XDP_ABORTED", Verdict::Aborted),
    ("XDP_DROP", Verdict::Drop),
    ("XDP_PASS", Verdict::Pass),
    ("XDP_TX", Verdict::Tx),
    ("XDP_REDIRECT", Verdict::Redirect),
];

impl RunConfig {
    /// What an object says of a program with `XDP_RUN_CONFIG`; `None` where it says nothing.
    ///
    /// What is not said has its default: to go on after pass is taken away by `__uint(XDP_PASS, 0)` only, as in libxdp.
    ///
    /// # Errors
    /// [`RunConfigError`]; libxdp refuses such objects too.
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

/// The type of the variable that is named like the program, behind an underscore.
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

/// What `__uint(name, number)` says: `int (*name)[number]`.
fn number(btf: &Btf, member: &Member) -> Option<u32> {
    let (_, Type::Ptr(target)) = btf.resolve(member.ty).ok()? else { return None };
    match btf.resolve(*target).ok()? {
        (_, Type::Array { count, .. }) => Some(*count),
        _ => None,
    }
}
