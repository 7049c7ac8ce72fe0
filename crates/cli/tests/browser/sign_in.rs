//! Signing in to a hub that needs a token.

use std::process::Command;

use crate::answering::wait_for_question;
use crate::listening_page::{
    open_page_at, open_settings, tab_to, wait_for_announcement, wait_until_connected,
};
use crate::page_state_checks::{check_state, check_state_with_network_errors};
use testing::chromium::Browser;
use testing::hub::HubProcess;

fn create_token(file: &str, options: &[&str]) -> String {
    let command = ["token", "new", "--tokens", file];
    let output = Command::new(env!("CARGO_BIN_EXE_sayso")).args(command).args(options).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_person_signs_in_listens_answers_and_signs_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let listener_token = create_token(&file, &["--role", "listener", "--name", "ada"]);
    let bank = create_token(&file, &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let hub = HubProcess::start(&["--memory", "--tokens", &file, "--listen", "127.0.0.1:0"]);
    let mut browser = Browser::start();
    let mut page = open_page_at(&hub.address, browser.open_page());
    page.wait_until("!document.getElementById('sign-in').hidden");
    assert!(page.focused_node().starts_with("heading \"Sign in\""), "{}", page.focused_node());
    check_state_with_network_errors(&mut page, "sign-in");

    tab_to(&mut page, "textbox \"Token\"");
    page.type_text("sayso_guess");
    page.press("Enter");
    page.wait_until("document.getElementById('sign-in-error').textContent != ''");
    assert!(page.focused_node().starts_with("textbox \"Token\""), "{}", page.focused_node());
    check_state_with_network_errors(&mut page, "sign-in-refused");

    page.press("Control+a");
    page.type_text(&listener_token);
    page.press("Enter");
    wait_until_connected(&mut page);
    let readable = page.evaluate(
        "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.cookie])",
    );
    assert!(!readable.as_str().unwrap().contains(&listener_token), "scripts can read the token: {readable}");
    assert!(page.take_errors().iter().all(|error| error.source == "network"));
    check_state(&mut page, "signed-in");

    let bank = hub.client().with_bearer(&bank);
    let session = bank.start_session();
    let reply_token = bank.ask_confirmation(&session);
    wait_for_question(&mut page);
    tab_to(&mut page, "button \"Yes, accept it\"");
    page.press("Enter");
    wait_for_announcement(&mut page, "Accepted.");
    let response = bank.get(&format!("/agent/v1/sessions/{session}/replies/{reply_token}?wait=30"));
    assert_eq!(
        (response.json_str("decision"), response.json_str("by")),
        ("accept".to_owned(), "reply".to_owned())
    );

    // After a reload the cookie is enough. An isolated page has no cookie.
    page.reload();
    wait_until_connected(&mut page);
    let mut isolated = open_page_at(&hub.address, browser.open_isolated_page());
    isolated.wait_until("!document.getElementById('sign-in').hidden");
    open_settings(&mut page);
    tab_to(&mut page, "button \"Sign out\"");
    page.press("Enter");
    page.wait_until(
        "document.getElementById('sign-in').hidden === false && document.readyState == 'complete'",
    );
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn an_observer_is_told_that_it_cannot_answer() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let observer_token = create_token(&file, &["--role", "observer", "--name", "eve"]);
    let hub = HubProcess::start(&["--memory", "--tokens", &file, "--listen", "127.0.0.1:0"]);
    let mut browser = Browser::start();
    let mut page = open_page_at(&hub.address, browser.open_page());
    page.wait_until("!document.getElementById('sign-in').hidden");
    tab_to(&mut page, "textbox \"Token\"");
    page.type_text(&observer_token);
    page.press("Enter");
    wait_until_connected(&mut page);
    wait_for_announcement(&mut page, "You can listen here, but not answer");
}
