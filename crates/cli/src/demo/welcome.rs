//! What `sayso demo` says first.

use super::language::{Language, Line, line};

const WHAT: Line = line(
    "This is the demonstration of sayso. A scripted assistant for a bank and a household tells you what it does, and asks before it does what matters. Nothing is real: no money moves, nothing is sent, nothing is deleted.",
    "Esta es la demostración de sayso. Un asistente preparado, de banco y de casa, le dice lo que hace y pregunta antes de lo que importa. Nada es real: no se mueve dinero, no se envía nada, no se borra nada.",
    "Àfihàn sayso nìyí. Olùrànlọ́wọ́ tí a ti múra sílẹ̀, fún báńkì àti ilé, ń sọ ohun tó ń ṣe fún ọ, ó sì ń béèrè kí ó tó ṣe ohun tó ṣe pàtàkì. Kò sí ohun tó jẹ́ gidi: kò sí owó tó kúrò, a kò fi ohunkóhun ránṣẹ́, a kò sì pa ohunkóhun rẹ́.",
);
const ASK: Line = line(
    "Type what you want, then Enter. You can ask for these:",
    "Escriba lo que quiere y pulse Enter. Puede pedir esto:",
    "Tẹ ohun tí o fẹ́, lẹ́yìn náà tẹ Enter. O lè béèrè fún ìwọ̀nyí:",
);
const REQUESTS: [Line; 11] = [
    line("what's my balance?", "¿cuál es mi saldo?", "iye owó mi"),
    line("send 20 euro to Ben", "transfiere 20 euros a Ben", "fi yúrò 20 ránṣẹ́ sí Ben"),
    line("book a room", "reserva una sala", "gba yàrá"),
    line("send an e-mail to Ada", "envía un correo a Ada", "fi ímeèlì ránṣẹ́ sí Ada"),
    line("delete a record", "borra un registro", "pa àkọsílẹ̀ rẹ́"),
    line("how is the weather?", "¿qué tiempo hace?", "báwo ni ojú ọjọ́?"),
    line("explain it at length", "explícame todo", "ṣàlàyé fún mi"),
    line("use a tool that does not exist", "usa una herramienta que no existe", "lo irinṣẹ́ tí kò sí"),
    line("escalate to a human", "quiero hablar con una persona", "mo fẹ́ ènìyàn"),
    line("fail", "falla, por favor", "kùnà"),
    line("cancel", "cancela algo, por favor", "fagi lé e"),
];
const ANSWER: Line = line(
    "When it asks, type yes or no; no answer means no. Type repeat to hear the question again, more time to get more time, stop to stop the assistant, help for the rest, quit to end.",
    "Cuando pregunte, escriba sí o no; sin respuesta es no. Escriba repetir para oír otra vez la pregunta, más tiempo para tener más tiempo, parar para parar al asistente, ayuda para lo demás, salir para terminar.",
    "Bí ó bá béèrè, tẹ bẹ́ẹ̀ni tàbí bẹ́ẹ̀kọ́; bí o kò bá dáhùn, bẹ́ẹ̀kọ́ ni. Tẹ tún sọ láti tún gbọ́ ìbéèrè náà, àkókò sí i fún àkókò sí i, dúró láti dá olùrànlọ́wọ́ dúró, ìrànlọ́wọ́ fún ìyókù, jáde láti parí.",
);
const ACCEPTS: Line = line(
    "Questions are answered without you: yes to each.",
    "Las preguntas se responden sin usted: sí a cada una.",
    "A ń dáhùn àwọn ìbéèrè láìsí ọ: bẹ́ẹ̀ni sí ọ̀kọ̀ọ̀kan.",
);
const REJECTS: Line = line(
    "Questions are answered without you: no to each.",
    "Las preguntas se responden sin usted: no a cada una.",
    "A ń dáhùn àwọn ìbéèrè láìsí ọ: bẹ́ẹ̀kọ́ sí ọ̀kọ̀ọ̀kan.",
);
const SILENT: Line = line(
    "Questions are not answered: each runs out of time after a few seconds, and that means no.",
    "Las preguntas no se responden: cada una vence a los pocos segundos, y eso es no.",
    "A kò dáhùn àwọn ìbéèrè: àkókò ọ̀kọ̀ọ̀kan máa ń parí lẹ́yìn ìṣẹ́jú àáyá díẹ̀, bẹ́ẹ̀kọ́ ni ìyẹn.",
);
const WHERE: Line = line(
    "Others on this machine can listen and answer in a browser at",
    "Otros en esta máquina pueden escuchar y responder con un navegador en",
    "Àwọn mìíràn lórí ẹ̀rọ yìí lè gbọ́ kí wọ́n sì dáhùn ní",
);

const END: Line = line("The demonstration has ended.", "La demostración ha terminado.", "Àfihàn ti parí.");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    Person,
    Accept,
    Reject,
    None,
}

/// What this does and how to answer, in lines. Whoever has asked already is not told what to ask for.
pub(super) fn text(language: Language, answers: Answers, once: bool, url: &str) -> String {
    let mut lines = vec![WHAT.to(language).to_owned()];
    if !once {
        lines.push(ASK.to(language).to_owned());
        lines.extend(REQUESTS.iter().map(|request| format!("  {}", request.to(language))));
    }
    let how = match answers {
        Answers::Person => &ANSWER,
        Answers::Accept => &ACCEPTS,
        Answers::Reject => &REJECTS,
        Answers::None => &SILENT,
    };
    lines.push(how.to(language).to_owned());
    lines.push(format!("{} {url}", WHERE.to(language)));
    lines.push(String::new());
    lines.join("\n")
}

pub(super) fn end(language: Language) -> String {
    format!("notice: {}\n", END.to(language))
}

#[cfg(test)]
mod tests {
    use super::super::request::{Scene, read};
    use super::*;

    #[test]
    fn what_it_says_can_be_asked_for_is_understood_in_that_language() {
        for language in Language::ALL {
            let mut scenes = Vec::new();
            for request in &REQUESTS {
                let text = request.to(language);
                let understood = read(text, None);
                assert_ne!(understood.scene, Scene::Unknown, "{text}");
                assert_eq!(understood.language, language, "{text}");
                assert!(!scenes.contains(&understood.scene), "{text} is {:?}", understood.scene);
                scenes.push(understood.scene);
            }
        }
    }
}
