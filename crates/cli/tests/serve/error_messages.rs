//! Error messages in plain language that say what to do instead. Also token names, addresses and file permissions.

use std::os::unix::fs::PermissionsExt as _;

use testing::cli::run_sayso;
use testing::hub::HubProcess;

/// Runs a command that must fail with exit code 2 and returns its standard error.
fn run_refused(arguments: &[&str]) -> String {
    let output = run_sayso(arguments, "");
    assert_eq!(output.exit_code, 2, "{arguments:?}: {}", output.stderr);
    assert!(
        !output.stderr.contains("os error") && !output.stderr.contains("stopping"),
        "{arguments:?}: {}",
        output.stderr
    );
    output.stderr
}

#[test]
fn system_errors_are_explained_in_plain_language() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("file"), "").unwrap();
    let hub = HubProcess::start_in_memory();
    let serve_arguments = ["serve", "--memory", "--open", "--listen"];
    let error = run_refused(&[&serve_arguments[..], &[&hub.address]].concat());
    assert!(
        error.contains(&format!("cannot listen on {}: another program is using this address", hub.address))
    );
    assert!(error.contains("--listen sets another"), "{error}");
    let demo_error = run_refused(&["demo", "--listen", &hub.address]);
    assert!(demo_error.contains("another program is using this address"), "{demo_error}");
    let under_file = path("file/below");
    for (arguments, expected) in [
        (
            vec!["serve", "--listen", "127.0.0.1:0", "--data", &under_file],
            "part of the path is a file, not a folder",
        ),
        (
            vec!["serve", "--memory", "--listen", "127.0.0.1:0", "--tokens", &under_file],
            "part of the path is a file",
        ),
        (
            vec!["serve", "--memory", "--listen", "127.0.0.1:0", "--tokens", &path("no")],
            "there is no such file",
        ),
        (
            vec!["token", "new", "--role", "admin", "--name", "x", "--tokens", &under_file],
            "part of the path is a file",
        ),
        (vec!["listen", "http://127.0.0.1:1"], "nothing is listening there"),
        (vec!["schema", "--out", &under_file], "part of the path is a file, not a folder"),
        (vec!["serve", "--listen", "hub.example:8787"], "such as 127.0.0.1:8787"),
    ] {
        let error = run_refused(&arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn a_hub_can_listen_on_localhost_by_name() {
    let hub = HubProcess::start(&["--memory", "--open", "--listen", "localhost:0"]);
    assert!(hub.address.starts_with("127.0.0.1:"), "{}", hub.address);
    assert_eq!(hub.client().get("/healthz").status, 200);
}

#[test]
fn folders_are_private_to_their_owner() {
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (data, tokens) = (folder.path().join("hub/data"), folder.path().join("created/tokens"));
    let _hub = HubProcess::start(&["--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    testing::cli::create_token(tokens.to_str().unwrap(), &["--role", "listener", "--name", "ada"]);
    for created in [data.as_path(), data.parent().unwrap(), tokens.parent().unwrap()] {
        assert_eq!(mode(created), 0o700, "{}", created.display());
    }
    for file in std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path()) {
        let is_public = file.ends_with("manifest.jwk");
        assert!(is_public || mode(&file) == 0o600, "{}: {:o}", file.display(), mode(&file));
    }
}

#[test]
fn a_token_name_must_be_readable_and_not_reserved() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    for name in ["a\nb", "a\u{1b}[2J", "\u{202e}ada", "", "  ", "local", "sayso-demo", "sayso-embedded"] {
        let arguments =
            ["token", "new", "--tokens", file.to_str().unwrap(), "--role", "listener", "--name", name];
        let error = run_refused(&arguments);
        assert!(error.contains("name") && !error.contains('\u{1b}'), "{error}");
    }
    assert!(!file.exists());
}

#[test]
fn a_local_address_needs_no_scheme() {
    let hub = HubProcess::start_in_memory();
    let port = hub.address.rsplit(':').next().unwrap();
    for address in [format!("127.0.0.1:{port}"), format!("localhost:{port}")] {
        let output = run_sayso(&["listen", &address, "--json"], "quit\n");
        assert_eq!(output.exit_code, 0, "{}", output.stderr);
        assert!(
            output.stderr.contains(&format!("using http://{address} for {address}")),
            "{}",
            output.stderr
        );
    }
    let error = run_refused(&["listen", "hub.example:8787"]);
    assert!(error.contains("write https://hub.example:8787, or http://hub.example:8787"), "{error}");
}
