//! Tokens in a file: one a line, its hash and never itself.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hub::{Principal, Role, Scope};
use seal::json::{Tape, Writer};
use seal::private::{self, KeyFileError};
use seal::{Digest, Random, base64url};
use thiserror::Error;

/// All tokens that are known, by their hashes.
#[derive(Clone, Debug, Default)]
pub struct Tokens(HashMap<Digest, Principal>);

/// What a new token is for.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Its name: who has it.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The agent as which it speaks; for agents only, and needed there.
    pub agent_id: Option<String>,
    /// What it may hear; not for agents.
    pub scope: Scope,
}

/// Why tokens cannot be read or made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be read or written, or may not be believed.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// This line is no token.
    #[error("{path}:{1}: not a token", path = .0.display())]
    Line(PathBuf, usize),
    /// Nobody can have that name.
    #[error("{}", no_name(.0))]
    Name(String),
    /// A token of that name is there.
    #[error("there is a token of the name {0:?} already")]
    Taken(String),
    /// An agent's token must say which agent, and no other may.
    #[error("a token for an agent needs --agent-id, and no other token may have one")]
    AgentId,
}

/// Names of who is let in without a token: by `--open`, as the demo's assistant, as the agent of an embedded hub.
const RESERVED: [&str; 3] = ["local", "sayso-demo", "sayso-embedded"];

fn no_name(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("the name {name:?} is kept for agents and listeners that need no token");
    }
    format!("{name:?} is no name: it needs letters, and no line breaks or other control characters")
}

/// No file of tokens is longer.
const LONGEST: u64 = 16 * 1024 * 1024;

impl Tokens {
    /// Reads a file that only its owner can read.
    pub fn load(path: &Path) -> Result<Self, TokenError> {
        let text = private::read(path, LONGEST)?;
        let mut tokens = Self::default();
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
            let (hash, principal) = read(line).ok_or_else(|| TokenError::Line(path.to_owned(), number))?;
            tokens.0.insert(hash, principal);
        }
        Ok(tokens)
    }

    /// Who has that token.
    pub fn principal(&self, token: &str) -> Option<&Principal> {
        self.0.get(&Digest::of(token.as_bytes()))
    }

    /// The hash of that token, and who has it.
    pub(crate) fn known(&self, token: &str) -> Option<(Digest, &Principal)> {
        let hash = Digest::of(token.as_bytes());
        self.0.get(&hash).map(|principal| (hash, principal))
    }

    /// Who has the token with that hash.
    pub(crate) fn of_hash(&self, hash: &Digest) -> Option<&Principal> {
        self.0.get(hash)
    }

    /// Whether this one's token holds, and for just that.
    pub(crate) fn has(&self, who: &Principal) -> bool {
        who.token.as_ref().and_then(|hash| self.0.get(hash)) == Some(who)
    }

    /// All who have one.
    pub(crate) fn principals(&self) -> Vec<Principal> {
        self.0.values().cloned().collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nobody has one.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes a token, known from now on; only this once is it seen.
    pub fn add(&mut self, new: &NewToken, random: &mut impl Random) -> Result<(String, String), TokenError> {
        if (new.role == Role::Agent) != new.agent_id.is_some() {
            return Err(TokenError::AgentId);
        }
        if new.name.trim().is_empty()
            || seal::harmless(&new.name, |_| String::new()) != new.name
            || RESERVED.contains(&new.name.as_str())
        {
            return Err(TokenError::Name(new.name.clone()));
        }
        if self.0.values().any(|known| *known.name == *new.name) {
            return Err(TokenError::Taken(new.name.clone()));
        }
        let mut secret = [0; 32];
        random.fill(&mut secret);
        let token = format!("sayso_{}", base64url::encode(&secret));
        let hash = Digest::of(token.as_bytes());
        let line = write(new, &hash);
        if let Some((hash, principal)) = read(&line) {
            self.0.insert(hash, principal);
        }
        Ok((token, line))
    }

    /// Makes a token and appends it to the file, which is made if it is not there.
    pub fn append(path: &Path, new: &NewToken, random: &mut impl Random) -> Result<String, TokenError> {
        let mut tokens = if path.exists() { Self::load(path)? } else { Self::default() };
        let (token, line) = tokens.add(new, random)?;
        let wrong = |error| KeyFileError::Io(path.to_owned(), error);
        let mut file = private::options().append(true).create(true).open(path).map_err(wrong)?;
        file.write_all(format!("{line}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(wrong)?;
        Ok(token)
    }
}

fn write(new: &NewToken, hash: &Digest) -> String {
    let mut writer = Writer::default();
    writer.open_object();
    let mut member = |name: &str, text: &str| {
        writer.key(name).text(text);
    };
    member("name", &new.name);
    member("role", new.role.word());
    member("hash", &hash.to_string());
    if let Some(agent) = &new.agent_id {
        member("agent_id", agent);
    }
    writer.key("scope");
    new.scope.write(&mut writer);
    writer.close_object();
    writer.finish()
}

fn read(line: &str) -> Option<(Digest, Principal)> {
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
    let hash = Digest::parse(&text("hash")?)?;
    let principal = Principal {
        name: Arc::from(&*text("name")?),
        role,
        agent_id,
        scope: Arc::new(scope),
        open: false,
        token: Some(hash),
    };
    Some((hash, principal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(name: &str, role: Role, agent_id: Option<&str>) -> NewToken {
        NewToken { name: name.into(), role, agent_id: agent_id.map(str::to_owned), scope: Scope::default() }
    }

    #[test]
    fn a_token_is_seen_once_and_its_hash_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let token =
            Tokens::append(&path, &new("bank", Role::Agent, Some("bank")), &mut seal::SystemRandom).unwrap();
        let ear = Tokens::append(&path, &new("ear", Role::Listener, None), &mut seal::SystemRandom).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&token) && !text.contains(&ear));
        let tokens = Tokens::load(&path).unwrap();
        let bank = tokens.principal(&token).unwrap();
        assert_eq!((bank.role, bank.agent_id.as_deref()), (Role::Agent, Some("bank")));
        assert_eq!(tokens.principal(&ear).unwrap().role, Role::Listener);
        assert!(tokens.principal("sayso_guess").is_none() && tokens.principal("").is_none());
        assert!(matches!(
            Tokens::append(&path, &new("ear", Role::Observer, None), &mut seal::SystemRandom),
            Err(TokenError::Taken(_))
        ));
        assert!(matches!(
            Tokens::append(&path, &new("x", Role::Agent, None), &mut seal::SystemRandom),
            Err(TokenError::AgentId)
        ));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        Tokens::append(&path, &new("ear", Role::Listener, None), &mut seal::SystemRandom).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Tokens::load(&path).unwrap_err().to_string().contains("chmod 600"));
    }

    #[test]
    fn a_line_that_is_no_token_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        Tokens::append(&path, &new("ear", Role::Listener, None), &mut seal::SystemRandom).unwrap();
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"name\":\"x\",\"role\":\"king\",\"hash\":\"\"}\n").unwrap();
        assert!(matches!(Tokens::load(&path), Err(TokenError::Line(_, 2))));
    }

    #[test]
    fn a_file_that_is_too_long_lets_nobody_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        Tokens::append(&path, &new("ear", Role::Listener, None), &mut seal::SystemRandom).unwrap();
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&vec![b'\n'; usize::try_from(LONGEST).unwrap()]).unwrap();
        assert!(matches!(Tokens::load(&path), Err(TokenError::File(KeyFileError::TooLong(..)))));
    }
}
