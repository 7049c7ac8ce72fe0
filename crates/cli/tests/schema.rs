//! `sayso schema`, and a check that the schemas in the repository are up to date.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use testing::cli::run_sayso;

fn list_names() -> Vec<String> {
    run_sayso(&["schema"], "").stdout.lines().map(str::to_owned).collect()
}

/// Returns the files of a folder by name.
fn read_files(folder: &Path) -> BTreeMap<String, String> {
    let read = |entry: fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path()).unwrap())
    };
    fs::read_dir(folder).unwrap().map(|entry| read(entry.unwrap())).collect()
}

#[test]
fn without_a_name_all_names_are_printed() {
    let names = list_names();
    let events = names.iter().filter(|name| name.starts_with("agent.")).count();
    assert_eq!(events, 12, "{names:?}");
    for message in ["subscription.request", "confirmation.reply", "clarification.reply", "producer.manifest"]
    {
        assert!(names.iter().any(|name| name == message), "{message} is not in {names:?}");
    }
}

#[test]
fn every_listed_name_has_a_schema() {
    for name in list_names() {
        let output = run_sayso(&["schema", &name], "");
        assert_eq!((output.exit_code, &*output.stderr), (0, ""), "{name}");
        let schema: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(schema["title"], *name);
        assert_eq!(schema["type"], "object", "{name}");
        assert!(output.stdout.ends_with("}\n"));
    }
}

#[test]
fn a_type_with_its_prefix_is_accepted_as_a_name() {
    let bare = run_sayso(&["schema", "agent.tool.invoked"], "");
    let prefixed = run_sayso(&["schema", "aaep:agent.tool.invoked"], "");
    assert_eq!((prefixed.exit_code, &prefixed.stdout), (0, &bare.stdout));
    let schema: Value = serde_json::from_str(&bare.stdout).unwrap();
    assert_eq!(schema["properties"]["type"]["const"], "aaep:agent.tool.invoked");
}

#[test]
fn an_unknown_name_is_rejected() {
    let output = run_sayso(&["schema", "agent.tool.dreamed"], "");
    assert_eq!((output.exit_code, &*output.stdout), (2, ""));
    assert_eq!(
        output.stderr,
        "sayso: unknown schema \"agent.tool.dreamed\"; `sayso schema` lists all names\n"
    );
}

#[test]
fn all_schemas_are_written_to_a_new_folder() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("not/yet/there");
    let output = run_sayso(&["schema", "--out", target.to_str().unwrap()], "");
    assert_eq!((output.exit_code, &*output.stdout, &*output.stderr), (0, "", ""));
    let written = read_files(&target);
    assert_eq!(written.len(), list_names().len());
    for name in list_names() {
        assert_eq!(written[&format!("{name}.schema.json")], run_sayso(&["schema", &name], "").stdout);
    }
}

#[test]
fn an_error_names_the_folder_that_cannot_be_created() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let output = run_sayso(&["schema", "--out", file.to_str().unwrap()], "");
    assert_eq!((output.exit_code, &*output.stdout), (2, ""));
    assert!(
        output.stderr.starts_with(&format!("sayso: cannot write to {}: ", file.display())),
        "{}",
        output.stderr
    );
}

#[test]
fn out_and_a_name_exclude_each_other() {
    assert_eq!(run_sayso(&["schema", "--out", "x", "agent.tool.invoked"], "").exit_code, 2);
}

#[test]
fn the_schemas_in_the_repository_are_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    run_sayso(&["schema", "--out", folder.path().to_str().unwrap()], "");
    let committed = read_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas"));
    let generated = read_files(folder.path());
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&committed), names(&generated), "regenerate them: cargo run -- schema --out schemas");
    for (name, text) in &generated {
        assert!(committed[name] == *text, "schemas/{name} is stale: cargo run -- schema --out schemas");
    }
}

#[test]
fn the_description_of_the_agent_api_is_current() {
    let output = run_sayso(&["schema", "--agent-api"], "");
    assert_eq!((output.exit_code, &*output.stderr), (0, ""));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agent-api.json");
    let committed = fs::read_to_string(path).unwrap();
    assert!(output.stdout == committed, "run `sayso schema --agent-api > docs/agent-api.json`");
    let description: Value = serde_json::from_str(&committed).unwrap();
    assert_eq!(description["openapi"], "3.1.0");
    // Every reference leads to a schema.
    let schemas = &description["components"]["schemas"];
    for reference in
        committed.lines().filter_map(|line| line.trim().strip_prefix("\"$ref\": \"#/components/schemas/"))
    {
        let name = reference.trim_end_matches(['"', ',']);
        assert!(schemas[name].is_object(), "{name}");
    }
}

#[test]
fn the_redaction_tables_of_other_languages_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (format, file) in
        [("json", "docs/redaction.json"), ("python", "python/src/sayso/_redaction_table.py")]
    {
        let output = run_sayso(&["schema", "--redaction", format], "");
        assert_eq!((output.exit_code, &*output.stderr), (0, ""));
        let committed = fs::read_to_string(root.join(file)).unwrap();
        assert!(output.stdout == committed, "run `sayso schema --redaction {format} > {file}`");
    }
}
