//! The program: flags become types here, errors become words and exit codes.
//! The only layer with `anyhow`.

pub mod cli;
pub mod logging;
pub mod probes;
pub mod access;
pub mod lead;
pub mod schemas;
pub mod plugins;
pub mod debug;
pub mod run;
mod said;
pub mod render;
pub mod crd;
pub mod copy;
pub mod rbac;
pub mod image;
pub mod shadow;
pub mod author;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

pub use cli::Exit;

use cli::{Cli, Command, PluginCommand};

pub fn main() -> ExitCode {
    let exit = command(Cli::parse()).unwrap_or_else(|error| {
        // The whole chain on one line; a closed stderr is no reason to panic.
        let _ = writeln!(std::io::stderr(), "keelson: {error:#}");
        Exit::Failed
    });
    exit.into()
}

/// Runs what waits for a network.
fn waiting(command: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("start the async runtime")?.block_on(command)
}

fn command(cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        Command::Run(args) => {
            logging::start(args.log_format, &args.log_level)?;
            // One thread for all that waits: passing tasks between several costs more than they do. Renders have their own.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.context("start the async runtime")?;
            let exit = runtime.block_on(run::run(*args));
            // A render in hand ends by itself; nobody waits for it.
            runtime.shutdown_background();
            exit.map(|()| Exit::Ok)
        }
        Command::Render(args) => {
            logging::start(cli::LogFormat::Text, "warn")?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.context("start the async runtime")?.block_on(render::render(args))
        }
        Command::Dev(args) => {
            logging::start(cli::LogFormat::Text, "warn")?;
            author::dev(&args)
        }
        Command::Debug(args) => waiting(debug::ask(args)),
        Command::Crd => crd::print(),
        Command::CompileComponent { kind } => {
            crate::sandbox::compiler::child(&kind).context("compile a component")?;
            Ok(Exit::Ok)
        }
        Command::Plugin { command } => match command {
            PluginCommand::Copy(args) => copy::copy(&args),
            PluginCommand::Rbac(args) => waiting(rbac::print(args)),
            PluginCommand::Diff(args) => {
                logging::start(cli::LogFormat::Text, "error")?;
                waiting(shadow::diff(args))
            }
            PluginCommand::Check(args) => {
                logging::start(cli::LogFormat::Text, "error")?;
                waiting(shadow::check(args))
            }
            PluginCommand::Crd(args) => waiting(crd::merge(args)),
            PluginCommand::Push(args) => waiting(image::push(args)),
            PluginCommand::Pull(args) => waiting(image::pull(args)),
            PluginCommand::Author(command) => {
                logging::start(cli::LogFormat::Text, "warn")?;
                author::run(command)
            }
        },
    }
}
