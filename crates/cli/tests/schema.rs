//! `sayso schema`, and that the schemas in the repository are the ones that it writes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use testing::cli::sayso;

fn names() -> Vec<String> {
    sayso(&["schema"], "").out.lines().map(str::to_owned).collect()
}

/// The files of a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let read = |entry: fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path()).unwrap())
    };
    fs::read_dir(folder).unwrap().map(|entry| read(entry.unwrap())).collect()
}

#[test]
fn without_a_name_all_names_are_listed() {
    let names = names();
    let events = names.iter().filter(|name| name.starts_with("agent.")).count();
    assert_eq!(events, 12, "{names:?}");
    for message in ["subscription.request", "confirmation.reply", "clarification.reply", "producer.manifest"]
    {
        assert!(names.iter().any(|name| name == message), "{message} is not in {names:?}");
    }
}

#[test]
fn every_name_that_is_listed_prints_its_schema() {
    for name in names() {
        let ended = sayso(&["schema", &name], "");
        assert_eq!((ended.code, &*ended.err), (0, ""), "{name}");
        let schema: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(schema["title"], *name);
        assert_eq!(schema["type"], "object", "{name}");
        assert!(ended.out.ends_with("}\n"));
    }
}

#[test]
fn a_type_as_it_stands_in_an_event_is_a_name_too() {
    let bare = sayso(&["schema", "agent.tool.invoked"], "");
    let typed = sayso(&["schema", "aaep:agent.tool.invoked"], "");
    assert_eq!((typed.code, &typed.out), (0, &bare.out));
    let schema: Value = serde_json::from_str(&bare.out).unwrap();
    assert_eq!(schema["properties"]["type"]["const"], "aaep:agent.tool.invoked");
}

#[test]
fn an_unknown_name_is_refused() {
    let ended = sayso(&["schema", "agent.tool.dreamed"], "");
    assert_eq!((ended.code, &*ended.out), (2, ""));
    assert_eq!(
        ended.err,
        "sayso: there is no schema \"agent.tool.dreamed\"; `sayso schema` lists them all\n"
    );
}

#[test]
fn all_are_written_into_a_folder_that_need_not_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("not/yet/there");
    let ended = sayso(&["schema", "--out", inside.to_str().unwrap()], "");
    assert_eq!((ended.code, &*ended.out, &*ended.err), (0, "", ""));
    let written = files(&inside);
    assert_eq!(written.len(), names().len());
    for name in names() {
        assert_eq!(written[&format!("{name}.schema.json")], sayso(&["schema", &name], "").out);
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let ended = sayso(&["schema", "--out", file.to_str().unwrap()], "");
    assert_eq!((ended.code, &*ended.out), (2, ""));
    assert!(ended.err.starts_with(&format!("sayso: cannot write to {}: ", file.display())), "{}", ended.err);
    assert_eq!(sayso(&["schema", "--out", "x", "agent.tool.invoked"], "").code, 2, "one or the other");
}

#[test]
fn the_schemas_of_the_repository_are_the_ones_that_it_writes() {
    let folder = tempfile::tempdir().unwrap();
    sayso(&["schema", "--out", folder.path().to_str().unwrap()], "");
    let kept = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas"));
    let made = files(folder.path());
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&kept), names(&made), "write them anew: cargo run -- schema --out schemas");
    for (name, text) in &made {
        assert!(kept[name] == *text, "schemas/{name} is stale: cargo run -- schema --out schemas");
    }
}
