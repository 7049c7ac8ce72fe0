//! The token file: one token per line, stored as a hash.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use hub::{AgentNaming, Principal, Role, Scope};
use seal::json::{JsonKind, JsonValue, JsonWriter, Tape};
use seal::private_file::{self, KeyFileError};
use seal::{Digest, Random, Timestamp, base64url};

use super::tokens::{NewToken, TokenEntry, TokenError, TokenProblem, Tokens};

/// Maximum size of a token file, in bytes.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// The members of a line. A line with another member is refused, because that member may restrict the token.
const MEMBERS: [&str; 9] =
    ["name", "role", "hash", "agent_id", "shared", "display_name", "scope", "created_at", "expires_at"];

impl Tokens {
    /// Loads a token file. Fails if anyone but its owner can read it, if a line is not a valid token, or if two tokens
    /// have the same name, the same hash, or the same agent id without sharing it.
    pub fn load(path: &Path) -> Result<Self, TokenError> {
        Self::parse(&private_file::read(path, MAX_FILE_BYTES)?, path)
    }

    /// Parses the text of a token file, whose path appears in errors.
    pub fn parse(text: &str, path: &Path) -> Result<Self, TokenError> {
        let mut tokens = Self::default();
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
            parse_line(line, number)
                .ok_or(TokenProblem::MalformedLine)
                .and_then(|(digest, entry)| tokens.insert(digest, entry))
                .map_err(|problem| TokenError::InvalidLine(path.to_owned(), number, problem))?;
        }
        Ok(tokens)
    }

    /// Returns the text of a token file with these tokens, in the order of the file.
    pub fn to_text(&self) -> String {
        let format =
            |entry: &TokenEntry| Some(format_line(entry, entry.principal.token_digest.as_ref()?) + "\n");
        self.entries().into_iter().filter_map(format).collect()
    }

    /// Creates and adds a token. Returns the token, which is not stored anywhere, and its line for the file.
    pub fn add(&mut self, new: &NewToken, random: &mut impl Random) -> Result<(String, String), TokenError> {
        let mut secret = [0; 32];
        random.fill(&mut secret);
        let token = format!("sayso_{}", base64url::encode(&secret));
        let digest = Digest::of(token.as_bytes());
        let entry = TokenEntry {
            principal: Principal {
                name: new.name.as_str().into(),
                role: new.role,
                agent_id: new.agent_id.as_deref().map(Arc::from),
                scope: Arc::new(new.scope.clone()),
                is_local: false,
                token_digest: Some(digest),
                expires_at: new.expires_at,
                sign_in: None,
                naming: naming_from(new.display_name.as_deref()),
            },
            line: self.next_line(),
            created_at: Some(new.created_at),
            shares_agent_id: new.shares_agent_id,
        };
        let line = format_line(&entry, &digest);
        self.insert(digest, entry)?;
        Ok((token, line))
    }

    /// Creates a token and appends its line to the file, which is created if it does not exist. Returns the token.
    pub fn append(path: &Path, new: &NewToken, random: &mut impl Random) -> Result<String, TokenError> {
        let io_error = |error| KeyFileError::Io(path.to_owned(), error);
        let _lock = lock(path)?;
        let mut tokens = if path.exists() { Self::load(path)? } else { Self::default() };
        let (token, line) = tokens.add(new, random)?;
        let mut file = private_file::open_options().append(true).create(true).open(path).map_err(io_error)?;
        file.write_all(format!("{line}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(io_error)?;
        Ok(token)
    }

    /// Removes the token with this name from the file. Other lines stay unchanged, even if they are invalid.
    pub fn revoke(path: &Path, name: &str) -> Result<(), TokenError> {
        let _lock = lock(path)?;
        let text = private_file::read(path, MAX_FILE_BYTES)?;
        let has_other_name =
            |line: &&str| parse_line(line, 0).is_none_or(|(_, entry)| *entry.principal.name != *name);
        let remaining: String = text.split_inclusive('\n').filter(has_other_name).collect();
        if remaining.len() == text.len() {
            return Err(TokenError::UnknownName(path.to_owned(), name.to_owned()));
        }
        Ok(private_file::replace(path, &remaining)?)
    }
}

/// Waits until no other process is changing the token file, and prevents others from changing it until the returned value
/// is dropped. Locks a separate file, because the token file itself can be replaced.
fn lock(path: &Path) -> Result<File, KeyFileError> {
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push(".lock");
    let lock_path = Path::new(&lock_path);
    let open = || -> io::Result<File> {
        let file = private_file::open_options().write(true).create(true).truncate(false).open(lock_path)?;
        file.lock()?;
        Ok(file)
    };
    open().map_err(|error| KeyFileError::Io(lock_path.to_owned(), error))
}

fn naming_from(display_name: Option<&str>) -> AgentNaming {
    display_name.map_or(AgentNaming::SelfDeclared, |name| AgentNaming::Token(name.into()))
}

fn format_line(entry: &TokenEntry, digest: &Digest) -> String {
    let principal = &entry.principal;
    let mut writer = JsonWriter::default();
    writer.open_object();
    writer.key("name").text(&principal.name);
    writer.key("role").text(principal.role.as_str());
    writer.key("hash").text(&digest.to_string());
    if let Some(agent) = &principal.agent_id {
        writer.key("agent_id").text(agent);
    }
    if entry.shares_agent_id {
        writer.key("shared").boolean(true);
    }
    if let AgentNaming::Token(name) = &principal.naming {
        writer.key("display_name").text(name);
    }
    writer.key("scope");
    principal.scope.write(&mut writer);
    for (name, at) in [("created_at", entry.created_at), ("expires_at", principal.expires_at)] {
        if let Some(at) = at.and_then(Timestamp::from_unix_millis) {
            writer.key(name).text(&at.to_string());
        }
    }
    writer.close_object();
    writer.finish()
}

/// Parses the line with this number. Returns `None` if it is not a valid token.
fn parse_line(line: &str, number: usize) -> Option<(Digest, TokenEntry)> {
    let mut tape = Tape::default();
    let doc = tape.read(line).ok()?;
    let root = doc.root();
    if root.kind() != JsonKind::Object || !has_known_members(&root) {
        return None;
    }
    // A member that is present must have the right type.
    let text = |name: &str| match root.member(name) {
        Some(value) => value.text().map(|text| Some(text.into_owned())),
        None => Some(None),
    };
    let time = |name: &str| match text(name)? {
        Some(text) => Timestamp::parse(&text).ok().map(|at| Some(at.unix_millis())),
        None => Some(None),
    };
    let digest = Digest::parse(&text("hash")??)?;
    let principal = Principal {
        name: text("name")??.into(),
        role: Role::parse(&text("role")??)?,
        agent_id: text("agent_id")?.map(Arc::from),
        scope: match root.member("scope") {
            Some(scope) => Arc::new(Scope::read(&scope)?),
            None => Arc::default(),
        },
        is_local: false,
        token_digest: Some(digest),
        expires_at: time("expires_at")?,
        sign_in: None,
        naming: naming_from(text("display_name")?.as_deref()),
    };
    let shares_agent_id = match root.member("shared") {
        Some(shared) => shared.as_bool()?,
        None => false,
    };
    let entry = TokenEntry { principal, line: number, created_at: time("created_at")?, shares_agent_id };
    Some((digest, entry))
}

/// Whether every member of a line is known and occurs once.
fn has_known_members(root: &JsonValue<'_>) -> bool {
    let mut seen = [false; MEMBERS.len()];
    root.members().all(|(name, _)| {
        let known = MEMBERS.iter().position(|member| name.is_text(member));
        known.is_some_and(|index| !std::mem::replace(&mut seen[index], true))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use seal::UnixMillis;

    const NOW: UnixMillis = UnixMillis::new(1_800_000_000_000);

    fn new_token(name: &str, role: Role, agent_id: Option<&str>) -> NewToken {
        NewToken { agent_id: agent_id.map(str::to_owned), ..NewToken::new(name, role, NOW) }
    }

    #[test]
    fn only_the_hash_of_a_token_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let agent_token =
            Tokens::append(&path, &new_token("bank", Role::Agent, Some("bank")), &mut seal::SystemRandom)
                .unwrap();
        let listener_token =
            Tokens::append(&path, &new_token("ada", Role::Listener, None), &mut seal::SystemRandom).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&agent_token) && !text.contains(&listener_token));
        let tokens = Tokens::load(&path).unwrap();
        let bank = tokens.principal(&agent_token, NOW).unwrap();
        assert_eq!((bank.role, bank.agent_id.as_deref()), (Role::Agent, Some("bank")));
        assert_eq!(tokens.principal(&listener_token, NOW).unwrap().role, Role::Listener);
        assert!(tokens.principal("sayso_guess", NOW).is_none() && tokens.principal("", NOW).is_none());
        assert!(matches!(
            Tokens::append(&path, &new_token("ada", Role::Observer, None), &mut seal::SystemRandom),
            Err(TokenError::InvalidToken(TokenProblem::NameTaken { line: 2, .. }))
        ));
        assert!(matches!(
            Tokens::append(&path, &new_token("x", Role::Agent, None), &mut seal::SystemRandom),
            Err(TokenError::InvalidToken(TokenProblem::AgentIdMismatch))
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
        assert!(matches!(
            Tokens::load(&path),
            Err(TokenError::InvalidLine(_, 2, TokenProblem::MalformedLine))
        ));
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

    /// Returns the error of loading a file with these lines. The error names the file `F`.
    fn load_error(lines: &[&str]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let mut file = private_file::open_options().write(true).create_new(true).open(&path).unwrap();
        file.write_all(lines.join("\n").as_bytes()).unwrap();
        Tokens::load(&path).err().map(|error| error.to_string().replace(&path.display().to_string(), "F"))
    }

    /// Writes a line with these members and a hash that consists of `hash_byte`.
    fn line(members: &str, hash_byte: u8) -> String {
        format!(r#"{{{members},"hash":"sha256:{}"}}"#, format!("{hash_byte:02x}").repeat(32))
    }

    #[test]
    fn a_line_that_is_invalid_or_conflicts_with_another_is_refused() {
        let ada = line(r#""name":"ada","role":"listener""#, 1);
        let bank = line(r#""name":"bank","role":"agent","agent_id":"bank""#, 2);
        let cases = [
            (
                line(r#""name":"ada","role":"admin""#, 3),
                r#"F:4: a token named "ada" already exists, in line 1"#,
            ),
            (line(r#""name":"ben","role":"admin""#, 1), "F:4: this token is already in line 1"),
            (
                line(r#""name":"b2","role":"agent","agent_id":"bank""#, 3),
                r#"F:4: the agent id "bank" belongs to the token "bank" in line 3"#,
            ),
            (line(r#""name":"local","role":"admin""#, 3), r#"F:4: the name "local" is reserved"#),
            (line(r#""name":"x","role":"agent","agent_id":"sayso-hub""#, 3), "is reserved"),
            (line(r#""name":" ","role":"admin""#, 3), "F:4: invalid name"),
            (line(r#""name":"x","role":"admin","display_name":"X""#, 3), "F:4: a display name"),
            (line(r#""name":"x","role":"admin","expiry":"never""#, 3), "F:4: not a valid token: "),
            (
                line(r#""name":"x","role":"agent","agent_id":"x","role":"admin""#, 3),
                "F:4: not a valid token: ",
            ),
            (line(r#""name":"x","role":"admin","expires_at":5"#, 3), "F:4: not a valid token: "),
            (line(r#""name":"x","role":"admin","scope":"agent:bank""#, 3), "F:4: not a valid token: "),
            (line(r#""name":"x","role":"admin","shared":"yes""#, 3), "F:4: not a valid token: "),
            (line(r#""name":7,"role":"admin""#, 3), "F:4: not a valid token: "),
            ("[]".to_owned(), "F:4: not a valid token: "),
        ];
        for (refused, expected) in &cases {
            let error = load_error(&[&ada, "", &bank, refused]).unwrap();
            assert!(error.contains(expected), "{error}");
        }
        let shared = line(r#""name":"b2","role":"agent","agent_id":"bank","shared":true"#, 3);
        assert_eq!(load_error(&[&ada, &bank, &shared]), None);
        assert_eq!(load_error(&[&shared, &ada, &bank]), None, "the order does not matter");
    }

    #[test]
    fn an_expired_token_is_not_accepted() {
        let mut tokens = Tokens::default();
        let expires_at = Some(NOW.saturating_add(1000));
        let limited = NewToken { expires_at, ..new_token("ada", Role::Listener, None) };
        let (token, line) = tokens.add(&limited, &mut seal::SystemRandom).unwrap();
        assert!(tokens.principal(&token, NOW.saturating_add(999)).is_some());
        assert!(tokens.principal(&token, NOW.saturating_add(1000)).is_none());
        let (_, entry) = parse_line(&line, 1).unwrap();
        assert_eq!(*tokens.entries()[0], entry, "the line contains all properties");
    }

    #[test]
    fn revoking_removes_one_line_and_leaves_the_others_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        for name in ["ada", "ben"] {
            Tokens::append(&path, &new_token(name, Role::Listener, None), &mut seal::SystemRandom).unwrap();
        }
        let ada = std::fs::read_to_string(&path).unwrap().lines().next().unwrap().to_owned() + "\n";
        Tokens::revoke(&path, "ben").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), ada);
        assert!(matches!(Tokens::revoke(&path, "ben"), Err(TokenError::UnknownName(..))));
        assert!(Tokens::load(&path).is_ok(), "the new file has safe permissions");
    }
}
