//! The default features build a client and the macros, and no server.

use std::process::Command;

/// Packages that the default features must not build.
const SERVER_PACKAGES: [&str; 5] = ["hub", "journal", "wire", "rusqlite", "libsqlite3-sys"];

/// Returns the names of the packages that the crate builds for its users.
fn list_packages(features: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "sayso", "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(["--locked", "--offline"])
        .args(features)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    tree.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn default_features_build_neither_sqlite_nor_a_server() {
    let built = list_packages(&[]);
    assert!(built.iter().any(|name| name == "sayso-macros"), "the macros are a default feature");
    assert!(built.iter().any(|name| name == "tokio-tungstenite"), "the client is a default feature");
    let server: Vec<_> = built.iter().filter(|name| SERVER_PACKAGES.contains(&name.as_str())).collect();
    assert!(server.is_empty(), "the default features build {server:?}");
}

#[test]
fn the_feature_asp_builds_neither_sqlite_nor_a_server_nor_a_node() {
    let built = list_packages(&["--features", "asp"]);
    assert!(built.iter().any(|name| name == "asp"), "{built:?}");
    let server: Vec<_> = built
        .iter()
        .filter(|name| SERVER_PACKAGES.contains(&name.as_str()) || name.as_str() == "node")
        .collect();
    assert!(server.is_empty(), "the feature builds {server:?}");
}

#[test]
fn the_feature_embedded_builds_the_server() {
    let built = list_packages(&["--features", "embedded"]);
    for name in SERVER_PACKAGES {
        assert!(built.iter().any(|built| built == name), "{name} is not in the tree: {built:?}");
    }
}
