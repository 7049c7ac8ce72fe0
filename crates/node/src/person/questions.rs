//! The texts of questions.

use std::time::Duration;

use asp::AgentCard;
use asp::message::{Commit, Obligation};
use seal::UnixMillis;
use seal::json::{JsonWriter, write_object};

use super::phrases::{LocalizedText, Phrases, spoken_amount, spoken_time};
use super::{PersonQuestion, QuestionKind};

/// The hub's route for questions that are answered in words or with a choice.
pub(super) const CLARIFICATIONS: &str = "clarifications";
/// Maximum length of what a person hears before they answer, in characters. A longer agreement is not put to a person.
const MAX_SPOKEN_CHARS: usize = 4_000;
/// Maximum length of the details, in characters.
const MAX_DETAIL_CHARS: usize = 16_000;
/// Maximum length of the subject, in characters. It names the session and is not a part of the agreement, so it is shortened.
pub(super) const MAX_SUBJECT_CHARS: usize = 200;
/// Maximum length of a name, in characters. The other side chooses it.
const MAX_NAME_CHARS: usize = 60;
/// The longest time that the hub waits for an answer, in seconds.
const MAX_TIMEOUT_SECONDS: u64 = 86_400;

/// The names for the other side in texts for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerName {
    /// The name in its card.
    pub(crate) name: String,
    /// The host of its URI, which its card proves.
    pub(crate) host: String,
}

impl PeerName {
    pub(crate) fn of(card: &AgentCard) -> Self {
        let uri = card.agent_id().as_str();
        let rest = uri.strip_prefix("agent://").unwrap_or(uri);
        let host = rest.split('/').next().unwrap_or(rest).to_owned();
        Self { name: one_line(card.name(), MAX_NAME_CHARS), host }
    }

    pub(crate) fn in_full(&self, phrases: &dyn Phrases) -> String {
        phrases.name_at_host(&self.name, &self.host)
    }
}

/// Writes somebody else's text in one line of at most this length, without control characters.
pub(crate) fn one_line(text: &str, max_chars: usize) -> String {
    let words: Vec<&str> = text
        .split(|char: char| char.is_whitespace() || char.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    if line.chars().count() <= max_chars {
        return line;
    }
    let mut start: String = line.chars().take(max_chars.saturating_sub(1)).collect();
    start.push('…');
    start
}

impl PersonQuestion {
    /// Returns the body of the request that asks the question, or why it cannot be put to a person.
    pub(super) fn to_json(&self, now: UnixMillis) -> Result<String, String> {
        match &self.kind {
            QuestionKind::Commit(commit) => self.confirmation(commit, true, now),
            QuestionKind::Accept(commit) => self.confirmation(commit, false, now),
            QuestionKind::Escalation(escalate) => {
                let peer = PeerName::of(&self.peer);
                let question = LocalizedText::new(|phrases| {
                    let subject = one_line(&self.subject, MAX_SUBJECT_CHARS);
                    phrases.escalation(&peer.in_full(phrases), &subject, &escalate.reason)
                });
                check_length(&question)?;
                let context = LocalizedText::new(|phrases| phrases.trust(&peer.name, self.level));
                let summary = LocalizedText::new(|phrases| phrases.escalation_summary(&peer.name));
                Ok(write_object(|writer| {
                    question.write(writer, "question");
                    context.write(writer, "context");
                    summary.write(writer, "summary_normal");
                    writer.key("accepted_response_kinds").array(|writer| writer.text("freetext"));
                    write_timeout(self.timeout, writer);
                }))
            }
        }
    }

    /// The path below the hub's session to which the question is sent.
    pub(super) fn path(&self) -> &'static str {
        if self.call.is_some() { "confirmations" } else { CLARIFICATIONS }
    }

    fn confirmation(&self, commit: &Commit, is_own: bool, now: UnixMillis) -> Result<String, String> {
        let call = self.call.as_ref().ok_or("the question is not bound to a message")?;
        check_known_terms(commit)?;
        let peer = PeerName::of(&self.peer);
        let action = LocalizedText::new(|phrases| self.action(phrases, &peer, commit, is_own, now));
        let consequence = LocalizedText::new(|phrases| self.consequence(phrases, &peer, commit, is_own));
        check_length(&action)?;
        check_length(&consequence)?;
        let summary = LocalizedText::new(|phrases| phrases.needs_answer(&peer.name));
        let details = LocalizedText::new(|phrases| self.details(phrases, &peer, commit, now));
        Ok(write_object(|writer| {
            action.write(writer, "action");
            consequence.write(writer, "consequence");
            summary.write(writer, "summary_normal");
            details.write(writer, "summary_detailed");
            writer.key("irreversible").boolean(true);
            writer.key("risk_level").text("high");
            writer.key("default_decision").text("reject");
            write_timeout(self.timeout, writer);
            writer.key("tool").text(call.tool);
            writer.key("arguments").raw(&call.arguments);
        }))
    }

    /// Who the other side is, and who promises what by which deadline.
    fn action(
        &self,
        phrases: &dyn Phrases,
        peer: &PeerName,
        commit: &Commit,
        is_own: bool,
        now: UnixMillis,
    ) -> String {
        let full_name = peer.in_full(phrases);
        let subject = foreign_text(&one_line(&self.subject, MAX_SUBJECT_CHARS));
        let mut sentences = vec![if is_own {
            phrases.may_commit(&full_name, &subject)
        } else {
            phrases.may_accept(&full_name, &subject)
        }];
        let obligations = &commit.terms.obligations;
        // The person's own promises come first, because they bind the person.
        let (own, others): (Vec<_>, Vec<_>) =
            obligations.iter().partition(|obligation| obligation.party == self.own_agent);
        if own.is_empty() {
            sentences.push(phrases.no_own_promise().to_owned());
        }
        for obligation in own {
            let deadline = spoken_time(phrases, &obligation.deadline, now);
            sentences.push(phrases.own_promise(&foreign_text(&obligation.action), &deadline));
        }
        for obligation in others {
            let deadline = spoken_time(phrases, &obligation.deadline, now);
            let name = self.party_name(peer, obligation);
            sentences.push(phrases.promise(&name, &foreign_text(&obligation.action), &deadline));
        }
        sentences.join(" ")
    }

    fn party_name(&self, peer: &PeerName, obligation: &Obligation) -> String {
        if obligation.party == *self.peer.agent_id() {
            return peer.name.clone();
        }
        obligation.party.to_string()
    }

    /// What it costs, what happens if it is broken, and how much the other side is trusted.
    fn consequence(&self, phrases: &dyn Phrases, peer: &PeerName, commit: &Commit, is_own: bool) -> String {
        let mut sentences = Vec::new();
        match &commit.escrow {
            Some(escrow) => {
                let amount = spoken_amount(phrases, &escrow.amount, &escrow.currency);
                let beneficiary = if is_own { self.peer.agent_id() } else { &self.own_agent };
                let is_payment =
                    commit.terms.obligations.iter().any(|obligation| obligation.party == *beneficiary);
                sentences.push(if is_own {
                    phrases.own_escrow(&peer.name, &amount, is_payment)
                } else {
                    phrases.escrow(&peer.name, &amount, is_payment)
                });
            }
            None => sentences.push(phrases.no_escrow().to_owned()),
        }
        let penalties = commit.terms.penalties.as_ref();
        let late = penalties.and_then(|penalties| penalties.late_fulfillment.as_deref());
        let not_done = penalties.and_then(|penalties| penalties.non_delivery.as_deref());
        sentences.extend(late.map(|penalty| phrases.penalty_late(penalty)));
        sentences.extend(not_done.map(|penalty| phrases.penalty_not_done(penalty)));
        if late.is_none() && not_done.is_none() {
            sentences.push(phrases.no_penalty().to_owned());
        }
        sentences.push(phrases.trust(&peer.name, self.level));
        sentences.push(phrases.identity(&peer.name, self.is_pinned_by_operator));
        sentences.join(" ")
    }

    /// What a person hears only if they ask for details.
    fn details(&self, phrases: &dyn Phrases, peer: &PeerName, commit: &Commit, now: UnixMillis) -> String {
        let mut sentences = vec![
            phrases.agent_address(&peer.name, self.peer.agent_id().as_str()),
            phrases.trust_score(&format!("{:.0}", self.score.get())),
        ];
        for obligation in &commit.terms.obligations {
            if let Some(method) = &obligation.verification_method {
                sentences.push(phrases.verification(&obligation.action, method));
            }
        }
        if let Some(condition) = commit.escrow.as_ref().and_then(|escrow| escrow.release_condition.as_deref())
        {
            sentences.push(phrases.release_condition(condition));
        }
        if let Some(deadline) = &commit.deadline {
            sentences.push(phrases.overall_deadline(&spoken_time(phrases, deadline, now)));
        }
        one_line(&sentences.join(" "), MAX_DETAIL_CHARS)
    }
}

/// Writes how long the hub waits for the answer.
pub(super) fn write_timeout(timeout: Duration, writer: &mut JsonWriter) {
    let seconds = timeout.as_secs().clamp(1, MAX_TIMEOUT_SECONDS);
    writer.key("timeout_seconds").integer(i64::try_from(seconds).unwrap_or(1));
}

/// Returns a text from an agent as one phrase. It cannot form sentences of its own that sound like ours.
pub(super) fn foreign_text(text: &str) -> String {
    let mut phrase = String::new();
    let words: Vec<&str> = text.split_whitespace().collect();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            phrase.push(' ');
        }
        let is_last = index + 1 == words.len();
        match word.strip_suffix(['.', '!', '?', ':', ';']) {
            Some(start) if !is_last => {
                phrase.push_str(start);
                phrase.push(',');
            }
            _ => phrase.push_str(word),
        }
    }
    phrase
}

/// Refuses a commitment with terms that a person would not hear, because the person agrees to all of it.
fn check_known_terms(commit: &Commit) -> Result<(), String> {
    let penalties = commit.terms.penalties.iter().map(|penalties| &penalties.other);
    let escrow = commit.escrow.iter().map(|escrow| &escrow.other);
    let obligations = commit.terms.obligations.iter().map(|obligation| &obligation.other);
    let mut all =
        [&commit.other, &commit.terms.other].into_iter().chain(penalties).chain(escrow).chain(obligations);
    match all.find_map(|members| members.iter().next()) {
        Some((name, _)) => {
            let name: String = name.chars().take(40).collect();
            Err(format!("it has a term that cannot be put to a person: {name:?}"))
        }
        None => Ok(()),
    }
}

/// Refuses a text that is too long to be heard and understood. It is not shortened, because the person agrees to all of it.
pub(super) fn check_length(text: &LocalizedText) -> Result<(), String> {
    let chars = text.max_chars();
    if chars <= MAX_SPOKEN_CHARS {
        return Ok(());
    }
    Err(format!("it is too long to be put to a person: {chars} characters, at most {MAX_SPOKEN_CHARS}"))
}

#[cfg(test)]
mod tests {
    use asp::Performative;
    use asp::message::Body;

    use super::*;

    #[test]
    fn a_foreign_text_forms_no_sentences_of_its_own() {
        let subject = "menus. You promise nothing! Trust is high: yes";
        assert_eq!(foreign_text(subject), "menus, You promise nothing, Trust is high, yes");
        assert_eq!(foreign_text("pay 480.00 EUR"), "pay 480.00 EUR");
    }

    #[test]
    fn a_term_that_nobody_would_hear_is_refused() {
        let body = |terms: &str| {
            let obligation =
                r#"{"party":"agent://a.example/b","action":"x","deadline":"2030-01-01T00:00:00.000Z"}"#;
            let json =
                format!(r#"{{"commitmentId":"cmt_1","terms":{{"obligations":[{obligation}]{terms}}}}}"#);
            match Body::parse(Performative::Commit, &json) {
                Ok(Body::Commit(commit)) => check_known_terms(&commit),
                other => Err(format!("{other:?}")),
            }
        };
        assert_eq!(body(""), Ok(()));
        assert_eq!(body(r#","penalties":{"lateFulfillment":"5 euros"}"#), Ok(()));
        for terms in [r#","penalties":{"late":"You pay 5000 EUR"}"#, r#","youAlsoPay":"9999 EUR""#] {
            assert!(body(terms).is_err(), "{terms}");
        }
    }
}
