//! The sentences that people hear about an ACP session.

use super::bound_call::BoundCall;
use super::message::{ContentKind, OptionKind, PermissionOption, PlanEntry, ToolContent};
use crate::phrases::{GateText, Language, Phrase, texts};

/// Maximum number of characters of a command or title in one sentence. The arguments of a question contain all of it.
const MAX_SUBJECT_CHARS: usize = 600;
/// Maximum number of characters of a tool's result.
const MAX_RESULT_CHARS: usize = 300;
/// Maximum number of characters of the agent's name for an option.
const MAX_OPTION_CHARS: usize = 200;
/// Maximum number of entries of a plan that are read out.
const MAX_PLAN_ENTRIES: usize = 12;

/// The known facts about a call.
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

    /// Returns the sentence of a request.
    fn request_phrase(self) -> &'static Phrase {
        match self {
            Self::Read => &texts::ASK_READ,
            Self::Edit => &texts::ASK_EDIT,
            Self::Delete => &texts::ASK_DELETE,
            Self::Move => &texts::ASK_MOVE,
            Self::Search => &texts::ASK_SEARCH,
            Self::Execute => &texts::RUN,
            Self::Think => &texts::ASK_THINK,
            Self::Fetch => &texts::ASK_FETCH,
            Self::SwitchMode => &texts::ASK_SWITCH_MODE,
            Self::Other => &texts::ASK_OTHER,
        }
    }

    /// Returns the sentence of a report.
    fn report_phrase(self) -> &'static Phrase {
        match self {
            Self::Read => &texts::READING,
            Self::Edit => &texts::CHANGING,
            Self::Delete => &texts::DELETING,
            Self::Move => &texts::MOVING,
            Self::Search => &texts::SEARCHING,
            Self::Execute => &texts::RUNNING,
            Self::Think => &texts::THINKING,
            Self::Fetch => &texts::FETCHING,
            Self::SwitchMode => &texts::SWITCHING_MODE,
            Self::Other => &texts::USING_TOOL,
        }
    }

    /// Returns the consequence of a yes.
    pub(super) fn consequence(self) -> GateText {
        let phrase = match self {
            Self::Read | Self::Search => &texts::LEADS_READ,
            Self::Edit => &texts::LEADS_EDIT,
            Self::Delete => &texts::LEADS_DELETE,
            Self::Move => &texts::LEADS_MOVE,
            Self::Execute => &texts::LEADS_EXECUTE,
            Self::Think => &texts::LEADS_THINK,
            Self::Fetch => &texts::LEADS_FETCH,
            Self::SwitchMode => &texts::LEADS_SWITCH_MODE,
            Self::Other => &texts::LEADS_OTHER,
        };
        phrase.into()
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
        shorten(name.unwrap_or(self.kind.name()), 100, Language::English)
    }

    /// Returns the call with everything known about it now.
    pub(super) fn to_call(&self) -> BoundCall {
        BoundCall::new(&self.title, self.raw_input.as_deref(), None)
    }

    /// Returns what the call is about: the command if there is one, otherwise the title, and the files that it does not name.
    fn subject(&self, call: &BoundCall, language: Language) -> String {
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
        shorten(&subject, MAX_SUBJECT_CHARS, language)
    }

    /// Returns the sentence that asks for the call.
    pub(super) fn request(&self, call: &BoundCall) -> GateText {
        GateText::new(|language| {
            sentence(self.kind.request_phrase(), &self.subject(call, language), language)
        })
    }

    /// Returns the sentence that reports the call.
    pub(super) fn report(&self, call: &BoundCall) -> GateText {
        GateText::new(|language| sentence(self.kind.report_phrase(), &self.subject(call, language), language))
    }
}

fn sentence(phrase: &Phrase, subject: &str, language: Language) -> String {
    let mut text = phrase.fill(language, &[subject.trim()]);
    if !text.ends_with(['.', '!', '?', '…']) {
        text.push('.');
    }
    text
}

/// Returns the label of an option: what it does in sayso's own words, and the agent's name for it.
pub(super) fn option_label(option: &PermissionOption) -> GateText {
    let meaning = match option.kind {
        OptionKind::AllowOnce => &texts::ALLOW_ONCE,
        OptionKind::AllowAlways => &texts::ALLOW_ALWAYS,
        OptionKind::RejectOnce => &texts::REJECT_ONCE,
        OptionKind::RejectAlways => &texts::REJECT_ALWAYS,
        OptionKind::Other => &texts::ANOTHER_ANSWER,
    };
    GateText::new(|language| {
        let meaning = meaning.fill(language, &[]);
        let name = shorten(option.name.trim(), MAX_OPTION_CHARS, language);
        if name.is_empty() || name.eq_ignore_ascii_case(&meaning) {
            meaning
        } else {
            format!("{meaning}: {name}")
        }
    })
}

/// Returns the result of a call in words. `None` if there is nothing to say.
pub(super) fn result_text(content: &[ToolContent], raw_output: Option<&str>) -> Option<GateText> {
    let text = GateText::new(|language| {
        let mut parts: Vec<String> = content
            .iter()
            .filter_map(|part| match part {
                ToolContent::Text(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
                ToolContent::Diff { path, old, new } => Some(diff_text(path, old.as_deref(), new, language)),
                _ => None,
            })
            .collect();
        if parts.is_empty() {
            parts.extend(raw_output.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned));
        }
        shorten(&parts.join(" "), MAX_RESULT_CHARS, language)
    });
    (!text.english().is_empty()).then_some(text)
}

/// Returns how many lines a change adds and removes. Lines at the start and the end that stay the same do not count.
fn diff_text(path: &str, old: Option<&str>, new: &str, language: Language) -> String {
    let new_lines: Vec<_> = new.lines().collect();
    let Some(old) = old else {
        return texts::NEW_FILE.fill(language, &[path, &lines(new_lines.len(), language)]);
    };
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
    let (removed, added) = (lines(old_lines.len() - same, language), lines(new_lines.len() - same, language));
    texts::CHANGED_LINES.fill(language, &[path, &removed, &added])
}

fn lines(number: usize, language: Language) -> String {
    count(number, &texts::COUNTED_LINE, &texts::COUNTED_LINES, language)
}

fn count(number: usize, one: &Phrase, several: &Phrase, language: Language) -> String {
    if number == 1 { one.fill(language, &[]) } else { several.fill(language, &[&number.to_string()]) }
}

/// Returns what a plan says: all of it if it is new, otherwise the current step.
pub(super) fn plan_text(entries: &[PlanEntry], is_new: bool) -> GateText {
    let done = entries.iter().filter(|entry| entry.is_completed).count().to_string();
    GateText::new(|language| {
        let total = count(entries.len(), &texts::COUNTED_STEP, &texts::COUNTED_STEPS, language);
        if is_new {
            let mut steps: Vec<_> = entries
                .iter()
                .take(MAX_PLAN_ENTRIES)
                .map(|entry| shorten(&entry.content, 120, language))
                .collect();
            if entries.len() > MAX_PLAN_ENTRIES {
                let left_out = (entries.len() - MAX_PLAN_ENTRIES).to_string();
                steps.push(texts::PLAN_MORE.fill(language, &[&left_out]));
            }
            return texts::PLAN.fill(language, &[&total, &steps.join("; ")]);
        }
        match entries.iter().find(|entry| entry.is_in_progress) {
            Some(entry) => {
                let step = shorten(&entry.content, MAX_SUBJECT_CHARS, language);
                sentence(&texts::NEXT_STEP, &step, language)
            }
            None => texts::STEPS_DONE.fill(language, &[&done, &total]),
        }
    })
}

/// Describes content that is not text.
pub(super) fn content_text(kind: ContentKind) -> GateText {
    let phrase = match kind {
        ContentKind::Image => &texts::SHOWS_IMAGE,
        ContentKind::Audio => &texts::SENDS_SOUND,
        ContentKind::Resource => &texts::SHOWS_FILE,
    };
    phrase.into()
}

/// Returns the sentence for the end of a turn.
pub(super) fn stop_text(stop_reason: &str) -> GateText {
    let phrase = match stop_reason {
        "end_turn" => &texts::TURN_DONE,
        "cancelled" => &texts::TURN_CANCELLED,
        "refusal" => &texts::TURN_REFUSED,
        "max_tokens" => &texts::TURN_TOO_LONG,
        "max_turn_requests" => &texts::TURN_TOO_MANY,
        other => return with_short(&texts::TURN_STOPPED, other, 100),
    };
    phrase.into()
}

/// Fills a sentence with a text from the agent, shortened.
pub(super) fn with_short(phrase: &Phrase, text: &str, max_chars: usize) -> GateText {
    GateText::new(|language| phrase.fill(language, &[&shorten(text, max_chars, language)]))
}

/// Shortens a text and says how much is missing. Line breaks become spaces, because the text becomes part of a sentence.
pub(super) fn shorten(text: &str, max_chars: usize, language: Language) -> String {
    let total = text.chars().count();
    let kept: String =
        text.chars().take(max_chars).map(|char| if char.is_control() { ' ' } else { char }).collect();
    if total <= max_chars {
        return kept;
    }
    texts::MORE_CHARACTERS.fill(language, &[&kept, &(total - max_chars).to_string()])
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
        assert_eq!(facts(ToolKind::Execute, "Terminal").request(&call).english(), "Run: rm -r build.");
        let call = BoundCall::new("ls", None, None);
        assert_eq!(facts(ToolKind::Execute, "ls").report(&call).english(), "Running: ls.");
    }

    #[test]
    fn files_that_the_title_does_not_name_are_added() {
        let facts = ToolFacts {
            locations: vec!["/a.rs".into(), "/b.rs".into()],
            ..facts(ToolKind::Edit, "Edit /a.rs")
        };
        assert_eq!(
            facts.report(&BoundCall::new("", None, None)).english(),
            "Changing files: Edit /a.rs, /b.rs."
        );
    }

    #[test]
    fn what_an_option_does_comes_first_whatever_the_agent_calls_it() {
        let option = |kind, name: &str| {
            let option = PermissionOption { id: "x".into(), name: name.into(), kind };
            option_label(&option).english().to_owned()
        };
        assert_eq!(option(OptionKind::AllowAlways, "No"), "Always allow: No");
        assert_eq!(option(OptionKind::AllowOnce, "allow once"), "Allow once");
        assert_eq!(option(OptionKind::Other, ""), "Another answer");
    }

    #[test]
    fn the_result_of_an_edit_counts_removed_and_added_lines() {
        let said = |content| result_text(&[content], None).unwrap().english().to_owned();
        let diff =
            ToolContent::Diff { path: "a".into(), old: Some("1\n2\n3\n".into()), new: "1\nx\ny\n3\n".into() };
        assert_eq!(said(diff), "a: 1 line removed, 2 lines added.");
        let new = ToolContent::Diff { path: "b".into(), old: None, new: "1\n".into() };
        assert_eq!(said(new), "b is new, with 1 line.");
        let same = ToolContent::Diff { path: "c".into(), old: Some("1\n1\n".into()), new: "1\n".into() };
        assert_eq!(said(same), "c: 1 line removed, 0 lines added.");
    }

    #[test]
    fn a_long_text_says_how_much_is_missing() {
        assert_eq!(shorten("abcdef", 4, Language::English), "abcd… and 2 more characters");
        assert_eq!(shorten("a\nb", 4, Language::English), "a b");
    }

    #[test]
    fn a_plan_is_read_once_and_then_by_its_current_step() {
        let entry = |content: &str, is_completed, is_in_progress| PlanEntry {
            content: content.into(),
            is_completed,
            is_in_progress,
        };
        let entries = [entry("Read", true, false), entry("Write", false, true)];
        assert_eq!(plan_text(&entries, true).english(), "Plan with 2 steps: Read; Write.");
        assert_eq!(plan_text(&entries, false).english(), "Next step: Write.");
        assert_eq!(plan_text(&[entry("Read", true, false)], false).english(), "1 of 1 step done.");
    }

    #[test]
    fn an_unknown_kind_counts_as_dangerous() {
        assert_eq!(ToolKind::parse("teleport").risk(), sayso::Risk::High);
        assert_eq!(ToolKind::default().risk(), sayso::Risk::High);
    }
}
