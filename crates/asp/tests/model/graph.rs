//! The graph of the worlds as they are explored, for the second law and for knowing that every row was used.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use asp::machine::{On, Row, State, Then};

use super::world::{Event, World};

/// Every world that has come to be, and from where each is reached.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    places: HashMap<u64, Place>,
    /// What happened in which state, and to which it led.
    steps: BTreeSet<(State, On, State)>,
}

#[derive(Debug)]
struct Place {
    world: World,
    /// From where it is reached by a letter or by time. A broken chain is nobody's move, and no way out.
    before: Vec<u64>,
    /// Whether a letter can be sent there.
    has_move: bool,
}

impl Graph {
    /// Writes down a world that is visited.
    pub(crate) fn visit(&mut self, world: &World) {
        self.place(world);
    }

    /// Writes down that one world follows another.
    pub(crate) fn follow(&mut self, old: &World, event: Event, on: Option<On>, new: &World) {
        if let Some(on) = on {
            let states = old.views.iter().zip(&new.views).map(|(old, new)| (old.state(), on, new.state()));
            self.steps.extend(states);
        }
        let (from, place) = self.place(old);
        place.has_move |= matches!(event, Event::Letter(_));
        if event != Event::BrokenChain {
            self.place(new).1.before.push(from);
        }
    }

    fn place(&mut self, world: &World) -> (u64, &mut Place) {
        let mut hasher = DefaultHasher::new();
        world.hash(&mut hasher);
        let name = hasher.finish();
        let place = || Place { world: world.clone(), before: Vec::new(), has_move: false };
        (name, self.places.entry(name).or_insert_with(place))
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The live worlds from which no end can be reached.
    pub(crate) fn without_end(&self) -> Vec<&World> {
        // What would follow a broken law is not known, and not held against what came before.
        let is_end = |place: &Place| place.world.has_ended() || !place.world.broken.is_empty();
        let ends = self.places.iter().filter(|(_, place)| is_end(place));
        let mut queue: Vec<u64> = ends.map(|(name, _)| *name).collect();
        let mut ending = BTreeSet::new();
        while let Some(name) = queue.pop() {
            if ending.insert(name) {
                queue.extend(&self.places[&name].before);
            }
        }
        let endless = self.places.iter().filter(|(name, _)| !ending.contains(name));
        endless.map(|(_, place)| &place.world).collect()
    }

    /// The live worlds in which no timer runs and no letter can be sent.
    pub(crate) fn stuck(&self) -> Vec<&World> {
        let is_live = |world: &World| !world.has_ended() && world.broken.is_empty();
        let runs = |world: &World| world.views.iter().any(|view| view.next_deadline().is_some());
        let stuck = self.places.values().filter(|place| !place.has_move && !runs(&place.world));
        stuck.map(|place| &place.world).filter(|world| is_live(world)).collect()
    }

    /// The rows that were not used in one of their states.
    pub(crate) fn unused<'r>(&self, rows: impl Iterator<Item = &'r Row>) -> Vec<(State, &'r Row)> {
        let used = |row: &Row, from: State| match row.then {
            Then::Move(to) => self.steps.contains(&(from, row.on, to)),
            Then::Stay => self.steps.contains(&(from, row.on, from)),
            Then::Back => {
                let backs = self.steps.iter().filter(|(old, on, _)| *old == from && *on == row.on);
                backs.filter(|(_, _, new)| new.is_live()).count() >= 3
            }
            // What is refused leads nowhere.
            Then::Refuse(_) => true,
        };
        let cells = rows.flat_map(|row| row.from.iter().map(move |from| (*from, row)));
        cells.filter(|(from, row)| !used(row, *from)).collect()
    }
}
