//! Two participants and a clock.

use asp::machine::{Role, State};
use asp::message::Body;
use asp::session::{Judgement, Session};
use asp::{Error, Participant, Point, Received, Sent};
use seal::UnixMillis;

use crate::support::bodies::{accept, inform, invitation, query};
use crate::support::cast::{BUYER, Dice, SELLER, participant};
pub(crate) use crate::support::scene::{A, B, START};

pub(crate) struct Pair {
    pub(crate) sides: [Participant; 2],
    pub(crate) dice: Dice,
    pub(crate) now: UnixMillis,
    pub(crate) judgement: Judgement,
}

impl Pair {
    /// The buyer is about to invite the seller.
    pub(crate) fn new() -> Self {
        let mut dice = Dice(1);
        let mut a = participant(&BUYER, &[&SELLER]);
        a.invite(&SELLER.card, START, &mut dice).unwrap();
        let b = participant(&SELLER, &[&BUYER]);
        Self { sides: [a, b], dice, now: START, judgement: Judgement::default() }
    }

    pub(crate) fn introduced() -> Self {
        let mut pair = Self::new();
        pair.say(A, invitation());
        pair.say(B, accept("prop_inv"));
        pair.say(A, inform("identity"));
        pair.say(B, inform("identity"));
        assert_eq!(pair.states(), [State::Introduced; 2]);
        pair
    }

    pub(crate) fn conversing() -> Self {
        let mut pair = Self::introduced();
        pair.say(A, query("qry_0"));
        pair
    }

    pub(crate) fn side(&mut self, role: Role) -> &mut Participant {
        &mut self.sides[usize::from(role == B)]
    }

    pub(crate) fn try_send(&mut self, role: Role, body: Body) -> Result<Sent, Error> {
        let (now, mut dice) = (self.now, self.dice.clone());
        let sent = self.side(role).send(body, now, &mut dice);
        self.dice = dice;
        sent
    }

    /// Sends what must be lawful; gives the bytes, that nobody has received yet.
    pub(crate) fn send(&mut self, role: Role, body: Body) -> String {
        self.try_send(role, body).unwrap_or_else(|error| panic!("{role}: {error}")).text.to_string()
    }

    pub(crate) fn deliver(&mut self, to: Role, text: &str) -> Received {
        let (now, judgement, mut dice) = (self.now, self.judgement, self.dice.clone());
        let heard = self.side(to).receive(text, judgement, now, &mut dice).unwrap();
        self.dice = dice;
        heard
    }

    /// Sends and delivers what must be lawful for both.
    pub(crate) fn say(&mut self, role: Role, body: Body) -> String {
        self.now += 1000;
        let text = self.send(role, body);
        let heard = self.deliver(role.other(), &text);
        assert!(matches!(heard, Received::Taken { .. }), "{heard:?}");
        self.agree();
        text
    }

    /// Delivers what must be taken, and gives the messages that lost a race against it.
    pub(crate) fn taken(&mut self, to: Role, text: &str) -> Vec<Body> {
        match self.deliver(to, text) {
            Received::Taken { lost, .. } => lost,
            other => panic!("{other:?}"),
        }
    }

    /// Delivers what must be refused with an answer, and sees that nothing changes by it.
    pub(crate) fn refused(&mut self, to: Role, text: &str) -> (asp::Refusal, String) {
        let before = self.shot(to);
        match self.deliver(to, text) {
            Received::Refused { refusal, answer: Some(answer) } => {
                assert_eq!(self.shot(to), before, "{refusal}");
                (refusal, answer.to_string())
            }
            other => panic!("{other:?}"),
        }
    }

    /// Delivers a refusal that must undo something, and gives what it undoes.
    pub(crate) fn undone(&mut self, to: Role, text: &str) -> (asp::Refusal, Vec<Body>) {
        match self.deliver(to, text) {
            Received::Undone { refusal, messages } => (refusal, messages),
            other => panic!("{other:?}"),
        }
    }

    /// Delivers a refusal that must do nothing.
    pub(crate) fn ignored(&mut self, to: Role, text: &str) {
        let before = self.shot(to);
        let heard = self.deliver(to, text);
        assert!(matches!(heard, Received::Ignored), "{heard:?}");
        assert_eq!(self.shot(to), before);
    }

    pub(crate) fn shot(&mut self, role: Role) -> (Session, Point) {
        let record = self.side(role).record().unwrap();
        (record.session().clone(), record.transcript().point())
    }

    pub(crate) fn states(&mut self) -> [State; 2] {
        [A, B].map(|role| self.shot(role).0.state())
    }

    pub(crate) fn texts(&mut self, role: Role) -> Vec<String> {
        self.side(role).record().unwrap().transcript().messages().map(str::to_owned).collect()
    }

    /// Both have one transcript and are in one place.
    pub(crate) fn agree(&mut self) {
        assert_eq!(self.texts(A), self.texts(B));
        assert_eq!(self.shot(A), self.shot(B));
    }
}
