//! Helpers for the listening page: open it, move the focus and read its announcements.

use serde_json::{Value, json};

use testing::chromium::{Browser, Page};
use testing::hub::HubProcess;

/// Records every text added to a live region, which a screen reader would announce.
const RECORD_LIVE_REGIONS_SCRIPT: &str = r#"
window.announced = [];
new MutationObserver((changes) => {
    for (const change of changes) {
        const region = change.target.nodeType == 1 ? change.target : change.target.parentElement;
        if (region?.closest("[aria-live]") == null) continue;
        for (const added of change.addedNodes) window.announced.push(added.textContent);
    }
}).observe(document, { childList: true, subtree: true });
"#;

/// Sets the fastest pace, to keep the tests short.
const FASTEST_PACE_SCRIPT: &str = r#"try { localStorage.getItem("sayso.settings") ??
    localStorage.setItem("sayso.settings", JSON.stringify({ pace: 1000 })); } catch {}"#;

/// Opens the page at this address without waiting for a connection.
pub(crate) fn open_page_at(address: &str, mut page: Page) -> Page {
    page.run_on_new_document(RECORD_LIVE_REGIONS_SCRIPT);
    page.run_on_new_document(FASTEST_PACE_SCRIPT);
    page.navigate(&format!("http://{address}/"));
    page
}

/// Opens the page and waits until it is connected.
pub(crate) fn open_listening_page(hub: &HubProcess, browser: &mut Browser) -> Page {
    let mut page = open_page_at(&hub.address, browser.open_page());
    wait_until_connected(&mut page);
    page
}

pub(crate) fn wait_until_connected(page: &mut Page) {
    page.wait_until("document.getElementById('connection').textContent == 'Connected.'");
}

/// Presses Tab until the description of the focused node starts with `target`.
pub(crate) fn tab_to(page: &mut Page, target: &str) {
    let mut seen = Vec::new();
    for _ in 0..80 {
        page.press("Tab");
        let focused = page.focused_node();
        if focused.starts_with(target) {
            return;
        }
        seen.push(focused);
    }
    panic!("Tab did not reach {target}; it reached {seen:#?}");
}

/// Opens the settings by keyboard.
pub(crate) fn open_settings(page: &mut Page) {
    tab_to(page, "button \"Settings\"");
    page.press("Enter");
    assert!(page.focused_node().starts_with("heading \"Listening settings\""), "{}", page.focused_node());
}

/// Expands the log.
pub(crate) fn open_log(page: &mut Page) {
    page.run_script("document.getElementById('log-details').open = true");
}

/// Waits until an announcement contains this text.
pub(crate) fn wait_for_announcement(page: &mut Page, text: &str) {
    page.wait_until(&format!("announced.some((text) => text.includes({}))", json!(text)));
}

/// Returns all announcements so far.
pub(crate) fn announcements(page: &mut Page) -> Vec<String> {
    let Value::Array(announced) = page.evaluate("announced") else {
        panic!("no announcements were recorded")
    };
    announced.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}
