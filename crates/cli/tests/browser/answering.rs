//! By keyboard alone, through whole sessions: a request, a question, an answer, and what came of it.

use serde_json::json;

use crate::listening::{hears, listening, said, tab_to};
use crate::state::check;
use testing::chromium::{Browser, Page};
use testing::http::Client;
use testing::hub::Hub;

pub(crate) const DIALOG: &str = "document.querySelector('[role=dialog]')";
const WISH: &str = "textbox \"What should the demonstration assistant do?\"";

fn demo() -> Hub {
    // So long that nobody is reminded of the time, however slow the machine.
    Hub::limited(&["--demo-agent", "--demo-time", "1h"])
}

/// Asks the assistant, by keyboard.
fn wish(page: &mut Page, text: &str) {
    tab_to(page, WISH);
    page.write(text);
    page.press("Enter");
}

/// Waits for a question to be shown, and sees that nothing can be answered by chance.
pub(crate) fn asked(page: &mut Page) {
    page.wait(&format!("{DIALOG} != null"));
    assert!(page.focused().starts_with("dialog "), "on the text, not on a button: {}", page.focused());
    page.press("Enter");
    page.press("Space");
    page.press("a");
    page.press("y");
    assert_eq!(page.evaluate(&format!("{DIALOG} != null")), true);
    assert!(page.focused().starts_with("dialog "), "{}", page.focused());
}

fn gone(page: &mut Page) {
    page.wait(&format!("{DIALOG} == null"));
}

/// What the hub decided, and by whom.
fn decided(client: &Client, session: &str, token: &str) -> (String, String) {
    let answer = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=30"));
    (answer.text("decision"), answer.text("by"))
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn a_whole_session_with_a_confirmation() {
    let (hub, mut browser) = (demo(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    check(&mut page, "idle");
    wish(&mut page, "Transfer 250 euros to Ben");
    asked(&mut page);
    check(&mut page, "confirmation");
    tab_to(&mut page, "button \"Yes, accept it\"");
    page.press("Enter");
    hears(&mut page, "Done:");
    assert!(page.focused().starts_with(WISH), "back where the person was: {}", page.focused());
    let wanted = [
        "Demonstration assistant started: Preparing a transfer in the demonstration.",
        "You accepted this: Transfer 250 euros from the demonstration account to Ben.",
        "Tool: Transferring 250 euros to Ben.",
        "Tool: The transfer is done.",
        "In the demonstration 250 euros went to Ben; no real money moved.",
        "Done: That was all.",
    ];
    assert_eq!(said(&mut page), wanted, "each once and in order");
    check(&mut page, "accepted");
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn a_no_keeps_it_from_happening() {
    let (hub, mut browser) = (demo(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    wish(&mut page, "Delete the record");
    asked(&mut page);
    tab_to(&mut page, "button \"No, reject it\"");
    page.press("Space");
    hears(&mut page, "Done:");
    let said = said(&mut page);
    assert!(said.iter().any(|one| one.starts_with("You rejected this:")), "{said:?}");
    assert!(!said.iter().any(|one| one.starts_with("Tool:")), "{said:?}");
    check(&mut page, "rejected");
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn a_clarification_in_ones_own_words() {
    let (hub, mut browser) = (demo(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    wish(&mut page, "How is the weather?");
    asked(&mut page);
    check(&mut page, "clarification");
    tab_to(&mut page, "button \"Send the answer\"");
    page.press("Enter");
    hears(&mut page, "There is no answer yet.");
    assert!(
        page.focused().starts_with("radio \"Lagos\""),
        "where an answer can be given: {}",
        page.focused()
    );
    check(&mut page, "clarification-empty");
    tab_to(&mut page, "textbox \"Or in your own words\"");
    page.write("In Ibadan, \u{1ecc}\u{300}y\u{1ecd}\u{301} State");
    page.press("Enter");
    hears(&mut page, "You answered this:");
    hears(&mut page, "Done:");
    gone(&mut page);
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn choices_numbers_and_yes_or_no() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    let client = hub.client();
    let session = client.start();
    let ask = |question: serde_json::Value| {
        let mut body = json!({ "timeout_seconds": 600, "summary_normal": "A question." });
        body.as_object_mut().unwrap().extend(question.as_object().unwrap().clone());
        let answer = client.post(&format!("/agent/v1/sessions/{session}/clarifications"), &body.to_string());
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.text("reply_token")
    };
    let response = |token: &str| {
        let answer = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=30"));
        serde_json::from_str::<serde_json::Value>(&answer.body).unwrap()["response"].clone()
    };

    let choices = json!([{ "value": "ben", "label": "Ben Ojo" }, { "value": "bea", "label": "Bea Ortiz" }]);
    let token = ask(
        json!({ "question": "Which one?", "accepted_response_kinds": ["multiple_choice"], "choices": choices }),
    );
    asked(&mut page);
    check(&mut page, "choices");
    tab_to(&mut page, "radio \"Ben Ojo\"");
    page.press("ArrowDown");
    assert!(page.focused().starts_with("radio \"Bea Ortiz\""), "{}", page.focused());
    page.press("Enter");
    assert_eq!(response(&token), "bea");
    gone(&mut page);

    let token = ask(json!({ "question": "How many?", "accepted_response_kinds": ["numeric"] }));
    asked(&mut page);
    tab_to(&mut page, "textbox \"Your answer, a number\"");
    page.write("many");
    page.press("Enter");
    hears(&mut page, "This is not a number.");
    page.press("Control+a");
    page.write("2,5");
    page.press("Enter");
    assert_eq!(response(&token), 2.5);
    gone(&mut page);

    let token = ask(json!({ "question": "Is it Tuesday?", "accepted_response_kinds": ["yes_no"] }));
    asked(&mut page);
    tab_to(&mut page, "button \"Yes\"");
    page.press("Enter");
    assert_eq!(response(&token), true);
    gone(&mut page);
    assert!(page.complaints().is_empty());
}

/// Several are open at once, answered in another order than they came; each answer goes to its own question.
#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn several_questions_at_once_in_any_order() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    let client = hub.client();
    let names = ["Ada", "Ben", "Chi"];
    let sessions = names.map(|_| client.start());
    let tokens: Vec<_> = names
        .iter()
        .zip(&sessions)
        .map(|(name, session)| {
            let question = json!({
                "action": format!("Write to {name}."), "consequence": "It cannot be called back.", "risk_level": "medium",
                "irreversible": true, "timeout_seconds": 600, "default_decision": "reject", "summary_normal": "May I?",
            });
            let path = format!("/agent/v1/sessions/{session}/confirmations");
            client.post(&path, &question.to_string()).text("reply_token")
        })
        .collect();
    asked(&mut page);
    page.press("Escape");
    hears(&mut page, "The question stays open.");
    // The next one comes by itself; it is left for later, too.
    for _ in 1..names.len() {
        asked(&mut page);
        page.press("Escape");
    }
    gone(&mut page);
    page.wait("document.querySelectorAll('#question-list li').length == 3");
    check(&mut page, "several");
    for (name, button, index) in
        [("Chi", "No, reject it", 2), ("Ada", "Yes, accept it", 0), ("Ben", "No, reject it", 1)]
    {
        page.run("document.getElementById('questions-title').focus()");
        tab_to(&mut page, &format!("button \"Answer local: Write to {name}.\""));
        page.press("Enter");
        asked(&mut page);
        page.wait(&format!("{DIALOG}.innerText.includes('Write to {name}.')"));
        tab_to(&mut page, &format!("button \"{button}\""));
        page.press("Enter");
        let wanted = if button.starts_with("Yes") { "accept" } else { "reject" };
        let decided = decided(&client, &sessions[index], &tokens[index]);
        assert_eq!(decided, (wanted.to_owned(), "reply".to_owned()), "{name}");
        gone(&mut page);
    }
    page.shows("No question is open.");
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn more_time_and_a_stop() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    let client = hub.client();
    let session = client.start();
    let mut other = listening(&hub, &mut browser);
    let token = client.ask(&session);
    asked(&mut page);
    asked(&mut other);
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    tab_to(&mut page, "button \"More time\"");
    page.press("Enter");
    hears(&mut page, "You have more time. About 4 minutes are left.");
    let inside =
        format!("[...{DIALOG}.querySelectorAll('[aria-live]')].map((one) => one.innerText).join('')");
    assert_eq!(
        page.evaluate(&inside),
        "You have more time. About 4 minutes are left.",
        "outside of a dialog many screen readers hear nothing"
    );
    // Others have it too, and are told so.
    hears(&mut other, "There is more time. About 4 minutes are left to answer: Send 5 euro to Ben.");
    other.wait(&format!("{DIALOG}.innerText.includes('About 4 minutes are left.')"));
    assert_eq!(
        said(&mut page).iter().filter(|one| one.contains("more time")).count(),
        1,
        "and who asked once"
    );
    assert!(page.focused().starts_with("button \"More time\""), "{}", page.focused());
    tab_to(&mut page, "button \"Stop the agent\"");
    page.press("Enter");
    hears(&mut page, "Stopped by a person:");
    assert_eq!(client.get(&path).text("decision"), "reject");
    check(&mut page, "stopped");
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn a_key_that_is_held_down_answers_nothing() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    let client = hub.client();
    let session = client.start();
    let token = client.ask(&session);
    asked(&mut page);
    tab_to(&mut page, "button \"Yes, accept it\"");
    page.hold("Enter");
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    assert_eq!(
        page.evaluate(&format!("{DIALOG} != null && document.querySelector('.sent').innerText == ''")),
        true
    );
    assert_eq!(client.get(&path).text("status"), "pending");
    page.press("Enter");
    assert_eq!(decided(&client, &session, &token), ("accept".to_owned(), "reply".to_owned()));
}

/// An answer that does not reach the hub is none: that is said, the question stays, and who else answers it is heard.
#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn an_answer_that_cannot_be_sent_is_told_and_is_none() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    let client = hub.client();
    let session = client.start();
    let other = client.subscribe(testing::messages::CAN_REPLY);
    let _ear = client.listen(&other, None);
    let token = client.ask(&session);
    asked(&mut page);
    page.run("window.fetch = () => Promise.reject(new TypeError('nobody is there'))");
    tab_to(&mut page, "button \"Yes, accept it\"");
    page.press("Enter");
    hears(&mut page, "The answer could not be sent. The hub cannot be reached. The question is still open.");
    assert!(page.focused().starts_with("button \"Yes, accept it\""), "{}", page.focused());
    client.reply(&other, &token, "reject");
    page.wait(&format!("{DIALOG}?.innerText.includes('Somebody else rejected this:') === true"));
    assert_eq!(decided(&client, &session, &token), ("reject".to_owned(), "reply".to_owned()));
}

/// The time that is left is said once, at half: at a tenth there would be too little to say so. Without an answer it is a no.
#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn time_is_told_once_of_a_short_question_and_silence_means_no() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    let client = hub.client();
    let session = client.start();
    let question = testing::messages::QUESTION.replace("134", "40");
    let token =
        client.post(&format!("/agent/v1/sessions/{session}/confirmations"), &question).text("reply_token");
    asked(&mut page);
    page.wait(&format!(
        "{DIALOG}?.innerText.includes('Nobody answered in time, so this was rejected:') === true"
    ));
    check(&mut page, "ran-out");
    assert_eq!(decided(&client, &session, &token), ("reject".to_owned(), "timeout".to_owned()));
    let told: Vec<_> = said(&mut page).into_iter().filter(|one| one.contains("left")).collect();
    assert_eq!(told, ["20 seconds are left to answer. Send 5 euro to Ben."]);
}
