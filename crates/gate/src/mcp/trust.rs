//! The trust file: what the operator allows without a question.
//!
//! ```toml
//! [servers.files]
//! command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/home/ana"]
//! annotations = true
//! allow = ["read_file", "list_directory"]
//! ask = ["read_media_file"]
//! ```

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use thiserror::Error;
use toml::de::{DeTable, DeValue};

use super::limits::MAX_TRUST_FILE_BYTES;

/// The parts of one server that the operator trusts. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTrust {
    /// Whether the server's annotations may make a tool harmless.
    pub annotations: bool,
    /// The tools that need no question.
    pub allow: Vec<String>,
    /// The tools that always need a question.
    pub ask: Vec<String>,
}

/// Why a trust file cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrustFileError {
    /// The file cannot be read.
    #[error("cannot read the trust file {}: {}", .0.display(), seal::describe_io_error(.1))]
    Io(PathBuf, #[source] std::io::Error),
    /// Other users can change the file.
    #[error("the trust file {path} can be changed by other users; run chmod go-w {path}", path = .0.display())]
    WritableByOthers(PathBuf),
    /// The file belongs to another user, who can change it at any time.
    #[error("the trust file {} belongs to another user; it must belong to you or to root", .0.display())]
    ForeignOwner(PathBuf),
    /// The file is too long.
    #[error("the trust file {} is longer than {MAX_TRUST_FILE_BYTES} bytes", .0.display())]
    TooLong(PathBuf),
    /// The file does not have the documented form.
    #[error("the trust file {}: {}", .0.display(), .1)]
    Invalid(PathBuf, String),
}

impl ServerTrust {
    /// Reads what the file says about a server. A server that it does not name is not trusted. Neither is one with another command
    /// or address than the file names.
    pub fn read(path: &Path, server: &str, target: &[String]) -> Result<Self, TrustFileError> {
        let io_error = |error| TrustFileError::Io(path.to_owned(), error);
        let file = File::open(path).map_err(io_error)?;
        let metadata = file.metadata().map_err(io_error)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            if !is_trusted_owner(metadata.uid(), client::current_uid().map_err(io_error)?) {
                return Err(TrustFileError::ForeignOwner(path.to_owned()));
            }
            if metadata.mode() & 0o022 != 0 {
                return Err(TrustFileError::WritableByOthers(path.to_owned()));
            }
        }
        let mut text = String::new();
        file.take(MAX_TRUST_FILE_BYTES + 1).read_to_string(&mut text).map_err(io_error)?;
        if text.len() as u64 > MAX_TRUST_FILE_BYTES {
            return Err(TrustFileError::TooLong(path.to_owned()));
        }
        Self::parse(&text, server, target)
            .map_err(|message| TrustFileError::Invalid(path.to_owned(), message))
    }

    /// Parses the text of a trust file. Every entry is checked, so that a mistake is found no matter which server runs.
    fn parse(text: &str, server: &str, target: &[String]) -> Result<Self, String> {
        let document = DeTable::parse(text).map_err(|error| error.message().to_owned())?;
        let mut trust = Self::default();
        for (key, value) in document.get_ref() {
            let servers = match (&**key.get_ref(), value.get_ref()) {
                ("servers", DeValue::Table(servers)) => servers,
                (key, _) => return Err(format!("{key:?} is unknown; write [servers.NAME]")),
            };
            for (name, entry) in servers {
                let name = &**name.get_ref();
                let DeValue::Table(entry) = entry.get_ref() else {
                    return Err(format!("servers.{name} must be a table"));
                };
                let (entry_trust, is_for_target) = Self::parse_entry(name, entry, target)?;
                if name == server && is_for_target {
                    trust = entry_trust;
                }
            }
        }
        Ok(trust)
    }

    /// Parses one entry. Returns it and whether it is for this command or address.
    fn parse_entry(name: &str, entry: &DeTable<'_>, target: &[String]) -> Result<(Self, bool), String> {
        let mut trust = Self::default();
        let mut is_for_target = true;
        for (key, value) in entry {
            let (key, value) = (&**key.get_ref(), value.get_ref());
            match (key, value) {
                ("annotations", DeValue::Boolean(trusted)) => trust.annotations = *trusted,
                ("allow", DeValue::Array(_)) => trust.allow = strings(name, key, value)?,
                ("ask", DeValue::Array(_)) => trust.ask = strings(name, key, value)?,
                ("command", DeValue::Array(_)) => is_for_target = strings(name, key, value)? == target,
                ("url", DeValue::String(url)) => is_for_target = target == [&**url],
                ("annotations", _) => {
                    return Err(format!("servers.{name}.annotations must be true or false"));
                }
                ("allow" | "ask" | "command", _) => {
                    return Err(format!("servers.{name}.{key} must be a list of strings"));
                }
                ("url", _) => return Err(format!("servers.{name}.url must be a string")),
                _ => {
                    return Err(format!(
                        "servers.{name}.{key} is unknown; the known keys are annotations, allow, ask, command and url"
                    ));
                }
            }
        }
        Ok((trust, is_for_target))
    }
}

/// Whether a trust file may belong to this user.
#[cfg(unix)]
fn is_trusted_owner(owner: u32, user: u32) -> bool {
    owner == user || owner == 0
}

fn strings(server: &str, key: &str, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let items = value.as_array().into_iter().flat_map(|items| items.iter());
    let strings = items.map(|item| item.get_ref().as_str().map(str::to_owned)).collect::<Option<_>>();
    strings.ok_or_else(|| format!("servers.{server}.{key} must be a list of strings"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ServerTrust, String> {
        ServerTrust::parse(text, "files", &["npx".to_owned(), "server".to_owned()])
    }

    #[test]
    fn only_the_named_server_with_the_named_command_is_trusted() {
        let entry = |more: &str| format!("[servers.files]\nannotations = true\nallow = [\"read\"]\n{more}");
        let trusted = ServerTrust { annotations: true, allow: vec!["read".to_owned()], ask: vec![] };
        assert_eq!(parse(&entry("")), Ok(trusted.clone()));
        assert_eq!(parse(&entry(r#"command = ["npx", "server"]"#)), Ok(trusted));
        assert_eq!(parse(&entry(r#"command = ["npx", "other"]"#)), Ok(ServerTrust::default()));
        assert_eq!(parse(&entry(r#"url = "https://example.com/mcp""#)), Ok(ServerTrust::default()));
        assert_eq!(parse("[servers.other]\nannotations = true"), Ok(ServerTrust::default()));
        assert_eq!(parse(""), Ok(ServerTrust::default()));
    }

    #[test]
    fn a_mistake_in_any_entry_is_an_error() {
        for (text, message) in [
            (
                "[servers.other]\nannotation = true",
                "servers.other.annotation is unknown; the known keys are annotations, allow, ask, command and url",
            ),
            ("[servers.files]\nallow = [1]", "servers.files.allow must be a list of strings"),
            ("[servers.files]\nannotations = \"yes\"", "servers.files.annotations must be true or false"),
            ("[server.files]", "\"server\" is unknown; write [servers.NAME]"),
            ("servers.files = 1", "servers.files must be a table"),
        ] {
            assert_eq!(parse(text), Err(message.to_owned()));
        }
        assert!(parse("[servers").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_of_another_user_is_not_trusted() {
        use std::os::unix::fs::PermissionsExt as _;
        assert!(is_trusted_owner(1000, 1000) && is_trusted_owner(0, 1000));
        assert!(!is_trusted_owner(1001, 1000) && !is_trusted_owner(1000, 0));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trust.toml");
        std::fs::write(&path, "[servers.files]\nannotations = true").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(ServerTrust::read(&path, "files", &[]).unwrap().annotations);
        // Only root can give a file away.
        if std::os::unix::fs::chown(&path, Some(54_321), None).is_ok() {
            let error = ServerTrust::read(&path, "files", &[]).unwrap_err();
            assert!(matches!(error, TrustFileError::ForeignOwner(_)), "{error}");
        }
    }
}
