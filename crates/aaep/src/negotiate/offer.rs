//! What a producer, or a hub for its producers, can give one subscriber.

use crate::check::SAYSO;
use crate::event::{CoalesceHint, Producer};
use crate::form::{is_compact_jws, is_prefix, is_reserved_prefix, is_uri};
use crate::message::{Boundary, Capabilities, Level};

/// What can be given. A request gets the smaller of what it asks for and of this.
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
    /// Who will be heard (§5.4).
    pub producer: Producer,
    /// The versions of AAEP that are spoken.
    pub versions: Vec<String>,
    /// The languages that can be had; none means that nobody knows beforehand, and every one may be.
    pub languages: Vec<String>,
    /// The levels that are kept (§9).
    pub levels: Vec<Level>,
    /// Where output can be cut. At its completion it always can be (C-B13).
    pub boundaries: Vec<Boundary>,
    /// The extensions that are known here.
    pub extensions: Vec<Extension>,
    /// The most that is sent in a second, to whomever.
    pub max_events_per_second: Option<u64>,
    /// Whether this subscriber may answer confirmations; an observer may hear, and not answer.
    pub confirmation_reply: bool,
    /// Whether this subscriber may answer clarifications.
    pub clarification_reply: bool,
    /// Where the manifest is.
    pub manifest_uri: Option<String>,
    /// The signed manifest, a compact JWS (§10.4).
    pub signed_manifest: Option<String>,
}

impl Offer {
    /// Everything that AAEP 1.0.0 has, without a limit, to one who may answer; sayso's own extension is known.
    pub fn new(producer: Producer) -> Self {
        Self {
            producer,
            versions: vec!["1.0.0".to_owned()],
            languages: Vec::new(),
            levels: vec![1, 2, 3],
            boundaries: ALL_BOUNDARIES.to_vec(),
            extensions: vec![Extension { uri: SAYSO.1.into(), prefix: SAYSO.0.into() }],
            max_events_per_second: None,
            confirmation_reply: true,
            clarification_reply: true,
            manifest_uri: None,
            signed_manifest: None,
        }
    }

    /// The signed manifest, if it can be sent.
    pub(super) fn signed(&self) -> Option<&str> {
        self.signed_manifest.as_deref().filter(|text| is_compact_jws(text))
    }
}

/// All boundaries, the finest first.
pub(super) const ALL_BOUNDARIES: [Boundary; 5] = [
    CoalesceHint::None,
    CoalesceHint::Word,
    CoalesceHint::Sentence,
    CoalesceHint::Paragraph,
    CoalesceHint::Completion,
];

/// An extension (§7.3): subscribers name its URI, its data stands under its prefix (C-G7, C-G8).
///
/// ```
/// use aaep::negotiate::Extension;
/// let medai = Extension::new("https://example.org/medai/v1", "medai").unwrap();
/// assert_eq!(medai.prefix(), "medai");
/// assert!(Extension::new("https://example.org/rdf/v1", "rdf").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extension {
    uri: Box<str>,
    prefix: Box<str>,
}

impl Extension {
    /// Nothing if the URI is none, or the prefix is none, is reserved (§7.3.2), or is the name of a capability.
    pub fn new(uri: &str, prefix: &str) -> Option<Self> {
        let lawful = is_uri(uri)
            && is_prefix(prefix)
            && !is_reserved_prefix(prefix)
            && Capabilities::FIELDS.iter().all(|field| field.name != prefix);
        lawful.then(|| Self { uri: uri.into(), prefix: prefix.into() })
    }

    /// Its namespace.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// What its types and data begin with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether a type of events is its own: under its prefix, or its URI (§7.4).
    pub fn has_type(&self, event_type: &str) -> bool {
        let under_prefix = event_type.strip_prefix(&*self.prefix).is_some_and(|rest| rest.starts_with(':'));
        let under_uri = event_type
            .strip_prefix(&*self.uri)
            .is_some_and(|rest| self.uri.ends_with(['/', '#', ':']) || rest.starts_with(['/', '#', ':']));
        under_prefix || under_uri
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_has_a_uri_and_a_prefix_of_its_own() {
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
    fn a_type_is_an_extensions_by_its_prefix_or_its_uri() {
        let medai = Extension::new("https://example.org/medai/v1", "medai").unwrap();
        assert!(medai.has_type("medai:patient.consulted"));
        assert!(medai.has_type("https://example.org/medai/v1#patient.consulted"));
        for other in ["medai2:x", "medai", "https://example.org/medai/v12/x", "aaep:agent.tool.invoked"] {
            assert!(!medai.has_type(other), "{other}");
        }
    }
}
