//! Writes single events and replies that are valid by themselves. Timestamps and sequence numbers are set
//! later, when sessions are interleaved.

use serde_json::{Map, Value, json};

use super::byte_choices::RandomChoices;
use super::recording_line::RecordingLine;
use super::sample_texts::{LANGUAGES, SampleLanguage};

pub(crate) const CORE_CONTEXT: &str = "https://aaep-protocol.org/context/v1";
pub(crate) const OUR_CONTEXT: &str = "urn:sayso:context:v1";
/// The subscription that receives all questions.
pub(crate) const SUBSCRIPTION: &str = "sub_5f0e2d7c9a1b4c3d8e6f7a8b9c0d1e2f";

pub(crate) type PayloadFields = Vec<(&'static str, Value)>;

/// The producer of an event, and its session.
#[derive(Clone, Debug)]
pub(crate) struct ProducerIdentity {
    pub(crate) session: String,
    pub(crate) agent: &'static str,
}

pub(crate) struct EventWriter<'c> {
    pub(crate) choices: RandomChoices<'c>,
    ids_created: u64,
}

impl<'c> EventWriter<'c> {
    pub(crate) fn new(bytes: &'c [u8]) -> Self {
        Self { choices: RandomChoices::new(bytes), ids_created: 0 }
    }

    /// Returns a new id that looks random.
    pub(crate) fn id(&mut self, prefix: &str) -> String {
        self.ids_created += 1;
        format!("{prefix}{:016x}{:016x}", mix(self.ids_created), mix(!self.ids_created))
    }

    /// Writes an event: the envelope, the payload of its type, and the `sayso` extension.
    pub(crate) fn event(
        &mut self,
        identity: &ProducerIdentity,
        name: &str,
        payload: PayloadFields,
        sayso_extension: Option<Value>,
    ) -> RecordingLine {
        let language = self.choices.pick(&LANGUAGES);
        let summaries = self.summaries(name, language);
        let payload = payload.into_iter().map(|(name, value)| (name, translate(value, language)));
        let is_extended = sayso_extension.is_some() || name.starts_with("sayso:");
        let mut line = RecordingLine::new([
            ("@context", if is_extended { json!([CORE_CONTEXT, OUR_CONTEXT]) } else { json!(CORE_CONTEXT) }),
            ("aaep_version", json!("1.0.0")),
            ("type", json!(name)),
            ("event_id", json!(self.id("evt_"))),
            ("session_id", json!(identity.session)),
            ("timestamp", Value::Null),
            ("producer", self.producer(identity.agent)),
            ("urgency", json!(self.urgency(name))),
        ]);
        for (name, value) in payload.chain(summaries) {
            line.set(name, value);
        }
        if line.names().any(|name| super::sample_texts::SPOKEN_MEMBERS.contains(&name))
            || line.has("progress")
        {
            line.set("localization_hints", language.hints(self.choices.flip()));
        }
        if self.choices.one_in(4) {
            line.set("verbosity", json!(self.choices.pick(&["terse", "normal", "detailed"])));
        }
        if self.choices.one_in(4) {
            let id = self.id("trace-");
            line.set("correlation_id", json!(id));
        }
        if let Some(sayso_extension) = sayso_extension {
            line.set("extensions", json!({ "sayso": sayso_extension }));
        }
        line.escapes_non_ascii = self.choices.one_in(4);
        line
    }

    /// Returns two or three summaries. Types without summaries get none, and neither do some state changes.
    fn summaries(&mut self, name: &str, language: SampleLanguage) -> PayloadFields {
        let has_no_summary = name == "aaep:agent.output.streaming"
            || name == "aaep:agent.state.changed" && self.choices.one_in(8);
        if has_no_summary {
            return Vec::new();
        }
        let sentence = json!(self.choices.pick(&language.sentences));
        let mut summaries = vec![("summary_normal", sentence.clone()), ("summary_terse", sentence.clone())];
        if self.choices.one_in(3) {
            summaries.push(("summary_detailed", sentence));
        }
        summaries
    }

    fn producer(&mut self, agent: &str) -> Value {
        if self.choices.one_in(4) {
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
            _ => self.choices.pick(&["normal", "background"]),
        }
    }

    /// Writes a reply, sometimes with optional members.
    pub(crate) fn reply(
        &mut self,
        name: &'static str,
        token: &str,
        content: (&'static str, Value),
    ) -> RecordingLine {
        let mut line = RecordingLine::new([
            ("type", json!(name)),
            ("reply_token", json!(token)),
            content,
            ("subscription_id", json!(SUBSCRIPTION)),
            ("timestamp", Value::Null),
        ]);
        if self.choices.one_in(4) {
            line.set("decided_by", json!("user:folakẹ́"));
        }
        if self.choices.one_in(4) {
            let (member, value) = match name {
                "confirmation.reply" => ("decision_rationale", json!("Ó dára.")),
                _ => ("confidence", json!(0.75)),
            };
            line.set(member, value);
        }
        line.escapes_non_ascii = self.choices.one_in(4);
        line
    }
}

/// Returns a placeholder for a sentence in the language of the event.
pub(crate) fn sentence(number: usize) -> Value {
    json!({ "sentence": number })
}

/// Returns a placeholder for a sentence fragment in the language of the event.
pub(crate) fn fragment(number: usize) -> Value {
    json!({ "fragment": number })
}

/// Replaces placeholders with texts in the language, even inside arrays and objects.
fn translate(value: Value, language: SampleLanguage) -> Value {
    match value {
        Value::Object(object) => match (object.get("sentence"), object.get("fragment")) {
            (Some(index_value), _) => json!(language.sentences[index(index_value)]),
            (_, Some(index_value)) => json!(language.fragments[index(index_value)]),
            _ => Value::Object(
                object
                    .into_iter()
                    .map(|(name, value)| (name, translate(value, language)))
                    .collect::<Map<_, _>>(),
            ),
        },
        Value::Array(items) => items.into_iter().map(|item| translate(item, language)).collect(),
        other => other,
    }
}

fn index(number: &Value) -> usize {
    number.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or(0) % 3
}

/// The finalizer of splitmix64, which makes consecutive numbers look unrelated.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
