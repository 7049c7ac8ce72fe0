//! What went wrong is told in words, and says what would be right.

use std::os::unix::fs::PermissionsExt as _;

use testing::cli::sayso;
use testing::hub::Hub;

/// Runs what cannot run.
fn refused(arguments: &[&str]) -> String {
    let ended = sayso(arguments, "");
    assert_eq!(ended.code, 2, "{arguments:?}: {}", ended.err);
    assert!(
        !ended.err.contains("os error") && !ended.err.contains("stopping"),
        "{arguments:?}: {}",
        ended.err
    );
    ended.err
}

#[test]
fn what_the_system_says_is_told_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("file"), "").unwrap();
    let hub = Hub::open();
    let serve = ["serve", "--memory", "--open", "--listen"];
    let taken = refused(&[&serve[..], &[&hub.address]].concat());
    assert!(taken.contains(&format!("cannot listen on {}: another program uses this address", hub.address)));
    assert!(taken.contains("--listen names another"), "{taken}");
    let demo = refused(&["demo", "--listen", &hub.address]);
    assert!(demo.contains("another program uses this address"), "{demo}");
    let under_file = path("file/below");
    for (arguments, words) in [
        (vec!["serve", "--listen", "127.0.0.1:0", "--data", &under_file], "a part of the path is a file"),
        (vec!["serve", "--memory", "--listen", "127.0.0.1:0", "--tokens", &under_file], "a part of the path"),
        (
            vec!["serve", "--memory", "--listen", "127.0.0.1:0", "--tokens", &path("no")],
            "there is no such file",
        ),
        (
            vec!["token", "new", "--role", "admin", "--name", "x", "--tokens", &under_file],
            "a part of the path",
        ),
        (vec!["listen", "http://127.0.0.1:1"], "nothing listens there"),
        (vec!["schema", "--out", &under_file], "a part of the path is a file"),
        (vec!["serve", "--listen", "hub.example:8787"], "such as 127.0.0.1:8787"),
    ] {
        let said = refused(&arguments);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn a_hub_listens_on_localhost_by_its_name() {
    let hub = Hub::start(&["--memory", "--open", "--listen", "localhost:0"]);
    assert!(hub.address.starts_with("127.0.0.1:"), "{}", hub.address);
    assert_eq!(hub.client().get("/healthz").status, 200);
}

#[test]
fn folders_are_made_for_their_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (data, tokens) = (folder.path().join("hub/data"), folder.path().join("made/tokens"));
    let _hub = Hub::start(&["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    testing::cli::token(tokens.to_str().unwrap(), &["--role", "listener", "--name", "ada"]);
    for made in [data.as_path(), data.parent().unwrap(), tokens.parent().unwrap()] {
        assert_eq!(mode(made), 0o700, "{}", made.display());
    }
    for file in std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path()) {
        let public = file.ends_with("manifest.jwk");
        assert!(public || mode(&file) == 0o600, "{}: {:o}", file.display(), mode(&file));
    }
}

#[test]
fn a_token_has_a_name_that_can_be_read_and_is_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    for name in ["a\nb", "a\u{1b}[2J", "\u{202e}ada", "", "  ", "local", "sayso-demo", "sayso-embedded"] {
        let tokens =
            ["token", "new", "--tokens", file.to_str().unwrap(), "--role", "listener", "--name", name];
        let said = refused(&tokens);
        assert!(said.contains("name") && !said.contains('\u{1b}'), "{said}");
    }
    assert!(!file.exists());
}

#[test]
fn an_address_on_this_machine_needs_no_scheme() {
    let hub = Hub::open();
    let port = hub.address.rsplit(':').next().unwrap();
    for address in [format!("127.0.0.1:{port}"), format!("localhost:{port}")] {
        let ended = sayso(&["listen", &address, "--json"], "quit\n");
        assert_eq!(ended.code, 0, "{}", ended.err);
        assert!(ended.err.contains(&format!("{address} is taken as http://{address}")), "{}", ended.err);
    }
    let said = refused(&["listen", "hub.example:8787"]);
    assert!(said.contains("write https://hub.example:8787, or http://hub.example:8787"), "{said}");
}
