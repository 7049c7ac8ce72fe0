//! The accessibility tree as lines of text that tests can compare. It contains the names, roles and states of everything
//! that a person can reach or hear, in order.
//!
//! Purely structural nodes are omitted, because browser versions disagree about them.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::{Value, json};

use super::Page;

/// Properties that a screen reader announces. All others are internal to the browser.
const ANNOUNCED_PROPERTIES: [&str; 14] = [
    "atomic", "checked", "disabled", "expanded", "focused", "hasPopup", "invalid", "level", "live", "modal",
    "pressed", "readonly", "required", "selected",
];
/// Roles that only describe text layout, and the role of a closed list's popup.
const LAYOUT_ROLES: [&str; 4] = ["InlineTextBox", "LineBreak", "ListMarker", "MenuListPopup"];
/// Roles of nodes whose text is already part of their name or value.
const NAMED_ROLES: [&str; 6] = ["heading", "button", "link", "option", "textbox", "spinbutton"];
/// Structural inline roles. A screen reader announces such a node only if it has a name or a state.
const STRUCTURAL_ROLES: [&str; 7] =
    ["LabelText", "emphasis", "generic", "none", "presentation", "strong", "time"];
/// Structural block roles. They are announced like structural inline roles.
const BLOCK_ROLES: [&str; 4] = ["Section", "form", "group", "paragraph"];

impl Page {
    /// Returns the tree with one line per node, which contains its role, name, value and states. Children are indented.
    /// Adjacent texts share a line.
    pub fn accessibility_tree(&mut self) -> String {
        let response = self.call("Accessibility.getFullAXTree", &json!({}));
        outline(response["nodes"].as_array().unwrap())
    }

    /// Returns the tree line of the focused node, as a screen reader would announce it.
    pub fn focused_node(&mut self) -> String {
        let element = self.call("Runtime.evaluate", &json!({ "expression": "document.activeElement" }));
        let parameters = json!({ "objectId": element["result"]["objectId"], "fetchRelatives": false });
        let response = self.call("Accessibility.getPartialAXTree", &parameters);
        describe_node(&response["nodes"][0])
    }
}

/// Formats the nodes of an accessibility tree, as the browser sends them, as indented lines.
pub fn outline(nodes: &[Value]) -> String {
    let by_id: HashMap<&str, &Value> =
        nodes.iter().filter_map(|node| Some((node["nodeId"].as_str()?, node))).collect();
    let root = nodes.iter().find(|node| node.get("parentId").is_none()).unwrap();
    let mut lines = Vec::new();
    for node in flatten_node(&by_id, root) {
        node.write(&mut lines, 0);
    }
    lines.join("\n") + "\n"
}

/// An element with its children, or a text.
enum TreeNode {
    Element(String, Vec<TreeNode>),
    Text(String),
}

impl TreeNode {
    fn write(&self, lines: &mut Vec<String>, depth: usize) {
        let indent = "  ".repeat(depth);
        match self {
            Self::Text(text) => lines.push(format!("{indent}text {}", quoted(text))),
            Self::Element(line, children) if let [Self::Text(text)] = children.as_slice() => {
                lines.push(format!("{indent}{line}: {}", quoted(text)));
            }
            Self::Element(line, children) => {
                lines.push(format!("{indent}{line}"));
                for child in children {
                    child.write(lines, depth + 1);
                }
            }
        }
    }
}

/// Quotes a text and collapses its white space.
fn quoted(text: &str) -> Value {
    json!(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Converts a node. Returns the node with its children, only the children if the node is not announced, or nothing.
fn flatten_node(by_id: &HashMap<&str, &Value>, node: &Value) -> Vec<TreeNode> {
    let role = attribute_text(node, "role");
    if LAYOUT_ROLES.contains(&role.as_str()) {
        return Vec::new();
    }
    if role == "StaticText" && node["ignored"] != true {
        return vec![TreeNode::Text(node["name"]["value"].as_str().unwrap_or_default().to_owned())];
    }
    let mut children: Vec<TreeNode> = Vec::new();
    for child in node["childIds"].as_array().into_iter().flatten() {
        let Some(child) = child.as_str().and_then(|id| by_id.get(id)) else { continue };
        for child in flatten_node(by_id, child) {
            match (children.last_mut(), child) {
                (Some(TreeNode::Text(previous)), TreeNode::Text(text)) => *previous += &text,
                (_, child) => children.push(child),
            }
        }
    }
    let has_text_in_name = NAMED_ROLES.contains(&role.as_str());
    children
        .retain(|child| !matches!(child, TreeNode::Text(text) if has_text_in_name || text.trim().is_empty()));
    let line = describe_node(node);
    if node["ignored"] == true || STRUCTURAL_ROLES.contains(&role.as_str()) && line == role {
        return children;
    }
    if BLOCK_ROLES.contains(&role.as_str()) && line == role {
        // Spaces keep the text of a block separate from the text next to it.
        let with_spaces = |child| {
            if let TreeNode::Text(text) = child { TreeNode::Text(format!(" {text} ")) } else { child }
        };
        return children.into_iter().map(with_spaces).collect();
    }
    vec![TreeNode::Element(line, children)]
}

/// Formats role, name, description, value and properties.
fn describe_node(node: &Value) -> String {
    let mut line = attribute_text(node, "role");
    if node["ignored"] == true {
        line += " (ignored)";
    }
    for (prefix, member) in [("", "name"), ("described ", "description"), ("value ", "value")] {
        let text = attribute_text(node, member);
        if !text.is_empty() {
            let _ = write!(line, " {prefix}{}", json!(text));
        }
    }
    for property in node["properties"].as_array().into_iter().flatten() {
        let (name, value) = (property["name"].as_str().unwrap_or_default(), &property["value"]["value"]);
        let is_default = value == &json!(false) || value == "false" || value == "off" && name == "live";
        if !ANNOUNCED_PROPERTIES.contains(&name) || is_default {
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

fn attribute_text(node: &Value, member: &str) -> String {
    match &node[member]["value"] {
        Value::String(text) => text.trim().to_owned(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
