//! The introduction of `sayso demo`.

use listen::{Announcement, AnnouncementKind, Phrases};

use super::language::{Language, TranslatedText, translated};

const INTRODUCTION: TranslatedText = translated(
    "This is the sayso demo. A scripted assistant says what it does, and asks before anything that matters. Nothing is real.",
    "Esta es la demostración de sayso. Un asistente de guion dice lo que hace, y pregunta antes de algo importante. Nada es real.",
    "Àfihàn sayso nìyí. Olùrànlọ́wọ́ tí a ti múra sílẹ̀ ń sọ ohun tó ń ṣe, ó sì ń béèrè kí ó tó ṣe ohun tó ṣe pàtàkì. Kò sí ohun tó jẹ́ gidi.",
);
const ASK_HINT: TranslatedText = translated(
    "Type what you want and press Enter:",
    "Escriba lo que quiere y pulse Enter:",
    "Tẹ ohun tí o fẹ́, lẹ́yìn náà tẹ Enter:",
);
const REQUESTS: [TranslatedText; 11] = [
    translated("what's my balance?", "¿cuál es mi saldo?", "iye owó mi"),
    translated("send 20 euros to Ben", "transfiere 20 euros a Ben", "fi yúrò 20 ránṣẹ́ sí Ben"),
    translated("book a room", "reserva una sala", "gba yàrá"),
    translated("send an e-mail to Ada", "envía un correo a Ada", "fi ímeèlì ránṣẹ́ sí Ada"),
    translated("delete a record", "borra un registro", "pa àkọsílẹ̀ rẹ́"),
    translated("how is the weather?", "¿qué tiempo hace?", "báwo ni ojú ọjọ́?"),
    translated("explain it at length", "explícame todo", "ṣàlàyé fún mi"),
    translated("use a tool that does not exist", "usa una herramienta que no existe", "lo irinṣẹ́ tí kò sí"),
    translated("escalate to a human", "quiero hablar con una persona", "mo fẹ́ ènìyàn"),
    translated("fail", "falla, por favor", "kùnà"),
    translated("cancel", "cancela algo, por favor", "fagi lé e"),
];
const ANSWER_HINT: TranslatedText = translated(
    "When it asks, type \"yes\" or \"no\"; if you do not answer, that counts as no. Type \"help\" for the other commands, \"quit\" to leave.",
    "Cuando pregunte, escriba \"sí\" o \"no\"; si no responde, cuenta como no. Escriba \"ayuda\" para oír los demás comandos, \"salir\" para terminar.",
    "Bí ó bá béèrè, tẹ \"bẹ́ẹ̀ni\" tàbí \"rárá\"; bí o kò bá dáhùn, rárá ni. Tẹ \"ìrànlọ́wọ́\" fún àwọn àṣẹ yòókù, \"jáde\" láti parí.",
);
const AUTO_ACCEPT_NOTE: TranslatedText = translated(
    "Every question is answered automatically: yes.",
    "Cada pregunta se responde automáticamente: sí.",
    "A ń dáhùn àwọn ìbéèrè láìsí ọ: bẹ́ẹ̀ni sí ọ̀kọ̀ọ̀kan.",
);
const AUTO_REJECT_NOTE: TranslatedText = translated(
    "Every question is answered automatically: no.",
    "Cada pregunta se responde automáticamente: no.",
    "A ń dáhùn àwọn ìbéèrè láìsí ọ: bẹ́ẹ̀kọ́ sí ọ̀kọ̀ọ̀kan.",
);
const NO_ANSWER_NOTE: TranslatedText = translated(
    "No question is answered: each one times out after a few seconds, which means no.",
    "Las preguntas no se responden: cada una vence a los pocos segundos, y eso es no.",
    "A kò dáhùn àwọn ìbéèrè: àkókò ọ̀kọ̀ọ̀kan máa ń parí lẹ́yìn ìṣẹ́jú àáyá díẹ̀, bẹ́ẹ̀kọ́ ni ìyẹn.",
);
const ADDRESS_NOTE: TranslatedText = translated(
    "Others on this machine can listen and answer in a browser at",
    "Otros en esta máquina pueden escuchar y responder con un navegador en",
    "Àwọn mìíràn lórí ẹ̀rọ yìí lè gbọ́ kí wọ́n sì dáhùn ní",
);

const ENDED_NOTE: TranslatedText =
    translated("The demo has ended.", "La demostración ha terminado.", "Àfihàn ti parí.");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerMode {
    Person,
    Accept,
    Reject,
    LetExpire,
}

/// Returns the introduction: the possible requests (not with `--once`), how questions are answered, and the address.
pub(super) fn welcome_text(
    language: Language,
    answer_mode: AnswerMode,
    is_single_request: bool,
    url: &str,
) -> String {
    let mut lines = vec![INTRODUCTION.in_language(language).to_owned()];
    if !is_single_request {
        lines.push(ASK_HINT.in_language(language).to_owned());
        lines.extend(REQUESTS.iter().map(|request| format!("  {}", request.in_language(language))));
    }
    let hint = match answer_mode {
        AnswerMode::Person => &ANSWER_HINT,
        AnswerMode::Accept => &AUTO_ACCEPT_NOTE,
        AnswerMode::Reject => &AUTO_REJECT_NOTE,
        AnswerMode::LetExpire => &NO_ANSWER_NOTE,
    };
    lines.push(hint.in_language(language).to_owned());
    lines.push(format!("{} {url}", ADDRESS_NOTE.in_language(language)));
    lines.push(String::new());
    lines.join("\n")
}

pub(super) fn ended_text(language: Language) -> String {
    let phrases = Phrases::for_languages(&[language.as_str().to_owned()]);
    let notice = Announcement::new(AnnouncementKind::Notice, ENDED_NOTE.in_language(language));
    notice.lines_in(phrases).map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::super::request::{DemoScenario, parse_request};
    use super::*;

    #[test]
    fn every_suggested_request_is_understood_in_its_language() {
        for language in Language::ALL {
            let mut scenarios = Vec::new();
            for request in &REQUESTS {
                let text = request.in_language(language);
                let parsed = parse_request(text, None);
                assert_ne!(parsed.scenario, DemoScenario::Unknown, "{text}");
                assert_eq!(parsed.language, language, "{text}");
                assert!(!scenarios.contains(&parsed.scenario), "{text} is {:?}", parsed.scenario);
                scenarios.push(parsed.scenario);
            }
        }
    }
}
