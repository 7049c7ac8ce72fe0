//! The hub's own manifest, and the key that signs it.

use std::path::Path;

use aaep::json::{Raw, object};
use aaep::message::{Manifest, Message};
use seal::es256::SigningKey;
use seal::{Jwk, SystemRandom};

use crate::print::{in_words, tell};

pub(crate) const AGENT_ID: &str = "sayso-hub";

/// What the hub can do (§5.10), and on which wires.
pub(crate) fn text(transports: &[&str]) -> String {
    let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let mut manifest = Manifest::new(AGENT_ID, owned(&["1.0.0"]), vec![1, 2, 3], owned(transports));
    manifest.agent_version = Some(env!("CARGO_PKG_VERSION").to_owned());
    manifest.agent_name = Some("sayso hub".to_owned());
    manifest.event_types_emitted = Some(owned(&["aaep:agent.*"]));
    manifest.extensions_supported = Some(owned(&["urn:sayso:context:v1"]));
    if let Ok(ours) = Raw::parse(&extension(transports.contains(&"unix-socket"))) {
        manifest.other.set("extensions", ours);
    }
    Message::Manifest(manifest).to_json()
}

/// What a manifest has no member for: where the HTTP routes begin (B.1.1), and how the socket frames (B.4.4, C-E10).
fn extension(unix: bool) -> String {
    object(|writer| {
        writer.key("sayso").object(|writer| {
            writer.key("http_prefix").text("/aaep/v1");
            if unix {
                writer.key("unix_socket").raw(r#"{"framing":["length-prefix","ndjson"]}"#);
            }
        });
    })
}

/// Signs it: with the key in the folder, which the first start makes, or with one that ends with this run.
pub(super) fn sign(text: &str, folder: Option<&Path>) -> Result<String, String> {
    let key = match folder {
        Some(folder) => kept(folder)?,
        None => SigningKey::generate(&mut SystemRandom),
    };
    aaep::manifest::sign(text, &key).map_err(|why| format!("the manifest {why}"))
}

/// The key in the folder; its public half lies beside it, for those who listen.
fn kept(folder: &Path) -> Result<SigningKey, String> {
    let (path, shown) = (folder.join("manifest.key"), folder.join("manifest.jwk"));
    let is_new = !path.exists();
    let key = if is_new {
        let key = SigningKey::generate(&mut SystemRandom);
        key.save(&path).map(|()| key)
    } else {
        SigningKey::load(&path)
    }
    .map_err(|why| why.to_string())?;
    if is_new || !shown.exists() {
        let public = Jwk::P256(key.verifying_key().clone()).to_json() + "\n";
        std::fs::write(&shown, public)
            .map_err(|error| format!("cannot write {}: {}", shown.display(), in_words(&error)))?;
        tell(&format!("the manifest is signed; the public key for those who listen is {}", shown.display()));
    }
    Ok(key)
}
