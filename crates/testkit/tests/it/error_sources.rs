//! No error repeats its cause.
//!
//! `Display` of an error says its own level, and `source()` the cause; who shows it joins them (`paceline::with_causes`). One whose text
//! has the cause in it would show that twice. What is read are the attributes of thiserror.

use std::path::{Path, PathBuf};

#[test]
fn no_error_repeats_its_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let crates =
        std::fs::read_dir(root.join("crates")).expect("a folder").map(|entry| entry.expect("a crate").path());
    let folders = crates.chain([root.join("bindings/c"), root.join("bindings/python")]);
    let files: Vec<PathBuf> = folders.flat_map(|folder| files_below(&folder.join("src"))).collect();
    let mut causes = 0;
    let mut wrong = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a source");
        let errors = errors(&text);
        causes += errors.iter().filter(|error| error.source.is_some()).count();
        let repeats = errors.into_iter().filter(Error::repeats);
        wrong.extend(repeats.map(|error| format!("{}: {}", file.display(), error.text)));
    }
    assert!(files.len() > 1000 && causes > 90, "{} files, {causes} errors with a cause", files.len());
    assert!(wrong.is_empty(), "these texts have their source in them:\n{}", wrong.join("\n"));
}

#[test]
fn what_repeats_its_source_is_found() {
    let found = |text: &str| errors(text).iter().filter(|error| error.repeats()).count();
    assert_eq!(found(r#"#[error("{name}: {source}")] Read { name: String, source: io::Error },"#), 1);
    assert_eq!(found(r#"#[error("{name}")] Read { name: String, source: io::Error },"#), 0);
    assert_eq!(found(r#"#[error("{name}: {cause}")] Read { name: String, cause: io::Error },"#), 0);
    assert_eq!(found(r#"#[error("a: {0}")] A(#[from] B), #[error("c: {0}")] C(D),"#), 1);
    assert_eq!(found(r#"#[error("a: {}", shown(.0))] A(#[source] Box<B>),"#), 1);
    assert_eq!(found(r#"#[error(transparent)] A(#[from] B),"#), 0);
    assert_eq!(
        found(
            "#[error(\"{fault}\")]\npub struct A {\n    /// What (it) is.\n    #[source]\n    pub fault: F,\n}"
        ),
        1
    );
}

/// The sources in a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_source = |path: &PathBuf| path.extension().is_some_and(|end| end == "rs");
    folders.iter().flat_map(|folder| files_below(folder)).chain(files.into_iter().filter(is_source)).collect()
}

/// An error: the arguments of its `#[error]`, and the name or number of the field that is its source.
struct Error {
    text: String,
    source: Option<String>,
}

impl Error {
    /// Whether its text has the source in it.
    fn repeats(&self) -> bool {
        let Some(source) = &self.source else { return false };
        let ends = |next: char| !next.is_alphanumeric() && next != '_';
        ["{", "."].iter().any(|before| {
            let named = format!("{before}{source}");
            let mut found = self.text.match_indices(&named);
            found.any(|(at, _)| self.text[at + named.len()..].starts_with(ends))
        })
    }
}

/// The errors of a source that have a text of their own.
fn errors(source: &str) -> Vec<Error> {
    let found = source.match_indices("#[error(\"").filter_map(|(at, _)| {
        let open = at + "#[error".len();
        let (text, rest) = group(&source[open..])?;
        let item: Vec<&str> = rest.lines().map(|line| line.split("///").next().unwrap_or_default()).collect();
        let item = item.join("\n");
        // The fields are the first group that is no attribute's.
        let item = item.trim_start_matches(']').trim_start();
        let name = item.find(['(', '{', ',', ';'])?;
        let fields = match item[name..].starts_with(['(', '{']) {
            true => group(&item[name..])?.0,
            false => "",
        };
        Some(Error { text: text.to_owned(), source: source_of(fields) })
    });
    found.collect()
}

/// The field that is the source: by its attribute, or by its name.
fn source_of(fields: &str) -> Option<String> {
    let marked = ["#[source]", "#[from]"].into_iter().find_map(|mark| Some((fields.find(mark)?, mark.len())));
    if let Some((at, len)) = marked {
        let field = fields[at + len..].trim_start().trim_start_matches("pub ");
        let name: String = field.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let is_named = field[name.len()..].starts_with(':') && !field[name.len()..].starts_with("::");
        return Some(if is_named { name } else { fields[..at].matches(',').count().to_string() });
    }
    let mut names = fields.split(',').map(|field| field.trim().trim_start_matches("pub "));
    names.any(|field| field.starts_with("source:")).then(|| "source".to_owned())
}

/// What is between a bracket at the start and its partner, and what comes behind; brackets in strings are not counted.
fn group(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut in_string, mut is_escaped) = (0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if in_string => is_escaped = true,
            '"' => in_string = !in_string,
            '(' | '{' | '[' if !in_string => depth += 1,
            ')' | '}' | ']' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return Some((&text[1..at], &text[at + 1..]));
                }
            }
            _ => {}
        }
    }
    None
}
