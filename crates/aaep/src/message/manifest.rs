//! The producer's manifest (§5.10): what an agent can do, for whoever wants to listen.

use crate::event::Verbosity;
use crate::message::handshake::VERSION;
use crate::record::{Shape, record};
use crate::rule;

record! {
    /// `aaep:producer.manifest` (§5.10.1). A document, never an event (C-F3); unknown members are allowed.
    Manifest {
        required {
            /// The agent's name for machines.
            agent_id: String, Shape::SOME, rule::MANIFEST, rule::MANIFEST;
            /// The versions of AAEP that it speaks.
            aaep_versions_supported: Vec<String>,
                Shape::List { of: &VERSION, min: 1, max: usize::MAX, unique: true, items: None },
                rule::MANIFEST_VERSIONS, rule::MANIFEST_VERSIONS;
            /// The levels that it claims.
            conformance_levels_supported: Vec<u64>,
                Shape::List { of: &Shape::Integer { min: 1, max: 3 }, min: 1, max: 3, unique: true, items: None },
                rule::MANIFEST, rule::MANIFEST;
            /// The ways in which it can be reached.
            transports_supported: Vec<String>,
                Shape::List { of: &Shape::SOME, min: 1, max: usize::MAX, unique: true, items: None },
                rule::MANIFEST, rule::MANIFEST;
        }
        optional {
            /// The agent's version.
            agent_version: String, Shape::SOME, rule::MANIFEST;
            /// The agent's name for people.
            agent_name: String, Shape::SOME, rule::MANIFEST;
            /// The languages that it speaks.
            languages_supported: Vec<String>,
                Shape::List { of: &Shape::Tag, min: 0, max: usize::MAX, unique: true, items: None }, rule::MANIFEST;
            /// The types that it emits, or beginnings of them.
            event_types_emitted: Vec<String>,
                Shape::List { of: &Shape::SOME, min: 0, max: usize::MAX, unique: true, items: None }, rule::MANIFEST;
            /// The extensions that it knows.
            extensions_supported: Vec<String>,
                Shape::List { of: &Shape::Uri, min: 0, max: usize::MAX, unique: true, items: None }, rule::MANIFEST;
            /// How much it says if nobody asks for more or less.
            default_verbosity: Verbosity, Shape::Word(Verbosity::WORDS), rule::MANIFEST;
            /// How many can listen at once.
            max_concurrent_subscriptions: u64, Shape::POSITIVE, rule::MANIFEST;
            /// Whom to ask.
            contact: String, Shape::ANY, rule::MANIFEST;
        }
    }
}
