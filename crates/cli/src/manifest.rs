//! `sayso manifest`: producer manifests and their signatures.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use aaep::manifest::{self, ManifestError, Trusted};
use clap::Subcommand;
use seal::es256::SigningKey;
use seal::{Jwk, KeyFileError, SystemRandom};

use crate::Outcome;
use crate::file::{Stop, name, read};
use crate::print::{in_words, print, printable, tell};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Makes a key to sign with (ES256), and prints its public half as a JWK for those who listen.
    Keygen(Keygen),
    /// Signs a manifest, and prints it as a compact JWS.
    Sign(Sign),
    /// Checks a signed manifest: whose it is, that nothing was changed, and that it is lawful.
    Verify(Verify),
}

#[derive(clap::Args)]
pub(crate) struct Keygen {
    /// The file to make; only its owner can read it. One that is there already is left alone.
    #[arg(long, value_name = "FILE", default_value = KEY)]
    key: PathBuf,
}

#[derive(clap::Args)]
pub(crate) struct Sign {
    /// The key to sign with.
    #[arg(long, value_name = "FILE", default_value = KEY)]
    key: PathBuf,
    /// The manifest, as JSON; - reads standard input.
    #[arg(default_value = "-")]
    manifest: PathBuf,
}

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("trusted").required(true))]
pub(crate) struct Verify {
    /// The signed manifest, a compact JWS; - reads standard input.
    file: PathBuf,
    /// The key that it must be signed with, as keygen has made it.
    #[arg(long, value_name = "FILE", group = "trusted")]
    key: Option<PathBuf>,
    /// The public key that it must be signed with: a JWK or a set of them, as you got it beforehand.
    #[arg(long, value_name = "FILE", group = "trusted")]
    jwk: Option<PathBuf>,
}

/// Where a key is kept if nobody says otherwise.
const KEY: &str = "sayso-manifest.key";
/// No file of public keys is longer.
const KEYS_LIMIT: u64 = 64 * 1024;
const MANIFEST_LIMIT: u64 = manifest::LONGEST as u64;

pub(crate) fn run(command: &Command) -> Result<Outcome, Stop> {
    let done = match command {
        Command::Keygen(arguments) => keygen(arguments),
        Command::Sign(arguments) => sign(arguments),
        Command::Verify(arguments) => verify(arguments),
    };
    done.map(|text| print(&text))
}

fn keygen(arguments: &Keygen) -> Result<String, Stop> {
    let key = SigningKey::generate(&mut SystemRandom);
    key.save(&arguments.key).map_err(|why| Stop::failed(key_words(&why)))?;
    tell(&format!("{} holds the secret key; give away only what is printed here.", name(&arguments.key)));
    Ok(public(&key).to_json() + "\n")
}

fn sign(arguments: &Sign) -> Result<String, Stop> {
    let key = SigningKey::load(&arguments.key).map_err(|why| {
        let missing = matches!(&why, KeyFileError::Io(_, error) if error.kind() == ErrorKind::NotFound);
        let more = if missing { "; sayso manifest keygen makes a key" } else { "" };
        Stop::failed(key_words(&why) + more)
    })?;
    let bytes = read(&arguments.manifest, MANIFEST_LIMIT, "")?;
    let file = name(&arguments.manifest);
    let text = text(&file, &bytes)?.trim();
    if text.is_empty() {
        return Err(Stop::failed(format!(
            "{file} is empty: there is no manifest to sign; name its file, or pipe it in"
        )));
    }
    let signed = manifest::sign(text, &key).map_err(|why| not_signed(&file, &why))?;
    Ok(signed + "\n")
}

fn verify(arguments: &Verify) -> Result<String, Stop> {
    let trusted = match (&arguments.key, &arguments.jwk) {
        (Some(path), _) => Trusted::key(public(&load(path)?)),
        (None, Some(path)) => trusted(path)?,
        (None, None) => return Err(Stop::failed("--key or --jwk says whose signature it must be")),
    };
    let bytes = read(&arguments.file, MANIFEST_LIMIT, "")?;
    let file = name(&arguments.file);
    let text = text(&file, &bytes)?.trim();
    let manifest = manifest::verify(text, &trusted).map_err(|why| not_signed(&file, &why))?;
    let agent = printable(&manifest.agent_id);
    Ok(format!("{file}: the manifest of {agent}. It is signed with the key you named, and lawful.\n"))
}

pub(crate) fn trusted(path: &Path) -> Result<Trusted, Stop> {
    let bytes = read(path, KEYS_LIMIT, "")?;
    let wrong = |why: &dyn std::fmt::Display| Stop::failed(format!("cannot use {}: it {why}", name(path)));
    let text = std::str::from_utf8(&bytes).map_err(|_| wrong(&"is not UTF-8"))?;
    Trusted::read(text).map_err(|why| wrong(&why))
}

fn load(path: &Path) -> Result<SigningKey, Stop> {
    SigningKey::load(path).map_err(|why| Stop::failed(key_words(&why)))
}

fn public(key: &SigningKey) -> Jwk {
    Jwk::P256(key.verifying_key().clone())
}

fn key_words(why: &KeyFileError) -> String {
    match why {
        KeyFileError::Io(path, error) if error.kind() == ErrorKind::AlreadyExists => {
            format!("{}: there is a file already; it is left alone", name(path))
        }
        KeyFileError::Io(path, error) => format!("cannot use {}: {}", name(path), in_words(error)),
        other => printable(&other.to_string()),
    }
}

fn text<'b>(file: &str, bytes: &'b [u8]) -> Result<&'b str, Stop> {
    std::str::from_utf8(bytes).map_err(|_| Stop::fault(format!("{file}: error not UTF-8")))
}

/// What is wrong with what was examined, a line for each thing.
fn not_signed(file: &str, why: &ManifestError) -> Stop {
    let ManifestError::Unlawful(findings) = why else {
        return Stop::fault(format!("{file}: error it {}", printable(&why.to_string())));
    };
    let mut lines = Vec::new();
    for finding in findings {
        let (word, rule) = (finding.severity.word(), finding.rule.id());
        lines.push(printable(&format!("{file}: {word} {rule} {}: {}", finding.pointer, finding.message())));
    }
    if lines.is_empty() {
        lines.push(format!("{file}: error it is no manifest (type aaep:producer.manifest)"));
    }
    Stop::fault(lines.join("\n"))
}
