//! `sayso doctor`: checks the installation and says what to do.

use gate::doctor::{Doctor, FindingLevel, MANAGED_CLAUDE_SETTINGS, SearchPath};
use gate::setup::ConfigFolders;

use crate::ExitStatus;
use crate::file::CommandError;
use crate::hub_args::build_runtime;
use crate::output::{describe_io_error, pluralize, print_stdout, printable};

#[derive(clap::Args)]
#[command(after_help = "The exit code is 0 if all is well, and 1 if there are problems.")]
pub(crate) struct Arguments {
    /// Address of the hub. The default is the one in SAYSO_URL, else your personal hub.
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    let current = |what: &str, path: std::io::Result<std::path::PathBuf>| {
        path.map_err(|error| format!("cannot find {what}: {}", describe_io_error(&error)))
    };
    let doctor = Doctor {
        folders: ConfigFolders::from_env().map_err(|error| error.to_string())?,
        search_path: SearchPath::new(std::env::var_os("PATH")),
        managed_claude_settings: MANAGED_CLAUDE_SETTINGS.into(),
        project: current("the current folder", std::env::current_dir())?,
        program: current("the path of sayso", std::env::current_exe())?,
        hub: arguments.hub.clone(),
        token: std::env::var("SAYSO_TOKEN").ok().filter(|token| !token.is_empty()),
    };
    let findings = build_runtime(0)?.block_on(doctor.check());
    let problems = findings.iter().filter(|finding| finding.level == FindingLevel::Problem).count();
    let lines =
        findings.iter().map(|finding| format!("{}: {}\n", finding.level.as_str(), printable(&finding.text)));
    let summary = match problems {
        0 => "All is well.\n".to_owned(),
        count => format!("{} found.\n", pluralize(count as u64, "problem")),
    };
    let report: String = lines.chain([summary]).collect();
    let printed = print_stdout(&report);
    Ok(if problems == 0 { printed } else { printed.max(ExitStatus::Negative) })
}
