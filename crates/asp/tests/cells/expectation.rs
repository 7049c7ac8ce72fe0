//! Reads `expected.txt`. Every complaint names its line.

use std::collections::{BTreeMap, BTreeSet};

use asp::machine::{Fact, Facts, On, Reading, Role, State, Then, Timer};
use asp::{Code, Performative};

/// What the file says.
#[derive(Debug, Default)]
pub(crate) struct Expectation {
    cells: BTreeMap<(State, Performative, Role), Cell>,
    /// `None` where nothing happens.
    others: BTreeMap<(On, State), Option<Then>>,
}

/// A cell: its cases in the order in which they are asked.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    line: usize,
    cases: Vec<Case>,
}

#[derive(Clone, Debug)]
struct Case {
    /// In this reading only.
    reading: Option<Reading>,
    when: Vec<(Fact, bool)>,
    then: Then,
}

/// What happens without a message, in the order of the file.
pub(crate) const OTHERS: [On; 5] = [
    On::Expiry(Timer::Invitation),
    On::Expiry(Timer::Session),
    On::Expiry(Timer::Response),
    On::Expiry(Timer::Escalation),
    On::BrokenChain,
];

impl Expectation {
    /// Reads the whole file; every cell must be stated once.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut reader = Reader { read: Self::default(), block: Block::None, open: Vec::new() };
        for (line, text) in (1..).zip(text.lines()) {
            reader.line(line, text).map_err(|why| format!("line {line}: {why}"))?;
        }
        let read = reader.read;
        read.complete()?;
        Ok(read)
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = (State, Performative, Role, &Cell)> {
        self.cells.iter().map(|(&(state, performative, sender), cell)| (state, performative, sender, cell))
    }

    pub(crate) fn others(&self) -> impl Iterator<Item = (On, State, Option<Then>)> {
        self.others.iter().map(|(&(on, state), &then)| (on, state, then))
    }

    fn complete(&self) -> Result<(), String> {
        let mut missing = Vec::new();
        for state in State::ALL {
            for performative in Performative::ALL {
                for sender in Role::ALL {
                    if !self.cells.contains_key(&(state, performative, sender)) {
                        missing.push(format!("{state} {performative} {sender}"));
                    }
                }
            }
            let others = OTHERS.iter().filter(|on| !self.others.contains_key(&(**on, state)));
            missing.extend(others.map(|on| format!("{on:?} in {state}")));
        }
        for ((state, performative, sender), cell) in &self.cells {
            for reading in Reading::ALL {
                cell.complete(reading)
                    .map_err(|why| format!("line {}: {state} {performative} {sender}: {why}", cell.line))?;
            }
        }
        if missing.is_empty() { Ok(()) } else { Err(format!("not stated: {}", missing.join(", "))) }
    }
}

impl Cell {
    /// The line on which it is stated.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// What it says: the first case that holds.
    pub(crate) fn answer(&self, reading: Reading, facts: Facts) -> Option<Then> {
        self.cases(reading)
            .find(|case| case.when.iter().all(|(fact, holds)| facts.has(*fact) == *holds))
            .map(|case| case.then)
    }

    /// The facts that it reads.
    pub(crate) fn facts(&self, reading: Reading) -> BTreeSet<Fact> {
        self.cases(reading).flat_map(|case| case.when.iter().map(|(fact, _)| *fact)).collect()
    }

    fn cases(&self, reading: Reading) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(move |case| case.reading.is_none_or(|only| only == reading))
    }

    /// `otherwise` stands last and only there.
    fn complete(&self, reading: Reading) -> Result<(), String> {
        let count = self.cases(reading).count();
        match self.cases(reading).position(|case| case.when.is_empty()) {
            None => Err(format!("nothing is said of what happens otherwise ({reading:?})")),
            Some(place) if place + 1 < count => Err(format!("a case after `otherwise` ({reading:?})")),
            Some(_) => Ok(()),
        }
    }
}

enum Block {
    None,
    State(State),
    Others,
}

struct Reader {
    read: Expectation,
    block: Block,
    /// The cells that an indented line belongs to.
    open: Vec<(State, Performative, Role)>,
}

impl Reader {
    fn line(&mut self, line: usize, text: &str) -> Result<(), String> {
        let indented = text.starts_with(' ');
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        if indented {
            return self.case(text);
        }
        self.open.clear();
        if text == "not a message" {
            self.block = Block::Others;
        } else if let Some(name) = text.strip_prefix("state ") {
            self.block = Block::State(state(name)?);
        } else if let Block::State(state) = self.block {
            self.cell(line, state, text)?;
        } else if matches!(self.block, Block::Others) {
            self.other(text)?;
        } else {
            return Err("no state has been named yet".to_owned());
        }
        Ok(())
    }

    fn cell(&mut self, line: usize, state: State, text: &str) -> Result<(), String> {
        let (head, result) = match text.split_once("->") {
            Some((head, result)) => (head, Some(then(result)?)),
            None => (text, None),
        };
        let [performative, sender] = words(head)?;
        let performative = Performative::parse(performative)
            .ok_or_else(|| format!("{performative:?} is not a performative"))?;
        let senders = match sender {
            "either" => Role::ALL.to_vec(),
            word => match Role::ALL.into_iter().find(|role| role.word() == word) {
                Some(role) => vec![role],
                None => return Err(format!("{word:?} is not a sender")),
            },
        };
        let cases: Vec<_> =
            result.map(|then| Case { reading: None, when: Vec::new(), then }).into_iter().collect();
        for sender in senders {
            let key = (state, performative, sender);
            if let Some(before) = self.read.cells.insert(key, Cell { line, cases: cases.clone() }) {
                return Err(format!("{state} {performative} {sender} is stated on line {} too", before.line));
            }
            if cases.is_empty() {
                self.open.push(key);
            }
        }
        Ok(())
    }

    fn case(&mut self, text: &str) -> Result<(), String> {
        if self.open.is_empty() {
            return Err("a case of no cell".to_owned());
        }
        let (condition, result) = text.split_once("->").ok_or("a case without a result")?;
        let condition = condition.trim();
        let (reading, condition) = match condition.split_once(':') {
            None => (None, condition),
            Some(("open", rest)) => (Some(Reading::Open), rest.trim()),
            Some(("table", rest)) => (Some(Reading::Table), rest.trim()),
            Some((word, _)) => return Err(format!("{word:?} is not a reading")),
        };
        let when = match condition {
            "otherwise" => Vec::new(),
            facts => facts.split(" and ").map(fact).collect::<Result<_, _>>()?,
        };
        let case = Case { reading, when, then: then(result)? };
        for key in &self.open {
            self.read.cells.entry(*key).and_modify(|cell| cell.cases.push(case.clone()));
        }
        Ok(())
    }

    fn other(&mut self, text: &str) -> Result<(), String> {
        let (head, result) = text.split_once("->").ok_or("a line without a result")?;
        let [what, from] = words(head)?;
        let on = match (what, Timer::ALL.into_iter().find(|timer| timer.word() == what)) {
            (_, Some(timer)) => On::Expiry(timer),
            ("broken-chain", None) => On::BrokenChain,
            _ => return Err(format!("{what:?} is neither a timer nor `broken-chain`")),
        };
        let then = match (result.trim(), result.trim().strip_prefix("to ")) {
            ("nothing", _) => None,
            ("told", _) => Some(Then::Stay),
            (_, Some(name)) => Some(Then::Move(state(name)?)),
            (word, None) => return Err(format!("{word:?} is not a result here")),
        };
        match self.read.others.insert((on, state(from)?), then) {
            None => Ok(()),
            Some(_) => Err(format!("{what} in {from} is stated twice")),
        }
    }
}

fn words(head: &str) -> Result<[&str; 2], String> {
    let words: Vec<_> = head.split_whitespace().collect();
    words.try_into().map_err(|_| format!("two words were expected in {:?}", head.trim()))
}

fn state(name: &str) -> Result<State, String> {
    State::ALL
        .into_iter()
        .find(|state| state.word() == name.trim())
        .ok_or_else(|| format!("{:?} is not a state", name.trim()))
}

fn fact(text: &str) -> Result<(Fact, bool), String> {
    let text = text.trim();
    let (word, holds) = text.strip_prefix("not ").map_or((text, true), |word| (word.trim(), false));
    match Fact::ALL.iter().find(|fact| fact.word() == word) {
        Some(Fact::FromInviter) => Err("the sender stands at the head of the cell".to_owned()),
        Some(fact) => Ok((*fact, holds)),
        None => Err(format!("{word:?} is not a fact")),
    }
}

fn then(text: &str) -> Result<Then, String> {
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["stay"] => Ok(Then::Stay),
        ["back"] => Ok(Then::Back),
        ["to", name] => state(name).map(Then::Move),
        ["refuse", code] => {
            Code::parse(code).map(Then::Refuse).ok_or_else(|| format!("{code:?} is not a code"))
        }
        _ => Err(format!("{:?} is not a result", text.trim())),
    }
}
