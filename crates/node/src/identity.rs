//! The agent's identity: a folder with its keys and its card.

use std::path::{Path, PathBuf};

use asp::{AgentCard, AgentCardError, AgentProfile};
use seal::{AgentKeys, KeyFileError, SystemRandom, describe_io_error};
use thiserror::Error;

/// The name of the file with the keys.
const KEY_FILE: &str = "keys";
/// The name of the file with the card.
const CARD_FILE: &str = "card.json";

/// The keys of an agent and the card that publishes them.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The card.
    pub card: AgentCard,
    /// The private keys.
    pub keys: AgentKeys,
    /// The cards and keys before each rotation, the latest first. Sessions that began with them continue with them.
    pub previous: Vec<(AgentCard, AgentKeys)>,
}

/// Why an identity cannot be read or created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The key file cannot be read or written, or others can read it.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    /// A file cannot be read or written.
    #[error("{path}: {reason}", path = .0.display(), reason = describe_io_error(.1))]
    File(PathBuf, #[source] std::io::Error),
    /// The card is invalid.
    #[error("{path}: {1}", path = .0.display())]
    Card(PathBuf, #[source] AgentCardError),
    /// The card publishes keys that differ from those in the key file.
    #[error("{path}: the card publishes keys that differ from those in the folder", path = .0.display())]
    KeyMismatch(PathBuf),
    /// The folder already has an identity.
    #[error("{path} already has an identity; --rotate replaces its keys", path = .0.display())]
    Exists(PathBuf),
}

impl Identity {
    /// Creates new keys and a card, and stores them in a folder that has no identity yet.
    pub fn create(folder: &Path, profile: &AgentProfile) -> Result<Self, IdentityError> {
        if folder.join(KEY_FILE).exists() {
            return Err(IdentityError::Exists(folder.to_owned()));
        }
        let keys = AgentKeys::generate(&mut SystemRandom);
        let card = AgentCard::sign(profile, &keys)
            .map_err(|error| IdentityError::Card(folder.join(CARD_FILE), error))?;
        Self { card, keys, previous: Vec::new() }.save(folder)
    }

    /// Replaces the keys in a folder. The new card is signed with the old key and with the new one, so that peers that
    /// pinned the old card can accept it.
    pub fn rotate(folder: &Path, profile: &AgentProfile) -> Result<Self, IdentityError> {
        let old = Self::load(folder)?;
        let keys = AgentKeys::generate(&mut SystemRandom);
        let card = AgentCard::rotate(profile, &old.keys, &keys)
            .map_err(|error| IdentityError::Card(folder.join(CARD_FILE), error))?;
        let mut previous = old.previous;
        let number = previous.len() + 1;
        for name in [KEY_FILE, CARD_FILE] {
            let (from, to) = (folder.join(name), folder.join(format!("{name}.{number}")));
            std::fs::copy(&from, &to).map_err(|error| IdentityError::File(to, error))?;
        }
        previous.insert(0, (old.card, old.keys));
        Self { card, keys, previous }.save(folder)
    }

    /// Loads the identity in a folder.
    pub fn load(folder: &Path) -> Result<Self, IdentityError> {
        let (card, keys) = load_pair(folder, KEY_FILE, CARD_FILE)?;
        let mut previous = Vec::new();
        for number in 1.. {
            let key_file = format!("{KEY_FILE}.{number}");
            if !folder.join(&key_file).exists() {
                break;
            }
            previous.insert(0, load_pair(folder, &key_file, &format!("{CARD_FILE}.{number}"))?);
        }
        Ok(Self { card, keys, previous })
    }

    /// Returns the keys that a card of this agent publishes, current or earlier.
    pub(crate) fn for_card(&self, card: &AgentCard) -> Option<&AgentKeys> {
        let mut all = std::iter::once((&self.card, &self.keys))
            .chain(self.previous.iter().map(|(card, keys)| (card, keys)));
        all.find(|(own, _)| own.signing_key() == card.signing_key()).map(|(_, keys)| keys)
    }

    fn save(self, folder: &Path) -> Result<Self, IdentityError> {
        std::fs::create_dir_all(folder).map_err(|error| IdentityError::File(folder.to_owned(), error))?;
        let failed = |path: PathBuf| move |error| IdentityError::File(path, error);
        let new_files = [KEY_FILE, CARD_FILE].map(|name| folder.join(format!("{name}.new")));
        for path in &new_files {
            // A leftover of a rotation that did not finish.
            if path.exists() {
                std::fs::remove_file(path).map_err(failed(path.clone()))?;
            }
        }
        let [new_keys, new_card] = &new_files;
        self.keys.save(new_keys)?;
        std::fs::write(new_card, format!("{}\n", self.card.as_str())).map_err(failed(new_card.clone()))?;
        // If the program stops between the two, loading reports the mismatch, and the new keys are in `keys.new`.
        for (from, name) in [(new_card, CARD_FILE), (new_keys, KEY_FILE)] {
            std::fs::rename(from, folder.join(name)).map_err(failed(from.clone()))?;
        }
        Ok(self)
    }
}

fn load_pair(
    folder: &Path,
    key_file: &str,
    card_file: &str,
) -> Result<(AgentCard, AgentKeys), IdentityError> {
    let keys = AgentKeys::load(&folder.join(key_file))?;
    let path = folder.join(card_file);
    let card = read_card(&path)?;
    let is_own_card =
        keys.signing.verifying_key() == *card.signing_key() && keys.dpop.verifying_key() == card.dpop_key();
    if is_own_card { Ok((card, keys)) } else { Err(IdentityError::KeyMismatch(path)) }
}

/// Reads and verifies a card.
pub fn read_card(path: &Path) -> Result<AgentCard, IdentityError> {
    let text = std::fs::read_to_string(path).map_err(|error| IdentityError::File(path.to_owned(), error))?;
    AgentCard::parse(&text).map_err(|error| IdentityError::Card(path.to_owned(), error))
}
