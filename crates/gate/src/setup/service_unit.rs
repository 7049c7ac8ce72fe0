//! The unit of the user's systemd that runs the personal hub.

use super::owned_file::OwnedFile;
use super::{ConfigFolders, SetupError, SetupPlan};

/// The name of the unit.
pub const SERVICE_UNIT: &str = "sayso.service";

const COMMAND_LINE: &str = "ExecStart=";

impl SetupPlan {
    /// Plans to write the unit. `program` is the path of `sayso`.
    pub fn install_unit(folders: &ConfigFolders, program: &str) -> Result<Self, SetupError> {
        Self::install(&folders.systemd_units().join(SERVICE_UNIT), folders, &unit(program))
    }

    /// Plans to delete the unit.
    pub fn remove_unit(folders: &ConfigFolders) -> Result<Self, SetupError> {
        Self::remove(&folders.systemd_units().join(SERVICE_UNIT), folders, &unit(""))
    }
}

fn unit(program: &str) -> OwnedFile {
    let text = format!(
        "# Written by `sayso service install`. Remove it with `sayso service remove`.\n\
         [Unit]\n\
         Description=sayso: the personal hub\n\
         \n\
         [Service]\n\
         Type=notify\n\
         {COMMAND_LINE}{} serve --personal\n\
         ExecReload=/bin/kill -HUP $MAINPID\n\
         Restart=on-failure\n\
         RestartSec=2\n\
         NoNewPrivileges=yes\n\
         UMask=0077\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        quote(program)
    );
    OwnedFile { text, variable_line: COMMAND_LINE }
}

/// Quotes a path as systemd requires, so that it expands neither specifiers nor variables.
fn quote(path: &str) -> String {
    let mut quoted = String::from("\"");
    for character in path.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '%' | '$' => quoted.extend([character, character]),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_runs_the_personal_hub() {
        assert_eq!(
            unit("/opt/a b/100%/$x/sayso").text,
            r#"# Written by `sayso service install`. Remove it with `sayso service remove`.
[Unit]
Description=sayso: the personal hub

[Service]
Type=notify
ExecStart="/opt/a b/100%%/$$x/sayso" serve --personal
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=2
NoNewPrivileges=yes
UMask=0077

[Install]
WantedBy=default.target
"#
        );
    }
}
