//! What a hub gives of what it was asked for. Less is taken as it is, and said (§9.5.2).

use aaep::message::Message;

use crate::{Phrases, Tastes};

/// What follows from terms.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) notices: Vec<String>,
    pub(super) rate: Option<u64>,
}

/// What is said of the terms that a request was answered with, to one with these wishes. What the hub itself gives notes
/// of is not said twice.
pub(super) fn told(request: &str, accepted: &str, tastes: &Tastes, phrases: &Phrases) -> Told {
    let (Some(Message::SubscriptionRequest(request)), Some(Message::SubscriptionAccepted(accepted))) =
        (Message::parse(request), Message::parse(accepted))
    else {
        return Told { notices: Vec::new(), rate: tastes.rate };
    };
    let asked = request.capabilities.max_events_per_second;
    let honored = &accepted.honored_capabilities;
    let mut notices = Vec::new();
    if let Some(rate) = asked.filter(|_| asked != tastes.rate) {
        notices.push(phrases.rate_lowered(rate));
    }
    if accepted.negotiation_notes.is_none() {
        if let Some(rate) = honored.max_events_per_second
            && asked.is_none_or(|asked| rate < asked)
        {
            notices.push(phrases.rate_given(rate));
        }
        let questions = [honored.supports_confirmation_reply, honored.supports_clarification_reply]
            .contains(&Some(false));
        if questions {
            notices.push(phrases.not_every_question.to_owned());
        }
    }
    Told { notices, rate: asked }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notices(rate: Option<u64>, wish: &str, honored: &str, notes: &str) -> Vec<String> {
        let request = format!(
            r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"me","capabilities":{wish}}}"#
        );
        let accepted = format!(
            r#"{{"type":"subscription.accepted","subscription_id":"sub_1","aaep_version":"1.0.0","producer":{{"agent_id":"a"}},"honored_capabilities":{honored}{notes}}}"#
        );
        told(&request, &accepted, &Tastes { rate, ..Tastes::default() }, Phrases::of(&[])).notices
    }

    #[test]
    fn what_is_less_than_was_wished_for_is_said_once() {
        let gives = "The hub gives 3 events in a second at most.";
        let wish = r#"{"max_events_per_second":5}"#;
        assert!(notices(Some(5), wish, wish, "").is_empty());
        assert!(notices(None, "{}", "{}", "").is_empty());
        assert_eq!(notices(Some(5), wish, r#"{"max_events_per_second":3}"#, ""), [gives]);
        assert_eq!(notices(None, "{}", r#"{"max_events_per_second":3}"#, ""), [gives]);
        assert!(
            notices(None, "{}", r#"{"max_events_per_second":3}"#, r#","negotiation_notes":"Three.""#)
                .is_empty()
        );
        assert_eq!(notices(None, "{}", r#"{"supports_confirmation_reply":false}"#, "").len(), 1);
        let slower = notices(Some(10), wish, wish, "");
        assert!(slower.len() == 1 && slower[0].contains("asked for 5 events in a second"), "{slower:?}");
    }
}
