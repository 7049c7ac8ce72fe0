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
/// The name of the key file.
const KEY_FILE_NAME: &str = "sign-in.key";
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
        let key = MacKey::load_or_create(&folder.join(KEY_FILE_NAME), random)?;
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

    /// Checks that [`load_or_create`](Self::load_or_create) can use the folder, without creating anything.
    pub fn check(folder: &Path, random: &mut impl Random) -> Result<(), KeyFileError> {
        if folder.join(KEY_FILE_NAME).exists() {
            Self::load_or_create(folder, random)?;
        }
        Ok(())
    }

    /// Issues a cookie for a client that has presented the token with this digest.
    pub(crate) fn issue(&self, token_digest: &Digest, now: UnixMillis, random: &mut impl Random) -> String {
        let mut nonce = [0; NONCE_BYTES];
        random.fill(&mut nonce);
        // A new cookie must not count as one of those that were revoked in this millisecond.
        let revoked_until = self.revoked_cookies().by_token.get(token_digest).copied();
        let now = revoked_until.map_or(now, |until| now.max(until.saturating_add(1)));
        let body = [&[VERSION][..], &now.get().to_be_bytes(), &nonce, token_digest.as_bytes()].concat();
        let tag = self.key.tag(&body);
        base64url::encode(&[&body[..], &tag].concat())
    }

    /// Verifies that a cookie is authentic, not expired and not revoked. Returns `None` if it is not valid.
    pub(crate) fn verify(&self, text: &str, now: UnixMillis, lifetime_ms: i64) -> Option<SessionCookie> {
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

    /// Appends the entry with this nonce to the file. Without a nonce, rewrites the whole file.
    fn store(&self, new_nonce: Option<&[u8; NONCE_BYTES]>) -> std::io::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let Some((nonce, cookie)) = new_nonce.and_then(|nonce| self.by_nonce.get_key_value(nonce)) else {
            return match private_file::replace(path, &self.to_text()) {
                // The browser is told why the write failed, but not where the file is.
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
mod tests;
