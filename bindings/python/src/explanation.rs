//! Why a program did what it did with a packet.

use paceline::chain::Next;
use paceline::diagnosis::explained;
use paceline::explain::{At, ChainExplanation, Explanation, Fact, FactKind};
use pyo3::prelude::*;
use serde_json::{Value as Json, json};

use crate::error::guarded;
use crate::json;
use crate::verdict;

/// A value that a branch depends on.
#[pyclass(frozen, name = "Fact", module = "paceline", get_all)]
#[derive(Clone)]
pub(crate) struct PyFact {
    /// `packet`, `context`, `element`, `value` or `result`.
    kind: &'static str,
    /// `tcp.dport`, `rules[{port: 22}].action`.
    name: String,
    value: String,
    text: String,
}

#[pymethods]
impl PyFact {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<Fact: {}>", self.text)
    }
}

impl PyFact {
    fn of(fact: &Fact) -> Self {
        Self {
            kind: kind(fact.kind),
            name: fact.name.clone(),
            value: fact.value.clone(),
            text: fact.to_string(),
        }
    }
}

/// Why a program or chain did what it did with a packet.
#[pyclass(frozen, name = "Explanation", module = "paceline")]
pub(crate) struct PyExplanation(ChainExplanation);

impl PyExplanation {
    pub(crate) fn new(explanation: ChainExplanation) -> Self {
        Self(explanation)
    }

    /// Explanation of the last program.
    fn last(&self) -> Option<&Explanation> {
        self.0.steps.last().map(|(_, explanation, _)| explanation)
    }

    /// The instruction that decided, or the end of the run if none did.
    fn place(&self) -> Option<(&Explanation, At)> {
        let explanation = self.last()?;
        Some((explanation, explanation.decided_at()))
    }
}

#[pymethods]
impl PyExplanation {
    /// `dropped at firewall.bpf.c:88 because rules[{port: 22}].action is 1`
    #[getter]
    fn sentence(&self) -> String {
        self.0.sentence()
    }

    #[getter]
    fn verdict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        verdict::to_python(py, self.0.outcome.verdict)
    }

    /// Source line of the branch that decided, or of the end of the run if none did; `None` if the object has no lines.
    #[getter]
    fn line(&self) -> Option<u32> {
        let (explanation, at) = self.place()?;
        Some(explanation.line(at)?.line)
    }

    #[getter]
    fn file(&self) -> Option<&str> {
        let (explanation, at) = self.place()?;
        Some(&explanation.line(at)?.file)
    }

    /// Text of the line.
    #[getter]
    fn source(&self) -> Option<&str> {
        let (explanation, at) = self.place()?;
        Some(explanation.line(at)?.text.trim())
    }

    /// Name of the program that ended the run.
    #[getter]
    fn program(&self) -> Option<&str> {
        Some(&self.last()?.last_program()?.name)
    }

    /// The values that decided.
    #[getter]
    fn facts(&self) -> Vec<PyFact> {
        self.last()
            .and_then(Explanation::cause)
            .map_or_else(Vec::new, |cause| cause.facts.iter().map(PyFact::of).collect())
    }

    /// All that happened, program by program, as `paceline why --json` prints it.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let programs = self.0.steps.iter().map(|(_, explanation, next)| of_program(explanation, next));
            json::to_python(py, &programs.collect())
        })
    }

    fn __str__(&self) -> String {
        self.0.sentence()
    }

    fn __repr__(&self) -> String {
        format!("<Explanation: {}>", self.0.sentence())
    }
}

fn of_program(explanation: &Explanation, next: &Next) -> Json {
    let name = explanation.programs.first().map(|program| program.name.as_str());
    let next = match next {
        Next::Program(_) => Json::Null,
        Next::End(verdict) => json!({ "end": verdict.name() }),
    };
    explained(name, explanation, &next)
}

fn kind(kind: FactKind) -> &'static str {
    match kind {
        FactKind::Packet => "packet",
        FactKind::Context => "context",
        FactKind::Element => "element",
        FactKind::Value => "value",
        FactKind::Result => "result",
        FactKind::Variable => "variable",
        _ => "other",
    }
}
