//! A producer that means harm: its text is only ever text, and there is only ever so much of it.

use serde_json::{Value, json};

use crate::answering::{DIALOG, asked};
use crate::listening::{hears, listening, said, tab_to, visit};
use crate::state::no_bars;
use testing::chromium::Browser;
use testing::hub::Hub;

/// Markup, scripts, addresses.
const MARKUP: &str = r#"</p></div><img src=x onerror="window.harmed=1"><script>window.harmed=1</script><a href="javascript:window.harmed=1">here</a><iframe srcdoc="x"></iframe><style>*{display:none}</style><button id="evil">Yes, accept it</button>"#;
/// Terminal escapes, a bell, text that runs backwards, a hidden message in tags, a line end of another kind.
const TRICKS: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}neB ot\u{202c} \u{e0041}\u{e0042}\u{2028}\u{85}end";

/// Events as a hub would send them, but from nobody who keeps to limits.
fn stream(events: impl Iterator<Item = Value>) -> Vec<u8> {
    let block = |event: Value| {
        let id = event["event_id"].as_str().unwrap();
        format!("event: aaep.event\nid: {id}\ndata: {event}\n\n")
    };
    events.map(block).collect::<String>().into_bytes()
}

fn event(number: usize, kind: &str, more: &Value) -> Value {
    let mut event = json!({
        "@context": "https://aaep-protocol.org/context/v1", "aaep_version": "1.0.0",
        "type": format!("aaep:agent.{kind}"), "event_id": format!("evt_{number:032x}"),
        "session_id": "ses_0001", "timestamp": "2026-11-15T12:00:00.000Z",
        "producer": { "agent_id": "flood", "agent_name": "Flood" },
        "localization_hints": { "primary_language": "en" },
    });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn text_never_becomes_markup() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    let client = hub.client();
    let nasty = format!("{MARKUP}{TRICKS}");
    let post = |path: &str, body: &Value| {
        let answer = client.post(path, &body.to_string());
        assert!([200, 201].contains(&answer.status), "{answer:?}");
        answer
    };
    let started = post(
        "/agent/v1/sessions",
        &json!({ "summary_normal": nasty, "producer": { "agent_id": "evil", "agent_name": MARKUP },
            "localization_hints": { "primary_language": "en", "text_direction": "rtl" } }),
    );
    let at = |rest: &str| format!("/agent/v1/sessions/{}/{rest}", started.text("session_id"));
    for event in [
        json!({ "type": "aaep:agent.state.changed", "to_state": "calling_tool", "summary_normal": nasty }),
        json!({ "type": "aaep:agent.tool.invoked", "tool": "look", "tool_call_id": "call_1", "risk_level": "low", "summary_normal": nasty }),
        json!({ "type": "aaep:agent.progress.updated", "progress": { "step": 1, "total_steps": 2 }, "summary_normal": nasty }),
        json!({ "type": "aaep:agent.tool.completed", "tool": "look", "tool_call_id": "call_1", "status": "error", "error_message": nasty, "summary_normal": nasty }),
        json!({ "type": "aaep:agent.state.changed", "to_state": "writing_output", "summary_normal": nasty }),
        json!({ "type": "aaep:agent.output.streaming", "chunk": nasty, "language": "en", "position": 0, "complete": true, "coalesce_hint": "completion" }),
    ] {
        post(&at("events"), &event);
    }
    // A word of 16 KiB, and a sentence of 16 KiB.
    for (id, text) in [("out_1", "x".repeat(16 * 1024)), ("out_2", "word ".repeat(16 * 1024 / 5))] {
        let answer = client.post(&at(&format!("output?output_id={id}&complete=true")), &text);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    post(
        &at("clarifications"),
        &json!({ "question": nasty, "accepted_response_kinds": ["multiple_choice"], "timeout_seconds": 600, "summary_normal": nasty,
            "choices": [{ "value": "one", "label": nasty }, { "value": "two", "label": MARKUP }] }),
    );
    asked(&mut page);
    // The long ones come at the person's pace.
    page.wait("[...document.querySelectorAll('#log-list li')].some((one) => one.textContent.includes('x'.repeat(1000)))");
    page.picture("hostile-dialog");
    no_bars(&mut page, "hostile dialog");
    assert_eq!(
        page.evaluate(&format!("{DIALOG}.innerText.includes('<img src=x onerror')")),
        true,
        "it is shown as text"
    );
    let foreign = "document.querySelectorAll('img, iframe, style, #evil, script:not([src]), a:not(.skip), [onerror]').length";
    assert_eq!(page.evaluate(foreign), 0);
    let tricks = r"/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2028\u2029\u{e0000}-\u{e007f}]/u";
    assert_eq!(page.evaluate(&format!("{tricks}.test(document.documentElement.textContent)")), false);
    assert_eq!(
        page.evaluate("document.documentElement.scrollWidth <= innerWidth"),
        true,
        "a long word breaks"
    );
    let cut = "['#log-list', '[role=dialog]'].filter((one) => document.querySelector(one).scrollWidth > document.querySelector(one).clientWidth)";
    assert_eq!(page.evaluate(cut), json!([]), "not even inside");
    page.press("Escape");
    page.wait(&format!("{DIALOG} == null"));
    page.picture("hostile");
    no_bars(&mut page, "hostile page");
    assert_eq!(page.evaluate(foreign), 0);
    assert_eq!(page.evaluate("window.harmed"), Value::Null);
    assert_eq!(page.evaluate("getComputedStyle(document.body).display"), "grid");
    let complaints = page.complaints();
    assert!(complaints.is_empty(), "no policy had to step in: {complaints:#?}");
}

/// Far more questions than any hub lets through.
#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn so_many_questions_are_bounded_and_the_page_still_works() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let questions = (0..20_000).map(|number| {
        let more = json!({
            "session_id": format!("ses_{:08}", number % 500), "reply_token": format!("rt_{number:032x}"), "urgency": "critical",
            "action": format!("Do thing {number}."), "consequence": "Unknown.", "risk_level": "high", "irreversible": true,
            "timeout_seconds": 86400, "default_decision": "reject", "summary_normal": "May I?",
            "timestamp": "2026-11-15T12:00:00.000Z",
        });
        event(number, "awaiting.confirmation", &more)
    });
    let mut page = browser.page();
    page.serve_once(
        &format!("http://{}/aaep/v1/events", hub.address),
        "text/event-stream",
        &stream(questions),
    );
    let mut page = visit(&hub.address, page);
    page.wait("document.title.startsWith('4096 questions, ')");
    page.wait("document.querySelectorAll('#question-list li').length == 50");
    page.wait("document.getElementById('no-sessions').textContent == '450 more agents are at work. They are listed when others have ended.'");
    assert_eq!(page.evaluate("document.querySelectorAll('#session-list li').length"), 50);
    page.press("Escape");
    page.wait("document.getElementById('no-questions').textContent == '4046 more questions wait until one of these is answered.'");
}

/// The page has all 10,000 events that it keeps in its log, says how many it dropped, can be walked by keyboard, and a question that
/// comes then is asked and answered like any other.
#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn with_ten_thousand_events_in_the_log_it_still_responds() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let events = (0..10_500).map(|number| {
        let kind = if number == 0 { "session.started" } else { "tool.invoked" };
        let more = json!({ "summary_normal": format!("Thing {number}."), "tool": "look", "tool_call_id": format!("call_{number}") });
        event(number, kind, &more)
    });
    let mut page = browser.page();
    page.before("window.longest = 0; new PerformanceObserver((list) => { for (const task of list.getEntries()) longest = Math.max(longest, task.duration); }).observe({ type: 'longtask', buffered: true });");
    page.serve_once(&format!("http://{}/aaep/v1/events", hub.address), "text/event-stream", &stream(events));
    let mut page = visit(&hub.address, page);
    page.wait("document.querySelectorAll('#log-list li').length == 10000");
    let filled = page.evaluate("Math.round(longest)");
    page.run("longest = 0");
    page.wait("/^\\d+ older entries were dropped; 10000 are kept\\.$/.test(document.getElementById('log-dropped').textContent)");
    page.wait("document.getElementById('connection').textContent == 'Connected.'");
    let session = hub.client().start();
    hub.client().ask(&session);
    asked(&mut page);
    tab_to(&mut page, "button \"Yes, accept it\"");
    page.press("Enter");
    hears(&mut page, "You accepted this:");
    page.run(
        "document.getElementById('log-title').tabIndex = -1; document.getElementById('log-title').focus()",
    );
    tab_to(&mut page, "listitem");
    for (key, part) in
        [("Home", "Thing "), ("PageDown", "Thing "), ("ArrowUp", "Thing "), ("End", "You accepted this:")]
    {
        page.press(key);
        let here = page.evaluate("document.activeElement.textContent");
        assert!(here.as_str().unwrap().contains(part), "{key}: {here}");
    }
    let later = page.evaluate("Math.round(longest)");
    // Figures for a person; how fast a machine is, no test can promise.
    let told =
        format!("10000 entries: the longest task while they came took {filled} ms, afterwards {later} ms\n");
    print!("{told}");
    std::fs::write(testing::chromium::pictures().join("responsive.txt"), told).unwrap();
    assert!(said(&mut page).len() < 100, "not all of it was read out");
}
