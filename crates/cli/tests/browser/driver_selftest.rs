//! Tests of the browser driver itself, with a test page at the hub's origin.

use testing::chromium::{Browser, MediaPreferences, Page};
use testing::hub::HubProcess;

const DOCUMENT: &str = r#"<!doctype html><html lang="en"><title>Try</title>
<main><h1>Try</h1><p role="status" aria-live="polite" id="greeting">Nothing yet.</p>
<label>Name <input id="name"></label>
<button id="go">Go on</button></main><script src="/try.js"></script>"#;
const SCRIPT: &str = r#"
document.getElementById("go").onclick = () =>
    document.getElementById("greeting").textContent = "Hello, " + document.getElementById("name").value + ".";
"#;

fn open_document(hub: &HubProcess, page: &mut Page, document: &str) {
    let url = |path: &str| format!("http://{}{path}", hub.address);
    page.mock_url(&url("/try"), "text/html; charset=utf-8", document.as_bytes());
    page.mock_url(&url("/try.js"), "text/javascript", SCRIPT.as_bytes());
    page.navigate(&url("/try"));
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn keyboard_input_and_the_accessibility_tree_work() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = browser.open_page();
    open_document(&hub, &mut page, DOCUMENT);
    page.press("Tab");
    assert_eq!(page.focused_node(), r#"textbox "Name" focused"#);
    page.type_text("Ada L.");
    page.press("Tab");
    assert_eq!(page.focused_node(), r#"button "Go on" focused"#);
    page.press("Enter");
    page.wait_for_text("Hello, Ada L..");
    assert_eq!(page.text("#greeting").as_deref(), Some("Hello, Ada L.."));
    page.press("Shift+Tab");
    let expected = r#"RootWebArea "Try" focused
  main
    heading "Try" level=1
    status live=polite atomic: "Hello, Ada L.."
    text "Name"
    textbox "Name" value "Ada L." focused
    button "Go on"
"#;
    assert_eq!(page.accessibility_tree(), expected);
    assert_eq!(page.take_errors(), []);
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn page_errors_are_reported() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = browser.open_page();
    let document = r#"<!doctype html><html lang="en"><title>Try</title><script>1</script><script src="/try.js"></script>
<img src="/nothing.png" alt="">"#;
    open_document(&hub, &mut page, document);
    page.run_script("console.error('written'); Promise.reject(new Error('thrown'))");
    let errors = page.take_errors();
    for (source, part) in [
        ("security", "Content Security Policy"),
        ("javascript", "Cannot set properties of null"),
        ("network", "404"),
        ("console", "written"),
        ("javascript", "thrown"),
    ] {
        assert!(
            errors.iter().any(|error| error.source == source && error.text.contains(part)),
            "{part}: {errors:#?}"
        );
    }
    assert!(page.take_errors().is_empty(), "errors are reported once");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn media_preferences_zoom_screenshots_and_offline_mode_work() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = browser.open_page();
    open_document(&hub, &mut page, DOCUMENT);
    let media = |query: &str| format!("matchMedia('({query})').matches");
    page.set_media_preferences(MediaPreferences {
        forced_colours: true,
        reduced_motion: true,
        ..MediaPreferences::DARK
    });
    for query in ["prefers-color-scheme: dark", "forced-colors: active", "prefers-reduced-motion: reduce"] {
        assert_eq!(page.evaluate(&media(query)), true, "{query}");
    }
    page.set_media_preferences(MediaPreferences::LIGHT);
    assert_eq!(page.evaluate(&media("prefers-color-scheme: dark")), false);
    page.set_window(1280, 1024, 400);
    assert_eq!(page.evaluate("[innerWidth, devicePixelRatio]"), serde_json::json!([320, 4]));
    let png = std::fs::read(page.screenshot("harness")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.ends_with(b"IEND\xaeB`\x82"));
    page.set_offline(true);
    assert_eq!(page.evaluate("fetch('/healthz').then(() => 'there', () => 'gone')"), "gone");
    page.set_offline(false);
    assert_eq!(page.evaluate("fetch('/healthz').then(() => 'there', () => 'gone')"), "there");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn pages_share_cookies_and_isolated_pages_do_not() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let (mut first, mut second, mut isolated) =
        (browser.open_page(), browser.open_page(), browser.open_isolated_page());
    for page in [&mut first, &mut second, &mut isolated] {
        open_document(&hub, page, DOCUMENT);
    }
    first.run_script("document.cookie = 'who=ada'");
    assert_eq!(second.evaluate("document.cookie"), "who=ada");
    assert_eq!(isolated.evaluate("document.cookie"), "");
    second.click("#go");
    second.wait_for_text("Hello, .");
    second.reload();
    second.wait_for_text("Nothing yet.");
    second.close();
    assert_eq!(first.evaluate("document.cookie"), "who=ada");
}
