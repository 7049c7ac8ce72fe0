//! The hub in this process.

use std::collections::HashMap;
use std::time::Duration;

use hub::Principal;
use hub::command::{Answer, Command, Notice, RequestId};
use wire::{Bridge, Told as Heard};

use super::{Call, Line, Number, Told};
use crate::error::{Broken, Error, Stop};

/// So much may be told that was not taken; the desk takes at once.
const UNTOLD: usize = 65_536;

/// Listeners have so long to take what was said last.
const FAREWELL: Duration = Duration::from_secs(2);

pub(crate) struct Embedded {
    bridge: Bridge,
    line: wire::Line,
    who: Principal,
    numbers: HashMap<RequestId, Number>,
    /// Calls that the hub did not take: it is gone.
    untaken: Vec<Number>,
}

impl Embedded {
    pub(crate) fn new(bridge: &Bridge, who: Principal) -> Self {
        Self {
            bridge: bridge.clone(),
            line: bridge.line(UNTOLD),
            who,
            numbers: HashMap::new(),
            untaken: Vec::new(),
        }
    }
}

impl Line for Embedded {
    fn say(&mut self, number: Number, call: Call) {
        match self.line.ask(&self.who, command(call)) {
            Some(request) => drop(self.numbers.insert(request, number)),
            None => self.untaken.push(number),
        }
    }

    fn forget(&mut self, _: &str) {}

    async fn farewell(&mut self) {
        self.bridge.goodbye(FAREWELL).await;
    }

    async fn told(&mut self) -> Option<Told> {
        if let Some(number) = self.untaken.pop() {
            let gone = Error::Unreachable("the hub in this process has ended".to_owned());
            return Some(Told::Answer(number, Err(gone)));
        }
        loop {
            match self.line.told().await? {
                Heard::Answer(request, answer) => {
                    if let Some(number) = self.numbers.remove(&request) {
                        return Some(Told::Answer(number, result(answer)));
                    }
                }
                Heard::Notice(Notice::Resolved { token, outcome, .. }) => {
                    return Some(Told::Resolved { token, outcome });
                }
                Heard::Notice(Notice::Stopped { session, reason }) => {
                    return Some(Told::Stopped { session, reason: reason.to_owned() });
                }
                Heard::Notice(_) => {}
            }
        }
    }
}

/// No key: in one process an answer cannot get lost on its way.
fn command(call: Call) -> Command {
    match call {
        Call::Start { body } => Command::Start { text: body, key: None },
        Call::Events { session, events } => Command::Publish { session, events, key: None },
        Call::Output { session, output_id, text, complete } => {
            Command::Output { session, output_id: Some(output_id), text, complete, key: None }
        }
        Call::Withdraw { session, token } => Command::Withdraw { session, token },
        Call::Ask { session, body, clarify } => Command::Ask { session, text: body, clarify, key: None },
    }
}

fn result(answer: Answer) -> Result<String, Error> {
    Err(match answer {
        Answer::Made(json) | Answer::Found(json) => return Ok(json),
        Answer::Unlawful(findings) => Error::Unlawful(
            findings
                .iter()
                .map(|finding| Broken {
                    rule: finding.rule.id().to_owned(),
                    pointer: finding.pointer.clone(),
                    message: finding.message(),
                })
                .collect(),
        ),
        Answer::NotFound => Error::Stopped(Stop::Other),
        Answer::Forbidden => Error::NotAllowed,
        Answer::Full(what) => Error::TooMuch(what),
        Answer::Unavailable(why) => Error::NotStored(why),
        Answer::Bad(why) => Error::Malformed(why),
        other => Error::Malformed(format!("{other:?}")),
    })
}
