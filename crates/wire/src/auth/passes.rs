//! Passes: what a browser is given in place of its token.
//!
//! A pass says which token it stands for and when it was given, under a key that only the hub has. So it outlives a restart
//! without a table, is never the token, and is worth nothing once the token is gone, the key is removed, its time is over or
//! its holder has signed out.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use seal::private;
use seal::{Digest, KeyFileError, MacKey, Random, UnixMillis, base64url};

/// Gives passes and knows them again.
#[derive(Debug)]
pub struct Passes {
    key: MacKey,
    ended: Mutex<Ended>,
}

/// Passes whose holders have signed out, and when they were given.
#[derive(Debug, Default)]
struct Ended {
    given: HashMap<[u8; NONCE], UnixMillis>,
    file: Option<PathBuf>,
}

/// A pass that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    /// The hash of the token that it stands for.
    pub(crate) token: Digest,
    nonce: [u8; NONCE],
    given: UnixMillis,
}

const VERSION: u8 = 1;
const NONCE: usize = 16;
/// Version, time, nonce, the token's hash.
const BODY: usize = 1 + 8 + NONCE + 32;
/// So many sign-outs are remembered at once; a pass is forgotten when its time is over.
const MOST_ENDED: usize = 10_000;
const LONGEST_FILE: u64 = 1024 * 1024;

impl Passes {
    /// Passes that end with this run.
    pub fn new(random: &mut impl Random) -> Self {
        Self { key: MacKey::generate(random), ended: Mutex::default() }
    }

    /// Passes that outlive a restart: the key, and who has signed out, are kept in this folder.
    pub fn kept(folder: &Path, random: &mut impl Random) -> Result<Self, KeyFileError> {
        let key = MacKey::kept(&folder.join("sign-in.key"), random)?;
        let file = folder.join("signed-out");
        let given = match private::read(&file, LONGEST_FILE) {
            Ok(text) => text.lines().filter_map(read_line).collect(),
            Err(KeyFileError::Io(_, error)) if error.kind() == std::io::ErrorKind::NotFound => HashMap::new(),
            Err(why) => return Err(why),
        };
        Ok(Self { key, ended: Mutex::new(Ended { given, file: Some(file) }) })
    }

    /// A pass for whoever has shown the token with this hash.
    pub(crate) fn give(&self, token: &Digest, now: UnixMillis, random: &mut impl Random) -> String {
        let mut nonce = [0; NONCE];
        random.fill(&mut nonce);
        let mut bytes = Vec::with_capacity(BODY + 32);
        bytes.push(VERSION);
        bytes.extend_from_slice(&now.get().to_be_bytes());
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(token.as_bytes());
        let tag = self.key.tag(&bytes);
        bytes.extend_from_slice(&tag);
        base64url::encode(&bytes)
    }

    /// The pass, if it is one of ours, not older than `life` milliseconds, and its holder has not signed out.
    pub(crate) fn read(&self, text: &str, now: UnixMillis, life: i64) -> Option<Pass> {
        if text.len() > 2 * (BODY + 32) {
            return None;
        }
        let bytes = base64url::decode(text)?;
        let (body, tag) = bytes.split_at_checked(BODY)?;
        if !self.key.is_tag(body, tag) {
            return None;
        }
        let (version, rest) = body.split_first()?;
        let (given, rest) = rest.split_first_chunk::<8>()?;
        let (nonce, token) = rest.split_first_chunk::<NONCE>()?;
        let given = UnixMillis::new(i64::from_be_bytes(*given));
        let pass = Pass { token: Digest::from_bytes(token.try_into().ok()?), nonce: *nonce, given };
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that was set back makes no pass younger than new, and none void.
        let holds =
            *version == VERSION && now.millis_since(given) < life && !ended.given.contains_key(&pass.nonce);
        holds.then_some(pass)
    }

    /// The holder signs out: the pass is void from now on, wherever a copy of it may be. An error says that this could not be
    /// remembered beyond this run, or at all.
    pub(crate) fn end(&self, pass: &Pass, now: UnixMillis, life: i64) -> std::io::Result<()> {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let before = ended.given.len();
        ended.given.retain(|_, given| now.millis_since(*given) < life);
        if ended.given.len() >= MOST_ENDED {
            return Err(std::io::Error::other("too many have signed out"));
        }
        let forgotten = ended.given.len() < before;
        ended.given.insert(pass.nonce, pass.given);
        let Some(path) = &ended.file else { return Ok(()) };
        if forgotten {
            // Written anew beside, then put in its place: a crash leaves the one or the other.
            let text: String = ended.given.iter().map(|(nonce, given)| line(nonce, *given)).collect();
            let beside = path.with_extension("new");
            let mut file = private::options().write(true).create(true).truncate(true).open(&beside)?;
            file.write_all(text.as_bytes()).and_then(|()| file.sync_all())?;
            return std::fs::rename(&beside, path);
        }
        let mut file = private::options().append(true).create(true).open(path)?;
        file.write_all(line(&pass.nonce, pass.given).as_bytes()).and_then(|()| file.sync_all())
    }
}

fn line(nonce: &[u8; NONCE], given: UnixMillis) -> String {
    format!("{} {given}\n", base64url::encode(nonce))
}

fn read_line(line: &str) -> Option<([u8; NONCE], UnixMillis)> {
    let (nonce, given) = line.split_once(' ')?;
    Some((base64url::decode(nonce)?.try_into().ok()?, UnixMillis::new(given.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use seal::SystemRandom;

    const LIFE: i64 = 1000;

    fn token() -> Digest {
        Digest::of(b"sayso_secret")
    }

    #[test]
    fn a_pass_is_known_again_until_its_time_is_over() {
        let passes = Passes::new(&mut SystemRandom);
        let text = passes.give(&token(), UnixMillis::new(5000), &mut SystemRandom);
        assert_eq!(passes.read(&text, UnixMillis::new(5000), LIFE).unwrap().token, token());
        assert!(
            passes.read(&text, UnixMillis::new(5999), LIFE).is_some()
                && passes.read(&text, UnixMillis::new(0), LIFE).is_some()
        );
        assert_eq!(passes.read(&text, UnixMillis::new(6000), LIFE), None);
        assert_ne!(text, passes.give(&token(), UnixMillis::new(5000), &mut SystemRandom), "no two are alike");
        assert_eq!(
            Passes::new(&mut SystemRandom).read(&text, UnixMillis::new(5000), LIFE),
            None,
            "another hub's"
        );
    }

    #[test]
    fn nothing_of_it_can_be_changed() {
        let passes = Passes::new(&mut SystemRandom);
        let text = passes.give(&token(), UnixMillis::new(5000), &mut SystemRandom);
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(
                passes.read(&String::from_utf8(bytes).unwrap(), UnixMillis::new(5000), LIFE),
                None,
                "{at}"
            );
        }
        for wrong in ["", "A", &text[1..], &format!("{text}AAAA"), &"A".repeat(4000), "sayso_secret"] {
            assert_eq!(passes.read(wrong, UnixMillis::new(5000), LIFE), None, "{wrong}");
        }
    }

    #[test]
    fn who_has_signed_out_stays_out_after_a_restart_too() {
        let folder = tempfile::tempdir().unwrap();
        let passes = Passes::kept(folder.path(), &mut SystemRandom).unwrap();
        let [first, second, third] =
            [0, 1, 2].map(|_| passes.give(&token(), UnixMillis::new(5000), &mut SystemRandom));
        let read = |passes: &Passes, text: &str, now| passes.read(text, now, LIFE);
        passes
            .end(&read(&passes, &first, UnixMillis::new(5001)).unwrap(), UnixMillis::new(5001), LIFE)
            .unwrap();
        passes
            .end(&read(&passes, &second, UnixMillis::new(5001)).unwrap(), UnixMillis::new(5001), LIFE)
            .unwrap();
        let again = Passes::kept(folder.path(), &mut SystemRandom).unwrap();
        for passes in [&passes, &again] {
            assert_eq!(
                (read(passes, &first, UnixMillis::new(5002)), read(passes, &second, UnixMillis::new(5002))),
                (None, None)
            );
            assert!(read(passes, &third, UnixMillis::new(5002)).is_some());
        }
        let late = again.give(&token(), UnixMillis::new(5900), &mut SystemRandom);
        again.end(&read(&again, &late, UnixMillis::new(6500)).unwrap(), UnixMillis::new(6500), LIFE).unwrap();
        let kept = std::fs::read_to_string(folder.path().join("signed-out")).unwrap();
        assert_eq!(kept.lines().count(), 1, "what is over anyway is forgotten");
        let once_more = Passes::kept(folder.path(), &mut SystemRandom).unwrap();
        assert_eq!(read(&once_more, &late, UnixMillis::new(6500)), None);
    }

    #[test]
    fn no_more_sign_outs_are_remembered_than_there_is_room_for() {
        let passes = Passes::new(&mut SystemRandom);
        let pass = |number: u64| Pass {
            token: token(),
            nonce: u128::from(number).to_be_bytes(),
            given: UnixMillis::new(0),
        };
        for number in 0..MOST_ENDED as u64 {
            passes.end(&pass(number), UnixMillis::new(1), LIFE).unwrap();
        }
        assert!(passes.end(&pass(u64::MAX), UnixMillis::new(1), LIFE).is_err());
        assert!(
            passes.end(&pass(u64::MAX), UnixMillis::new(LIFE), LIFE).is_ok(),
            "those whose time is over make room"
        );
    }
}
