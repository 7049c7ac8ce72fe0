//! JSON that can be changed member by member. Unchanged scalars are written as they were read, and inserted values may be
//! invalid.

use seal::json::{JsonKind, JsonValue, Tape};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EditableJson {
    /// A scalar, or any JSON text that a test inserted. It is written unchanged.
    Leaf(String),
    Array(Vec<EditableJson>),
    Object(Vec<(String, EditableJson)>),
}

impl EditableJson {
    pub(crate) fn parse(text: &str) -> Self {
        let mut tape = Tape::default();
        let doc = tape.read(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        Self::from_value(&doc.root())
    }

    fn from_value(value: &JsonValue<'_>) -> Self {
        match value.kind() {
            JsonKind::Array => Self::Array(value.items().map(|item| Self::from_value(&item)).collect()),
            JsonKind::Object => Self::Object(
                value
                    .members()
                    .map(|(key, value)| (key.text().unwrap().into(), Self::from_value(&value)))
                    .collect(),
            ),
            _ => Self::Leaf(value.source().to_owned()),
        }
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Leaf(format!("\"{text}\""))
    }

    pub(crate) fn write(&self) -> String {
        let join = |parts: Vec<String>| parts.join(",");
        match self {
            Self::Leaf(text) => text.clone(),
            Self::Array(items) => format!("[{}]", join(items.iter().map(Self::write).collect())),
            Self::Object(members) => {
                let member = |(key, value): &(String, Self)| format!("\"{key}\":{}", value.write());
                format!("{{{}}}", join(members.iter().map(member).collect()))
            }
        }
    }

    /// Returns the value at a path such as `content/body/terms/obligations/0`.
    pub(crate) fn get(&self, path: &str) -> Option<&Self> {
        path.split('/').try_fold(self, |value, name| match value {
            Self::Leaf(_) => None,
            Self::Array(items) => items.get(name.parse::<usize>().ok()?),
            Self::Object(members) => members.iter().find(|(key, _)| key == name).map(|(_, member)| member),
        })
    }

    /// Returns the string at a path; empty if there is none.
    pub(crate) fn string(&self, path: &str) -> String {
        match self.get(path) {
            Some(Self::Leaf(text)) if text.starts_with('"') => text.trim_matches('"').to_owned(),
            _ => String::new(),
        }
    }

    /// Sets the member at a path. Its parent must exist.
    pub(crate) fn set(&mut self, path: &str, value: Self) {
        let (parent, name) = self.parent(path);
        match parent {
            Self::Array(items) => items[name.parse::<usize>().unwrap()] = value,
            Self::Object(members) => match members.iter_mut().find(|(key, _)| *key == name) {
                Some((_, old)) => *old = value,
                None => members.push((name, value)),
            },
            Self::Leaf(text) => panic!("{path}: {text} has no members"),
        }
    }

    pub(crate) fn with(mut self, path: &str, value: &str) -> Self {
        self.set(path, Self::Leaf(value.to_owned()));
        self
    }

    pub(crate) fn with_text(self, path: &str, text: &str) -> Self {
        self.with(path, &format!("\"{text}\""))
    }

    pub(crate) fn without(mut self, path: &str) -> Self {
        let (parent, name) = self.parent(path);
        if let Self::Object(members) = parent {
            members.retain(|(key, _)| *key != name);
        }
        self
    }

    fn parent(&mut self, path: &str) -> (&mut Self, String) {
        let mut names: Vec<_> = path.split('/').collect();
        let last = names.pop().unwrap().to_owned();
        let parent = names.into_iter().fold(self, |value, name| match value {
            Self::Array(items) => &mut items[name.parse::<usize>().unwrap()],
            Self::Object(members) => {
                let found = members.iter_mut().find(|(key, _)| key == name);
                &mut found.unwrap_or_else(|| panic!("no {name} in {path}")).1
            }
            Self::Leaf(text) => panic!("{path}: {text} has no members"),
        });
        (parent, last)
    }
}
