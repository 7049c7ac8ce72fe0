//! Settings from defaults, the file, the environment and flags. Sources later in this list take precedence.

use std::path::Path;
use std::process::{Command, Output};

use testing::hub::HubProcess;

/// The output of a finished `sayso serve`.
struct ServeOutput(Output);

impl ServeOutput {
    fn run(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
        command.arg("serve").args(arguments).envs(variables.iter().copied()).current_dir(folder);
        Self(command.output().unwrap())
    }

    fn expect_success(&self) -> String {
        assert_eq!(self.0.status.code(), Some(0), "{:?}", self.0);
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    fn expect_refusal(&self) -> String {
        assert_eq!(self.0.status.code(), Some(2), "{:?}", self.0);
        let stderr = String::from_utf8(self.0.stderr.clone()).unwrap();
        assert!(stderr.starts_with("sayso: ") && stderr.lines().count() == 1, "{stderr}");
        stderr.trim_start_matches("sayso: ").trim_end().to_owned()
    }
}

fn config_line<'p>(printed: &'p str, section: &str, name: &str) -> &'p str {
    let mut lines = printed.lines().skip_while(|line| !section.is_empty() && *line != format!("[{section}]"));
    lines
        .find(|line| line.starts_with(&format!("{name} = ")))
        .unwrap_or_else(|| panic!("no {name}: {printed}"))
}

#[test]
fn the_source_with_higher_precedence_wins_and_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(
        folder.join("a.toml"),
        "host = ['a:1', \"b:2\"]\nhub.lease = '10m'\n[questions]\nopen_total = 5\nopen_per_agent = 0x10\n",
    )
    .unwrap();
    let arguments = ["--config", "a.toml", "--hub-replay", "7", "--print-config"];
    let printed = ServeOutput::run(
        folder,
        &arguments,
        &[("SAYSO_QUESTIONS_OPEN_TOTAL", "6"), ("SAYSO_HUB_REPLAY", "8")],
    )
    .expect_success();
    assert_eq!(config_line(&printed, "", "host"), r#"host = ["a:1", "b:2"] # a.toml:1"#);
    assert_eq!(config_line(&printed, "hub", "lease"), r#"lease = "10m" # a.toml:2"#);
    assert_eq!(config_line(&printed, "questions", "open_per_agent"), "open_per_agent = 16 # a.toml:5");
    assert_eq!(
        config_line(&printed, "questions", "open_total"),
        "open_total = 6 # SAYSO_QUESTIONS_OPEN_TOTAL"
    );
    assert_eq!(config_line(&printed, "hub", "replay"), "replay = 7 # --hub-replay");
    assert_eq!(config_line(&printed, "http", "idle_timeout"), r#"idle_timeout = "75s" # default"#);

    std::fs::write(folder.join("b.toml"), &printed).unwrap();
    let reprinted =
        ServeOutput::run(folder, &["--print-config"], &[("SAYSO_CONFIG", "b.toml")]).expect_success();
    let values = |printed: &str| -> Vec<String> {
        printed.lines().map(|line| line.split(" # ").next().unwrap().to_owned()).collect()
    };
    assert_eq!(values(&reprinted), values(&printed), "the printed configuration gives the same values");
}

#[test]
fn the_file_in_the_data_folder_is_read_unless_another_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::create_dir(folder.join("sayso-data")).unwrap();
    std::fs::create_dir(folder.join("other")).unwrap();
    std::fs::write(folder.join("sayso-data/sayso.toml"), "hub.replay = 1").unwrap();
    std::fs::write(folder.join("other/sayso.toml"), "hub.replay = 2").unwrap();
    std::fs::write(folder.join("named.toml"), "hub.replay = 3\ndata = 'other'").unwrap();
    for (arguments, value) in [
        (["--print-config"].as_slice(), "1 # sayso-data/sayso.toml:1"),
        (&["--print-config", "--data", "other"], "2 # other/sayso.toml:1"),
        (&["--print-config", "--config", "named.toml"], "3 # named.toml:1"),
        (&["--print-config", "--memory"], "1024 # default"),
        (&["--print-config", "--memory=false"], "1 # sayso-data/sayso.toml:1"),
    ] {
        let printed = ServeOutput::run(folder, arguments, &[]).expect_success();
        assert_eq!(config_line(&printed, "hub", "replay"), format!("replay = {value}"), "{arguments:?}");
    }
    std::fs::write(folder.join("other/sayso.toml"), "data = 'elsewhere'").unwrap();
    let refused = ServeOutput::run(folder, &["--data", "other"], &[]).expect_refusal();
    assert!(refused.starts_with("other/sayso.toml:1: data: "), "{refused}");
    std::fs::remove_file(folder.join("other/sayso.toml")).unwrap();
    std::fs::create_dir(folder.join("other/sayso.toml")).unwrap();
    let refused = ServeOutput::run(folder, &["--data", "other"], &[]).expect_refusal();
    assert!(refused.starts_with("other/sayso.toml: "), "an unreadable file is not ignored: {refused}");
}

#[test]
fn invalid_settings_are_reported_with_position_and_hint() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let duration_hint = "a duration such as 250ms, 30s, 5m, 12h or 7d, from 100ms to 7d";
    for (text, expected) in [
        ("\n[hub]\nleese = '3s'", "3: unknown key hub.leese; did you mean hub.lease?"),
        ("hubb.lease = '3s'", "1: unknown key hubb.lease; did you mean hub.lease?"),
        ("[hubb]", "1: unknown key hubb; sayso serve --print-config lists all keys"),
        ("hub = 3", "1: hub is a section; put its keys below [hub]"),
        ("hub.lease = 300", &format!("1: hub.lease: 300 is not {duration_hint}")),
        ("hub.lease = '300'", &format!("1: hub.lease: \"300\" is not {duration_hint}")),
        ("hub.lease = '1ms'", &format!("1: hub.lease: \"1ms\" is not {duration_hint}")),
        ("hub.lease = 1.5", &format!("1: hub.lease: a decimal number is not {duration_hint}")),
        ("hub.lease.x = 1", &format!("1: hub.lease: a section is not {duration_hint}")),
        ("hub.sessions = 0", "1: hub.sessions: 0 is not a whole number from 1 to 10000000"),
        ("hub.sessions = '5'", "1: hub.sessions: \"5\" is not a whole number from 1 to 10000000"),
        ("hub.sessions = -1", "1: hub.sessions: this number is not a whole number from 1 to 10000000"),
        ("memory = 'yes'", "1: memory: \"yes\" is not true or false"),
        ("listen = '1'", "1: listen: \"1\" is not an address with a port, such as 127.0.0.1:8787"),
        ("hub.replay = 1\nhub.replay = 2", "2: not TOML: duplicate key"),
    ] {
        std::fs::write(folder.join("a.toml"), text).unwrap();
        let refused = ServeOutput::run(folder, &["--config", "a.toml"], &[]).expect_refusal();
        assert_eq!(refused, format!("a.toml:{expected}"), "{text}");
    }
    std::fs::write(folder.join("a.toml"), "x = ").unwrap();
    assert!(
        ServeOutput::run(folder, &["--config", "a.toml"], &[])
            .expect_refusal()
            .starts_with("a.toml:1: not TOML: ")
    );
    assert_eq!(ServeOutput::run(folder, &["--config", "no"], &[]).expect_refusal(), "no: file not found");
    assert_eq!(
        ServeOutput::run(folder, &[], &[("SAYSO_CONFIG", "no")]).expect_refusal(),
        "no: file not found"
    );
    for (name, value, expected) in [
        ("SAYSO_HUB_LEESE", "3s", "unknown setting; did you mean SAYSO_HUB_LEASE?"),
        ("SAYSO_OTHER", "3s", "unknown setting; sayso serve --print-config lists all keys"),
        ("SAYSO_HUB_LEASE", "3", &format!("\"3\" is not {duration_hint}")),
        ("SAYSO_HUB_LEASE", "", &format!("\"\" is not {duration_hint}")),
        ("SAYSO_OPEN", "1", "\"1\" is not true or false"),
    ] {
        assert_eq!(
            ServeOutput::run(folder, &[], &[(name, value)]).expect_refusal(),
            format!("{name}: {expected}")
        );
    }
    assert_eq!(
        ServeOutput::run(folder, &["--hub-lease", "8d"], &[]).expect_refusal(),
        format!("--hub-lease: \"8d\" is not {duration_hint}")
    );
    assert_eq!(ServeOutput::run(folder, &["--hub-leese", "8d"], &[]).0.status.code(), Some(2));
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "nothing was created");
}

#[test]
fn conflicting_settings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("a.toml"), "tokens = 'x'\nretention.bytes = '2MiB'").unwrap();
    for (arguments, variables, expected) in [
        (
            ["--open", "--config", "a.toml"].as_slice(),
            [].as_slice(),
            "--open: no token is required, so a.toml:1 has no effect",
        ),
        (
            &["--memory", "--data", "x"],
            &[],
            "--memory: everything is kept in memory, so the setting data (--data) has no effect",
        ),
        (
            &["--data", "x"],
            &[("SAYSO_MEMORY", "true")],
            "SAYSO_MEMORY: everything is kept in memory, so the setting data (--data) has no effect",
        ),
        (
            &["--config", "a.toml", "--journal-max-bytes", "1MiB"],
            &[],
            "a.toml:2: retention.bytes is larger than",
        ),
    ] {
        let refused = ServeOutput::run(folder, arguments, variables).expect_refusal();
        assert!(refused.starts_with(expected), "{refused}");
    }
}

#[test]
fn a_file_configures_a_running_hub() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let file = "listen = '127.0.0.1:0'\nopen = true\nhub.sessions = 1\n";
    std::fs::write(folder.path().join("sayso.toml"), file).unwrap();
    let hub = HubProcess::start(&["--data", data]);
    hub.client().start_session();
    let start = r#"{"summary_normal":"x","localization_hints":{"primary_language":"en"}}"#;
    assert_eq!(hub.client().post("/agent/v1/sessions", start).status, 429);
}

#[test]
fn the_documentation_lists_every_key() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let table = ServeOutput::run(&docs, &["--list-keys"], &[]).expect_success();
    let configuration = std::fs::read_to_string(docs.join("configuration.md")).unwrap();
    assert!(
        configuration.ends_with(&format!("## All keys\n\n{table}")),
        "docs/configuration.md must end with what `sayso serve --list-keys` prints"
    );
    let limits = std::fs::read_to_string(docs.join("limits.md")).unwrap();
    let (_, serve_section) = limits.split_once("## `sayso serve`").unwrap();
    let serve_section = serve_section.split("\n## ").next().unwrap();
    let limits_help = ServeOutput::run(&docs, &["--help-limits"], &[]).expect_success();
    assert!(limits_help.starts_with("Limits:\n"), "{limits_help}");
    for row in table.lines().skip(2) {
        let columns: Vec<&str> = row.split(" | ").collect();
        let key = columns[0].trim_start_matches("| ").trim_matches('`');
        let is_limit = !columns[2].is_empty();
        let line = serve_section.lines().find(|line| line.contains(&format!("| `{key}` |")));
        assert_eq!(line.is_some(), is_limit, "row of docs/limits.md for {key}");
        let flag = format!("--{} <", key.replace(['.', '_'], "-"));
        assert_eq!(limits_help.contains(&flag), is_limit, "{flag} in the help");
    }
}
