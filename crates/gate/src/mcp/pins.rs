//! The file with the definitions that a person or the operator allowed, one per server, in the user's data folder.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use seal::Digest;
use seal::json::{Tape, write_object};
use seal::private_file;

use super::limits::{MAX_PIN_FILE_BYTES, MAX_PINNED_TOOLS};

/// The pin file of one server.
#[derive(Clone, Debug)]
pub(crate) struct PinFile {
    path: PathBuf,
    server: String,
}

impl PinFile {
    /// Returns the pin file of a server in the user's data folder, or `None` if there is no such folder.
    pub(crate) fn find(server: &str) -> Option<Self> {
        let variable = |name| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let data = variable("XDG_DATA_HOME").filter(|path| path.is_absolute());
        let data = data.or_else(|| variable("HOME").map(|home| home.join(".local/share")))?;
        Some(Self::in_folder(&data.join("sayso/mcp"), server))
    }

    /// Returns the pin file of a server in this folder. The name of the file is a hash, because a server's name may contain anything.
    pub(crate) fn in_folder(folder: &Path, server: &str) -> Self {
        let name = Digest::of(server.as_bytes()).to_string();
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
        Self { path: folder.join(format!("{name}.json")), server: server.to_owned() }
    }

    /// Reads the pins. Returns `None` if the file exists but cannot be used.
    pub(crate) fn read(&self) -> Option<HashMap<String, Digest>> {
        if refuse_link(&self.path).is_err() {
            return None;
        }
        match private_file::read(&self.path, MAX_PIN_FILE_BYTES) {
            Ok(text) => self.parse(&text),
            Err(private_file::KeyFileError::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => {
                Some(HashMap::new())
            }
            Err(_) => None,
        }
    }

    fn parse(&self, text: &str) -> Option<HashMap<String, Digest>> {
        let mut tape = Tape::default();
        let doc = tape.read(text).ok()?;
        let root = doc.root();
        if !root.member("server")?.is_text(&self.server) {
            return None;
        }
        let mut pins = HashMap::new();
        for (tool, hash) in root.member("tools")?.members() {
            pins.insert(tool.text()?.into_owned(), Digest::parse(&hash.text()?)?);
        }
        Some(pins)
    }

    /// Adds pins to the file. Pins of other gates for the same server stay, unless these replace them.
    pub(crate) fn save(&self, pins: &HashMap<String, Digest>) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            create_private_folder(folder)?;
        }
        let lock_path = self.path.with_extension("lock");
        refuse_link(&self.path)?;
        refuse_link(&lock_path)?;
        let lock = private_file::open_options().write(true).create(true).truncate(false).open(lock_path)?;
        lock.lock()?;
        let mut all = self.read().unwrap_or_default();
        all.extend(pins.iter().map(|(tool, hash)| (tool.clone(), *hash)));
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        all.truncate(MAX_PINNED_TOOLS);
        let text = write_object(|out| {
            out.key("server").text(&self.server);
            out.key("tools").object(|out| {
                for (tool, hash) in &all {
                    out.key(tool).text(&hash.to_string());
                }
            });
        });
        private_file::replace(&self.path, &text).map_err(io::Error::other)?;
        drop::<File>(lock);
        Ok(())
    }
}

/// Fails if the path is a symbolic link, which could lead to an unrelated file.
fn refuse_link(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link"))
        }
        _ => Ok(()),
    }
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_survive_a_restart_and_a_damaged_file_is_not_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = PinFile::in_folder(&folder.path().join("new"), "files");
        assert_eq!(file.read(), Some(HashMap::new()));
        let one = HashMap::from([("read".to_owned(), Digest::of(b"1"))]);
        file.save(&one).unwrap();
        assert_eq!(file.read(), Some(one));
        // Another gate for the same server adds its own.
        file.save(&HashMap::from([("write".to_owned(), Digest::of(b"2"))])).unwrap();
        assert_eq!(file.read().unwrap().len(), 2);
        assert_eq!(PinFile::in_folder(&folder.path().join("new"), "other").read(), Some(HashMap::new()));
        private_file::replace(&file.path, "{").unwrap();
        assert_eq!(file.read(), None);
        private_file::replace(&file.path, &" ".repeat(usize::try_from(MAX_PIN_FILE_BYTES).unwrap() + 1))
            .unwrap();
        assert_eq!(file.read(), None);
    }

    #[cfg(unix)]
    #[test]
    fn symbolic_links_are_not_followed() {
        let pins = HashMap::from([("read".to_owned(), Digest::of(b"1"))]);
        for (extension, is_refused) in [("json", true), ("lock", true), ("json.new", false)] {
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("target");
            private_file::replace(&target, "precious").unwrap();
            let file = PinFile::in_folder(folder.path(), "files");
            std::os::unix::fs::symlink(&target, file.path.with_extension(extension)).unwrap();
            assert_eq!(file.save(&pins).is_err(), is_refused, "{extension}");
            assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious", "{extension}");
            if extension == "json" {
                assert_eq!(file.read(), None);
            }
        }
    }
}
