//! The agents and people whose sessions a listener may receive.

use seal::json::{JsonKind, JsonValue, JsonWriter};
use thiserror::Error;

/// The agents and people to which a listener is limited. An empty list means no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    agents: Vec<String>,
    people: Vec<String>,
}

/// A string that is not a valid scope.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is not a valid scope; use agent:NAME or person:NAME")]
pub struct InvalidScope(String);

impl Scope {
    /// Adds an `agent:NAME` or `person:NAME` entry.
    pub fn add(&mut self, text: &str) -> Result<(), InvalidScope> {
        match text.split_once(':') {
            Some(("agent", name)) if !name.is_empty() => self.agents.push(name.to_owned()),
            Some(("person", name)) if !name.is_empty() => self.people.push(name.to_owned()),
            _ => return Err(InvalidScope(text.to_owned())),
        }
        Ok(())
    }

    /// Whether the scope includes a session of this agent for this person. If the scope names people, a session for
    /// no particular person is not included.
    pub fn covers(&self, agent: &str, person: Option<&str>) -> bool {
        let covers_agent = self.agents.is_empty() || self.agents.iter().any(|name| name == agent);
        let covers_person = self.people.is_empty()
            || person.is_some_and(|person| self.people.iter().any(|name| name == person));
        covers_agent && covers_person
    }

    /// Returns the people that the scope names.
    pub(crate) fn people(&self) -> impl Iterator<Item = &str> {
        self.people.iter().map(String::as_str)
    }

    /// Returns the entries in the form that [`add`](Self::add) accepts.
    pub fn entries(&self) -> impl Iterator<Item = String> {
        let agents = self.agents.iter().map(|name| format!("agent:{name}"));
        agents.chain(self.people.iter().map(|name| format!("person:{name}")))
    }

    /// Writes the entries as a JSON array of strings.
    pub fn write(&self, writer: &mut JsonWriter) {
        writer.open_array();
        for entry in self.entries() {
            writer.text(&entry);
        }
        writer.close_array();
    }

    /// Reads the entries from a JSON array of strings. Returns `None` for any other value, because an empty scope would
    /// cover everything.
    pub fn read(value: &JsonValue<'_>) -> Option<Self> {
        if value.kind() != JsonKind::Array {
            return None;
        }
        let mut scope = Self::default();
        for item in value.items() {
            scope.add(&item.text()?).ok()?;
        }
        Some(scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_covers_its_entries_and_an_empty_scope_covers_everything() {
        let all = Scope::default();
        assert!(all.covers("bank", None) && all.covers("bank", Some("marisol")));
        let mut bank = Scope::default();
        bank.add("agent:bank").unwrap();
        assert!(bank.covers("bank", Some("marisol")) && !bank.covers("post", Some("marisol")));
        let mut marisol = bank.clone();
        marisol.add("person:marisol").unwrap();
        assert!(marisol.covers("bank", Some("marisol")));
        assert!(!marisol.covers("bank", Some("jonas")) && !marisol.covers("bank", None));
        assert!(Scope::default().add("bank").is_err() && Scope::default().add("agent:").is_err());
    }
}
