//! Session cookies, which a browser receives in exchange for a token.
//!
//! A cookie contains the digest of its token and the time of issue, authenticated with a key that only the hub has. It
//! therefore survives a restart without being stored, and it never contains the token itself. A cookie becomes invalid
//! when its token is removed, the key is deleted, its lifetime is over, or its holder signs out.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hub::command::HubCommand;
use hub::{Principal, SignIn};
use seal::private_file;
use seal::{Digest, KeyFileError, MacKey, Random, UnixMillis, base64url};
use tokio::sync::watch;

/// Issues and verifies session cookies.
#[derive(Debug)]
pub struct BrowserSessions {
    key: MacKey,
    revoked: Mutex<RevokedCookies>,
    /// Notifies connections of every sign-out.
    sign_outs: watch::Sender<()>,
}

/// Cookies whose holders have signed out.
#[derive(Debug, Default)]
struct RevokedCookies {
    by_nonce: HashMap<[u8; NONCE_BYTES], RevokedCookie>,
    /// For each token with too many sign-outs, a time: every cookie issued for the token up to that time is revoked.
    by_token: HashMap<Digest, UnixMillis>,
    file: Option<PathBuf>,
}

#[derive(Debug)]
struct RevokedCookie {
    issued_at: UnixMillis,
    /// The digest of the token. It is unknown if an earlier version of sayso stored the sign-out.
    token_digest: Option<Digest>,
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
/// Maximum number of revoked cookies to remember. Beyond that, a sign-out revokes all cookies of its token, which needs
/// only one entry per token. Expired cookies are forgotten.
const MAX_REVOKED: usize = 100_000;
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Replaces the nonce in a line that revokes all cookies of a token.
const ALL_COOKIES: &str = "*";

impl SessionCookie {
    /// Returns the sign-in that the cookie stands for.
    pub(crate) fn sign_in(&self, lifetime_ms: i64) -> SignIn {
        SignIn { id: self.nonce, expires_at: self.issued_at.saturating_add(lifetime_ms) }
    }
}

impl BrowserSessions {
    /// Creates an issuer whose cookies are valid only until this process ends.
    pub fn new(random: &mut impl Random) -> Self {
        Self { key: MacKey::generate(random), revoked: Mutex::default(), sign_outs: watch::Sender::default() }
    }

    /// Loads or creates an issuer whose cookies survive a restart. The key and the revoked cookies are stored in this
    /// folder.
    pub fn load_or_create(folder: &Path, random: &mut impl Random) -> Result<Self, KeyFileError> {
        let key = MacKey::load_or_create(&folder.join("sign-in.key"), random)?;
        let file = folder.join("signed-out");
        let mut revoked = RevokedCookies::default();
        match private_file::read(&file, MAX_FILE_BYTES) {
            Ok(text) => text.lines().for_each(|line| {
                // A damaged line is skipped.
                let _: Option<()> = revoked.read_line(line);
            }),
            Err(KeyFileError::Io(_, error)) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        revoked.file = Some(file);
        Ok(Self { key, revoked: Mutex::new(revoked), sign_outs: watch::Sender::default() })
    }

    /// Issues a cookie for a client that has presented the token with this digest.
    pub(crate) fn issue(&self, token_digest: &Digest, now: UnixMillis, random: &mut impl Random) -> String {
        let mut nonce = [0; NONCE_BYTES];
        random.fill(&mut nonce);
        // A new cookie must not count as one of those that were revoked in this millisecond.
        let revoked_until = self.revoked_cookies().by_token.get(token_digest).copied();
        let now = revoked_until.map_or(now, |until| now.max(until.saturating_add(1)));
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
        // A time of issue in the future is accepted, so that setting the clock back invalidates no cookie.
        let is_valid = *version == VERSION
            && now.millis_since(issued_at) < lifetime_ms
            && !self.revoked_cookies().contains(&cookie.nonce, &cookie.token_digest, issued_at);
        is_valid.then_some(cookie)
    }

    /// Revokes a cookie and all copies of it. If the token already has `max_per_token` revoked cookies, revokes all
    /// cookies of the token, so that one token cannot fill the memory. Returns the command that closes the
    /// browser's subscriptions, and whether the sign-out was stored. A sign-out that was not stored is lost when this process ends.
    pub(crate) fn revoke(
        &self,
        cookie: &SessionCookie,
        now: UnixMillis,
        lifetime_ms: i64,
        max_per_token: usize,
    ) -> (HubCommand, std::io::Result<()>) {
        let token_digest = cookie.token_digest;
        let mut revoked = self.revoked_cookies();
        let count_before = revoked.len();
        revoked.forget_expired(now, lifetime_ms);
        let mut must_rewrite = revoked.len() < count_before;
        let is_of_token = |other: &&RevokedCookie| other.token_digest == Some(token_digest);
        let id = if revoked.by_nonce.len() < MAX_REVOKED
            && revoked.by_nonce.values().filter(is_of_token).count() < max_per_token
        {
            let entry = RevokedCookie { issued_at: cookie.issued_at, token_digest: Some(token_digest) };
            revoked.by_nonce.insert(cookie.nonce, entry);
            Some(cookie.nonce)
        } else {
            revoked.by_nonce.retain(|_, other| other.token_digest != Some(token_digest));
            revoked.by_token.insert(token_digest, now.max(cookie.issued_at));
            must_rewrite = true;
            None
        };
        let stored = revoked.store(id.as_ref().filter(|_| !must_rewrite));
        drop(revoked);
        self.sign_outs.send_replace(());
        (HubCommand::EndSignIn { token_digest, id }, stored)
    }

    /// Whether the principal's browser has signed out.
    pub(crate) fn is_signed_out(&self, principal: &Principal, lifetime_ms: i64) -> bool {
        let (Some(sign_in), Some(token_digest)) = (principal.sign_in, principal.token_digest) else {
            return false;
        };
        let issued_at = sign_in.expires_at.saturating_add(lifetime_ms.saturating_neg());
        self.revoked_cookies().contains(&sign_in.id, &token_digest, issued_at)
    }

    /// Returns when the principal's browser signs out. Never returns for a principal without a browser sign-in.
    pub(crate) async fn wait_for_sign_out(&self, principal: &Principal, lifetime_ms: i64) {
        if principal.sign_in.is_none() {
            return std::future::pending().await;
        }
        let mut sign_outs = self.sign_outs.subscribe();
        while !self.is_signed_out(principal, lifetime_ms) {
            if sign_outs.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    fn revoked_cookies(&self) -> MutexGuard<'_, RevokedCookies> {
        self.revoked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RevokedCookies {
    fn contains(&self, nonce: &[u8; NONCE_BYTES], token_digest: &Digest, issued_at: UnixMillis) -> bool {
        self.by_nonce.contains_key(nonce)
            || self.by_token.get(token_digest).is_some_and(|until| issued_at <= *until)
    }

    fn len(&self) -> usize {
        self.by_nonce.len() + self.by_token.len()
    }

    fn forget_expired(&mut self, now: UnixMillis, lifetime_ms: i64) {
        let is_unexpired = |issued_at: UnixMillis| now.millis_since(issued_at) < lifetime_ms;
        self.by_nonce.retain(|_, cookie| is_unexpired(cookie.issued_at));
        self.by_token.retain(|_, until| is_unexpired(*until));
    }

    /// Appends the entry with this nonce to the file. Without a nonce, writes the whole file again.
    fn store(&self, new_nonce: Option<&[u8; NONCE_BYTES]>) -> std::io::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let Some((nonce, cookie)) = new_nonce.and_then(|nonce| self.by_nonce.get_key_value(nonce)) else {
            return match private_file::replace(path, &self.to_text()) {
                Err(KeyFileError::Io(_, error)) => Err(error),
                Err(error) => Err(std::io::Error::other(error)),
                Ok(()) => Ok(()),
            };
        };
        let mut file = private_file::open_options().append(true).create(true).open(path)?;
        file.write_all(cookie.format_line(nonce).as_bytes()).and_then(|()| file.sync_all())
    }

    fn to_text(&self) -> String {
        let cookies = self.by_nonce.iter().map(|(nonce, cookie)| cookie.format_line(nonce));
        let tokens = self.by_token.iter().map(|(token, until)| format!("{ALL_COOKIES} {until} {token}\n"));
        cookies.chain(tokens).collect()
    }

    /// Reads a line of the file. Returns `None` if it is damaged.
    fn read_line(&mut self, line: &str) -> Option<()> {
        let mut parts = line.split(' ');
        let (nonce, issued_at) = (parts.next()?, UnixMillis::new(parts.next()?.parse().ok()?));
        let token_digest = parts.next().and_then(Digest::parse);
        if nonce == ALL_COOKIES {
            self.by_token.insert(token_digest?, issued_at);
        } else {
            let nonce = base64url::decode(nonce)?.try_into().ok()?;
            self.by_nonce.insert(nonce, RevokedCookie { issued_at, token_digest });
        }
        Some(())
    }
}

impl RevokedCookie {
    fn format_line(&self, nonce: &[u8; NONCE_BYTES]) -> String {
        let token = self.token_digest.map(|digest| format!(" {digest}")).unwrap_or_default();
        format!("{} {}{token}\n", base64url::encode(nonce), self.issued_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seal::SystemRandom;

    const LIFETIME_MS: i64 = 1000;
    const MAX_PER_TOKEN: usize = 3;

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
                MAX_PER_TOKEN,
            )
            .1
            .unwrap();
        sessions
            .revoke(
                &verify(&sessions, &revoked_second, UnixMillis::new(5001)).unwrap(),
                UnixMillis::new(5001),
                LIFETIME_MS,
                MAX_PER_TOKEN,
            )
            .1
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
                MAX_PER_TOKEN,
            )
            .1
            .unwrap();
        let stored = std::fs::read_to_string(folder.path().join("signed-out")).unwrap();
        assert_eq!(stored.lines().count(), 1, "expired cookies are forgotten");
        let reloaded_again = BrowserSessions::load_or_create(folder.path(), &mut SystemRandom).unwrap();
        assert_eq!(verify(&reloaded_again, &later, UnixMillis::new(6500)), None);
    }

    #[test]
    fn a_token_with_too_many_sign_outs_is_signed_out_everywhere() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = BrowserSessions::load_or_create(folder.path(), &mut SystemRandom).unwrap();
        let other_token = Digest::of(b"sayso_other");
        let at = UnixMillis::new;
        let sign_in = |sessions: &BrowserSessions, token: &Digest, now| {
            let text = sessions.issue(token, now, &mut SystemRandom);
            (sessions.verify(&text, now.saturating_add(1), LIFETIME_MS).unwrap(), text)
        };
        let (_, other_token_cookie) = sign_in(&sessions, &other_token, at(5000));
        let (_, earlier_cookie) = sign_in(&sessions, &token(), at(5000));
        for _ in 0..MAX_PER_TOKEN {
            let (cookie, _) = sign_in(&sessions, &token(), at(5000));
            let (command, stored) = sessions.revoke(&cookie, at(5001), LIFETIME_MS, MAX_PER_TOKEN);
            assert!(stored.is_ok() && matches!(command, HubCommand::EndSignIn { id: Some(_), .. }));
        }
        assert!(sessions.verify(&earlier_cookie, at(5002), LIFETIME_MS).is_some());
        let (cookie, _) = sign_in(&sessions, &token(), at(5000));
        let (command, stored) = sessions.revoke(&cookie, at(5002), LIFETIME_MS, MAX_PER_TOKEN);
        assert!(stored.is_ok() && matches!(command, HubCommand::EndSignIn { id: None, .. }));
        let (_, later_cookie) = sign_in(&sessions, &token(), at(5002));
        let reloaded = BrowserSessions::load_or_create(folder.path(), &mut SystemRandom).unwrap();
        for sessions in [&sessions, &reloaded] {
            assert_eq!(sessions.verify(&earlier_cookie, at(5003), LIFETIME_MS), None);
            assert!(
                sessions.verify(&other_token_cookie, at(5003), LIFETIME_MS).is_some(),
                "other tokens are not affected"
            );
            assert!(sessions.verify(&later_cookie, at(5003), LIFETIME_MS).is_some(), "a new sign-in works");
        }
        assert_eq!(
            reloaded.revoked_cookies().len(),
            1,
            "one entry replaces the entries of the individual cookies"
        );
    }

    #[test]
    fn a_file_of_an_earlier_version_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = BrowserSessions::load_or_create(folder.path(), &mut SystemRandom).unwrap();
        let text = sessions.issue(&token(), UnixMillis::new(5000), &mut SystemRandom);
        let cookie = sessions.verify(&text, UnixMillis::new(5000), LIFETIME_MS).unwrap();
        let old_line = format!("{} 5000\n", base64url::encode(&cookie.nonce));
        private_file::replace(&folder.path().join("signed-out"), &old_line).unwrap();
        let reloaded = BrowserSessions::load_or_create(folder.path(), &mut SystemRandom).unwrap();
        assert_eq!(reloaded.verify(&text, UnixMillis::new(5001), LIFETIME_MS), None);
    }
}
