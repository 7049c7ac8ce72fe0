//! What is measured: a lawful recording of any length, the mixture of events that an assistant makes, without a finding;
//! two agents that talk to each other; and the load driver for the hub.

pub mod asp;
pub mod load;

use std::fmt::Write;
use std::path::PathBuf;

/// The binary beside the benchmark's own folder.
pub fn binary() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.parent()?.parent()?.join("sayso");
    path.is_file().then_some(path)
}

/// Writes recordings, session by session; the same number gives the same bytes.
#[derive(Debug, Default)]
pub struct Recorder {
    state: u64,
    clock: u64,
    sessions: u64,
}

/// What a session in this mixture says, and in which language.
struct Voice {
    language: &'static str,
    work: &'static str,
    sentences: [&'static str; 3],
}

const VOICES: [Voice; 4] = [
    Voice {
        language: "en-US",
        work: "Looking up the balance of your checking account at the bank.",
        sentences: [
            "Your checking account holds twelve thousand five hundred dollars. ",
            "Two payments are planned for this week, the rent and the insurance. ",
            "Nothing else needs your attention today.",
        ],
    },
    Voice {
        language: "es-419",
        work: "Consultando el saldo de su cuenta corriente en el banco.",
        sentences: [
            "Su cuenta corriente tiene doce mil quinientos pesos. ",
            "Hay dos pagos previstos para esta semana. ",
            "No hay nada más que requiera su atención hoy.",
        ],
    },
    Voice {
        language: "yo-NG",
        work: "Mo ń wo iye owó tó wà nínú àpò ìfowópamọ́ rẹ.",
        sentences: [
            "Owó tó wà nínú àpò rẹ pọ̀ dáadáa. ",
            "Ìsanwó méjì wà fún ọ̀sẹ̀ yìí. ",
            "Kò sí ohun mìíràn lónìí.",
        ],
    },
    Voice {
        language: "en-GB",
        work: "Reading the two newest letters in your inbox and ordering them by sender.",
        sentences: [
            "There are two new letters, one from the clinic and one from the library. ",
            "The clinic confirms your appointment on Tuesday at ten in the morning. ",
            "The library reminds you of a book that is due on Friday.",
        ],
    },
];

impl Recorder {
    /// A recording of at least so many events, JSON Lines.
    pub fn record(&mut self, events: usize) -> String {
        let mut out = String::with_capacity(events * 800);
        let mut count = 0;
        while count < events {
            count += self.session(&mut out);
        }
        out
    }

    /// Adds one session; returns how many events it has.
    pub fn session(&mut self, out: &mut String) -> usize {
        self.sessions += 1;
        let voice = &VOICES[(self.sessions % 4) as usize];
        let mut session = Scribe { id: self.draw(), number: 0, voice, recorder: self, out };
        session.play();
        session.number
    }

    /// The next 128 random bits, by splitmix64.
    fn draw(&mut self) -> u128 {
        let mut half = || {
            self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ mixed >> 31
        };
        u128::from(half()) << 64 | u128::from(half())
    }
}

struct Scribe<'r> {
    id: u128,
    number: usize,
    voice: &'static Voice,
    recorder: &'r mut Recorder,
    out: &'r mut String,
}

impl Scribe<'_> {
    fn play(&mut self) {
        let risky = self.recorder.sessions.is_multiple_of(5);
        let call = self.recorder.draw();
        self.event("session.started", "normal", |voice| {
            format!(
                "{},\"expected_duration_ms\":30000,\"requested_by\":\"user:folake\",\"tools_available\":[\"fetch_balance\",\"transfer_funds\"]",
                summaries(voice.work)
            )
        });
        self.state("idle", "thinking");
        self.state("thinking", "calling_tool");
        self.tool("fetch_balance", call, "low", false);
        self.state("calling_tool", "thinking");
        self.event("progress.updated", "background", |voice| {
            format!(
                "\"progress\":{{\"percent\":40,\"step\":2,\"total_steps\":5,\"description\":\"{}\"}},{},\"eta_ms\":12000",
                voice.work,
                summaries(voice.work)
            )
        });
        if risky {
            self.transfer();
        }
        self.output();
        self.event("session.completed", "normal", |voice| {
            format!("{},\"duration_ms\":27579,\"tool_invocations_count\":1", summaries(voice.work))
        });
    }

    fn transfer(&mut self) {
        let (token, call) = (self.recorder.draw(), self.recorder.draw());
        self.state("thinking", "awaiting_input");
        self.event("awaiting.confirmation", "critical", |voice| {
            format!(
                "\"action\":\"Transfer 500 from checking to savings.\",\"consequence\":\"The money moves at once.\",\"reply_token\":\"rpl_{token:032x}\",\"timeout_seconds\":60,\"default_decision\":\"reject\",{},\"risk_level\":\"high\",\"irreversible\":true,\"reversibility\":\"irreversible\"",
                summaries(voice.work)
            )
        });
        let when = self.now();
        let _ = writeln!(
            self.out,
            "{{\"type\":\"confirmation.reply\",\"reply_token\":\"rpl_{token:032x}\",\"decision\":\"accept\",\"subscription_id\":\"sub_{token:032x}\",\"timestamp\":\"{when}\"}}"
        );
        self.state("awaiting_input", "calling_tool");
        self.tool("transfer_funds", call, "high", true);
        self.state("calling_tool", "thinking");
    }

    fn tool(&mut self, tool: &str, call: u128, risk: &str, irreversible: bool) {
        self.event("tool.invoked", "normal", |voice| {
            format!(
                "\"tool\":\"{tool}\",{},\"description\":\"Asks the bank.\",\"args_summary\":\"account: checking\",\"expected_duration_ms\":2000,\"risk_level\":\"{risk}\",\"irreversible\":{irreversible},\"tool_call_id\":\"call_{call:032x}\"",
                summaries(voice.work)
            )
        });
        self.event("tool.completed", "normal", |voice| {
            format!(
                "\"tool\":\"{tool}\",\"status\":\"success\",{},\"tool_call_id\":\"call_{call:032x}\",\"duration_ms\":1885",
                summaries(voice.work)
            )
        });
    }

    fn output(&mut self) {
        self.state("thinking", "writing_output");
        let output = self.recorder.draw();
        let mut position = 0;
        for (at, sentence) in self.voice.sentences.iter().enumerate() {
            let complete = at == 2;
            let hint = if complete { "completion" } else { "sentence" };
            self.event("output.streaming", "normal", |_| {
                format!(
                    "\"chunk\":\"{sentence}\",\"position\":{position},\"complete\":{complete},\"coalesce_hint\":\"{hint}\",\"output_id\":\"out_{output:032x}\",\"content_type\":\"text/plain\""
                )
            });
            position += sentence.chars().count();
        }
    }

    fn state(&mut self, from: &str, to: &str) {
        self.event("state.changed", "background", |voice| {
            format!("\"from_state\":\"{from}\",\"to_state\":\"{to}\",{}", summaries(voice.work))
        });
    }

    fn event(&mut self, name: &str, urgency: &str, payload: impl Fn(&Voice) -> String) {
        let (event, number, when) = (self.recorder.draw(), self.number, self.now());
        self.number += 1;
        let language = self.voice.language;
        let _ = writeln!(
            self.out,
            "{{\"@context\":\"https://aaep-protocol.org/context/v1\",\"aaep_version\":\"1.0.0\",\"type\":\"aaep:agent.{name}\",\"event_id\":\"evt_{event:032x}\",\"session_id\":\"sess_{:032x}\",\"sequence_number\":{number},\"timestamp\":\"{when}\",\"producer\":{{\"agent_id\":\"household-assistant\",\"agent_version\":\"3.0.1\",\"agent_name\":\"Household Assistant\"}},\"urgency\":\"{urgency}\",\"localization_hints\":{{\"primary_language\":\"{language}\",\"text_direction\":\"ltr\"}},{}}}",
            self.id,
            payload(self.voice)
        );
    }

    /// Twenty milliseconds after the time before.
    fn now(&mut self) -> String {
        self.recorder.clock += 20;
        let millis = self.recorder.clock;
        let (seconds, minutes, hours) = (millis / 1000 % 60, millis / 60_000 % 60, millis / 3_600_000 % 24);
        let day = 1 + millis / 86_400_000;
        format!("2026-05-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", millis % 1000)
    }
}

fn summaries(work: &str) -> String {
    format!("\"summary_terse\":\"Working.\",\"summary_normal\":\"{work}\"")
}
