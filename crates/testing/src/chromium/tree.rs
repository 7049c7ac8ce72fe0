//! The accessibility tree as lines that can be compared: names, roles and states of what can be reached or heard, in order.
//!
//! Nodes that only structure a page are left out, because browser versions disagree about them.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Value, json};

use super::Page;

/// Properties that a listener is told. Others are how the browser came to them.
const PROPERTIES: [&str; 14] = [
    "atomic", "checked", "disabled", "expanded", "focused", "hasPopup", "invalid", "level", "live", "modal",
    "pressed", "readonly", "required", "selected",
];
/// Roles that only say how a text is laid out, and what a closed list would show if it were open.
const LAYOUT: [&str; 4] = ["InlineTextBox", "LineBreak", "ListMarker", "MenuListPopup"];
/// Roles whose text was said with them, as their name or value.
const NAMED: [&str; 6] = ["heading", "button", "link", "option", "textbox", "spinbutton"];
/// Roles that structure a page: within a line of text, and around blocks of it. A person hears of such a node only if it has a
/// name or a state.
const STRUCTURE: [&str; 7] = ["LabelText", "emphasis", "generic", "none", "presentation", "strong", "time"];
const BLOCKS: [&str; 4] = ["Section", "form", "group", "paragraph"];

impl Page {
    /// The tree, a line for each thing and its children indented: role, name, value, states. Texts that follow each other are
    /// one line.
    pub fn tree(&mut self) -> String {
        let answer = self.call("Accessibility.getFullAXTree", &json!({}));
        outline(answer["nodes"].as_array().unwrap())
    }

    /// What has the keyboard, as a screen reader would say it: its line of the tree.
    pub fn focused(&mut self) -> String {
        let element = self.call("Runtime.evaluate", &json!({ "expression": "document.activeElement" }));
        let how = json!({ "objectId": element["result"]["objectId"], "fetchRelatives": false });
        let answer = self.call("Accessibility.getPartialAXTree", &how);
        spoken(&answer["nodes"][0])
    }
}

/// The lines of a tree, from the nodes as the browser sends them.
pub fn outline(nodes: &[Value]) -> String {
    let by_id: HashMap<&str, &Value> =
        nodes.iter().filter_map(|node| Some((node["nodeId"].as_str()?, node))).collect();
    let root = nodes.iter().find(|node| node.get("parentId").is_none()).unwrap();
    let mut lines = Vec::new();
    for top in parts(&by_id, root) {
        top.write(&mut lines, 0);
    }
    lines.join("\n") + "\n"
}

/// A thing with what is in it, or a text.
enum Part {
    Thing(String, Vec<Part>),
    Text(String),
}

impl Part {
    fn write(&self, lines: &mut Vec<String>, depth: usize) {
        let indent = "  ".repeat(depth);
        match self {
            Self::Text(text) => lines.push(format!("{indent}text {}", quoted(text))),
            Self::Thing(line, inner) if let [Self::Text(text)] = inner.as_slice() => {
                lines.push(format!("{indent}{line}: {}", quoted(text)));
            }
            Self::Thing(line, inner) => {
                lines.push(format!("{indent}{line}"));
                for part in inner {
                    part.write(lines, depth + 1);
                }
            }
        }
    }
}

/// A text as it reads: white space is one space.
fn quoted(text: &str) -> Value {
    json!(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What a node comes to: itself with what is in it, only what is in it, or nothing.
fn parts(by_id: &HashMap<&str, &Value>, node: &Value) -> Vec<Part> {
    let role = word(node, "role");
    if LAYOUT.contains(&role.as_str()) {
        return Vec::new();
    }
    if role == "StaticText" && node["ignored"] != true {
        return vec![Part::Text(node["name"]["value"].as_str().unwrap_or_default().to_owned())];
    }
    let mut inner: Vec<Part> = Vec::new();
    for child in node["childIds"].as_array().into_iter().flatten() {
        let Some(child) = child.as_str().and_then(|id| by_id.get(id)) else { continue };
        for part in parts(by_id, child) {
            match (inner.last_mut(), part) {
                (Some(Part::Text(before)), Part::Text(text)) => *before += &text,
                (_, part) => inner.push(part),
            }
        }
    }
    let named = NAMED.contains(&role.as_str());
    inner.retain(|part| !matches!(part, Part::Text(text) if named || text.trim().is_empty()));
    let line = spoken(node);
    if node["ignored"] == true || STRUCTURE.contains(&role.as_str()) && line == role {
        return inner;
    }
    if BLOCKS.contains(&role.as_str()) && line == role {
        // Its text does not run into the text beside it.
        let apart = |part| if let Part::Text(text) = part { Part::Text(format!(" {text} ")) } else { part };
        return inner.into_iter().map(apart).collect();
    }
    vec![Part::Thing(line, inner)]
}

/// Role, name, description, value, properties.
fn spoken(node: &Value) -> String {
    let mut line = word(node, "role");
    if node["ignored"] == true {
        line += " (ignored)";
    }
    for (before, member) in [("", "name"), ("described ", "description"), ("value ", "value")] {
        let word = word(node, member);
        if !word.is_empty() {
            let _ = write!(line, " {before}{}", json!(word));
        }
    }
    for property in node["properties"].as_array().into_iter().flatten() {
        let (name, value) = (property["name"].as_str().unwrap_or_default(), &property["value"]["value"]);
        let plain = value == &json!(false) || value == "false" || value == "off" && name == "live";
        if !PROPERTIES.contains(&name) || plain {
            continue;
        }
        let _ = match value {
            Value::Bool(true) => write!(line, " {name}"),
            Value::String(value) => write!(line, " {name}={value}"),
            value => write!(line, " {name}={value}"),
        };
    }
    line
}

fn word(node: &Value, member: &str) -> String {
    match &node[member]["value"] {
        Value::String(word) => word.trim().to_owned(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
