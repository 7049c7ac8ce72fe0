//! Exhaustive: at every level of every message, changes each value in several ways, removes, renames and duplicates each
//! member, and adds a member to each object.

use asp::message::Authenticator;
use serde_json::{Map, Value, json};

use super::every_message;

/// Collects the JSON pointers of all values; the root is the empty pointer.
fn collect_pointers(value: &Value, pointer: &str, pointers: &mut Vec<String>) {
    pointers.push(pointer.to_owned());
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                collect_pointers(
                    value,
                    &format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1")),
                    pointers,
                );
            }
        }
        Value::Array(items) => {
            for (item, at) in items.iter().zip(0..) {
                collect_pointers(item, &format!("{pointer}/{at}"), pointers);
            }
        }
        _ => {}
    }
}

/// Returns values that differ from this one.
fn other_values(value: &Value) -> Vec<Value> {
    let mut others =
        vec![json!(null), json!(true), json!(0), json!(""), json!([]), json!({}), json!([value])];
    match value {
        Value::String(text) => {
            others.push(json!(format!("{text}x")));
            others.push(json!(format!(" {text}")));
            others.push(json!(text.get(1..).unwrap_or("é")));
            others.push(json!(text.to_uppercase()));
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap();
            others.extend([
                json!(number + 1.0),
                json!(number - 0.5),
                json!(-number),
                json!(number.to_string()),
            ]);
        }
        Value::Bool(flag) => others.push(json!(!flag)),
        Value::Object(members) => {
            let mut extended = members.clone();
            extended.insert("zzz".to_owned(), json!(1));
            others.push(Value::Object(extended));
            others.push(json!(members.values().collect::<Vec<_>>()));
        }
        Value::Array(items) => {
            others.push(json!([items.as_slice(), &[json!("zzz")]].concat()));
            others.push(json!(items.iter().rev().chain(items).collect::<Vec<_>>()));
        }
        Value::Null => {}
    }
    others.retain(|other| !is_same(other, value));
    others
}

/// Returns whether two values are the same. 81 and 81.0 are the same number in JSON and in RFC 8785.
fn is_same(left: &Value, right: &Value) -> bool {
    left == right
        || matches!((left.as_f64(), right.as_f64()), (Some(left), Some(right)) if (left - right).abs() < 1e-9)
}

/// Returns variants of the object at `pointer`, each with one member removed or renamed.
fn with_members_removed_or_renamed(value: &Value, pointer: &str) -> Vec<Value> {
    let Some(Value::Object(members)) = value.pointer(pointer) else { return Vec::new() };
    let mut changed = Vec::new();
    for name in members.keys() {
        let mut removed = members.clone();
        let member = removed.remove(name).unwrap();
        changed.push(removed.clone());
        removed.insert(format!("{name}2"), member);
        changed.push(removed);
    }
    changed
        .into_iter()
        .map(|members: Map<_, _>| with_value_at(value, pointer, Value::Object(members)))
        .collect()
}

fn with_value_at(value: &Value, pointer: &str, new_value: Value) -> Value {
    let mut changed = value.clone();
    *changed.pointer_mut(pointer).unwrap() = new_value;
    changed
}

/// Returns variants of the message text, each with one member duplicated at the front of its object. Edits the text, because
/// `serde_json` cannot represent duplicate members.
fn with_duplicate_members(text: &str, value: &Value, pointer: &str) -> Vec<String> {
    let Some(Value::Object(members)) = value.pointer(pointer) else { return Vec::new() };
    let member = |name: &str, value: &Value| format!("{}:{value},", json!(name));
    let name = pointer.rsplit('/').next().unwrap();
    let head = if pointer.is_empty() { "{".to_owned() } else { format!("\"{name}\":{{") };
    let Some(at) = text.find(&head).map(|at| at + head.len()) else { return Vec::new() };
    let insert = |members: String| format!("{}{members}{}", &text[..at], &text[at..]);
    members
        .iter()
        .flat_map(|(name, value)| [insert(member(name, value)), insert(member(name, &json!("other")))])
        .chain([insert("\"zzz\":1,\"zzz\":1,".to_owned())])
        .collect()
}

#[test]
fn every_changed_removed_renamed_added_or_duplicated_member_is_detected() {
    let mut authenticator = Authenticator::default();
    let mut counts = [0_u32; 3];
    for (chain, at) in every_message() {
        let text = &chain.transcript.messages[at];
        let value: Value = serde_json::from_str(text).unwrap();
        let reserialized = value.to_string();
        assert!(
            chain.accepts(&mut authenticator, at, reserialized.as_bytes()),
            "the order of members does not matter"
        );
        let mut pointers = Vec::new();
        collect_pointers(&value, "", &mut pointers);
        for pointer in &pointers {
            let changed = other_values(value.pointer(pointer).unwrap())
                .into_iter()
                .map(|new| with_value_at(&value, pointer, new));
            let removed = with_members_removed_or_renamed(&value, pointer);
            let duplicated = with_duplicate_members(text, &value, pointer);
            let mutants: [Vec<String>; 3] = [
                changed.map(|value| value.to_string()).collect(),
                removed.iter().map(ToString::to_string).collect(),
                duplicated,
            ];
            for (texts, count) in mutants.iter().zip(&mut counts) {
                for mutant in texts {
                    let is_accepted = chain.accepts(&mut authenticator, at, mutant.as_bytes());
                    assert!(!is_accepted, "{} line {}, {pointer}: {mutant}", chain.transcript.name, at + 1);
                    *count += 1;
                }
            }
        }
    }
    let [changed, removed, duplicated] = counts;
    println!("{changed} members changed or added, {removed} removed or renamed, {duplicated} duplicated");
}
