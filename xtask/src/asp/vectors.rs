//! Vectors for other implementations: every step from an envelope to its signature, with keys that anybody may know.

use asp::message::{
    Accept, Body, Commit, CommitTerms, Content, Draft, Escrow, Obligation, Others, Propose, TrustScore,
};
use asp::{
    AgentUri, Amount, Card, CommitmentId, Currency, Level, MessageId, Profile, ProposalId, Reference,
    SessionId,
};
use seal::json::{Raw, Tape, Writer};
use seal::{Canonical, Digest, Keys, Timestamp, UnixMillis, base64url, ed25519, es256};

const ABOUT: &str = "Vectors of sayso for npayload ASP. mh is SHA-256 over mhInput; dpopProof is a JWS (ES256 by RFC 6979) \
over the claims; hash is SHA-256 over hashInput, which has the proof inside; signature is Ed25519 over the UTF-8 bytes of \
the hash text. Inputs are the RFC 8785 forms of sent without the members named in docs/asp.md.";

pub(super) fn made() -> Result<String, String> {
    let keys = Keys {
        signing: ed25519::SigningKey::from_seed(&[0x11; 32]),
        dpop: es256::SigningKey::reproducible(&[0x22; 32]).ok_or("no such key")?,
    };
    let card = card(&keys)?;
    let mut out = Writer::default();
    out.open_object();
    member(&mut out, "about", ABOUT);
    out.key("keys");
    out.open_object();
    member(&mut out, "ed25519Seed", &"11".repeat(32));
    member(&mut out, "p256Secret", &"22".repeat(32));
    out.close_object();
    member(&mut out, "card", card.as_str());
    out.key("messages");
    out.open_array();
    let mut head = Digest::ZERO;
    for (body, number) in bodies()?.into_iter().zip(0_u8..) {
        let sealed = draft(body, number, head)?
            .seal(&keys, &mut |bytes: &mut [u8]| bytes.fill(number + 1))
            .map_err(|why| why.to_string())?;
        message(&mut out, &sealed.text)?;
        head = sealed.hash;
    }
    out.close_array();
    canonical(&mut out);
    out.close_object();
    Ok(spread(&out.finish()))
}

fn member(out: &mut Writer, name: &str, text: &str) {
    out.key(name);
    out.text(text);
}

fn message(out: &mut Writer, sent: &str) -> Result<(), String> {
    const HASH: &[&str] = &["integrity", "hash"];
    const SIGNATURE: &[&str] = &["integrity", "signature"];
    const PROOF: &[&str] = &["sender", "dpopProof"];
    let mut tape = Tape::default();
    let doc = tape.read(sent).map_err(|why| why.to_string())?;
    let root = doc.root();
    let form = |without: &[&[&str]]| {
        Canonical::default().write(&root, without, &[]).map(|form| form.text).map_err(|why| why.to_string())
    };
    let text = |outer: &str, inner: &str| {
        let found = root.member(outer).and_then(|outer| outer.member(inner)).and_then(|inner| inner.text());
        found.map(std::borrow::Cow::into_owned).ok_or(format!("no {outer}.{inner}"))
    };
    let mh_input = form(&[HASH, SIGNATURE, PROOF])?;
    let proof = text("sender", "dpopProof")?;
    let claims = proof.split('.').nth(1).and_then(base64url::decode).unwrap_or_default();
    out.open_object();
    member(out, "mhInput", &mh_input);
    member(out, "mh", &Digest::of(mh_input.as_bytes()).to_string());
    member(out, "dpopClaims", &String::from_utf8_lossy(&claims));
    member(out, "dpopProof", &proof);
    member(out, "hashInput", &form(&[HASH, SIGNATURE])?);
    member(out, "hash", &text("integrity", "hash")?);
    member(out, "signature", &text("integrity", "signature")?);
    member(out, "sent", sent);
    out.close_object();
    Ok(())
}

/// Canonical forms, and what has none.
fn canonical(out: &mut Writer) {
    out.key("canonical");
    out.open_array();
    for text in [
        r#"{"b":[1.50,1e2,-0],"a":"\u20ac\/\u000f"}"#,
        "{\"\u{fb33}\":1,\"\u{1f600}\":2,\"\u{20ac}\":3,\"\\r\":4}",
        r#"{"n":9007199254740992}"#,
        r#"{"n":9007199254740993}"#,
        r#"{"n":1e400}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"s":"\ud800"}"#,
    ] {
        let mut tape = Tape::default();
        let form = tape.read(text).ok().and_then(|doc| seal::canonical(&doc.root()).ok());
        out.open_object();
        member(out, "json", text);
        if let Some(form) = form {
            member(out, "form", &form);
        } else {
            out.key("refused");
            out.boolean(true);
        }
        out.close_object();
    }
    out.close_array();
}

fn agent(name: &str) -> Result<AgentUri, String> {
    AgentUri::parse(&format!("agent://{name}.example/desk")).map_err(|why| why.to_string())
}

fn card(keys: &Keys) -> Result<Card, String> {
    let profile = Profile {
        agent_id: agent("a")?,
        name: "A".to_owned(),
        description: "An agent of the vectors".to_owned(),
        organization: "org:a".to_owned(),
        capabilities: vec!["negotiate.printing".to_owned()],
        level: Level::Standard,
    };
    Card::issue(&profile, keys).map_err(|why| why.to_string())
}

fn draft(body: Body, number: u8, previous_hash: Digest) -> Result<Draft, String> {
    let at = UnixMillis::new(1_767_603_600_000 + i64::from(number) * 1000);
    let mut other = Others::default();
    if number == 1 {
        let extra = Raw::parse(r#"{"z":1.5,"a":"Käse \u0007"}"#).map_err(|why| why.to_string())?;
        other.set("x-extra", extra);
    }
    let mut fill = |bytes: &mut [u8]| bytes.fill(0xA0 + number);
    Ok(Draft {
        message_id: MessageId::generate(at, &mut fill),
        session_id: SessionId::generate(UnixMillis::new(1_767_603_600_000), &mut |bytes: &mut [u8]| {
            bytes.fill(0x77);
        }),
        sequence_number: u64::from(number),
        timestamp: Timestamp::from_unix_millis(at).ok_or("no such time")?,
        sender: agent("a")?,
        org_id: "org_a".to_owned(),
        trust_score: TrustScore::new(61.5).ok_or("no such score")?,
        recipient: agent("b")?,
        body,
        content: Content::default(),
        constraints: None,
        previous_hash,
        other,
    })
}

fn bodies() -> Result<Vec<Body>, String> {
    let told = |why: asp::IdError| why.to_string();
    let raw = |text: &str| Raw::parse(text).map_err(|why| why.to_string());
    let deadline = Timestamp::from_unix_millis(UnixMillis::new(1_767_607_200_000)).ok_or("no such time")?;
    Ok(vec![
        Propose {
            proposal_id: ProposalId::parse("prop_inv_1").map_err(told)?,
            kind: Propose::INVITATION.to_owned(),
            subject: "menus in braille".to_owned(),
            terms: raw(r#"{"schemas":["urn:asp:negotiation:v1"],"proposed_duration":3600}"#)?,
            valid_until: Timestamp::from_unix_millis(UnixMillis::new(1_767_603_630_000)),
            other: Others::default(),
        }
        .into(),
        Accept {
            reference: Reference::parse("prop_2").map_err(told)?,
            note: Some("½ off, “agreed” 😀\n".to_owned()),
            other: Others::default(),
        }
        .into(),
        Commit {
            commitment_id: CommitmentId::parse("cmt_1").map_err(told)?,
            terms: CommitTerms {
                obligations: vec![Obligation {
                    party: agent("b")?,
                    action: "print 40 menus".to_owned(),
                    deadline,
                    verification_method: None,
                    other: Others::default(),
                }],
                penalties: None,
                other: Others::default(),
            },
            deadline: Some(deadline),
            escrow: Some(Escrow {
                amount: Amount::parse("480.00").map_err(|why| why.to_string())?,
                currency: Currency::parse("EUR").map_err(told)?,
                release_condition: Some("fulfillment-verified".to_owned()),
                other: Others::default(),
            }),
            proposal_id: None,
            other: Others::default(),
        }
        .into(),
    ])
}

/// Puts members and items on lines of their own, so that a difference shows as a line.
fn spread(json: &str) -> String {
    let mut out = String::new();
    let mut depth = 0_usize;
    let mut in_text = false;
    let mut escaped = false;
    for letter in json.chars() {
        if in_text {
            out.push(letter);
            in_text = escaped || letter != '"';
            escaped = letter == '\\' && !escaped;
            continue;
        }
        match letter {
            '{' | '[' => {
                depth += 1;
                out.push(letter);
                out.push('\n');
                out.push_str(&"  ".repeat(depth));
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                out.push('\n');
                out.push_str(&"  ".repeat(depth));
                out.push(letter);
            }
            ',' => {
                out.push_str(",\n");
                out.push_str(&"  ".repeat(depth));
            }
            ':' => out.push_str(": "),
            _ => {
                in_text = letter == '"';
                out.push(letter);
            }
        }
    }
    out.push('\n');
    out
}
