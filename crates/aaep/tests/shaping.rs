//! What one subscription receives. Each test covers one behaviour of shaping. Properties that hold for every
//! subscription are in `shaping_properties.rs`.

use std::sync::Arc;

use aaep::event::Verbosity;
use aaep::message::{Boundary, Capabilities, CognitiveLoad, EventFilters};
use aaep::negotiate::{Extension, Terms};
use aaep::rule::ValidationMode;
use aaep::shaping::{OutgoingEvent, ShaperLimits, ShapingTerms};
use seal::UnixMillis;
use serde_json::{Value, json};

use crate::support::recording_check::errors;
use crate::support::shaping_listener::{START, SampleAgent, ShapingListener};

const SESSION_A: &str = "sess_a1";
const SESSION_B: &str = "sess_b2";

fn with_rate(rate: u64) -> ShapingTerms {
    ShapingTerms {
        max_events_per_second: Some(rate),
        answers_confirmations: true,
        answers_clarifications: true,
        ..ShapingTerms::default()
    }
}

fn with_boundaries(boundaries: &[Boundary]) -> ShapingTerms {
    ShapingTerms { boundaries: boundaries.to_vec(), ..ShapingTerms::default() }
}

fn texts_and_hints(listener: &ShapingListener) -> Vec<(String, String)> {
    listener.chunks().into_iter().map(|(text, _, hint, _)| (text, hint)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(text, hint)| ((*text).to_owned(), (*hint).to_owned())).collect()
}

fn timestamps(listener: &ShapingListener, session: &str) -> Vec<i64> {
    let of_session = listener
        .delivered
        .iter()
        .filter(|delivered| delivered.event().envelope.session_id.as_str() == session);
    of_session.map(|delivered| delivered.event().envelope.timestamp.unix_millis() - START).collect()
}

#[test]
fn an_event_that_needs_no_change_is_delivered_unchanged() {
    let mut agent = SampleAgent::default();
    for terms in [ShapingTerms::default(), with_rate(10)] {
        let mut listener = ShapingListener::new(terms);
        for event in [agent.started(0, SESSION_A), agent.tool(1, SESSION_A), agent.progress(2, SESSION_A, 40)]
        {
            listener.advance_to(listener.now + 1000);
            listener.push(&event);
            let last = listener.delivered.last().unwrap();
            assert!(matches!(&last.outgoing, OutgoingEvent::Unchanged(same) if Arc::ptr_eq(same, &event)));
        }
    }
}

#[test]
fn filters_deliver_what_is_included_and_not_excluded() {
    let mut agent = SampleAgent::default();
    let mut filters = EventFilters::new();
    filters.include = Some(vec!["aaep:agent.tool.*".to_owned(), "aaep:agent.session.started".to_owned()]);
    filters.exclude = Some(vec!["aaep:agent.tool.completed".to_owned()]);
    let mut listener = ShapingListener::new(ShapingTerms { filters, ..ShapingTerms::default() });
    listener.push(&agent.started(0, SESSION_A));
    listener.push(&agent.state(1, SESSION_A, "idle", "calling_tool"));
    listener.push(&agent.tool(2, SESSION_A));
    listener.push(&agent.event(
        3,
        SESSION_A,
        "tool.completed",
        json!({ "tool": "search", "status": "success" }),
    ));
    listener.push(&agent.chunk(4, SESSION_A, "Hello.", true));
    assert_eq!(listener.names(), ["session.started", "tool.invoked"]);
}

#[test]
fn types_of_a_shared_extension_count_as_included() {
    let uri = "https://medai.example/context/v1";
    let known_extensions = [Extension::new(uri, "medai").unwrap()];
    let mut capabilities = Capabilities::new();
    for (honored, is_allowed) in [(vec![uri.to_owned()], true), (Vec::new(), false)] {
        capabilities.supported_extensions = Some(honored);
        let terms = Terms::from_capabilities("1.0.0", &capabilities, &known_extensions).unwrap();
        let terms = ShapingTerms::from(&terms);
        assert_eq!(terms.filters.allows("medai:patient.consulted"), is_allowed);
        assert!(!terms.filters.allows("other:thing"));
    }
}

#[test]
fn critical_events_bypass_filters_and_the_rate() {
    let mut agent = SampleAgent::default();
    let mut filters = EventFilters::new();
    filters.exclude = Some(vec!["*".to_owned()]);
    let mut listener = ShapingListener::new(ShapingTerms { filters, ..with_rate(1) });
    for at in 0..50 {
        listener.push(&agent.tool(at, SESSION_A));
        listener.push(&agent.event(
            at,
            SESSION_A,
            "handoff.requested",
            json!({ "reason": "Too hard.", "target_kind": "human" }),
        ));
    }
    assert_eq!(listener.names(), ["handoff.requested"; 50]);
    assert!(
        listener
            .delivered
            .iter()
            .all(|delivered| delivered.outgoing.is_critical() && delivered.at == UnixMillis::new(0))
    );
}

#[test]
fn a_question_is_withheld_from_a_listener_that_cannot_answer_but_its_resolution_is_not() {
    let mut agent = SampleAgent::default();
    let mut listener = ShapingListener::new(ShapingTerms::default());
    listener.push(&agent.state(0, SESSION_A, "thinking", "awaiting_input"));
    listener.push(&agent.question(1, SESSION_A));
    let clarification = json!({
        "question": "Which?", "reply_token": format!("rpl_{:032x}", 8), "timeout_seconds": 60,
    });
    listener.push(&agent.event(2, SESSION_A, "awaiting.clarification", clarification.clone()));
    listener.push(&agent.state(3, SESSION_A, "awaiting_input", "thinking"));
    assert_eq!(listener.names(), ["state.changed", "state.changed"]);

    let mut answering_listener = ShapingListener::new(with_rate(1));
    answering_listener.push(&agent.question(4, SESSION_A));
    answering_listener.push(&agent.event(5, SESSION_A, "awaiting.clarification", clarification));
    assert_eq!(answering_listener.names(), ["awaiting.confirmation", "awaiting.clarification"]);
}

#[test]
fn during_a_flood_a_question_is_delivered_immediately_after_the_state_that_leads_to_it() {
    let mut agent = SampleAgent::default();
    let mut listener = ShapingListener::new(with_rate(1));
    listener.now = START;
    listener.push(&agent.started(0, SESSION_B));
    listener.push(&agent.started(0, SESSION_A));
    listener.push(&agent.state(0, SESSION_A, "idle", "writing_output"));
    listener.push(&agent.chunk(1, SESSION_A, "I would do this now. Then", false));
    for percent in 0..40 {
        listener.push(&agent.progress(2, SESSION_B, percent));
    }
    listener.push(&agent.progress(2, SESSION_A, 50));
    listener.push(&agent.state(3, SESSION_A, "writing_output", "awaiting_input"));
    listener.now = START + 4;
    let question = agent.question(4, SESSION_A);
    listener.push(&question);
    assert_eq!(
        listener.names(),
        ["session.started", "session.started", "state.changed", "state.changed", "awaiting.confirmation"]
    );
    assert!(
        matches!(&listener.delivered[4].outgoing, OutgoingEvent::Unchanged(same) if Arc::ptr_eq(same, &question))
    );
    listener.push(&agent.chunk(5, SESSION_A, " rest.", true));
    listener.finish();
    let text: String = listener.chunks().into_iter().map(|(text, ..)| text).collect();
    assert_eq!(text, "I would do this now. Then rest.");
    assert!(timestamps(&listener, SESSION_A).is_sorted(), "{:?}", timestamps(&listener, SESSION_A));
}

#[test]
fn nothing_is_delivered_after_the_end_of_a_session() {
    let mut agent = SampleAgent::default();
    let mut listener = ShapingListener::new(with_rate(1));
    listener.now = START;
    listener.push(&agent.started(0, SESSION_A));
    listener.push(&agent.state(1, SESSION_A, "idle", "writing_output"));
    listener.push(&agent.chunk(2, SESSION_A, "One. Two. Thr", false));
    listener.push(&agent.chunk(3, SESSION_A, "", true));
    listener.push(&agent.progress(4, SESSION_A, 10));
    listener.now = START + 5;
    let failed = json!({ "error_category": "unknown", "summary_normal": "Failed." });
    listener.push(&agent.event(5, SESSION_A, "session.errored", failed));
    assert_eq!(
        listener.names(),
        ["session.started", "state.changed", "output.streaming", "progress.updated", "session.errored"]
    );
    assert_eq!(errors(&listener.texts(), ValidationMode::Strict), [""; 0]);
}

#[test]
fn held_states_are_merged_and_held_progress_is_replaced_but_tools_are_unchanged() {
    let mut agent = SampleAgent::default();
    let mut listener = ShapingListener::new(with_rate(1));
    listener.push(&agent.started(0, SESSION_A));
    listener.push(&agent.state(1, SESSION_A, "idle", "thinking"));
    listener.push(&agent.progress(1, SESSION_A, 10));
    listener.push(&agent.state(2, SESSION_A, "thinking", "calling_tool"));
    listener.push(&agent.progress(3, SESSION_A, 20));
    listener.push(&agent.tool(4, SESSION_A));
    listener.push(&agent.event(
        5,
        SESSION_A,
        "tool.completed",
        json!({ "tool": "search", "status": "success" }),
    ));
    listener.push(&agent.state(6, SESSION_A, "calling_tool", "thinking"));
    listener.push(&agent.state(7, SESSION_A, "thinking", "calling_tool"));
    listener.push(&agent.tool(8, SESSION_A));
    listener.finish();
    assert_eq!(
        listener.names(),
        [
            "session.started",
            "state.changed",
            "progress.updated",
            "tool.invoked",
            "tool.completed",
            "tool.invoked"
        ]
    );
    let merged = listener.delivered[1].json();
    assert_eq!((&merged["from_state"], &merged["to_state"]), (&json!("idle"), &json!("calling_tool")));
    assert_eq!(listener.delivered[2].json()["progress"]["percent"], 20);
    let times: Vec<_> = listener.delivered.iter().map(|delivered| delivered.at).collect();
    assert_eq!(times, [0, 1000, 2000, 3000, 4000, 5000].map(UnixMillis::new));
}

#[test]
fn a_recording_of_delivered_events_respects_the_honored_rate() {
    let (mut agent, mut listener) = (SampleAgent::default(), ShapingListener::new(with_rate(2)));
    listener.now = START;
    listener.push(&agent.started(0, SESSION_A));
    listener.push(&agent.state(0, SESSION_A, "idle", "calling_tool"));
    for _ in 0..20 {
        listener.push(&agent.tool(0, SESSION_A));
        let done = json!({ "tool": "search", "status": "success", "summary_normal": "Found." });
        listener.push(&agent.event(0, SESSION_A, "tool.completed", done));
    }
    listener.push(&agent.event(0, SESSION_A, "session.completed", json!({ "summary_normal": "Done." })));
    listener.finish();
    let capabilities = json!({ "max_events_per_second": 2 });
    let mut stream = vec![
        json!({
            "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "reader",
            "capabilities": capabilities,
        })
        .to_string(),
        json!({
            "type": "subscription.accepted", "subscription_id": "sub_5f0e2d7c9a1b4c3d8e6f7a8b9c0d1e2f",
            "aaep_version": "1.0.0", "producer": { "agent_id": "planner" }, "honored_capabilities": capabilities,
        })
        .to_string(),
    ];
    stream.extend(listener.texts());
    assert_eq!(listener.delivered.len(), 43);
    assert_eq!(errors(&stream, ValidationMode::Strict), [""; 0]);
}

#[test]
fn changes_to_and_from_awaiting_input_and_resolutions_never_merge() {
    let mut agent = SampleAgent::default();
    let mut listener = ShapingListener::new(with_rate(1));
    listener.push(&agent.started(0, SESSION_A));
    listener.push(&agent.state(1, SESSION_A, "idle", "thinking"));
    listener.push(&agent.state(2, SESSION_A, "thinking", "awaiting_input"));
    let resolved = json!({
        "@context": ["https://aaep-protocol.org/context/v1", "urn:sayso:context:v1"],
        "from_state": "thinking", "to_state": "deciding",
        "extensions": { "sayso": { "reply_token": format!("rpl_{:032x}", 77), "decision": "reject", "by": "timeout" } },
    });
    listener.push(&agent.state(3, SESSION_A, "awaiting_input", "thinking"));
    listener.push(&agent.event(4, SESSION_A, "state.changed", resolved));
    listener.push(&agent.state(5, SESSION_A, "deciding", "thinking"));
    listener.finish();
    assert_eq!(listener.delivered.len(), 6);
}

#[test]
fn a_full_shaper_reports_that_it_is_full_and_loses_nothing() {
    let limits = ShaperLimits { max_held_events: 10, ..ShaperLimits::default() };
    let (mut agent, mut listener) =
        (SampleAgent::default(), ShapingListener::with_limits(with_rate(1), limits));
    for _ in 0..11 {
        listener.push(&agent.tool(0, SESSION_A));
    }
    assert!(!listener.shaper.is_over_limit());
    listener.push(&agent.tool(0, SESSION_A));
    assert!(listener.shaper.is_over_limit());
    listener.finish();
    assert_eq!(listener.delivered.len(), 12);
}

#[test]
fn text_is_not_released_faster_than_the_pace() {
    let (mut agent, mut listener) = (
        SampleAgent::default(),
        ShapingListener::new(ShapingTerms { pace_wpm: Some(60), ..ShapingTerms::default() }),
    );
    for _ in 0..30 {
        listener.push(&agent.chunk(0, SESSION_A, "Here are five words now. ", false));
    }
    listener.push(&agent.tool(0, SESSION_B));
    listener.push(&agent.chunk(1, SESSION_A, "", true));
    assert_eq!(listener.names(), ["output.streaming", "tool.invoked"], "only text is delayed");
    listener.finish();
    assert_eq!(listener.chunks().concat_text(), "Here are five words now. ".repeat(30));
    let mut spoken_until = UnixMillis::new(0);
    for delivered in listener.delivered.iter().filter(|delivered| delivered.chunk().is_some()) {
        assert!(delivered.at >= spoken_until, "{} is before {spoken_until}", delivered.at);
        let words = delivered.chunk().unwrap().chunk.split_whitespace().count();
        spoken_until = delivered.at + i64::try_from(words).unwrap() * 1000;
    }
    assert!(spoken_until >= UnixMillis::new(149_000), "150 words at 60 a minute");
}

#[test]
fn low_cognitive_load_means_fewer_and_larger_events() {
    let count_delivered = |cognitive_load| {
        let (mut agent, mut listener) = (
            SampleAgent::default(),
            ShapingListener::new(ShapingTerms { cognitive_load, ..ShapingTerms::default() }),
        );
        for second in 0..20 {
            listener.advance_to(UnixMillis::new(second * 1000));
            listener.push(&agent.chunk(second * 1000, SESSION_A, "One more sentence. ", false));
            listener.push(&agent.progress(second * 1000, SESSION_A, second.unsigned_abs()));
        }
        listener.push(&agent.chunk(20_000, SESSION_A, "End.", true));
        listener.finish();
        assert_eq!(listener.chunks().concat_text(), format!("{}End.", "One more sentence. ".repeat(20)));
        listener.delivered.len()
    };
    let (low, medium) = (count_delivered(CognitiveLoad::Low), count_delivered(CognitiveLoad::Medium));
    assert!(low * 3 < medium, "{low} events at low load, {medium} at medium");
}

#[test]
fn low_cognitive_load_does_not_delay_a_tool() {
    let terms = ShapingTerms { cognitive_load: CognitiveLoad::Low, ..ShapingTerms::default() };
    let (mut agent, mut listener) = (SampleAgent::default(), ShapingListener::new(terms));
    listener.push(&agent.state(0, SESSION_A, "idle", "thinking"));
    listener.push(&agent.state(0, SESSION_A, "thinking", "calling_tool"));
    listener.push(&agent.tool(0, SESSION_A));
    assert_eq!(listener.names(), ["state.changed", "state.changed", "tool.invoked"]);
}

#[test]
fn the_preferred_verbosity_is_set_if_a_summary_for_it_exists() {
    let (mut agent, mut listener) = (
        SampleAgent::default(),
        ShapingListener::new(ShapingTerms { verbosity: Verbosity::Terse, ..ShapingTerms::default() }),
    );
    let with_both_summaries =
        json!({ "tool": "search", "summary_normal": "Searching the web.", "summary_terse": "Searching." });
    listener.push(&agent.event(0, SESSION_A, "tool.invoked", with_both_summaries));
    listener.push(&agent.tool(0, SESSION_A));
    let first = listener.delivered[0].json();
    assert_eq!(
        (&first["verbosity"], &first["summary_normal"]),
        (&json!("terse"), &json!("Searching the web."))
    );
    assert!(
        matches!(listener.delivered[1].outgoing, OutgoingEvent::Unchanged(_)),
        "there is no terse summary"
    );
}

#[test]
fn the_first_preferred_language_with_a_complete_translation_is_used() {
    let variants = json!({
        "tool": "search", "summary_normal": "Searching.", "summary_normal_yo": "Mo ń wá a.", "summary_normal_ar": "أبحث.",
        "summary_normal_fr_ca": "Je cherche.", "description": "Finds things.", "description_yo": "Ó ń wá nǹkan.",
        "description_ar": "يبحث.", "localization_hints":
            { "primary_language": "en-US", "text_direction": "ltr", "script": "Latn", "fallback_chain": ["ar"] },
    });
    let delivered_in = |languages: &[&str]| {
        let languages = languages.iter().map(ToString::to_string).collect();
        let (mut agent, mut listener) = (
            SampleAgent::default(),
            ShapingListener::new(ShapingTerms { languages, ..ShapingTerms::default() }),
        );
        listener.push(&agent.event(0, SESSION_A, "tool.invoked", variants.clone()));
        let event = listener.delivered[0].json();
        // The session of this event has no start, so only the rules of §3.9 are checked.
        let texts = vec![listener.delivered[0].event().to_json()];
        assert!(
            errors(&texts, ValidationMode::Strict).iter().all(|found| !found.contains("3.9")),
            "{texts:?}"
        );
        event
    };
    let yoruba = delivered_in(&["fr-CA", "yo-NG", "en"]);
    assert_eq!(yoruba["summary_normal"], "Mo ń wá a.");
    assert_eq!(yoruba["summary_normal_en_us"], "Searching.");
    assert_eq!(yoruba["description_en_us"], "Finds things.");
    assert_eq!(yoruba["localization_hints"]["primary_language"], "yo");
    assert_eq!(yoruba.get("summary_normal_yo"), None);
    let arabic = delivered_in(&["sw"]);
    assert_eq!(arabic["localization_hints"]["primary_language"], "ar", "the event's fallback chain");
    assert_eq!(arabic["localization_hints"]["text_direction"], "rtl");
    assert_eq!(delivered_in(&["en", "yo"])["localization_hints"]["primary_language"], "en-US");
}

/// Delivers an event to a listener whose language is Spanish, and returns the delivered event.
fn deliver_in_spanish(kind: &str, payload: Value) -> Value {
    let terms = ShapingTerms {
        languages: vec!["es".to_owned()],
        answers_clarifications: true,
        ..ShapingTerms::default()
    };
    let (mut agent, mut listener) = (SampleAgent::default(), ShapingListener::new(terms));
    listener.push(&agent.event(0, SESSION_A, kind, payload));
    listener.finish();
    listener.delivered[0].json()
}

#[test]
fn choices_are_delivered_in_the_language_of_the_question() {
    let mut question = json!({
        "question": "When?", "question_es": "¿Cuándo?", "reply_token": "rpl_4f8a2e7d9c1b6a3f", "timeout_seconds": 60,
        "choices": [{ "value": "now", "label": "Now" }, { "value": "later", "label": "Tomorrow" }],
        "choices_es": [{ "value": "now", "label": "Ahora mismo" }, { "value": "later", "label": "Mañana" }],
        "urgency": "critical", "localization_hints": { "primary_language": "en" },
    });
    let (english, spanish) = (question["choices"].clone(), question["choices_es"].clone());
    let delivered = deliver_in_spanish("awaiting.clarification", question.clone());
    assert_eq!((&delivered["question"], &delivered["choices"]), (&json!("¿Cuándo?"), &spanish));
    assert_eq!((&delivered["question_en"], &delivered["choices_en"]), (&json!("When?"), &english));
    question.as_object_mut().unwrap().remove("choices_es");
    let delivered = deliver_in_spanish("awaiting.clarification", question);
    assert_eq!(
        (&delivered["question"], &delivered["choices"]),
        (&json!("When?"), &english),
        "the question is not completely translated into Spanish"
    );
}

#[test]
fn the_progress_description_is_in_the_language_of_its_summary() {
    let update = |description: &str| {
        json!({
            "summary_normal": "Reading.", "summary_normal_es": "Leyendo.", "progress": { "percent": 50, "description": description },
            "localization_hints": { "primary_language": "en" },
        })
    };
    let delivered = deliver_in_spanish("progress.updated", update("Reading."));
    assert_eq!(delivered["summary_normal"], "Leyendo.");
    assert_eq!(delivered["progress"], json!({ "percent": 50, "description": "Leyendo." }));
    assert_eq!(delivered["summary_normal_en"], "Reading.");
    let delivered = deliver_in_spanish("progress.updated", update("Page 5."));
    assert_eq!(
        (&delivered["summary_normal"], &delivered["progress"]["description"]),
        (&json!("Reading."), &json!("Page 5."))
    );
}

#[test]
fn new_terms_apply_to_all_later_events() {
    let (mut agent, mut listener) =
        (SampleAgent::default(), ShapingListener::new(with_boundaries(&[Boundary::Completion])));
    listener.push(&agent.chunk(0, SESSION_A, "One. Two. Thr", false));
    assert!(listener.delivered.is_empty());
    listener.shaper.renegotiate(Arc::new(ShapingTerms::default()));
    listener.push(&agent.chunk(1, SESSION_A, "ee", false));
    assert_eq!(texts_and_hints(&listener), pairs(&[("One. ", "sentence"), ("Two. ", "sentence")]));
    listener
        .shaper
        .renegotiate(Arc::new(ShapingTerms { max_events_per_second: Some(1), ..ShapingTerms::default() }));
    listener.push(&agent.chunk(2, SESSION_A, ".", true));
    listener.push(&agent.tool(3, SESSION_A));
    listener.push(&agent.tool(4, SESSION_A));
    listener.finish();
    assert_eq!(listener.chunks().concat_text(), "One. Two. Three.");
    assert!(listener.delivered[2..].windows(2).all(|pair| pair[1].at - pair[0].at >= 1000));

    listener.shaper.renegotiate(Arc::new(with_boundaries(&[Boundary::None])));
    agent.position = 0;
    listener.push(&agent.chunk(3, SESSION_B, "uncut", false));
    assert_eq!(listener.delivered.last().unwrap().chunk().unwrap().chunk, "uncut");

    let payload = json!({ "tool": "search", "summary_normal": "Searching.", "summary_normal_yo": "Mo ń wá a.",
        "localization_hints": { "primary_language": "en-US" } });
    listener
        .shaper
        .renegotiate(Arc::new(ShapingTerms { languages: vec!["yo".to_owned()], ..ShapingTerms::default() }));
    listener.push(&agent.event(4, SESSION_B, "tool.invoked", payload));
    assert_eq!(
        listener.delivered.last().unwrap().json()["summary_normal"],
        "Mo ń wá a.",
        "the new language applies"
    );
    listener.push(&agent.tool(5, SESSION_B));
    assert_eq!(listener.delivered.len(), 8, "an event without that language is still delivered");
}

trait ConcatText {
    fn concat_text(&self) -> String;
}

impl ConcatText for Vec<(String, u64, String, bool)> {
    fn concat_text(&self) -> String {
        self.iter().map(|(text, ..)| text.as_str()).collect()
    }
}
