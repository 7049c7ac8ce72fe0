//! What the hub says in place of an agent, in English and with variants in the other languages that sayso speaks (§11.5.1): each
//! listener hears its own (C-H1). What stands below the top of an event, as a reminder's description does, has no variants.

use aaep::json::Writer;

use super::agent::GONE;

/// One text in each language.
pub(super) struct Line {
    en: &'static str,
    others: [(&'static str, &'static str); 2],
}

const fn line(en: &'static str, es: &'static str, yo: &'static str) -> Line {
    Line { en, others: [("es", es), ("yo", yo)] }
}

/// Why a session is ended in place of its agent.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// The agent is gone.
    Gone,
    /// The person stopped it.
    Stopped,
}

impl End {
    /// The last event of the session.
    pub(super) fn last(self) -> String {
        match self {
            Self::Gone => event("aaep:agent.session.errored", |writer| {
                text(writer, "error_category", "transient");
                text(writer, "error_code", GONE);
                writer.key("recoverable");
                writer.boolean(false);
                said(writer, "summary_normal", &IT_IS_GONE);
            }),
            Self::Stopped => event("aaep:agent.session.cancelled", |writer| {
                text(writer, "cancelled_by", "user");
                said(writer, "summary_normal", &STOPPED);
            }),
        }
    }

    /// The end of a tool that was under way.
    pub(super) fn of_tool(self, tool: &str, call: Option<&str>) -> String {
        let (summary, why) = match self {
            Self::Gone => (&GONE_AND_NOT_DONE, &AGENT_GONE),
            Self::Stopped => (&STOPPED_AND_NOT_DONE, &STOPPED),
        };
        event("aaep:agent.tool.completed", |writer| {
            text(writer, "tool", tool);
            if let Some(call) = call {
                text(writer, "tool_call_id", call);
            }
            text(writer, "status", "error");
            said(writer, "summary_normal", summary);
            said(writer, "error_message", why);
        })
    }
}

const IT_IS_GONE: Line = line(
    "The agent is gone; its session was ended for it.",
    "El agente ya no está; se terminó su sesión por él.",
    "Aṣojú náà ti lọ; a parí ìjókòó rẹ̀ fún un.",
);
const AGENT_GONE: Line = line("The agent is gone.", "El agente ya no está.", "Aṣojú náà ti lọ.");
const GONE_AND_NOT_DONE: Line = line(
    "The agent is gone. The tool was not done.",
    "El agente ya no está. La herramienta no terminó.",
    "Aṣojú náà ti lọ. Irinṣẹ́ náà kò parí.",
);
const STOPPED: Line =
    line("The person stopped the session.", "La persona paró la sesión.", "Ènìyàn náà dá ìjókòó náà dúró.");
const STOPPED_AND_NOT_DONE: Line = line(
    "The person stopped the session. The tool was not done.",
    "La persona paró la sesión. La herramienta no terminó.",
    "Ènìyàn náà dá ìjókòó náà dúró. Irinṣẹ́ náà kò parí.",
);

fn event(kind: &str, payload: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::default();
    writer.open_object();
    text(&mut writer, "type", kind);
    payload(&mut writer);
    writer.key("localization_hints");
    writer.raw(r#"{"primary_language":"en","available_languages":["en","es","yo"]}"#);
    writer.close_object();
    writer.finish()
}

/// A text, and its variants.
fn said(writer: &mut Writer, name: &str, line: &Line) {
    text(writer, name, line.en);
    for (tag, words) in line.others {
        text(writer, &format!("{name}_{tag}"), words);
    }
}

fn text(writer: &mut Writer, name: &str, text: &str) {
    writer.key(name);
    writer.text(text);
}
