//! `sayso manifest`: keygen, sign and verify.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use seal::base64url;

const BANK_MANIFEST: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:producer.manifest","agent_id":"bank","aaep_versions_supported":["1.0.0"],"conformance_levels_supported":[1,2,3],"transports_supported":["sse"]}"#;

/// Runs `sayso manifest` in this folder. Returns the exit code, standard output and standard error.
fn run_manifest(folder: &Path, arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .arg("manifest")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Creates a folder with a key, its public JWK and a signed manifest.
fn create_signed_manifest() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let (code, jwk, stderr) = run_manifest(folder.path(), &["keygen"], "");
    assert_eq!(code, 0, "{stderr}");
    std::fs::write(folder.path().join("bank.jwk"), jwk).unwrap();
    std::fs::write(folder.path().join("bank.json"), BANK_MANIFEST).unwrap();
    let (code, jws, stderr) = run_manifest(folder.path(), &["sign", "bank.json"], "");
    assert_eq!((code, stderr.as_str()), (0, ""));
    std::fs::write(folder.path().join("bank.jws"), &jws).unwrap();
    (folder, jws.trim().to_owned())
}

#[test]
fn a_manifest_can_be_signed_and_verified() {
    let (folder, jws) = create_signed_manifest();
    let folder = folder.path();
    let mode = std::fs::metadata(folder.join("sayso-manifest.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let jwk: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("bank.jwk")).unwrap()).unwrap();
    assert_eq!((&jwk["kty"], &jwk["crv"], jwk.get("d")), (&"EC".into(), &"P-256".into(), None));
    for trusted in [["--jwk", "bank.jwk"], ["--key", "sayso-manifest.key"]] {
        let (code, stdout, stderr) =
            run_manifest(folder, &["verify", "bank.jws", trusted[0], trusted[1]], "");
        assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
        assert!(
            stdout.starts_with("bank.jws: the manifest of bank is valid and signed with a trusted key."),
            "{stdout}"
        );
    }
    let (code, jws_from_stdin, _) =
        run_manifest(folder, &["sign", "--key", "sayso-manifest.key"], BANK_MANIFEST);
    assert_eq!(
        (code, jws_from_stdin.split('.').nth(1)),
        (0, jws.split('.').nth(1)),
        "signing standard input works too"
    );
    assert_eq!(run_manifest(folder, &["verify", "-", "--jwk", "bank.jwk"], &jws_from_stdin).0, 0);
}

#[test]
fn keygen_does_not_overwrite_a_key() {
    let (folder, _) = create_signed_manifest();
    let before = std::fs::read(folder.path().join("sayso-manifest.key")).unwrap();
    let (code, stdout, stderr) = run_manifest(folder.path(), &["keygen"], "");
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("already exists and was not overwritten"), "{stderr}");
    assert_eq!(std::fs::read(folder.path().join("sayso-manifest.key")).unwrap(), before);
}

#[test]
fn a_modified_or_wrongly_signed_manifest_is_invalid() {
    let (folder, jws) = create_signed_manifest();
    let folder = folder.path();
    let parts: Vec<_> = jws.split('.').collect();
    let evil_payload = base64url::encode(BANK_MANIFEST.replace("bank", "evil").as_bytes());
    let header = |text: &str| base64url::encode(text.as_bytes());
    assert_eq!(run_manifest(folder, &["keygen", "--key", "eve.key"], "").0, 0);
    let (_, eve_jws, _) = run_manifest(folder, &["sign", "--key", "eve.key"], BANK_MANIFEST);
    for (text, part) in [
        (format!("{}.{evil_payload}.{}", parts[0], parts[2]), "signature that does not match the key"),
        (eve_jws, "signature that does not match the key"),
        (format!("{}.{}.", header(r#"{"alg":"none"}"#), parts[1]), "algorithm \"none\""),
        (format!("{}.{}.{}", header(r#"{"alg":"HS256"}"#), parts[1], parts[2]), "algorithm \"HS256\""),
        (BANK_MANIFEST.to_owned(), "is not signed"),
        (String::new(), "must be a compact JWS"),
        ("\u{1b}[2J".to_owned(), "must be a compact JWS"),
    ] {
        let (code, stdout, stderr) = run_manifest(folder, &["verify", "-", "--jwk", "bank.jwk"], &text);
        assert_eq!((code, stderr.as_str()), (1, ""), "{stdout}");
        assert!(stdout.starts_with("stdin: error: the manifest ") && stdout.contains(part), "{stdout}");
        assert_eq!(stdout.lines().count(), 1);
    }
}

#[test]
fn an_invalid_manifest_is_not_signed() {
    let (folder, _) = create_signed_manifest();
    let broken = BANK_MANIFEST.replace(r#"["1.0.0"]"#, "[]");
    let (code, stdout, _) = run_manifest(folder.path(), &["sign"], &broken);
    assert_eq!(code, 1);
    assert!(stdout.starts_with("stdin: error AAEP-12.5.3-1 /aaep_versions_supported: "), "{stdout}");
    let (code, stdout, _) =
        run_manifest(folder.path(), &["sign"], r#"{"type":"subscription.close","subscription_id":"sub_1"}"#);
    assert_eq!((code, stdout.contains("not a manifest")), (1, true), "{stdout}");
}

#[test]
fn unusable_arguments_and_files_are_usage_errors() {
    let (folder, _) = create_signed_manifest();
    let folder = folder.path();
    std::fs::write(folder.join("open.key"), std::fs::read(folder.join("sayso-manifest.key")).unwrap())
        .unwrap();
    std::fs::set_permissions(folder.join("open.key"), std::fs::Permissions::from_mode(0o644)).unwrap();
    for (arguments, part) in [
        (&["verify", "bank.jws"][..], "--key"),
        (&["sign"], "stdin is empty; give the path of a manifest, or pipe one in"),
        (&["sign", "--key", "none.key", "bank.json"], "no such file; sayso manifest keygen creates a key"),
        (
            &["verify", "bank.jws", "--key", "sayso-manifest.key", "--jwk", "bank.jwk"],
            "cannot be used together with",
        ),
        (&["verify", "bank.jws", "--jwk", "nobody.jwk"], "there is no such file"),
        (&["verify", "nothing.jws", "--jwk", "bank.jwk"], "there is no such file"),
        (&["verify", "bank.jws", "--jwk", "bank.json"], "must be an object with the strings"),
        (&["verify", "bank.jws", "--jwk", "sayso-manifest.key"], "secret key"),
        (&["verify", "bank.jws", "--key", "bank.jwk"], "chmod 600"),
        (&["sign", "--key", "open.key", "bank.json"], "chmod 600"),
        (&["sign", "--key", "nobody.key", "bank.json"], "there is no such file"),
    ] {
        let (code, stdout, stderr) = run_manifest(folder, arguments, "");
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
    }
}
