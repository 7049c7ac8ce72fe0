//! A record that is fed forged messages, and must not change by those that it refuses.

use std::sync::Mutex;

use asp::machine::{Role, State};
use asp::message::{Authenticator, Body, Cards, Sealed};
use asp::session::{Judgement, Rules, Session};
use asp::{Admission, Code, Error, Limits, MessageId, Misbehaviour, Point, Record, SessionId};
use seal::{Digest, Timestamp, UnixMillis, ed25519};

use super::bodies;
use super::cast::{Actor, BUYER, Dice, SELLER, cards};
use super::forge::{Forged, forge};
use super::json::Json;

pub(crate) use Role::{Invited as B, Inviter as A};

/// When everything begins, in milliseconds since 1970.
pub(crate) const START: UnixMillis = UnixMillis::new(1_767_322_800_000);

#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) record: Record,
    pub(crate) cards: Cards,
    pub(crate) limits: Limits,
    pub(crate) now: UnixMillis,
    pub(crate) judgement: Judgement,
    /// Whether messages are received live, with a clock.
    pub(crate) live: bool,
    pub(crate) dice: Dice,
}

/// What came of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    Taken,
    Refused(Code),
    Broken,
    Dropped(Misbehaviour),
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        let mut dice = Dice(0);
        let id = SessionId::generate(START, &mut dice);
        let (a, b) = (BUYER.card.clone(), SELLER.card.clone());
        Self {
            record: Record::new(id, a, b, Rules::default(), &limits),
            cards: cards(),
            limits,
            now: START,
            judgement: Judgement::default(),
            live: true,
            dice,
        }
    }

    /// A session that has come to that state, the commitment being the buyer's `cmt_1`, and `prop_a` and `prop_b` the
    /// open proposals of the two.
    pub(crate) fn at(state: State) -> Self {
        static BEFORE: Mutex<Vec<Scene>> = Mutex::new(Vec::new());
        let mut before = BEFORE.lock().unwrap();
        if let Some(scene) = before.iter().find(|scene| scene.state() == state) {
            return scene.clone();
        }
        before.push(Self::new().brought_to(state));
        before[before.len() - 1].clone()
    }

    pub(crate) fn brought_to(mut self, state: State) -> Self {
        let way = [
            (A, bodies::invitation()),
            (B, bodies::accept("prop_inv")),
            (A, bodies::inform("identity")),
            (B, bodies::inform("identity")),
            (A, bodies::propose("prop_a")),
            (B, bodies::propose("prop_b")),
            (A, bodies::commit("cmt_1")),
            (B, bodies::accept("cmt_1")),
        ];
        let far = match state {
            State::Idle => 0,
            State::Invited => 1,
            State::Introduced => 4,
            State::Conversing | State::Escalated => 6,
            State::Agreeing => 7,
            State::Executing | State::Closed => 8,
            State::Failed => panic!("break the chain instead"),
        };
        for (sender, body) in way.into_iter().take(far) {
            self.say(sender, &body);
        }
        match state {
            State::Escalated => self.say(A, &bodies::escalate()),
            State::Closed => self.say(A, &bodies::close("unilateral")),
            _ => {}
        }
        assert_eq!(self.state(), state);
        self
    }

    pub(crate) fn state(&self) -> State {
        self.record.session().state()
    }

    /// The next message of that side, lawful but for what is said, and not signed.
    pub(crate) fn envelope(&mut self, sender: Role, performative: &str, body: &str) -> Json {
        let (from, to) = (actor(sender), actor(sender.other()));
        let text = format!(
            r#"{{"version":"asp/0.1","messageId":"{}","sessionId":"{}","sequenceNumber":{},"timestamp":"{}",
            "sender":{{"agentId":"{}","orgId":"org_test","trustScore":50,"dpopProof":""}},"recipient":"{}",
            "performative":"{performative}","content":{{"mimeType":"application/asp+json","body":{body}}},
            "integrity":{{"hash":"","previousHash":"{}","signature":""}}}}"#,
            MessageId::generate(self.now, &mut self.dice),
            self.record.session_id(),
            self.record.transcript().next_number(sender),
            time(self.now),
            from.agent(),
            to.agent(),
            self.record.transcript().head(),
        );
        Json::parse(&text)
    }

    pub(crate) fn next(&mut self, sender: Role, body: &Body) -> Json {
        self.envelope(sender, body.performative().word(), &body.to_json())
    }

    pub(crate) fn forge(&mut self, sender: Role, body: &Body) -> Forged {
        forge(&self.next(sender, body), &actor(sender).keys)
    }

    /// Says something lawful, a second after what was said before.
    pub(crate) fn say(&mut self, sender: Role, body: &Body) {
        self.now += 1000;
        let forged = self.forge(sender, body);
        let heard = self.hear(&forged.text);
        assert_eq!(heard, Heard::Taken, "{body:?}");
        assert_eq!(self.record.transcript().head(), forged.hash);
    }

    pub(crate) fn open(&mut self, text: &str) -> Result<Sealed, Error> {
        Authenticator::default().open(text, &self.cards, &self.limits)
    }

    pub(crate) fn hear(&mut self, text: &str) -> Heard {
        let before = self.shot();
        let clock = self.live.then_some(self.now);
        let heard = match self.open(text) {
            Ok(sealed) => match self.record.admit(&sealed, self.judgement, clock) {
                Admission::Taken(_) => return Heard::Taken,
                Admission::Broken(_) => return Heard::Broken,
                Admission::Refused(refusal) => {
                    assert_eq!(refusal.message, Some(sealed.envelope.message_id), "{refusal}");
                    Heard::Refused(refusal.code)
                }
            },
            Err(Error::Peer(why)) => Heard::Dropped(why),
            Err(Error::Refused(refusal)) => Heard::Refused(refusal.code),
            Err(Error::Misuse(why)) => panic!("{why}"),
        };
        assert_eq!(before, self.shot(), "a message that was not taken changed something");
        heard
    }

    /// Signs the envelope as that side and sees that it is refused with this code.
    pub(crate) fn refuses(&mut self, sender: Role, envelope: &Json, code: Code) {
        let forged = forge(envelope, &actor(sender).keys);
        assert_eq!(self.hear(&forged.text), Heard::Refused(code), "{}", envelope.write());
    }

    pub(crate) fn takes(&mut self, sender: Role, envelope: &Json) {
        let forged = forge(envelope, &actor(sender).keys);
        assert_eq!(self.hear(&forged.text), Heard::Taken, "{}", envelope.write());
        assert_eq!(self.record.transcript().messages().last(), Some(&*forged.text), "the bytes stay");
    }

    /// All that could have changed.
    pub(crate) fn shot(&self) -> (Session, Point) {
        (self.record.session().clone(), self.record.transcript().point())
    }
}

pub(crate) fn actor(role: Role) -> &'static Actor {
    match role {
        A => &BUYER,
        B => &SELLER,
    }
}

pub(crate) fn time(at: UnixMillis) -> Timestamp {
    Timestamp::from_unix_millis(at).unwrap()
}

/// A message for a [`Record`], which does not ask for signatures: quicker than signing.
pub(crate) fn unsigned(envelope: Json) -> Sealed {
    let signature = ed25519::Signature::from_bytes([1; 64]);
    let mut envelope = envelope.without("integrity/hash").without("integrity/signature");
    envelope.set("sender/dpopProof", Json::text("none"));
    let hash: Digest = super::forge::digest(&envelope);
    envelope.set("integrity/hash", Json::text(&hash.to_string()));
    envelope.set("integrity/signature", Json::text(&signature.to_string()));
    let text = envelope.write();
    let read = Authenticator::default().read_unproven(&text).unwrap();
    Sealed { jti: read.message_id.to_string(), text: text.into(), hash, envelope: read }
}
