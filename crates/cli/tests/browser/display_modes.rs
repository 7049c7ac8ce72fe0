//! Forced colours, high contrast, reduced motion, 400 percent zoom, right-to-left text and verbosity.

use serde_json::json;

use crate::answering::{DIALOG, wait_for_question};
use crate::listening_page::{open_listening_page, open_settings, tab_to, wait_for_announcement};
use crate::page_state_checks::assert_no_accessibility_violations;
use testing::chromium::{Browser, MediaPreferences, Page};
use testing::hub::HubProcess;

fn assert_fits(page: &mut Page, name: &str) {
    let find_overflow = "[...document.querySelectorAll('*')].filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !element.closest('.skip')).map((element) => element.outerHTML.slice(0, 80))";
    let overflow = page.evaluate(find_overflow);
    assert_eq!(overflow, json!([]), "{name}");
    assert_eq!(page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true, "{name}");
    page.screenshot(name);
    assert_no_accessibility_violations(page, name);
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn at_400_percent_zoom_nothing_is_cut_off_and_answers_are_reachable() {
    let (hub, mut browser) = (HubProcess::start_in_memory_with(&["--demo-agent"]), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    page.set_window(1280, 1024, 400);
    assert_fits(&mut page, "zoomed-idle");
    let session = hub.client().start_session();
    hub.client().ask_confirmation(&session);
    wait_for_question(&mut page);
    assert_fits(&mut page, "zoomed-confirmation");
    assert_eq!(find_torn_badges(&mut page), json!([]));
    for name in ["No, reject it", "Yes, accept it", "More time", "Details", "Stop the agent", "Answer later"]
    {
        tab_to(&mut page, &format!("button \"{name}\""));
        let is_visible = "(() => { const box = document.activeElement.getBoundingClientRect();
            return box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth; })()";
        assert_eq!(page.evaluate(is_visible), true, "{name} must be visible when it has the focus");
    }
}

/// Returns the sign, the border and the colour of the button for yes.
fn yes_button_look(page: &mut Page, preferences: MediaPreferences) -> Vec<String> {
    page.set_media_preferences(preferences);
    let look = page.evaluate(&format!(
        "((yes) => [getComputedStyle(yes, '::before').content, getComputedStyle(yes).borderTopStyle, getComputedStyle(yes).color])({DIALOG}.querySelector('.yes'))"
    ));
    serde_json::from_value(look).unwrap()
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn a_yes_to_a_dangerous_action_looks_different_even_without_colours() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let session = client.start_session();
    let path = format!("/agent/v1/sessions/{session}/confirmations");
    let modes = [
        MediaPreferences::LIGHT,
        MediaPreferences::DARK,
        MediaPreferences { forced_colours: true, ..MediaPreferences::DARK },
    ];
    client.post(
        &path,
        r#"{"action":"Book the Garden room.","consequence":"It is reserved for you.","timeout_seconds":1200,"default_decision":"reject","risk_level":"low","irreversible":false}"#,
    );
    wait_for_question(&mut page);
    page.screenshot("harmless-confirmation");
    let harmless = modes.map(|mode| yes_button_look(&mut page, mode));
    page.press("Escape");
    page.wait_until(&format!("{DIALOG} == null"));
    client.ask_confirmation(&session);
    wait_for_question(&mut page);
    let dangerous = modes.map(|mode| yes_button_look(&mut page, mode));
    for (at, (harmless, dangerous)) in harmless.iter().zip(&dangerous).enumerate() {
        assert_ne!(harmless[0], dangerous[0], "the sign in mode {at}");
        assert_ne!(harmless[1], dangerous[1], "the border in mode {at}");
    }
    assert_ne!(harmless[0][2], dangerous[0][2], "the colour");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn forced_colours_keep_the_dialog_border_and_reduced_motion_stops_animation() {
    let (hub, mut browser) = (HubProcess::start_in_memory_with(&["--demo-agent"]), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let session = hub.client().start_session();
    hub.client().ask_confirmation(&session);
    wait_for_question(&mut page);
    page.set_media_preferences(MediaPreferences { forced_colours: true, ..MediaPreferences::DARK });
    page.screenshot("forced-colours");
    let bar = "getComputedStyle(document.getElementById('announcements')).borderInlineStartWidth";
    page.run_script(
        "for (const region of document.querySelectorAll('#announcements > div')) region.replaceChildren()",
    );
    assert_eq!(page.evaluate(bar), "0px", "an empty area of announcements has no bar");
    let starts = page.evaluate(
        "[...document.querySelectorAll('#announcements > div')].map((region, index) => {
            const text = document.createElement('p');
            text.textContent = index == 0 ? 'A long text that the next one has replaced.' : 'Accepted.';
            text.className = index == 0 ? 'replaced' : '';
            region.replaceChildren(text);
            return text;
        }).map((text) => text.getBoundingClientRect().left)",
    );
    assert_eq!(starts[0], starts[1], "a replaced text does not indent the next one");
    let border = page.evaluate(&format!(
        "getComputedStyle({DIALOG}).borderTopStyle + getComputedStyle({DIALOG}).borderTopWidth"
    ));
    assert_eq!(border, "solid3px", "the border must remain without colours and shadows");
    page.set_media_preferences(MediaPreferences { reduced_motion: true, ..MediaPreferences::LIGHT });
    let count_animated = "[...document.querySelectorAll('*')].filter((element) => { const style = getComputedStyle(element); return style.transitionDuration != '0s' || style.animationName != 'none'; }).length";
    assert_eq!(page.evaluate(count_animated), 0);
    assert!(page.take_errors().is_empty());
}

/// Returns the badges that are drawn in more than one piece, or whose sign is not in front of their words.
fn find_torn_badges(page: &mut Page) -> serde_json::Value {
    page.evaluate(
        r"[...document.querySelectorAll('.badge')].filter((badge) => badge.checkVisibility()).filter((badge) => {
            const words = document.createRange();
            words.selectNodeContents(badge);
            const [box, text] = [badge.getBoundingClientRect(), words.getBoundingClientRect()];
            const sign = getComputedStyle(badge, '::before').content == 'none' ? 0 : 8;
            const before = badge.dir == 'rtl' ? box.right - text.right : text.left - box.left;
            return badge.getClientRects().length > 1 || before < sign + 4;
        }).map((badge) => badge.textContent)",
    )
}

/// People who ask for more contrast get black and white, and the borders of badges.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn high_contrast_has_black_text_on_white_and_visible_borders() {
    let (hub, mut browser) = (HubProcess::start_in_memory_with(&["--demo-agent"]), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let session = hub.client().start_session();
    hub.client().ask_confirmation(&session);
    wait_for_question(&mut page);
    for (dark, expected) in [
        (false, json!(["rgb(0, 0, 0)", "rgb(255, 255, 255)"])),
        (true, json!(["rgb(255, 255, 255)", "rgb(0, 0, 0)"])),
    ] {
        page.set_media_preferences(MediaPreferences { dark, more_contrast: true, ..MediaPreferences::LIGHT });
        let colours =
            "(({ color, backgroundColor }) => [color, backgroundColor])(getComputedStyle(document.body))";
        assert_eq!(page.evaluate(colours), expected);
        let contrasts = r"[...document.querySelectorAll('.badge, .dialog button, .dialog p')].filter((element) => element.checkVisibility()).map((element) => {
            const channel = (value) => (value <= 10 ? value / 3294 : ((value / 255 + 0.055) / 1.055) ** 2.4);
            const luminance = (colour) => { const [r, g, b] = colour.match(/\d+/g).map(Number).map(channel); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
            const surface = (one) => { const colour = getComputedStyle(one).backgroundColor; return colour == 'rgba(0, 0, 0, 0)' ? surface(one.parentElement) : colour; };
            const [text, behind] = [luminance(getComputedStyle(element).color), luminance(surface(element))];
            return (Math.max(text, behind) + 0.05) / (Math.min(text, behind) + 0.05);
        }).reduce((least, one) => Math.min(least, one), 21)";
        let least = page.evaluate(contrasts).as_f64().unwrap();
        assert!(least >= 10.0, "the least contrast is {least}");
        let unbordered = "[...document.querySelectorAll('.dialog .badge')].filter((badge) => getComputedStyle(badge).borderTopColor == 'rgba(0, 0, 0, 0)').length";
        assert_eq!(page.evaluate(unbordered), 0);
        let name = if dark { "high-contrast-dark" } else { "high-contrast-light" };
        page.screenshot(name);
        assert_no_accessibility_violations(&mut page, name);
    }
    page.press("Escape");
    page.wait_until(&format!("{DIALOG} == null"));
    page.screenshot("high-contrast-page");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn right_to_left_text_keeps_its_direction() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let hints = json!({ "primary_language": "ar", "text_direction": "rtl" });
    let start = json!({ "summary_normal": "تحويل المال.", "localization_hints": hints }).to_string();
    let session = client.post("/agent/v1/sessions", &start).json_str("session_id");
    let question = json!({
        "action": "أرسل 5 يورو إلى بن.", "consequence": "لا يمكن التراجع.", "risk_level": "high", "irreversible": true,
        "timeout_seconds": 600, "default_decision": "reject", "summary_normal": "هل أرسل 5 يورو؟", "localization_hints": hints,
    });
    let response = client.post(&format!("/agent/v1/sessions/{session}/confirmations"), &question.to_string());
    assert_eq!(response.status, 201, "{response:?}");
    wait_for_question(&mut page);
    let directions = page.evaluate(&format!(
        "[...{DIALOG}.querySelectorAll('[lang=ar]')].map((element) => [element.dir, getComputedStyle(element).direction])"
    ));
    assert_eq!(
        directions,
        json!([["rtl", "rtl"], ["rtl", "rtl"], ["rtl", "rtl"]]),
        "title, consequence and details"
    );
    assert_fits(&mut page, "right-to-left");
}

/// No language of the page is written from right to left yet, so the test only mirrors the layout.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn the_interface_can_be_right_to_left() {
    let (hub, mut browser) = (HubProcess::start_in_memory_with(&["--demo-agent"]), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    page.run_script("document.documentElement.dir = 'rtl'");
    let session = hub.client().start_session();
    hub.client().ask_confirmation(&session);
    wait_for_question(&mut page);
    assert_fits(&mut page, "right-to-left-dialog");
    page.press("Escape");
    page.wait_until(&format!("{DIALOG} == null"));
    assert_fits(&mut page, "right-to-left-interface");
    assert_eq!(find_torn_badges(&mut page), json!([]));
    let is_mirrored = "document.querySelector('h1').getBoundingClientRect().x > document.getElementById('settings-button').getBoundingClientRect().x";
    assert_eq!(page.evaluate(is_mirrored), true);
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn verbosity_can_be_changed_and_an_invalid_pace_is_reported() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let client = hub.client();
    let session = client.start_session();
    wait_for_announcement(&mut page, "Moving money.");
    let invoke_tool = |id: &str| {
        let event = json!({ "type": "aaep:agent.tool.invoked", "tool": "look", "tool_call_id": format!("call_{id}"), "risk_level": "low",
            "summary_terse": format!("Short {id}."), "summary_normal": format!("Of usual length {id}."), "summary_detailed": format!("At great length {id}.") });
        let response = client.post(&format!("/agent/v1/sessions/{session}/events"), &event.to_string());
        assert_eq!(response.status, 200, "{response:?}");
    };
    let calling_state = json!({ "type": "aaep:agent.state.changed", "to_state": "calling_tool", "summary_normal": "Calling." });
    assert_eq!(
        client.post(&format!("/agent/v1/sessions/{session}/events"), &calling_state.to_string()).status,
        200
    );
    invoke_tool("one");
    wait_for_announcement(&mut page, "Of usual length one.");
    open_settings(&mut page);
    for (key, id, summary) in [("ArrowUp", "two", "Short two."), ("End", "three", "At great length three.")] {
        tab_to(&mut page, "combobox \"Level of detail\"");
        page.run_script("document.getElementById('settings-result').textContent = ''");
        page.press(key);
        page.wait_until(
            "document.getElementById('settings-result').textContent == 'The hub now uses these settings.'",
        );
        invoke_tool(id);
        wait_for_announcement(&mut page, summary);
    }
    page.run_script("document.getElementById('settings-result').textContent = ''");
    tab_to(&mut page, "spinbutton \"Speech rate, in words per minute\"");
    page.press("Control+a");
    page.type_text("20");
    page.press("Tab");
    page.wait_until(
        "document.getElementById('pace-error').textContent == 'Enter a speech rate from 50 to 1000.'",
    );
    assert_no_accessibility_violations(&mut page, "invalid pace");
    // The settings survive a reload.
    page.reload();
    page.wait_until("document.getElementById('verbosity').value == 'detailed'");
}
