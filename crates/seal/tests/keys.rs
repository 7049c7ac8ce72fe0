//! The key file: who may read it, what may stand in it, and that it comes back as it was.

use std::fs;
use std::path::{Path, PathBuf};

use seal::{KeyFileError, Keys, SystemRandom, base64url};
use serde_json::{Value, json};
use tempfile::TempDir;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.keys");
    (folder, path)
}

/// Writes what a key file could hold, readable to its owner only, and loads it.
fn load(content: &[u8]) -> Result<Keys, KeyFileError> {
    let (_folder, path) = folder();
    fs::write(&path, content).unwrap();
    close(&path, 0o600);
    Keys::load(&path)
}

#[cfg(unix)]
fn close(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
fn close(_: &Path, _: u32) {}

/// A good file, to be damaged.
fn good() -> (Keys, Value) {
    let (_folder, path) = folder();
    let keys = Keys::generate(&mut SystemRandom);
    keys.save(&path).unwrap();
    (keys, serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap())
}

fn damaged(damage: impl FnOnce(&mut Vec<Value>)) -> Result<Keys, KeyFileError> {
    let (_, mut file) = good();
    damage(file["keys"].as_array_mut().unwrap());
    load(file.to_string().as_bytes())
}

fn same(one: &Keys, other: &Keys) -> bool {
    one.signing.verifying_key() == other.signing.verifying_key()
        && one.dpop.verifying_key() == other.dpop.verifying_key()
}

#[test]
fn saved_keys_load_again_and_sign_as_before() {
    let (_folder, path) = folder();
    let keys = Keys::generate(&mut SystemRandom);
    keys.save(&path).unwrap();
    let again = Keys::load(&path).unwrap();
    assert!(same(&keys, &again));
    assert_eq!(again.signing.sign(b"m"), keys.signing.sign(b"m"));
    let proof = again.dpop.sign(b"m").unwrap();
    assert!(keys.dpop.verifying_key().verify(b"m", &proof));
}

#[test]
fn new_keys_are_new() {
    let one = Keys::generate(&mut SystemRandom);
    assert!(!same(&one, &Keys::generate(&mut SystemRandom)));
}

#[test]
fn the_same_randomness_makes_the_same_keys() {
    let keys = || {
        let mut next = 0;
        Keys::generate(&mut |bytes: &mut [u8]| {
            for byte in bytes {
                next += 1;
                *byte = next;
            }
        })
    };
    assert!(same(&keys(), &keys()));
}

#[test]
fn the_file_is_a_set_of_two_secret_jwks() {
    let (keys, file) = good();
    let [ed25519, p256] = &file["keys"].as_array().unwrap()[..] else { panic!("two keys, not {file}") };
    let (x, y) = keys.dpop.verifying_key().coordinates();
    assert_eq!(
        (&ed25519["kty"], &ed25519["crv"], &ed25519["x"]),
        (
            &json!("OKP"),
            &json!("Ed25519"),
            &json!(base64url::encode(keys.signing.verifying_key().as_bytes()))
        )
    );
    assert_eq!(
        (&p256["kty"], &p256["crv"], &p256["x"], &p256["y"]),
        (&json!("EC"), &json!("P-256"), &json!(base64url::encode(x)), &json!(base64url::encode(y)))
    );
    for key in [ed25519, p256] {
        assert_eq!(base64url::decode(key["d"].as_str().unwrap()).unwrap().len(), 32);
    }
}

#[test]
fn the_order_of_the_keys_and_what_is_unknown_do_not_matter() {
    let (keys, mut file) = good();
    file["keys"].as_array_mut().unwrap().reverse();
    file["keys"][0]["kid"] = json!("one");
    file["keys"].as_array_mut().unwrap().push(json!({"kty": "EC", "crv": "P-384", "d": "AA"}));
    assert!(same(&keys, &load(file.to_string().as_bytes()).unwrap()));
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_new_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_folder, path) = folder();
    Keys::generate(&mut SystemRandom).save(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
}

#[test]
fn an_existing_file_is_left_alone() {
    let (_folder, path) = folder();
    fs::write(&path, "precious").unwrap();
    let refused = Keys::generate(&mut SystemRandom).save(&path);
    let Err(KeyFileError::Io(named, why)) = refused else { panic!("{refused:?}") };
    assert_eq!((named.as_path(), why.kind()), (path.as_path(), std::io::ErrorKind::AlreadyExists));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_not_followed_to_write() {
    let (folder, path) = folder();
    let target = folder.path().join("elsewhere");
    std::os::unix::fs::symlink(&target, &path).unwrap();
    assert!(Keys::generate(&mut SystemRandom).save(&path).is_err());
    assert!(!target.exists());
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_use_is_refused_and_the_remedy_named() {
    let (_folder, path) = folder();
    Keys::generate(&mut SystemRandom).save(&path).unwrap();
    for mode in [0o640, 0o620, 0o610, 0o604, 0o602, 0o601, 0o644, 0o666, 0o777] {
        close(&path, mode);
        let error = Keys::load(&path).expect_err("others can use it");
        assert!(matches!(error, KeyFileError::Open(_, found) if found == mode), "{error:?}");
        let words = error.to_string();
        assert!(words.contains(&format!("chmod 600 {}", path.display())), "{words}");
        assert!(words.contains(&format!("{mode:o}")), "{words}");
    }
    for mode in [0o600, 0o400, 0o700] {
        close(&path, mode);
        assert!(Keys::load(&path).is_ok(), "{mode:o}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let (_folder, path) = folder();
    let error = Keys::load(&path).expect_err("there is none");
    assert!(matches!(error, KeyFileError::Io(..)));
    assert!(error.to_string().contains("agent.keys"), "{error}");
}

#[test]
fn garbage_is_refused() {
    let garbage: [&[u8]; 12] = [
        b"",
        b" ",
        b"keys",
        b"null",
        b"[]",
        b"{}",
        b"{\"keys\":null}",
        b"{\"keys\":{}}",
        b"{\"keys\":[]}",
        b"{\"keys\":[1,null,\"x\",[],{}]}",
        b"\xff\xfe\x00",
        b"-----BEGIN PRIVATE KEY-----\n",
    ];
    for content in garbage {
        let error = load(content).expect_err("garbage");
        assert!(matches!(error, KeyFileError::Form(_) | KeyFileError::Io(..)), "{error:?}");
    }
    let (_, file) = good();
    let text = file.to_string();
    for end in 0..text.len() {
        assert!(load(&text.as_bytes()[..end]).is_err(), "cut after {end} bytes");
    }
    assert!(load(format!("{text}{text}").as_bytes()).is_err());
}

#[test]
fn a_file_that_is_too_long_is_refused_wherever_its_keys_stand() {
    let (keys, file) = good();
    let text = file.to_string();
    let most = format!("{text:<4096}");
    assert!(same(&keys, &load(most.as_bytes()).unwrap()));
    for long in [
        format!("{text:<4097}"),
        format!("{text:<60000}"),
        // What is not read would matter: here it makes the whole no JSON at all.
        format!("{text:<5000}garbage"),
        format!("{text:>5000}"),
        format!("{{\"pad\":\"{}\",{}", "x".repeat(5000), &text[1..]),
    ] {
        let error = load(long.as_bytes()).expect_err("too long");
        assert!(matches!(error, KeyFileError::Form(_)), "{error:?}");
    }
}

#[test]
fn both_keys_must_be_there_and_once() {
    for at in 0..2 {
        assert!(matches!(damaged(|keys| drop(keys.remove(at))), Err(KeyFileError::Form(_))), "without {at}");
        assert!(
            matches!(damaged(|keys| keys.push(keys[at].clone())), Err(KeyFileError::Form(_))),
            "twice {at}"
        );
    }
    let (_, other) = good();
    for at in 0..2 {
        let two = damaged(|keys| keys.push(other["keys"][at].clone()));
        assert!(matches!(two, Err(KeyFileError::Form(_))), "two kinds of {at}");
    }
}

#[test]
fn a_secret_that_is_none_is_refused() {
    let (_, file) = good();
    for at in 0..2 {
        let secret = file["keys"][at]["d"].as_str().unwrap().to_owned();
        for wrong in [
            Value::Null,
            json!(1),
            json!(""),
            json!([secret.as_str()]),
            json!(&secret[1..]),
            json!(format!("{secret}=")),
            json!(format!("{secret}A")),
            json!(format!(" {secret}")),
            json!(base64url::encode(&[7; 31])),
            json!(base64url::encode(&[7; 33])),
        ] {
            let result = damaged(|keys| keys[at]["d"] = wrong.clone());
            assert!(matches!(result, Err(KeyFileError::Form(_))), "{wrong} as secret {at}");
        }
        assert!(damaged(|keys| drop(keys[at].as_object_mut().unwrap().remove("d"))).is_err());
        assert!(damaged(|keys| keys[at]["crv"] = json!("P-521")).is_err());
    }
    // Zero and all ones are no numbers of P-256.
    for wrong in [[0; 32], [0xff; 32]] {
        assert!(damaged(|keys| keys[1]["d"] = json!(base64url::encode(&wrong))).is_err());
    }
}

#[test]
fn keys_do_not_print_themselves() {
    let (keys, file) = good();
    let printed = format!("{keys:?}");
    for key in file["keys"].as_array().unwrap() {
        assert!(!printed.contains(key["d"].as_str().unwrap()), "{printed}");
    }
}
