//! Every optional field of the twelve events is heard, or there is a reason why not. The fields come from the schemas, so a new
//! field fails the test until it is decided where a person hears it.

use std::collections::BTreeSet;

use super::*;

/// Where a person hears a field.
enum SpeechPlace {
    /// When the event arrives, at this verbosity.
    When(Verbosity, &'static str),
    /// On request, with `details`.
    Details(&'static str),
    /// On request, with `tools`.
    Tools(&'static str),
    /// The test does not look for the value, for this reason.
    NotCheckedHere(&'static str),
}

use SpeechPlace::{Details, NotCheckedHere, Tools, When};
use Verbosity::{Detailed, Normal, Terse};

/// Each optional field, a value, and where it is heard. `*` stands for every event.
const FIELDS: &[(&str, &str, SpeechPlace)] = &[
    ("*/aaep_version", r#""1.0.0""#, NotCheckedHere("describes the event, not the agent")),
    ("*/sequence_number", "7", NotCheckedHere("only a wrong order is reported")),
    ("*/verbosity", r#""normal""#, NotCheckedHere("says for which verbosity the texts are written")),
    ("*/urgency", r#""critical""#, NotCheckedHere("decides what is spoken first")),
    ("*/correlation_id", r#""trace-7""#, NotCheckedHere("links events for programs")),
    (
        "*/extensions",
        "{}",
        NotCheckedHere("what sayso knows of it is spoken: the exact call, states, outcomes"),
    ),
    ("*/localization_hints", "{}", NotCheckedHere("decides the voice and the direction")),
    ("*/localization_hints/primary_language", r#""es""#, NotCheckedHere("decides the voice")),
    (
        "*/localization_hints/text_direction",
        r#""rtl""#,
        NotCheckedHere("decides the direction of printed text"),
    ),
    ("*/localization_hints/available_languages", r#"["es"]"#, NotCheckedHere("the hub chooses the language")),
    ("*/localization_hints/fallback_chain", r#"["es"]"#, NotCheckedHere("the hub chooses the language")),
    ("*/localization_hints/script", r#""Latn""#, NotCheckedHere("the language tag decides the voice")),
    ("*/localization_hints/calendar", r#""gregory""#, NotCheckedHere("texts contain dates as words")),
    ("*/producer/agent_version", r#""1.4.2""#, Details("Version: 1.4.2.")),
    (
        "*/producer/agent_name",
        r#""Bank""#,
        NotCheckedHere("heard with the start of a session and each question"),
    ),
    ("*/producer/model", r#""a-model""#, Details("Model: a-model.")),
    (
        "*/producer/manifest_uri",
        r#""https://bank.example/m.json""#,
        Details("Its manifest is at: bank.example."),
    ),
    ("session.started/summary_terse", r#""Short.""#, When(Terse, "Short.")),
    ("session.started/summary_detailed", r#""Long.""#, When(Detailed, "Long.")),
    ("session.started/expected_duration_ms", "120000", When(Normal, "About 2 minutes.")),
    ("session.started/requested_by", r#""user:folake""#, Details("Requested by: folake.")),
    ("session.started/request_text", r#""Plan it.""#, Details("The request was: Plan it.")),
    (
        "session.started/tools_available",
        r#"["fetch_balance","draft"]"#,
        Tools("Bank has these tools: fetch balance, draft."),
    ),
    ("session.completed/summary_terse", r#""Short.""#, When(Terse, "Short.")),
    ("session.completed/summary_detailed", r#""Long.""#, When(Detailed, "Long.")),
    ("session.completed/duration_ms", "27579", When(Detailed, "It took 30 seconds.")),
    ("session.completed/tool_invocations_count", "4", When(Detailed, "It used 4 tools.")),
    ("session.completed/output_summary", r#""A plan.""#, When(Terse, "Result: A plan.")),
    (
        "session.completed/result_uri",
        r#""https://bank.example/1?token=x""#,
        When(Normal, "The full result is at: bank.example."),
    ),
    ("session.errored/summary_terse", r#""Short.""#, When(Terse, "Short.")),
    ("session.errored/summary_detailed", r#""Long.""#, When(Detailed, "Long.")),
    ("session.errored/error_code", r#""TOOL_TIMEOUT""#, When(Detailed, "Error code: TOOL_TIMEOUT.")),
    (
        "session.errored/error_uri",
        r#""https://bank.example/help""#,
        When(Normal, "There is help at: bank.example."),
    ),
    ("session.errored/recoverable", "true", When(Terse, "Trying again may work.")),
    ("session.errored/remediation_hint", r#""Wait.""#, When(Terse, "What you can do: Wait.")),
    ("session.cancelled/summary_terse", r#""Short.""#, When(Terse, "Short.")),
    ("session.cancelled/summary_detailed", r#""Long.""#, When(Detailed, "Long.")),
    (
        "session.cancelled/cancellation_reason",
        r#""user_pressed_escape""#,
        Details("Reason: user pressed escape."),
    ),
    ("session.cancelled/partial_result", r#""One page.""#, When(Normal, "Done so far: One page.")),
    ("state.changed/summary_terse", r#""Short.""#, When(Detailed, "Short.")),
    ("state.changed/summary_normal", r#""Reading.""#, When(Detailed, "Reading.")),
    ("state.changed/summary_detailed", r#""Long.""#, When(Detailed, "Long.")),
    ("state.changed/expected_duration_ms", "4000", When(Detailed, "About 4 seconds.")),
    ("progress.updated/summary_terse", r#""Short.""#, When(Terse, "Short.")),
    ("progress.updated/summary_normal", r#""Reading.""#, When(Normal, "Reading.")),
    ("progress.updated/summary_detailed", r#""Long.""#, When(Detailed, "Long.")),
    ("progress.updated/eta_ms", "12000", When(Normal, "About 12 seconds left.")),
    ("progress.updated/progress/percent", "60", When(Normal, "60 percent.")),
    ("progress.updated/progress/step", "3", When(Normal, "Step 3.")),
    ("progress.updated/progress/total_steps", "5", When(Normal, "Step 2 of 5.")),
    ("progress.updated/progress/description", r#""Reading.""#, When(Normal, "Reading.")),
    ("tool.invoked/summary_terse", r#""Short.""#, When(Terse, "Short.")),
    ("tool.invoked/summary_detailed", r#""Long.""#, When(Detailed, "Long.")),
    ("tool.invoked/description", r#""Reads balances.""#, Tools("look up: Reads balances.")),
    ("tool.invoked/args_summary", r#""account 7821""#, When(Detailed, "With: account 7821.")),
    ("tool.invoked/expected_duration_ms", "90000", When(Normal, "About 2 minutes.")),
    ("tool.invoked/risk_level", r#""high""#, When(Terse, "High risk.")),
    ("tool.invoked/irreversible", "true", When(Terse, "This cannot be undone.")),
    ("tool.invoked/tool_call_id", r#""call_1""#, NotCheckedHere("links a call to its result")),
    ("tool.completed/summary_terse", r#""Short.""#, When(Terse, "Short.")),
    ("tool.completed/summary_normal", r#""Read.""#, When(Normal, "Read.")),
    ("tool.completed/summary_detailed", r#""Long.""#, When(Detailed, "Long.")),
    ("tool.completed/tool_call_id", r#""call_1""#, NotCheckedHere("links a result to its call")),
    ("tool.completed/duration_ms", "1885", When(Detailed, "It took 2 seconds.")),
    ("tool.completed/error_message", r#""No answer.""#, When(Terse, "No answer.")),
    ("output.streaming/coalesce_hint", r#""sentence""#, NotCheckedHere("decides when the text is spoken")),
    ("output.streaming/output_id", r#""out_1""#, NotCheckedHere("tells outputs apart")),
    ("output.streaming/content_type", r#""image/png""#, When(Normal, "Bank sent data of type image/png.")),
    ("output.streaming/language", r#""es""#, NotCheckedHere("decides the voice")),
    ("awaiting.confirmation/summary_terse", r#""Approve euros?""#, Details("Approve euros?")),
    ("awaiting.confirmation/summary_normal", r#""Approve dollars?""#, Details("Approve dollars?")),
    ("awaiting.confirmation/summary_detailed", r#""Approve everything?""#, Details("Approve everything?")),
    ("awaiting.confirmation/risk_level", r#""medium""#, Details("Medium risk.")),
    ("awaiting.confirmation/irreversible", "true", When(Terse, "This cannot be undone.")),
    ("awaiting.confirmation/reversibility", r#""reversible_with_effort""#, Details("This is hard to undo.")),
    ("awaiting.confirmation/allowed_replies", r#"["reject"]"#, When(Normal, "Only no is accepted.")),
    (
        "awaiting.confirmation/extra_context",
        r#"{"new_balance":12,"fee":"none"}"#,
        Details("new balance 12, fee none"),
    ),
    ("awaiting.clarification/summary_terse", r#""Which euros?""#, Details("Which euros?")),
    ("awaiting.clarification/summary_normal", r#""Which dollars?""#, Details("Which dollars?")),
    ("awaiting.clarification/summary_detailed", r#""Which of all?""#, Details("Which of all?")),
    ("awaiting.clarification/accepted_response_kinds", r#"["numeric"]"#, When(Normal, "a number")),
    (
        "awaiting.clarification/choices",
        r#"[{"value":"a","label":"Ben Adams"},{"value":"b","label":"Ben Okri"}]"#,
        When(Terse, "Ben Okri"),
    ),
    ("awaiting.clarification/context", r#""There are two.""#, Details("There are two.")),
    ("awaiting.clarification/default_response", r#""Ben Adams""#, Details("Ben Adams")),
    ("handoff.requested/summary_terse", r#""Short.""#, When(Terse, "Short.")),
    ("handoff.requested/summary_normal", r#""To an advisor.""#, When(Normal, "To an advisor.")),
    ("handoff.requested/summary_detailed", r#""Long.""#, When(Detailed, "Long.")),
    ("handoff.requested/target_uri", r#""queue://service/advisor""#, Details("It goes to: service.")),
    (
        "handoff.requested/packaged_context",
        r#"{"order":17,"open":["refund"]}"#,
        Details("It passes on: order 17, open (refund)"),
    ),
    ("handoff.requested/urgency_for_handoff", r#""high""#, When(Terse, "It is urgent.")),
];

/// The required members of each event.
fn required_members(kind: &str) -> &'static str {
    match kind {
        "session.started" | "session.completed" => r#""summary_normal":"Base.""#,
        "session.errored" => r#""error_category":"unknown","summary_normal":"Base.""#,
        "session.cancelled" => r#""cancelled_by":"producer","summary_normal":"Base.""#,
        "state.changed" => r#""from_state":"idle","to_state":"deciding""#,
        "progress.updated" => r#""progress":{"step":2}"#,
        "tool.invoked" => r#""tool":"look_up","summary_normal":"Base.""#,
        "tool.completed" => r#""tool":"look_up","status":"error""#,
        "output.streaming" => r#""chunk":"Base.","position":0,"complete":true"#,
        "awaiting.confirmation" => {
            r#""action":"Send it.","consequence":"It is gone.","reply_token":"rpl_1","timeout_seconds":120,"default_decision":"reject""#
        }
        "awaiting.clarification" => r#""question":"Who is it?","reply_token":"rpl_1","timeout_seconds":120"#,
        "handoff.requested" => r#""reason":"Base.","target_kind":"human""#,
        other => panic!("{other}"),
    }
}

/// Returns the optional fields of the twelve events, such as `tool.invoked/args_summary`, from the schemas.
fn optional_fields() -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    for schema in aaep::schema::all() {
        if let Some(kind) = schema.name.strip_prefix("agent.") {
            let doc = aaep::json::OwnedDoc::read(&schema.text).unwrap();
            collect_optional(&doc.doc().root(), kind, &mut fields);
        }
    }
    fields
}

fn collect_optional(schema: &JsonValue<'_>, path: &str, fields: &mut BTreeSet<String>) {
    let is_required = |name: &str| {
        schema.member("required").is_some_and(|names| names.items().any(|required| required.is_text(name)))
    };
    for (name, property) in schema.member("properties").iter().flat_map(JsonValue::members) {
        let name = name.text().unwrap();
        let path = format!("{path}/{name}");
        collect_optional(&property, &path, fields);
        if !is_required(&name) {
            fields.insert(path);
        }
    }
}

fn matches_row(row: &str, field: &str) -> bool {
    row == field || row.strip_prefix("*/").is_some_and(|name| field.split_once('/').unwrap().1 == name)
}

/// Builds an event with a field, or without it.
fn event_with(harness: &mut SubscriberHarness, kind: &str, field: Option<(&str, &str)>) -> String {
    let members = required_members(kind).to_owned();
    let Some((name, value)) = field else { return harness.event(kind, &members) };
    match name.split_once('/') {
        Some(("producer", name)) => harness
            .event(kind, &members)
            .replace(r#""producer":{"#, &format!(r#""producer":{{"{name}":{value},"#)),
        Some(("progress", name)) => {
            let step = if name == "step" { "" } else { r#","step":2"# };
            harness.event(kind, &format!(r#""progress":{{"{name}":{value}{step}}}"#))
        }
        _ => harness.event(kind, &format!(r#"{members},"{name}":{value}"#)),
    }
}

/// Returns what a person hears about an event: when it arrives, with `details`, and with `tools`.
fn hear(kind: &str, field: Option<(&str, &str)>, verbosity: Verbosity) -> [String; 3] {
    let mut harness = SubscriberHarness::with(verbosity, SubscriberLimits::default());
    let event = event_with(&mut harness, kind, field);
    harness.subscriber.receive(&event, harness.now);
    let mut announced = harness.drain_lines();
    announced.extend(harness.advance(1000));
    let now = harness.now;
    let details =
        harness.subscriber.question_details(1, now).or_else(|| harness.subscriber.session_details(None, now));
    let details = details.map(|details| details.text.to_string()).unwrap_or_default();
    [announced.join("\n"), details, harness.subscriber.tools(None).text.to_string()]
}

#[test]
fn hostile_text_in_any_field_is_made_harmless() {
    let hostile = r#""x\u001b[2J\u202ey\nask: Question 9. Type yes.""#;
    let mut count = 0;
    for (row, value, _) in FIELDS {
        let (kind, name) = row.split_once('/').unwrap();
        let kind = if kind == "*" { "session.started" } else { kind };
        let is_text = value.starts_with('"');
        let value = match name {
            "tools_available" => format!("[{hostile}]"),
            "extra_context" | "packaged_context" => format!(r#"{{"note":{hostile},{hostile}:1}}"#),
            "choices" => format!(r#"[{{"value":"a","label":{hostile}}},{{"value":"b","label":"B"}}]"#),
            _ if is_text && !name.starts_with("localization_hints") => hostile.to_owned(),
            _ => continue,
        };
        count += 1;
        for verbosity in [Terse, Normal, Detailed] {
            for heard in hear(kind, Some((name, &value)), verbosity) {
                let is_harmless = !heard.contains(['\u{1b}', '\u{202e}'])
                    && heard
                        .lines()
                        .all(|line| !line.trim_start_matches("agent: ").starts_with("ask: Question 9"));
                assert!(is_harmless, "{row}: {heard:?}");
            }
        }
    }
    assert!(count > 50, "{count}");
}

#[test]
fn every_optional_field_is_heard_or_there_is_a_reason_why_not() {
    let fields = optional_fields();
    assert!(fields.len() > 200, "{}", fields.len());
    for field in &fields {
        let rows: Vec<_> = FIELDS.iter().filter(|(row, ..)| matches_row(row, field)).collect();
        let [(_, value, heard)] = rows[..] else {
            panic!("{field} has {} rows; say in FIELDS where a person hears it", rows.len());
        };
        let (kind, name) = field.split_once('/').unwrap();
        let (verbosity, place, text) = match heard {
            When(verbosity, text) => (verbosity.clone(), 0, *text),
            Details(text) => (Normal, 1, *text),
            Tools(text) => (Normal, 2, *text),
            NotCheckedHere(reason) => {
                assert!(!reason.is_empty());
                continue;
            }
        };
        let with = &hear(kind, Some((name, value)), verbosity.clone())[place];
        let without = &hear(kind, None, verbosity)[place];
        assert!(with.contains(text), "{field}: {text:?} is not in {with:?}");
        assert!(!without.contains(text), "{field}: {text:?} is heard anyway: {without:?}");
    }
    let unused: Vec<_> =
        FIELDS.iter().filter(|(row, ..)| !fields.iter().any(|field| matches_row(row, field))).collect();
    assert!(unused.is_empty(), "{:?}", unused.iter().map(|(row, ..)| row).collect::<Vec<_>>());
}
