//! High contrast, little motion, four times the size, from right to left; and how much is said.

use serde_json::json;

use crate::answering::{DIALOG, asked};
use crate::listening::{hears, listening, tab_to};
use crate::state::no_bars;
use testing::chromium::{Browser, Look, Page};
use testing::hub::Hub;

fn fits(page: &mut Page, name: &str) {
    let wider = "[...document.querySelectorAll('*')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('.skip')).map((one) => one.outerHTML.slice(0, 80))";
    let wide = page.evaluate(wider);
    assert_eq!(wide, json!([]), "{name}");
    assert_eq!(page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true, "{name}");
    page.picture(name);
    no_bars(page, name);
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn at_400_percent_nothing_is_cut_off_and_at_every_size_the_answers_can_be_reached() {
    let (hub, mut browser) = (Hub::limited(&["--demo-agent"]), Browser::start());
    let mut page = listening(&hub, &mut browser);
    page.window(1280, 1024, 400);
    fits(&mut page, "zoomed-idle");
    let session = hub.client().start();
    hub.client().ask(&session);
    asked(&mut page);
    fits(&mut page, "zoomed-confirmation");
    for name in ["No, reject it", "Yes, accept it", "More time", "Stop the agent", "Answer later"] {
        tab_to(&mut page, &format!("button \"{name}\""));
        let seen = "(() => { const box = document.activeElement.getBoundingClientRect();
            return box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth; })()";
        assert_eq!(page.evaluate(seen), true, "{name} is in sight when it has the keyboard");
    }
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn forced_colours_and_little_motion() {
    let (hub, mut browser) = (Hub::limited(&["--demo-agent"]), Browser::start());
    let mut page = listening(&hub, &mut browser);
    let session = hub.client().start();
    hub.client().ask(&session);
    asked(&mut page);
    page.look(Look { forced_colours: true, ..Look::DARK });
    page.picture("forced-colours");
    let edge = page.evaluate(&format!(
        "getComputedStyle({DIALOG}).borderTopStyle + getComputedStyle({DIALOG}).borderTopWidth"
    ));
    assert_eq!(edge, "solid3px", "where colours and shadows go, an edge stays");
    page.look(Look { reduced_motion: true, ..Look::LIGHT });
    let moving = "[...document.querySelectorAll('*')].filter((one) => { const style = getComputedStyle(one); return style.transitionDuration != '0s' || style.animationName != 'none'; }).length";
    assert_eq!(page.evaluate(moving), 0);
    assert!(page.complaints().is_empty());
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn from_right_to_left() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    let client = hub.client();
    let hints = json!({ "primary_language": "ar", "text_direction": "rtl" });
    let started = json!({ "summary_normal": "تحويل المال.", "localization_hints": hints }).to_string();
    let session = client.post("/agent/v1/sessions", &started).text("session_id");
    let question = json!({
        "action": "أرسل 5 يورو إلى بن.", "consequence": "لا يمكن التراجع.", "risk_level": "high", "irreversible": true,
        "timeout_seconds": 600, "default_decision": "reject", "summary_normal": "هل أرسل 5 يورو؟", "localization_hints": hints,
    });
    let answer = client.post(&format!("/agent/v1/sessions/{session}/confirmations"), &question.to_string());
    assert_eq!(answer.status, 201, "{answer:?}");
    asked(&mut page);
    let theirs = page.evaluate(&format!(
        "[...{DIALOG}.querySelectorAll('[lang=ar]')].map((one) => [one.dir, getComputedStyle(one).direction])"
    ));
    assert_eq!(theirs, json!([["rtl", "rtl"], ["rtl", "rtl"]]));
    fits(&mut page, "right-to-left");
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn who_wants_few_words_gets_few() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    let client = hub.client();
    let session = client.start();
    hears(&mut page, "Moving money.");
    let say = |id: &str| {
        let event = json!({ "type": "aaep:agent.tool.invoked", "tool": "look", "tool_call_id": format!("call_{id}"), "risk_level": "low",
            "summary_terse": format!("Short {id}."), "summary_normal": format!("Of usual length {id}."), "summary_detailed": format!("At great length {id}.") });
        let answer = client.post(&format!("/agent/v1/sessions/{session}/events"), &event.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    let calling = json!({ "type": "aaep:agent.state.changed", "to_state": "calling_tool", "summary_normal": "Calling." });
    assert_eq!(
        client.post(&format!("/agent/v1/sessions/{session}/events"), &calling.to_string()).status,
        200
    );
    say("one");
    hears(&mut page, "Of usual length one.");
    for (key, words) in [("ArrowUp", "Short two."), ("End", "At great length three.")] {
        tab_to(&mut page, "combobox \"How much is said\"");
        page.run("document.getElementById('settings-result').textContent = ''");
        page.press(key);
        page.wait(
            "document.getElementById('settings-result').textContent == 'The hub follows these settings now.'",
        );
        say(words.split([' ', '.']).rev().nth(1).unwrap());
        hears(&mut page, words);
    }
    page.run("document.getElementById('settings-result').textContent = ''");
    tab_to(&mut page, "spinbutton \"Pace, in words a minute\"");
    page.press("Control+a");
    page.write("20");
    page.press("Tab");
    page.wait("document.getElementById('pace-error').textContent == 'The pace is a number from 50 to 1000.'");
    no_bars(&mut page, "a pace that is none");
    // What was set is still so when the page is opened again.
    page.reload();
    page.wait("document.getElementById('verbosity').value == 'detailed'");
}
