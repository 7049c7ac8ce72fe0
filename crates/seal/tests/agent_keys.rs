//! The agent key file: its permissions, its format, and saving and loading.

use std::fs;
use std::path::{Path, PathBuf};

use seal::{AgentKeys, KeyFileError, SystemRandom, base64url};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Creates a temporary folder. Returns it with the path of a key file that does not exist yet.
fn key_path() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.keys");
    (folder, path)
}

/// Writes this content to a key file that only its owner can read, and loads it.
fn load(content: &[u8]) -> Result<AgentKeys, KeyFileError> {
    let (_folder, path) = key_path();
    fs::write(&path, content).unwrap();
    set_mode(&path, 0o600);
    AgentKeys::load(&path)
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) {}

/// Creates valid keys and the JSON of their file.
fn valid_keys() -> (AgentKeys, Value) {
    let (_folder, path) = key_path();
    let keys = AgentKeys::generate(&mut SystemRandom);
    keys.save(&path).unwrap();
    (keys, serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap())
}

fn load_damaged(damage: impl FnOnce(&mut Vec<Value>)) -> Result<AgentKeys, KeyFileError> {
    let (_, mut file) = valid_keys();
    damage(file["keys"].as_array_mut().unwrap());
    load(file.to_string().as_bytes())
}

fn are_same_keys(one: &AgentKeys, other: &AgentKeys) -> bool {
    one.signing.verifying_key() == other.signing.verifying_key()
        && one.dpop.verifying_key() == other.dpop.verifying_key()
}

#[test]
fn loaded_keys_sign_like_the_saved_keys() {
    let (_folder, path) = key_path();
    let keys = AgentKeys::generate(&mut SystemRandom);
    keys.save(&path).unwrap();
    let loaded = AgentKeys::load(&path).unwrap();
    assert!(are_same_keys(&keys, &loaded));
    assert_eq!(loaded.signing.sign(b"m"), keys.signing.sign(b"m"));
    let signature = loaded.dpop.sign(b"m").unwrap();
    assert!(keys.dpop.verifying_key().verify(b"m", &signature));
}

#[test]
fn generated_keys_differ() {
    let one = AgentKeys::generate(&mut SystemRandom);
    assert!(!are_same_keys(&one, &AgentKeys::generate(&mut SystemRandom)));
}

#[test]
fn the_same_random_bytes_give_the_same_keys() {
    let generate = || {
        let mut next = 0;
        AgentKeys::generate(&mut |bytes: &mut [u8]| {
            for byte in bytes {
                next += 1;
                *byte = next;
            }
        })
    };
    assert!(are_same_keys(&generate(), &generate()));
}

#[test]
fn the_file_is_a_set_of_two_secret_jwks() {
    let (keys, file) = valid_keys();
    let [ed25519, p256] = &file["keys"].as_array().unwrap()[..] else {
        panic!("there must be two keys: {file}")
    };
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
fn key_order_and_unknown_keys_and_members_do_not_matter() {
    let (keys, mut file) = valid_keys();
    file["keys"].as_array_mut().unwrap().reverse();
    file["keys"][0]["kid"] = json!("one");
    file["keys"].as_array_mut().unwrap().push(json!({"kty": "EC", "crv": "P-384", "d": "AA"}));
    assert!(are_same_keys(&keys, &load(file.to_string().as_bytes()).unwrap()));
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_new_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_folder, path) = key_path();
    AgentKeys::generate(&mut SystemRandom).save(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
}

#[test]
fn saving_does_not_overwrite_an_existing_file() {
    let (_folder, path) = key_path();
    fs::write(&path, "precious").unwrap();
    let result = AgentKeys::generate(&mut SystemRandom).save(&path);
    let Err(KeyFileError::Io(error_path, error)) = result else { panic!("{result:?}") };
    assert_eq!((error_path.as_path(), error.kind()), (path.as_path(), std::io::ErrorKind::AlreadyExists));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[cfg(unix)]
#[test]
fn saving_does_not_follow_a_dangling_symlink() {
    let (folder, path) = key_path();
    let target = folder.path().join("elsewhere");
    std::os::unix::fs::symlink(&target, &path).unwrap();
    assert!(AgentKeys::generate(&mut SystemRandom).save(&path).is_err());
    assert!(!target.exists());
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_access_is_refused_with_a_chmod_hint() {
    let (_folder, path) = key_path();
    AgentKeys::generate(&mut SystemRandom).save(&path).unwrap();
    for mode in [0o640, 0o620, 0o610, 0o604, 0o602, 0o601, 0o644, 0o666, 0o777] {
        set_mode(&path, mode);
        let error = AgentKeys::load(&path).expect_err("other users can access the file");
        assert!(matches!(error, KeyFileError::InsecurePermissions(_, found) if found == mode), "{error:?}");
        let message = error.to_string();
        assert!(message.contains(&format!("chmod 600 {}", path.display())), "{message}");
        assert!(message.contains(&format!("{mode:o}")), "{message}");
    }
    for mode in [0o600, 0o400, 0o700] {
        set_mode(&path, mode);
        assert!(AgentKeys::load(&path).is_ok(), "{mode:o}");
    }
}

#[test]
fn the_error_for_a_missing_file_names_it() {
    let (_folder, path) = key_path();
    let error = AgentKeys::load(&path).expect_err("the file does not exist");
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
        assert!(matches!(error, KeyFileError::NotAgentKeys(_) | KeyFileError::Io(..)), "{error:?}");
    }
    let (_, file) = valid_keys();
    let text = file.to_string();
    for end in 0..text.len() {
        assert!(load(&text.as_bytes()[..end]).is_err(), "cut after {end} bytes");
    }
    assert!(load(format!("{text}{text}").as_bytes()).is_err());
}

#[test]
fn an_oversized_file_is_refused() {
    let (keys, file) = valid_keys();
    let text = file.to_string();
    let longest = format!("{text:<4096}");
    assert!(are_same_keys(&keys, &load(longest.as_bytes()).unwrap()));
    for long in [
        format!("{text:<4097}"),
        format!("{text:<60000}"),
        // The text before the limit is valid. It must not be used without the rest of the file.
        format!("{text:<5000}garbage"),
        format!("{text:>5000}"),
        format!("{{\"pad\":\"{}\",{}", "x".repeat(5000), &text[1..]),
    ] {
        let error = load(long.as_bytes()).expect_err("too long");
        assert!(matches!(error, KeyFileError::NotAgentKeys(_)), "{error:?}");
    }
}

#[test]
fn each_key_must_be_present_exactly_once() {
    for index in 0..2 {
        assert!(
            matches!(load_damaged(|keys| drop(keys.remove(index))), Err(KeyFileError::NotAgentKeys(_))),
            "without key {index}"
        );
        assert!(
            matches!(load_damaged(|keys| keys.push(keys[index].clone())), Err(KeyFileError::NotAgentKeys(_))),
            "key {index} twice"
        );
    }
    let (_, other) = valid_keys();
    for index in 0..2 {
        let result = load_damaged(|keys| keys.push(other["keys"][index].clone()));
        assert!(matches!(result, Err(KeyFileError::NotAgentKeys(_))), "two different keys {index}");
    }
}

#[test]
fn an_invalid_secret_is_refused() {
    let (_, file) = valid_keys();
    for index in 0..2 {
        let secret = file["keys"][index]["d"].as_str().unwrap().to_owned();
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
            let result = load_damaged(|keys| keys[index]["d"] = wrong.clone());
            assert!(matches!(result, Err(KeyFileError::NotAgentKeys(_))), "{wrong} as secret {index}");
        }
        assert!(load_damaged(|keys| drop(keys[index].as_object_mut().unwrap().remove("d"))).is_err());
        assert!(load_damaged(|keys| keys[index]["crv"] = json!("P-521")).is_err());
    }
    // Zero and all ones are not valid P-256 secrets.
    for wrong in [[0; 32], [0xff; 32]] {
        assert!(load_damaged(|keys| keys[1]["d"] = json!(base64url::encode(&wrong))).is_err());
    }
}

#[test]
fn debug_output_contains_no_secret() {
    let (keys, file) = valid_keys();
    let printed = format!("{keys:?}");
    for key in file["keys"].as_array().unwrap() {
        assert!(!printed.contains(key["d"].as_str().unwrap()), "{printed}");
    }
}
