//! Watches the disk: what must never be written, however things came about.

use std::collections::{HashMap, HashSet};

use seal::UnixMillis;

use crate::support::{Disk, Seen, text_of};

#[derive(Default)]
pub(crate) struct Ledger {
    /// Every event, in order: position, id, body.
    pub(crate) events: Vec<(u64, String, String)>,
    pub(crate) questions: HashMap<String, Asked>,
    /// Tokens to which somebody who may has said accept, in time.
    pub(crate) accepts: HashSet<String>,
    pub(crate) attempts: usize,
    pub(crate) decided: usize,
    pub(crate) spent: usize,
}

pub(crate) struct Asked {
    pub(crate) session: String,
    pub(crate) deadline: UnixMillis,
    pub(crate) decision: Option<(String, String)>,
    digest: Option<String>,
    spent: bool,
}

impl Ledger {
    pub(crate) fn watch(&mut self, disk: &Disk) {
        let mut batch = Vec::new();
        for seen in disk.seen() {
            if seen == Seen::Batch {
                self.batch(&std::mem::take(&mut batch));
            } else {
                batch.push(seen);
            }
        }
        assert!(batch.is_empty());
    }

    fn batch(&mut self, batch: &[Seen]) {
        let mut calls = Vec::new();
        let mut spent = Vec::new();
        for seen in batch {
            match seen {
                Seen::Event { position, id, body } => {
                    let last = self.events.last().map_or(0, |(position, ..)| *position);
                    assert_eq!(*position, last + 1, "no event is lost");
                    if body.contains("agent.awaiting.confirmation") {
                        let digest = digest_of(body);
                        let session = text_of(body, "session_id");
                        let asked = Asked {
                            session,
                            deadline: UnixMillis::new(0),
                            decision: None,
                            digest,
                            spent: false,
                        };
                        self.questions.insert(text_of(body, "reply_token"), asked);
                    } else if body.contains("agent.awaiting.clarification") {
                        let session = text_of(body, "session_id");
                        let asked = Asked {
                            session,
                            deadline: UnixMillis::new(0),
                            decision: None,
                            digest: None,
                            spent: false,
                        };
                        self.questions.insert(text_of(body, "reply_token"), asked);
                    } else if body.contains("agent.tool.invoked") && body.contains(r#""irreversible":true"#) {
                        calls.push(digest_of(body).expect("a call is bound"));
                    }
                    self.events.push((*position, id.clone(), body.clone()));
                }
                Seen::Asked { token, deadline } | Seen::Moved { token, deadline } => {
                    self.questions.get_mut(token).expect("asked").deadline = *deadline;
                }
                Seen::Decided { token, decision, by } => {
                    self.decided += 1;
                    let asked = self.questions.get_mut(token).expect("asked");
                    assert_eq!(asked.decision, None, "decided once");
                    asked.decision = Some((decision.clone(), by.clone()));
                    if decision == "accept" {
                        assert!(by == "reply" && self.accepts.contains(token), "nobody accepted: {by}");
                    }
                }
                Seen::Spent { token, call } => {
                    self.spent += 1;
                    let asked = self.questions.get_mut(token).expect("asked");
                    assert_eq!(asked.decision.as_ref().map(|(decision, _)| &**decision), Some("accept"));
                    assert!(!std::mem::replace(&mut asked.spent, true), "spent once");
                    assert_eq!(asked.digest.as_deref(), Some(call.as_str()), "for what was asked");
                    spent.push(call.clone());
                }
                Seen::Attempt { .. } => self.attempts += 1,
                Seen::Batch => {}
            }
        }
        calls.sort();
        spent.sort();
        assert_eq!(calls, spent, "every irreversible call has its consent, and in the same transaction");
    }
}

fn digest_of(body: &str) -> Option<String> {
    let mut tape = aaep::json::Tape::default();
    let doc = tape.read(body).unwrap();
    let extensions = doc.root().member("extensions")?;
    Some(extensions.member("sayso")?.member("action_digest")?.text()?.into_owned())
}
