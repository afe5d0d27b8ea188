//! The author's commands: `keelson plugin new`, `build`, `test`, `inspect`,
//! `conformance`, and `keelson dev`.
//!
//! `folder → component (by the language's tools) → trial → fixtures → sections → files`

mod contract;
mod files;
mod document;
mod folder;
mod tools;
mod rust;
mod scripts;
mod component;
mod fixture;
mod trial;
mod shown;
mod test;
mod build;
mod new;
mod inspect;
mod conformance;
mod local;
mod dev;

pub use dev::dev;

use super::cli::Exit;
use super::cli::author::AuthorCommand;

pub fn run(command: AuthorCommand) -> anyhow::Result<Exit> {
    match command {
        AuthorCommand::New(args) => new::new(args),
        AuthorCommand::Build(args) => build::build(args),
        AuthorCommand::Test(args) => test::test(args),
        AuthorCommand::Inspect(args) => inspect::inspect(args),
        AuthorCommand::Conformance(args) => conformance::conformance(&args),
    }
}
