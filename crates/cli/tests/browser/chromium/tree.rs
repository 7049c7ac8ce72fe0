//! The accessibility tree: what the browser tells a screen reader of a page, as lines that can be compared.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Value, json};

use super::Page;

/// Properties that a listener is told. Others are how the browser came to them.
const PROPERTIES: [&str; 14] = [
    "atomic", "checked", "disabled", "expanded", "focused", "hasPopup", "invalid", "level", "live", "modal",
    "pressed", "readonly", "required", "selected",
];
/// Roles that only say how a text is laid out.
const LAYOUT: [&str; 3] = ["InlineTextBox", "LineBreak", "ListMarker"];

impl Page {
    /// The tree, a line for each thing and its children indented: role, name, what else is said.
    pub(crate) fn tree(&mut self) -> String {
        let answer = self.call("Accessibility.getFullAXTree", &json!({}));
        let nodes = answer["nodes"].as_array().unwrap();
        let by_id: HashMap<&str, &Value> =
            nodes.iter().filter_map(|node| Some((node["nodeId"].as_str()?, node))).collect();
        let mut text = String::new();
        let root = nodes.iter().find(|node| node.get("parentId").is_none()).unwrap();
        write_node(&mut text, &by_id, root, 0, [""; 2]);
        text
    }

    /// What has the keyboard, as a screen reader would say it: its line of the tree.
    pub(crate) fn focused(&mut self) -> String {
        let how = json!({ "expression": "document.activeElement" });
        let element = self.call("Runtime.evaluate", &how);
        let object = &element["result"]["objectId"];
        let how = json!({ "objectId": object, "fetchRelatives": false });
        let answer = self.call("Accessibility.getPartialAXTree", &how);
        spoken(&answer["nodes"][0])
    }
}

fn write_node(
    text: &mut String,
    by_id: &HashMap<&str, &Value>,
    node: &Value,
    depth: usize,
    parent: [&str; 2],
) {
    let role = word(node, "role");
    if LAYOUT.contains(&role) {
        return;
    }
    let name = word(node, "name");
    // A text that is its parent's whole name or value was said with it; what is ignored or only groups has nothing to say.
    let said = role == "StaticText" && parent.contains(&name);
    let groups = matches!(role, "generic" | "none" | "LabelText") && name.is_empty();
    let silent = node["ignored"] == true || groups || said;
    let inner = if silent { depth } else { depth + 1 };
    if !silent {
        let _ = writeln!(text, "{:1$}{2}", "", depth * 2, spoken(node));
    }
    for child in node["childIds"].as_array().into_iter().flatten() {
        if let Some(child) = child.as_str().and_then(|id| by_id.get(id)) {
            write_node(text, by_id, child, inner, if silent { parent } else { [name, word(node, "value")] });
        }
    }
}

/// Role, name, description, value, properties.
fn spoken(node: &Value) -> String {
    let mut line = word(node, "role").to_owned();
    if node["ignored"] == true {
        line += " (ignored)";
    }
    if !word(node, "name").is_empty() {
        let _ = write!(line, " {}", json!(word(node, "name")));
    }
    if !word(node, "description").is_empty() {
        let _ = write!(line, " described {}", json!(word(node, "description")));
    }
    if let Some(value) = node["value"].get("value").filter(|value| **value != "") {
        let _ = write!(line, " value {value}");
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

fn word<'a>(node: &'a Value, member: &str) -> &'a str {
    node[member]["value"].as_str().unwrap_or_default().trim()
}
