//! Texts that the hub writes on behalf of an agent, in English with variants in the other supported languages
//! (§11.5.1). A listener hears the variant in its own language, if there is one (C-H1).

use aaep::ReplyToken;
use aaep::event::{AgentState, EventType};
use aaep::json::TapeWriter;
use seal::Digest;

use super::notifications::HubEvent;
use super::scratch::ScratchBuffers;
use super::sessions::AGENT_GONE_CODE;
use crate::command::{HandoffOutcome, HandoffResult};
use crate::compose::{ENDED_BY_HUB, ENDED_BY_USER, SaysoExtension, SessionSnapshot, write_text};

/// One text in each language.
pub(super) struct LocalizedMessage {
    en: &'static str,
    es: &'static str,
    yo: &'static str,
}

impl LocalizedMessage {
    /// Returns each language and the text in it.
    pub(super) fn texts(&self) -> [(&'static str, &'static str); 3] {
        [("en", self.en), ("es", self.es), ("yo", self.yo)]
    }
}

const fn message(en: &'static str, es: &'static str, yo: &'static str) -> LocalizedMessage {
    LocalizedMessage { en, es, yo }
}

/// Why the hub ends a session for its agent.
#[derive(Clone, Copy, Debug)]
pub(super) enum SessionEnd {
    /// The agent disappeared.
    AgentGone {
        /// Whether a tool was still running.
        has_open_tool: bool,
        /// Whether a person accepted an action that the agent never reported as started.
        has_unused_consent: bool,
    },
    /// The person stopped the session.
    Stopped {
        /// Like `AgentGone::has_unused_consent`.
        has_unused_consent: bool,
    },
}

impl SessionEnd {
    /// Creates the last event of the session.
    pub(super) fn final_event(self) -> HubEvent {
        match self {
            // The event does not suggest a retry, because nobody knows how far the agent got.
            Self::AgentGone { has_open_tool, has_unused_consent } => {
                localized_event(TapeWriter::default(), &EventType::SessionErrored, |out| {
                    write_text(out, "error_category", "unknown");
                    write_text(out, "error_code", AGENT_GONE_CODE);
                    out.plain_key("recoverable");
                    out.boolean(false);
                    write_messages(
                        out,
                        "summary_terse",
                        [Some(&AGENT_GONE), has_unused_consent.then_some(&CONSENT_UNUSED_TERSE)],
                    );
                    let (unknown, unused) = (
                        has_open_tool.then_some(&OUTCOME_UNKNOWN),
                        has_unused_consent.then_some(&CONSENT_UNUSED),
                    );
                    write_messages(out, "summary_normal", [Some(&SESSION_ENDED_FOR_AGENT), unknown, unused]);
                })
                .with_extension(SaysoExtension::SessionEnded { by: ENDED_BY_HUB })
            }
            Self::Stopped { has_unused_consent } => {
                localized_event(TapeWriter::default(), &EventType::SessionCancelled, |out| {
                    write_text(out, "urgency", "normal");
                    write_text(out, "cancelled_by", "user");
                    let unused_terse = has_unused_consent.then_some(&CONSENT_UNUSED_TERSE);
                    write_messages(out, "summary_terse", [Some(&SESSION_STOPPED_TERSE), unused_terse]);
                    write_messages(
                        out,
                        "summary_normal",
                        [Some(&SESSION_STOPPED), has_unused_consent.then_some(&CONSENT_UNUSED)],
                    );
                })
                .with_extension(SaysoExtension::SessionEnded { by: ENDED_BY_USER })
            }
        }
    }

    /// Creates the event that ends a tool call that was still running.
    pub(super) fn tool_completed_event(self, tool: &str, call: Option<&str>) -> HubEvent {
        let (summary, reason) = match self {
            Self::AgentGone { .. } => (&AGENT_GONE_TOOL_UNFINISHED, &AGENT_GONE),
            Self::Stopped { .. } => (&SESSION_STOPPED_TOOL_UNFINISHED, &SESSION_STOPPED),
        };
        abandoned_tool_event(tool, call, [&TOOL_UNFINISHED, summary, reason])
    }
}

/// Creates the event that ends a tool call whose result its agent did not report before it ended the session.
pub(super) fn tool_without_result_event(tool: &str, call: Option<&str>) -> HubEvent {
    abandoned_tool_event(tool, call, [&NO_RESULT_TERSE, &NO_RESULT, &NO_RESULT])
}

fn abandoned_tool_event(
    tool: &str,
    call: Option<&str>,
    [terse, normal, reason]: [&LocalizedMessage; 3],
) -> HubEvent {
    localized_event(TapeWriter::default(), &EventType::ToolCompleted, |out| {
        write_text(out, "tool", tool);
        if let Some(call) = call {
            write_text(out, "tool_call_id", call);
        }
        write_text(out, "urgency", "normal");
        // The status of a tool that its agent abandoned (§4.3.2).
        write_text(out, "status", "timeout");
        write_message(out, "summary_terse", terse);
        write_message(out, "summary_normal", normal);
        write_message(out, "error_message", reason);
    })
}

const SESSION_ENDED_FOR_AGENT: LocalizedMessage = message(
    "The agent stopped responding, so its session was ended.",
    "El agente dejó de responder, así que se terminó su sesión.",
    "Aṣojú náà ti lọ; a parí ìjókòó rẹ̀ fún un.",
);
const OUTCOME_UNKNOWN: LocalizedMessage = message(
    "The agent may or may not have finished what it was doing.",
    "No se sabe si terminó lo que estaba haciendo.",
    "A kò mọ̀ bóyá ohun tí ó ń ṣe parí.",
);
const CONSENT_UNUSED: LocalizedMessage = message(
    "An action was approved, but the agent never reported doing it, so it is not known whether it was done.",
    "Se aprobó una acción, pero el agente nunca informó de haberla hecho, así que no se sabe si se hizo.",
    "A fọwọ́ sí ohun kan, ṣùgbọ́n aṣojú náà kò sọ rí pé òun ṣe é, nítorí náà a kò mọ̀ bóyá ó ṣe é.",
);
const CONSENT_UNUSED_TERSE: LocalizedMessage = message(
    "An approved action was not reported as done.",
    "Una acción aprobada no consta como hecha.",
    "Aṣojú náà kò sọ pé òun ṣe ohun tí a fọwọ́ sí.",
);
const AGENT_AWAY: LocalizedMessage = message(
    "The agent is not connected right now. It will get the answer when it is back. Nothing will be done until then.",
    "El agente no está conectado ahora. Recibirá la respuesta cuando vuelva. Hasta entonces no se hará nada.",
    "Aṣojú náà kò sí lórí ìlà báyìí. Yóò mọ ìdáhùn náà nígbà tí ó bá padà; títí di ìgbà náà a kò ní fi ṣe ohunkóhun.",
);
const AGENT_GONE: LocalizedMessage =
    message("The agent stopped responding.", "El agente dejó de responder.", "Aṣojú náà ti lọ.");
const TOOL_UNFINISHED: LocalizedMessage =
    message("The tool had not finished.", "La herramienta no terminó.", "Irinṣẹ́ náà kò parí.");
const NO_RESULT_TERSE: LocalizedMessage =
    message("No result from the tool.", "Sin resultado de la herramienta.", "Irinṣẹ́ náà kò ní èsì.");
const NO_RESULT: LocalizedMessage = message(
    "The agent ended without a result from this tool.",
    "El agente terminó sin un resultado de esta herramienta.",
    "Aṣojú náà parí láìsí èsì láti ọ̀dọ̀ irinṣẹ́ yìí.",
);
const SESSION_STOPPED_TERSE: LocalizedMessage = message("Stopped.", "Parada.", "A ti dá a dúró.");
const AGENT_GONE_TOOL_UNFINISHED: LocalizedMessage = message(
    "The agent stopped responding. The tool had not finished.",
    "El agente dejó de responder. La herramienta no terminó.",
    "Aṣojú náà ti lọ. Irinṣẹ́ náà kò parí.",
);
const SESSION_STOPPED: LocalizedMessage =
    message("The session was stopped.", "Se paró la sesión.", "A dá ìjókòó náà dúró.");
const SESSION_STOPPED_TOOL_UNFINISHED: LocalizedMessage = message(
    "The session was stopped. The tool had not finished.",
    "Se paró la sesión. La herramienta no terminó.",
    "A dá ìjókòó náà dúró. Irinṣẹ́ náà kò parí.",
);

/// The summary of a call, with `{}` for the name of the tool.
pub(super) const USING_TOOL: LocalizedMessage =
    message("Using the tool {}.", "Usando la herramienta {}.", "Ó ń lo irinṣẹ́ {}.");

/// The summaries of progress, with `{}` for each number.
pub(super) const PERCENT: LocalizedMessage =
    message("{} percent.", "{} por ciento.", "Ìdá {} nínú ọgọ́rùn-ún.");
pub(super) const STEP_OF: LocalizedMessage =
    message("Step {} of {}.", "Paso {} de {}.", "Ìgbésẹ̀ {} nínú {}.");
pub(super) const STEP: LocalizedMessage = message("Step {}.", "Paso {}.", "Ìgbésẹ̀ {}.");

/// Returns the summary of the result of a call, with `{}` for the name of the tool.
pub(super) fn tool_result_message(status: &str) -> &'static LocalizedMessage {
    const FINISHED: LocalizedMessage =
        message("The tool {} has finished.", "La herramienta {} ha terminado.", "Irinṣẹ́ {} ti parí.");
    const FAILED: LocalizedMessage =
        message("The tool {} failed.", "La herramienta {} ha fallado.", "Irinṣẹ́ {} ti kùnà.");
    const UNFINISHED: LocalizedMessage =
        message("The tool {} did not finish.", "La herramienta {} no terminó.", "Irinṣẹ́ {} kò parí.");
    match status {
        "error" => &FAILED,
        "timeout" => &UNFINISHED,
        _ => &FINISHED,
    }
}

/// Creates a state change. `from` is written if it is given.
pub(super) fn state_changed_event(
    scratch: &mut ScratchBuffers,
    from: Option<&AgentState>,
    to: &AgentState,
) -> HubEvent {
    build_state_changed(scratch, from, to, &state_messages(to).unwrap_or(OTHER_STATE))
}

/// Creates the report of a session's current state, for a listener that joins late or missed events. The hub writes no
/// text for a state that has the author's words.
pub(super) fn current_state_event(
    scratch: &mut ScratchBuffers,
    state: &AgentState,
    has_own_words: bool,
    snapshot: SessionSnapshot,
) -> HubEvent {
    if !has_own_words {
        let snapshot = SessionSnapshot { is_hub_text: true, ..snapshot };
        return state_changed_event(scratch, Some(state), state)
            .with_extension(SaysoExtension::CurrentState(snapshot));
    }
    let event = HubEvent::new(scratch.take_writer(), &EventType::StateChanged, &[], |out| {
        write_text(out, "urgency", "normal");
        write_text(out, "from_state", state.as_str());
        write_text(out, "to_state", state.as_str());
    });
    event.with_extension(SaysoExtension::CurrentState(snapshot))
}

/// Like [`state_changed_event`], but only for the states of the protocol (§4.2.1).
pub(super) fn standard_state_changed_event(
    scratch: &mut ScratchBuffers,
    from: Option<&AgentState>,
    to: &AgentState,
) -> Option<HubEvent> {
    state_messages(to).map(|messages| build_state_changed(scratch, from, to, &messages))
}

fn build_state_changed(
    scratch: &mut ScratchBuffers,
    from: Option<&AgentState>,
    to: &AgentState,
    [terse, normal]: &[LocalizedMessage; 2],
) -> HubEvent {
    localized_event(scratch.take_writer(), &EventType::StateChanged, |out| {
        write_text(out, "urgency", "normal");
        if let Some(from) = from {
            write_text(out, "from_state", from.as_str());
        }
        write_text(out, "to_state", to.as_str());
        write_message(out, "summary_terse", terse);
        write_message(out, "summary_normal", normal);
    })
    .with_extension(SaysoExtension::HubText)
}

/// Returns the terse and the normal text of a state, or `None` for a state that the protocol does not define.
fn state_messages(state: &AgentState) -> Option<[LocalizedMessage; 2]> {
    Some(match state {
        AgentState::Idle => [
            message("Idle.", "Sin nada que hacer.", "Kò ṣe ohunkóhun lọ́wọ́."),
            message("The agent is idle.", "El agente no hace nada ahora.", "Aṣojú náà kò ṣe ohunkóhun lọ́wọ́."),
        ],
        AgentState::Thinking => [
            message("Thinking.", "Pensando.", "Ó ń ronú."),
            message("The agent is thinking.", "El agente está pensando.", "Aṣojú náà ń ronú."),
        ],
        AgentState::CallingTool => [
            message("Using a tool.", "Usando una herramienta.", "Ó ń lo irinṣẹ́."),
            message(
                "The agent is using a tool.",
                "El agente está usando una herramienta.",
                "Aṣojú náà ń lo irinṣẹ́.",
            ),
        ],
        AgentState::WritingOutput => [
            message("Writing.", "Escribiendo.", "Ó ń kọ̀wé."),
            message("The agent is writing.", "El agente está escribiendo.", "Aṣojú náà ń kọ̀wé."),
        ],
        AgentState::AwaitingInput => [
            message("Waiting for an answer.", "Esperando una respuesta.", "Ó ń dúró de ìdáhùn."),
            message(
                "The agent is waiting for an answer.",
                "El agente espera una respuesta.",
                "Aṣojú náà ń dúró de ìdáhùn.",
            ),
        ],
        AgentState::Deciding => [
            message("Deciding.", "Decidiendo.", "Ó ń pinnu."),
            message(
                "The agent is deciding what to do.",
                "El agente está decidiendo qué hacer.",
                "Aṣojú náà ń pinnu ohun tó máa ṣe.",
            ),
        ],
        AgentState::HandingOff => [
            message("Handing over.", "Traspasando.", "Ó ń fà á lé ẹlòmíràn lọ́wọ́."),
            message(
                "The agent is handing over.",
                "El agente está traspasando el trabajo.",
                "Aṣojú náà ń fà á lé ẹlòmíràn lọ́wọ́.",
            ),
        ],
        _ => return None,
    })
}

const OTHER_STATE: [LocalizedMessage; 2] = [
    message("Working.", "Trabajando.", "Ó ń lọ lọ́wọ́."),
    message("The agent is working.", "El agente está trabajando.", "Iṣẹ́ aṣojú náà ń lọ lọ́wọ́."),
];

/// Creates the event that tells listeners that the agent has not received the answer yet.
pub(super) fn agent_away_event() -> HubEvent {
    localized_event(TapeWriter::default(), &EventType::ProgressUpdated, |out| {
        write_text(out, "urgency", "normal");
        out.plain_key("progress");
        out.open_object();
        // There is no description: nested members have no variants, and listeners would hear it instead of the summary.
        out.plain_key("percent");
        out.integer(0);
        out.close_object();
        write_message(out, "summary_normal", &AGENT_AWAY);
    })
}

/// Creates the event about the outcome of a hand-off. It is the state change with which the session continues.
pub(super) fn handoff_outcome_event(
    token: &ReplyToken,
    outcome: &HandoffOutcome,
    replier: Option<Digest>,
    to: &AgentState,
) -> HubEvent {
    let [terse, normal] = match outcome.result {
        HandoffResult::Acknowledged => [&HANDOFF_TAKEN_TERSE, &HANDOFF_TAKEN],
        HandoffResult::Rejected => [&HANDOFF_DECLINED_TERSE, &HANDOFF_DECLINED],
        HandoffResult::Timeout => [&HANDOFF_TIMEOUT_TERSE, &HANDOFF_TIMEOUT],
        HandoffResult::Unreachable => [&HANDOFF_UNREACHABLE_TERSE, &HANDOFF_UNREACHABLE],
        HandoffResult::Withdrawn => [&HANDOFF_WITHDRAWN_TERSE, &HANDOFF_WITHDRAWN],
    };
    localized_event(TapeWriter::default(), &EventType::StateChanged, |out| {
        write_text(out, "urgency", "normal");
        write_text(out, "to_state", to.as_str());
        write_message(out, "summary_terse", terse);
        let with_note = |text: &str| match &outcome.note {
            Some(note) => format!("{text} {note}"),
            None => text.to_owned(),
        };
        write_text(out, "summary_normal", &with_note(normal.en));
        write_text(out, "summary_normal_es", &with_note(normal.es));
        write_text(out, "summary_normal_yo", &with_note(normal.yo));
    })
    .with_extension(SaysoExtension::HandoffResolved {
        token: token.clone(),
        result: outcome.result,
        note: outcome.note.clone(),
        replier,
    })
}

const HANDOFF_TAKEN_TERSE: LocalizedMessage = message("Taken over.", "Traspaso aceptado.", "A ti gbà á.");
const HANDOFF_TAKEN: LocalizedMessage = message(
    "Somebody has taken over from the agent.",
    "Alguien se ha hecho cargo del trabajo del agente.",
    "Ẹnì kan ti gba iṣẹ́ náà lọ́wọ́ aṣojú náà.",
);
const HANDOFF_DECLINED_TERSE: LocalizedMessage =
    message("Hand-off declined.", "Traspaso rechazado.", "A kọ̀ láti gbà á.");
const HANDOFF_DECLINED: LocalizedMessage = message(
    "Somebody declined to take over from the agent.",
    "Alguien ha rechazado hacerse cargo del trabajo del agente.",
    "Ẹnì kan kọ̀ láti gba iṣẹ́ náà lọ́wọ́ aṣojú náà.",
);
const HANDOFF_TIMEOUT_TERSE: LocalizedMessage =
    message("Nobody took over in time.", "Nadie se hizo cargo a tiempo.", "Kò sí ẹni tó gbà á lásìkò.");
const HANDOFF_TIMEOUT: LocalizedMessage = message(
    "Nobody took over from the agent in time.",
    "Nadie se hizo cargo a tiempo del trabajo del agente.",
    "Kò sí ẹni tó gba iṣẹ́ náà lọ́wọ́ aṣojú náà lásìkò.",
);
const HANDOFF_UNREACHABLE_TERSE: LocalizedMessage =
    message("Nobody to take over.", "Nadie puede hacerse cargo.", "Kò sí ẹni tó lè gbà á.");
const HANDOFF_UNREACHABLE: LocalizedMessage = message(
    "Nobody who could take over from the agent is connected.",
    "No hay nadie conectado que pueda hacerse cargo del trabajo del agente.",
    "Kò sí ẹnikẹ́ni lórí ìlà tó lè gba iṣẹ́ náà lọ́wọ́ aṣojú náà.",
);
const HANDOFF_WITHDRAWN_TERSE: LocalizedMessage =
    message("Hand-off withdrawn.", "Traspaso retirado.", "A ti fagi lé ìfàlélọ́wọ́ náà.");
const HANDOFF_WITHDRAWN: LocalizedMessage = message(
    "The agent no longer asks anybody to take over.",
    "El agente ya no pide que nadie se haga cargo.",
    "Aṣojú náà kò bèèrè mọ́ pé kí ẹnì kan gba iṣẹ́ náà.",
);

fn localized_event(writer: TapeWriter, kind: &EventType, payload: impl FnOnce(&mut TapeWriter)) -> HubEvent {
    HubEvent::new(writer, kind, &["en", "es", "yo"], payload)
}

/// Writes a text and its variants in the other languages.
fn write_message(out: &mut TapeWriter, name: &str, message: &LocalizedMessage) {
    write_messages(out, name, [Some(message)]);
}

/// Joins the sentences that are given, and writes the result and its variants in the other languages.
fn write_messages<const N: usize>(
    out: &mut TapeWriter,
    name: &str,
    messages: [Option<&LocalizedMessage>; N],
) {
    let joined = |text_in: fn(&LocalizedMessage) -> &'static str| {
        messages.iter().flatten().map(|message| text_in(message)).collect::<Vec<_>>().join(" ")
    };
    write_text(out, name, &joined(|message| message.en));
    write_text(out, &format!("{name}_es"), &joined(|message| message.es));
    write_text(out, &format!("{name}_yo"), &joined(|message| message.yo));
}
