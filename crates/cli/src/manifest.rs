//! `sayso manifest`: producer manifests and their signatures.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use aaep::manifest::{self, ManifestError, TrustedKeys};
use clap::Subcommand;
use seal::es256::SigningKey;
use seal::{Jwk, KeyFileError, SystemRandom};

use crate::ExitStatus;
use crate::file::{CommandError, display_name, read};
use crate::output::{describe_io_error, print_stderr, print_stdout, printable};

#[derive(Subcommand)]
pub(crate) enum ManifestCommand {
    /// Create a signing key (ES256) and print its public key as a JWK, for listeners.
    Keygen(KeygenArgs),
    /// Sign a manifest and print it as a compact JWS.
    Sign(SignArgs),
    /// Verify that a manifest is signed with a trusted key and follows the rules of AAEP.
    Verify(VerifyArgs),
}

#[derive(clap::Args)]
pub(crate) struct KeygenArgs {
    /// Key file to create, readable only by its owner. An existing file is not overwritten.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_KEY_FILE)]
    key: PathBuf,
}

#[derive(clap::Args)]
pub(crate) struct SignArgs {
    /// Key file to sign with.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_KEY_FILE)]
    key: PathBuf,
    /// Manifest as JSON; - reads standard input.
    #[arg(default_value = "-")]
    manifest: PathBuf,
}

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("trusted").required(true))]
pub(crate) struct VerifyArgs {
    /// Signed manifest, a compact JWS; - reads standard input.
    file: PathBuf,
    /// Key file of the expected signer, as created by keygen.
    #[arg(long, value_name = "FILE", group = "trusted")]
    key: Option<PathBuf>,
    /// Public key of the expected signer: a JWK or JWK Set that you already trust.
    #[arg(long, value_name = "FILE", group = "trusted")]
    jwk: Option<PathBuf>,
}

const DEFAULT_KEY_FILE: &str = "sayso-manifest.key";
/// Maximum size of a file with public keys.
const MAX_KEY_FILE_BYTES: u64 = 64 * 1024;
const MAX_MANIFEST_BYTES: u64 = manifest::MAX_SIGNED_BYTES as u64;

pub(crate) fn run(command: &ManifestCommand) -> Result<ExitStatus, CommandError> {
    let result = match command {
        ManifestCommand::Keygen(arguments) => keygen(arguments),
        ManifestCommand::Sign(arguments) => sign(arguments),
        ManifestCommand::Verify(arguments) => verify(arguments),
    };
    result.map(|text| print_stdout(&text))
}

fn keygen(arguments: &KeygenArgs) -> Result<String, CommandError> {
    let key = SigningKey::generate(&mut SystemRandom);
    key.save(&arguments.key).map_err(|reason| CommandError::cannot_run(describe_key_error(&reason)))?;
    print_stderr(&format!(
        "{} holds the secret key. Share only the public key printed here.",
        display_name(&arguments.key)
    ));
    Ok(public_jwk(&key).to_json() + "\n")
}

fn sign(arguments: &SignArgs) -> Result<String, CommandError> {
    let key = SigningKey::load(&arguments.key).map_err(|reason| {
        let is_missing = matches!(&reason, KeyFileError::Io(_, error) if error.kind() == ErrorKind::NotFound);
        let hint = if is_missing { "; sayso manifest keygen creates a key" } else { "" };
        CommandError::cannot_run(describe_key_error(&reason) + hint)
    })?;
    let bytes = read(&arguments.manifest, MAX_MANIFEST_BYTES, "")?;
    let file = display_name(&arguments.manifest);
    let text = decode_utf8(&file, &bytes)?.trim();
    if text.is_empty() {
        return Err(CommandError::cannot_run(format!(
            "{file} is empty; give the path of a manifest, or pipe one in"
        )));
    }
    let signed = manifest::sign(text, &key).map_err(|reason| manifest_error(&file, &reason))?;
    Ok(signed + "\n")
}

fn verify(arguments: &VerifyArgs) -> Result<String, CommandError> {
    let trusted = match (&arguments.key, &arguments.jwk) {
        (Some(path), _) => TrustedKeys::from_key(public_jwk(&load_signing_key(path)?)),
        (None, Some(path)) => load_trusted_keys(path)?,
        (None, None) => {
            return Err(CommandError::cannot_run("--key or --jwk is required"));
        }
    };
    let bytes = read(&arguments.file, MAX_MANIFEST_BYTES, "")?;
    let file = display_name(&arguments.file);
    let text = decode_utf8(&file, &bytes)?.trim();
    let manifest = manifest::verify(text, &trusted).map_err(|reason| manifest_error(&file, &reason))?;
    let agent = printable(&manifest.agent_id);
    Ok(format!("{file}: the manifest of {agent} is valid and signed with a trusted key.\n"))
}

pub(crate) fn load_trusted_keys(path: &Path) -> Result<TrustedKeys, CommandError> {
    let bytes = read(path, MAX_KEY_FILE_BYTES, "")?;
    let unusable = |reason: &dyn std::fmt::Display| {
        CommandError::cannot_run(format!("cannot use {}: it {reason}", display_name(path)))
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| unusable(&"is not UTF-8"))?;
    TrustedKeys::read(text).map_err(|reason| unusable(&reason))
}

fn load_signing_key(path: &Path) -> Result<SigningKey, CommandError> {
    SigningKey::load(path).map_err(|reason| CommandError::cannot_run(describe_key_error(&reason)))
}

fn public_jwk(key: &SigningKey) -> Jwk {
    Jwk::P256(key.verifying_key().clone())
}

fn describe_key_error(reason: &KeyFileError) -> String {
    match reason {
        KeyFileError::Io(path, error) if error.kind() == ErrorKind::AlreadyExists => {
            format!("{} already exists and was not overwritten", display_name(path))
        }
        KeyFileError::Io(path, error) => {
            format!("cannot use {}: {}", display_name(path), describe_io_error(error))
        }
        other => printable(&other.to_string()),
    }
}

fn decode_utf8<'b>(file: &str, bytes: &'b [u8]) -> Result<&'b str, CommandError> {
    std::str::from_utf8(bytes).map_err(|_| CommandError::fault(format!("{file}: error: not UTF-8")))
}

/// Returns the faults of a manifest or signature, one line each.
fn manifest_error(file: &str, reason: &ManifestError) -> CommandError {
    let ManifestError::RuleViolations(findings) = reason else {
        return CommandError::fault(format!(
            "{file}: error: the manifest {}",
            printable(&reason.to_string())
        ));
    };
    let mut lines = Vec::new();
    for finding in findings {
        let (severity, rule) = (finding.severity.as_str(), finding.rule.id());
        lines.push(printable(&format!(
            "{file}: {severity} {rule} {}: {}",
            finding.pointer,
            finding.message()
        )));
    }
    if lines.is_empty() {
        lines.push(format!("{file}: error: not a manifest: its type must be aaep:producer.manifest"));
    }
    CommandError::fault(lines.join("\n"))
}
