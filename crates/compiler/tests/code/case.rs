//! Parser of case files.

/// A case, with its preceding comment.
pub(crate) struct Case {
    pub(crate) comment: String,
    pub(crate) name: String,
    pub(crate) settings: String,
    pub(crate) program: String,
    pub(crate) code: String,
}

/// Parses the cases of a file.
pub(crate) fn parse(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let (mut comment, mut block) = (String::new(), "");
    for line in text.lines() {
        if line.starts_with('#') {
            comment.push_str(line);
            comment.push('\n');
            continue;
        }
        if let Some(name) = line.strip_prefix("case: ") {
            cases.push(Case {
                comment: std::mem::take(&mut comment),
                name: name.to_owned(),
                settings: String::new(),
                program: String::new(),
                code: String::new(),
            });
            continue;
        }
        let case = cases.last_mut().expect("a file starts with a case");
        match line.split_once(':') {
            Some(("settings", value)) => case.settings = value.trim().to_owned(),
            Some(("program", "")) => block = "program",
            Some(("code", "")) => block = "code",
            _ if line.is_empty() => {}
            _ => {
                let text = if block == "code" { &mut case.code } else { &mut case.program };
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    cases
}

pub(crate) fn write(cases: &[Case]) -> String {
    let text = |case: &Case| {
        let settings = match case.settings.as_str() {
            "" => String::new(),
            settings => format!("settings: {settings}\n"),
        };
        let Case { comment, name, program, code, .. } = case;
        format!("{comment}case: {name}\nprogram:\n{program}{settings}code:\n{code}")
    };
    cases.iter().map(text).collect::<Vec<_>>().join("\n")
}
