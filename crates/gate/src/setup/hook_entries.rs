//! Finds, adds and removes the hooks of sayso in a harness's configuration.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, Value};

use super::Harness;
use super::command_words::{REFUSE_ON_FAILURE, is_sayso, split_words};
use super::harness::HookLayout;
use super::jsonc::{
    Json, SyntaxTree, delete_ranges, find_array, find_member, find_object, insertion_root,
    split_byte_order_mark, to_range,
};

/// How much longer than the deadline of its hook a harness must wait, in seconds. A hook that hangs is killed after one of them.
const ANSWER_SECONDS: u64 = 5;

/// Which hooks of sayso a configuration contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookState {
    /// Events that have a hook of sayso.
    pub present: Vec<String>,
    /// Events that should have one.
    pub missing: Vec<String>,
    /// The programs that the hooks start.
    pub programs: Vec<String>,
    /// Which calls they gate, if an option says so.
    pub gate: Option<String>,
    /// Whether they refuse calls if nobody can be asked.
    pub is_required: bool,
    /// Events whose hook asks a person for longer than the harness waits, although it then makes the call.
    pub too_short: Vec<String>,
    /// Whether the configuration switches all hooks off.
    pub is_disabled: bool,
}

/// Adds the hooks, or replaces them if they differ. Returns the new text.
pub(crate) fn install(harness: Harness, text: &str, words: &[String]) -> Result<String, String> {
    if is_installed(harness, text, words)? {
        return Ok(text.to_owned());
    }
    let removed = remove(harness, text)?;
    let (mark, removed) = split_byte_order_mark(&removed);
    let document = insertion_root(removed)?;
    let root = document.object_value_or_create().ok_or("it must contain a JSON object")?;
    if harness == Harness::Cursor && root.get("version").is_none() {
        root.append("version", Json::number(1).to_input());
    }
    let hooks = root.object_value_or_set("hooks");
    for event in harness.events() {
        let hook = harness.hook(*event, words);
        let entry = match harness.layout() {
            HookLayout::Flat => hook,
            HookLayout::Grouped => Json::object([("hooks", Json::Array(vec![hook]))]),
        };
        hooks.array_value_or_set(event.name).append(entry.to_input());
    }
    let installed = format!("{mark}{document}");
    if !is_installed(harness, &installed, words)? {
        return Err("the hooks could not be added to it".to_owned());
    }
    check_other_values(harness, text, &installed)?;
    Ok(installed)
}

/// Removes the hooks, and the lists and objects that become empty and have no comments. Returns the new text.
pub(crate) fn remove(harness: Harness, text: &str) -> Result<String, String> {
    let (mark, json) = split_byte_order_mark(text);
    let tree = SyntaxTree::parse(json)?;
    let mut deletions = Vec::new();
    let properties: Vec<_> = tree.root().properties.iter().map(to_range).collect();
    let mut removed = vec![false; properties.len()];
    if let Some(hooks) = find_object(tree.root(), "hooks")?
        && remove_from_hooks(harness, &tree, hooks, &mut deletions)?
        && let Some(property) = find_member(tree.root(), "hooks")?
        && !tree.has_comments(&to_range(property), &deletions)
    {
        let range = to_range(property);
        removed = properties.iter().map(|property| *property == range).collect();
    }
    deletions.extend(tree.deletions(&properties, &removed));
    let removed = format!("{mark}{}", delete_ranges(json, deletions));
    check_other_values(harness, text, &removed)?;
    Ok(removed)
}

/// Returns which hooks there are.
pub(crate) fn inspect(harness: Harness, text: &str) -> Result<HookState, String> {
    let tree = SyntaxTree::parse(split_byte_order_mark(text).1)?;
    let hooks = find_object(tree.root(), "hooks")?;
    let mut state = HookState { is_disabled: is_disabled(harness, tree.root())?, ..HookState::default() };
    for event in harness.events() {
        let found = hooks_for_event(harness, hooks, event.name)?;
        let list = if found.is_empty() { &mut state.missing } else { &mut state.present };
        list.push(event.name.to_owned());
        for hook in found {
            let words = command_words(&hook).unwrap_or_default();
            state.is_required = words.iter().any(|word| word == "--required");
            // After a permission request that took too long, the harness asks by itself.
            if event.is_gate && event.name != "PermissionRequest" && is_too_short(harness, &hook, &words) {
                state.too_short.push(event.name.to_owned());
            }
            state.gate = option_value(&words, "--gate").map(str::to_owned);
            if let Some(program) = words.into_iter().next()
                && !state.programs.contains(&program)
            {
                state.programs.push(program);
            }
        }
    }
    Ok(state)
}

/// Returns whether a harness that makes a call when the timeout of its hook is over waits less than the deadline of the hook.
fn is_too_short(harness: Harness, hook: &Json, words: &[String]) -> bool {
    let second = match harness {
        Harness::Codex => 1,
        Harness::Gemini => 1000,
        _ => return false,
    };
    let deadline = option_value(words, "--deadline").and_then(|seconds| seconds.parse().ok());
    let deadline: u64 = deadline.unwrap_or_else(|| harness.default_deadline().as_secs());
    let timeout = match hook.member("timeout") {
        Some(Json::Number(number)) => number.parse().unwrap_or(0),
        _ => 0,
    };
    timeout < deadline.saturating_add(ANSWER_SECONDS).saturating_mul(second)
}

/// Returns the value of an option, in the form `--option value` or `--option=value`.
fn option_value<'w>(words: &'w [String], option: &str) -> Option<&'w str> {
    words.iter().enumerate().find_map(|(index, word)| {
        let rest = word.strip_prefix(option)?;
        if rest.is_empty() { words.get(index + 1).map(String::as_str) } else { rest.strip_prefix('=') }
    })
}

/// Returns whether an administrator's settings for Claude Code forbid users' hooks.
pub(crate) fn forbids_user_hooks(text: &str) -> Result<bool, String> {
    let tree = SyntaxTree::parse(split_byte_order_mark(text).1)?;
    let mut is_forbidden = false;
    for name in ["disableAllHooks", "allowManagedHooksOnly"] {
        let value = find_member(tree.root(), name)?.map(|property| Json::from(&property.value));
        is_forbidden |= value == Some(Json::Boolean(true));
    }
    Ok(is_forbidden)
}

/// Returns the keys under which Codex stores its trust in the hooks of sayso in this file: the file, the event, and the
/// position of the hook.
pub(crate) fn codex_trust_keys(text: &str, file: &str) -> Result<Vec<String>, String> {
    let harness = Harness::Codex;
    let tree = SyntaxTree::parse(split_byte_order_mark(text).1)?;
    let Some(hooks) = find_object(tree.root(), "hooks")? else { return Ok(Vec::new()) };
    let mut keys = Vec::new();
    for event in harness.events() {
        let groups = find_array(hooks, event.name)?.into_iter().flat_map(|array| &array.elements);
        for (group_index, group) in groups.enumerate() {
            let hooks = hooks_of_group(group)?.into_iter().flat_map(|hooks| &hooks.elements);
            for (hook_index, hook) in hooks.enumerate() {
                if is_hook_of_sayso(harness, &Json::from(hook)) {
                    keys.push(format!("{file}:{}:{group_index}:{hook_index}", snake_case(event.name)));
                }
            }
        }
    }
    Ok(keys)
}

/// Returns whether nothing useful is left in a file that an installation created.
pub(crate) fn is_empty(harness: Harness, text: &str) -> bool {
    let (_, text) = split_byte_order_mark(text);
    let Ok(tree) = SyntaxTree::parse(text) else { return false };
    let is_own = |(name, value): &(String, Json)| {
        harness == Harness::Cursor && name == "version" && *value == Json::number(1)
    };
    let Json::Object(members) = Json::from(tree.root()) else { return false };
    members.iter().all(is_own) && !tree.has_comments(&(0..text.len()), &[])
}

/// Returns whether every event has exactly one hook of sayso, and the right one.
fn is_installed(harness: Harness, text: &str, words: &[String]) -> Result<bool, String> {
    let tree = SyntaxTree::parse(split_byte_order_mark(text).1)?;
    let hooks = find_object(tree.root(), "hooks")?;
    let mut is_installed = harness != Harness::Cursor || find_member(tree.root(), "version")?.is_some();
    for event in harness.events() {
        // Every event is looked at, so that a member of the wrong type is found before anything is inserted.
        is_installed &= hooks_for_event(harness, hooks, event.name)? == [harness.hook(*event, words)];
    }
    Ok(is_installed)
}

fn is_disabled(harness: Harness, root: &Object<'_>) -> Result<bool, String> {
    let has_value = |object: &Object<'_>, name: &str, expected: bool| -> Result<bool, String> {
        let value = find_member(object, name)?.map(|property| Json::from(&property.value));
        Ok(value == Some(Json::Boolean(expected)))
    };
    match harness {
        Harness::Claude => has_value(root, "disableAllHooks", true),
        Harness::Gemini => match find_object(root, "hooksConfig")? {
            Some(object) => {
                let disabled = find_member(object, "disabled")?.map(|property| Json::from(&property.value));
                let names = disabled.as_ref().and_then(Json::as_texts).unwrap_or_default();
                Ok(has_value(object, "enabled", false)? || names.contains(&"sayso"))
            }
            None => Ok(false),
        },
        _ => Ok(false),
    }
}

/// Returns the hooks of sayso for an event.
fn hooks_for_event(harness: Harness, hooks: Option<&Object<'_>>, event: &str) -> Result<Vec<Json>, String> {
    let Some(array) = hooks.map(|hooks| find_array(hooks, event)).transpose()?.flatten() else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for entry in &array.elements {
        match harness.layout() {
            HookLayout::Flat => found.push(Json::from(entry)),
            HookLayout::Grouped => {
                if let Some(hooks) = hooks_of_group(entry)? {
                    found.extend(hooks.elements.iter().map(Json::from));
                }
            }
        }
    }
    found.retain(|hook| is_hook_of_sayso(harness, hook));
    Ok(found)
}

/// Removes the hooks for all events. Returns whether nothing else is left. Hooks for events that this version does not
/// know are removed too, because another version may have installed them.
fn remove_from_hooks(
    harness: Harness,
    tree: &SyntaxTree<'_>,
    hooks: &Object<'_>,
    deletions: &mut Vec<Range<usize>>,
) -> Result<bool, String> {
    let mut removed = Vec::new();
    for property in &hooks.properties {
        let is_emptied = match property.value.as_array() {
            Some(array) => remove_from_event(harness, tree, array, deletions)?,
            None => false,
        };
        removed.push(is_emptied && !tree.has_comments(&to_range(property), deletions));
    }
    let properties: Vec<_> = hooks.properties.iter().map(to_range).collect();
    deletions.extend(tree.deletions(&properties, &removed));
    Ok(!removed.is_empty() && removed.iter().all(|is_removed| *is_removed))
}

/// Removes the hooks for one event. Returns whether there were any, and nothing else is left.
fn remove_from_event(
    harness: Harness,
    tree: &SyntaxTree<'_>,
    array: &Array<'_>,
    deletions: &mut Vec<Range<usize>>,
) -> Result<bool, String> {
    let mut removed = Vec::new();
    for entry in &array.elements {
        removed.push(match harness.layout() {
            HookLayout::Flat => is_hook_of_sayso(harness, &Json::from(entry)),
            HookLayout::Grouped => match hooks_of_group(entry)? {
                None => false,
                Some(hooks) => {
                    let is_own: Vec<_> = hooks
                        .elements
                        .iter()
                        .map(|hook| is_hook_of_sayso(harness, &Json::from(hook)))
                        .collect();
                    let items: Vec<_> = hooks.elements.iter().map(to_range).collect();
                    deletions.extend(tree.deletions(&items, &is_own));
                    let is_emptied = !is_own.is_empty() && is_own.iter().all(|is_own| *is_own);
                    is_emptied && !tree.has_comments(&to_range(entry), &items)
                }
            },
        });
    }
    let items: Vec<_> = array.elements.iter().map(to_range).collect();
    deletions.extend(tree.deletions(&items, &removed));
    Ok(!removed.is_empty() && removed.iter().all(|is_removed| *is_removed))
}

fn hooks_of_group<'e, 't>(entry: &'e Value<'t>) -> Result<Option<&'e Array<'t>>, String> {
    entry.as_object().map(|group| find_array(group, "hooks")).transpose().map(Option::flatten)
}

fn is_hook_of_sayso(harness: Harness, hook: &Json) -> bool {
    let Some(words) = command_words(hook) else { return false };
    matches!(words.as_slice(), [program, command, id, ..]
        if is_sayso(program) && command == "hook" && id == harness.name())
}

fn command_words(hook: &Json) -> Option<Vec<String>> {
    let command = hook.member("command")?.as_text()?;
    match hook.member("args") {
        None => split_words(command.strip_suffix(REFUSE_ON_FAILURE).unwrap_or(command)),
        Some(arguments) => {
            Some(std::iter::once(command).chain(arguments.as_texts()?).map(str::to_owned).collect())
        }
    }
}

/// Writes `PreToolUse` as `pre_tool_use`.
fn snake_case(name: &str) -> String {
    let mut result = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !result.is_empty() {
            result.push('_');
        }
        result.push(character.to_ascii_lowercase());
    }
    result
}

/// Checks that an edited text is valid and that only the hooks of sayso differ. A text that fails is never written.
fn check_other_values(harness: Harness, before: &str, after: &str) -> Result<(), String> {
    if other_values(harness, before)? == other_values(harness, after)? {
        return Ok(());
    }
    Err("the edit would have changed other values".to_owned())
}

/// Returns the value of a text without the hooks of sayso and what is empty without them.
fn other_values(harness: Harness, text: &str) -> Result<Json, String> {
    let mut root = Json::from(SyntaxTree::parse(split_byte_order_mark(text).1)?.root());
    let Json::Object(members) = &mut root else { return Ok(root) };
    for (name, hooks) in members.iter_mut() {
        if let Json::Object(events) = hooks
            && name == "hooks"
        {
            for (_, entries) in events.iter_mut() {
                retain_other_entries(harness, entries);
            }
            events.retain(|(_, entries)| *entries != Json::Array(Vec::new()));
        }
    }
    members.retain(|(name, value)| {
        let is_version = harness == Harness::Cursor && name == "version" && *value == Json::number(1);
        let is_empty = name == "hooks" && *value == Json::Object(Vec::new());
        !is_version && !is_empty
    });
    Ok(root)
}

fn retain_other_entries(harness: Harness, entries: &mut Json) {
    let Json::Array(entries) = entries else { return };
    entries.retain_mut(|entry| match harness.layout() {
        HookLayout::Flat => !is_hook_of_sayso(harness, entry),
        HookLayout::Grouped => {
            let Json::Object(members) = entry else { return true };
            for (name, hooks) in members.iter_mut() {
                if let Json::Array(hooks) = hooks
                    && name == "hooks"
                {
                    hooks.retain(|hook| !is_hook_of_sayso(harness, hook));
                }
            }
            entry.member("hooks") != Some(&Json::Array(Vec::new()))
        }
    });
}
