//! Inputs and drivers of the benchmarks: valid recordings of any length with a realistic mix of events, pairs of ASP agents,
//! and the load driver for the hub.

pub mod asp;
pub mod load;

use std::fmt::Write;
use std::path::PathBuf;

/// Returns the path of the `sayso` binary in the target folder.
pub fn binary() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.parent()?.parent()?.join("sayso");
    path.is_file().then_some(path)
}

/// Generates recordings, session by session. The output is deterministic.
#[derive(Debug, Default)]
pub struct RecordingGenerator {
    state: u64,
    clock: u64,
    sessions: u64,
}

/// The texts of a session, and their language.
struct SessionScript {
    language: &'static str,
    work: &'static str,
    sentences: [&'static str; 3],
}

const SESSION_SCRIPTS: [SessionScript; 4] = [
    SessionScript {
        language: "en-US",
        work: "Looking up the balance of your checking account at the bank.",
        sentences: [
            "Your checking account holds twelve thousand five hundred dollars. ",
            "Two payments are planned for this week, the rent and the insurance. ",
            "Nothing else needs your attention today.",
        ],
    },
    SessionScript {
        language: "es-419",
        work: "Consultando el saldo de su cuenta corriente en el banco.",
        sentences: [
            "Su cuenta corriente tiene doce mil quinientos pesos. ",
            "Hay dos pagos previstos para esta semana. ",
            "No hay nada más que requiera su atención hoy.",
        ],
    },
    SessionScript {
        language: "yo-NG",
        work: "Mo ń wo iye owó tó wà nínú àpò ìfowópamọ́ rẹ.",
        sentences: [
            "Owó tó wà nínú àpò rẹ pọ̀ dáadáa. ",
            "Ìsanwó méjì wà fún ọ̀sẹ̀ yìí. ",
            "Kò sí ohun mìíràn lónìí.",
        ],
    },
    SessionScript {
        language: "en-GB",
        work: "Reading the two newest letters in your inbox and ordering them by sender.",
        sentences: [
            "There are two new letters, one from the clinic and one from the library. ",
            "The clinic confirms your appointment on Tuesday at ten in the morning. ",
            "The library reminds you of a book that is due on Friday.",
        ],
    },
];

impl RecordingGenerator {
    /// Returns a recording of at least `events` events as JSON Lines.
    pub fn generate(&mut self, events: usize) -> String {
        let mut out = String::with_capacity(events * 800);
        let mut count = 0;
        while count < events {
            count += self.generate_session(&mut out);
        }
        out
    }

    /// Appends one session. Returns its number of events.
    pub fn generate_session(&mut self, out: &mut String) -> usize {
        self.sessions += 1;
        let script = &SESSION_SCRIPTS[(self.sessions % 4) as usize];
        let mut session =
            SessionWriter { id: self.next_bits(), event_count: 0, script, generator: self, out };
        session.write_session();
        session.event_count
    }

    /// Returns the next 128 random bits, by splitmix64.
    fn next_bits(&mut self) -> u128 {
        let mut half = || {
            self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ mixed >> 31
        };
        u128::from(half()) << 64 | u128::from(half())
    }
}

struct SessionWriter<'r> {
    id: u128,
    event_count: usize,
    script: &'static SessionScript,
    generator: &'r mut RecordingGenerator,
    out: &'r mut String,
}

impl SessionWriter<'_> {
    fn write_session(&mut self) {
        let has_transfer = self.generator.sessions.is_multiple_of(5);
        let call = self.generator.next_bits();
        self.write_event("session.started", "normal", |script| {
            format!(
                "{},\"expected_duration_ms\":30000,\"requested_by\":\"user:folake\",\"tools_available\":[\"fetch_balance\",\"transfer_funds\"]",
                summaries(script.work)
            )
        });
        self.write_state("idle", "thinking");
        self.write_state("thinking", "calling_tool");
        self.write_tool("fetch_balance", call, "low", false);
        self.write_state("calling_tool", "thinking");
        self.write_event("progress.updated", "background", |script| {
            format!(
                "\"progress\":{{\"percent\":40,\"step\":2,\"total_steps\":5,\"description\":\"{}\"}},{},\"eta_ms\":12000",
                script.work,
                summaries(script.work)
            )
        });
        if has_transfer {
            self.write_transfer();
        }
        self.write_output();
        self.write_event("session.completed", "normal", |script| {
            format!("{},\"duration_ms\":27579,\"tool_invocations_count\":1", summaries(script.work))
        });
    }

    fn write_transfer(&mut self) {
        let (token, call) = (self.generator.next_bits(), self.generator.next_bits());
        self.write_state("thinking", "awaiting_input");
        self.write_event("awaiting.confirmation", "critical", |script| {
            format!(
                "\"action\":\"Transfer 500 from checking to savings.\",\"consequence\":\"The money moves at once.\",\"reply_token\":\"rpl_{token:032x}\",\"timeout_seconds\":60,\"default_decision\":\"reject\",{},\"risk_level\":\"high\",\"irreversible\":true,\"reversibility\":\"irreversible\"",
                summaries(script.work)
            )
        });
        let timestamp = self.next_timestamp();
        let _ = writeln!(
            self.out,
            "{{\"type\":\"confirmation.reply\",\"reply_token\":\"rpl_{token:032x}\",\"decision\":\"accept\",\"subscription_id\":\"sub_{token:032x}\",\"timestamp\":\"{timestamp}\"}}"
        );
        self.write_state("awaiting_input", "calling_tool");
        self.write_tool("transfer_funds", call, "high", true);
        self.write_state("calling_tool", "thinking");
    }

    fn write_tool(&mut self, tool: &str, call: u128, risk: &str, irreversible: bool) {
        self.write_event("tool.invoked", "normal", |script| {
            format!(
                "\"tool\":\"{tool}\",{},\"description\":\"Asks the bank.\",\"args_summary\":\"account: checking\",\"expected_duration_ms\":2000,\"risk_level\":\"{risk}\",\"irreversible\":{irreversible},\"tool_call_id\":\"call_{call:032x}\"",
                summaries(script.work)
            )
        });
        self.write_event("tool.completed", "normal", |script| {
            format!(
                "\"tool\":\"{tool}\",\"status\":\"success\",{},\"tool_call_id\":\"call_{call:032x}\",\"duration_ms\":1885",
                summaries(script.work)
            )
        });
    }

    fn write_output(&mut self) {
        self.write_state("thinking", "writing_output");
        let output = self.generator.next_bits();
        let mut position = 0;
        for (at, sentence) in self.script.sentences.iter().enumerate() {
            let complete = at == 2;
            let hint = if complete { "completion" } else { "sentence" };
            self.write_event("output.streaming", "normal", |_| {
                format!(
                    "\"chunk\":\"{sentence}\",\"position\":{position},\"complete\":{complete},\"coalesce_hint\":\"{hint}\",\"output_id\":\"out_{output:032x}\",\"content_type\":\"text/plain\""
                )
            });
            position += sentence.chars().count();
        }
    }

    fn write_state(&mut self, from: &str, to: &str) {
        self.write_event("state.changed", "background", |script| {
            format!("\"from_state\":\"{from}\",\"to_state\":\"{to}\",{}", summaries(script.work))
        });
    }

    fn write_event(&mut self, name: &str, urgency: &str, payload: impl Fn(&SessionScript) -> String) {
        let (event, number, timestamp) =
            (self.generator.next_bits(), self.event_count, self.next_timestamp());
        self.event_count += 1;
        let language = self.script.language;
        let _ = writeln!(
            self.out,
            "{{\"@context\":\"https://aaep-protocol.org/context/v1\",\"aaep_version\":\"1.0.0\",\"type\":\"aaep:agent.{name}\",\"event_id\":\"evt_{event:032x}\",\"session_id\":\"sess_{:032x}\",\"sequence_number\":{number},\"timestamp\":\"{timestamp}\",\"producer\":{{\"agent_id\":\"household-assistant\",\"agent_version\":\"3.0.1\",\"agent_name\":\"Household Assistant\"}},\"urgency\":\"{urgency}\",\"localization_hints\":{{\"primary_language\":\"{language}\",\"text_direction\":\"ltr\"}},{}}}",
            self.id,
            payload(self.script)
        );
    }

    /// Returns a timestamp twenty milliseconds after the previous one.
    fn next_timestamp(&mut self) -> String {
        self.generator.clock += 20;
        let millis = self.generator.clock;
        let (seconds, minutes, hours) = (millis / 1000 % 60, millis / 60_000 % 60, millis / 3_600_000 % 24);
        let day = 1 + millis / 86_400_000;
        format!("2026-05-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", millis % 1000)
    }
}

fn summaries(work: &str) -> String {
    format!("\"summary_terse\":\"Working.\",\"summary_normal\":\"{work}\"")
}
