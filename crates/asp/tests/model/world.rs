//! The world of the model: both sides' sessions, what an onlooker notes beside them, and all that can happen next.

use std::sync::{Mutex, MutexGuard};

use asp::machine::{On, Reading, Role, State, Table, Timer};
use asp::session::{Party, Rules, Session};
use asp::{AgentUri, Level, Limits};
use seal::UnixMillis;
use stateright::{Model, Property};

use super::graph::Graph;
use super::laws::{Law, Notes, broken_laws};
use super::letters::{INVITED, INVITER, Letter, letters};

/// How far the model goes.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) proposals: usize,
    pub(crate) commits: usize,
    pub(crate) escalations: usize,
    /// Whether a timer may run out on one side while a message of the other is still on its way.
    pub(crate) crossing: bool,
    /// The levels of the two sides, in each pair that is tried.
    pub(crate) levels: &'static [[Level; 2]],
}

/// The model: two sessions with a table each, and all letters between them.
#[derive(Debug)]
pub(crate) struct Sides {
    pub(crate) tables: [&'static Table; 2],
    pub(crate) reading: Reading,
    pub(crate) bounds: Bounds,
    letters: Vec<Letter>,
    /// What has been explored so far.
    graph: Mutex<Graph>,
}

/// One moment: what each side knows, and what an onlooker has noted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) views: [Session; 2],
    pub(crate) notes: Notes,
    /// The side whose timer has yet to run out, while the other's has.
    pub(crate) behind: Option<(Role, Timer)>,
    /// The laws that the last event broke. What would follow is not looked at.
    pub(crate) broken: Vec<Law>,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A letter, by its place in the list, is fed to both sides; if either refuses it, neither has it.
    Letter(usize),
    /// A timer runs out on both sides.
    Expiry(Timer),
    /// A timer runs out on one side; the other has not noticed yet.
    EarlyExpiry(Role, Timer),
    /// The other notices.
    LateExpiry,
    /// A participant's link is none.
    BrokenChain,
    /// Both sides are woken at the end of all time.
    LongAfter,
}

impl Sides {
    pub(crate) fn new(tables: [&'static Table; 2], reading: Reading, bounds: Bounds) -> Self {
        Self { tables, reading, letters: letters(&bounds), bounds, graph: Mutex::default() }
    }

    /// What has been explored.
    pub(crate) fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().expect("no explorer has failed")
    }

    fn letter(&self, event: Event) -> Option<&Letter> {
        match event {
            Event::Letter(index) => self.letters.get(index),
            _ => None,
        }
    }

    /// What it is to the table.
    fn on(&self, event: Event) -> Option<On> {
        match event {
            Event::Letter(_) => self.letter(event).map(|letter| On::Message(letter.performative())),
            Event::Expiry(timer) | Event::EarlyExpiry(_, timer) => Some(On::Expiry(timer)),
            Event::BrokenChain => Some(On::BrokenChain),
            Event::LateExpiry | Event::LongAfter => None,
        }
    }

    /// For a trace.
    pub(crate) fn words(&self, event: Event) -> String {
        self.letter(event).map_or_else(|| format!("{event:?}"), Letter::words)
    }

    /// What becomes of the world, or `None` where nothing happens: a letter is refused, and rightly so.
    fn follow(&self, world: &World, event: Event) -> Option<World> {
        let mut next = match self.letter(event) {
            None => pass(world.clone(), event),
            Some(letter) => match post(world, letter) {
                Ok(next) => next,
                Err(Refused::Unharmed) => return None,
                Err(Refused::Harmed) => return Some(World { broken: vec![Law::Refusal], ..world.clone() }),
            },
        };
        next.broken = broken_laws(world, &next, self.letter(event));
        next.notes.forget_escalation_unless(next.views[0].state() == State::Escalated);
        Some(next)
    }
}

/// How whoever refused a letter was left.
enum Refused {
    Unharmed,
    Harmed,
}

/// A letter goes its way: its sender asks its own session first, then the receiver is fed. Who refuses must stay as it
/// was; if the receiver refuses, the sender takes its letter back.
fn post(world: &World, letter: &Letter) -> Result<World, Refused> {
    let (sender, receiver) = (letter.sender, letter.sender.other());
    let [mine, theirs] = [sender, receiver].map(|role| &world.views[role as usize]);
    let mut sent = mine.clone();
    if sent.feed(&letter.seen_by(sender)).is_err() {
        return Err(if sent == *mine { Refused::Unharmed } else { Refused::Harmed });
    }
    let mut received = theirs.clone();
    let mut behind = world.behind;
    // The sender's timer had run out: so the receiver's has, by the time of the letter.
    if let Some((_, timer)) = behind.take_if(|(role, _)| *role == receiver) {
        run_out(&mut received, timer);
    }
    let woken = received.clone();
    if received.feed(&letter.seen_by(receiver)).is_err() {
        return Err(if received == woken { Refused::Unharmed } else { Refused::Harmed });
    }
    let views = if sender == Role::Inviter { [sent, received] } else { [received, sent] };
    let notes = world.notes.after(letter, mine.state(), mine.commitment());
    Ok(World { views, notes, behind, broken: Vec::new() })
}

/// Time passes, or the chain breaks.
fn pass(mut world: World, event: Event) -> World {
    match event {
        Event::Expiry(timer) => world.views.iter_mut().for_each(|view| run_out(view, timer)),
        Event::EarlyExpiry(role, timer) => {
            run_out(&mut world.views[role as usize], timer);
            world.behind = Some((role.other(), timer));
        }
        Event::LateExpiry => {
            if let Some((role, timer)) = world.behind.take() {
                run_out(&mut world.views[role as usize], timer);
            }
        }
        // As with a letter, what has run out by then comes first.
        Event::BrokenChain => {
            let mut world = pass(world, Event::LateExpiry);
            for view in &mut world.views {
                view.break_chain(UnixMillis::new(0));
            }
            return world;
        }
        Event::LongAfter => world.views.iter_mut().for_each(|view| drop(view.wake(UnixMillis::MAX))),
        Event::Letter(_) => {}
    }
    world
}

/// A tick: time goes on to where that timer runs out.
fn run_out(view: &mut Session, timer: Timer) {
    if let Some(at) = view.deadline(timer) {
        view.wake(at);
    }
}

impl World {
    pub(crate) fn has_ended(&self) -> bool {
        self.views.iter().all(|view| view.state().is_terminal())
    }

    pub(crate) fn is_running(&self, timer: Timer) -> bool {
        self.views.iter().any(|view| view.deadline(timer).is_some())
    }
}

impl Model for Sides {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        let party = |agent, level| Party { agent: AgentUri::parse(agent).expect("an agent's name"), level };
        let view = |table, [inviter, invited]: [Level; 2]| {
            let rules = Rules { table, reading: self.reading };
            Session::new(party(INVITER, inviter), party(INVITED, invited), rules, &Limits::default())
        };
        let world = |levels: &[Level; 2]| World {
            views: self.tables.map(|table| view(table, *levels)),
            notes: Notes::default(),
            behind: None,
            broken: Vec::new(),
        };
        self.bounds.levels.iter().map(world).collect()
    }

    fn actions(&self, world: &World, events: &mut Vec<Event>) {
        self.graph().visit(world);
        if !world.broken.is_empty() {
            return;
        }
        let may_escalate = world.notes.escalations < self.bounds.escalations;
        for (index, letter) in self.letters.iter().enumerate() {
            if may_escalate || letter.performative() != asp::Performative::Escalate {
                events.push(Event::Letter(index));
            }
        }
        for timer in Timer::ALL.into_iter().filter(|timer| world.is_running(*timer)) {
            match (self.bounds.crossing, world.behind) {
                (false, _) => events.push(Event::Expiry(timer)),
                (true, None) => events.extend(Role::ALL.map(|role| Event::EarlyExpiry(role, timer))),
                (true, Some(_)) => {}
            }
        }
        if world.behind.is_some() {
            events.push(Event::LateExpiry);
        }
        events.push(Event::BrokenChain);
        if world.has_ended() {
            events.push(Event::LongAfter);
        }
    }

    fn next_state(&self, world: &World, event: Event) -> Option<World> {
        let next = self.follow(world, event)?;
        self.graph().follow(world, event, self.on(event), &next);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        macro_rules! hold {
            ($($law:ident)*) => {
                vec![$(Property::always(Law::$law.words(), |_, world: &World| !world.broken.contains(&Law::$law))),*]
            };
        }
        hold![End Binding Return Refusal Agreement Single]
    }
}
