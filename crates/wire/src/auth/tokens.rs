//! The set of known tokens.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use hub::{AgentNaming, Principal, Role, Scope};
use seal::private_file::KeyFileError;
use seal::{Digest, UnixMillis};
use thiserror::Error;

/// All known tokens, by their digests.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    entries: HashMap<Digest, TokenEntry>,
    names: HashMap<Arc<str>, Digest>,
    /// For each agent id, the token that has it without `shares_agent_id`.
    agent_ids: HashMap<Arc<str>, Digest>,
}

/// A known token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenEntry {
    /// The token's holder.
    pub principal: Principal,
    /// The number of its line in the token file, from 1.
    pub line: usize,
    /// When the token was created, if the file says so.
    pub created_at: Option<UnixMillis>,
    /// Whether the token may have the agent id of another token.
    pub shares_agent_id: bool,
}

/// The properties of a new token.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// The name of the token's holder.
    pub name: String,
    /// The role of the holder.
    pub role: Role,
    /// The id of the agent that the token authenticates. Required for agents and forbidden for other roles.
    pub agent_id: Option<String>,
    /// Whether the token may have the agent id of another token.
    pub shares_agent_id: bool,
    /// The name that listeners hear for the agent. If absent, the agent names itself. Forbidden for other roles.
    pub display_name: Option<String>,
    /// The sessions that the holder may receive. Unused for agents.
    pub scope: Scope,
    /// When the token is created.
    pub created_at: UnixMillis,
    /// When the token expires; `None` means never.
    pub expires_at: Option<UnixMillis>,
}

impl NewToken {
    /// Creates the properties of a token with an unrestricted scope that never expires.
    pub fn new(name: &str, role: Role, created_at: UnixMillis) -> Self {
        Self {
            name: name.to_owned(),
            role,
            agent_id: None,
            shares_agent_id: false,
            display_name: None,
            scope: Scope::default(),
            created_at,
            expires_at: None,
        }
    }
}

/// Why tokens cannot be read or created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be read or written, or its permissions are unsafe.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The line with this number is invalid.
    #[error("{path}:{1}: {2}", path = .0.display())]
    InvalidLine(PathBuf, usize, #[source] TokenProblem),
    /// A new token is invalid.
    #[error(transparent)]
    InvalidToken(#[from] TokenProblem),
    /// No token has this name.
    #[error("{path}: no token is named {1:?}", path = .0.display())]
    UnknownName(PathBuf, String),
}

/// What is wrong with a token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TokenProblem {
    /// The line is not a JSON object, or a member is missing, unknown, repeated or invalid.
    #[error(
        "not a valid token: it must be a JSON object without missing, unknown, repeated or invalid members"
    )]
    MalformedLine,
    /// The name is empty, or contains control characters.
    #[error("invalid name {0:?}: it must not be empty or contain control characters")]
    InvalidName(String),
    /// The name is reserved for principals that have no token.
    #[error("the name {0:?} is reserved")]
    ReservedName(String),
    /// Another token has the name.
    #[error("a token named {name:?} already exists, in line {line}; every token needs its own name")]
    NameTaken {
        /// The name.
        name: String,
        /// The line number of the other token.
        line: usize,
    },
    /// Another line has the same hash.
    #[error("this token is already in line {line}; every line needs its own token")]
    TokenRepeated {
        /// The number of the other line.
        line: usize,
    },
    /// The token of an agent has no agent id, or the token of another role has one.
    #[error("--agent-id is required for the role agent, and not allowed for other roles")]
    AgentIdMismatch,
    /// The agent id is reserved for the hub or for the demo.
    #[error("the agent id {0:?} is reserved")]
    ReservedAgentId(String),
    /// Another token has the agent id.
    #[error(
        "the agent id {agent_id:?} belongs to the token {name:?} in line {line}; use another id, or --share-agent-id if \
         both belong to the same agent"
    )]
    AgentIdTaken {
        /// The agent id.
        agent_id: String,
        /// The name of the other token.
        name: String,
        /// The line number of the other token.
        line: usize,
    },
    /// The display name is not allowed.
    #[error(
        "a display name must have 1 to {MAX_DISPLAY_NAME_CHARS} characters and no control characters, and only agents \
         can have one"
    )]
    InvalidDisplayName,
}

/// The names of principals that have no token: [`Principal::local`], the demo's assistant, and the agent of an embedded
/// hub.
const RESERVED_NAMES: [&str; 3] = ["local", "sayso-demo", "sayso-embedded"];
/// The agent ids of the hub itself and of the demo's assistant.
const RESERVED_AGENT_IDS: [&str; 2] = ["sayso-hub", "sayso-demo"];
/// Maximum length of a display name, in characters.
const MAX_DISPLAY_NAME_CHARS: usize = 256;

impl Tokens {
    /// Returns the holder of a token, or `None` if the token is unknown or has expired.
    pub fn principal(&self, token: &str, now: UnixMillis) -> Option<&Principal> {
        self.principal_by_digest(&Digest::of(token.as_bytes()), now)
    }

    /// Returns the digest of a token and its holder, unless the token is unknown or has expired.
    pub(crate) fn lookup(&self, token: &str, now: UnixMillis) -> Option<(Digest, &Principal)> {
        let digest = Digest::of(token.as_bytes());
        self.principal_by_digest(&digest, now).map(|principal| (digest, principal))
    }

    /// Returns the holder of the token with this digest, unless the token has expired.
    pub(crate) fn principal_by_digest(&self, digest: &Digest, now: UnixMillis) -> Option<&Principal> {
        self.entries.get(digest).filter(|entry| !entry.is_expired(now)).map(|entry| &entry.principal)
    }

    /// Returns these tokens without the one with this name, or `None` if there is no such token.
    pub fn without(&self, name: &str) -> Option<Self> {
        let digest = *self.names.get(name)?;
        let mut remaining = Self::default();
        for entry in self.entries() {
            if let Some(other) = entry.principal.token_digest.filter(|other| *other != digest) {
                remaining.insert(other, entry.clone()).ok()?;
            }
        }
        Some(remaining)
    }

    /// Returns whether the principal's token is known and still has the same rights.
    pub(crate) fn is_current(&self, principal: &Principal) -> bool {
        let known = principal.token_digest.as_ref().and_then(|digest| self.entries.get(digest));
        known.is_some_and(|entry| entry.principal.has_same_token(principal))
    }

    /// Returns the holders of all tokens.
    pub(crate) fn principals(&self) -> Vec<Principal> {
        self.entries.values().map(|entry| entry.principal.clone()).collect()
    }

    /// Returns all tokens, in the order of the file.
    pub fn entries(&self) -> Vec<&TokenEntry> {
        let mut entries: Vec<_> = self.entries.values().collect();
        entries.sort_by_key(|entry| entry.line);
        entries
    }

    /// Returns whether any token has this agent id.
    pub fn has_agent_id(&self, agent_id: &str) -> bool {
        self.entries.values().any(|entry| entry.principal.agent_id.as_deref() == Some(agent_id))
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a token. Fails if the token is invalid, or if its name, digest or agent id belongs to another token.
    pub(super) fn insert(&mut self, digest: Digest, entry: TokenEntry) -> Result<(), TokenProblem> {
        entry.check()?;
        let principal = &entry.principal;
        if let Some(other) = self.entries.get(&digest) {
            return Err(TokenProblem::TokenRepeated { line: other.line });
        }
        if let Some(other) = self.names.get(&principal.name).and_then(|digest| self.entries.get(digest)) {
            return Err(TokenProblem::NameTaken { name: principal.name.to_string(), line: other.line });
        }
        // An agent id is unique in a deployment (§3.2.6.1). If several tokens have the same one, all but
        // one must say that they share it.
        if let Some(agent_id) = principal.agent_id.as_ref().filter(|_| !entry.shares_agent_id) {
            if let Some(other) = self.agent_ids.get(agent_id).and_then(|digest| self.entries.get(digest)) {
                return Err(TokenProblem::AgentIdTaken {
                    agent_id: agent_id.to_string(),
                    name: other.principal.name.to_string(),
                    line: other.line,
                });
            }
            self.agent_ids.insert(agent_id.clone(), digest);
        }
        self.names.insert(principal.name.clone(), digest);
        self.entries.insert(digest, entry);
        Ok(())
    }

    /// Returns the line number of a token that is appended to the file.
    pub(super) fn next_line(&self) -> usize {
        self.entries.values().map(|entry| entry.line).max().unwrap_or(0) + 1
    }
}

impl TokenEntry {
    /// Whether the token has expired.
    pub fn is_expired(&self, now: UnixMillis) -> bool {
        self.principal.expires_at.is_some_and(|at| at <= now)
    }

    fn check(&self) -> Result<(), TokenProblem> {
        let principal = &self.principal;
        let name = &*principal.name;
        if !is_printable(name) {
            return Err(TokenProblem::InvalidName(name.to_owned()));
        }
        if RESERVED_NAMES.contains(&name) {
            return Err(TokenProblem::ReservedName(name.to_owned()));
        }
        if (principal.role == Role::Agent) != principal.agent_id.is_some() {
            return Err(TokenProblem::AgentIdMismatch);
        }
        if let Some(agent_id) = principal.agent_id.as_deref().filter(|id| RESERVED_AGENT_IDS.contains(id)) {
            return Err(TokenProblem::ReservedAgentId(agent_id.to_owned()));
        }
        if let AgentNaming::Token(name) = &principal.naming
            && (principal.role != Role::Agent
                || !is_printable(name)
                || name.chars().count() > MAX_DISPLAY_NAME_CHARS)
        {
            return Err(TokenProblem::InvalidDisplayName);
        }
        Ok(())
    }
}

fn is_printable(text: &str) -> bool {
    !text.trim().is_empty() && seal::escape_controls(text, |_| String::new()) == text
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis::new(1_800_000_000_000);

    fn added(tokens: &mut Tokens, new: &NewToken) -> Result<Principal, TokenProblem> {
        let token = match tokens.add(new, &mut seal::SystemRandom) {
            Ok((token, _)) => token,
            Err(TokenError::InvalidToken(problem)) => return Err(problem),
            Err(other) => panic!("{other}"),
        };
        Ok(tokens.principal(&token, NOW).unwrap().clone())
    }

    fn agent(name: &str, agent_id: &str) -> NewToken {
        NewToken { agent_id: Some(agent_id.to_owned()), ..NewToken::new(name, Role::Agent, NOW) }
    }

    #[test]
    fn a_removed_token_is_not_current_and_the_others_stay() {
        let mut tokens = Tokens::default();
        assert!(tokens.is_empty() && tokens.principals().is_empty());
        let bank = added(&mut tokens, &agent("bank", "bank")).unwrap();
        let ada = added(&mut tokens, &NewToken::new("ada", Role::Listener, NOW)).unwrap();
        let remaining = tokens.without("bank").unwrap();
        assert!(tokens.without("ben").is_none());
        assert_eq!((tokens.len(), remaining.len()), (2, 1));
        assert!(!tokens.is_empty() && !remaining.is_empty());
        assert_eq!(remaining.principals(), std::slice::from_ref(&ada));
        assert!(tokens.is_current(&bank) && tokens.is_current(&ada));
        assert!(!remaining.is_current(&bank) && remaining.is_current(&ada));
        assert!(tokens.has_agent_id("bank") && !tokens.has_agent_id("post"));
        assert!(!remaining.has_agent_id("bank"));
        // A token with other rights is not the same one, and a caller without a token has none.
        assert!(!tokens.is_current(&Principal { role: Role::Admin, ..ada.clone() }));
        assert!(!tokens.is_current(&Principal::local()));
        let digest = ada.token_digest.unwrap();
        assert_eq!(remaining.principal_by_digest(&digest, NOW), Some(&ada));
        assert_eq!(remaining.principal_by_digest(&bank.token_digest.unwrap(), NOW), None);
        let (token, _) = tokens.add(&agent("post", "post"), &mut seal::SystemRandom).unwrap();
        let digest = Digest::of(token.as_bytes());
        assert_eq!(tokens.lookup(&token, NOW), Some((digest, tokens.principal(&token, NOW).unwrap())));
        assert_eq!(remaining.lookup(&token, NOW), None);
    }

    #[test]
    fn the_lines_of_all_tokens_are_written_in_the_order_of_the_file() {
        let mut tokens = Tokens::default();
        for name in ["cy", "ada", "ben"] {
            added(&mut tokens, &NewToken::new(name, Role::Listener, NOW)).unwrap();
        }
        let lines: Vec<_> =
            tokens.entries().iter().map(|entry| (entry.principal.name.to_string(), entry.line)).collect();
        let expected = [("cy".to_owned(), 1), ("ada".to_owned(), 2), ("ben".to_owned(), 3)];
        assert_eq!(lines, expected);
        let read = Tokens::parse(&tokens.to_text(), "tokens".as_ref()).unwrap();
        assert_eq!(read.entries(), tokens.entries());
    }

    #[test]
    fn a_name_and_an_agent_id_must_be_printable_and_not_reserved() {
        let mut tokens = Tokens::default();
        for name in ["", "\u{1b}[2J", "a\nb"] {
            let refused = added(&mut tokens, &NewToken::new(name, Role::Listener, NOW));
            assert_eq!(refused, Err(TokenProblem::InvalidName(name.to_owned())));
        }
        for name in RESERVED_NAMES {
            let refused = added(&mut tokens, &NewToken::new(name, Role::Admin, NOW));
            assert_eq!(refused, Err(TokenProblem::ReservedName(name.to_owned())));
        }
        for id in RESERVED_AGENT_IDS {
            assert_eq!(
                added(&mut tokens, &agent("x", id)),
                Err(TokenProblem::ReservedAgentId(id.to_owned()))
            );
        }
        let listener_with_agent_id = NewToken { role: Role::Listener, ..agent("x", "x") };
        assert_eq!(added(&mut tokens, &listener_with_agent_id), Err(TokenProblem::AgentIdMismatch));
        assert!(tokens.is_empty());
    }

    #[test]
    fn a_display_name_must_be_printable_and_short() {
        let mut tokens = Tokens::default();
        let longest = "é".repeat(MAX_DISPLAY_NAME_CHARS);
        let cases = [("", false), (" ", false), ("a\u{7}", false), (&longest, true), ("Ada's Bank", true)];
        for (index, (display_name, is_allowed)) in cases.into_iter().enumerate() {
            let display_name = Some(display_name.to_owned());
            let result = added(
                &mut tokens,
                &NewToken { display_name, ..agent(&format!("a{index}"), &format!("a{index}")) },
            );
            assert_eq!(result.as_ref().err(), (!is_allowed).then_some(&TokenProblem::InvalidDisplayName));
        }
        let display_name = Some(longest + "é");
        let too_long = NewToken { display_name, ..agent("x", "x") };
        assert_eq!(added(&mut tokens, &too_long), Err(TokenProblem::InvalidDisplayName));
    }
}
