//! Parses `expected.txt`. Every error names its line, except an error about missing cells.

use std::collections::{BTreeMap, BTreeSet};

use asp::state_machine::{
    AnyStateInterpretation, Fact, Facts, Role, State, Timer, TransitionTarget, Trigger,
};
use asp::{Performative, RejectCode};

/// The contents of the file.
#[derive(Debug, Default)]
pub(crate) struct ExpectedTable {
    cells: BTreeMap<(State, Performative, Role), ExpectedCell>,
    /// `None` if nothing happens.
    non_message_cells: BTreeMap<(Trigger, State), Option<TransitionTarget>>,
}

/// A cell, with its cases in the order in which they are checked.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedCell {
    line: usize,
    cases: Vec<ExpectedCase>,
}

#[derive(Clone, Debug)]
struct ExpectedCase {
    /// Set if the case applies in only one interpretation of "any state".
    only_for: Option<AnyStateInterpretation>,
    conditions: Vec<(Fact, bool)>,
    target: TransitionTarget,
}

/// Triggers other than messages, in the order of the file.
pub(crate) const NON_MESSAGE_TRIGGERS: [Trigger; 6] = [
    Trigger::TimerExpired(Timer::Invitation),
    Trigger::TimerExpired(Timer::Introduction),
    Trigger::TimerExpired(Timer::Session),
    Trigger::TimerExpired(Timer::Response),
    Trigger::TimerExpired(Timer::Escalation),
    Trigger::BrokenChain,
];

impl ExpectedTable {
    /// Parses the file. Every cell must be stated exactly once.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut parser = ExpectationParser {
            table: Self::default(),
            section: ExpectationSection::None,
            open_cells: Vec::new(),
        };
        for (line, text) in (1..).zip(text.lines()) {
            parser.parse_line(line, text).map_err(|error| format!("line {line}: {error}"))?;
        }
        let table = parser.table;
        table.check_complete()?;
        Ok(table)
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = (State, Performative, Role, &ExpectedCell)> {
        self.cells.iter().map(|(&(state, performative, sender), cell)| (state, performative, sender, cell))
    }

    pub(crate) fn non_message_cells(
        &self,
    ) -> impl Iterator<Item = (Trigger, State, Option<TransitionTarget>)> {
        self.non_message_cells.iter().map(|(&(trigger, state), &target)| (trigger, state, target))
    }

    fn check_complete(&self) -> Result<(), String> {
        let mut missing = Vec::new();
        for state in State::ALL {
            for performative in Performative::ALL {
                for sender in Role::ALL {
                    if !self.cells.contains_key(&(state, performative, sender)) {
                        missing.push(format!("{state} {performative} {sender}"));
                    }
                }
            }
            let missing_triggers = NON_MESSAGE_TRIGGERS
                .iter()
                .filter(|trigger| !self.non_message_cells.contains_key(&(**trigger, state)));
            missing.extend(missing_triggers.map(|trigger| format!("{trigger:?} in {state}")));
        }
        for ((state, performative, sender), cell) in &self.cells {
            for any_state in AnyStateInterpretation::ALL {
                cell.check_complete(any_state).map_err(|error| {
                    format!("line {}: {state} {performative} {sender}: {error}", cell.line)
                })?;
            }
        }
        if missing.is_empty() { Ok(()) } else { Err(format!("not stated: {}", missing.join(", "))) }
    }
}

impl ExpectedCell {
    /// Returns the line on which it is stated.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// Returns the target of the first case that holds.
    pub(crate) fn target(&self, any_state: AnyStateInterpretation, facts: Facts) -> Option<TransitionTarget> {
        self.cases(any_state)
            .find(|case| case.conditions.iter().all(|(fact, holds)| facts.has(*fact) == *holds))
            .map(|case| case.target)
    }

    /// Returns the facts that its cases depend on.
    pub(crate) fn facts(&self, any_state: AnyStateInterpretation) -> BTreeSet<Fact> {
        self.cases(any_state).flat_map(|case| case.conditions.iter().map(|(fact, _)| *fact)).collect()
    }

    fn cases(&self, any_state: AnyStateInterpretation) -> impl Iterator<Item = &ExpectedCase> {
        self.cases.iter().filter(move |case| case.only_for.is_none_or(|only_for| only_for == any_state))
    }

    /// Checks that the last case, and no other, is `otherwise`.
    fn check_complete(&self, any_state: AnyStateInterpretation) -> Result<(), String> {
        let count = self.cases(any_state).count();
        match self.cases(any_state).position(|case| case.conditions.is_empty()) {
            None => Err(format!("there is no `otherwise` case ({any_state:?})")),
            Some(index) if index + 1 < count => Err(format!("a case after `otherwise` ({any_state:?})")),
            Some(_) => Ok(()),
        }
    }
}

enum ExpectationSection {
    None,
    State(State),
    NonMessage,
}

struct ExpectationParser {
    table: ExpectedTable,
    section: ExpectationSection,
    /// The cells that indented lines belong to.
    open_cells: Vec<(State, Performative, Role)>,
}

impl ExpectationParser {
    fn parse_line(&mut self, line: usize, text: &str) -> Result<(), String> {
        let is_indented = text.starts_with(' ');
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        if is_indented {
            return self.parse_case(text);
        }
        self.open_cells.clear();
        if text == "not a message" {
            self.section = ExpectationSection::NonMessage;
        } else if let Some(name) = text.strip_prefix("state ") {
            self.section = ExpectationSection::State(parse_state(name)?);
        } else if let ExpectationSection::State(state) = self.section {
            self.parse_cell(line, state, text)?;
        } else if matches!(self.section, ExpectationSection::NonMessage) {
            self.parse_non_message_cell(text)?;
        } else {
            return Err("no state has been named yet".to_owned());
        }
        Ok(())
    }

    fn parse_cell(&mut self, line: usize, state: State, text: &str) -> Result<(), String> {
        let (head, result) = match text.split_once("->") {
            Some((head, result)) => (head, Some(parse_target(result)?)),
            None => (text, None),
        };
        let [performative, sender] = split_words(head)?;
        let performative = Performative::parse(performative)
            .ok_or_else(|| format!("{performative:?} is not a performative"))?;
        let senders = match sender {
            "either" => Role::ALL.to_vec(),
            word => match Role::ALL.into_iter().find(|role| role.as_str() == word) {
                Some(role) => vec![role],
                None => return Err(format!("{word:?} is not a sender")),
            },
        };
        let cases: Vec<_> = result
            .map(|target| ExpectedCase { only_for: None, conditions: Vec::new(), target })
            .into_iter()
            .collect();
        for sender in senders {
            let key = (state, performative, sender);
            if let Some(before) = self.table.cells.insert(key, ExpectedCell { line, cases: cases.clone() }) {
                return Err(format!("{state} {performative} {sender} is stated on line {} too", before.line));
            }
            if cases.is_empty() {
                self.open_cells.push(key);
            }
        }
        Ok(())
    }

    fn parse_case(&mut self, text: &str) -> Result<(), String> {
        if self.open_cells.is_empty() {
            return Err("a case without a cell".to_owned());
        }
        let (condition, result) = text.split_once("->").ok_or("a case without a result")?;
        let condition = condition.trim();
        let (only_for, condition) = match condition.split_once(':') {
            None => (None, condition),
            Some(("every-live-state", rest)) => (Some(AnyStateInterpretation::EveryLiveState), rest.trim()),
            Some(("listed-only", rest)) => (Some(AnyStateInterpretation::ListedOnly), rest.trim()),
            Some((word, _)) => return Err(format!("{word:?} is not an interpretation")),
        };
        let conditions = match condition {
            "otherwise" => Vec::new(),
            facts => facts.split(" and ").map(parse_fact).collect::<Result<_, _>>()?,
        };
        let case = ExpectedCase { only_for, conditions, target: parse_target(result)? };
        for key in &self.open_cells {
            self.table.cells.entry(*key).and_modify(|cell| cell.cases.push(case.clone()));
        }
        Ok(())
    }

    fn parse_non_message_cell(&mut self, text: &str) -> Result<(), String> {
        let (head, result) = text.split_once("->").ok_or("a line without a result")?;
        let [trigger_name, from] = split_words(head)?;
        let trigger =
            match (trigger_name, Timer::ALL.into_iter().find(|timer| timer.as_str() == trigger_name)) {
                (_, Some(timer)) => Trigger::TimerExpired(timer),
                ("broken-chain", None) => Trigger::BrokenChain,
                _ => return Err(format!("{trigger_name:?} is neither a timer nor `broken-chain`")),
            };
        let target = match (result.trim(), result.trim().strip_prefix("to ")) {
            ("nothing", _) => None,
            ("reported", _) => Some(TransitionTarget::Stay),
            (_, Some(name)) => Some(TransitionTarget::Move(parse_state(name)?)),
            (word, None) => return Err(format!("{word:?} is not a result here")),
        };
        match self.table.non_message_cells.insert((trigger, parse_state(from)?), target) {
            None => Ok(()),
            Some(_) => Err(format!("{trigger_name} in {from} is stated twice")),
        }
    }
}

fn split_words(head: &str) -> Result<[&str; 2], String> {
    let words: Vec<_> = head.split_whitespace().collect();
    words.try_into().map_err(|_| format!("expected two words in {:?}", head.trim()))
}

fn parse_state(name: &str) -> Result<State, String> {
    State::ALL
        .into_iter()
        .find(|state| state.as_str() == name.trim())
        .ok_or_else(|| format!("{:?} is not a state", name.trim()))
}

fn parse_fact(text: &str) -> Result<(Fact, bool), String> {
    let text = text.trim();
    let (word, holds) = text.strip_prefix("not ").map_or((text, true), |word| (word.trim(), false));
    match Fact::ALL.iter().find(|fact| fact.as_str() == word) {
        Some(Fact::FromInviter) => Err("the sender belongs in the first line of the cell".to_owned()),
        Some(fact) => Ok((*fact, holds)),
        None => Err(format!("{word:?} is not a fact")),
    }
}

fn parse_target(text: &str) -> Result<TransitionTarget, String> {
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["stay"] => Ok(TransitionTarget::Stay),
        ["back"] => Ok(TransitionTarget::Return),
        ["to", name] => parse_state(name).map(TransitionTarget::Move),
        ["refuse", code] => RejectCode::parse(code)
            .map(TransitionTarget::Refuse)
            .ok_or_else(|| format!("{code:?} is not a code")),
        _ => Err(format!("{:?} is not a result", text.trim())),
    }
}
