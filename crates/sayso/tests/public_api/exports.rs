//! Everything that a public method takes or returns can be named through `sayso::` alone.
//!
//! Rustdoc's JSON is not stable, so this test reads the sources: every name in a public signature that is imported from another
//! crate must be in a `pub use` of this crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::public_api::doc_examples::collect_sources;

#[test]
fn every_type_of_a_public_signature_is_exported() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = dependencies(&std::fs::read_to_string(crate_folder.join("Cargo.toml")).unwrap());
    let mut files = Vec::new();
    collect_sources(&crate_folder.join("src"), &mut files);
    let texts: Vec<_> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let exported: BTreeSet<String> =
        texts.iter().flat_map(|text| imports(text, "pub use ").into_values()).collect();
    let used: BTreeSet<String> = texts.iter().flat_map(|text| foreign_types(text, &crates)).collect();
    for expected in ["hub::HubLimits", "wire::HubHandle", "aaep::event::Urgency", "rig_agent::agent::Agent"] {
        assert!(used.contains(expected), "{expected} is no longer found: {used:#?}");
    }
    let is_exported = |path: &String| {
        exported.contains(path) || exported.iter().any(|krate| path.starts_with(&format!("{krate}::")))
    };
    let missing: Vec<_> = used.iter().filter(|path| !is_exported(path)).collect();
    assert!(
        missing.is_empty(),
        "public signatures use types that users of the crate cannot name: {missing:#?}"
    );
}

#[test]
fn types_of_other_crates_in_signatures_are_found() {
    let source = r"
use hub::{Core, Role as HubRole};
use std::time::Duration;
use wire::HubHandle;

pub fn attach(running: &HubHandle, time: Duration) -> Result<Hub, Error> {
    Core::new(running)
}

pub(crate) fn inside(core: Core) {}

    setters! {
        /// Sets the limits.
        limits(limits: hub::HubLimits) => limits = limits;
    }

pub struct Opaque(Core);

pub struct Token {
    pub role: HubRole,
    core: Core,
}
";
    let found = foreign_types(source, &["hub".to_owned(), "wire".to_owned()]);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["hub::HubLimits", "hub::Role", "wire::HubHandle"]);
}

/// Returns the names of the dependencies, in the form that paths use.
fn dependencies(manifest: &str) -> Vec<String> {
    let table = manifest.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let names = table.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect()
}

/// Returns the paths of types from other crates in the public signatures of a source.
fn foreign_types(text: &str, crates: &[String]) -> BTreeSet<String> {
    let imported = imports(text, "use ");
    let mut found = BTreeSet::new();
    for signature in signatures(text) {
        for path in signature
            .split(|character: char| !character.is_alphanumeric() && character != '_' && character != ':')
        {
            let (first, rest) =
                path.split_once("::").map_or((path, None), |(first, rest)| (first, Some(rest)));
            let path = match (imported.get(first), rest) {
                (Some(path), None) => path.clone(),
                (Some(path), Some(rest)) => format!("{path}::{rest}"),
                (None, Some(_)) => path.to_owned(),
                (None, None) => continue,
            };
            if crates.iter().any(|krate| path.starts_with(&format!("{krate}::"))) {
                found.insert(path);
            }
        }
    }
    found
}

/// Returns the imports of all statements with this prefix, as a map from names to paths.
fn imports(text: &str, prefix: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut rest = text;
    while let Some(at) = rest.find(prefix) {
        let starts_line = at == 0 || rest[..at].ends_with('\n');
        rest = &rest[at + prefix.len()..];
        let Some(end) = rest.find(';').filter(|_| starts_line) else { continue };
        let statement: String = rest[..end].split_whitespace().collect::<Vec<_>>().join(" ");
        expand("", statement.trim_start_matches("::"), &mut found);
    }
    found
}

/// Expands `a::{b, c as d}` to the names `b` and `d` with the paths `a::b` and `a::c`.
fn expand(prefix: &str, tree: &str, found: &mut BTreeMap<String, String>) {
    if let Some((path, inner)) = tree.split_once('{') {
        let inner = inner.strip_suffix('}').unwrap();
        let (mut depth, mut from) = (0, 0);
        for (at, letter) in inner.char_indices().chain([(inner.len(), ',')]) {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(&format!("{prefix}{path}"), inner[from..at].trim(), found);
                    from = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias)));
    let (path, own) = match path {
        "self" => (prefix.trim_end_matches("::").to_owned(), prefix.trim_end_matches("::")),
        path => (format!("{prefix}{path}"), path),
    };
    let name = alias.unwrap_or_else(|| own.rsplit("::").next().unwrap());
    if !name.is_empty() {
        found.insert(name.to_owned(), path);
    }
}

/// Returns the public signatures of a source: functions, setters, fields, and the bodies of public enums and traits.
fn signatures(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines().peekable();
    let mut is_in_body = false;
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        is_in_body =
            line.starts_with("pub enum ") || line.starts_with("pub trait ") || is_in_body && line != "}";
        let is_setter = trimmed.contains(") => ") && trimmed.ends_with(';') && line.starts_with("        ");
        let is_public = trimmed.starts_with("pub ") && !trimmed.starts_with("pub use ");
        if trimmed.starts_with("//") || !(is_in_body || is_setter || is_public) {
            continue;
        }
        let mut signature = line.split(" => ").next().unwrap().to_owned();
        if let Some(fields_start) = line.find('(').filter(|_| line.starts_with("pub struct ")) {
            signature.truncate(fields_start);
        }
        while !is_setter && trimmed.contains("fn ") && !signature.contains(['{', ';']) {
            signature.push_str(lines.next().unwrap());
        }
        found.push(signature);
    }
    found
}
