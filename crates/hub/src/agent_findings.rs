//! Findings in the terms of the agent API. The rules describe whole events; an agent sends only a part of an event, and has
//! members that no event has.

use aaep::event::EventType;
use aaep::json::Doc;
use aaep::rule::Finding;

/// The requirements of the agent API, for rules whose own sentence names members that the hub supplies.
const AGENT_SENTENCES: [(&str, &str); 6] = [
    ("AAEP-4.2.1-1", "agent.state.changed must have a to_state"),
    ("AAEP-4.2.1s-1", "a state must have 1 to 64 characters"),
    ("AAEP-4.3.1-1", "agent.tool.invoked must have a tool"),
    ("AAEP-4.3.1s-2", "tool_call_id must be a non-empty string, or a number"),
    ("AAEP-4.4.1-2", "a confirmation must have action, consequence, timeout_seconds and default_decision"),
    ("AAEP-4.4.2-1", "a clarification must have question and timeout_seconds"),
];

/// Returns the text of a finding for the agent whose request was refused: what was found, followed by what the agent API
/// requires. It never asks for a member that the hub supplies.
pub fn agent_message(finding: &Finding) -> String {
    let sentence = AGENT_SENTENCES.iter().find(|(id, _)| *id == finding.rule.id());
    let Some((_, sentence)) = sentence else { return finding.message() };
    if finding.actual.is_empty() { (*sentence).to_owned() } else { format!("{}; {sentence}", finding.actual) }
}

/// Returns the members that a request may have in addition to those of its event.
fn api_members(kind: &EventType) -> &'static [&'static str] {
    match kind {
        EventType::SessionStarted => &["producer", "producers", "parent", "states", "lease_seconds"],
        EventType::AwaitingConfirmation | EventType::AwaitingClarification => {
            &["tool", "tool_call_id", "arguments", "producer"]
        }
        EventType::ToolInvoked => &["arguments", "reply_token", "producer"],
        EventType::HandoffRequested => &["timeout_seconds"],
        _ => &["producer"],
    }
}

/// Leaves out findings about members that the hub would have supplied, if others were right. Suggests members of the agent
/// API for unknown members of a request.
pub(crate) fn adapt_to_request(findings: &mut Vec<Finding>, event: &Doc<'_>) {
    let is_supplied = |finding: &Finding| SUPPLIED.contains(&finding.actual.as_str());
    if !findings.iter().all(is_supplied) {
        findings.retain(|finding| !is_supplied(finding));
    }
    let Some(kind) = event.type_value().and_then(|kind| Some(EventType::parse(&kind.text()?))) else {
        return;
    };
    for finding in findings.iter_mut().filter(|finding| finding.actual.starts_with(UNKNOWN_MEMBER)) {
        let Some(name) = finding.pointer.strip_prefix('/').filter(|name| !name.contains('/')) else {
            continue;
        };
        let suggested = finding.actual.strip_prefix(SUGGESTION).and_then(|rest| rest.strip_suffix('?'));
        let known = api_members(&kind).iter().copied().chain(suggested);
        if let Some(closest) = seal::closest_name(name, known) {
            finding.actual = format!("{SUGGESTION}{closest}?");
        }
    }
}

const SUPPLIED: [&str; 2] = ["summary_normal is missing", "from_state is missing"];
const UNKNOWN_MEMBER: &str = "unknown member";
const SUGGESTION: &str = "unknown member; did you mean ";

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed test panics")]
mod tests {
    use aaep::rule::Rule;

    use super::*;

    #[test]
    fn every_sentence_belongs_to_a_rule_that_names_a_member_of_the_hub() {
        let supplied = ["reply_token", "from_state", "summary_normal", "call_ "];
        for (id, sentence) in AGENT_SENTENCES {
            let rule = Rule::find(id).unwrap();
            assert!(supplied.iter().any(|name| rule.sentence().contains(name)), "{id}: {}", rule.sentence());
            assert!(!supplied.iter().any(|name| sentence.contains(name)), "{sentence}");
        }
    }
}
