//! The hub's manifest, and the key that signs it and the receipts.

use std::path::Path;

use aaep::event::Producer;
use aaep::json::{RawJson, write_object};
use aaep::message::{Manifest, Message};
use seal::es256::SigningKey;
use seal::{Jwk, SystemRandom};

use crate::output::describe_io_error;

pub(crate) const AGENT_ID: &str = client::HUB_SOCKET_NAME;

/// Returns what the hub says about itself when it accepts a subscription (§3.2.6).
pub(crate) fn hub_producer() -> Producer {
    let mut producer = Producer::new(AGENT_ID);
    producer.agent_version = Some(env!("CARGO_PKG_VERSION").to_owned());
    producer.agent_name = Some("sayso hub".to_owned());
    producer
}

/// Returns the hub's manifest as JSON: its capabilities (§5.10) and transports.
pub(crate) fn manifest_json(transports: &[&str]) -> String {
    let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let mut manifest = Manifest::new(AGENT_ID, owned(&["1.0.0"]), vec![1, 2, 3], owned(transports));
    let producer = hub_producer();
    manifest.agent_version = producer.agent_version;
    manifest.agent_name = producer.agent_name;
    manifest.event_types_emitted = Some(owned(&["aaep:agent.*"]));
    manifest.extensions_supported = Some(owned(&["urn:sayso:context:v1"]));
    if let Ok(extension) = RawJson::parse(&manifest_extension(transports.contains(&"unix-socket"))) {
        manifest.other.set("extensions", extension);
    }
    Message::Manifest(manifest).to_json()
}

/// Returns the extension with facts that have no member in a manifest: the prefix of the HTTP routes (B.1.1), the ways in which
/// several agents work together (A.9) and the framing of the Unix socket (B.4.4, C-E10).
fn manifest_extension(has_unix_socket: bool) -> String {
    write_object(|writer| {
        writer.key("sayso").object(|writer| {
            writer.key("http_prefix").text("/aaep/v1");
            writer.key("multi_agent").raw(r#"["shared_session","linked_sessions"]"#);
            if has_unix_socket {
                writer.key("unix_socket").raw(r#"{"framing":["length-prefix","ndjson"]}"#);
            }
        });
    })
}

/// The name of the file with the key that signs the manifest and the receipts.
pub(super) const KEY_FILE_NAME: &str = "manifest.key";

/// Returns the key that signs the manifest and the receipts: the one in the folder, which the first start creates. Without a
/// folder, the key is temporary.
pub(super) fn open_key(folder: Option<&Path>, print_status: impl Fn(&str)) -> Result<SigningKey, String> {
    match folder {
        Some(folder) => load_or_create_key(folder, print_status),
        None => Ok(SigningKey::generate(&mut SystemRandom)),
    }
}

/// Signs the manifest.
pub(super) fn sign(text: &str, key: &SigningKey) -> Result<String, String> {
    aaep::manifest::sign(text, key).map_err(|error| format!("cannot sign the manifest: it {error}"))
}

/// Loads or creates the key in the folder. Also stores the public key in the folder, for listeners.
fn load_or_create_key(folder: &Path, print_status: impl Fn(&str)) -> Result<SigningKey, String> {
    let (path, public_path) = (folder.join(KEY_FILE_NAME), folder.join("manifest.jwk"));
    let is_new = !path.exists();
    let key = if is_new {
        let key = SigningKey::generate(&mut SystemRandom);
        key.save(&path).map(|()| key)
    } else {
        SigningKey::load(&path)
    }
    .map_err(|error| error.to_string())?;
    if is_new || !public_path.exists() {
        let public = Jwk::P256(key.verifying_key().clone()).to_json() + "\n";
        std::fs::write(&public_path, public).map_err(|error| {
            format!("cannot write {}: {}", public_path.display(), describe_io_error(&error))
        })?;
        print_status(&format!(
            "the manifest and receipts are signed; others can verify them with the public key in {}",
            public_path.display()
        ));
    }
    Ok(key)
}
