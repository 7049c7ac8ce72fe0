//! The token file: one token per line, stored as a hash.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hub::{Principal, Role, Scope};
use seal::json::{JsonWriter, Tape};
use seal::private_file::{self, KeyFileError};
use seal::{Digest, Random, base64url};
use thiserror::Error;

/// All known tokens, by their digests.
#[derive(Clone, Debug, Default)]
pub struct Tokens(HashMap<Digest, Principal>);

/// The properties of a new token.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// The name of the token's holder.
    pub name: String,
    /// The role of the holder.
    pub role: Role,
    /// The id of the agent that the token authenticates. Required for agents and forbidden for other roles.
    pub agent_id: Option<String>,
    /// What the holder may hear. Unused for agents.
    pub scope: Scope,
}

/// Why tokens cannot be read or created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be read or written, or its permissions are unsafe.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// This line is not a token.
    #[error("{path}:{1}: not a token", path = .0.display())]
    InvalidLine(PathBuf, usize),
    /// The name is not allowed.
    #[error("{}", invalid_name_message(.0))]
    InvalidName(String),
    /// A token with this name exists already.
    #[error("a token named {0:?} already exists")]
    NameTaken(String),
    /// An agent's token has no agent id, or another token has one.
    #[error("--agent-id is required for the role agent, and not allowed for other roles")]
    AgentIdMismatch,
}

/// The names of principals that have no token: every client with `--open`, the demo's assistant, and the agent of an
/// embedded hub.
const RESERVED_NAMES: [&str; 3] = ["local", "sayso-demo", "sayso-embedded"];

fn invalid_name_message(name: &str) -> String {
    if RESERVED_NAMES.contains(&name) {
        return format!("the name {name:?} is reserved");
    }
    format!("invalid name {name:?}: it must not be empty or contain control characters")
}

/// Maximum size of a token file, in bytes.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

impl Tokens {
    /// Loads a token file. Fails if anyone but its owner can read it.
    pub fn load(path: &Path) -> Result<Self, TokenError> {
        let text = private_file::read(path, MAX_FILE_BYTES)?;
        let mut tokens = Self::default();
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
            let (digest, principal) =
                parse_line(line).ok_or_else(|| TokenError::InvalidLine(path.to_owned(), number))?;
            tokens.0.insert(digest, principal);
        }
        Ok(tokens)
    }

    /// Returns the holder of a token, or `None` if the token is unknown.
    pub fn principal(&self, token: &str) -> Option<&Principal> {
        self.0.get(&Digest::of(token.as_bytes()))
    }

    /// Returns the digest of a token and its holder.
    pub(crate) fn lookup(&self, token: &str) -> Option<(Digest, &Principal)> {
        let digest = Digest::of(token.as_bytes());
        self.0.get(&digest).map(|principal| (digest, principal))
    }

    /// Returns the holder of the token with this digest.
    pub(crate) fn principal_by_digest(&self, digest: &Digest) -> Option<&Principal> {
        self.0.get(digest)
    }

    /// Returns whether the principal's token is valid and still has the same role and scope.
    pub(crate) fn is_current(&self, principal: &Principal) -> bool {
        principal.token_digest.as_ref().and_then(|digest| self.0.get(digest)) == Some(principal)
    }

    /// Returns the holders of all tokens.
    pub(crate) fn principals(&self) -> Vec<Principal> {
        self.0.values().cloned().collect()
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Creates and adds a token. Returns the token, which is not stored anywhere, and its line for the file.
    pub fn add(&mut self, new: &NewToken, random: &mut impl Random) -> Result<(String, String), TokenError> {
        if (new.role == Role::Agent) != new.agent_id.is_some() {
            return Err(TokenError::AgentIdMismatch);
        }
        if new.name.trim().is_empty()
            || seal::escape_controls(&new.name, |_| String::new()) != new.name
            || RESERVED_NAMES.contains(&new.name.as_str())
        {
            return Err(TokenError::InvalidName(new.name.clone()));
        }
        if self.0.values().any(|known| *known.name == *new.name) {
            return Err(TokenError::NameTaken(new.name.clone()));
        }
        let mut secret = [0; 32];
        random.fill(&mut secret);
        let token = format!("sayso_{}", base64url::encode(&secret));
        let digest = Digest::of(token.as_bytes());
        let line = format_line(new, &digest);
        if let Some((digest, principal)) = parse_line(&line) {
            self.0.insert(digest, principal);
        }
        Ok((token, line))
    }

    /// Creates a token and appends it to the file, which is created if it does not exist.
    pub fn append(path: &Path, new: &NewToken, random: &mut impl Random) -> Result<String, TokenError> {
        let mut tokens = if path.exists() { Self::load(path)? } else { Self::default() };
        let (token, line) = tokens.add(new, random)?;
        let io_error = |error| KeyFileError::Io(path.to_owned(), error);
        let mut file = private_file::open_options().append(true).create(true).open(path).map_err(io_error)?;
        file.write_all(format!("{line}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(io_error)?;
        Ok(token)
    }
}

fn format_line(new: &NewToken, digest: &Digest) -> String {
    let mut writer = JsonWriter::default();
    writer.open_object();
    let mut member = |name: &str, text: &str| {
        writer.key(name).text(text);
    };
    member("name", &new.name);
    member("role", new.role.as_str());
    member("hash", &digest.to_string());
    if let Some(agent) = &new.agent_id {
        member("agent_id", agent);
    }
    writer.key("scope");
    new.scope.write(&mut writer);
    writer.close_object();
    writer.finish()
}

fn parse_line(line: &str) -> Option<(Digest, Principal)> {
    let mut tape = Tape::default();
    let doc = tape.read(line).ok()?;
    let root = doc.root();
    let text = |name: &str| root.member(name).and_then(|member| member.text());
    let role = Role::parse(&text("role")?)?;
    let agent_id = text("agent_id").map(|agent| Arc::from(&*agent));
    if (role == Role::Agent) != agent_id.is_some() {
        return None;
    }
    let scope = match root.member("scope") {
        Some(scope) => Scope::read(&scope)?,
        None => Scope::default(),
    };
    let digest = Digest::parse(&text("hash")?)?;
    let principal = Principal {
        name: Arc::from(&*text("name")?),
        role,
        agent_id,
        scope: Arc::new(scope),
        is_unauthenticated: false,
        token_digest: Some(digest),
    };
    Some((digest, principal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_token(name: &str, role: Role, agent_id: Option<&str>) -> NewToken {
        NewToken { name: name.into(), role, agent_id: agent_id.map(str::to_owned), scope: Scope::default() }
    }

    #[test]
    fn only_the_hash_of_a_token_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let token =
            Tokens::append(&path, &new_token("bank", Role::Agent, Some("bank")), &mut seal::SystemRandom)
                .unwrap();
        let listener =
            Tokens::append(&path, &new_token("ada", Role::Listener, None), &mut seal::SystemRandom).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&token) && !text.contains(&listener));
        let tokens = Tokens::load(&path).unwrap();
        let bank = tokens.principal(&token).unwrap();
        assert_eq!((bank.role, bank.agent_id.as_deref()), (Role::Agent, Some("bank")));
        assert_eq!(tokens.principal(&listener).unwrap().role, Role::Listener);
        assert!(tokens.principal("sayso_guess").is_none() && tokens.principal("").is_none());
        assert!(matches!(
            Tokens::append(&path, &new_token("ada", Role::Observer, None), &mut seal::SystemRandom),
            Err(TokenError::NameTaken(_))
        ));
        assert!(matches!(
            Tokens::append(&path, &new_token("x", Role::Agent, None), &mut seal::SystemRandom),
            Err(TokenError::AgentIdMismatch)
        ));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_rejected() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        Tokens::append(&path, &new_token("ada", Role::Listener, None), &mut seal::SystemRandom).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Tokens::load(&path).unwrap_err().to_string().contains("chmod 600"));
    }

    #[test]
    fn an_invalid_line_is_reported_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        Tokens::append(&path, &new_token("ada", Role::Listener, None), &mut seal::SystemRandom).unwrap();
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"name\":\"x\",\"role\":\"king\",\"hash\":\"\"}\n").unwrap();
        assert!(matches!(Tokens::load(&path), Err(TokenError::InvalidLine(_, 2))));
    }

    #[test]
    fn a_file_that_is_too_long_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        Tokens::append(&path, &new_token("ada", Role::Listener, None), &mut seal::SystemRandom).unwrap();
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&vec![b'\n'; usize::try_from(MAX_FILE_BYTES).unwrap()]).unwrap();
        assert!(matches!(Tokens::load(&path), Err(TokenError::File(KeyFileError::TooLong(..)))));
    }
}
