//! The comparisons: the same events as plain structs with derived `Deserialize`, and the `jsonschema` crate.

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

macro_rules! peers {
    ($($name:ident = $type:literal { $($(#[$attribute:meta])* $field:ident: $kind:ty,)* })*) => {
        $(
            #[derive(Deserialize)]
            #[allow(dead_code, reason = "the benchmark only parses the members")]
            struct $name {
                #[serde(rename = "@context")]
                context: String,
                aaep_version: Option<String>,
                r#type: String,
                event_id: String,
                session_id: String,
                sequence_number: Option<u64>,
                timestamp: String,
                producer: PeerProducer,
                verbosity: Option<String>,
                urgency: Option<String>,
                localization_hints: Option<LocalizationHints>,
                correlation_id: Option<String>,
                extensions: Option<Value>,
                $($(#[$attribute])* $field: $kind,)*
            }
        )*

        /// Returns the parser for the event type of a line. Chosen in advance, so that it is not measured.
        pub(super) fn parser_of(line: &str) -> fn(&str) {
            $(if line.contains(concat!("\"aaep:", $type, "\"")) {
                return |line| {
                    black_box(serde_json::from_str::<$name>(line).unwrap());
                };
            })*
            panic!("no peer for {line}")
        }
    };
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "the benchmark only parses the members")]
struct PeerProducer {
    agent_id: String,
    agent_version: Option<String>,
    agent_name: Option<String>,
    model: Option<String>,
    manifest_uri: Option<String>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "the benchmark only parses the members")]
struct LocalizationHints {
    primary_language: Option<String>,
    text_direction: Option<String>,
    available_languages: Option<Vec<String>>,
    fallback_chain: Option<Vec<String>>,
    script: Option<String>,
    calendar: Option<String>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "the benchmark only parses the members")]
struct PeerProgress {
    percent: Option<f64>,
    step: Option<u64>,
    total_steps: Option<u64>,
    description: Option<String>,
}

peers! {
    SessionStarted = "agent.session.started" {
        summary_normal: String,
        summary_terse: Option<String>,
        summary_detailed: Option<String>,
        expected_duration_ms: Option<u64>,
        requested_by: Option<String>,
        request_text: Option<String>,
        tools_available: Option<Vec<String>>,
    }
    SessionCompleted = "agent.session.completed" {
        summary_normal: String,
        summary_terse: Option<String>,
        summary_detailed: Option<String>,
        duration_ms: Option<u64>,
        tool_invocations_count: Option<u64>,
        output_summary: Option<String>,
        result_uri: Option<String>,
    }
    StateChanged = "agent.state.changed" {
        from_state: String,
        to_state: String,
        summary_terse: Option<String>,
        summary_normal: Option<String>,
        summary_detailed: Option<String>,
        expected_duration_ms: Option<u64>,
    }
    ProgressUpdated = "agent.progress.updated" {
        progress: PeerProgress,
        summary_terse: Option<String>,
        summary_normal: Option<String>,
        summary_detailed: Option<String>,
        eta_ms: Option<u64>,
    }
    ToolInvoked = "agent.tool.invoked" {
        tool: String,
        summary_normal: String,
        summary_terse: Option<String>,
        summary_detailed: Option<String>,
        description: Option<String>,
        args_summary: Option<String>,
        expected_duration_ms: Option<u64>,
        risk_level: Option<String>,
        irreversible: Option<bool>,
        tool_call_id: Option<String>,
    }
    ToolCompleted = "agent.tool.completed" {
        tool: String,
        status: String,
        summary_terse: Option<String>,
        summary_normal: Option<String>,
        summary_detailed: Option<String>,
        tool_call_id: Option<String>,
        duration_ms: Option<u64>,
        error_message: Option<String>,
    }
    OutputStreaming = "agent.output.streaming" {
        chunk: String,
        position: u64,
        complete: bool,
        coalesce_hint: Option<String>,
        output_id: Option<String>,
        content_type: Option<String>,
        language: Option<String>,
    }
    AwaitingConfirmation = "agent.awaiting.confirmation" {
        action: String,
        consequence: String,
        reply_token: String,
        timeout_seconds: u64,
        default_decision: String,
        summary_terse: Option<String>,
        summary_normal: Option<String>,
        summary_detailed: Option<String>,
        risk_level: Option<String>,
        irreversible: Option<bool>,
        reversibility: Option<String>,
        allowed_replies: Option<Vec<String>>,
        extra_context: Option<Value>,
    }
}

/// The schemas for the `jsonschema` crate: AAEP's published ones if they are beside the repository, otherwise generated ones.
pub(super) struct Schemas {
    pub(super) origin: &'static str,
    names: Vec<String>,
    validators: Vec<jsonschema::Validator>,
}

impl Schemas {
    pub(super) fn load() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/aaep/schemas");
        if folder.is_dir() { Self::published(&folder) } else { Self::generated() }
    }

    fn published(folder: &Path) -> Self {
        let read = |path: &Path| -> Value {
            serde_json::from_str(&std::fs::read_to_string(path).expect("a schema")).expect("JSON")
        };
        let envelope = read(&folder.join("envelope.schema.json"));
        let registry = jsonschema::Registry::new()
            .add("https://aaep-protocol.org/schemas/v1/envelope.schema.json", &envelope)
            .expect("the envelope's schema")
            .prepare()
            .expect("a registry");
        let mut names = Vec::new();
        let mut validators = Vec::new();
        for core in aaep::event::EventType::CORE {
            let name = core.as_str().trim_start_matches("aaep:").to_owned();
            let schema = read(&folder.join(format!("core/{name}.schema.json")));
            validators
                .push(jsonschema::options().with_registry(&registry).build(&schema).expect("a validator"));
            names.push(name);
        }
        Self { origin: "published by AAEP", names, validators }
    }

    fn generated() -> Self {
        let schemas = aaep::schema::all();
        let build = |schema: &aaep::schema::Schema| {
            let schema: Value = serde_json::from_str(&schema.text).expect("JSON");
            jsonschema::validator_for(&schema).expect("a validator")
        };
        let validators = schemas.iter().map(build).collect();
        Self {
            origin: "generated, because AAEP's own are not available",
            names: schemas.into_iter().map(|schema| schema.name).collect(),
            validators,
        }
    }

    pub(super) fn index_of(&self, line: &str) -> usize {
        let by_name: HashMap<_, _> =
            self.names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let start = line.find("\"aaep:").expect("a type") + 6;
        let name = line[start..].split('"').next().expect("a type");
        by_name[name]
    }

    pub(super) fn accepts(&self, index: usize, line: &str) -> bool {
        let value: Value = serde_json::from_str(line).unwrap();
        self.validators[index].is_valid(&value)
    }
}
