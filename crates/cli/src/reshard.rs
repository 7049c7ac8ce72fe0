//! `sayso reshard`: gives the data folder of a stopped hub more shards.

use std::path::PathBuf;

use crate::ExitStatus;
use crate::file::CommandError;
use crate::output::print_stdout;
use crate::serve::{JOURNAL_FILE_NAME, reshard};

#[derive(clap::Args)]
pub(crate) struct ReshardArgs {
    /// Data folder of the hub, which must be stopped.
    #[arg(long, value_name = "DIR", default_value = "sayso-data")]
    data: PathBuf,
    /// Number of shards. It cannot be changed again.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=i64::from(hub::ShardMap::MAX_COUNT)))]
    shards: u16,
}

pub(crate) fn run(arguments: &ReshardArgs) -> Result<ExitStatus, CommandError> {
    let ReshardArgs { data, shards } = arguments;
    if !data.join(JOURNAL_FILE_NAME).is_file() {
        return Err(format!(
            "{} is not the data folder of a hub; use --data to name the folder",
            data.display()
        )
        .into());
    }
    reshard(data, *shards)?;
    Ok(print_stdout(&format!(
        "{} now has {shards} shards. Start the hub with hub.shards = {shards} from now on.\n",
        data.display()
    )))
}
