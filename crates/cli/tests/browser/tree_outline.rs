//! Which differences the outline of an accessibility tree shows, and which it ignores.

use serde_json::{Value, json};
use testing::chromium::outline;

/// Converts nested nodes `[role, name, states, children]` to the browser's flat format.
fn flatten_nodes(page: &Value) -> Vec<Value> {
    fn add(nodes: &mut Vec<Value>, node: &Value, parent: Option<&str>) -> String {
        let id = nodes.len().to_string();
        let states = node[2].as_object().unwrap().iter();
        let states: Vec<Value> =
            states.map(|(name, value)| json!({ "name": name, "value": { "value": value } })).collect();
        let mut created = json!({
            "nodeId": id,
            "role": { "value": node[0] },
            "name": { "value": node[1] },
            "properties": states,
        });
        if let Some(parent) = parent {
            created["parentId"] = json!(parent);
        }
        nodes.push(created);
        let children = node[3].as_array().unwrap().iter();
        let children: Vec<String> = children.map(|child| add(nodes, child, Some(&id))).collect();
        nodes[id.parse::<usize>().unwrap()]["childIds"] = json!(children);
        id
    }
    let mut nodes = Vec::new();
    add(&mut nodes, page, None);
    nodes
}

fn outline_of(children: &Value) -> String {
    outline(&flatten_nodes(&json!(["RootWebArea", "Try", {}, children])))
}

fn sample_page() -> Value {
    json!([
        ["region", "Ask", {}, [
            ["StaticText", "Your name", {}, []],
            ["textbox", "Your name", { "required": true }, []],
            ["button", "Send", {}, []],
            ["StaticText", "It is sent at once. ", {}, []],
            ["StaticText", "It cannot be undone.", {}, []],
        ]],
        ["status", "", { "live": "polite" }, [["StaticText", "Ready.", {}, []]]],
    ])
}

#[test]
fn structure_that_varies_between_browser_versions_is_ignored() {
    let structured = json!([
        ["generic", "", {}, [
            ["region", "Ask", {}, [
                ["form", "", {}, [
                    ["paragraph", "", {}, [
                        ["LabelText", "", {}, [["StaticText", "Your name", {}, []]]],
                        ["textbox", "Your name", { "required": true }, [["generic", "", {}, []]]],
                    ]],
                    ["group", "", {}, [["button", "Send", {}, [["StaticText", "Send", {}, []]]]]],
                    ["paragraph", "", {}, [["StaticText", "It is sent at once.", {}, []]]],
                    ["paragraph", "", {}, [["StaticText", "It cannot be undone.", {}, []]]],
                ]],
            ]],
        ]],
        ["status", "", { "live": "polite" }, [["paragraph", "", {}, [["StaticText", "Ready.", {}, []]]]]],
    ]);
    assert_eq!(outline_of(&structured), outline_of(&sample_page()));
}

#[test]
fn a_changed_name_role_state_text_or_order_is_detected() {
    let changes: [(&str, Value); 7] = [
        ("/0/3/1/1", json!("Your names")),
        ("/0/3/2/0", json!("link")),
        ("/0/3/1/2", json!({})),
        ("/0/3/3/1", json!("It is sent later.")),
        ("/0/1", json!("")),
        ("/1/2", json!({ "live": "assertive" })),
        ("/0/3/4", json!(["generic", "", {}, []])),
    ];
    for (pointer, value) in changes {
        let mut changed = sample_page();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert_ne!(outline_of(&changed), outline_of(&sample_page()), "{pointer}");
    }
    for (one, other) in [(1, 2), (3, 4), (0, 3)] {
        let mut changed = sample_page();
        changed[0][3].as_array_mut().unwrap().swap(one, other);
        assert_ne!(outline_of(&changed), outline_of(&sample_page()), "{one} and {other} in another order");
    }
}

#[test]
fn structure_with_a_name_or_a_state_is_kept() {
    for (role, name, states) in [("form", "Sign in", json!({})), ("generic", "", json!({ "live": "polite" }))]
    {
        let structured = json!([[role, name, states, [["button", "Send", {}, []]]]]);
        assert!(outline_of(&structured).contains(&format!("\n  {role}")), "{}", outline_of(&structured));
    }
}
