//! What one subscription hears: each behaviour of shaping by itself. What holds for all is in `shape_properties.rs`.

use std::sync::Arc;

use aaep::event::Verbosity;
use aaep::message::{Boundary, Capabilities, CognitiveLoad, EventFilters};
use aaep::negotiate::{Extension, Terms};
use aaep::rule::Face;
use aaep::shape::{Limits, Out, Wants};
use seal::UnixMillis;
use serde_json::{Value, json};

use crate::support::judge::errors;
use crate::support::shaping::{Agent, Listener, START};

const A: &str = "sess_a1";
const B: &str = "sess_b2";

fn rate(rate: u64) -> Wants {
    Wants { rate: Some(rate), confirmations: true, clarifications: true, ..Wants::default() }
}

fn cut_at(boundaries: &[Boundary]) -> Wants {
    Wants { boundaries: boundaries.to_vec(), ..Wants::default() }
}

fn pieces(listener: &Listener) -> Vec<(String, String)> {
    listener.chunks().into_iter().map(|(text, _, hint, _)| (text, hint)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(text, hint)| ((*text).to_owned(), (*hint).to_owned())).collect()
}

fn stamps(listener: &Listener, session: &str) -> Vec<i64> {
    let of_session =
        listener.heard.iter().filter(|heard| heard.event().envelope.session_id.as_str() == session);
    of_session.map(|heard| heard.event().envelope.timestamp.unix_millis() - START).collect()
}

#[test]
fn an_event_that_needs_no_change_is_passed_on_as_it_is() {
    let mut agent = Agent::default();
    for wants in [Wants::default(), rate(10)] {
        let mut listener = Listener::new(wants);
        for event in [
            agent.started(UnixMillis::new(0), A),
            agent.tool(UnixMillis::new(1), A),
            agent.progress(UnixMillis::new(2), A, 40),
        ] {
            listener.until(listener.now + 1000);
            listener.push(&event);
            let last = listener.heard.last().unwrap();
            assert!(matches!(&last.out, Out::Same(same) if Arc::ptr_eq(same, &event)));
        }
    }
}

#[test]
fn filters_let_through_what_is_included_and_not_excluded() {
    let mut agent = Agent::default();
    let mut filters = EventFilters::new();
    filters.include = Some(vec!["aaep:agent.tool.*".to_owned(), "aaep:agent.session.started".to_owned()]);
    filters.exclude = Some(vec!["aaep:agent.tool.completed".to_owned()]);
    let mut listener = Listener::new(Wants { filters, ..Wants::default() });
    listener.push(&agent.started(UnixMillis::new(0), A));
    listener.push(&agent.state(UnixMillis::new(1), A, "idle", "calling_tool"));
    listener.push(&agent.tool(UnixMillis::new(2), A));
    listener.push(&agent.says(
        UnixMillis::new(3),
        A,
        "tool.completed",
        json!({ "tool": "search", "status": "success" }),
    ));
    listener.push(&agent.chunk(UnixMillis::new(4), A, "Hello.", true));
    assert_eq!(listener.names(), ["session.started", "tool.invoked"]);
}

#[test]
fn the_types_of_an_extension_that_both_know_count_as_included_and_others_do_not() {
    let uri = "https://medai.example/context/v1";
    let known = [Extension::new(uri, "medai").unwrap()];
    let mut capabilities = Capabilities::new();
    for (honored, heard) in [(vec![uri.to_owned()], true), (Vec::new(), false)] {
        capabilities.supported_extensions = Some(honored);
        let terms = Terms::from_capabilities("1.0.0", &capabilities, &known).unwrap();
        let wants = Wants::from(&terms);
        assert_eq!(wants.filters.lets_through("medai:patient.consulted"), heard);
        assert!(!wants.filters.lets_through("other:thing"));
    }
}

#[test]
fn criticals_pass_filters_and_the_rate() {
    let mut agent = Agent::default();
    let mut filters = EventFilters::new();
    filters.exclude = Some(vec!["*".to_owned()]);
    let mut listener = Listener::new(Wants { filters, ..rate(1) });
    for at in 0..50 {
        listener.push(&agent.tool(UnixMillis::new(at), A));
        listener.push(&agent.says(
            UnixMillis::new(at),
            A,
            "handoff.requested",
            json!({ "reason": "Too hard.", "target_kind": "human" }),
        ));
    }
    assert_eq!(listener.names(), ["handoff.requested"; 50]);
    assert!(listener.heard.iter().all(|heard| heard.out.is_critical() && heard.at == UnixMillis::new(0)));
}

#[test]
fn a_question_is_withheld_from_who_cannot_answer_but_its_resolution_is_not() {
    let mut agent = Agent::default();
    let mut listener = Listener::new(Wants::default());
    listener.push(&agent.state(UnixMillis::new(0), A, "thinking", "awaiting_input"));
    listener.push(&agent.question(UnixMillis::new(1), A));
    let clarification = json!({
        "question": "Which?", "reply_token": format!("rpl_{:032x}", 8), "timeout_seconds": 60,
    });
    listener.push(&agent.says(UnixMillis::new(2), A, "awaiting.clarification", clarification.clone()));
    listener.push(&agent.state(UnixMillis::new(3), A, "awaiting_input", "thinking"));
    assert_eq!(listener.names(), ["state.changed", "state.changed"]);

    let mut able = Listener::new(rate(1));
    able.push(&agent.question(UnixMillis::new(4), A));
    able.push(&agent.says(UnixMillis::new(5), A, "awaiting.clarification", clarification));
    assert_eq!(able.names(), ["awaiting.confirmation", "awaiting.clarification"]);
}

#[test]
fn under_a_flood_a_question_comes_at_once_behind_the_state_that_leads_to_it() {
    let mut agent = Agent::default();
    let mut listener = Listener::new(rate(1));
    listener.now = START;
    listener.push(&agent.started(UnixMillis::new(0), B));
    listener.push(&agent.started(UnixMillis::new(0), A));
    listener.push(&agent.state(UnixMillis::new(0), A, "idle", "writing_output"));
    listener.push(&agent.chunk(UnixMillis::new(1), A, "I would do this now. Then", false));
    for percent in 0..40 {
        listener.push(&agent.progress(UnixMillis::new(2), B, percent));
    }
    listener.push(&agent.progress(UnixMillis::new(2), A, 50));
    listener.push(&agent.state(UnixMillis::new(3), A, "writing_output", "awaiting_input"));
    listener.now = START + 4;
    let question = agent.question(UnixMillis::new(4), A);
    listener.push(&question);
    assert_eq!(
        listener.names(),
        ["session.started", "session.started", "state.changed", "state.changed", "awaiting.confirmation"]
    );
    assert!(matches!(&listener.heard[4].out, Out::Same(same) if Arc::ptr_eq(same, &question)));
    listener.push(&agent.chunk(UnixMillis::new(5), A, " rest.", true));
    listener.finish();
    let text: String = listener.chunks().into_iter().map(|(text, ..)| text).collect();
    assert_eq!(text, "I would do this now. Then rest.");
    assert!(stamps(&listener, A).is_sorted(), "{:?}", stamps(&listener, A));
}

#[test]
fn nothing_follows_an_end_even_a_critical_one() {
    let mut agent = Agent::default();
    let mut listener = Listener::new(rate(1));
    listener.now = START;
    listener.push(&agent.started(UnixMillis::new(0), A));
    listener.push(&agent.state(UnixMillis::new(1), A, "idle", "writing_output"));
    listener.push(&agent.chunk(UnixMillis::new(2), A, "One. Two. Thr", false));
    listener.push(&agent.chunk(UnixMillis::new(3), A, "", true));
    listener.push(&agent.progress(UnixMillis::new(4), A, 10));
    listener.now = START + 5;
    let failed = json!({ "error_category": "unknown", "summary_normal": "Failed." });
    listener.push(&agent.says(UnixMillis::new(5), A, "session.errored", failed));
    assert_eq!(
        listener.names(),
        ["session.started", "state.changed", "output.streaming", "progress.updated", "session.errored"]
    );
    assert_eq!(errors(&listener.texts(), Face::Strict), [""; 0]);
}

#[test]
fn while_held_states_join_progress_is_replaced_and_tools_stay_as_they_are() {
    let mut agent = Agent::default();
    let mut listener = Listener::new(rate(1));
    listener.push(&agent.started(UnixMillis::new(0), A));
    listener.push(&agent.state(UnixMillis::new(1), A, "idle", "thinking"));
    listener.push(&agent.progress(UnixMillis::new(1), A, 10));
    listener.push(&agent.state(UnixMillis::new(2), A, "thinking", "calling_tool"));
    listener.push(&agent.progress(UnixMillis::new(3), A, 20));
    listener.push(&agent.tool(UnixMillis::new(4), A));
    listener.push(&agent.says(
        UnixMillis::new(5),
        A,
        "tool.completed",
        json!({ "tool": "search", "status": "success" }),
    ));
    listener.push(&agent.state(UnixMillis::new(6), A, "calling_tool", "thinking"));
    listener.push(&agent.state(UnixMillis::new(7), A, "thinking", "calling_tool"));
    listener.push(&agent.tool(UnixMillis::new(8), A));
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
    let joined = listener.heard[1].json();
    assert_eq!((&joined["from_state"], &joined["to_state"]), (&json!("idle"), &json!("calling_tool")));
    assert_eq!(listener.heard[2].json()["progress"]["percent"], 20);
    let times: Vec<_> = listener.heard.iter().map(|heard| heard.at).collect();
    assert_eq!(times, [0, 1000, 2000, 3000, 4000, 5000].map(UnixMillis::new));
}

#[test]
fn a_recording_of_what_was_held_keeps_the_rate_that_was_honored() {
    let (mut agent, mut listener) = (Agent::default(), Listener::new(rate(2)));
    listener.now = START;
    listener.push(&agent.started(UnixMillis::new(0), A));
    listener.push(&agent.state(UnixMillis::new(0), A, "idle", "calling_tool"));
    for _ in 0..20 {
        listener.push(&agent.tool(UnixMillis::new(0), A));
        let done = json!({ "tool": "search", "status": "success", "summary_normal": "Found." });
        listener.push(&agent.says(UnixMillis::new(0), A, "tool.completed", done));
    }
    listener.push(&agent.says(
        UnixMillis::new(0),
        A,
        "session.completed",
        json!({ "summary_normal": "Done." }),
    ));
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
    assert_eq!(listener.heard.len(), 43);
    assert_eq!(errors(&stream, Face::Strict), [""; 0]);
}

#[test]
fn changes_into_and_out_of_awaiting_input_and_resolutions_never_join() {
    let mut agent = Agent::default();
    let mut listener = Listener::new(rate(1));
    listener.push(&agent.started(UnixMillis::new(0), A));
    listener.push(&agent.state(UnixMillis::new(1), A, "idle", "thinking"));
    listener.push(&agent.state(UnixMillis::new(2), A, "thinking", "awaiting_input"));
    let resolved = json!({
        "@context": ["https://aaep-protocol.org/context/v1", "urn:sayso:context:v1"],
        "from_state": "thinking", "to_state": "deciding",
        "extensions": { "sayso": { "reply_token": format!("rpl_{:032x}", 77), "decision": "reject", "by": "timeout" } },
    });
    listener.push(&agent.state(UnixMillis::new(3), A, "awaiting_input", "thinking"));
    listener.push(&agent.says(UnixMillis::new(4), A, "state.changed", resolved));
    listener.push(&agent.state(UnixMillis::new(5), A, "deciding", "thinking"));
    listener.finish();
    assert_eq!(listener.heard.len(), 6);
}

#[test]
fn a_full_shaper_says_so_and_loses_nothing() {
    let limits = Limits { events: 10, ..Limits::default() };
    let (mut agent, mut listener) = (Agent::default(), Listener::within(rate(1), limits));
    for _ in 0..11 {
        listener.push(&agent.tool(UnixMillis::new(0), A));
    }
    assert!(!listener.shaper.is_full());
    listener.push(&agent.tool(UnixMillis::new(0), A));
    assert!(listener.shaper.is_full());
    listener.finish();
    assert_eq!(listener.heard.len(), 12);
}

#[test]
fn text_is_not_released_faster_than_the_pace() {
    let (mut agent, mut listener) =
        (Agent::default(), Listener::new(Wants { pace_wpm: Some(60), ..Wants::default() }));
    for _ in 0..30 {
        listener.push(&agent.chunk(UnixMillis::new(0), A, "Here are five words now. ", false));
    }
    listener.push(&agent.tool(UnixMillis::new(0), B));
    listener.push(&agent.chunk(UnixMillis::new(1), A, "", true));
    assert_eq!(listener.names(), ["output.streaming", "tool.invoked"], "only text waits");
    listener.finish();
    assert_eq!(listener.chunks().concat_text(), "Here are five words now. ".repeat(30));
    let mut spoken_until = UnixMillis::new(0);
    for heard in listener.heard.iter().filter(|heard| heard.chunk().is_some()) {
        assert!(heard.at >= spoken_until, "{} is before {spoken_until}", heard.at);
        let words = heard.chunk().unwrap().chunk.split_whitespace().count();
        spoken_until = heard.at + i64::try_from(words).unwrap() * 1000;
    }
    assert!(spoken_until >= UnixMillis::new(149_000), "150 words at 60 a minute");
}

#[test]
fn low_cognitive_load_hears_fewer_and_larger_announcements() {
    let run = |cognitive_load| {
        let (mut agent, mut listener) =
            (Agent::default(), Listener::new(Wants { cognitive_load, ..Wants::default() }));
        for second in 0..20 {
            listener.until(UnixMillis::new(second * 1000));
            listener.push(&agent.chunk(UnixMillis::new(second * 1000), A, "One more sentence. ", false));
            listener.push(&agent.progress(UnixMillis::new(second * 1000), A, second.unsigned_abs()));
        }
        listener.push(&agent.chunk(UnixMillis::new(20_000), A, "End.", true));
        listener.finish();
        assert_eq!(listener.chunks().concat_text(), format!("{}End.", "One more sentence. ".repeat(20)));
        listener.heard.len()
    };
    let (low, medium) = (run(CognitiveLoad::Low), run(CognitiveLoad::Medium));
    assert!(low * 3 < medium, "{low} against {medium}");
}

#[test]
fn low_cognitive_load_does_not_keep_a_tool_waiting() {
    let wants = Wants { cognitive_load: CognitiveLoad::Low, ..Wants::default() };
    let (mut agent, mut listener) = (Agent::default(), Listener::new(wants));
    listener.push(&agent.state(UnixMillis::new(0), A, "idle", "thinking"));
    listener.push(&agent.state(UnixMillis::new(0), A, "thinking", "calling_tool"));
    listener.push(&agent.tool(UnixMillis::new(0), A));
    assert_eq!(listener.names(), ["state.changed", "state.changed", "tool.invoked"]);
}

#[test]
fn the_wanted_verbosity_is_said_where_there_is_a_summary_for_it() {
    let (mut agent, mut listener) =
        (Agent::default(), Listener::new(Wants { verbosity: Verbosity::Terse, ..Wants::default() }));
    let both =
        json!({ "tool": "search", "summary_normal": "Searching the web.", "summary_terse": "Searching." });
    listener.push(&agent.says(UnixMillis::new(0), A, "tool.invoked", both));
    listener.push(&agent.tool(UnixMillis::new(0), A));
    let first = listener.heard[0].json();
    assert_eq!(
        (&first["verbosity"], &first["summary_normal"]),
        (&json!("terse"), &json!("Searching the web."))
    );
    assert!(matches!(listener.heard[1].out, Out::Same(_)), "it has no other words");
}

#[test]
fn the_first_wanted_language_that_an_event_is_whole_in_comes_first() {
    let variants = json!({
        "tool": "search", "summary_normal": "Searching.", "summary_normal_yo": "Mo ń wá a.", "summary_normal_ar": "أبحث.",
        "summary_normal_fr_ca": "Je cherche.", "description": "Finds things.", "description_yo": "Ó ń wá nǹkan.",
        "description_ar": "يبحث.", "localization_hints":
            { "primary_language": "en-US", "text_direction": "ltr", "script": "Latn", "fallback_chain": ["ar"] },
    });
    let heard = |languages: &[&str]| {
        let languages = languages.iter().map(ToString::to_string).collect();
        let (mut agent, mut listener) =
            (Agent::default(), Listener::new(Wants { languages, ..Wants::default() }));
        listener.push(&agent.says(UnixMillis::new(0), A, "tool.invoked", variants.clone()));
        let event = listener.heard[0].json();
        let texts = vec![listener.heard[0].event().to_json()];
        assert!(errors(&texts, Face::Strict).iter().all(|found| !found.contains("3.9")), "{texts:?}");
        event
    };
    let yoruba = heard(&["fr-CA", "yo-NG", "en"]);
    assert_eq!(yoruba["summary_normal"], "Mo ń wá a.");
    assert_eq!(yoruba["summary_normal_en_us"], "Searching.");
    assert_eq!(yoruba["description_en_us"], "Finds things.");
    assert_eq!(yoruba["localization_hints"]["primary_language"], "yo");
    assert_eq!(yoruba.get("summary_normal_yo"), None);
    let arabic = heard(&["sw"]);
    assert_eq!(arabic["localization_hints"]["primary_language"], "ar", "the event's fallback chain");
    assert_eq!(arabic["localization_hints"]["text_direction"], "rtl");
    assert_eq!(heard(&["en", "yo"])["localization_hints"]["primary_language"], "en-US");
}

/// One event as somebody hears who listens in Spanish.
fn in_spanish(kind: &str, payload: Value) -> Value {
    let wants = Wants { languages: vec!["es".to_owned()], clarifications: true, ..Wants::default() };
    let (mut agent, mut listener) = (Agent::default(), Listener::new(wants));
    listener.push(&agent.says(UnixMillis::new(0), A, kind, payload));
    listener.finish();
    listener.heard[0].json()
}

#[test]
fn choices_are_heard_in_the_language_of_the_question() {
    let mut question = json!({
        "question": "When?", "question_es": "¿Cuándo?", "reply_token": "rpl_4f8a2e7d9c1b6a3f", "timeout_seconds": 60,
        "choices": [{ "value": "now", "label": "At once" }, { "value": "later", "label": "Tomorrow" }],
        "choices_es": [{ "value": "now", "label": "Ahora mismo" }, { "value": "later", "label": "Mañana" }],
        "urgency": "critical", "localization_hints": { "primary_language": "en" },
    });
    let (english, spanish) = (question["choices"].clone(), question["choices_es"].clone());
    let heard = in_spanish("awaiting.clarification", question.clone());
    assert_eq!((&heard["question"], &heard["choices"]), (&json!("¿Cuándo?"), &spanish));
    assert_eq!((&heard["question_en"], &heard["choices_en"]), (&json!("When?"), &english));
    question.as_object_mut().unwrap().remove("choices_es");
    let heard = in_spanish("awaiting.clarification", question);
    assert_eq!(
        (&heard["question"], &heard["choices"]),
        (&json!("When?"), &english),
        "it is not whole in Spanish"
    );
}

#[test]
fn progress_is_described_in_the_language_of_its_summary() {
    let update = |description: &str| {
        json!({
            "summary_normal": "Reading.", "summary_normal_es": "Leyendo.", "progress": { "percent": 50, "description": description },
            "localization_hints": { "primary_language": "en" },
        })
    };
    let heard = in_spanish("progress.updated", update("Reading."));
    assert_eq!(heard["summary_normal"], "Leyendo.");
    assert_eq!(heard["progress"], json!({ "percent": 50, "description": "Leyendo." }));
    assert_eq!(heard["summary_normal_en"], "Reading.");
    let heard = in_spanish("progress.updated", update("Page 5."));
    assert_eq!(
        (&heard["summary_normal"], &heard["progress"]["description"]),
        (&json!("Reading."), &json!("Page 5."))
    );
}

#[test]
fn new_terms_hold_for_all_that_comes_after_them() {
    let (mut agent, mut listener) = (Agent::default(), Listener::new(cut_at(&[Boundary::Completion])));
    listener.push(&agent.chunk(UnixMillis::new(0), A, "One. Two. Thr", false));
    assert!(listener.heard.is_empty());
    listener.shaper.renegotiate(Arc::new(Wants::default()));
    listener.push(&agent.chunk(UnixMillis::new(1), A, "ee", false));
    assert_eq!(pieces(&listener), pairs(&[("One. ", "sentence"), ("Two. ", "sentence")]));
    listener.shaper.renegotiate(Arc::new(Wants { rate: Some(1), ..Wants::default() }));
    listener.push(&agent.chunk(UnixMillis::new(2), A, ".", true));
    listener.push(&agent.tool(UnixMillis::new(3), A));
    listener.push(&agent.tool(UnixMillis::new(4), A));
    listener.finish();
    assert_eq!(listener.chunks().concat_text(), "One. Two. Three.");
    assert!(listener.heard[2..].windows(2).all(|pair| pair[1].at - pair[0].at >= 1000));

    listener.shaper.renegotiate(Arc::new(cut_at(&[Boundary::None])));
    agent.position = 0;
    listener.push(&agent.chunk(UnixMillis::new(3), B, "uncut", false));
    assert_eq!(listener.heard.last().unwrap().chunk().unwrap().chunk, "uncut");

    let said = json!({ "tool": "search", "summary_normal": "Searching.", "summary_normal_yo": "Mo ń wá a.",
        "localization_hints": { "primary_language": "en-US" } });
    listener.shaper.renegotiate(Arc::new(Wants { languages: vec!["yo".to_owned()], ..Wants::default() }));
    listener.push(&agent.says(UnixMillis::new(4), B, "tool.invoked", said));
    assert_eq!(listener.heard.last().unwrap().json()["summary_normal"], "Mo ń wá a.", "also the language");
    listener.push(&agent.tool(UnixMillis::new(5), B));
    assert_eq!(listener.heard.len(), 8, "what is not to be had in it is heard all the same");
}

trait ConcatText {
    fn concat_text(&self) -> String;
}

impl ConcatText for Vec<(String, u64, String, bool)> {
    fn concat_text(&self) -> String {
        self.iter().map(|(text, ..)| text.as_str()).collect()
    }
}
