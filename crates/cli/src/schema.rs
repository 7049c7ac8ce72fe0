//! `sayso schema`: prints JSON Schemas, which are generated from the same tables as the checks.

use std::path::PathBuf;

use crate::ExitStatus;
use crate::file::CommandError;
use crate::output::{describe_io_error, print_stdout};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Schema to print, such as agent.tool.invoked or subscription.request. Without it, all names are listed.
    name: Option<String>,
    /// Write all schemas to this folder, each to its own file.
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    let schemas = aaep::schema::all();
    if let Some(folder) = &arguments.out {
        let write_error =
            |error| format!("cannot write to {}: {}", folder.display(), describe_io_error(&error));
        return Ok(write_all(&schemas, folder).map(|()| ExitStatus::Success).map_err(write_error)?);
    }
    let Some(name) = &arguments.name else {
        let names: Vec<_> = schemas.iter().map(|schema| &*schema.name).collect();
        return Ok(print_stdout(&(names.join("\n") + "\n")));
    };
    let schema_name = name.trim_start_matches("aaep:").replace(':', ".");
    let schema = schemas.iter().find(|schema| schema.name == schema_name);
    let unknown = || format!("unknown schema {name:?}; `sayso schema` lists all names");
    Ok(print_stdout(&schema.ok_or_else(unknown)?.text))
}

fn write_all(schemas: &[aaep::schema::Schema], folder: &std::path::Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for schema in schemas {
        std::fs::write(folder.join(format!("{}.schema.json", schema.name)), &schema.text)?;
    }
    Ok(())
}
