//! Exhaustive: at every level of every message, every member and item changed in each of several ways, taken away,
//! renamed and doubled, and one more put in.

use asp::message::Authenticator;
use serde_json::{Map, Value, json};

use super::every_message;

/// All places in a value, as pointers; the root is the empty one.
fn places(value: &Value, here: &str, found: &mut Vec<String>) {
    found.push(here.to_owned());
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                places(value, &format!("{here}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (item, at) in items.iter().zip(0..) {
                places(item, &format!("{here}/{at}"), found);
            }
        }
        _ => {}
    }
}

/// Other values than this one.
fn others(value: &Value) -> Vec<Value> {
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
        Value::Bool(word) => others.push(json!(!word)),
        Value::Object(members) => {
            let mut more = members.clone();
            more.insert("zzz".to_owned(), json!(1));
            others.push(Value::Object(more));
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

/// 81 and 81.0 are one number to JSON, and to RFC 8785.
fn is_same(one: &Value, other: &Value) -> bool {
    one == other
        || matches!((one.as_f64(), other.as_f64()), (Some(one), Some(other)) if (one - other).abs() < 1e-9)
}

/// Every object in it with one member taken away, or renamed.
fn without_each(value: &Value, place: &str) -> Vec<Value> {
    let Some(Value::Object(members)) = value.pointer(place) else { return Vec::new() };
    let mut changed = Vec::new();
    for name in members.keys() {
        let mut less = members.clone();
        let member = less.remove(name).unwrap();
        changed.push(less.clone());
        less.insert(format!("{name}2"), member);
        changed.push(less);
    }
    changed.into_iter().map(|members: Map<_, _>| put(value, place, Value::Object(members))).collect()
}

fn put(value: &Value, place: &str, new: Value) -> Value {
    let mut changed = value.clone();
    *changed.pointer_mut(place).unwrap() = new;
    changed
}

/// The message with a member doubled, at the front of its object; `serde_json` cannot hold such.
fn doubled(text: &str, value: &Value, place: &str) -> Vec<String> {
    let Some(Value::Object(members)) = value.pointer(place) else { return Vec::new() };
    let member = |name: &str, value: &Value| format!("{}:{value},", json!(name));
    let name = place.rsplit('/').next().unwrap();
    let head = if place.is_empty() { "{".to_owned() } else { format!("\"{name}\":{{") };
    let Some(at) = text.find(&head).map(|at| at + head.len()) else { return Vec::new() };
    let put = |more: String| format!("{}{more}{}", &text[..at], &text[at..]);
    members
        .iter()
        .flat_map(|(name, value)| [put(member(name, value)), put(member(name, &json!("other")))])
        .chain([put("\"zzz\":1,\"zzz\":1,".to_owned())])
        .collect()
}

#[test]
fn every_changed_missing_renamed_added_or_doubled_member_is_detected() {
    let mut authenticator = Authenticator::default();
    let mut count = [0_u32; 3];
    for (chain, at) in every_message() {
        let text = &chain.talk.messages[at];
        let value: Value = serde_json::from_str(text).unwrap();
        let respelled = value.to_string();
        assert!(
            chain.takes(&mut authenticator, at, respelled.as_bytes()),
            "the order of members is no change"
        );
        let mut found = Vec::new();
        places(&value, "", &mut found);
        for place in &found {
            let changed =
                others(value.pointer(place).unwrap()).into_iter().map(|new| put(&value, place, new));
            let less = without_each(&value, place);
            let doubled = doubled(text, &value, place);
            let kinds: [Vec<String>; 3] = [
                changed.map(|value| value.to_string()).collect(),
                less.iter().map(ToString::to_string).collect(),
                doubled,
            ];
            for (texts, count) in kinds.iter().zip(&mut count) {
                for mutant in texts {
                    let taken = chain.takes(&mut authenticator, at, mutant.as_bytes());
                    assert!(!taken, "{} line {}, {place}: {mutant}", chain.talk.name, at + 1);
                    *count += 1;
                }
            }
        }
    }
    let [changed, less, doubled] = count;
    println!("{changed} members changed or added, {less} taken away or renamed, {doubled} doubled");
}
