//! Objects as the command line names them, or the built-in one.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use paceline::{Object, ProgramSpec};

use super::error::ObjectError;
use super::opener::Opener;
use super::program::NamedProgramError;
use crate::common::files::Taken;

static FIREWALL: &[u8] = include_bytes!("../../../../examples/firewall.o");

/// An object, and the one of its programs that is named.
pub(crate) struct NamedObject {
    /// For messages.
    pub(crate) name: String,
    pub(crate) object: Object,
    pub(crate) program: Option<String>,
    /// The file that no output may replace.
    pub(crate) file: Option<Taken>,
}

impl NamedObject {
    /// Opens an object as `OBJECT[:PROGRAM]` names it.
    pub(crate) fn open(arg: &OsStr, opener: &Opener) -> Result<Self, ObjectError> {
        let Target { path, program } = Target::parse(arg, Path::exists);
        let object = opener.open(&path, program.as_deref())?;
        let name = path.display().to_string();
        let file = Taken::of_path(&path, &format!("the object {name}"));
        Ok(Self { name, object, program, file })
    }

    /// The firewall that runs where no object is named.
    pub(crate) fn built_in(opener: &Opener) -> Result<Self, ObjectError> {
        let name = "built-in firewall".to_owned();
        let object = Object::parse(FIREWALL)
            .map_err(|source| ObjectError::Open { name: name.clone(), source: Box::new(source) })?;
        let object = opener.with_counters(&name, object)?;
        Ok(Self { name, object, program: None, file: None })
    }

    /// The program that is named, or all programs.
    pub(crate) fn programs(&self) -> Result<Vec<&ProgramSpec>, NamedProgramError> {
        let programs = self.object.programs_named(self.program.as_deref());
        programs.map_err(|error| NamedProgramError::new(&self.name, &self.object, error))
    }
}

/// Whether an argument `OBJECT[:PROGRAM]` names an ELF file.
pub(crate) fn is_object(arg: &OsStr) -> bool {
    let mut magic = [0; 4];
    let file = File::open(Target::parse(arg, Path::exists).path);
    file.is_ok_and(|mut file| file.read_exact(&mut magic).is_ok()) && magic == *b"\x7fELF"
}

/// The file of an object as the command line names it, which no output may replace.
pub(crate) fn taken(arg: &OsStr) -> Option<Taken> {
    let path = Target::parse(arg, Path::exists).path;
    Taken::of_path(&path, &format!("the object {}", path.display()))
}

/// `OBJECT[:PROGRAM]`, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    path: PathBuf,
    program: Option<String>,
}

impl Target {
    /// A file of the whole name wins over a program after its last colon.
    fn parse(arg: &OsStr, exists: impl Fn(&Path) -> bool) -> Self {
        let whole = Self { path: PathBuf::from(arg), program: None };
        let bytes = arg.as_bytes();
        let Some(colon) = bytes.iter().rposition(|&b| b == b':') else { return whole };
        let (path, program) = (bytes.get(..colon).unwrap_or_default(), bytes.get(colon + 1..));
        // A colon before a slash belongs to a folder's name.
        let program = program.unwrap_or_default();
        if path.is_empty() || program.is_empty() || program.contains(&b'/') || exists(&whole.path) {
            return whole;
        }
        // No program has a name that is not UTF-8; the message shows it lossily.
        let program = String::from_utf8_lossy(program).into_owned();
        Self { path: PathBuf::from(OsStr::from_bytes(path)), program: Some(program) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(arg: &[u8], there: &[&[u8]]) -> (Vec<u8>, Option<String>) {
        let exists = |path: &Path| there.contains(&path.as_os_str().as_bytes());
        let target = Target::parse(OsStr::from_bytes(arg), exists);
        (target.path.into_os_string().as_bytes().to_vec(), target.program)
    }

    #[test]
    fn a_program_follows_the_last_colon_unless_a_file_has_that_name() {
        assert_eq!(target(b"a.o", &[]), (b"a.o".to_vec(), None));
        assert_eq!(target(b"a.o:main", &[]), (b"a.o".to_vec(), Some("main".into())));
        assert_eq!(target(b"a:b.o:main", &[]), (b"a:b.o".to_vec(), Some("main".into())));
        assert_eq!(target(b"a:b.o", &[b"a:b.o"]), (b"a:b.o".to_vec(), None));
        assert_eq!(target(b"a:b/c.o", &[]), (b"a:b/c.o".to_vec(), None));
        assert_eq!(target(b"a.o:", &[]), (b"a.o:".to_vec(), None));
        assert_eq!(target(b"\xff.o:main", &[]), (b"\xff.o".to_vec(), Some("main".into())));
    }
}
