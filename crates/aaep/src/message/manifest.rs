//! The producer's manifest (§5.10): the capabilities of an agent.

use crate::event::Verbosity;
use crate::message::handshake::VERSION;
use crate::record::{FieldType, record};
use crate::rule;

record! {
    /// `aaep:producer.manifest` (§5.10.1). It is a document, never an event (C-F3). Unknown members
    /// are allowed.
    Manifest {
        required {
            /// The agent's machine-readable name.
            agent_id: String, FieldType::NON_EMPTY_TEXT, rule::MANIFEST, rule::MANIFEST;
            /// The supported AAEP versions.
            aaep_versions_supported: Vec<String>,
                FieldType::List { item: &VERSION, min: 1, max: usize::MAX, unique: true, item_rule: None },
                rule::MANIFEST_VERSIONS, rule::MANIFEST_VERSIONS;
            /// The conformance levels that the agent claims.
            conformance_levels_supported: Vec<u64>,
                FieldType::List { item: &FieldType::Integer { min: 1, max: 3 }, min: 1, max: 3, unique: true, item_rule: None },
                rule::MANIFEST, rule::MANIFEST;
            /// The supported transports.
            transports_supported: Vec<String>,
                FieldType::List { item: &FieldType::NON_EMPTY_TEXT, min: 1, max: usize::MAX, unique: true, item_rule: None },
                rule::MANIFEST, rule::MANIFEST;
        }
        optional {
            /// The agent's version.
            agent_version: String, FieldType::NON_EMPTY_TEXT, rule::MANIFEST;
            /// The agent's display name.
            agent_name: String, FieldType::NON_EMPTY_TEXT, rule::MANIFEST;
            /// The supported languages.
            languages_supported: Vec<String>,
                FieldType::List { item: &FieldType::LanguageTag, min: 0, max: usize::MAX, unique: true, item_rule: None }, rule::MANIFEST;
            /// The event types that the agent emits, or prefixes of types.
            event_types_emitted: Vec<String>,
                FieldType::List { item: &FieldType::NON_EMPTY_TEXT, min: 0, max: usize::MAX, unique: true, item_rule: None }, rule::MANIFEST;
            /// The supported extensions.
            extensions_supported: Vec<String>,
                FieldType::List { item: &FieldType::Uri, min: 0, max: usize::MAX, unique: true, item_rule: None }, rule::MANIFEST;
            /// The verbosity for subscribers without a preference.
            default_verbosity: Verbosity, FieldType::Enum(Verbosity::VALUES), rule::MANIFEST;
            /// The maximum number of concurrent subscriptions.
            max_concurrent_subscriptions: u64, FieldType::POSITIVE, rule::MANIFEST;
            /// Contact information.
            contact: String, FieldType::ANY_TEXT, rule::MANIFEST;
        }
    }
}
