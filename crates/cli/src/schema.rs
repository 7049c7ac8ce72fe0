//! `sayso schema`: our JSON Schemas, made from the same tables as the checks.

use std::path::PathBuf;

use crate::Outcome;
use crate::file::Stop;
use crate::print::{in_words, print};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The schema to print, like agent.tool.invoked or subscription.request; without it, the names of all.
    name: Option<String>,
    /// Writes all schemas into this folder, a file each.
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Stop> {
    let schemas = aaep::schema::all();
    if let Some(folder) = &arguments.out {
        let cannot = |error| format!("cannot write to {}: {}", folder.display(), in_words(&error));
        return Ok(write_all(&schemas, folder).map(|()| Outcome::Good).map_err(cannot)?);
    }
    let Some(name) = &arguments.name else {
        let names: Vec<_> = schemas.iter().map(|schema| &*schema.name).collect();
        return Ok(print(&(names.join("\n") + "\n")));
    };
    let wanted = name.trim_start_matches("aaep:").replace(':', ".");
    let schema = schemas.iter().find(|schema| schema.name == wanted);
    let none = || format!("there is no schema {name:?}; `sayso schema` lists them all");
    Ok(print(&schema.ok_or_else(none)?.text))
}

fn write_all(schemas: &[aaep::schema::Schema], folder: &std::path::Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for schema in schemas {
        std::fs::write(folder.join(format!("{}.schema.json", schema.name)), &schema.text)?;
    }
    Ok(())
}
