//! The state that the processes of one harness session share.
//!
//! Each harness session, and each of its subagents, has a file in a private folder. It names the hub's session, and the
//! calls that are announced, asked about or permitted. A process locks the file while it reads, asks the hub and writes, so
//! two hooks that run at the same time create one hub session and ask once.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use seal::json::{JsonKind, JsonValue, OwnedDoc, write_object};
use seal::{Digest, Random as _, SystemRandom, private_file};

/// Maximum number of calls that a record remembers. The oldest are forgotten first.
const MAX_CALLS: usize = 64;
/// Maximum number of bytes of the agent's latest text that a record remembers.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// How long a process waits for the lock. Another process holds it only for a few requests to the hub.
const LOCK_TIMEOUT: Duration = Duration::from_secs(8);
const LOCK_RETRY: Duration = Duration::from_millis(4);
/// After this time without a change, a file is deleted.
const MAX_AGE: Duration = Duration::from_hours(7 * 24);

/// The shared record of one harness session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HookRecord {
    /// A random text that makes idempotency keys unique, even if the record was lost.
    pub(super) nonce: String,
    /// The id of the hub's session.
    pub(super) hub_session: Option<String>,
    /// How many hub sessions there were before. It makes idempotency keys unique.
    pub(super) generation: u64,
    /// How many calls there were. It makes the keys of calls without an id unique.
    pub(super) call_count: u64,
    pub(super) calls: Vec<CallRecord>,
    /// The message that the agent is writing.
    pub(super) message_id: String,
    /// The text of the message that was narrated last.
    pub(super) heard_text: String,
}

/// The phases of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CallPhase {
    /// The harness has announced it.
    #[default]
    Announced,
    /// A person is being asked.
    Asked,
    /// A person said yes.
    Accepted,
    /// A person said no, or nobody answered in time.
    Refused,
}

/// The shared record of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CallRecord {
    /// Identifies the call in this session.
    pub(super) key: String,
    /// The harness's id, if it is known.
    pub(super) id: Option<String>,
    pub(super) digest: String,
    pub(super) phase: CallPhase,
    /// The names of the events that were seen for this call, separated by spaces.
    pub(super) events: String,
    /// The question about it.
    pub(super) reply_token: Option<String>,
    /// How many questions were asked about it. It makes idempotency keys unique.
    pub(super) attempt: u64,
    /// Whether the start of the call was reported to the hub.
    pub(super) is_invoked: bool,
}

impl HookRecord {
    /// Adds a call and returns its position.
    pub(super) fn add_call(&mut self, call: CallRecord) -> usize {
        if self.calls.len() >= MAX_CALLS {
            // A call with an open question is kept, so that the question can be withdrawn.
            let oldest = self.calls.iter().position(|call| call.phase != CallPhase::Asked).unwrap_or(0);
            self.calls.remove(oldest);
        }
        self.call_count += 1;
        self.calls.push(call);
        self.calls.len() - 1
    }

    pub(super) fn set_heard_text(&mut self, text: String) {
        self.heard_text = if text.len() > MAX_TEXT_BYTES { String::new() } else { text };
    }

    fn read(text: &str) -> Option<Self> {
        let doc = OwnedDoc::read(text).ok()?;
        let root = doc.doc().root();
        let text = |value: &JsonValue<'_>, name: &str| Some(value.member(name)?.text()?.into_owned());
        let number = |name: &str| root.member(name)?.source().parse().ok();
        let calls = root.member("calls").filter(|calls| calls.kind() == JsonKind::Array)?;
        let read_call = |call: JsonValue<'_>| {
            Some(CallRecord {
                key: text(&call, "key")?,
                id: text(&call, "id"),
                digest: text(&call, "digest")?,
                phase: CallPhase::parse(&text(&call, "phase")?)?,
                events: text(&call, "events")?,
                reply_token: text(&call, "reply_token"),
                attempt: call.member("attempt")?.source().parse().ok()?,
                is_invoked: call.member("is_invoked")?.as_bool()?,
            })
        };
        Some(Self {
            nonce: text(&root, "nonce")?,
            hub_session: text(&root, "hub_session"),
            generation: number("generation")?,
            call_count: number("call_count")?,
            calls: calls.items().map(read_call).collect::<Option<_>>()?,
            message_id: text(&root, "message_id")?,
            heard_text: text(&root, "heard_text")?,
        })
    }

    fn write(&self) -> String {
        write_object(|out| {
            if let Some(session) = &self.hub_session {
                out.key("hub_session").text(session);
            }
            out.key("nonce").text(&self.nonce);
            out.key("generation").raw(&self.generation.to_string());
            out.key("call_count").raw(&self.call_count.to_string());
            out.key("message_id").text(&self.message_id);
            out.key("heard_text").text(&self.heard_text);
            out.key("calls");
            out.array(|out| {
                for call in &self.calls {
                    out.object(|out| {
                        out.key("key").text(&call.key);
                        if let Some(id) = &call.id {
                            out.key("id").text(id);
                        }
                        out.key("digest").text(&call.digest);
                        out.key("phase").text(call.phase.name());
                        out.key("events").text(&call.events);
                        if let Some(token) = &call.reply_token {
                            out.key("reply_token").text(token);
                        }
                        out.key("attempt").raw(&call.attempt.to_string());
                        out.key("is_invoked").boolean(call.is_invoked);
                    });
                }
            });
        })
    }
}

impl CallRecord {
    /// Identifies the latest question about the call in this session.
    pub(super) fn question(&self) -> String {
        format!("{} {}", self.key, self.attempt)
    }
}

impl CallPhase {
    fn name(self) -> &'static str {
        match self {
            Self::Announced => "announced",
            Self::Asked => "asked",
            Self::Accepted => "accepted",
            Self::Refused => "refused",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        let all = [Self::Announced, Self::Asked, Self::Accepted, Self::Refused];
        all.into_iter().find(|phase| phase.name() == name)
    }
}

/// The folder with the records.
#[derive(Clone, Debug)]
pub(super) struct SessionStore {
    folder: PathBuf,
}

impl SessionStore {
    /// Opens the store in this folder, or in the user's runtime folder. Fails if other users could change it.
    pub(super) fn open(folder: Option<&Path>) -> io::Result<Self> {
        let folder = match folder {
            Some(folder) => folder.to_owned(),
            None => default_folder()?,
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let metadata = std::fs::symlink_metadata(&folder)?;
        let is_private = metadata.is_dir()
            && metadata.uid() == client::current_uid()?
            && metadata.mode().trailing_zeros() >= 6;
        if !is_private {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the folder is not private"));
        }
        Ok(Self { folder })
    }

    /// Locks the record with this key, which identifies a harness session.
    pub(super) async fn lock(&self, key: &str, deadline: Instant) -> io::Result<LockedRecord> {
        let name: String = Digest::of(key.as_bytes()).to_string().chars().skip(7).take(32).collect();
        let mut options = private_file::open_options();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.folder.join(format!("{name}.lock")))?;
        let give_up_at = deadline.min(Instant::now() + LOCK_TIMEOUT);
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if Instant::now() >= give_up_at => {
                    return Err(io::Error::from(io::ErrorKind::TimedOut));
                }
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_RETRY).await,
            }
        }
        let path = self.folder.join(format!("{name}.json"));
        let record = match std::fs::read_to_string(&path) {
            // A damaged record is replaced; idempotency keys still prevent a second question about the same call.
            Ok(text) => HookRecord::read(&text).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => HookRecord::default(),
            Err(error) => return Err(error),
        };
        let mut locked = LockedRecord { record, path, _lock: file };
        if locked.record.nonce.is_empty() {
            let mut bytes = [0; 16];
            SystemRandom.fill(&mut bytes);
            locked.record.nonce = Digest::of(&bytes).to_string();
            locked.save()?;
        }
        Ok(locked)
    }

    /// Deletes the files of sessions that have not changed for a week.
    pub(super) fn delete_old(&self) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        let is_old = |entry: &std::fs::DirEntry| {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            modified.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > MAX_AGE))
        };
        for entry in entries.flatten().filter(is_old) {
            drop(std::fs::remove_file(entry.path()));
        }
    }
}

/// A question that this process waits for. While it exists, other processes can see that somebody waits.
#[derive(Debug)]
pub(super) struct WaitMark {
    _lock: File,
}

/// A record that no other process can use.
#[derive(Debug)]
pub(super) struct LockedRecord {
    pub(super) record: HookRecord,
    path: PathBuf,
    /// Closing the file releases the lock.
    _lock: File,
}

impl LockedRecord {
    /// Marks that this process waits for the answer to a question.
    pub(super) fn mark_waiting(&self, question: &str) -> io::Result<WaitMark> {
        let file = self.open_wait_file(question)?;
        file.try_lock_shared()?;
        Ok(WaitMark { _lock: file })
    }

    /// Whether a process waits for the answer to a question. The record is locked, so no other process starts to
    /// wait in the meantime.
    pub(super) fn is_awaited(&self, question: &str) -> io::Result<bool> {
        let file = self.open_wait_file(question)?;
        match file.try_lock() {
            Ok(()) => {
                drop(std::fs::remove_file(self.wait_path(question)));
                Ok(false)
            }
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Deletes the mark of a question that is resolved.
    pub(super) fn clear_mark(&self, question: &str) {
        drop(std::fs::remove_file(self.wait_path(question)));
    }

    fn wait_path(&self, question: &str) -> PathBuf {
        let name: String = Digest::of(question.as_bytes()).to_string().chars().skip(7).take(16).collect();
        self.path.with_extension(format!("{name}.wait"))
    }

    fn open_wait_file(&self, question: &str) -> io::Result<File> {
        let mut options = private_file::open_options();
        options.read(true).write(true).create(true).truncate(false).open(self.wait_path(question))
    }

    /// Stores the record.
    pub(super) fn save(&self) -> io::Result<()> {
        let temporary = self.path.with_extension("new");
        let mut options = private_file::open_options();
        let mut file = options.write(true).create(true).truncate(true).open(&temporary)?;
        file.write_all(self.record.write().as_bytes())?;
        drop(file);
        std::fs::rename(&temporary, &self.path)
    }
}

fn default_folder() -> io::Result<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty()).map(PathBuf::from);
    let folder = match runtime {
        Some(folder) => folder.join("sayso"),
        None => std::env::temp_dir().join(format!("sayso-{}", client::current_uid()?)),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let metadata = std::fs::symlink_metadata(&folder)?;
    if !metadata.is_dir() || metadata.uid() != client::current_uid()? {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the folder belongs to another user"));
    }
    Ok(folder.join("hooks"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]

    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = HookRecord {
            hub_session: Some("sess_1".to_owned()),
            nonce: "n".to_owned(),
            generation: 3,
            call_count: 9,
            message_id: "m".to_owned(),
            heard_text: "a \"b\"\n".to_owned(),
            calls: vec![
                CallRecord::default(),
                CallRecord {
                    key: "k".to_owned(),
                    id: Some("toolu_1".to_owned()),
                    digest: "d".to_owned(),
                    phase: CallPhase::Asked,
                    events: "PreToolUse".to_owned(),
                    reply_token: Some("rpl_1".to_owned()),
                    attempt: 2,
                    is_invoked: true,
                },
            ],
        };
        assert_eq!(HookRecord::read(&record.write()), Some(record));
        assert_eq!(HookRecord::read("{"), None);
        assert_eq!(HookRecord::read("{}"), None);
    }

    #[test]
    fn old_calls_are_forgotten_unless_a_person_is_being_asked() {
        let mut record = HookRecord::default();
        record.add_call(CallRecord {
            phase: CallPhase::Asked,
            key: "asked".to_owned(),
            ..CallRecord::default()
        });
        for number in 0..2 * MAX_CALLS {
            record.add_call(CallRecord { key: number.to_string(), ..CallRecord::default() });
        }
        assert_eq!((record.calls.len(), record.calls[0].key.as_str()), (MAX_CALLS, "asked"));
    }

    #[tokio::test]
    async fn only_a_private_folder_is_used_and_a_locked_record_is_not_shared() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hooks");
        let store = SessionStore::open(Some(&path)).unwrap();
        let mut locked = store.lock("a", Instant::now()).await.unwrap();
        locked.record.generation = 7;
        locked.save().unwrap();
        let refused = store.lock("a", Instant::now()).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        drop(store.lock("b", Instant::now()).await.unwrap());
        drop(locked);
        assert_eq!(store.lock("a", Instant::now()).await.unwrap().record.generation, 7);
        let locked = store.lock("a", Instant::now()).await.unwrap();
        let marks = [locked.mark_waiting("rpl_1").unwrap(), locked.mark_waiting("rpl_1").unwrap()];
        assert!(locked.is_awaited("rpl_1").unwrap() && !locked.is_awaited("rpl_2").unwrap());
        drop(marks);
        assert!(!locked.is_awaited("rpl_1").unwrap());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(SessionStore::open(Some(&path)).is_err());
    }
}
