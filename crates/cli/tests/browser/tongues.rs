//! The page for somebody who wants another language: all of it is in that language, and a screen reader is told which words are in which.

use serde_json::json;

use crate::answering::{DIALOG, asked};
use crate::listening::{hears, listening, said, tab_to};
use crate::state::check;
use testing::chromium::{Browser, Page};
use testing::hub::Hub;

/// Chooses a language as a person does.
fn chooses(page: &mut Page, tag: &str) {
    let choose = "const select = document.getElementById('language'); select.value = TAG; \
                  select.dispatchEvent(new Event('change', { bubbles: true }));";
    page.run(&format!("{{ {} }}", choose.replace("TAG", &json!(tag).to_string())));
    page.wait(&format!("document.documentElement.lang == {}", json!(tag)));
}

/// Texts with an English word in them that are not marked as English or as of no known language.
fn english(page: &mut Page) -> serde_json::Value {
    page.evaluate(
        r#"(() => {
            const words = /\b(the|is|are|was|not|and|you|your|with|what|how|question|answer|session|agent|listening|connected|stop|time)\b/i;
            const found = [];
            const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            for (let node = walk.nextNode(); node !== null; node = walk.nextNode()) {
                const within = node.parentElement;
                if (within.closest("noscript, script, [hidden]") !== null) continue;
                const lang = within.closest("[lang]").lang;
                if (words.test(node.data) && !["", "en"].includes(lang)) found.push(`${lang}: ${node.data}`);
            }
            return found;
        })()"#,
    )
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn a_whole_session_in_spanish() {
    let (hub, mut browser) = (Hub::limited(&["--demo-agent"]), Browser::start());
    let mut page = listening(&hub, &mut browser);
    chooses(&mut page, "es");
    hears(&mut page, "El centro sigue ahora estos ajustes.");
    assert_eq!(page.evaluate("document.title"), "Escuchando a sus agentes");
    assert_eq!(english(&mut page), json!([]));
    check(&mut page, "idle-es");
    tab_to(&mut page, "textbox \"¿Qué debe hacer el asistente de la demostración?\"");
    page.write("transfiere 250 euros a Ben");
    page.press("Enter");
    asked(&mut page);
    assert_eq!(english(&mut page), json!([]));
    let marked = page.evaluate(&format!(
        "[...new Set([...{DIALOG}.querySelectorAll('span[lang]')].map((one) => one.lang))]"
    ));
    assert_eq!(marked, json!(["es", ""]), "what is said, and a name");
    check(&mut page, "confirmation-es");
    tab_to(&mut page, "button \"Sí, aceptarlo\"");
    page.press("Enter");
    hears(&mut page, "Hecho:");
    let wanted = [
        "El centro sigue ahora estos ajustes.",
        "Demonstration assistant ha empezado: Preparando una transferencia de demostración.",
        "Usted ha aceptado esto: Transferir 250 euros de la cuenta de demostración a Ben.",
    ];
    assert_eq!(said(&mut page).get(..3).unwrap(), wanted);
    assert_eq!(english(&mut page), json!([]));
    check(&mut page, "accepted-es");
    // What was heard stays in the language in which it was heard, and is marked so; all else follows.
    chooses(&mut page, "en");
    assert_eq!(page.text("#log-title").as_deref(), Some("Log"));
    let heard = page.evaluate(
        "[...document.querySelectorAll('#log-list .word')].map((one) => [one.lang, one.textContent])[0]",
    );
    assert_eq!(heard, json!(["es", "sesión:"]));
    assert_eq!(page.text("#no-sessions").as_deref(), Some("No agent is at work now. These have ended:"));
    assert_eq!(page.text("#session-list li p").as_deref(), Some("Done."));
    page.reload();
    page.wait("document.getElementById('connection').textContent == 'Connected.'");
}

#[test]
#[ignore = "needs what `cargo xtask browser` installs"]
fn the_page_in_yoruba_and_again_after_it_was_loaded_anew() {
    let (hub, mut browser) = (Hub::open(), Browser::start());
    let mut page = listening(&hub, &mut browser);
    chooses(&mut page, "yo");
    assert_eq!(english(&mut page), json!([]));
    page.reload();
    page.wait("document.getElementById('connection').textContent == 'Ìsopọ̀ wà.'");
    assert_eq!(page.text("#questions-title").as_deref(), Some("Àwọn ìbéèrè"));
    assert_eq!(english(&mut page), json!([]));
}
