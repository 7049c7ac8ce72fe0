//! What the hub says in place of an agent, in English and with variants in the other languages that sayso speaks (§11.5.1): each
//! listener hears its own (C-H1). What stands below the top of an event, as a reminder's description does, has no variants.

use aaep::event::{EventType, State};
use aaep::json::Scribe;

use super::agent::GONE;
use super::room::Room;
use super::told::OwnEvent;
use crate::compose::{SaysoExtension, text};

/// One text in each language.
pub(super) struct Line {
    en: &'static str,
    es: &'static str,
    yo: &'static str,
}

const fn line(en: &'static str, es: &'static str, yo: &'static str) -> Line {
    Line { en, es, yo }
}

/// Why a session is ended in place of its agent.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// The agent is gone.
    Gone {
        /// While it did something.
        under_way: bool,
        /// With a yes of which it never said that it used it.
        unused_yes: bool,
    },
    /// The person stopped it.
    Stopped {
        /// Likewise.
        unused_yes: bool,
    },
}

impl End {
    /// The last event of the session.
    pub(super) fn last(self) -> OwnEvent {
        match self {
            // That it may be tried again is not said: nobody knows how far the agent came.
            Self::Gone { under_way, unused_yes } => {
                event(Scribe::default(), &EventType::SessionErrored, |out| {
                    text(out, "error_category", "unknown");
                    text(out, "error_code", GONE);
                    out.plain_key("recoverable");
                    out.boolean(false);
                    said_all(
                        out,
                        "summary_terse",
                        [Some(&AGENT_GONE), unused_yes.then_some(&IN_SHORT_UNUSED)],
                    );
                    let (unknown, unused) = (under_way.then_some(&UNKNOWN), unused_yes.then_some(&UNUSED));
                    said_all(out, "summary_normal", [Some(&IT_IS_GONE), unknown, unused]);
                })
            }
            Self::Stopped { unused_yes } => event(Scribe::default(), &EventType::SessionCancelled, |out| {
                text(out, "urgency", "normal");
                text(out, "cancelled_by", "user");
                let in_short = unused_yes.then_some(&IN_SHORT_UNUSED);
                said_all(out, "summary_terse", [Some(&IN_SHORT_STOPPED), in_short]);
                said_all(out, "summary_normal", [Some(&STOPPED), unused_yes.then_some(&UNUSED)]);
            }),
        }
    }

    /// The end of a tool that was under way.
    pub(super) fn of_tool(self, tool: &str, call: Option<&str>) -> OwnEvent {
        let (summary, why) = match self {
            Self::Gone { .. } => (&GONE_AND_NOT_DONE, &AGENT_GONE),
            Self::Stopped { .. } => (&STOPPED_AND_NOT_DONE, &STOPPED),
        };
        event(Scribe::default(), &EventType::ToolCompleted, |out| {
            text(out, "tool", tool);
            if let Some(call) = call {
                text(out, "tool_call_id", call);
            }
            text(out, "urgency", "normal");
            text(out, "status", "error");
            said(out, "summary_terse", &NOT_DONE);
            said(out, "summary_normal", summary);
            said(out, "error_message", why);
        })
    }
}

const IT_IS_GONE: Line = line(
    "The agent is gone; its session was ended for it.",
    "El agente ya no está; se terminó su sesión por él.",
    "Aṣojú náà ti lọ; a parí ìjókòó rẹ̀ fún un.",
);
const UNKNOWN: Line = line(
    "Whether what it was doing got done is not known.",
    "No se sabe si se hizo lo que estaba haciendo.",
    "A kò mọ̀ bóyá ohun tí ó ń ṣe parí.",
);
const UNUSED: Line = line(
    "It had a yes and never said that it used it, so nothing is known to have been done with it.",
    "Tenía un sí y nunca dijo que lo usara, así que no consta que se hiciera nada con él.",
    "Ó ti gba bẹ́ẹ̀ni, kò sì sọ rí pé òun lò ó, nítorí náà a kò mọ̀ pé a fi ṣe ohunkóhun.",
);
const IN_SHORT_UNUSED: Line = line(
    "A yes is not known to have been used.",
    "No consta que se usara un sí.",
    "A kò mọ̀ pé ó lo bẹ́ẹ̀ni kan.",
);
const AWAY: Line = line(
    "The agent is not connected at the moment. It learns of the answer when it is back; until then nothing is done with it.",
    "El agente no está conectado en este momento. Sabrá la respuesta cuando vuelva; hasta entonces no se hace nada con ella.",
    "Aṣojú náà kò sí lórí ìlà báyìí. Yóò mọ ìdáhùn náà nígbà tí ó bá padà; títí di ìgbà náà a kò ní fi ṣe ohunkóhun.",
);
const AGENT_GONE: Line = line("The agent is gone.", "El agente ya no está.", "Aṣojú náà ti lọ.");
const NOT_DONE: Line =
    line("The tool had not finished.", "La herramienta no terminó.", "Irinṣẹ́ náà kò parí.");
const IN_SHORT_STOPPED: Line = line("Stopped.", "Parada.", "A ti dá a dúró.");
const GONE_AND_NOT_DONE: Line = line(
    "The agent is gone. The tool had not finished.",
    "El agente ya no está. La herramienta no terminó.",
    "Aṣojú náà ti lọ. Irinṣẹ́ náà kò parí.",
);
const STOPPED: Line =
    line("The person stopped the session.", "La persona paró la sesión.", "Ènìyàn náà dá ìjókòó náà dúró.");
const STOPPED_AND_NOT_DONE: Line = line(
    "The person stopped the session. The tool had not finished.",
    "La persona paró la sesión. La herramienta no terminó.",
    "Ènìyàn náà dá ìjókòó náà dúró. Irinṣẹ́ náà kò parí.",
);

/// The agent's state is another one now; `from` is said where it is not the one before.
pub(super) fn state(room: &mut Room, from: Option<&State>, to: &State) -> OwnEvent {
    state_in_words(room, from, to, &words_of(to).unwrap_or(UNDER_WAY))
}

/// The same, if it is one of the protocol's own (§4.2.1).
pub(super) fn known_state(room: &mut Room, from: Option<&State>, to: &State) -> Option<OwnEvent> {
    words_of(to).map(|words| state_in_words(room, from, to, &words))
}

fn state_in_words(
    room: &mut Room,
    from: Option<&State>,
    to: &State,
    [terse, normal]: &[Line; 2],
) -> OwnEvent {
    event(room.scribe(), &EventType::StateChanged, |out| {
        text(out, "urgency", "normal");
        if let Some(from) = from {
            text(out, "from_state", from.as_str());
        }
        text(out, "to_state", to.as_str());
        said(out, "summary_terse", terse);
        said(out, "summary_normal", normal);
    })
    .with(SaysoExtension::HubWords { gap: false })
}

/// A state in few words, and in words; none for a state that is not the protocol's own.
fn words_of(state: &State) -> Option<[Line; 2]> {
    Some(match state {
        State::Idle => [
            line("Idle.", "Sin nada que hacer.", "Kò ṣe ohunkóhun lọ́wọ́."),
            line("The agent is idle.", "El agente no hace nada ahora.", "Aṣojú náà kò ṣe ohunkóhun lọ́wọ́."),
        ],
        State::Thinking => [
            line("Thinking.", "Pensando.", "Ó ń ronú."),
            line("The agent is thinking.", "El agente está pensando.", "Aṣojú náà ń ronú."),
        ],
        State::CallingTool => [
            line("Using a tool.", "Usando una herramienta.", "Ó ń lo irinṣẹ́."),
            line(
                "The agent is using a tool.",
                "El agente está usando una herramienta.",
                "Aṣojú náà ń lo irinṣẹ́.",
            ),
        ],
        State::WritingOutput => [
            line("Writing.", "Escribiendo.", "Ó ń kọ̀wé."),
            line("The agent is writing.", "El agente está escribiendo.", "Aṣojú náà ń kọ̀wé."),
        ],
        State::AwaitingInput => [
            line("Waiting for an answer.", "Esperando una respuesta.", "Ó ń dúró de ìdáhùn."),
            line(
                "The agent waits for an answer.",
                "El agente espera una respuesta.",
                "Aṣojú náà ń dúró de ìdáhùn.",
            ),
        ],
        State::Deciding => [
            line("Deciding.", "Decidiendo.", "Ó ń pinnu."),
            line(
                "The agent is deciding what to do.",
                "El agente está decidiendo qué hacer.",
                "Aṣojú náà ń pinnu ohun tó máa ṣe.",
            ),
        ],
        State::HandingOff => [
            line("Handing over.", "Traspasando.", "Ó ń fà á lé ẹlòmíràn lọ́wọ́."),
            line(
                "The agent is handing over.",
                "El agente está traspasando el trabajo.",
                "Aṣojú náà ń fà á lé ẹlòmíràn lọ́wọ́.",
            ),
        ],
        _ => return None,
    })
}

const UNDER_WAY: [Line; 2] = [
    line("Under way.", "En marcha.", "Ó ń lọ lọ́wọ́."),
    line("The agent is under way.", "El agente está en marcha.", "Iṣẹ́ aṣojú náà ń lọ lọ́wọ́."),
];

/// Nobody has taken an answer yet.
pub(super) fn away() -> OwnEvent {
    event(Scribe::default(), &EventType::ProgressUpdated, |out| {
        text(out, "urgency", "normal");
        out.plain_key("progress");
        out.open_object();
        // A description would have no variants, and keep the summary's from being heard.
        out.plain_key("percent");
        out.integer(0);
        out.close_object();
        said(out, "summary_normal", &AWAY);
    })
}

fn event(scribe: Scribe, kind: &EventType, payload: impl FnOnce(&mut Scribe)) -> OwnEvent {
    OwnEvent::new(scribe, kind, &["en", "es", "yo"], payload)
}

/// A text, and its variants.
fn said(out: &mut Scribe, name: &str, line: &Line) {
    said_all(out, name, [Some(line)]);
}

/// One sentence after the other, where there is one, and their variants.
fn said_all<const N: usize>(out: &mut Scribe, name: &str, lines: [Option<&Line>; N]) {
    let joined = |words: fn(&Line) -> &'static str| {
        lines.iter().flatten().map(|line| words(line)).collect::<Vec<_>>().join(" ")
    };
    text(out, name, &joined(|line| line.en));
    text(out, &format!("{name}_es"), &joined(|line| line.es));
    text(out, &format!("{name}_yo"), &joined(|line| line.yo));
}
