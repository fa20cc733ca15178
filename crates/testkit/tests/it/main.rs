//! Tests that need no process of their own, one file for each subject, in one binary, which links once.

mod availability;
mod campaigns;
mod causes;
mod coverage;
mod explanations;
mod sections;
