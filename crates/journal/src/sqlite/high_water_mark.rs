//! The high-water mark: a small file beside the journal that records how much was written.
//!
//! SQLite opens whatever files it finds. It does not notice a write-ahead log that was cut at the end of a batch,
//! deleted rows, or an older copy of the file. The mark is written after each commit, so a journal that holds less than
//! the mark has lost acknowledged entries. The mark is not synced, so after a power failure it may be older than the
//! journal, which is harmless, but changed rows of the ledger are then not noticed. It is never newer, because a commit is
//! synced before its mark is written.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use seal::{Digest, private_file};

use super::error_mapping::from_io;
use super::open::{sibling_path, sync_parent};
use super::row_checksum::LedgerDigest;
use crate::{JournalError, LossEvidence, Position};

const MAGIC: [u8; 8] = *b"sayjhwm2";
const BODY_BYTES: usize = 48;
const FILE_BYTES: usize = BODY_BYTES + 8;
/// The first version of the file has no ledger digest.
const MAGIC_1: [u8; 8] = *b"sayjhwm1";

/// How much of the journal was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HighWaterMark {
    /// The position of the last event.
    pub(super) position: Position,
    /// The checksum of that event, or 0 if it was trimmed or there is no event.
    pub(super) event_checksum: i64,
    /// The number of commits without an event, including deletions. Commits with an event are counted by their positions.
    pub(super) eventless_commits: i64,
    /// The digest of all sessions and questions. Empty if there are none, or if the mark was written by a version without
    /// it.
    pub(super) ledger_digest: LedgerDigest,
    /// Whether the journal was restored from a backup or has lost entries, and nothing was written since.
    pub(super) must_void_consents: bool,
}

/// The open file of the mark.
#[derive(Debug)]
pub(super) struct MarkFile(File);

impl HighWaterMark {
    /// The mark of a new journal.
    pub(super) const START: Self = Self {
        position: Position::START,
        event_checksum: 0,
        eventless_commits: 0,
        ledger_digest: LedgerDigest::EMPTY,
        must_void_consents: false,
    };

    /// Returns what is missing from a journal that holds `found`. `checksum_at` returns the checksum of the event at a
    /// position, or `None` if that event was trimmed.
    pub(super) fn find_loss(
        &self,
        found: &Self,
        checksum_at: impl FnOnce(Position) -> Result<Option<i64>, JournalError>,
    ) -> Result<Option<LossEvidence>, JournalError> {
        if self.position > found.position {
            return Ok(Some(LossEvidence::Position { written: self.position, found: found.position }));
        }
        if self.eventless_commits > found.eventless_commits {
            return Ok(Some(LossEvidence::EventlessCommits {
                missing: self.eventless_commits.abs_diff(found.eventless_commits),
            }));
        }
        if self.event_checksum != 0
            && checksum_at(self.position)?.is_some_and(|checksum| checksum != self.event_checksum)
        {
            return Ok(Some(LossEvidence::OtherEvent { position: self.position }));
        }
        // A mark that is older than the journal says nothing about the rows of newer commits.
        let is_of_last_commit =
            (self.position, self.eventless_commits) == (found.position, found.eventless_commits);
        if is_of_last_commit
            && self.ledger_digest != LedgerDigest::EMPTY
            && self.ledger_digest != found.ledger_digest
        {
            return Ok(Some(LossEvidence::OtherLedger));
        }
        Ok(None)
    }

    /// Reads the mark of the journal at this path. Returns `None` if there is none, and [`LossEvidence::HighWaterFileDamaged`] if it
    /// is damaged.
    pub(super) fn read(journal: &Path) -> Result<Option<Result<Self, LossEvidence>>, JournalError> {
        match fs::read(mark_path(journal)) {
            Ok(bytes) => Ok(Some(Self::decode(&bytes).ok_or(LossEvidence::HighWaterFileDamaged))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(from_io(error)),
        }
    }

    fn encode(&self) -> [u8; FILE_BYTES] {
        let mut bytes = [0; FILE_BYTES];
        let fields = [
            MAGIC,
            self.position.get().to_le_bytes(),
            self.event_checksum.to_le_bytes(),
            self.eventless_commits.to_le_bytes(),
            self.ledger_digest.to_le_bytes(),
            u64::from(self.must_void_consents).to_le_bytes(),
        ];
        bytes[..BODY_BYTES].copy_from_slice(fields.as_flattened());
        let checksum = checksum(&bytes[..BODY_BYTES]);
        bytes[BODY_BYTES..].copy_from_slice(&checksum);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (fields, []) = bytes.as_chunks::<8>() else { return None };
        let (sum, body) = fields.split_last()?;
        let (position, event_checksum, eventless_commits, ledger_digest, must_void_consents) = match body {
            [MAGIC, position, event, eventless, ledger, void] => (position, event, eventless, ledger, void),
            [MAGIC_1, position, event, eventless, void] => (position, event, eventless, &[0; 8], void),
            _ => return None,
        };
        (*sum == checksum(body.as_flattened())).then(|| Self {
            position: Position::new(u64::from_le_bytes(*position)),
            event_checksum: i64::from_le_bytes(*event_checksum),
            eventless_commits: i64::from_le_bytes(*eventless_commits),
            ledger_digest: LedgerDigest::from_le_bytes(*ledger_digest),
            must_void_consents: u64::from_le_bytes(*must_void_consents) != 0,
        })
    }
}

impl MarkFile {
    /// Opens the existing mark of the journal at this path.
    pub(super) fn open(journal: &Path) -> Result<Self, JournalError> {
        fs::OpenOptions::new().write(true).open(mark_path(journal)).map(Self).map_err(from_io)
    }

    /// Creates or replaces the mark and syncs it, so that later writes change only the content of the file.
    pub(super) fn replace(journal: &Path, mark: &HighWaterMark) -> Result<Self, JournalError> {
        let (path, draft) = (mark_path(journal), sibling_path(journal, "-high-water-new"));
        let create = || {
            let file = private_file::open_options().write(true).create(true).truncate(true).open(&draft)?;
            let file = Self(file);
            file.write_at_start(&mark.encode())?;
            file.0.sync_all()?;
            fs::rename(&draft, &path)?;
            Ok(file)
        };
        let file = create().map_err(from_io)?;
        sync_parent(&path)?;
        Ok(file)
    }

    /// Records a commit. An error is ignored: an older mark is valid, and the next commit rewrites it.
    pub(super) fn record(&self, mark: &HighWaterMark) {
        let _ = self.write_at_start(&mark.encode());
    }

    #[cfg(unix)]
    fn write_at_start(&self, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.0, bytes, 0)
    }

    #[cfg(not(unix))]
    fn write_at_start(&self, bytes: &[u8]) -> io::Result<()> {
        use io::{Seek as _, Write as _};
        (&self.0).seek(io::SeekFrom::Start(0)).and_then(|_| (&self.0).write_all(bytes))
    }
}

fn mark_path(journal: &Path) -> PathBuf {
    sibling_path(journal, "-high-water")
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    let mut first = [0; 8];
    first.copy_from_slice(&Digest::of(bytes).as_bytes()[..8]);
    first
}
