//! Checks that the hub never writes forbidden entries to the journal.

use std::collections::{HashMap, HashSet};

use seal::UnixMillis;

use crate::support::{FaultyJournal, RecordedEntry, text_member};

#[derive(Default)]
pub(crate) struct LedgerChecker {
    /// Every event in order: position, id, body.
    pub(crate) events: Vec<(u64, String, String)>,
    pub(crate) questions: HashMap<String, LedgerQuestion>,
    /// Tokens that an entitled listener accepted in time.
    pub(crate) accepts: HashSet<String>,
    pub(crate) attempts: usize,
    pub(crate) decisions: usize,
    pub(crate) spent: usize,
}

pub(crate) struct LedgerQuestion {
    pub(crate) session: String,
    pub(crate) deadline: UnixMillis,
    pub(crate) decision: Option<(String, String)>,
    digest: Option<String>,
    is_spent: bool,
}

impl LedgerChecker {
    pub(crate) fn check_writes(&mut self, disk: &FaultyJournal) {
        let mut batch = Vec::new();
        for entry in disk.take_written() {
            if entry == RecordedEntry::BatchEnd {
                self.check_batch(&std::mem::take(&mut batch));
            } else {
                batch.push(entry);
            }
        }
        assert!(batch.is_empty());
    }

    fn check_batch(&mut self, batch: &[RecordedEntry]) {
        let mut calls = Vec::new();
        let mut spent = Vec::new();
        for entry in batch {
            match entry {
                RecordedEntry::Event { position, id, body } => {
                    let last = self.events.last().map_or(0, |(position, ..)| *position);
                    assert_eq!(*position, last + 1, "positions have no gaps");
                    if body.contains("agent.awaiting.confirmation") {
                        let digest = digest_of(body);
                        let session = text_member(body, "session_id");
                        let question = LedgerQuestion {
                            session,
                            deadline: UnixMillis::new(0),
                            decision: None,
                            digest,
                            is_spent: false,
                        };
                        self.questions.insert(text_member(body, "reply_token"), question);
                    } else if body.contains("agent.awaiting.clarification") {
                        let session = text_member(body, "session_id");
                        let question = LedgerQuestion {
                            session,
                            deadline: UnixMillis::new(0),
                            decision: None,
                            digest: None,
                            is_spent: false,
                        };
                        self.questions.insert(text_member(body, "reply_token"), question);
                    } else if body.contains("agent.tool.invoked") && body.contains(r#""irreversible":true"#) {
                        calls.push(digest_of(body).expect("a bound call"));
                    }
                    self.events.push((*position, id.clone(), body.clone()));
                }
                RecordedEntry::QuestionOpened { token, deadline }
                | RecordedEntry::DeadlineMoved { token, deadline } => {
                    self.questions.get_mut(token).expect("a known question").deadline = *deadline;
                }
                RecordedEntry::QuestionDecided { token, decision, by } => {
                    self.decisions += 1;
                    let question = self.questions.get_mut(token).expect("a known question");
                    assert_eq!(question.decision, None, "a question is decided once");
                    question.decision = Some((decision.clone(), by.clone()));
                    if decision == "accept" {
                        assert!(by == "reply" && self.accepts.contains(token), "nobody accepted: {by}");
                    }
                }
                RecordedEntry::DecisionSpent { token, call } => {
                    self.spent += 1;
                    let question = self.questions.get_mut(token).expect("a known question");
                    assert_eq!(question.decision.as_ref().map(|(decision, _)| &**decision), Some("accept"));
                    assert!(!std::mem::replace(&mut question.is_spent, true), "a consent is spent once");
                    assert_eq!(
                        question.digest.as_deref(),
                        Some(call.as_str()),
                        "the consent is spent on the confirmed call"
                    );
                    spent.push(call.clone());
                }
                RecordedEntry::ReplyAttempted { .. } => self.attempts += 1,
                RecordedEntry::BatchEnd => {}
            }
        }
        calls.sort();
        spent.sort();
        assert_eq!(calls, spent, "every irreversible call spends its consent in the same transaction");
    }
}

fn digest_of(body: &str) -> Option<String> {
    let mut tape = aaep::json::Tape::default();
    let doc = tape.read(body).unwrap();
    let extensions = doc.root().member("extensions")?;
    Some(extensions.member("sayso")?.member("action_digest")?.text()?.into_owned())
}
