//! The offer that a producer makes to one subscriber, or that a hub makes for its producers.

use crate::check::SAYSO_EXTENSION;
use crate::event::{CoalesceHint, Producer, is_in_core_namespace};
use crate::grammar::{is_compact_jws, is_prefix, is_reserved_prefix, is_uri};
use crate::message::{Boundary, Capabilities, ConformanceLevel};

/// The capabilities that are offered to one subscriber. For each capability, the subscriber gets the
/// narrower of the requested and the offered value.
///
/// ```
/// use aaep::{event::Producer, negotiate::Offer};
/// let mut offer = Offer::new(Producer::new("bank"));
/// offer.languages = vec!["yo".to_owned(), "en-US".to_owned()];
/// offer.max_events_per_second = Some(50);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Offer {
    /// The producer of the events (§5.4).
    pub producer: Producer,
    /// The supported AAEP versions.
    pub versions: Vec<String>,
    /// The available languages; empty if they are not known in advance and any language may occur.
    pub languages: Vec<String>,
    /// The supported conformance levels (§9).
    pub levels: Vec<ConformanceLevel>,
    /// The boundaries at which output can be split. Completion is always possible (C-B13).
    pub boundaries: Vec<Boundary>,
    /// The supported extensions.
    pub extensions: Vec<Extension>,
    /// The maximum number of events per second for each subscriber.
    pub max_events_per_second: Option<u64>,
    /// Whether this subscriber may answer confirmations. An observer may not.
    pub answers_confirmations: bool,
    /// Whether this subscriber may answer clarifications.
    pub answers_clarifications: bool,
    /// The URI of the manifest.
    pub manifest_uri: Option<String>,
    /// The signed manifest as a compact JWS (§10.4).
    pub signed_manifest: Option<String>,
}

impl Offer {
    /// Creates an offer without limits: everything in AAEP 1.0.0, the right to answer, and sayso's
    /// own extension.
    pub fn new(producer: Producer) -> Self {
        Self {
            producer,
            versions: vec!["1.0.0".to_owned()],
            languages: Vec::new(),
            levels: vec![1, 2, 3],
            boundaries: ALL_BOUNDARIES.to_vec(),
            extensions: vec![Extension { uri: SAYSO_EXTENSION.1.into(), prefix: SAYSO_EXTENSION.0.into() }],
            max_events_per_second: None,
            answers_confirmations: true,
            answers_clarifications: true,
            manifest_uri: None,
            signed_manifest: None,
        }
    }

    /// Returns the signed manifest, if it has the form of a compact JWS.
    pub(super) fn well_formed_signed_manifest(&self) -> Option<&str> {
        self.signed_manifest.as_deref().filter(|text| is_compact_jws(text))
    }
}

/// All boundaries from the finest to the coarsest.
pub(super) const ALL_BOUNDARIES: [Boundary; 5] = [
    CoalesceHint::None,
    CoalesceHint::Word,
    CoalesceHint::Sentence,
    CoalesceHint::Paragraph,
    CoalesceHint::Completion,
];

/// An extension (§7.3). Subscribers request it by its URI, and its data is under its prefix (C-G7,
/// C-G8).
///
/// ```
/// use aaep::negotiate::Extension;
/// let medai = Extension::new("https://example.org/medai/v1", "medai").unwrap();
/// assert_eq!(medai.prefix(), "medai");
/// assert!(Extension::new("https://example.org/rdf/v1", "rdf").is_none());
/// assert!(Extension::new("https://aaep-protocol.org/types/medical/v1", "medai").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extension {
    uri: Box<str>,
    prefix: Box<str>,
}

impl Extension {
    /// Creates an extension. Returns `None` if the URI or the prefix is invalid, the URI is in the
    /// namespace of AAEP (§7.2), or the prefix is reserved (§7.3.2) or the name of a capability.
    pub fn new(uri: &str, prefix: &str) -> Option<Self> {
        let is_valid = is_uri(uri)
            && !is_in_core_namespace(uri)
            && is_prefix(prefix)
            && !is_reserved_prefix(prefix)
            && Capabilities::FIELDS.iter().all(|field| field.name != prefix);
        is_valid.then(|| Self { uri: uri.into(), prefix: prefix.into() })
    }

    /// Returns the namespace URI.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the prefix of its types and data.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns whether an event type belongs to the extension, by prefix or URI (§7.4).
    pub fn owns_type(&self, event_type: &str) -> bool {
        let has_prefix = event_type.strip_prefix(&*self.prefix).is_some_and(|rest| rest.starts_with(':'));
        let is_under_uri = event_type
            .strip_prefix(&*self.uri)
            .is_some_and(|rest| self.uri.ends_with(['/', '#', ':']) || rest.starts_with(['/', '#', ':']));
        has_prefix || is_under_uri
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_needs_a_valid_uri_and_an_unreserved_prefix() {
        assert!(Extension::new("urn:sayso:context:v1", "sayso").is_some());
        // §7.3.2, C-G4
        for reserved in ["aaep", "xsd", "rdf", "rdfs", "@id"] {
            assert_eq!(Extension::new("https://example.org/v1", reserved), None, "{reserved}");
        }
        assert_eq!(Extension::new("https://example.org/v1", "languages"), None);
        assert_eq!(Extension::new("https://example.org/v1", "no prefix"), None);
        assert_eq!(Extension::new("/relative", "medai"), None);
    }

    #[test]
    fn an_extension_owns_types_under_its_prefix_or_uri() {
        let medai = Extension::new("https://example.org/medai/v1", "medai").unwrap();
        assert!(medai.owns_type("medai:patient.consulted"));
        assert!(medai.owns_type("https://example.org/medai/v1#patient.consulted"));
        for other in ["medai2:x", "medai", "https://example.org/medai/v12/x", "aaep:agent.tool.invoked"] {
            assert!(!medai.owns_type(other), "{other}");
        }
    }
}
