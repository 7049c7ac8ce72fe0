//! Session cookies, which a browser receives in exchange for a token.
//!
//! A cookie contains the digest of its token and the time of issue, authenticated with a key that only the hub has. It
//! therefore survives a restart without being stored, and it never contains the token itself. A cookie becomes invalid
//! when its token is removed, the key is deleted, its lifetime is over, or its holder signs out.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use seal::private_file;
use seal::{Digest, KeyFileError, MacKey, Random, UnixMillis, base64url};

/// Issues and verifies session cookies.
#[derive(Debug)]
pub struct BrowserSessions {
    key: MacKey,
    revoked: Mutex<RevokedCookies>,
}

/// Cookies whose holders have signed out: the nonce of each cookie, and when it was issued.
#[derive(Debug, Default)]
struct RevokedCookies {
    issued_at: HashMap<[u8; NONCE_BYTES], UnixMillis>,
    file: Option<PathBuf>,
}

/// A verified session cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionCookie {
    /// The digest of the token that the cookie was issued for.
    pub(crate) token_digest: Digest,
    nonce: [u8; NONCE_BYTES],
    issued_at: UnixMillis,
}

const VERSION: u8 = 1;
const NONCE_BYTES: usize = 16;
/// Version, time of issue, nonce, token digest.
const BODY_BYTES: usize = 1 + 8 + NONCE_BYTES + 32;
/// Maximum number of revoked cookies to remember. Expired cookies are not remembered.
const MAX_REVOKED: usize = 10_000;
const MAX_FILE_BYTES: u64 = 1024 * 1024;

impl BrowserSessions {
    /// Creates an issuer whose cookies are valid only until this process ends.
    pub fn new(random: &mut impl Random) -> Self {
        Self { key: MacKey::generate(random), revoked: Mutex::default() }
    }

    /// Loads or creates an issuer whose cookies survive a restart. The key and the revoked cookies are stored in this
    /// folder.
    pub fn load_or_create(folder: &Path, random: &mut impl Random) -> Result<Self, KeyFileError> {
        let key = MacKey::load_or_create(&folder.join("sign-in.key"), random)?;
        let file = folder.join("signed-out");
        let issued_at = match private_file::read(&file, MAX_FILE_BYTES) {
            Ok(text) => text.lines().filter_map(parse_line).collect(),
            Err(KeyFileError::Io(_, error)) if error.kind() == std::io::ErrorKind::NotFound => HashMap::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { key, revoked: Mutex::new(RevokedCookies { issued_at, file: Some(file) }) })
    }

    /// Issues a cookie for a client that has presented the token with this digest.
    pub(crate) fn issue(&self, token_digest: &Digest, now: UnixMillis, random: &mut impl Random) -> String {
        let mut nonce = [0; NONCE_BYTES];
        random.fill(&mut nonce);
        let mut bytes = Vec::with_capacity(BODY_BYTES + 32);
        bytes.push(VERSION);
        bytes.extend_from_slice(&now.get().to_be_bytes());
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(token_digest.as_bytes());
        let tag = self.key.tag(&bytes);
        bytes.extend_from_slice(&tag);
        base64url::encode(&bytes)
    }

    /// Verifies that a cookie is authentic, not expired and not revoked. Returns `None` if it is not valid.
    pub(crate) fn verify(&self, text: &str, now: UnixMillis, lifetime_ms: i64) -> Option<SessionCookie> {
        if text.len() > 2 * (BODY_BYTES + 32) {
            return None;
        }
        let bytes = base64url::decode(text)?;
        let (body, tag) = bytes.split_at_checked(BODY_BYTES)?;
        if !self.key.verify(body, tag) {
            return None;
        }
        let (version, rest) = body.split_first()?;
        let (issued_at, rest) = rest.split_first_chunk::<8>()?;
        let (nonce, token) = rest.split_first_chunk::<NONCE_BYTES>()?;
        let issued_at = UnixMillis::new(i64::from_be_bytes(*issued_at));
        let cookie = SessionCookie {
            token_digest: Digest::from_bytes(token.try_into().ok()?),
            nonce: *nonce,
            issued_at,
        };
        let revoked_cookies = self.revoked.lock().unwrap_or_else(PoisonError::into_inner);
        // A time of issue in the future is accepted, so that setting the clock back invalidates no cookie.
        let is_valid = *version == VERSION
            && now.millis_since(issued_at) < lifetime_ms
            && !revoked_cookies.issued_at.contains_key(&cookie.nonce);
        is_valid.then_some(cookie)
    }

    /// Revokes a cookie and all copies of it. On a write error, the cookie is revoked only until the next restart. If too
    /// many cookies are revoked already, it is not revoked at all.
    pub(crate) fn revoke(
        &self,
        cookie: &SessionCookie,
        now: UnixMillis,
        lifetime_ms: i64,
    ) -> std::io::Result<()> {
        let mut revoked_cookies = self.revoked.lock().unwrap_or_else(PoisonError::into_inner);
        let before = revoked_cookies.issued_at.len();
        revoked_cookies.issued_at.retain(|_, issued_at| now.millis_since(*issued_at) < lifetime_ms);
        if revoked_cookies.issued_at.len() >= MAX_REVOKED {
            return Err(std::io::Error::other("too many revoked sessions"));
        }
        let any_expired = revoked_cookies.issued_at.len() < before;
        revoked_cookies.issued_at.insert(cookie.nonce, cookie.issued_at);
        let Some(path) = &revoked_cookies.file else { return Ok(()) };
        if any_expired {
            // Writes a new file and renames it, so that a crash leaves either the old or the new file.
            let text: String = revoked_cookies
                .issued_at
                .iter()
                .map(|(nonce, issued_at)| format_line(nonce, *issued_at))
                .collect();
            let temporary = path.with_extension("new");
            let mut file =
                private_file::open_options().write(true).create(true).truncate(true).open(&temporary)?;
            file.write_all(text.as_bytes()).and_then(|()| file.sync_all())?;
            return std::fs::rename(&temporary, path);
        }
        let mut file = private_file::open_options().append(true).create(true).open(path)?;
        file.write_all(format_line(&cookie.nonce, cookie.issued_at).as_bytes()).and_then(|()| file.sync_all())
    }
}

fn format_line(nonce: &[u8; NONCE_BYTES], issued_at: UnixMillis) -> String {
    format!("{} {issued_at}\n", base64url::encode(nonce))
}

fn parse_line(line: &str) -> Option<([u8; NONCE_BYTES], UnixMillis)> {
    let (nonce, issued_at) = line.split_once(' ')?;
    Some((base64url::decode(nonce)?.try_into().ok()?, UnixMillis::new(issued_at.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use seal::SystemRandom;

    const LIFETIME_MS: i64 = 1000;

    fn token() -> Digest {
        Digest::of(b"sayso_secret")
    }

    #[test]
    fn a_cookie_is_valid_until_it_expires() {
        let sessions = BrowserSessions::new(&mut SystemRandom);
        let text = sessions.issue(&token(), UnixMillis::new(5000), &mut SystemRandom);
        assert_eq!(sessions.verify(&text, UnixMillis::new(5000), LIFETIME_MS).unwrap().token_digest, token());
        assert!(
            sessions.verify(&text, UnixMillis::new(5999), LIFETIME_MS).is_some()
                && sessions.verify(&text, UnixMillis::new(0), LIFETIME_MS).is_some()
        );
        assert_eq!(sessions.verify(&text, UnixMillis::new(6000), LIFETIME_MS), None);
        assert_ne!(
            text,
            sessions.issue(&token(), UnixMillis::new(5000), &mut SystemRandom),
            "every cookie is unique"
        );
        assert_eq!(
            BrowserSessions::new(&mut SystemRandom).verify(&text, UnixMillis::new(5000), LIFETIME_MS),
            None,
            "a cookie issued by another hub is rejected"
        );
    }

    #[test]
    fn a_modified_cookie_is_rejected() {
        let sessions = BrowserSessions::new(&mut SystemRandom);
        let text = sessions.issue(&token(), UnixMillis::new(5000), &mut SystemRandom);
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(
                sessions.verify(&String::from_utf8(bytes).unwrap(), UnixMillis::new(5000), LIFETIME_MS),
                None,
                "{at}"
            );
        }
        for wrong in ["", "A", &text[1..], &format!("{text}AAAA"), &"A".repeat(4000), "sayso_secret"] {
            assert_eq!(sessions.verify(wrong, UnixMillis::new(5000), LIFETIME_MS), None, "{wrong}");
        }
    }

    #[test]
    fn a_sign_out_survives_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = BrowserSessions::load_or_create(folder.path(), &mut SystemRandom).unwrap();
        let [revoked_first, revoked_second, valid] =
            [0, 1, 2].map(|_| sessions.issue(&token(), UnixMillis::new(5000), &mut SystemRandom));
        let verify = |sessions: &BrowserSessions, text: &str, now| sessions.verify(text, now, LIFETIME_MS);
        sessions
            .revoke(
                &verify(&sessions, &revoked_first, UnixMillis::new(5001)).unwrap(),
                UnixMillis::new(5001),
                LIFETIME_MS,
            )
            .unwrap();
        sessions
            .revoke(
                &verify(&sessions, &revoked_second, UnixMillis::new(5001)).unwrap(),
                UnixMillis::new(5001),
                LIFETIME_MS,
            )
            .unwrap();
        let reloaded = BrowserSessions::load_or_create(folder.path(), &mut SystemRandom).unwrap();
        for sessions in [&sessions, &reloaded] {
            assert_eq!(
                (
                    verify(sessions, &revoked_first, UnixMillis::new(5002)),
                    verify(sessions, &revoked_second, UnixMillis::new(5002))
                ),
                (None, None)
            );
            assert!(verify(sessions, &valid, UnixMillis::new(5002)).is_some());
        }
        let later = reloaded.issue(&token(), UnixMillis::new(5900), &mut SystemRandom);
        reloaded
            .revoke(
                &verify(&reloaded, &later, UnixMillis::new(6500)).unwrap(),
                UnixMillis::new(6500),
                LIFETIME_MS,
            )
            .unwrap();
        let stored = std::fs::read_to_string(folder.path().join("signed-out")).unwrap();
        assert_eq!(stored.lines().count(), 1, "expired cookies are forgotten");
        let reloaded_again = BrowserSessions::load_or_create(folder.path(), &mut SystemRandom).unwrap();
        assert_eq!(verify(&reloaded_again, &later, UnixMillis::new(6500)), None);
    }

    #[test]
    fn the_number_of_remembered_sign_outs_is_limited() {
        let sessions = BrowserSessions::new(&mut SystemRandom);
        let cookie = |number: u64| SessionCookie {
            token_digest: token(),
            nonce: u128::from(number).to_be_bytes(),
            issued_at: UnixMillis::new(0),
        };
        for number in 0..MAX_REVOKED as u64 {
            sessions.revoke(&cookie(number), UnixMillis::new(1), LIFETIME_MS).unwrap();
        }
        assert!(sessions.revoke(&cookie(u64::MAX), UnixMillis::new(1), LIFETIME_MS).is_err());
        assert!(
            sessions.revoke(&cookie(u64::MAX), UnixMillis::new(LIFETIME_MS), LIFETIME_MS).is_ok(),
            "expired cookies free their slots"
        );
    }
}
