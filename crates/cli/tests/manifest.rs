//! `sayso manifest`, through the binary.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use seal::base64url;

const BANK: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:producer.manifest","agent_id":"bank","aaep_versions_supported":["1.0.0"],"conformance_levels_supported":[1,2,3],"transports_supported":["sse"]}"#;

/// The exit code, what was printed, and what was told.
fn sayso(folder: &Path, arguments: &[&str], input: &str) -> (i32, String, String) {
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
    let out = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

/// A folder with a key, its public half and a signed manifest.
fn signed() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let (code, jwk, told) = sayso(folder.path(), &["keygen"], "");
    assert_eq!(code, 0, "{told}");
    std::fs::write(folder.path().join("bank.jwk"), jwk).unwrap();
    std::fs::write(folder.path().join("bank.json"), BANK).unwrap();
    let (code, token, told) = sayso(folder.path(), &["sign", "bank.json"], "");
    assert_eq!((code, told.as_str()), (0, ""));
    std::fs::write(folder.path().join("bank.jws"), &token).unwrap();
    (folder, token.trim().to_owned())
}

#[test]
fn made_signed_and_verified() {
    let (folder, token) = signed();
    let folder = folder.path();
    let mode = std::fs::metadata(folder.join("sayso-manifest.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let jwk: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("bank.jwk")).unwrap()).unwrap();
    assert_eq!((&jwk["kty"], &jwk["crv"], jwk.get("d")), (&"EC".into(), &"P-256".into(), None));
    for trusted in [["--jwk", "bank.jwk"], ["--key", "sayso-manifest.key"]] {
        let (code, said, told) = sayso(folder, &["verify", "bank.jws", trusted[0], trusted[1]], "");
        assert_eq!((code, told.as_str()), (0, ""), "{said}");
        assert!(said.starts_with("bank.jws: the manifest of bank."), "{said}");
    }
    let (code, again, _) = sayso(folder, &["sign", "--key", "sayso-manifest.key"], BANK);
    assert_eq!((code, again.split('.').nth(1)), (0, token.split('.').nth(1)), "from standard input too");
    assert_eq!(sayso(folder, &["verify", "-", "--jwk", "bank.jwk"], &again).0, 0);
}

#[test]
fn a_key_that_is_there_is_left_alone() {
    let (folder, _) = signed();
    let before = std::fs::read(folder.path().join("sayso-manifest.key")).unwrap();
    let (code, said, told) = sayso(folder.path(), &["keygen"], "");
    assert_eq!((code, said.as_str()), (2, ""));
    assert!(told.contains("left alone"), "{told}");
    assert_eq!(std::fs::read(folder.path().join("sayso-manifest.key")).unwrap(), before);
}

#[test]
fn what_was_changed_or_is_signed_otherwise_is_a_fault() {
    let (folder, token) = signed();
    let folder = folder.path();
    let parts: Vec<_> = token.split('.').collect();
    let evil = base64url::encode(BANK.replace("bank", "evil").as_bytes());
    let header = |text: &str| base64url::encode(text.as_bytes());
    assert_eq!(sayso(folder, &["keygen", "--key", "eve.key"], "").0, 0);
    let (_, eves, _) = sayso(folder, &["sign", "--key", "eve.key"], BANK);
    for (text, word) in [
        (format!("{}.{evil}.{}", parts[0], parts[2]), "signature that is not of this key"),
        (eves, "signature that is not of this key"),
        (format!("{}.{}.", header(r#"{"alg":"none"}"#), parts[1]), "algorithm \"none\""),
        (format!("{}.{}.{}", header(r#"{"alg":"HS256"}"#), parts[1], parts[2]), "algorithm \"HS256\""),
        (BANK.to_owned(), "is not signed"),
        (String::new(), "must be a compact JWS"),
        ("\u{1b}[2J".to_owned(), "must be a compact JWS"),
    ] {
        let (code, said, told) = sayso(folder, &["verify", "-", "--jwk", "bank.jwk"], &text);
        assert_eq!((code, told.as_str()), (1, ""), "{said}");
        assert!(said.starts_with("stdin: error it ") && said.contains(word), "{said}");
        assert_eq!(said.lines().count(), 1);
    }
}

#[test]
fn a_manifest_that_is_not_lawful_is_not_signed() {
    let (folder, _) = signed();
    let broken = BANK.replace(r#"["1.0.0"]"#, "[]");
    let (code, said, _) = sayso(folder.path(), &["sign"], &broken);
    assert_eq!(code, 1);
    assert!(said.starts_with("stdin: error AAEP-12.5.3-1 /aaep_versions_supported: "), "{said}");
    let (code, said, _) =
        sayso(folder.path(), &["sign"], r#"{"type":"subscription.close","subscription_id":"sub_1"}"#);
    assert_eq!((code, said.contains("no manifest")), (1, true), "{said}");
}

#[test]
fn what_cannot_be_read_is_no_fault_of_the_manifest() {
    let (folder, _) = signed();
    let folder = folder.path();
    std::fs::write(folder.join("open.key"), std::fs::read(folder.join("sayso-manifest.key")).unwrap())
        .unwrap();
    std::fs::set_permissions(folder.join("open.key"), std::fs::Permissions::from_mode(0o644)).unwrap();
    for (arguments, word) in [
        (&["verify", "bank.jws"][..], "--key"),
        (&["sign"], "there is no manifest to sign"),
        (&["sign", "--key", "none.key", "bank.json"], "no such file; sayso manifest keygen makes a key"),
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
        let (code, said, told) = sayso(folder, arguments, "");
        assert_eq!((code, said.as_str()), (2, ""), "{arguments:?}: {told}");
        assert!(told.contains(word), "{arguments:?}: {told}");
    }
}
