//! Describes the terms that the hub granted. Reduced terms are accepted and announced (§9.5.2).

use aaep::message::Message;

use crate::{Phrases, Preferences};

/// The announcement about the terms, and the rate that was requested.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TermsSummary {
    pub(super) notices: Vec<String>,
    pub(super) requested_rate: Option<u64>,
}

/// Compares the accepted terms with the request and the person's preferences. If the hub explains its terms in notes, they are not
/// announced again.
pub(super) fn summarize_terms(
    request: &str,
    accepted: &str,
    preferences: &Preferences,
    phrases: &Phrases,
) -> TermsSummary {
    let (Some(Message::SubscriptionRequest(request)), Some(Message::SubscriptionAccepted(accepted))) =
        (Message::parse(request), Message::parse(accepted))
    else {
        return TermsSummary { notices: Vec::new(), requested_rate: preferences.max_events_per_second };
    };
    let requested_rate = request.capabilities.max_events_per_second;
    let honored = &accepted.honored_capabilities;
    let mut notices = Vec::new();
    if let Some(rate) = requested_rate.filter(|_| requested_rate != preferences.max_events_per_second) {
        notices.push(phrases.rate_lowered(rate));
    }
    if accepted.negotiation_notes.is_none() {
        if let Some(rate) = honored.max_events_per_second
            && requested_rate.is_none_or(|requested_rate| rate < requested_rate)
        {
            notices.push(phrases.rate_granted(rate));
        }
        let limits_questions = [honored.supports_confirmation_reply, honored.supports_clarification_reply]
            .contains(&Some(false));
        if limits_questions {
            notices.push(phrases.not_every_question.to_owned());
        }
    }
    TermsSummary { notices, requested_rate }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summarize_notices(rate: Option<u64>, capabilities: &str, honored: &str, notes: &str) -> Vec<String> {
        let request = format!(
            r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"me","capabilities":{capabilities}}}"#
        );
        let accepted = format!(
            r#"{{"type":"subscription.accepted","subscription_id":"sub_1","aaep_version":"1.0.0","producer":{{"agent_id":"a"}},"honored_capabilities":{honored}{notes}}}"#
        );
        summarize_terms(
            &request,
            &accepted,
            &Preferences { max_events_per_second: rate, ..Preferences::default() },
            Phrases::for_languages(&[]),
        )
        .notices
    }

    #[test]
    fn reduced_terms_are_announced_once() {
        let rate_notice = "The hub sends at most 3 events a second.";
        let capabilities = r#"{"max_events_per_second":5}"#;
        assert!(summarize_notices(Some(5), capabilities, capabilities, "").is_empty());
        assert!(summarize_notices(None, "{}", "{}", "").is_empty());
        assert_eq!(
            summarize_notices(Some(5), capabilities, r#"{"max_events_per_second":3}"#, ""),
            [rate_notice]
        );
        assert_eq!(summarize_notices(None, "{}", r#"{"max_events_per_second":3}"#, ""), [rate_notice]);
        assert!(
            summarize_notices(
                None,
                "{}",
                r#"{"max_events_per_second":3}"#,
                r#","negotiation_notes":"Three.""#
            )
            .is_empty()
        );
        assert_eq!(summarize_notices(None, "{}", r#"{"supports_confirmation_reply":false}"#, "").len(), 1);
        let slower = summarize_notices(Some(10), capabilities, capabilities, "");
        assert!(slower.len() == 1 && slower[0].contains("asked for at most 5 events a second"), "{slower:?}");
    }
}
