//! The tools that a server has listed, and whether a call to each of them needs a question.

use std::collections::{HashMap, HashSet};

use seal::json::{JsonKind, JsonValue};
use seal::{CanonicalWriter, Digest};

use super::limits::{MAX_PINNED_TOOLS, MAX_TOOLS};
use super::message::{is_same_ignoring_case, read_unambiguous};
use super::param_headers::ParamHeader;
use super::trust::ServerTrust;
use crate::phrases::{GateText, texts};

/// A tool as the server last listed it.
#[derive(Clone, Debug)]
pub(crate) struct ToolDefinition {
    /// The hash of the whole definition except `_meta`.
    pub(crate) hash: Digest,
    pub(crate) annotations: Annotations,
    /// The arguments that a server behind a URL also wants as headers.
    pub(crate) param_headers: Vec<ParamHeader>,
}

/// A server's statements about a tool. The server may lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Annotations {
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
}

impl ToolDefinition {
    /// Reads a definition. Returns `None` if it has no name or no canonical form; such a tool is unknown.
    fn read(tool: &JsonValue<'_>) -> Option<(String, Self)> {
        let [name, annotations] = read_unambiguous(tool, ["name", "annotations"]).ok()?;
        let name = name?.text()?.into_owned();
        let canonical = CanonicalWriter::default().write(tool, &[&["_meta"]], &[]).ok()?;
        let hint = |name: &str| annotations.and_then(|annotations| annotations.member(name)?.as_bool());
        let annotations =
            Annotations { read_only: hint("readOnlyHint"), destructive: hint("destructiveHint") };
        let schema = tool.member("inputSchema");
        let param_headers = schema.map(|schema| ParamHeader::read_all(&schema)).unwrap_or_default();
        Some((name, Self { hash: Digest::of(canonical.text.as_bytes()), annotations, param_headers }))
    }
}

/// Returns every name that a reader could find in a definition.
fn names_of(tool: &JsonValue<'_>) -> impl Iterator<Item = String> {
    let is_name = |key: &JsonValue<'_>| is_same_ignoring_case(&key.text().unwrap_or_default(), "name");
    let names = tool.members().filter(move |(key, _)| is_name(key));
    names.filter_map(|(_, name)| name.text().map(std::borrow::Cow::into_owned))
}

/// Whether a call needs a question, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The operator trusts the tool.
    Harmless,
    /// The call needs a question, for this reason.
    Ask(AskReason),
}

/// Why a call needs a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskReason {
    /// The server has not listed the tool.
    Unknown,
    /// The server does not say what the tool can change.
    Unannotated,
    /// The server says that the tool can destroy something.
    Destructive,
    /// The server says that the tool changes something, but destroys nothing.
    Modifying,
    /// The server says that the tool only reads, but the operator does not trust it.
    UntrustedReadOnly,
    /// The operator wants to be asked.
    Operator,
    /// The definition has changed since a person allowed the tool, or since the operator's trust was first used.
    Changed,
    /// The person stopped the session.
    Stopped,
}

impl AskReason {
    /// Whether the call counts as one that cannot be undone.
    pub(crate) fn is_irreversible(self) -> bool {
        !matches!(self, Self::Modifying | Self::UntrustedReadOnly)
    }

    /// Says what the call may do, for the question.
    pub(crate) fn consequence(self) -> GateText {
        let phrase = match self {
            Self::Unknown => &texts::TOOL_UNKNOWN,
            Self::Unannotated => &texts::TOOL_UNANNOTATED,
            Self::Destructive => &texts::TOOL_DESTRUCTIVE,
            Self::Modifying => &texts::TOOL_MODIFYING,
            Self::UntrustedReadOnly => &texts::TOOL_UNTRUSTED,
            Self::Operator => &texts::TOOL_OPERATOR,
            Self::Changed => &texts::TOOL_CHANGED,
            Self::Stopped => &texts::TOOL_STOPPED,
        };
        phrase.into()
    }
}

/// The tools of one server, and the hashes of the definitions that a person or the operator allowed.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    trust: ServerTrust,
    listed: HashMap<String, ToolDefinition>,
    pins: HashMap<String, Digest>,
    /// Whether the pins could not be read. If so, nothing is pinned without a person's yes.
    pins_are_unknown: bool,
}

impl Tools {
    /// Creates the tools of a server. `pins` is `None` if the pinned definitions could not be read.
    pub(crate) fn new(trust: ServerTrust, pins: Option<HashMap<String, Digest>>) -> Self {
        let pins_are_unknown = pins.is_none();
        Self { trust, listed: HashMap::new(), pins: pins.unwrap_or_default(), pins_are_unknown }
    }

    pub(crate) fn pins(&self) -> &HashMap<String, Digest> {
        &self.pins
    }

    /// Learns the tools in the result of `tools/list`. Returns whether pins were added.
    pub(crate) fn learn(&mut self, result: &JsonValue<'_>) -> bool {
        let mut is_pinned = false;
        let Some(tools) = result.member("tools") else { return false };
        if tools.kind() != JsonKind::Array {
            self.forget();
        }
        let mut seen = HashMap::new();
        // The host may read what the gate cannot read, so an earlier definition does not count any more.
        let mut unusable = HashSet::new();
        for tool in tools.items() {
            let Some((name, definition)) = ToolDefinition::read(&tool) else {
                let names: Vec<_> = names_of(&tool).collect();
                if names.is_empty() {
                    self.forget();
                }
                unusable.extend(names);
                continue;
            };
            if seen.insert(name.clone(), definition.hash).is_some_and(|other| other != definition.hash) {
                unusable.insert(name.clone());
            }
            if self.listed.len() >= MAX_TOOLS && !self.listed.contains_key(&name) {
                continue;
            }
            // Only for a tool that the operator trusts, the first definition counts as allowed.
            if !self.pins_are_unknown
                && !self.pins.contains_key(&name)
                && self.pins.len() < MAX_PINNED_TOOLS
                && self.is_trusted(&name, &definition)
            {
                self.pins.insert(name.clone(), definition.hash);
                is_pinned = true;
            }
            self.listed.insert(name, definition);
        }
        self.listed.retain(|name, _| !unusable.contains(name));
        is_pinned
    }

    /// Forgets all definitions, because the server says that they have changed. The pins stay.
    pub(crate) fn forget(&mut self) {
        self.listed.clear();
    }

    /// Returns the hash of a tool's current definition.
    pub(crate) fn definition(&self, tool: &str) -> Option<Digest> {
        self.listed.get(tool).map(|definition| definition.hash)
    }

    /// Returns the arguments of a tool that a server behind a URL also wants as headers.
    pub(crate) fn param_headers(&self, tool: &str) -> Vec<ParamHeader> {
        self.listed.get(tool).map(|definition| definition.param_headers.clone()).unwrap_or_default()
    }

    /// Records that a person allowed a tool with this definition. Returns whether a pin has changed.
    pub(crate) fn allow(&mut self, tool: &str, definition: Option<Digest>) -> bool {
        let Some(definition) = definition else { return false };
        let is_full = self.pins.len() >= MAX_PINNED_TOOLS && !self.pins.contains_key(tool);
        !is_full && self.pins.insert(tool.to_owned(), definition) != Some(definition)
    }

    /// Decides whether a tool call needs a question.
    pub(crate) fn judge(&self, tool: &str) -> Verdict {
        let Some(definition) = self.listed.get(tool) else { return Verdict::Ask(AskReason::Unknown) };
        let pin = self.pins.get(tool);
        if pin.is_some_and(|pin| *pin != definition.hash) {
            return Verdict::Ask(AskReason::Changed);
        }
        if self.trust.ask.iter().any(|name| name == tool) {
            return Verdict::Ask(AskReason::Operator);
        }
        if self.is_trusted(tool, definition) {
            // Without a pin, nobody knows whether the definition has changed.
            return if pin.is_some() { Verdict::Harmless } else { Verdict::Ask(AskReason::Changed) };
        }
        let Annotations { read_only, destructive } = definition.annotations;
        // By default, a tool that is not read-only is destructive.
        Verdict::Ask(match (read_only, destructive) {
            (_, Some(true)) | (Some(false), None) => AskReason::Destructive,
            (Some(true), _) => AskReason::UntrustedReadOnly,
            (_, Some(false)) => AskReason::Modifying,
            (None, None) => AskReason::Unannotated,
        })
    }

    /// Whether the operator's trust makes a tool harmless. Annotations that call a tool destructive are always believed.
    fn is_trusted(&self, tool: &str, definition: &ToolDefinition) -> bool {
        let Annotations { read_only, destructive } = definition.annotations;
        let is_read_only = read_only == Some(true) && destructive != Some(true);
        let is_on_list = |list: &[String]| list.iter().any(|name| name == tool);
        !is_on_list(&self.trust.ask)
            && (is_on_list(&self.trust.allow) || (self.trust.annotations && is_read_only))
    }
}

#[cfg(test)]
mod tests {
    use seal::json::Tape;

    use super::*;

    fn learn(tools: &mut Tools, text: &str) {
        let mut tape = Tape::default();
        tools.learn(&tape.read(text).unwrap().root());
    }

    fn list(annotations: &str, description: &str) -> String {
        format!(r#"{{"tools":[{{"name":"t","description":"{description}","annotations":{annotations}}}]}}"#)
    }

    fn trusting(trust: ServerTrust) -> Tools {
        Tools::new(trust, Some(HashMap::new()))
    }

    #[test]
    fn annotations_only_tighten_unless_the_operator_trusts_the_server() {
        let trusted = ServerTrust { annotations: true, ..ServerTrust::default() };
        for (annotations, untrusted, with_trust) in [
            (r#"{"readOnlyHint":true}"#, AskReason::UntrustedReadOnly, Verdict::Harmless),
            (
                r#"{"readOnlyHint":true,"destructiveHint":true}"#,
                AskReason::Destructive,
                Verdict::Ask(AskReason::Destructive),
            ),
            (r#"{"destructiveHint":false}"#, AskReason::Modifying, Verdict::Ask(AskReason::Modifying)),
            (r#"{"destructiveHint":true}"#, AskReason::Destructive, Verdict::Ask(AskReason::Destructive)),
            (r#"{"readOnlyHint":false}"#, AskReason::Destructive, Verdict::Ask(AskReason::Destructive)),
            (r#"{"readOnlyHint":"true"}"#, AskReason::Unannotated, Verdict::Ask(AskReason::Unannotated)),
            ("{}", AskReason::Unannotated, Verdict::Ask(AskReason::Unannotated)),
            ("null", AskReason::Unannotated, Verdict::Ask(AskReason::Unannotated)),
        ] {
            let mut tools = trusting(ServerTrust::default());
            assert_eq!(tools.judge("t"), Verdict::Ask(AskReason::Unknown));
            learn(&mut tools, &list(annotations, ""));
            assert_eq!(tools.judge("t"), Verdict::Ask(untrusted), "{annotations}");
            let mut tools = trusting(trusted.clone());
            learn(&mut tools, &list(annotations, ""));
            assert_eq!(tools.judge("t"), with_trust, "{annotations}");
        }
    }

    #[test]
    fn a_tool_that_changes_after_it_was_allowed_needs_a_question() {
        let trust = ServerTrust { allow: vec!["t".to_owned()], ..ServerTrust::default() };
        let mut tools = trusting(trust.clone());
        learn(&mut tools, &list("{}", "reads"));
        assert_eq!(tools.judge("t"), Verdict::Harmless);
        learn(&mut tools, &list("{}", "reads and sends"));
        assert_eq!(tools.judge("t"), Verdict::Ask(AskReason::Changed));
        // The same definition as before is harmless again, and a yes to the new one makes that one harmless.
        learn(&mut tools, &list("{}", "reads"));
        assert_eq!(tools.judge("t"), Verdict::Harmless);
        learn(&mut tools, &list("{}", "reads and sends"));
        assert!(tools.allow("t", tools.definition("t")));
        assert_eq!(tools.judge("t"), Verdict::Harmless);
        // After a restart, the pins of the earlier process count.
        let mut tools = Tools::new(trust.clone(), Some(tools.pins().clone()));
        learn(&mut tools, &list("{}", "reads"));
        assert_eq!(tools.judge("t"), Verdict::Ask(AskReason::Changed));
        // If the pins cannot be read, nothing is trusted.
        let mut tools = Tools::new(trust, None);
        learn(&mut tools, &list("{}", "reads"));
        assert_eq!(tools.judge("t"), Verdict::Ask(AskReason::Changed));
    }

    #[test]
    fn volatile_metadata_is_not_part_of_a_definition() {
        let mut tools = trusting(ServerTrust { allow: vec!["t".to_owned()], ..ServerTrust::default() });
        learn(&mut tools, r#"{"tools":[{"name":"t","_meta":{"at":1}}]}"#);
        learn(&mut tools, r#"{"tools":[{"_meta":{"at":2},"name":"t"}]}"#);
        assert_eq!(tools.judge("t"), Verdict::Harmless);
    }

    #[test]
    fn the_number_of_known_and_pinned_tools_is_limited() {
        let mut tools = trusting(ServerTrust { annotations: true, ..ServerTrust::default() });
        let names =
            (0..MAX_TOOLS + 5).map(|i| format!(r#"{{"name":"t{i}","annotations":{{"readOnlyHint":true}}}}"#));
        learn(&mut tools, &format!(r#"{{"tools":[{}]}}"#, names.collect::<Vec<_>>().join(",")));
        assert_eq!(tools.listed.len(), MAX_TOOLS);
        assert_eq!(tools.pins().len(), MAX_PINNED_TOOLS);
        assert_eq!(tools.judge("t0"), Verdict::Harmless);
        assert_eq!(tools.judge(&format!("t{}", MAX_TOOLS + 1)), Verdict::Ask(AskReason::Unknown));
    }
}
