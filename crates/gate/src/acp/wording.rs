//! The sentences that people hear about an ACP session.

use super::bound_call::BoundCall;
use super::message::{ContentKind, OptionKind, PermissionOption, PlanEntry, ToolContent};

/// Maximum number of characters of a command or title in one sentence. The arguments of a question contain all of it.
const MAX_SUBJECT_CHARS: usize = 600;
/// Maximum number of characters of a tool's result.
const MAX_RESULT_CHARS: usize = 300;
/// Maximum number of characters of the agent's name for an option.
const MAX_OPTION_CHARS: usize = 200;
/// Maximum number of entries of a plan that are read out.
const MAX_PLAN_ENTRIES: usize = 12;

/// What the gate knows about a call.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolFacts {
    /// The title.
    pub(super) title: String,
    /// The name of the tool, if the agent gives one.
    pub(super) name: Option<String>,
    /// The kind of tool.
    pub(super) kind: ToolKind,
    /// The files it is about.
    pub(super) locations: Vec<String>,
    /// The input, as JSON.
    pub(super) raw_input: Option<String>,
}

/// The kind of a tool. An unknown kind is `Other`, which counts as dangerous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ToolKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    #[default]
    Other,
}

impl ToolKind {
    pub(super) fn parse(kind: &str) -> Self {
        match kind {
            "read" => Self::Read,
            "edit" => Self::Edit,
            "delete" => Self::Delete,
            "move" => Self::Move,
            "search" => Self::Search,
            "execute" => Self::Execute,
            "think" => Self::Think,
            "fetch" => Self::Fetch,
            "switch_mode" => Self::SwitchMode,
            _ => Self::Other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Search => "search",
            Self::Execute => "execute",
            Self::Think => "think",
            Self::Fetch => "fetch",
            Self::SwitchMode => "switch_mode",
            Self::Other => "tool",
        }
    }

    /// Returns the verb of a request.
    fn request_verb(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::Edit => "Change files",
            Self::Delete => "Delete",
            Self::Move => "Move",
            Self::Search => "Search",
            Self::Execute => "Run",
            Self::Think => "Think",
            Self::Fetch => "Fetch",
            Self::SwitchMode => "Switch the mode",
            Self::Other => "Use a tool",
        }
    }

    /// Returns the verb of a report.
    fn report_verb(self) -> &'static str {
        match self {
            Self::Read => "Reading",
            Self::Edit => "Changing files",
            Self::Delete => "Deleting",
            Self::Move => "Moving",
            Self::Search => "Searching",
            Self::Execute => "Running",
            Self::Think => "Thinking",
            Self::Fetch => "Fetching",
            Self::SwitchMode => "Switching the mode",
            Self::Other => "Using a tool",
        }
    }

    /// Returns what a yes leads to.
    pub(super) fn consequence(self) -> &'static str {
        match self {
            Self::Read | Self::Search => "The agent reads this.",
            Self::Edit => "The files are changed.",
            Self::Delete => "It is deleted and may not come back.",
            Self::Move => "The files are moved.",
            Self::Execute => "The command runs on your computer with your rights.",
            Self::Think => "The agent continues.",
            Self::Fetch => "The agent sends this request over the network.",
            Self::SwitchMode => "The agent may then act differently without asking.",
            Self::Other => "The agent does this immediately.",
        }
    }

    /// How much harm the call can do. What is not known counts as dangerous.
    pub(super) fn risk(self) -> sayso::Risk {
        match self {
            Self::Read | Self::Search | Self::Think => sayso::Risk::Low,
            Self::Edit | Self::Fetch => sayso::Risk::Medium,
            Self::Delete | Self::Move | Self::Execute | Self::SwitchMode | Self::Other => sayso::Risk::High,
        }
    }

    /// Whether the call cannot be undone.
    pub(super) fn is_irreversible(self) -> bool {
        self == Self::Delete
    }
}

impl ToolFacts {
    /// Returns the name of the tool for the hub.
    pub(super) fn tool_name(&self) -> String {
        let name = self.name.as_deref().filter(|name| !name.trim().is_empty());
        shorten(name.unwrap_or(self.kind.name()), 100)
    }

    /// Returns the call as it is known now.
    pub(super) fn to_call(&self) -> BoundCall {
        BoundCall::new(&self.title, self.raw_input.as_deref(), None)
    }

    /// Returns what the call is about: the command if there is one, otherwise the title, and the files that it does not name.
    fn subject(&self, call: &BoundCall) -> String {
        let command = call.text_argument("command").or_else(|| call.text_argument("cmd"));
        let mut subject = match command {
            Some(command) if self.kind == ToolKind::Execute => command,
            _ if self.title.trim().is_empty() => self.tool_name(),
            _ => self.title.clone(),
        };
        let unnamed: Vec<_> =
            self.locations.iter().filter(|path| !subject.contains(path.as_str())).take(3).collect();
        for path in unnamed {
            subject.push_str(", ");
            subject.push_str(path);
        }
        shorten(&subject, MAX_SUBJECT_CHARS)
    }

    /// Returns the sentence that asks for the call.
    pub(super) fn request(&self, call: &BoundCall) -> String {
        sentence(self.kind.request_verb(), &self.subject(call))
    }

    /// Returns the sentence that reports the call.
    pub(super) fn report(&self, call: &BoundCall) -> String {
        sentence(self.kind.report_verb(), &self.subject(call))
    }
}

fn sentence(verb: &str, subject: &str) -> String {
    let subject = subject.trim();
    if subject.ends_with(['.', '!', '?', '…']) {
        format!("{verb}: {subject}")
    } else {
        format!("{verb}: {subject}.")
    }
}

/// Returns the label of an option: what it does in words of sayso, and the agent's own name for it.
pub(super) fn option_label(option: &PermissionOption) -> String {
    let meaning = match option.kind {
        OptionKind::AllowOnce => "Allow once",
        OptionKind::AllowAlways => "Always allow",
        OptionKind::RejectOnce => "Reject once",
        OptionKind::RejectAlways => "Always reject",
        OptionKind::Other => "Another answer",
    };
    let name = shorten(option.name.trim(), MAX_OPTION_CHARS);
    if name.is_empty() || name.eq_ignore_ascii_case(meaning) {
        meaning.to_owned()
    } else {
        format!("{meaning}: {name}")
    }
}

/// Returns the result of a call in words. `None` if there is nothing to say.
pub(super) fn result_text(content: &[ToolContent], raw_output: Option<&str>) -> Option<String> {
    let mut parts: Vec<String> = content
        .iter()
        .filter_map(|part| match part {
            ToolContent::Text(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            ToolContent::Diff { path, old, new } => Some(diff_text(path, old.as_deref(), new)),
            _ => None,
        })
        .collect();
    if parts.is_empty() {
        parts.extend(raw_output.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned));
    }
    let text = parts.join(" ");
    (!text.is_empty()).then(|| shorten(&text, MAX_RESULT_CHARS))
}

/// Returns how many lines a change adds and removes. Lines at the start and the end that stay the same do not count.
fn diff_text(path: &str, old: Option<&str>, new: &str) -> String {
    let new_lines: Vec<_> = new.lines().collect();
    let Some(old) = old else { return format!("{path} is new, with {}.", count(new_lines.len(), "line")) };
    let old_lines: Vec<_> = old.lines().collect();
    let same_start = old_lines.iter().zip(&new_lines).take_while(|(old, new)| old == new).count();
    let rest = old_lines.len().min(new_lines.len()) - same_start;
    let same_end = old_lines
        .iter()
        .rev()
        .zip(new_lines.iter().rev())
        .take(rest)
        .take_while(|(old, new)| old == new)
        .count();
    let same = same_start + same_end;
    format!(
        "{path}: {} removed, {} added.",
        count(old_lines.len() - same, "line"),
        count(new_lines.len() - same, "line")
    )
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Returns what a plan says: all of it if it is new, otherwise the current step.
pub(super) fn plan_text(entries: &[PlanEntry], is_new: bool) -> String {
    let done = entries.iter().filter(|entry| entry.is_completed).count();
    if is_new {
        let mut steps: Vec<_> =
            entries.iter().take(MAX_PLAN_ENTRIES).map(|entry| shorten(&entry.content, 120)).collect();
        if entries.len() > MAX_PLAN_ENTRIES {
            steps.push(format!("and {} more", entries.len() - MAX_PLAN_ENTRIES));
        }
        return format!("Plan with {}: {}.", count(entries.len(), "step"), steps.join("; "));
    }
    match entries.iter().find(|entry| entry.is_in_progress) {
        Some(entry) => sentence("Next step", &shorten(&entry.content, MAX_SUBJECT_CHARS)),
        None => format!("{done} of {} done.", count(entries.len(), "step")),
    }
}

/// Returns what is said about content that is not text.
pub(super) fn content_text(kind: ContentKind) -> &'static str {
    match kind {
        ContentKind::Image => "The agent shows an image.",
        ContentKind::Audio => "The agent sends a sound.",
        ContentKind::Resource => "The agent shows a file.",
    }
}

/// Returns what is said at the end of a turn.
pub(super) fn stop_text(stop_reason: &str) -> String {
    match stop_reason {
        "end_turn" => "The agent is done and waits for you.".to_owned(),
        "cancelled" => "The turn was cancelled.".to_owned(),
        "refusal" => "The agent refuses to continue.".to_owned(),
        "max_tokens" => "The agent stopped because its answer became too long.".to_owned(),
        "max_turn_requests" => "The agent stopped because it made too many requests in one turn.".to_owned(),
        other => format!("The agent stopped: {}.", shorten(other, 100)),
    }
}

/// Shortens a text and says how much is missing. Line breaks become spaces, because the text becomes part of a sentence.
pub(super) fn shorten(text: &str, max_chars: usize) -> String {
    let total = text.chars().count();
    let kept: String =
        text.chars().take(max_chars).map(|char| if char.is_control() { ' ' } else { char }).collect();
    if total <= max_chars { kept } else { format!("{kept}… and {} more characters", total - max_chars) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(kind: ToolKind, title: &str) -> ToolFacts {
        ToolFacts { title: title.to_owned(), kind, ..ToolFacts::default() }
    }

    #[test]
    fn the_actual_command_is_read_and_not_only_its_title() {
        let call = BoundCall::new("Terminal", Some(r#"{"command":"rm -r build"}"#), None);
        assert_eq!(facts(ToolKind::Execute, "Terminal").request(&call), "Run: rm -r build.");
        let call = BoundCall::new("ls", None, None);
        assert_eq!(facts(ToolKind::Execute, "ls").report(&call), "Running: ls.");
    }

    #[test]
    fn files_that_the_title_does_not_name_are_added() {
        let facts = ToolFacts {
            locations: vec!["/a.rs".into(), "/b.rs".into()],
            ..facts(ToolKind::Edit, "Edit /a.rs")
        };
        assert_eq!(facts.report(&BoundCall::new("", None, None)), "Changing files: Edit /a.rs, /b.rs.");
    }

    #[test]
    fn what_an_option_does_comes_first_whatever_the_agent_calls_it() {
        let option =
            |kind, name: &str| option_label(&PermissionOption { id: "x".into(), name: name.into(), kind });
        assert_eq!(option(OptionKind::AllowAlways, "No"), "Always allow: No");
        assert_eq!(option(OptionKind::AllowOnce, "allow once"), "Allow once");
        assert_eq!(option(OptionKind::Other, ""), "Another answer");
    }

    #[test]
    fn a_change_is_told_in_lines() {
        let diff =
            ToolContent::Diff { path: "a".into(), old: Some("1\n2\n3\n".into()), new: "1\nx\ny\n3\n".into() };
        assert_eq!(result_text(&[diff], None).as_deref(), Some("a: 1 line removed, 2 lines added."));
        let new = ToolContent::Diff { path: "b".into(), old: None, new: "1\n".into() };
        assert_eq!(result_text(&[new], None).as_deref(), Some("b is new, with 1 line."));
        let same = ToolContent::Diff { path: "c".into(), old: Some("1\n1\n".into()), new: "1\n".into() };
        assert_eq!(result_text(&[same], None).as_deref(), Some("c: 1 line removed, 0 lines added."));
    }

    #[test]
    fn a_long_text_says_how_much_is_missing() {
        assert_eq!(shorten("abcdef", 4), "abcd… and 2 more characters");
        assert_eq!(shorten("a\nb", 4), "a b");
    }

    #[test]
    fn a_plan_is_read_once_and_then_by_its_current_step() {
        let entry = |content: &str, is_completed, is_in_progress| PlanEntry {
            content: content.into(),
            is_completed,
            is_in_progress,
        };
        let entries = [entry("Read", true, false), entry("Write", false, true)];
        assert_eq!(plan_text(&entries, true), "Plan with 2 steps: Read; Write.");
        assert_eq!(plan_text(&entries, false), "Next step: Write.");
        assert_eq!(plan_text(&[entry("Read", true, false)], false), "1 of 1 step done.");
    }

    #[test]
    fn an_unknown_kind_counts_as_dangerous() {
        assert_eq!(ToolKind::parse("teleport").risk(), sayso::Risk::High);
        assert_eq!(ToolKind::default().risk(), sayso::Risk::High);
    }
}
