//! No import cycles between the files of a crate, or between its folders.
//!
//! The sources are read as text: `mod` declarations give the files, paths that begin with `crate`, `super`, `self`, a child or an
//! imported module give the imports. Code under `#[cfg(test)]` does not count: tests may use all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Imports that are found in a crate at least, if it has more than one file of code, and in all of them: fewer would mean that they are
/// not read.
const LEAST: usize = 3;
const LEAST_OF_ALL: usize = 5000;

/// A module by the names from the root of the crate; the root has none.
type Module = Vec<String>;

/// Pairs of a module and a module that it imports.
type Imports = BTreeSet<(Module, Module)>;

/// The source of a module.
type Read<'a> = &'a dyn Fn(&Module) -> Option<String>;

#[test]
fn files_and_folders_import_in_no_circle() {
    let mut all = 0;
    for name in crates() {
        let imports = imports_of(&name);
        assert!(
            imports.len() >= LEAST || name == "suggest",
            "{name}: the imports are not found: {imports:?}"
        );
        all += imports.len();
        let files = shown(&circle(&imports));
        assert!(files.is_empty(), "{name}: files import each other in a circle:\n{files}");
        let folders: BTreeSet<&Module> = imports.iter().flat_map(|(from, to)| [from, to]).collect();
        for folder in folders {
            let parts = shown(&circle(&between_children(&imports, folder)));
            assert!(parts.is_empty(), "{name}: parts of {folder:?} import each other in a circle:\n{parts}");
        }
    }
    assert!(all >= LEAST_OF_ALL, "the imports are not found: {all}");
}

#[test]
fn commands_import_nothing_of_each_other() {
    let commands = shown(&between_children(&imports_of("cli"), &vec!["commands".to_owned()]));
    assert!(commands.is_empty(), "{commands}");
}

#[test]
fn imports_are_read_from_text() {
    let sources = [
        (
            "",
            "mod a; mod b;\n#[cfg(test)]\nmod tests { use crate::b::T; }\nfn f<'a>(x: &'a str) { a::g(':', \"b::x\") }",
        ),
        (
            "a",
            "pub mod c;\nuse super::b::{self, d::{E, F}}; // crate::x\nfn g() { b::d::h(r#\"crate::b\"#) }",
        ),
        (
            "a/c",
            "use super::Item;\n#[cfg(test)]\nuse crate::b::{X, Y};\n/* crate::b /* */ crate::b */ mod z {}",
        ),
        ("b", "mod d;\npub use d::E;"),
        ("b/d", "use crate::a::c::Item;\nconst C: char = '\\'';"),
    ];
    let read = |module: &Module| {
        sources.iter().find(|(path, _)| *path == module.join("/")).map(|(_, text)| (*text).to_owned())
    };
    let imports = imports(&read);
    assert_eq!(shown(&imports), " -> a\na -> b\na -> b/d\na/c -> a\nb -> b/d\nb/d -> a/c\n");
    assert_eq!(shown(&circle(&imports)), "a -> b\na -> b/d\na/c -> a\nb -> b/d\nb/d -> a/c\n");
    assert_eq!(shown(&between_children(&imports, &Module::new())), " -> a\na -> b\nb -> a\n");
}

fn shown(imports: &Imports) -> String {
    imports.iter().map(|(from, to)| format!("{} -> {}\n", from.join("/"), to.join("/"))).collect()
}

/// The folders of the workspace's crates, seen from `crates`.
fn crates() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let entries = std::fs::read_dir(folder).expect("the crates");
    let names = entries.map(|entry| entry.expect("a crate").file_name().into_string().expect("a name"));
    names.chain(["../bindings/c".to_owned()]).collect()
}

fn imports_of(name: &str) -> Imports {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let read = |module: &Module| {
        let path = folder.join(module.join("/"));
        let files = match module.is_empty() {
            true => [path.join("main.rs"), path.join("lib.rs")],
            false => [path.with_extension("rs"), path.join("mod.rs")],
        };
        files.iter().find_map(|file| std::fs::read_to_string(file).ok())
    };
    imports(&read)
}

/// The imports that are part of a cycle, or on a path between two: repeatedly removes imports of modules that nothing
/// imports, and of modules that import nothing.
fn circle(imports: &Imports) -> Imports {
    let mut left = imports.clone();
    loop {
        let before = left.len();
        let (from, to): (BTreeSet<Module>, BTreeSet<Module>) = left.iter().cloned().unzip();
        left.retain(|(user, used)| to.contains(user) && from.contains(used));
        if left.len() == before {
            return left;
        }
    }
}

/// Imports between the children of a folder; its own file is the child without a name.
fn between_children(imports: &Imports, folder: &Module) -> Imports {
    let child =
        |module: &Module| Some(module.strip_prefix(folder.as_slice())?.iter().take(1).cloned().collect());
    let between = imports.iter().filter_map(|(from, to)| Some((child(from)?, child(to)?)));
    between.filter(|(from, to)| from != to).collect()
}

/// The imports of all modules that the root declares, directly or not.
fn imports(read: Read<'_>) -> Imports {
    let mut sources = BTreeMap::new();
    let mut declared = vec![Module::new()];
    while let Some(module) = declared.pop() {
        let Some(text) = read(&module) else { continue };
        let tokens = without_tests(&tokens(&text));
        let children = tokens.windows(3).filter(|tokens| tokens[0] == "mod" && tokens[2] == ";");
        declared.extend(children.map(|tokens| [module.as_slice(), &[tokens[1].clone()]].concat()));
        sources.insert(module, tokens);
    }
    let is_module = |module: &Module| sources.contains_key(module);
    sources.iter().flat_map(|(module, tokens)| imports_in(module, tokens, &is_module)).collect()
}

fn imports_in(module: &Module, tokens: &[String], is_module: &dyn Fn(&Module) -> bool) -> Imports {
    let paths = paths(tokens);
    let resolve = |path: &[String]| {
        let (first, rest) = path.split_first()?;
        let mut full = match first.as_str() {
            "crate" => Module::new(),
            "self" => module.clone(),
            "super" => module.split_last()?.1.to_vec(),
            child => [module.as_slice(), &[child.to_owned()]].concat(),
        };
        for name in rest {
            match name.as_str() {
                "super" => drop(full.pop()),
                "self" => {}
                name => full.push(name.to_owned()),
            }
        }
        Some(full)
    };
    let is_relative = |path: &&Vec<String>| matches!(path[0].as_str(), "crate" | "self" | "super");
    let imported = paths.iter().filter(is_relative).filter_map(|path| resolve(path));
    let imported: BTreeMap<String, Module> =
        imported.filter(is_module).filter_map(|full| Some((full.last()?.clone(), full))).collect();
    let mut imports = Imports::new();
    for path in &paths {
        let full = match imported.get(&path[0]) {
            Some(module) => Some([module.as_slice(), &path[1..]].concat()),
            None => resolve(path).filter(|full| {
                is_relative(&path) || path.len() > 1 && is_module(&full[..=module.len()].to_vec())
            }),
        };
        let Some(mut full) = full else { continue };
        while !is_module(&full) {
            full.pop();
        }
        if full != *module {
            imports.insert((module.clone(), full));
        }
    }
    imports
}

/// All paths, with `use` trees expanded.
fn paths(tokens: &[String]) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let follows = at > 0 && matches!(tokens[at - 1].as_str(), "." | "mod" | "::");
        at = match tokens[at].as_str() {
            // The scope in a definition such as `pub(in path)` is not an import.
            "pub" if tokens.get(at + 1).is_some_and(|token| token == "(") => at + 3,
            token if is_name(token) && !follows => read_tree(tokens, at, &[], &mut paths),
            _ => at + 1,
        };
    }
    paths
}

/// Parses a path or a tree of paths, and returns the index after it.
fn read_tree(tokens: &[String], mut at: usize, before: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(at) {
        at += 1;
        if token == "{" {
            while tokens.get(at).is_some_and(|token| token != "}") {
                at = if is_name(&tokens[at]) { read_tree(tokens, at, &path, paths) } else { at + 1 };
            }
            return at + 1;
        }
        if is_name(token) {
            path.push(token.clone());
        }
        if tokens.get(at).is_none_or(|token| token != "::") {
            break;
        }
        at += 1;
    }
    paths.push(path);
    at
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Removes each item under `#[cfg(test)]` or `#[cfg(all(test, ...))]`.
fn without_tests(tokens: &[String]) -> Vec<String> {
    let mut left = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match end_of_test_attribute(&tokens[at..]) {
            Some(len) => at = end_of_item(tokens, at + len),
            None => {
                left.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    left
}

/// The length of an attribute that what follows begins with, if it leaves an item to tests.
fn end_of_test_attribute(tokens: &[String]) -> Option<usize> {
    let begins = |start: &[&str]| tokens.iter().take(start.len()).eq(start);
    let is_for_tests = begins(&["#", "[", "cfg", "(", "test", ")"])
        || begins(&["#", "[", "cfg", "(", "all", "(", "test", ","]);
    tokens.iter().position(|token| token == "]").filter(|_| is_for_tests).map(|end| end + 1)
}

/// The index after an item: after its semicolon, or after its braces.
fn end_of_item(tokens: &[String], mut at: usize) -> usize {
    let mut depth = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" => depth -= 1,
            "}" if depth == 1 => return at + usize::from(tokens.get(at).is_some_and(|token| token == ";")),
            "}" => depth -= 1,
            ";" if depth == 0 => return at,
            _ => {}
        }
    }
    at
}

/// Tokens: names, `::` and single characters, without comments and literals.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let len = if let Some(len) = comment_or_literal(rest) {
            len
        } else if name > 0 {
            tokens.push(rest[..name].to_owned());
            name
        } else {
            let token = if rest.starts_with("::") { "::" } else { &rest[..first.len_utf8()] };
            tokens.extend(Some(token.to_owned()).filter(|token| !token.trim().is_empty()));
            token.len()
        };
        rest = &rest[len..];
    }
    tokens
}

/// The length of a comment or of a text or character literal.
fn comment_or_literal(text: &str) -> Option<usize> {
    let until =
        |from: usize, end: &str| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    if text.starts_with("//") {
        return Some(until(2, "\n"));
    }
    if text.starts_with("/*") {
        let (mut depth, mut at) = (1, 2);
        while depth > 0 && at < text.len() {
            match &text.as_bytes()[at..] {
                [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
                [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
                _ => at += 1,
            }
        }
        return Some(at);
    }
    let raw = text.strip_prefix("br").or_else(|| text.strip_prefix('r')).unwrap_or_default();
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    if raw[hashes..].starts_with('"') {
        let start = text.len() - raw.len() + hashes + 1;
        return Some(until(start, &format!("\"{}", "#".repeat(hashes))));
    }
    let quote = text.strip_prefix('b').unwrap_or(text);
    let start = text.len() - quote.len() + 1;
    match quote.as_bytes() {
        [b'"', ..] => Some(start + end_of_quoted(&text[start..], '"')),
        [b'\'', b'\\', ..] => Some(start + end_of_quoted(&text[start..], '\'')),
        // Lifetimes have no closing quote.
        [b'\'', ..] => {
            let mut chars = quote.char_indices().skip(2);
            chars.next().filter(|(_, c)| *c == '\'').map(|(at, _)| start + at)
        }
        _ => None,
    }
}

/// The index after an unescaped closing quote.
fn end_of_quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}
