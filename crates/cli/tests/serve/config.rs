//! Where settings come from: default, file, environment, flag.

use std::path::Path;
use std::process::{Command, Output};

use testing::hub::Hub;

struct Run(Output);

impl Run {
    fn new(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
        command.arg("serve").args(arguments).envs(variables.iter().copied()).current_dir(folder);
        Self(command.output().unwrap())
    }

    fn printed(&self) -> String {
        assert_eq!(self.0.status.code(), Some(0), "{:?}", self.0);
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    fn refused(&self) -> String {
        assert_eq!(self.0.status.code(), Some(2), "{:?}", self.0);
        let said = String::from_utf8(self.0.stderr.clone()).unwrap();
        assert!(said.starts_with("sayso: ") && said.lines().count() == 1, "{said}");
        said.trim_start_matches("sayso: ").trim_end().to_owned()
    }
}

fn line<'p>(printed: &'p str, section: &str, name: &str) -> &'p str {
    let mut lines = printed.lines().skip_while(|line| !section.is_empty() && *line != format!("[{section}]"));
    lines
        .find(|line| line.starts_with(&format!("{name} = ")))
        .unwrap_or_else(|| panic!("no {name}: {printed}"))
}

#[test]
fn the_stronger_wins_and_it_is_told_where_each_value_came_from() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(
        folder.join("a.toml"),
        "host = ['a:1', \"b:2\"]\nhub.lease = '10m'\n[questions]\nopen_in_all = 5\nopen_of_agent = 0x10\n",
    )
    .unwrap();
    let all = ["--config", "a.toml", "--hub-replay", "7", "--print-config"];
    let printed =
        Run::new(folder, &all, &[("SAYSO_QUESTIONS_OPEN_IN_ALL", "6"), ("SAYSO_HUB_REPLAY", "8")]).printed();
    assert_eq!(line(&printed, "", "host"), r#"host = ["a:1", "b:2"] # a.toml:1"#);
    assert_eq!(line(&printed, "hub", "lease"), r#"lease = "10m" # a.toml:2"#);
    assert_eq!(line(&printed, "questions", "open_of_agent"), "open_of_agent = 16 # a.toml:5");
    assert_eq!(line(&printed, "questions", "open_in_all"), "open_in_all = 6 # SAYSO_QUESTIONS_OPEN_IN_ALL");
    assert_eq!(line(&printed, "hub", "replay"), "replay = 7 # --hub-replay");
    assert_eq!(line(&printed, "http", "idle_time"), r#"idle_time = "75s" # default"#);

    std::fs::write(folder.join("b.toml"), &printed).unwrap();
    let again = Run::new(folder, &["--print-config"], &[("SAYSO_CONFIG", "b.toml")]).printed();
    let values = |printed: &str| -> Vec<String> {
        printed.lines().map(|line| line.split(" # ").next().unwrap().to_owned()).collect()
    };
    assert_eq!(values(&again), values(&printed), "what is printed makes it so again");
}

#[test]
fn the_file_in_the_data_folder_is_read_unless_another_is_named() {
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
        let printed = Run::new(folder, arguments, &[]).printed();
        assert_eq!(line(&printed, "hub", "replay"), format!("replay = {value}"), "{arguments:?}");
    }
    std::fs::write(folder.join("other/sayso.toml"), "data = 'elsewhere'").unwrap();
    let refused = Run::new(folder, &["--data", "other"], &[]).refused();
    assert!(refused.starts_with("other/sayso.toml:1: data: "), "{refused}");
    std::fs::remove_file(folder.join("other/sayso.toml")).unwrap();
    std::fs::create_dir(folder.join("other/sayso.toml")).unwrap();
    let refused = Run::new(folder, &["--data", "other"], &[]).refused();
    assert!(
        refused.starts_with("other/sayso.toml: "),
        "one that cannot be read is not passed over: {refused}"
    );
}

#[test]
fn what_is_not_understood_is_told_with_its_place_and_what_would_be_right() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let time = "a duration such as 250ms, 30s, 5m, 12h or 7d, from 100ms to 7d";
    for (text, why) in [
        ("\n[hub]\nleese = '3s'", "3: there is no key hub.leese; did you mean hub.lease?"),
        ("hubb.lease = '3s'", "1: there is no key hubb.lease; did you mean hub.lease?"),
        ("[hubb]", "1: there is no key hubb; sayso serve --print-config shows all"),
        ("hub = 3", "1: hub is a section: its keys stand below [hub]"),
        ("hub.lease = 300", &format!("1: hub.lease: 300 is not {time}")),
        ("hub.lease = '300'", &format!("1: hub.lease: \"300\" is not {time}")),
        ("hub.lease = '1ms'", &format!("1: hub.lease: \"1ms\" is not {time}")),
        ("hub.lease = 1.5", &format!("1: hub.lease: a fraction is not {time}")),
        ("hub.lease.x = 1", &format!("1: hub.lease: a section is not {time}")),
        ("hub.sessions = 0", "1: hub.sessions: 0 is not a whole number from 1 to 10000000"),
        ("hub.sessions = '5'", "1: hub.sessions: \"5\" is not a whole number from 1 to 10000000"),
        ("hub.sessions = -1", "1: hub.sessions: this number is not a whole number from 1 to 10000000"),
        ("memory = 'yes'", "1: memory: \"yes\" is not true or false"),
        ("listen = '1'", "1: listen: \"1\" is not an address with its port, such as 127.0.0.1:8787"),
        ("hub.replay = 1\nhub.replay = 2", "2: not TOML: duplicate key"),
    ] {
        std::fs::write(folder.join("a.toml"), text).unwrap();
        let refused = Run::new(folder, &["--config", "a.toml"], &[]).refused();
        assert_eq!(refused, format!("a.toml:{why}"), "{text}");
    }
    std::fs::write(folder.join("a.toml"), "x = ").unwrap();
    assert!(Run::new(folder, &["--config", "a.toml"], &[]).refused().starts_with("a.toml:1: not TOML: "));
    assert_eq!(Run::new(folder, &["--config", "no"], &[]).refused(), "no: there is no such file");
    assert_eq!(Run::new(folder, &[], &[("SAYSO_CONFIG", "no")]).refused(), "no: there is no such file");
    for (name, value, why) in [
        ("SAYSO_HUB_LEESE", "3s", "there is no such setting; did you mean SAYSO_HUB_LEASE?"),
        ("SAYSO_OTHER", "3s", "there is no such setting; sayso serve --print-config shows all"),
        ("SAYSO_HUB_LEASE", "3", &format!("\"3\" is not {time}")),
        ("SAYSO_HUB_LEASE", "", &format!("\"\" is not {time}")),
        ("SAYSO_OPEN", "1", "\"1\" is not true or false"),
    ] {
        assert_eq!(Run::new(folder, &[], &[(name, value)]).refused(), format!("{name}: {why}"));
    }
    assert_eq!(
        Run::new(folder, &["--hub-lease", "8d"], &[]).refused(),
        format!("--hub-lease: \"8d\" is not {time}")
    );
    assert_eq!(Run::new(folder, &["--hub-leese", "8d"], &[]).0.status.code(), Some(2));
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "and nothing was made");
}

#[test]
fn what_would_say_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("a.toml"), "tokens = 'x'\nretention.bytes = '2MiB'").unwrap();
    for (arguments, variables, why) in [
        (
            ["--open", "--config", "a.toml"].as_slice(),
            [].as_slice(),
            "--open: everybody is let in, so a.toml:1 says nothing",
        ),
        (&["--memory", "--data", "x"], &[], "--memory: everything is kept in memory, so --data says nothing"),
        (
            &["--data", "x"],
            &[("SAYSO_MEMORY", "true")],
            "SAYSO_MEMORY: everything is kept in memory, so --data says nothing",
        ),
        (
            &["--config", "a.toml", "--journal-most-bytes", "1MiB"],
            &[],
            "a.toml:2: retention.bytes is more than",
        ),
    ] {
        let refused = Run::new(folder, arguments, variables).refused();
        assert!(refused.starts_with(why), "{refused}");
    }
}

#[test]
fn a_file_configures_a_hub_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let file = "listen = '127.0.0.1:0'\nopen = true\nhub.sessions = 1\n";
    std::fs::write(folder.path().join("sayso.toml"), file).unwrap();
    let hub = Hub::start(&["--data", data]);
    hub.client().start();
    let more = r#"{"summary_normal":"x","localization_hints":{"primary_language":"en"}}"#;
    assert_eq!(hub.client().post("/agent/v1/sessions", more).status, 429);
}

#[test]
fn the_documents_know_every_key() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let table = Run::new(&docs, &["--list-keys"], &[]).printed();
    let configuration = std::fs::read_to_string(docs.join("configuration.md")).unwrap();
    assert!(
        configuration.ends_with(&format!("## All keys\n\n{table}")),
        "docs/configuration.md ends with what `sayso serve --list-keys` prints"
    );
    let limits = std::fs::read_to_string(docs.join("limits.md")).unwrap();
    let (_, serve) = limits.split_once("## `sayso serve`").unwrap();
    let serve = serve.split("\n## ").next().unwrap();
    let help = Run::new(&docs, &["--help"], &[]).printed();
    let (_, under_limits) = help.split_once("\nLimits:\n").expect("a heading");
    for row in table.lines().skip(2) {
        let columns: Vec<&str> = row.split(" | ").collect();
        let key = columns[0].trim_start_matches("| ").trim_matches('`');
        let is_limit = !columns[2].is_empty();
        let line = serve.lines().find(|line| line.contains(&format!("| `{key}` |")));
        assert_eq!(line.is_some(), is_limit, "a line of docs/limits.md for {key}");
        let flag = format!("--{} <", key.replace(['.', '_'], "-"));
        assert_eq!(under_limits.contains(&flag), is_limit, "{flag} in the help");
    }
}
