//! With a hub that wants to know who listens.

use std::process::Command;

use crate::answering::asked;
use crate::listening::{connected, hears, tab_to, visit};
use crate::state::{check, check_kept_out};
use testing::chromium::Browser;
use testing::hub::Hub;

fn token(file: &str, rest: &[&str]) -> String {
    let command = ["token", "new", "--tokens", file];
    let made = Command::new(env!("CARGO_BIN_EXE_sayso")).args(command).args(rest).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn a_person_signs_in_listens_answers_and_signs_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let hers = token(&file, &["--role", "listener", "--name", "ada"]);
    let bank = token(&file, &["--role", "agent", "--name", "bank", "--agent-id", "bank"]);
    let hub = Hub::start(&["--memory", "--tokens", &file, "--listen", "127.0.0.1:0"]);
    let mut browser = Browser::start();
    let mut page = visit(&hub.address, browser.page());
    page.wait("!document.getElementById('sign-in').hidden");
    assert!(page.focused().starts_with("heading \"Sign in\""), "{}", page.focused());
    check_kept_out(&mut page, "sign-in");

    tab_to(&mut page, "textbox \"Token\"");
    page.write("sayso_guess");
    page.press("Enter");
    page.wait("document.getElementById('sign-in-error').textContent != ''");
    assert!(page.focused().starts_with("textbox \"Token\""), "{}", page.focused());
    check_kept_out(&mut page, "sign-in-refused");

    page.press("Control+a");
    page.write(&hers);
    page.press("Enter");
    connected(&mut page);
    let kept = page.evaluate(
        "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.cookie])",
    );
    assert!(
        !kept.as_str().unwrap().contains(&hers),
        "the token is kept nowhere that scripts can read: {kept}"
    );
    assert!(page.complaints().iter().all(|one| one.about == "network"));
    check(&mut page, "signed-in");

    let bank = hub.client().bearer(&bank);
    let session = bank.start();
    let asked_for = bank.ask(&session);
    asked(&mut page);
    tab_to(&mut page, "button \"Yes, accept it\"");
    page.press("Enter");
    hears(&mut page, "You accepted this:");
    let answer = bank.get(&format!("/agent/v1/sessions/{session}/replies/{asked_for}?wait=30"));
    assert_eq!((answer.text("decision"), answer.text("by")), ("accept".to_owned(), "reply".to_owned()));

    // The cookie is enough when the page is opened again, and a stranger's browser has none.
    page.reload();
    connected(&mut page);
    let mut stranger = visit(&hub.address, browser.stranger());
    stranger.wait("!document.getElementById('sign-in').hidden");
    page.run("document.getElementById('quiet').focus()");
    tab_to(&mut page, "button \"Sign out\"");
    page.press("Enter");
    page.wait("document.getElementById('sign-in').hidden === false && document.readyState == 'complete'");
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn who_may_only_listen_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens").to_str().unwrap().to_owned();
    let eve = token(&file, &["--role", "observer", "--name", "eve"]);
    let hub = Hub::start(&["--memory", "--tokens", &file, "--listen", "127.0.0.1:0"]);
    let mut browser = Browser::start();
    let mut page = visit(&hub.address, browser.page());
    page.wait("!document.getElementById('sign-in').hidden");
    tab_to(&mut page, "textbox \"Token\"");
    page.write(&eve);
    page.press("Enter");
    connected(&mut page);
    hears(&mut page, "You can listen here, but not answer");
}
