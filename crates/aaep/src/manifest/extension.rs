//! The content of a manifest's `extensions.sayso`, for which AAEP has no members: the agent's own states, and the pattern of
//! its sessions with several agents (A.9).

use thiserror::Error;

use crate::event::{InvalidStates, StateDefinition};
use crate::json::{JsonKind, JsonValue, Tape};
use crate::message::Manifest;

/// The content of `extensions.sayso` in a manifest.
///
/// ```
/// use aaep::manifest::{ManifestExtension, MultiAgentPattern};
/// use aaep::json::RawJson;
/// use aaep::message::Manifest;
///
/// let text = |text: &str| vec![text.to_owned()];
/// let mut bank = Manifest::new("bank", text("1.0.0"), vec![1, 2, 3], text("sse"));
/// let sayso = r#"{"sayso":{
///     "states":[{"state":"auditing","words":{"en":"Checking the books.","es":"Revisando las cuentas."}}],
///     "multi_agent":["linked_sessions"]
/// }}"#;
/// bank.other.set("extensions", RawJson::parse(sayso).unwrap());
/// let extension = ManifestExtension::of(&bank).unwrap();
/// assert_eq!(extension.states[0].words[0], ("en".to_owned(), "Checking the books.".to_owned()));
/// assert_eq!(extension.multi_agent, [MultiAgentPattern::LinkedSessions]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestExtension {
    /// `states`: the states that the agent defines (§4.2.1), with texts for them.
    pub states: Vec<StateDefinition>,
    /// `multi_agent`: the patterns of the agent's sessions with several agents.
    pub multi_agent: Vec<MultiAgentPattern>,
}

/// A pattern of sessions with several agents (§2.2.5, A.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MultiAgentPattern {
    /// `shared_session`: pattern 1, several producers in one session.
    SharedSession,
    /// `linked_sessions`: pattern 2, a session for each agent, linked to its parent.
    LinkedSessions,
}

/// Why `extensions.sayso` of a manifest is invalid. The messages continue a sentence whose subject is the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ManifestExtensionError {
    /// A member does not have the form that sayso defines.
    #[error("has an invalid extensions.sayso.{0}")]
    Malformed(&'static str),
    /// The states are invalid.
    #[error("has invalid states in extensions.sayso: {0}")]
    States(InvalidStates),
}

impl ManifestExtension {
    /// Reads the extension of a manifest. Unknown members are ignored. Without the extension, the result is empty.
    pub fn of(manifest: &Manifest) -> Result<Self, ManifestExtensionError> {
        let Some(extensions) = manifest.other.get("extensions") else { return Ok(Self::default()) };
        let mut tape = Tape::default();
        let malformed = ManifestExtensionError::Malformed;
        let doc = tape.read(extensions.as_str()).map_err(|_| malformed("states"))?;
        let Some(sayso) = doc.root().member("sayso") else { return Ok(Self::default()) };
        let states = sayso.member("states").as_ref().map(StateDefinition::read_list).transpose();
        let states = states.map_err(ManifestExtensionError::States)?.unwrap_or_default();
        let mut extension = Self { states, multi_agent: Vec::new() };
        for item in list(&sayso, "multi_agent")? {
            let pattern = item.text().and_then(|name| MultiAgentPattern::parse(&name));
            extension.multi_agent.push(pattern.ok_or(malformed("multi_agent"))?);
        }
        Ok(extension)
    }
}

impl MultiAgentPattern {
    /// Returns the pattern's name in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SharedSession => "shared_session",
            Self::LinkedSessions => "linked_sessions",
        }
    }

    /// Returns the pattern with this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::SharedSession, Self::LinkedSessions].into_iter().find(|pattern| pattern.as_str() == name)
    }
}

/// Returns the items of a list; none if the member is absent.
fn list<'d>(
    object: &JsonValue<'d>,
    name: &'static str,
) -> Result<Vec<JsonValue<'d>>, ManifestExtensionError> {
    match object.member(name) {
        Some(list) if list.kind() == JsonKind::Array => Ok(list.items().collect()),
        Some(_) => Err(ManifestExtensionError::Malformed(name)),
        None => Ok(Vec::new()),
    }
}
