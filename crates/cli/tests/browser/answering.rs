//! Complete sessions with the keyboard only: a request, a question, an answer and its result.

use serde_json::json;

use crate::listening_page::{announcements, open_listening_page, open_log, tab_to, wait_for_announcement};
use crate::page_state_checks::check_state;
use testing::chromium::{Browser, Page};
use testing::http::TestClient;
use testing::hub::HubProcess;

pub(crate) const DIALOG: &str = "document.querySelector('[role=dialog]')";
const REQUEST_FIELD: &str = "textbox \"What should the demo assistant do?\"";

fn start_demo_hub() -> HubProcess {
    // A long timeout avoids time reminders, even on a slow machine.
    HubProcess::start_in_memory_with(&["--demo-agent", "--demo-answer-timeout", "1h"])
}

/// Sends a request to the demo assistant by keyboard.
fn request_demo(page: &mut Page, text: &str) {
    tab_to(page, REQUEST_FIELD);
    page.type_text(text);
    page.press("Enter");
}

/// Waits for a question dialog and checks that stray keys do not answer it. Afterwards, an answer counts.
pub(crate) fn wait_for_question(page: &mut Page) {
    page.wait_until(&format!("{DIALOG} != null"));
    assert!(
        page.focused_node().starts_with("dialog "),
        "the focus must be on the text, not on a button: {}",
        page.focused_node()
    );
    page.press("Enter");
    page.press("Space");
    page.press("a");
    page.press("y");
    assert_eq!(page.evaluate(&format!("{DIALOG} != null")), true);
    assert!(page.focused_node().starts_with("dialog "), "{}", page.focused_node());
    pass_answer_grace(page);
}

/// Advances the page's clock, so that an answer to the open question counts.
pub(crate) fn pass_answer_grace(page: &mut Page) {
    page.run_script(
        "{ const original = performance.now.bind(performance); performance.now = () => original() + 1000; }",
    );
}

fn wait_until_closed(page: &mut Page) {
    page.wait_until(&format!("{DIALOG} == null"));
}

/// Returns the hub's decision and its origin (`by`).
fn read_decision(client: &TestClient, session: &str, token: &str) -> (String, String) {
    let response = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=30"));
    (response.json_str("decision"), response.json_str("by"))
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_confirmation_can_be_accepted_by_keyboard() {
    let (hub, mut browser) = (start_demo_hub(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    check_state(&mut page, "idle");
    request_demo(&mut page, "Transfer 250 euros to Ben");
    wait_for_question(&mut page);
    check_state(&mut page, "confirmation");
    tab_to(&mut page, "button \"Yes, accept it\"");
    page.press("Enter");
    wait_for_announcement(&mut page, "Demo assistant has finished.");
    assert!(
        page.focused_node().starts_with(REQUEST_FIELD),
        "the focus must return to its previous position: {}",
        page.focused_node()
    );
    let expected = [
        "Demo assistant has started: Preparing a demo transfer.",
        "Accepted.",
        "In the demo, 250 euros went to Ben; no real money moved.",
    ];
    let announced = announcements(&mut page);
    assert!(announced.last().unwrap().starts_with("Demo assistant has finished."), "{announced:?}");
    assert_eq!(
        announced[..announced.len() - 1],
        expected,
        "each announcement must occur once and in order, without the steps that the answer has overtaken"
    );
    page.wait_until("document.querySelector('.steps summary')?.textContent == '8 steps'");
    page.run_script("document.querySelector('.steps').open = true");
    open_log(&mut page);
    page.wait_until("document.querySelectorAll('.steps li').length == 8");
    check_state(&mut page, "accepted");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn an_answer_to_a_question_that_has_just_appeared_is_not_sent() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    // The page's clock stands still.
    page.run_script("performance.now = () => 0");
    let client = hub.client();
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    page.wait_until(&format!("{DIALOG} != null"));
    tab_to(&mut page, "button \"Yes, accept it\"");
    page.press("Enter");
    wait_for_announcement(&mut page, "This question has only just appeared, so nothing was sent.");
    let pending = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=0"));
    assert_eq!(pending.body, r#"{"status":"pending"}"#);
    pass_answer_grace(&mut page);
    page.press("Enter");
    assert_eq!(read_decision(&client, &session, &token).0, "accept");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_rejected_action_is_not_performed() {
    let (hub, mut browser) = (start_demo_hub(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    request_demo(&mut page, "Delete the record");
    wait_for_question(&mut page);
    tab_to(&mut page, "button \"No, reject it\"");
    page.press("Space");
    wait_for_announcement(&mut page, "Demo assistant has finished.");
    let announced = announcements(&mut page);
    assert!(announced.iter().any(|text| text == "Rejected."), "{announced:?}");
    assert!(!announced.iter().any(|text| text.starts_with("Tool:")), "{announced:?}");
    check_state(&mut page, "rejected");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_clarification_can_be_answered_in_free_text() {
    let (hub, mut browser) = (start_demo_hub(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    request_demo(&mut page, "How is the weather?");
    wait_for_question(&mut page);
    check_state(&mut page, "clarification");
    tab_to(&mut page, "button \"Send the answer\"");
    page.press("Enter");
    wait_for_announcement(&mut page, "Give an answer first.");
    assert!(
        page.focused_node().starts_with("radio \"Lagos\""),
        "the focus must be on an answer: {}",
        page.focused_node()
    );
    check_state(&mut page, "clarification-empty");
    tab_to(&mut page, "textbox \"Or in your own words\"");
    page.type_text("In Ibadan, \u{1ecc}\u{300}y\u{1ecd}\u{301} State");
    page.press("Enter");
    wait_for_announcement(&mut page, "You answered In Ibadan, \u{1ecc}\u{300}y\u{1ecd}\u{301} State:");
    wait_for_announcement(&mut page, "Demo assistant has finished.");
    wait_until_closed(&mut page);
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn choices_numbers_and_yes_no_questions_can_be_answered() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let session = client.start_session();
    let ask = |question: serde_json::Value| {
        let mut body = json!({ "timeout_seconds": 600, "summary_normal": "A question." });
        body.as_object_mut().unwrap().extend(question.as_object().unwrap().clone());
        let response =
            client.post(&format!("/agent/v1/sessions/{session}/clarifications"), &body.to_string());
        assert_eq!(response.status, 201, "{response:?}");
        response.json_str("reply_token")
    };
    let read_response = |token: &str| {
        let response = client.get(&format!("/agent/v1/sessions/{session}/replies/{token}?wait=30"));
        serde_json::from_str::<serde_json::Value>(&response.body).unwrap()["response"].clone()
    };

    let choices = json!([{ "value": "ben", "label": "Ben Ojo" }, { "value": "bea", "label": "Bea Ortiz" }]);
    let token = ask(
        json!({ "question": "Which one?", "accepted_response_kinds": ["multiple_choice"], "choices": choices }),
    );
    wait_for_question(&mut page);
    check_state(&mut page, "choices");
    tab_to(&mut page, "radio \"Ben Ojo\"");
    page.press("ArrowDown");
    assert!(page.focused_node().starts_with("radio \"Bea Ortiz\""), "{}", page.focused_node());
    page.press("Enter");
    assert_eq!(read_response(&token), "bea");
    wait_until_closed(&mut page);

    let token = ask(json!({ "question": "How many?", "accepted_response_kinds": ["numeric"] }));
    wait_for_question(&mut page);
    tab_to(&mut page, "textbox \"Your answer, a number\"");
    page.type_text("many");
    page.press("Enter");
    wait_for_announcement(&mut page, "That is not a number.");
    page.press("Control+a");
    page.type_text("2,5");
    page.press("Enter");
    assert_eq!(read_response(&token), 2.5);
    wait_until_closed(&mut page);

    let token = ask(json!({ "question": "Is it Tuesday?", "accepted_response_kinds": ["yes_no"] }));
    wait_for_question(&mut page);
    tab_to(&mut page, "button \"Yes\"");
    page.press("Enter");
    assert_eq!(read_response(&token), true);
    wait_until_closed(&mut page);
    assert!(page.take_errors().is_empty());
}

/// Answers open questions in a different order than they were asked. Each answer goes to its own question.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn several_open_questions_can_be_answered_in_any_order() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let names = ["Ada", "Ben", "Chi"];
    let sessions = names.map(|_| client.start_session());
    let tokens: Vec<_> = names
        .iter()
        .zip(&sessions)
        .map(|(name, session)| {
            let question = json!({
                "action": format!("Write to {name}."), "consequence": "It cannot be recalled.", "risk_level": "medium",
                "irreversible": true, "timeout_seconds": 600, "default_decision": "reject", "summary_normal": "May I?",
            });
            let path = format!("/agent/v1/sessions/{session}/confirmations");
            client.post(&path, &question.to_string()).json_str("reply_token")
        })
        .collect();
    wait_for_question(&mut page);
    page.press("Escape");
    wait_for_announcement(&mut page, "The question stays open.");
    // Each remaining question opens by itself and is postponed, too.
    for _ in 1..names.len() {
        wait_for_question(&mut page);
        page.press("Escape");
    }
    wait_until_closed(&mut page);
    page.wait_until("document.querySelectorAll('#question-list li').length == 3");
    check_state(&mut page, "several");
    for (name, button, index) in
        [("Chi", "No, reject it", 2), ("Ada", "Yes, accept it", 0), ("Ben", "No, reject it", 1)]
    {
        page.run_script("document.getElementById('questions-title').focus()");
        tab_to(&mut page, &format!("button \"Answer local: Write to {name}.\""));
        page.press("Enter");
        wait_for_question(&mut page);
        page.wait_until(&format!("{DIALOG}.innerText.includes('Write to {name}.')"));
        tab_to(&mut page, &format!("button \"{button}\""));
        page.press("Enter");
        let expected = if button.starts_with("Yes") { "accept" } else { "reject" };
        let decision = read_decision(&client, &sessions[index], &tokens[index]);
        assert_eq!(decision, (expected.to_owned(), "reply".to_owned()), "{name}");
        wait_until_closed(&mut page);
    }
    page.wait_for_text("No question is open.");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_person_can_extend_the_deadline_and_stop_the_agent() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let session = client.start_session();
    let mut other = open_listening_page(&hub, &mut browser);
    let token = client.ask_confirmation(&session);
    wait_for_question(&mut page);
    wait_for_question(&mut other);
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    tab_to(&mut page, "button \"More time\"");
    page.press("Enter");
    wait_for_announcement(&mut page, "More time was added. About 4 minutes left.");
    let dialog_announcement =
        format!("[...{DIALOG}.querySelectorAll('[aria-live]')].map((element) => element.innerText).join('')");
    assert_eq!(
        page.evaluate(&dialog_announcement),
        "More time was added. About 4 minutes left.",
        "more time must be announced inside the dialog, because many screen readers ignore live regions outside it"
    );
    // Other listeners get the same time and an announcement.
    wait_for_announcement(
        &mut other,
        "This question has more time. About 4 minutes left to answer: Send 5 euros to Ben.",
    );
    other.wait_until(&format!("{DIALOG}.innerText.includes('About 4 minutes left.')"));
    assert_eq!(
        announcements(&mut page).iter().filter(|text| text.to_lowercase().contains("more time")).count(),
        1,
        "the listener that asked for more time must announce it only once"
    );
    assert!(page.focused_node().starts_with("button \"More time\""), "{}", page.focused_node());
    tab_to(&mut page, "button \"Stop the agent\"");
    page.press("Enter");
    wait_for_announcement(&mut page, "You stopped local.");
    wait_for_announcement(&mut other, "local was stopped by a person.");
    assert_eq!(
        page.evaluate(&format!("{DIALOG} == null")),
        true,
        "the person knows why the question is closed"
    );
    let announced = announcements(&mut page);
    assert!(!announced.iter().any(|text| text.contains("withdrawn")), "{announced:?}");
    assert_eq!(other.evaluate(&format!("{DIALOG}.innerText.includes('This question was withdrawn:')")), true);
    assert_eq!(client.get(&path).json_str("decision"), "reject");
    check_state(&mut page, "stopped");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_held_key_does_not_answer() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let session = client.start_session();
    let token = client.ask_confirmation(&session);
    wait_for_question(&mut page);
    tab_to(&mut page, "button \"Yes, accept it\"");
    page.press_and_hold("Enter");
    let path = format!("/agent/v1/sessions/{session}/replies/{token}");
    assert_eq!(
        page.evaluate(&format!("{DIALOG} != null && document.querySelector('.sent').innerText == ''")),
        true
    );
    assert_eq!(client.get(&path).json_str("status"), "pending");
    page.press("Enter");
    assert_eq!(read_decision(&client, &session, &token), ("accept".to_owned(), "reply".to_owned()));
}

/// An answer that does not reach the hub is reported and the question stays open, so another listener can answer it.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn an_answer_that_cannot_be_sent_is_reported_and_does_not_count() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let session = client.start_session();
    let other_subscription = client.subscribe(testing::messages::REPLY_CAPABILITIES);
    let _stream = client.open_event_stream(&other_subscription, None);
    let token = client.ask_confirmation(&session);
    wait_for_question(&mut page);
    page.run_script("window.fetch = () => Promise.reject(new TypeError('nobody is there'))");
    tab_to(&mut page, "button \"Yes, accept it\"");
    page.press("Enter");
    wait_for_announcement(
        &mut page,
        "Your answer was not sent. The hub cannot be reached. The question is still open.",
    );
    assert!(page.focused_node().starts_with("button \"Yes, accept it\""), "{}", page.focused_node());
    client.reply(&other_subscription, &token, "reject");
    page.wait_until(&format!("{DIALOG}?.innerText.includes('Someone else rejected this:') === true"));
    assert_eq!(read_decision(&client, &session, &token), ("reject".to_owned(), "reply".to_owned()));
}

/// The remaining time is announced once, when half of it is left. A second announcement, with a tenth left, would
/// come too late. Without an answer, the default rejects.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_short_question_announces_its_time_once_and_a_timeout_rejects() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let session = client.start_session();
    let question = testing::messages::CONFIRMATION_BODY.replace("134", "40");
    let token = client
        .post(&format!("/agent/v1/sessions/{session}/confirmations"), &question)
        .json_str("reply_token");
    wait_for_question(&mut page);
    page.wait_until(&format!(
        "{DIALOG}?.innerText.includes('Nobody answered in time, so this was rejected:') === true"
    ));
    check_state(&mut page, "timed-out");
    assert_eq!(read_decision(&client, &session, &token), ("reject".to_owned(), "timeout".to_owned()));
    let reminders: Vec<_> =
        announcements(&mut page).into_iter().filter(|text| text.contains("left")).collect();
    assert_eq!(reminders, ["About 20 seconds left to answer: Send 5 euros to Ben."]);
}

/// Details that the question itself does not contain are behind a button, and are announced inside the dialog.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn the_details_of_a_question_are_shown_and_announced_on_request() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let session = client.start_session();
    let question = json!({
        "question": "Which city?", "accepted_response_kinds": ["freetext"], "default_response": "Lyon",
        "timeout_seconds": 600, "summary_normal": "Which city do the guests travel to?",
    });
    let response =
        client.post(&format!("/agent/v1/sessions/{session}/clarifications"), &question.to_string());
    assert_eq!(response.status, 201, "{response:?}");
    wait_for_question(&mut page);
    let details = format!(
        "(({{ hidden, innerText }}) => (hidden ? '' : innerText))({DIALOG}.querySelector('.details'))"
    );
    assert_eq!(page.evaluate(&details), "");
    tab_to(&mut page, "button \"Details\"");
    page.press("Enter");
    let lines = [
        "The agent adds: Which city do the guests travel to?",
        "Without an answer, the agent will use this: Lyon",
    ];
    wait_for_announcement(&mut page, &lines.join(" "));
    assert_eq!(page.evaluate(&details), lines.join("\n\n"));
    assert!(page.focused_node().starts_with("button \"Details\""), "{}", page.focused_node());
    check_state(&mut page, "details");
    // A second press reads them again.
    page.press("Enter");
    let text = json!(lines.join(" ")).to_string();
    page.wait_until(&format!("announced.filter((one) => one.includes({text})).length == 2"));
}

/// The person has just pressed Escape, so that is confirmed before the texts that wait.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_postponed_question_is_confirmed_before_everything_that_waits() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let (session, other) = (client.start_session(), client.start_session());
    client.ask_confirmation(&session);
    wait_for_question(&mut page);
    page.run_script("addEventListener('keydown', () => (window.before = announced.length), true)");
    for number in 1..=4 {
        let path = format!("/agent/v1/sessions/{other}/output?output_id=out_{number}&complete=true");
        assert_eq!(client.post(&path, &"Other text. ".repeat(20)).status, 200);
    }
    page.press("Escape");
    wait_for_announcement(&mut page, "The question stays open.");
    let first = page.evaluate("announced[before]");
    assert!(first.as_str().unwrap().starts_with("The question stays open."), "{first}");
}
