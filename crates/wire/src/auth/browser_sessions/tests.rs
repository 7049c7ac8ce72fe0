use futures_util::FutureExt as _;
use hub::Role;
use seal::SystemRandom;

use super::*;

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

/// Returns the listener whose browser has this cookie.
fn signed_in(cookie: &SessionCookie) -> Principal {
    Principal {
        role: Role::Listener,
        is_local: false,
        token_digest: Some(cookie.token_digest),
        sign_in: Some(cookie.sign_in(LIFETIME_MS)),
        ..Principal::local()
    }
}

#[test]
fn a_connection_ends_when_its_own_browser_signs_out() {
    let sessions = BrowserSessions::new(&mut SystemRandom);
    let now = UnixMillis::new(5000);
    let [own, other] = [0, 1].map(|_| {
        let text = sessions.issue(&token(), now, &mut SystemRandom);
        sessions.verify(&text, now, LIFETIME_MS).unwrap()
    });
    let principal = signed_in(&own);
    assert_eq!(principal.sign_in.unwrap().expires_at, UnixMillis::new(6000));
    let mut sign_out = Box::pin(sessions.wait_for_sign_out(&principal, LIFETIME_MS));
    assert!(sign_out.as_mut().now_or_never().is_none());
    let revoke = |cookie: &SessionCookie| {
        sessions.revoke(cookie, now, LIFETIME_MS, MAX_PER_TOKEN).1.unwrap();
    };
    revoke(&other);
    assert!(sign_out.as_mut().now_or_never().is_none(), "another browser has signed out");
    assert!(!sessions.is_signed_out(&principal, LIFETIME_MS));
    revoke(&own);
    assert!(sign_out.as_mut().now_or_never().is_some());
    assert!(sessions.is_signed_out(&principal, LIFETIME_MS));
    // The holder of the token itself has no browser that could sign out.
    let token_holder = Principal { sign_in: None, ..principal.clone() };
    assert!(!sessions.is_signed_out(&token_holder, LIFETIME_MS));
    assert!(sessions.wait_for_sign_out(&token_holder, LIFETIME_MS).now_or_never().is_none());
}

#[test]
fn a_revoked_token_also_ends_the_connections_that_were_opened_before() {
    let sessions = BrowserSessions::new(&mut SystemRandom);
    let now = UnixMillis::new(5000);
    let text = sessions.issue(&token(), now, &mut SystemRandom);
    let cookie = sessions.verify(&text, now, LIFETIME_MS).unwrap();
    let principal = signed_in(&cookie);
    // No sign-out of this token may be remembered, so one entry revokes all its cookies.
    let text = sessions.issue(&token(), now, &mut SystemRandom);
    let other = sessions.verify(&text, now, LIFETIME_MS).unwrap();
    sessions.revoke(&other, now, LIFETIME_MS, 0).1.unwrap();
    assert!(sessions.is_signed_out(&principal, LIFETIME_MS));
    // The time of issue, not the expiry, decides.
    let text = sessions.issue(&token(), now, &mut SystemRandom);
    let later = sessions.verify(&text, now, LIFETIME_MS).unwrap();
    assert!(!sessions.is_signed_out(&signed_in(&later), LIFETIME_MS));
}

#[test]
fn a_sign_out_is_remembered_until_its_cookie_expires() {
    let sessions = BrowserSessions::new(&mut SystemRandom);
    let [first, second] = [5000, 5999].map(|now| {
        let text = sessions.issue(&token(), UnixMillis::new(now), &mut SystemRandom);
        sessions.verify(&text, UnixMillis::new(now), LIFETIME_MS).unwrap()
    });
    let revoke = |cookie: &SessionCookie, now| {
        sessions.revoke(cookie, UnixMillis::new(now), LIFETIME_MS, MAX_PER_TOKEN).1.unwrap();
        sessions.revoked_cookies().len()
    };
    assert_eq!(revoke(&first, 5999), 1);
    assert_eq!(revoke(&second, 5999), 2);
    // The first cookie has just expired.
    assert_eq!(revoke(&second, 6000), 1);
}

#[test]
fn a_sign_out_is_appended_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("signed-out");
    private_file::replace(&file, "a damaged line\n").unwrap();
    let sessions = BrowserSessions::load_or_create(folder.path(), &mut SystemRandom).unwrap();
    let now = UnixMillis::new(5000);
    let text = sessions.issue(&token(), now, &mut SystemRandom);
    let cookie = sessions.verify(&text, now, LIFETIME_MS).unwrap();
    sessions.revoke(&cookie, now, LIFETIME_MS, MAX_PER_TOKEN).1.unwrap();
    let stored = std::fs::read_to_string(&file).unwrap();
    let (damaged, added) = stored.split_once('\n').unwrap();
    assert_eq!(damaged, "a damaged line", "the file is not rewritten");
    assert_eq!(added, format!("{} 5000 {}\n", base64url::encode(&cookie.nonce), token()));
}

#[test]
fn the_table_of_sign_outs_is_limited_for_all_tokens_together() {
    let sessions = BrowserSessions::new(&mut SystemRandom);
    let now = UnixMillis::new(5000);
    let other_token = Digest::of(b"sayso_other");
    {
        let mut revoked = sessions.revoked_cookies();
        for number in 0..MAX_REVOKED - 1 {
            let mut nonce = [0; NONCE_BYTES];
            nonce[..8].copy_from_slice(&(number as u64).to_be_bytes());
            let entry = RevokedCookie { issued_at: now, token_digest: Some(other_token) };
            revoked.by_nonce.insert(nonce, entry);
        }
    }
    let revoke = || {
        let text = sessions.issue(&token(), now, &mut SystemRandom);
        let cookie = sessions.verify(&text, now, LIFETIME_MS).unwrap();
        let (command, _) = sessions.revoke(&cookie, now, LIFETIME_MS, MAX_PER_TOKEN);
        let HubCommand::EndSignIn { token_digest, id } = command else { panic!("{command:?}") };
        assert_eq!(token_digest, token());
        id
    };
    assert!(revoke().is_some(), "there is room for one more");
    assert_eq!(revoke(), None, "all cookies of the token are revoked");
    assert_eq!(sessions.revoked_cookies().by_nonce.len(), MAX_REVOKED - 1, "other tokens are not affected");
}

#[test]
fn a_file_of_sign_outs_that_cannot_be_used_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("signed-out");
    std::fs::create_dir(&file).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    let loaded = BrowserSessions::load_or_create(folder.path(), &mut SystemRandom);
    assert!(matches!(loaded, Err(KeyFileError::Io(..))), "{loaded:?}");
}

#[test]
fn a_failed_write_does_not_tell_the_browser_where_the_file_is() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = BrowserSessions::load_or_create(folder.path(), &mut SystemRandom).unwrap();
    let now = UnixMillis::new(5000);
    let text = sessions.issue(&token(), now, &mut SystemRandom);
    let cookie = sessions.verify(&text, now, LIFETIME_MS).unwrap();
    std::fs::remove_dir_all(folder.path()).unwrap();
    // The first sign-out is appended. With no sign-outs per token, the file is rewritten.
    for max_per_token in [MAX_PER_TOKEN, 0] {
        let (_, stored) = sessions.revoke(&cookie, now, LIFETIME_MS, max_per_token);
        assert_eq!(stored.unwrap_err().kind(), std::io::ErrorKind::NotFound);
    }
    assert_eq!(sessions.verify(&text, now, LIFETIME_MS), None, "the cookie is revoked in this process");
}

#[test]
fn a_check_creates_nothing_and_finds_a_key_that_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let check = || BrowserSessions::check(folder.path(), &mut SystemRandom);
    assert!(check().is_ok());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    BrowserSessions::load_or_create(folder.path(), &mut SystemRandom).unwrap();
    assert!(check().is_ok());
    std::fs::write(folder.path().join(KEY_FILE_NAME), "not a key").unwrap();
    assert!(check().is_err());
}
