//! Browsers: the token once, then a cookie.

use std::path::Path;

use testing::cli::token;
use testing::http::{Client, Response};
use testing::hub::Hub;
use testing::messages::CAN_REPLY;

const FORM: &str = "Content-Type: application/x-www-form-urlencoded";
const JSON: &str = "Content-Type: application/json";

fn json(token: &str) -> String {
    format!(r#"{{"token":"{token}"}}"#)
}

/// The cookie that a browser would send from then on.
fn cookie_of(answer: &Response) -> String {
    let line = answer.head.lines().find_map(|line| line.strip_prefix("Set-Cookie: "));
    line.unwrap_or_else(|| panic!("{answer:?}")).split(';').next().unwrap().to_owned()
}

pub(crate) fn sign_in(hub: &Hub, token: &str) -> String {
    let answer = hub.client().with(JSON).post("/login", &json(token));
    assert_eq!(answer.status, 204, "{answer:?}");
    cookie_of(&answer)
}

/// A page of the hub, and the same browser where a page does not say its origin.
fn page(hub: &Hub, cookie: &str) -> (Client, Client) {
    let silent = hub.client().with(&format!("Cookie: other=1; {cookie}"));
    (silent.with(&format!("Origin: http://{}", hub.address)), silent)
}

fn with_tokens(folder: &Path) -> Hub {
    let (data, tokens) = (folder.join("data"), folder.join("tokens"));
    let [data, tokens] = [&data, &tokens].map(|path| path.to_str().unwrap());
    Hub::start(&["--listen", "127.0.0.1:0", "--data", data, "--tokens", tokens])
}

fn file(folder: &Path) -> String {
    folder.join("tokens").to_str().unwrap().to_owned()
}

#[test]
fn a_person_signs_in_hears_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let ada = token(&file(folder.path()), &["--role", "listener", "--name", "ada"]);
    let bank = token(&file(folder.path()), &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let hub = with_tokens(folder.path());
    let answer = hub.client().with(FORM).post("/login", &format!("token={ada}"));
    assert_eq!(answer.status, 303, "{answer:?}");
    assert!(answer.head.contains("Location: /\r\n"), "{}", answer.head);
    let set = answer.head.lines().find(|line| line.starts_with("Set-Cookie: sayso=")).unwrap();
    assert!(set.ends_with("; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000"), "{set}");
    assert!(!answer.head.contains(&ada) && !answer.body.contains(&ada), "the token itself is not in it");

    let cookie = cookie_of(&answer);
    let (page, silent) = page(&hub, &cookie);
    let subscription = page.subscribe(CAN_REPLY);
    // EventSource sends no Origin to its own.
    let mut ear = silent.with("Sec-Fetch-Site: same-origin").listen(&subscription, None);
    let bank = hub.client().bearer(&bank);
    let session = bank.start();
    assert_eq!(ear.next_type(), "session.started");
    let asked = bank.ask(&session);
    assert_eq!(silent.reply(&subscription, &asked, "accept").status, 403, "no page of ours had the idea");
    let path = format!("/agent/v1/sessions/{session}/replies/{asked}");
    assert_eq!(bank.get(&path).text("status"), "pending");
    assert_eq!(page.reply(&subscription, &asked, "accept").status, 204);
    assert_eq!(bank.get(&path).text("decision"), "accept");
}

#[test]
fn a_restart_signs_nobody_out_but_a_token_that_is_gone_does() {
    let folder = tempfile::tempdir().unwrap();
    let ada = token(&file(folder.path()), &["--role", "listener", "--name", "ada"]);
    let ben = token(&file(folder.path()), &["--role", "listener", "--name", "ben"]);
    let mut hub = with_tokens(folder.path());
    let (hers, his) = (sign_in(&hub, &ada), sign_in(&hub, &ben));
    let subscription = page(&hub, &hers).0.subscribe("{}");
    hub.kill();
    let mut hub = with_tokens(folder.path());
    drop(page(&hub, &hers).1.listen(&subscription, None));
    hub.kill();

    let tokens = std::fs::read_to_string(file(folder.path())).unwrap();
    let without: Vec<_> = tokens.lines().filter(|line| !line.contains(r#""name":"ada""#)).collect();
    std::fs::write(file(folder.path()), without.join("\n") + "\n").unwrap();
    // Another token of the same name is another token.
    token(&file(folder.path()), &["--role", "admin", "--name", "ada"]);
    let mut hub = with_tokens(folder.path());
    assert_eq!(page(&hub, &hers).0.post("/aaep/v1/subscriptions", "{}").status, 401);
    page(&hub, &his).0.subscribe("{}");
    hub.kill();

    std::fs::remove_file(folder.path().join("data/sign-in.key")).unwrap();
    let hub = with_tokens(folder.path());
    assert_eq!(page(&hub, &his).0.post("/aaep/v1/subscriptions", "{}").status, 401, "another key");
}

#[test]
fn who_signs_out_is_out_and_so_is_every_copy_of_the_cookie() {
    let folder = tempfile::tempdir().unwrap();
    let ada = token(&file(folder.path()), &["--role", "listener", "--name", "ada"]);
    let mut hub = with_tokens(folder.path());
    let (cookie, other) = (sign_in(&hub, &ada), sign_in(&hub, &ada));
    let (own, silent) = page(&hub, &cookie);
    assert_eq!(silent.post("/logout", "").status, 403);
    own.subscribe("{}");
    let out = own.post("/logout", "");
    assert_eq!((out.status, cookie_of(&out).as_str()), (204, "sayso="));
    assert!(out.head.contains("Max-Age=0"), "{}", out.head);
    assert_eq!(own.post("/aaep/v1/subscriptions", "{}").status, 401);
    page(&hub, &other).0.subscribe("{}");
    hub.kill();
    let hub = with_tokens(folder.path());
    assert_eq!(page(&hub, &cookie).0.post("/aaep/v1/subscriptions", "{}").status, 401, "for good");
    page(&hub, &other).0.subscribe("{}");
    assert_eq!(hub.client().post("/logout", "").status, 204, "whoever is not in can go out");
}

#[test]
fn pages_of_other_origins_cannot_use_the_cookie() {
    let folder = tempfile::tempdir().unwrap();
    let ada = token(&file(folder.path()), &["--role", "listener", "--name", "ada"]);
    let hub = with_tokens(folder.path());
    let cookie = sign_in(&hub, &ada);
    let (own, silent) = page(&hub, &cookie);
    let subscription = own.subscribe("{}");
    let port = hub.address.rsplit_once(':').unwrap().1;
    for origin in
        ["https://evil.example", "null", "http://127.0.0.1:1", &format!("http://evil.example:{port}")]
    {
        let evil = silent.with("Accept: text/plain").with(&format!("Origin: {origin}"));
        for (method, path) in [
            ("POST", "/aaep/v1/subscriptions".to_owned()),
            ("POST", "/aaep/v1/replies".to_owned()),
            ("POST", "/login".to_owned()),
            ("POST", "/logout".to_owned()),
            ("GET", format!("/aaep/v1/events?subscription_id={subscription}")),
        ] {
            assert_eq!(evil.send(method, &path, "{}").status, 403, "{origin} {path}");
        }
    }
    for site in ["cross-site", "same-site"] {
        // Were it let in, it would be told 406 and not wait for events.
        let sly = silent.with("Accept: text/plain").with(&format!("Sec-Fetch-Site: {site}"));
        assert_eq!(sly.get(&format!("/aaep/v1/events?subscription_id={subscription}")).status, 403, "{site}");
    }
    own.subscribe("{}");
}

#[test]
fn what_is_no_way_to_sign_in() {
    let folder = tempfile::tempdir().unwrap();
    let ada = token(&file(folder.path()), &["--role", "listener", "--name", "ada"]);
    let bank = token(&file(folder.path()), &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let hub = with_tokens(folder.path());
    let client = hub.client();
    let form = client.with(FORM);
    for (status, answer) in [
        (400, form.post(&format!("/login?token={ada}"), "")),
        (400, form.post("/login", "")),
        (400, form.post("/login", &format!("token={ada}&token={ada}"))),
        (400, form.post("/login", &format!("token={ada}&next=https://evil.example"))),
        (400, client.with(JSON).post("/login", "[]")),
        (400, client.with(JSON).post("/login", r#"{"token":7}"#)),
        (400, client.with(JSON).post("/login", "{")),
        (415, client.post("/login", &json(&ada))),
        (415, client.with("Content-Type: text/plain").post("/login", &json(&ada))),
        (405, client.get("/login")),
        (405, client.get("/logout")),
        (401, form.post("/login", "token=sayso_guess")),
        (403, form.post("/login", &format!("token={bank}"))),
    ] {
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(!answer.head.contains("Set-Cookie"), "{answer:?}");
    }
    // Neither the token nor what looks like a pass is a cookie.
    for cookie in [format!("sayso={ada}"), format!("sayso={}", "A".repeat(119)), "sayso=".to_owned()] {
        assert_eq!(page(&hub, &cookie).0.post("/aaep/v1/subscriptions", "{}").status, 401, "{cookie}");
    }
    // A header that is wrong is not made good by a cookie that is right.
    let cookie = sign_in(&hub, &ada);
    assert_eq!(page(&hub, &cookie).0.bearer("sayso_guess").post("/aaep/v1/subscriptions", "{}").status, 401);
}

#[test]
fn who_guesses_too_often_must_wait() {
    let folder = tempfile::tempdir().unwrap();
    let ada = token(&file(folder.path()), &["--role", "listener", "--name", "ada"]);
    let hub = with_tokens(folder.path());
    let client = hub.client().with(JSON);
    let cookie = sign_in(&hub, &ada);
    for _ in 0..10 {
        assert_eq!(client.post("/login", &json("sayso_guess")).status, 401);
    }
    let refused = client.post("/login", &json(&ada));
    assert_eq!(refused.status, 429, "even the right one says nothing now");
    let after: u64 =
        refused.head.lines().find_map(|line| line.strip_prefix("Retry-After: ")).unwrap().parse().unwrap();
    assert!((1..=60).contains(&after), "{after}");
    page(&hub, &cookie).0.subscribe("{}");
}

#[test]
fn where_everybody_is_let_in_there_is_nothing_to_remember() {
    let hub = Hub::open();
    let answer = hub.client().with(JSON).post("/login", &json("x"));
    assert_eq!((answer.status, answer.head.contains("Set-Cookie")), (204, false));
}
