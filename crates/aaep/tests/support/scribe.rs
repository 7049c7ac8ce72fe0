//! Writes single events and replies, lawful by themselves. Times and numbers come later, when sessions are woven.

use serde_json::{Map, Value, json};

use super::choices::Choices;
use super::line::Line;
use super::words::{LANGUAGES, Language};

pub(crate) const CORE_CONTEXT: &str = "https://aaep-protocol.org/context/v1";
pub(crate) const OUR_CONTEXT: &str = "urn:sayso:context:v1";
/// The subscription over which all questions go out.
pub(crate) const SUBSCRIPTION: &str = "sub_5f0e2d7c9a1b4c3d8e6f7a8b9c0d1e2f";

pub(crate) type Members = Vec<(&'static str, Value)>;

/// Who speaks, in which session.
#[derive(Clone, Debug)]
pub(crate) struct Voice {
    pub(crate) session: String,
    pub(crate) agent: &'static str,
}

pub(crate) struct Scribe<'c> {
    pub(crate) choices: Choices<'c>,
    drawn: u64,
}

impl<'c> Scribe<'c> {
    pub(crate) fn new(bytes: &'c [u8]) -> Self {
        Self { choices: Choices::new(bytes), drawn: 0 }
    }

    /// An id that was never drawn before, and looks random.
    pub(crate) fn id(&mut self, prefix: &str) -> String {
        self.drawn += 1;
        format!("{prefix}{:016x}{:016x}", mixed(self.drawn), mixed(!self.drawn))
    }

    /// An event: the envelope, what its type says, and what our extension adds.
    pub(crate) fn event(&mut self, voice: &Voice, name: &str, payload: Members, ours: Option<Value>) -> Line {
        let language = self.choices.of(&LANGUAGES);
        let summaries = self.summaries(name, language);
        let payload = payload.into_iter().map(|(name, value)| (name, translated(value, language)));
        let extended = ours.is_some() || name.starts_with("sayso:");
        let mut line = Line::new([
            ("@context", if extended { json!([CORE_CONTEXT, OUR_CONTEXT]) } else { json!(CORE_CONTEXT) }),
            ("aaep_version", json!("1.0.0")),
            ("type", json!(name)),
            ("event_id", json!(self.id("evt_"))),
            ("session_id", json!(voice.session)),
            ("timestamp", Value::Null),
            ("producer", self.producer(voice.agent)),
            ("urgency", json!(self.urgency(name))),
        ]);
        for (name, value) in payload.chain(summaries) {
            line.set(name, value);
        }
        if line.names().any(|name| super::words::SPOKEN.contains(&name)) || line.has("progress") {
            line.set("localization_hints", language.hints(self.choices.flip()));
        }
        if self.choices.rarely(4) {
            line.set("verbosity", json!(self.choices.of(&["terse", "normal", "detailed"])));
        }
        if self.choices.rarely(4) {
            let id = self.id("trace-");
            line.set("correlation_id", json!(id));
        }
        if let Some(ours) = ours {
            line.set("extensions", json!({ "sayso": ours }));
        }
        line.escaped = self.choices.rarely(4);
        line
    }

    /// Two or three summaries; none where the type has none, and now and then none on a change of state.
    fn summaries(&mut self, name: &str, language: Language) -> Members {
        let silent = name == "aaep:agent.output.streaming"
            || name == "aaep:agent.state.changed" && self.choices.rarely(8);
        if silent {
            return Vec::new();
        }
        let sentence = json!(self.choices.of(&language.sentences));
        let mut summaries = vec![("summary_normal", sentence.clone()), ("summary_terse", sentence.clone())];
        if self.choices.rarely(3) {
            summaries.push(("summary_detailed", sentence));
        }
        summaries
    }

    fn producer(&mut self, agent: &str) -> Value {
        if self.choices.rarely(4) {
            json!({
                "agent_id": agent, "agent_version": "1.4.2", "agent_name": "Ìrànlọ́wọ́", "model": "m-2",
                "manifest_uri": "https://example.org/manifest.json",
            })
        } else {
            json!({ "agent_id": agent })
        }
    }

    fn urgency(&mut self, name: &str) -> &'static str {
        match name {
            "aaep:agent.session.errored"
            | "aaep:agent.awaiting.confirmation"
            | "aaep:agent.awaiting.clarification"
            | "aaep:agent.handoff.requested" => "critical",
            _ => self.choices.of(&["normal", "background"]),
        }
    }

    /// A reply, with what is optional now and then.
    pub(crate) fn reply(&mut self, name: &'static str, token: &str, said: (&'static str, Value)) -> Line {
        let mut line = Line::new([
            ("type", json!(name)),
            ("reply_token", json!(token)),
            said,
            ("subscription_id", json!(SUBSCRIPTION)),
            ("timestamp", Value::Null),
        ]);
        if self.choices.rarely(4) {
            line.set("decided_by", json!("user:folakẹ́"));
        }
        if self.choices.rarely(4) {
            let (member, value) = match name {
                "confirmation.reply" => ("decision_rationale", json!("Ó dára.")),
                _ => ("confidence", json!(0.75)),
            };
            line.set(member, value);
        }
        line.escaped = self.choices.rarely(4);
        line
    }
}

/// Stands for a sentence in whatever language the event turns out to be in.
pub(crate) fn sentence(which: usize) -> Value {
    json!({ "sentence": which })
}

/// Stands for a piece of one.
pub(crate) fn piece(which: usize) -> Value {
    json!({ "piece": which })
}

/// Fills in the language, also below lists and objects.
fn translated(value: Value, language: Language) -> Value {
    match value {
        Value::Object(object) => match (object.get("sentence"), object.get("piece")) {
            (Some(which), _) => json!(language.sentences[index(which)]),
            (_, Some(which)) => json!(language.pieces[index(which)]),
            _ => Value::Object(
                object
                    .into_iter()
                    .map(|(name, value)| (name, translated(value, language)))
                    .collect::<Map<_, _>>(),
            ),
        },
        Value::Array(items) => items.into_iter().map(|item| translated(item, language)).collect(),
        other => other,
    }
}

fn index(which: &Value) -> usize {
    which.as_u64().and_then(|which| usize::try_from(which).ok()).unwrap_or(0) % 3
}

/// The finalizer of splitmix64: neighbours become strangers.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
