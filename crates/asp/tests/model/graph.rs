//! The whole graph of the model, for the second law and for knowing that every row was used.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

use asp::machine::{On, Row, State, Then};
use stateright::Model;

use super::world::{Event, Sides, World};

/// Every world that can come to be, and from where each can be reached.
pub(crate) struct Graph {
    pub(crate) worlds: Vec<Rc<World>>,
    /// From where each world is reached by a letter or by time. A broken chain is nobody's move, and no way out.
    before: Vec<Vec<usize>>,
    /// Whether a letter can be sent there.
    has_move: Vec<bool>,
    /// What happened in which state, and to which it led.
    steps: BTreeSet<(State, On, State)>,
}

impl Graph {
    pub(crate) fn of(sides: &Sides) -> Self {
        let mut graph =
            Self { worlds: Vec::new(), before: Vec::new(), has_move: Vec::new(), steps: BTreeSet::new() };
        let mut known = HashMap::new();
        let mut queue = VecDeque::new();
        for world in sides.init_states() {
            let at = graph.enter(world, &mut known);
            queue.push_back(at);
        }
        while let Some(at) = queue.pop_front() {
            let world = Rc::clone(&graph.worlds[at]);
            for (event, next) in sides.next_steps(&world) {
                graph.note(sides, event, &world, &next);
                graph.has_move[at] |= matches!(event, Event::Letter(_));
                let count = graph.worlds.len();
                let to = graph.enter(next, &mut known);
                if to == count {
                    queue.push_back(to);
                }
                if event != Event::BrokenChain {
                    graph.before[to].push(at);
                }
            }
        }
        graph
    }

    fn enter(&mut self, world: World, known: &mut HashMap<Rc<World>, usize>) -> usize {
        let world = Rc::new(world);
        *known.entry(world).or_insert_with_key(|world| {
            self.worlds.push(Rc::clone(world));
            self.before.push(Vec::new());
            self.has_move.push(false);
            self.worlds.len() - 1
        })
    }

    fn note(&mut self, sides: &Sides, event: Event, old: &World, new: &World) {
        let on = match (event, sides.letter(event)) {
            (_, Some(letter)) => On::Message(letter.performative()),
            (Event::Expiry(timer) | Event::EarlyExpiry(_, timer), _) => On::Expiry(timer),
            (Event::BrokenChain, _) => On::BrokenChain,
            _ => return,
        };
        for (old, new) in old.views.iter().zip(&new.views) {
            self.steps.insert((old.state(), on, new.state()));
        }
    }

    /// The live worlds from which no end can be reached.
    pub(crate) fn without_end(&self) -> Vec<&World> {
        let mut ends = vec![false; self.worlds.len()];
        let mut queue: Vec<_> = (0..ends.len()).filter(|at| self.worlds[*at].has_ended()).collect();
        while let Some(at) = queue.pop() {
            if !std::mem::replace(&mut ends[at], true) {
                queue.extend(&self.before[at]);
            }
        }
        self.live().filter(|at| !ends[*at]).map(|at| &*self.worlds[at]).collect()
    }

    /// The live worlds in which no timer runs and no letter can be sent.
    pub(crate) fn stuck(&self) -> Vec<&World> {
        let is_stuck = |at: &usize| {
            let views = &self.worlds[*at].views;
            !self.has_move[*at] && views.iter().all(|view| view.next_deadline().is_none())
        };
        self.live().filter(is_stuck).map(|at| &*self.worlds[at]).collect()
    }

    /// The rows of a table that were used in none of their states, or not in one of them.
    pub(crate) fn unused<'r>(&self, rows: impl Iterator<Item = &'r Row>) -> Vec<(State, &'r Row)> {
        let used = |row: &Row, from: State| match row.then {
            Then::Move(to) => self.steps.contains(&(from, row.on, to)),
            Then::Stay => self.steps.contains(&(from, row.on, from)),
            Then::Back => {
                self.steps.iter().any(|(old, on, new)| *old == from && *on == row.on && new.is_live())
            }
            // What is refused leads nowhere.
            Then::Refuse(_) => true,
        };
        let cells = rows.flat_map(|row| row.from.iter().map(move |from| (*from, row)));
        cells.filter(|(from, row)| !used(row, *from)).collect()
    }

    fn live(&self) -> impl Iterator<Item = usize> {
        (0..self.worlds.len())
            .filter(|at| self.worlds[*at].broken.is_empty() && !self.worlds[*at].has_ended())
    }
}
