//! What a listener may hear: the agents and the people that it acts for.

use seal::json::{Value, Writer};
use thiserror::Error;

/// Agents and people; an empty list means all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    agents: Vec<String>,
    people: Vec<String>,
}

/// A text that is no scope.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no scope; write agent:NAME or person:NAME")]
pub struct BadScope(String);

impl Scope {
    /// Adds `agent:NAME` or `person:NAME`.
    pub fn add(&mut self, text: &str) -> Result<(), BadScope> {
        match text.split_once(':') {
            Some(("agent", name)) if !name.is_empty() => self.agents.push(name.to_owned()),
            Some(("person", name)) if !name.is_empty() => self.people.push(name.to_owned()),
            _ => return Err(BadScope(text.to_owned())),
        }
        Ok(())
    }

    /// Whether a session of that agent, for that person, may be heard. Where people are named, a session that is for nobody
    /// in particular is not heard.
    pub fn covers(&self, agent: &str, person: Option<&str>) -> bool {
        let agents = self.agents.is_empty() || self.agents.iter().any(|name| name == agent);
        let people = self.people.is_empty()
            || person.is_some_and(|person| self.people.iter().any(|name| name == person));
        agents && people
    }

    /// Writes it as a list of such texts.
    pub fn write(&self, writer: &mut Writer) {
        writer.open_array();
        for (kind, names) in [("agent", &self.agents), ("person", &self.people)] {
            for name in names {
                writer.text(&format!("{kind}:{name}"));
            }
        }
        writer.close_array();
    }

    /// Reads such a list.
    pub fn read(value: &Value<'_>) -> Option<Self> {
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
    fn a_scope_covers_what_it_names_and_everything_if_it_names_nothing() {
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
