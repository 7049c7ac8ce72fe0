//! ASP messages per second: build, sign and append; verify and append. Compared in the same run with one raw Ed25519 and one
//! raw ES256 operation of the same crates. Then the binary verifies a long transcript on one core and on two. Prints ratios.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::cast_precision_loss)]

use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

use asp::message::{Authenticator, PinnedCards};
use asp::session::{ReceiverChecks, SessionRules};
use asp::{Admission, AspLimits, SessionRecord};
use sayso_benches::asp::{AgentPair, START, filler_text, inform_body};
use seal::SystemRandom;

const MESSAGES: usize = 400;
const ROUNDS: usize = 12;
const LONG_TRANSCRIPT_MESSAGES: usize = 20_000;

fn main() {
    let pair = AgentPair::new();
    let (lines, bytes) = pair.conversation(MESSAGES);
    println!("{MESSAGES} messages of {bytes} bytes on average, best of {ROUNDS} rounds, one core");
    let text = "sha256:".to_owned() + &"0123456789abcdef".repeat(4);
    let token = filler_text(760);
    let keys = &pair.keys[0];
    let signature = keys.signing.sign(text.as_bytes());
    let proof = keys.dpop.sign(token.as_bytes()).unwrap();
    let public = keys.signing.verifying_key();

    let mut raw_sign = BestTime::new("raw: one Ed25519 signature, one ES256 signature");
    let mut send = BestTime::new("asp: build, sign and append");
    let mut raw_verify = BestTime::new("raw: one Ed25519 verification, one ES256 verification");
    let mut receive = BestTime::new("asp: verify and append");
    for _ in 0..ROUNDS {
        raw_sign.time(MESSAGES, || {
            for _ in 0..MESSAGES {
                black_box(keys.signing.sign(black_box(text.as_bytes())));
                black_box(keys.dpop.sign(black_box(token.as_bytes())));
            }
        });
        let (mut participants, _) = pair.handshake();
        let bodies = vec![inform_body(); MESSAGES];
        send.time(MESSAGES, || {
            for body in bodies {
                black_box(participants[0].send(body, START, &mut SystemRandom)).unwrap();
            }
        });
        raw_verify.time(MESSAGES, || {
            for _ in 0..MESSAGES {
                assert!(public.verify(black_box(text.as_bytes()), &signature));
                assert!(keys.dpop.verifying_key().verify(black_box(token.as_bytes()), &proof));
            }
        });
        receive.time(MESSAGES, || verify(&lines, &pair.cards()));
    }
    for best in [&raw_sign, &send, &raw_verify, &receive] {
        best.print();
    }
    println!("build, sign and append: {:.2} of the raw rate (goal 0.70)", send.rate() / raw_sign.rate());
    println!("verify and append: {:.2} of the raw rate (goal 0.70)", receive.rate() / raw_verify.rate());
    bench_long_transcript(&pair);
    bench_es256();
}

fn verify(lines: &[String], cards: &PinnedCards) {
    let limits = AspLimits::default();
    let mut authenticator = Authenticator::default();
    let mut record: Option<SessionRecord> = None;
    for line in lines {
        let message = authenticator.authenticate(line, cards, &limits).unwrap();
        let record = record.get_or_insert_with(|| {
            SessionRecord::from_invitation(&message.envelope, cards, SessionRules::default(), &limits)
                .unwrap()
        });
        assert!(matches!(record.admit(&message, ReceiverChecks::PASSED, None), Admission::Accepted(_)));
    }
}

/// Verifies a long transcript with the real binary, on one core and on two.
fn bench_long_transcript(pair: &AgentPair) {
    let folder = std::env::temp_dir().join(format!("sayso-asp-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (transcript, cards) = (folder.join("long.jsonl"), folder.join("cards.json"));
    let (lines, _) = pair.conversation(LONG_TRANSCRIPT_MESSAGES);
    std::fs::write(&transcript, lines.join("\n") + "\n").unwrap();
    std::fs::write(&cards, pair.cards_json()).unwrap();
    let binary = sayso_benches::binary().expect("cargo xtask bench builds the binary first");
    let run = |jobs: &str| {
        let started = Instant::now();
        let output = Command::new(&binary)
            .args(["asp", "verify", "--jobs", jobs, "--cards"])
            .args([&cards, &transcript])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        started.elapsed()
    };
    let (mut one, mut two) = (Duration::MAX, Duration::MAX);
    for _ in 0..5 {
        one = one.min(run("1"));
        two = two.min(run("2"));
    }
    std::fs::remove_dir_all(&folder).unwrap();
    let rate = |time: Duration| LONG_TRANSCRIPT_MESSAGES as f64 / time.as_secs_f64();
    println!(
        "sayso asp verify, {LONG_TRANSCRIPT_MESSAGES} messages: {:.0} per second on one core, {:.0} on two",
        rate(one),
        rate(two)
    );
    println!("two cores: {:.2} times one (goal 1.80)", one.as_secs_f64() / two.as_secs_f64());
}

/// Compares ES256 of ring with that of p256.
fn bench_es256() {
    let mut best = [
        BestTime::new("ring: one ES256 signature"),
        BestTime::new("p256: one ES256 signature"),
        BestTime::new("ring: one ES256 verification"),
        BestTime::new("p256: one ES256 verification"),
    ];
    let ring_key = seal::es256::SigningKey::from_secret(&[9; 32]).unwrap();
    let deterministic_key = seal::es256::SigningKey::deterministic(&[9; 32]).unwrap();
    let token = filler_text(760);
    let signature = deterministic_key.sign(token.as_bytes()).unwrap();
    let p256_key = p256::ecdsa::SigningKey::from_slice(&[9; 32]).unwrap();
    let parsed = p256::ecdsa::Signature::from_slice(&signature).unwrap();
    for _ in 0..ROUNDS {
        best[0]
            .time(50, || (0..50).for_each(|_| assert!(black_box(ring_key.sign(token.as_bytes())).is_some())));
        best[1].time(50, || {
            (0..50).for_each(|_| assert!(black_box(deterministic_key.sign(token.as_bytes())).is_some()));
        });
        best[2].time(50, || {
            (0..50).for_each(|_| assert!(ring_key.verifying_key().verify(token.as_bytes(), &signature)));
        });
        best[3].time(50, || {
            use p256::ecdsa::signature::Verifier as _;
            (0..50).for_each(|_| p256_key.verifying_key().verify(token.as_bytes(), &parsed).unwrap());
        });
    }
    best.iter().for_each(BestTime::print);
    println!("ring signs {:.1} times as fast as p256", best[0].rate() / best[1].rate());
    println!("ring verifies {:.1} times as fast as p256", best[2].rate() / best[3].rate());
}

struct BestTime {
    name: &'static str,
    best_time: Duration,
}

impl BestTime {
    fn new(name: &'static str) -> Self {
        Self { name, best_time: Duration::MAX }
    }

    fn time(&mut self, count: usize, run: impl FnOnce()) {
        let started = Instant::now();
        run();
        self.best_time = self.best_time.min(started.elapsed() / u32::try_from(count).unwrap());
    }

    fn rate(&self) -> f64 {
        1.0 / self.best_time.as_secs_f64()
    }

    fn print(&self) {
        println!(
            "{:9.0} per second  {:6.1} us  {}",
            self.rate(),
            self.best_time.as_secs_f64() * 1e6,
            self.name
        );
    }
}
