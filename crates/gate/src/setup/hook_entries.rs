//! Finds, adds and removes the hooks of sayso in a harness's configuration.

use jsonc_parser::cst::{CstArray, CstNode, CstObject};

use super::Harness;
use super::command_words::{is_sayso, split_words};
use super::harness::HookLayout;
use super::jsonc::{Document, Json, find_array, find_member, find_object};

/// Which hooks of sayso a configuration contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookState {
    /// Events that have a hook of sayso.
    pub present: Vec<String>,
    /// Events that should have one.
    pub missing: Vec<String>,
    /// The programs that the hooks start.
    pub programs: Vec<String>,
    /// Whether the configuration switches all hooks off.
    pub is_disabled: bool,
}

/// Adds the hooks, or replaces them if they differ. Returns the new text.
pub(crate) fn install(harness: Harness, text: &str, words: &[String]) -> Result<String, String> {
    let document = Document::parse(text)?;
    let root = document.object()?;
    if harness == Harness::Cursor && find_member(&root, "version")?.is_none() {
        root.append("version", Json::number(1).to_input());
    }
    let hooks = match find_object(&root, "hooks")? {
        Some(hooks) => hooks,
        None => root.object_value_or_set("hooks"),
    };
    for event in harness.events() {
        let hook = harness.hook(*event, words);
        let array = find_array(&hooks, event.name)?;
        if let Some(array) = &array {
            let current = hooks_of_sayso(harness, array)?;
            if let [(_, value)] = current.as_slice()
                && *value == hook
            {
                continue;
            }
            current.into_iter().for_each(|(node, _)| remove_hook(harness, node));
        }
        let array = array.unwrap_or_else(|| hooks.array_value_or_set(event.name));
        let entry = match harness.layout() {
            HookLayout::Flat => hook,
            HookLayout::Grouped => Json::object([("hooks", Json::Array(vec![hook]))]),
        };
        array.append(entry.to_input());
    }
    Ok(document.to_text())
}

/// Removes the hooks, and what becomes empty by that. Returns the new text.
pub(crate) fn remove(harness: Harness, text: &str) -> Result<String, String> {
    let document = Document::parse(text)?;
    let root = document.object()?;
    let Some(hooks) = find_object(&root, "hooks")? else { return Ok(text.to_owned()) };
    let mut is_changed = false;
    // Hooks for events that this version does not know are removed too; another version may have installed them.
    for property in hooks.properties() {
        let Some(array) = property.array_value() else { continue };
        let found = hooks_of_sayso(harness, &array)?;
        if found.is_empty() {
            continue;
        }
        is_changed = true;
        found.into_iter().for_each(|(node, _)| remove_hook(harness, node));
        if array.elements().is_empty() {
            property.remove();
        }
    }
    if !is_changed {
        return Ok(text.to_owned());
    }
    if hooks.properties().is_empty()
        && let Some(property) = find_member(&root, "hooks")?
    {
        property.remove();
    }
    Ok(document.to_text())
}

/// Returns which hooks there are.
pub(crate) fn inspect(harness: Harness, text: &str) -> Result<HookState, String> {
    let document = Document::parse(text)?;
    let root = document.object()?;
    let hooks = find_object(&root, "hooks")?;
    let mut state = HookState { is_disabled: is_disabled(harness, &root)?, ..HookState::default() };
    for event in harness.events() {
        let array = hooks.as_ref().map(|hooks| find_array(hooks, event.name)).transpose()?.flatten();
        let found = array.map(|array| hooks_of_sayso(harness, &array)).transpose()?.unwrap_or_default();
        let list = if found.is_empty() { &mut state.missing } else { &mut state.present };
        list.push(event.name.to_owned());
        for (_, hook) in found {
            if let Some(program) = command_words(&hook).and_then(|words| words.into_iter().next())
                && !state.programs.contains(&program)
            {
                state.programs.push(program);
            }
        }
    }
    Ok(state)
}

/// Returns whether nothing of value is left in a file that an installation created.
pub(crate) fn is_empty(harness: Harness, text: &str) -> bool {
    let value = Document::parse(text).ok().and_then(|document| document.value());
    let Some(Json::Object(members)) = value else { return false };
    members.iter().all(|(name, value)| {
        harness == Harness::Cursor && name == "version" && *value == Json::number(1)
    })
}

fn is_disabled(harness: Harness, root: &CstObject) -> Result<bool, String> {
    let is_member = |object: &CstObject, name: &str, expected: bool| -> Result<bool, String> {
        let value = find_member(object, name)?.and_then(|property| Json::from_node(&property.value()?));
        Ok(value == Some(Json::Boolean(expected)))
    };
    match harness {
        Harness::Claude => is_member(root, "disableAllHooks", true),
        Harness::Gemini => match find_object(root, "hooksConfig")? {
            Some(object) => is_member(&object, "enabled", false),
            None => Ok(false),
        },
        _ => Ok(false),
    }
}

/// Returns the hooks of sayso in the array of an event.
fn hooks_of_sayso(harness: Harness, array: &CstArray) -> Result<Vec<(CstNode, Json)>, String> {
    let mut hooks = Vec::new();
    for element in array.elements() {
        match harness.layout() {
            HookLayout::Flat => hooks.push(element),
            HookLayout::Grouped => {
                let Some(group) = element.as_object() else { continue };
                hooks.extend(find_array(&group, "hooks")?.into_iter().flat_map(|array| array.elements()));
            }
        }
    }
    let with_value = hooks.into_iter().filter_map(|node| Json::from_node(&node).map(|value| (node, value)));
    Ok(with_value.filter(|(_, hook)| is_hook_of_sayso(harness, hook)).collect())
}

fn is_hook_of_sayso(harness: Harness, hook: &Json) -> bool {
    let Some(words) = command_words(hook) else { return false };
    matches!(words.as_slice(), [program, command, id, ..]
        if is_sayso(program) && command == "hook" && id == harness.id())
}

fn command_words(hook: &Json) -> Option<Vec<String>> {
    let command = hook.member("command")?.as_text()?;
    match hook.member("args") {
        None => split_words(command),
        Some(arguments) => {
            Some(std::iter::once(command).chain(arguments.as_texts()?).map(str::to_owned).collect())
        }
    }
}

/// Removes a hook, and its group if it was the only hook in it.
fn remove_hook(harness: Harness, node: CstNode) {
    let group = match harness.layout() {
        HookLayout::Flat => None,
        HookLayout::Grouped => node.ancestors().find_map(|ancestor| ancestor.as_object()),
    };
    node.remove();
    let Some(group) = group else { return };
    if group.array_value("hooks").is_some_and(|hooks| hooks.elements().is_empty()) {
        group.remove();
    }
}
