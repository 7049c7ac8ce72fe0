//! Browser sign-in: the person enters the token once, and the browser then uses a cookie.

use std::path::Path;

use testing::cli::create_token;
use testing::http::{TestClient, TestResponse};
use testing::hub::HubProcess;
use testing::messages::REPLY_CAPABILITIES;

const FORM: &str = "Content-Type: application/x-www-form-urlencoded";
const JSON: &str = "Content-Type: application/json";

fn login_body(token: &str) -> String {
    format!(r#"{{"token":"{token}"}}"#)
}

/// Returns the cookie that a browser would send after this response.
fn cookie_of(response: &TestResponse) -> String {
    let line = response.head.lines().find_map(|line| line.strip_prefix("Set-Cookie: "));
    line.unwrap_or_else(|| panic!("{response:?}")).split(';').next().unwrap().to_owned()
}

pub(crate) fn sign_in(hub: &HubProcess, token: &str) -> String {
    let response = hub.client().with_header(JSON).post("/login", &login_body(token));
    assert_eq!(response.status, 204, "{response:?}");
    cookie_of(&response)
}

/// Returns a client that acts as a page of the hub, and the same browser without an Origin header.
fn page_clients(hub: &HubProcess, cookie: &str) -> (TestClient, TestClient) {
    let without_origin = hub.client().with_header(&format!("Cookie: other=1; {cookie}"));
    (without_origin.with_header(&format!("Origin: http://{}", hub.address)), without_origin)
}

fn start_hub(folder: &Path) -> HubProcess {
    let (data, tokens) = (folder.join("data"), folder.join("tokens"));
    let [data, tokens] = [&data, &tokens].map(|path| path.to_str().unwrap());
    HubProcess::start(&["--listen", "127.0.0.1:0", "--data", data, "--tokens", tokens])
}

fn token_file(folder: &Path) -> String {
    folder.join("tokens").to_str().unwrap().to_owned()
}

#[test]
fn a_person_can_sign_in_listen_and_reply() {
    let folder = tempfile::tempdir().unwrap();
    let ada = create_token(&token_file(folder.path()), &["--role", "listener", "--name", "ada"]);
    let bank = create_token(
        &token_file(folder.path()),
        &["--role", "agent", "--name", "bank", "--agent-id", "bank"],
    );
    let hub = start_hub(folder.path());
    let response = hub.client().with_header(FORM).post("/login", &format!("token={ada}"));
    assert_eq!(response.status, 303, "{response:?}");
    assert!(response.head.contains("Location: /\r\n"), "{}", response.head);
    let set_cookie = response.head.lines().find(|line| line.starts_with("Set-Cookie: sayso=")).unwrap();
    assert!(set_cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000"), "{set_cookie}");
    assert!(
        !response.head.contains(&ada) && !response.body.contains(&ada),
        "the response must not contain the token"
    );

    let cookie = cookie_of(&response);
    let (page, without_origin) = page_clients(&hub, &cookie);
    let subscription = page.subscribe(REPLY_CAPABILITIES);
    // EventSource sends no Origin to its own origin.
    let mut stream =
        without_origin.with_header("Sec-Fetch-Site: same-origin").open_event_stream(&subscription, None);
    let bank = hub.client().with_bearer(&bank);
    let session = bank.start_session();
    assert_eq!(stream.next_type(), "session.started");
    let token = bank.ask_confirmation(&session);
    assert_eq!(
        without_origin.reply(&subscription, &token, "accept").status,
        403,
        "the request does not come from the hub's page"
    );
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    assert_eq!(bank.get(&path).json_str("status"), "pending");
    assert_eq!(page.reply(&subscription, &token, "accept").status, 204);
    assert_eq!(bank.get(&path).json_str("decision"), "accept");
}

#[test]
fn a_restart_keeps_sign_ins_but_removing_a_token_ends_them() {
    let folder = tempfile::tempdir().unwrap();
    let ada = create_token(&token_file(folder.path()), &["--role", "listener", "--name", "ada"]);
    let ben = create_token(&token_file(folder.path()), &["--role", "listener", "--name", "ben"]);
    let mut hub = start_hub(folder.path());
    let (ada_cookie, ben_cookie) = (sign_in(&hub, &ada), sign_in(&hub, &ben));
    let subscription = page_clients(&hub, &ada_cookie).0.subscribe("{}");
    hub.kill();
    let mut hub = start_hub(folder.path());
    drop(page_clients(&hub, &ada_cookie).1.open_event_stream(&subscription, None));
    hub.kill();

    let tokens = std::fs::read_to_string(token_file(folder.path())).unwrap();
    let remaining_lines: Vec<_> = tokens.lines().filter(|line| !line.contains(r#""name":"ada""#)).collect();
    std::fs::write(token_file(folder.path()), remaining_lines.join("\n") + "\n").unwrap();
    // A new token with the same name does not restore the sign-in.
    create_token(&token_file(folder.path()), &["--role", "admin", "--name", "ada"]);
    let mut hub = start_hub(folder.path());
    assert_eq!(page_clients(&hub, &ada_cookie).0.post("/aaep/v1/subscriptions", "{}").status, 401);
    page_clients(&hub, &ben_cookie).0.subscribe("{}");
    hub.kill();

    std::fs::remove_file(folder.path().join("data/sign-in.key")).unwrap();
    let hub = start_hub(folder.path());
    assert_eq!(
        page_clients(&hub, &ben_cookie).0.post("/aaep/v1/subscriptions", "{}").status,
        401,
        "the sign-in key has changed"
    );
}

#[test]
fn signing_out_invalidates_every_copy_of_the_cookie() {
    let folder = tempfile::tempdir().unwrap();
    let ada = create_token(&token_file(folder.path()), &["--role", "listener", "--name", "ada"]);
    let mut hub = start_hub(folder.path());
    let (cookie, other_cookie) = (sign_in(&hub, &ada), sign_in(&hub, &ada));
    let (own_page, without_origin) = page_clients(&hub, &cookie);
    assert_eq!(without_origin.post("/logout", "").status, 403);
    own_page.subscribe("{}");
    let signed_out = own_page.post("/logout", "");
    assert_eq!((signed_out.status, cookie_of(&signed_out).as_str()), (204, "sayso="));
    assert!(signed_out.head.contains("Max-Age=0"), "{}", signed_out.head);
    assert_eq!(own_page.post("/aaep/v1/subscriptions", "{}").status, 401);
    page_clients(&hub, &other_cookie).0.subscribe("{}");
    hub.kill();
    let hub = start_hub(folder.path());
    assert_eq!(
        page_clients(&hub, &cookie).0.post("/aaep/v1/subscriptions", "{}").status,
        401,
        "still signed out after a restart"
    );
    page_clients(&hub, &other_cookie).0.subscribe("{}");
    assert_eq!(hub.client().post("/logout", "").status, 204, "signing out works without being signed in");
}

#[test]
fn pages_of_other_origins_cannot_use_the_cookie() {
    let folder = tempfile::tempdir().unwrap();
    let ada = create_token(&token_file(folder.path()), &["--role", "listener", "--name", "ada"]);
    let hub = start_hub(folder.path());
    let cookie = sign_in(&hub, &ada);
    let (own_page, without_origin) = page_clients(&hub, &cookie);
    let subscription = own_page.subscribe("{}");
    let port = hub.address.rsplit_once(':').unwrap().1;
    for origin in
        ["https://evil.example", "null", "http://127.0.0.1:1", &format!("http://evil.example:{port}")]
    {
        let foreign =
            without_origin.with_header("Accept: text/plain").with_header(&format!("Origin: {origin}"));
        for (method, path) in [
            ("POST", "/aaep/v1/subscriptions".to_owned()),
            ("POST", "/aaep/v1/replies".to_owned()),
            ("POST", "/login".to_owned()),
            ("POST", "/logout".to_owned()),
            ("GET", format!("/aaep/v1/events?subscription_id={subscription}")),
        ] {
            assert_eq!(foreign.send(method, &path, "{}").status, 403, "{origin} {path}");
        }
    }
    for site in ["cross-site", "same-site"] {
        // With this Accept header, a hub that wrongly accepts the request responds with 406 and not with an endless stream.
        let cross_site =
            without_origin.with_header("Accept: text/plain").with_header(&format!("Sec-Fetch-Site: {site}"));
        assert_eq!(
            cross_site.get(&format!("/aaep/v1/events?subscription_id={subscription}")).status,
            403,
            "{site}"
        );
    }
    own_page.subscribe("{}");
}

#[test]
fn invalid_sign_ins_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ada = create_token(&token_file(folder.path()), &["--role", "listener", "--name", "ada"]);
    let bank = create_token(
        &token_file(folder.path()),
        &["--role", "agent", "--name", "bank", "--agent-id", "bank"],
    );
    let hub = start_hub(folder.path());
    let client = hub.client();
    let form = client.with_header(FORM);
    for (status, response) in [
        (400, form.post(&format!("/login?token={ada}"), "")),
        (400, form.post("/login", "")),
        (400, form.post("/login", &format!("token={ada}&token={ada}"))),
        (400, form.post("/login", &format!("token={ada}&next=https://evil.example"))),
        (400, client.with_header(JSON).post("/login", "[]")),
        (400, client.with_header(JSON).post("/login", r#"{"token":7}"#)),
        (400, client.with_header(JSON).post("/login", "{")),
        (415, client.post("/login", &login_body(&ada))),
        (415, client.with_header("Content-Type: text/plain").post("/login", &login_body(&ada))),
        (405, client.get("/login")),
        (405, client.get("/logout")),
        (401, form.post("/login", "token=sayso_guess")),
        (403, form.post("/login", &format!("token={bank}"))),
    ] {
        assert_eq!(response.status, status, "{response:?}");
        assert!(!response.head.contains("Set-Cookie"), "{response:?}");
    }
    // Neither the token nor a forged value is a valid cookie.
    for cookie in [format!("sayso={ada}"), format!("sayso={}", "A".repeat(119)), "sayso=".to_owned()] {
        assert_eq!(
            page_clients(&hub, &cookie).0.post("/aaep/v1/subscriptions", "{}").status,
            401,
            "{cookie}"
        );
    }
    // A valid cookie does not make up for an invalid Authorization header.
    let cookie = sign_in(&hub, &ada);
    assert_eq!(
        page_clients(&hub, &cookie).0.with_bearer("sayso_guess").post("/aaep/v1/subscriptions", "{}").status,
        401
    );
}

#[test]
fn repeated_wrong_tokens_are_rate_limited() {
    let folder = tempfile::tempdir().unwrap();
    let ada = create_token(&token_file(folder.path()), &["--role", "listener", "--name", "ada"]);
    let hub = start_hub(folder.path());
    let client = hub.client().with_header(JSON);
    let cookie = sign_in(&hub, &ada);
    for _ in 0..10 {
        assert_eq!(client.post("/login", &login_body("sayso_guess")).status, 401);
    }
    let refused = client.post("/login", &login_body(&ada));
    assert_eq!(refused.status, 429, "even the right token is refused now");
    let retry_after_seconds: u64 =
        refused.head.lines().find_map(|line| line.strip_prefix("Retry-After: ")).unwrap().parse().unwrap();
    assert!((1..=60).contains(&retry_after_seconds), "{retry_after_seconds}");
    page_clients(&hub, &cookie).0.subscribe("{}");
}

#[test]
fn an_open_hub_sets_no_cookie() {
    let hub = HubProcess::start_in_memory();
    let response = hub.client().with_header(JSON).post("/login", &login_body("x"));
    assert_eq!((response.status, response.head.contains("Set-Cookie")), (204, false));
}
