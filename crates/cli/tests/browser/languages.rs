//! The page in other languages: all texts are localized, and `lang` attributes mark the language of each text.

use serde_json::json;

use crate::answering::{DIALOG, wait_for_question};
use crate::listening_page::{announcements, open_listening_page, tab_to, wait_for_announcement};
use crate::page_state_checks::check_state;
use testing::chromium::{Browser, Page};
use testing::hub::HubProcess;

/// Selects a language in the settings.
fn choose_language(page: &mut Page, tag: &str) {
    let choose = "const select = document.getElementById('language'); select.value = TAG; \
                  select.dispatchEvent(new Event('change', { bubbles: true }));";
    page.run_script(&format!("{{ {} }}", choose.replace("TAG", &json!(tag).to_string())));
    page.wait_until(&format!("document.documentElement.lang == {}", json!(tag)));
}

/// Returns the texts that contain an English word but are marked as another language.
fn find_mismarked_english_texts(page: &mut Page) -> serde_json::Value {
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
#[ignore = "needs a browser: cargo xtask browser"]
fn a_spanish_session_is_localized_and_marked_with_its_language() {
    let (hub, mut browser) = (HubProcess::start_in_memory_with(&["--demo-agent"]), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    choose_language(&mut page, "es");
    wait_for_announcement(&mut page, "El centro usa ahora estos ajustes.");
    assert_eq!(page.evaluate("document.title"), "sayso: escuchando a sus agentes");
    assert_eq!(find_mismarked_english_texts(&mut page), json!([]));
    check_state(&mut page, "idle-es");
    tab_to(&mut page, "textbox \"¿Qué debe hacer el asistente de la demostración?\"");
    page.type_text("transfiere 250 euros a Ben");
    page.press("Enter");
    wait_for_question(&mut page);
    assert_eq!(find_mismarked_english_texts(&mut page), json!([]));
    let languages = page.evaluate(&format!(
        "[...new Set([...{DIALOG}.querySelectorAll('span[lang]')].map((element) => element.lang))]"
    ));
    assert_eq!(languages, json!(["es", ""]), "the texts of the question and the name of the agent");
    check_state(&mut page, "confirmation-es");
    tab_to(&mut page, "button \"Sí, aceptarlo\"");
    page.press("Enter");
    wait_for_announcement(&mut page, "Demo assistant ha terminado.");
    let expected = [
        "El centro usa ahora estos ajustes.",
        "Demo assistant ha empezado: Preparando una transferencia de demostración.",
        "Aceptado.",
    ];
    assert_eq!(announcements(&mut page).get(..3).unwrap(), expected);
    assert_eq!(find_mismarked_english_texts(&mut page), json!([]));
    check_state(&mut page, "accepted-es");
    // Log entries keep their language and their `lang` attribute. Everything else changes.
    choose_language(&mut page, "en");
    assert_eq!(page.text("#log-title").as_deref(), Some("Log"));
    let log_label = page.evaluate(
        "[...document.querySelectorAll('#log-list .category')].map((element) => [element.lang, element.textContent])[0]",
    );
    assert_eq!(log_label, json!(["es", "sesión:"]));
    assert_eq!(page.text("#no-sessions").as_deref(), Some("No agent is working now. These have ended:"));
    let meta = page.text("#session-list .meta").unwrap();
    assert!(
        meta.starts_with("Finished") && meta.ends_with("The agent's id is sayso-demo."),
        "the state must be in the new language: {meta}"
    );
    page.reload();
    page.wait_until("document.getElementById('connection').textContent == 'Connected.'");
}

#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn the_yoruba_page_survives_a_reload() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    choose_language(&mut page, "yo");
    assert_eq!(find_mismarked_english_texts(&mut page), json!([]));
    page.reload();
    page.wait_until("document.getElementById('connection').textContent == 'Ìsopọ̀ wà.'");
    assert_eq!(page.text("#questions-title").as_deref(), Some("Àwọn ìbéèrè"));
    assert_eq!(find_mismarked_english_texts(&mut page), json!([]));
}

/// Languages are listed by their own names, so that people find theirs. If the page has no texts in the chosen one, it says so.
#[test]
#[ignore = "needs a browser: cargo xtask browser"]
fn languages_have_their_own_names_and_a_missing_one_is_announced() {
    let (hub, mut browser) = (HubProcess::start_in_memory(), Browser::start());
    let mut page = open_listening_page(&hub, &mut browser);
    let names = "Object.fromEntries([...document.getElementById('language').options].map(({ value, textContent, lang }) => [value, `${lang} ${textContent}`]))";
    let names_in_english = page.evaluate(names);
    for (tag, name) in
        [("de", "Deutsch"), ("es", "español"), ("ar", "العربية"), ("yo", "Yorùbá"), ("ja", "日本語")]
    {
        assert_eq!(names_in_english[tag], format!("{tag} {name}"));
    }
    let choose = "{ const select = document.getElementById('language'); select.value = 'de'; select.dispatchEvent(new Event('change', { bubbles: true })); }";
    page.run_script(choose);
    let notice = "The hub now uses these settings. This page has no texts in German, so they are in English. Agents may still speak German.";
    wait_for_announcement(&mut page, notice);
    assert_eq!(page.text("#settings-result").as_deref(), Some(notice));
    choose_language(&mut page, "es");
    assert_eq!(page.evaluate(names), names_in_english, "the names do not depend on the language of the page");
    // A person whose first language is missing hears it once.
    page.run_script(choose);
    page.wait_until("document.documentElement.lang == 'en'");
    let notice = "This page has no texts in German, so they are in English.";
    page.reload();
    wait_for_announcement(&mut page, notice);
    page.reload();
    page.wait_until("document.getElementById('connection').textContent == 'Connected.'");
    let announced = announcements(&mut page);
    assert!(!announced.iter().any(|text| text.contains(notice)), "{announced:?}");
}
