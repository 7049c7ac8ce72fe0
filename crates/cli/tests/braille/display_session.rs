//! A person reads a session on a display and answers with its keys.

use std::process::Command;

use testing::hub::HubProcess;
use testing::terminal::{AgentSession, ListenProcess};

use crate::virtual_display::VirtualDisplay;

const PENDING: &str = r#"{"status":"pending"}"#;

/// Removes the variables that would choose another tty or server than the test's.
fn without_desktop(command: &mut Command) -> &mut Command {
    for name in [
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "WINDOWPATH",
        "WINDOWID",
        "CONTROLVT",
        "XDG_VTNR",
        "BRLAPI_AUTH",
        "BRLAPI_HOST",
    ] {
        command.env_remove(name);
    }
    command
}

fn listen(hub: &HubProcess, arguments: &[&str]) -> ListenProcess {
    ListenProcess::start_with(&hub.address, arguments, without_desktop)
}

#[test]
#[ignore = "needs brltty: cargo xtask braille"]
fn a_session_is_read_and_answered_with_the_keys_of_the_display() {
    let (hub, mut display) = (HubProcess::start_in_memory(), VirtualDisplay::start(40, "none"));
    let mut person = listen(&hub, &["--braille", &display.address.clone()]);
    person.read_until("Braille display connected: 40 cells.");
    display.wait_for("notice:");
    let agent = AgentSession::start(hub.client());
    person.read_until("session: ");
    agent.write_output("Your balance is 3 euros, and the bill of the month is not paid yet.", true);
    person.read_until("agent: ");
    display.read_until("agent: Your balance is 3 euros, and the");
    display.press("LNDN");
    display.wait_for("bill of the month is not paid yet.");
    display.press("LNUP");
    display.wait_for("agent: Your balance is 3 euros, and the");

    let token = agent.ask_confirmation();
    person.read_until("ask: Yes or no?");
    display.wait_for("ask: local: ");
    let lines = display.read_until("yes no routing key above your answer");
    assert!(lines.iter().all(|line| line.chars().count() <= 40), "{lines:#?}");
    assert!(lines.concat().contains("undone"), "{lines:#?}");

    // Stray keys: the same key twice, panning after the first key, and a key beside the answer.
    display.route("yes");
    display.wait_for("cancel yes no press yes again to send");
    display.press("ROUTE 1");
    display.wait_for("yes no routing key above your answer");
    display.route("yes");
    display.wait_for("cancel yes no press yes again to send");
    display.press("LNUP");
    display.wait_for("yes no routing key above your answer");
    display.route("yes");
    display.wait_for("cancel yes no press yes again to send");
    display.press("ROUTE 30");
    display.wait_for("yes no routing key above your answer");
    assert_eq!(agent.wait_for_reply(&token, 0), PENDING);

    display.route("yes");
    display.wait_for("cancel yes no press yes again to send");
    display.route("yes");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"accept","by":"reply""#));
    person.read_until("answer: Question 1: yes.");
    person.read_until("answer: Accepted.");
    // The display returns to what was being read.
    display.wait_for("agent: Your balance is 3 euros, and the");
    display.read_until("answer: Accepted.");
}

#[test]
#[ignore = "needs brltty: cargo xtask braille"]
fn the_no_chord_rejects_and_names_its_question() {
    let (hub, mut display) = (HubProcess::start_in_memory(), VirtualDisplay::start(20, "none"));
    let mut person = listen(&hub, &["--braille", &display.address.clone()]);
    person.read_until("Braille display connected: 20 cells.");
    let first = AgentSession::start(hub.client());
    let first_token = first.ask_confirmation();
    display.wait_for("ask: local: ");
    let second = AgentSession::start(hub.client());
    let second_token = second.ask_confirmation();
    display.wait_for("ask: Question 2");
    display.read_until("yes no routing key");
    display.route("no");
    display.wait_for("cancel yes no press");
    display.route("no");
    assert!(second.wait_for_reply(&second_token, 30).contains(r#""decision":"reject""#));
    person.read_until("answer: Question 2: no.");
    display.wait_for("ask: local: ");
    assert_eq!(first.wait_for_reply(&first_token, 0), PENDING);
}

#[test]
#[ignore = "needs brltty: cargo xtask braille"]
fn a_missing_or_lost_brltty_is_reported_and_listening_goes_on() {
    let hub = HubProcess::start_in_memory();
    let display = VirtualDisplay::start(40, "none");
    let mut person = listen(&hub, &["--braille", &display.address.clone()]);
    person.read_until("Braille display connected: 40 cells.");
    let agent = AgentSession::start(hub.client());
    let mut display = display.restart(32, || {
        person.read_until("The connection to the braille display was lost");
        agent.write_output("Still here.", true);
        person.read_until("agent: Still here.");
    });
    person.read_until("Braille display connected: 32 cells.");
    display.read_until("agent: Still here.");

    let mut other = listen(&hub, &["--braille", "127.0.0.1:61000"]);
    other.read_until("error: No braille: brltty cannot be reached at 127.0.0.1:61000");
    let token = agent.ask_confirmation();
    other.read_until("ask: Yes or no?");
    other.type_line("no");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"reject""#));
}

#[test]
#[ignore = "needs brltty: cargo xtask braille"]
fn the_key_file_authorizes() {
    let hub = HubProcess::start_in_memory();
    let keys = tempfile::tempdir().unwrap();
    let (key, wrong) = (keys.path().join("key"), keys.path().join("wrong"));
    std::fs::write(&key, "a secret").unwrap();
    std::fs::write(&wrong, "another").unwrap();
    let display = VirtualDisplay::start(40, &format!("keyfile:{}", key.display()));
    let start = |file: &std::path::Path| {
        ListenProcess::start_with(&hub.address, &["--braille", &display.address], |command| {
            without_desktop(command).env("BRLAPI_AUTH", format!("keyfile:{}", file.display()))
        })
    };
    let mut refused = start(&wrong);
    refused.read_until("error: No braille: brltty refuses the connection.");
    let mut accepted = start(&key);
    accepted.read_until("Braille display connected: 40 cells.");
}

#[test]
#[ignore = "needs brltty and liblouis: cargo xtask braille"]
fn a_table_contracts_the_text_and_the_answers_keep_their_keys() {
    let (hub, mut display) = (HubProcess::start_in_memory(), VirtualDisplay::start(40, "none"));
    let mut person =
        listen(&hub, &["--braille", &display.address.clone(), "--braille-table", "en-ueb-g2.ctb"]);
    person.read_until("Braille display connected: 40 cells.");
    let agent = AgentSession::start(hub.client());
    agent.write_output("You receive the knowledge.", true);
    person.read_until("agent: You receive the knowledge.");
    // "the" and "knowledge" are one cell each.
    display.read_until("⠮ ⠅⠲");
    let token = agent.ask_confirmation();
    // "ask: local: Send 5 euros": the number 5 has its sign, and "Send" is contracted.
    display.wait_for("⠁⠎⠅⠒ ⠇⠕⠉⠁⠇⠒ ⠠⠎⠢⠙ ⠼⠑");
    display.read_until("⠽⠑⠎ ⠝⠕");
    display.route("⠽⠑⠎");
    display.wait_for("⠉⠨⠑⠇ ⠽⠑⠎ ⠝⠕");
    display.route("⠽⠑⠎");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"accept""#));

    let mut other = listen(&hub, &["--braille", &display.address.clone(), "--braille-table", "none.ctb"]);
    other.read_until("error: Braille is uncontracted, because liblouis cannot use the table none.ctb");
}

#[test]
#[ignore = "needs brltty: cargo xtask braille"]
fn letters_keep_their_marks_on_the_display() {
    let (hub, mut display) = (HubProcess::start_in_memory(), VirtualDisplay::start(12, "none"));
    let mut person = listen(&hub, &["--braille", &display.address.clone()]);
    person.read_until("Braille display connected: 12 cells.");
    let agent = AgentSession::start(hub.client());
    // Decomposed letters. The long word must be divided, but not between a letter and its mark.
    agent.write_output("Cafe\u{301} Gbo\u{323}\u{301}gbo\u{323}\u{301}e\u{323}\u{301}bo\u{323}\u{301} ati o\u{323}re\u{323}.", true);
    let lines = display.read_until("ọrẹ.");
    assert!(lines.iter().any(|line| line.contains("Café")), "{lines:#?}");
    assert!(lines.iter().all(|line| !line.starts_with('\u{301}')), "{lines:#?}");
    assert!(lines.concat().contains("Gbọ\u{301}gbọ\u{301}ẹ\u{301}bọ\u{301}"), "{lines:#?}");
}
