//! All that the assistant says. Nothing of it is done, and nothing here says that it was.

use super::language::{Line, Phrase, line, phrase};
use super::request::Scene;

/// Something that it asks before it does it.
pub(super) struct Question {
    pub(super) tool: &'static str,
    pub(super) arguments: &'static str,
    pub(super) irreversible: bool,
    pub(super) risk: &'static str,
    pub(super) action: Line,
    pub(super) consequence: Line,
    pub(super) ask: Phrase,
    pub(super) doing: Phrase,
    pub(super) did: Phrase,
    pub(super) done: Line,
    pub(super) refused: Line,
}

/// Seconds that a person has for an answer; more can be had.
pub(super) const TIME: &str = "120";

/// What a session says first.
pub(super) fn started(scene: Scene) -> &'static Phrase {
    match scene {
        Scene::Greeting => &STARTED,
        Scene::Balance | Scene::Failure => &STARTED_BALANCE,
        Scene::Transfer => &STARTED_TRANSFER,
        Scene::Booking => &STARTED_BOOKING,
        Scene::Mail => &STARTED_MAIL,
        Scene::Deletion => &STARTED_DELETION,
        Scene::Weather(_) => &STARTED_WEATHER,
        Scene::Explanation => &STARTED_EXPLANATION,
        Scene::NoSuchTool => &STARTED_TOOL,
        Scene::Handoff => &STARTED_HANDOFF,
        Scene::Cancellation => &STARTED_CANCELLATION,
    }
}

const STARTED: Phrase = phrase(
    ["Demonstration.", "The demonstration begins.", "The demonstration begins: a scripted answer follows."],
    ["Demostración.", "Empieza la demostración.", "Empieza la demostración: sigue una respuesta preparada."],
    ["Àfihàn.", "Àfihàn bẹ̀rẹ̀.", "Àfihàn bẹ̀rẹ̀: ìdáhùn tí a ti múra sílẹ̀ ń bọ̀."],
);
const STARTED_BALANCE: Phrase = phrase(
    [
        "Balance.",
        "Looking up the balance of the demonstration account.",
        "Looking up the balance of the demonstration account. No real bank is asked.",
    ],
    [
        "Saldo.",
        "Consultando el saldo de la cuenta de demostración.",
        "Consultando el saldo de la cuenta de demostración. No se pregunta a ningún banco real.",
    ],
    [
        "Iye owó.",
        "Mo ń wo iye owó inú àkántì àfihàn.",
        "Mo ń wo iye owó inú àkántì àfihàn. A kò béèrè lọ́wọ́ báńkì gidi kankan.",
    ],
);
const STARTED_TRANSFER: Phrase = phrase(
    [
        "Transfer.",
        "Preparing a transfer in the demonstration.",
        "Preparing a transfer in the demonstration. You are asked before it happens, and no real money moves.",
    ],
    [
        "Transferencia.",
        "Preparando una transferencia de demostración.",
        "Preparando una transferencia de demostración. Se le pregunta antes, y no se mueve dinero real.",
    ],
    [
        "Fífi owó ránṣẹ́.",
        "Mo ń múra láti fi owó ránṣẹ́ nínú àfihàn.",
        "Mo ń múra láti fi owó ránṣẹ́ nínú àfihàn. A óò bi ọ́ léèrè kí ó tó ṣẹlẹ̀, kò sì sí owó gidi tó máa kúrò.",
    ],
);
const STARTED_BOOKING: Phrase = phrase(
    [
        "Booking.",
        "Preparing a booking in the demonstration.",
        "Preparing to book a room in the demonstration. You are asked before it happens, and no real room is booked.",
    ],
    [
        "Reserva.",
        "Preparando una reserva de demostración.",
        "Preparando la reserva de una sala de demostración. Se le pregunta antes, y no se reserva ninguna sala real.",
    ],
    [
        "Gbígba yàrá.",
        "Mo ń múra láti gba yàrá sílẹ̀ nínú àfihàn.",
        "Mo ń múra láti gba yàrá sílẹ̀ nínú àfihàn. A óò bi ọ́ léèrè kí ó tó ṣẹlẹ̀, kò sì sí yàrá gidi tí a máa gbà.",
    ],
);
const STARTED_MAIL: Phrase = phrase(
    [
        "E-mail.",
        "Preparing an e-mail in the demonstration.",
        "Preparing an e-mail in the demonstration. You are asked before it is sent, and no real one is.",
    ],
    [
        "Correo.",
        "Preparando un correo de demostración.",
        "Preparando un correo de demostración. Se le pregunta antes de enviarlo, y no se envía ninguno real.",
    ],
    [
        "Ímeèlì.",
        "Mo ń múra ímeèlì sílẹ̀ nínú àfihàn.",
        "Mo ń múra ímeèlì sílẹ̀ nínú àfihàn. A óò bi ọ́ léèrè kí a tó fi ránṣẹ́, kò sì sí èyí tó jẹ́ gidi.",
    ],
);
const STARTED_DELETION: Phrase = phrase(
    [
        "Deletion.",
        "Preparing to delete a record of the demonstration.",
        "Preparing to delete a record of the demonstration. You are asked before it happens, and no real record is touched.",
    ],
    [
        "Borrado.",
        "Preparando el borrado de un registro de demostración.",
        "Preparando el borrado de un registro de demostración. Se le pregunta antes, y no se toca ningún registro real.",
    ],
    [
        "Píparẹ́.",
        "Mo ń múra láti pa àkọsílẹ̀ àfihàn kan rẹ́.",
        "Mo ń múra láti pa àkọsílẹ̀ àfihàn kan rẹ́. A óò bi ọ́ léèrè kí ó tó ṣẹlẹ̀, a kò sì ní fọwọ́ kan àkọsílẹ̀ gidi.",
    ],
);
const STARTED_WEATHER: Phrase = phrase(
    [
        "Weather.",
        "Looking at the weather in the demonstration.",
        "Looking at the weather in the demonstration. No real forecast is asked for.",
    ],
    [
        "Tiempo.",
        "Mirando el tiempo en la demostración.",
        "Mirando el tiempo en la demostración. No se consulta ninguna previsión real.",
    ],
    [
        "Ojú ọjọ́.",
        "Mo ń wo ojú ọjọ́ nínú àfihàn.",
        "Mo ń wo ojú ọjọ́ nínú àfihàn. A kò béèrè àsọtẹ́lẹ̀ ojú ọjọ́ gidi.",
    ],
);
const STARTED_EXPLANATION: Phrase = phrase(
    [
        "Explanation.",
        "Preparing an explanation.",
        "Preparing an explanation of how this demonstration asks before it acts.",
    ],
    [
        "Explicación.",
        "Preparando una explicación.",
        "Preparando una explicación de cómo esta demostración pregunta antes de actuar.",
    ],
    [
        "Àlàyé.",
        "Mo ń múra àlàyé sílẹ̀.",
        "Mo ń múra àlàyé sílẹ̀ lórí bí àfihàn yìí ṣe ń béèrè kí ó tó ṣe nǹkan.",
    ],
);
const STARTED_TOOL: Phrase = phrase(
    [
        "Looking for a tool.",
        "Looking for the tool that you named.",
        "Looking for the tool that you named among those of the demonstration.",
    ],
    [
        "Buscando una herramienta.",
        "Buscando la herramienta que ha nombrado.",
        "Buscando la herramienta que ha nombrado entre las de la demostración.",
    ],
    ["Mo ń wá irinṣẹ́.", "Mo ń wá irinṣẹ́ tí o dárúkọ.", "Mo ń wá irinṣẹ́ tí o dárúkọ láàárín àwọn ti àfihàn."],
);
const STARTED_HANDOFF: Phrase = phrase(
    [
        "Handing over.",
        "Preparing to hand over to a person.",
        "Preparing to hand over to a person. In the demonstration nobody is called.",
    ],
    [
        "Traspaso.",
        "Preparando el traspaso a una persona.",
        "Preparando el traspaso a una persona. En la demostración no se llama a nadie.",
    ],
    [
        "Mo ń fà á lé ènìyàn lọ́wọ́.",
        "Mo ń múra láti fà á lé ènìyàn lọ́wọ́.",
        "Mo ń múra láti fà á lé ènìyàn lọ́wọ́. Nínú àfihàn, a kò pe ẹnikẹ́ni.",
    ],
);
const STARTED_CANCELLATION: Phrase = phrase(
    [
        "Beginning, to cancel.",
        "Beginning something that will be cancelled.",
        "Beginning something that will be cancelled at once, as you asked.",
    ],
    [
        "Empezando, para cancelar.",
        "Empezando algo que se va a cancelar.",
        "Empezando algo que se va a cancelar enseguida, como ha pedido.",
    ],
    [
        "Mo bẹ̀rẹ̀, láti fagi lé e.",
        "Mo bẹ̀rẹ̀ ohun tí a máa fagi lé.",
        "Mo bẹ̀rẹ̀ ohun tí a máa fagi lé lẹ́sẹ̀kẹsẹ̀, bí o ṣe béèrè.",
    ],
);

pub(super) const THINKING: Phrase = phrase(
    ["Thinking.", "Thinking about it.", "Working out what to do. This is scripted, so it takes no time."],
    ["Pensando.", "Pensándolo.", "Viendo qué hacer. Está preparado, así que no tarda."],
    ["Mo ń ronú.", "Mo ń ronú nípa rẹ̀.", "Mo ń ronú ohun tí a máa ṣe. A ti múra rẹ̀ sílẹ̀, kò ní pẹ́."],
);
pub(super) const CALLING: Phrase = phrase(
    [
        "Using a tool.",
        "Using a tool of the demonstration.",
        "Using a tool of the demonstration, which touches nothing real.",
    ],
    [
        "Usando una herramienta.",
        "Usando una herramienta de la demostración.",
        "Usando una herramienta de la demostración, que no toca nada real.",
    ],
    ["Mo ń lo irinṣẹ́.", "Mo ń lo irinṣẹ́ àfihàn.", "Mo ń lo irinṣẹ́ àfihàn, tí kò fọwọ́ kan ohun gidi."],
);
pub(super) const WRITING: Phrase = phrase(
    ["Answering.", "The answer follows.", "The answer follows, and then the session ends."],
    ["Respondiendo.", "Sigue la respuesta.", "Sigue la respuesta, y después termina la sesión."],
    ["Mo ń dáhùn.", "Ìdáhùn ń bọ̀.", "Ìdáhùn ń bọ̀, lẹ́yìn náà ó parí."],
);
pub(super) const IDLE: Phrase = phrase(
    ["Ready.", "The answer is complete.", "The answer is complete, and nothing else is under way."],
    ["Listo.", "La respuesta está completa.", "La respuesta está completa, y no hay nada más en marcha."],
    ["Ó ti ṣetán.", "Ìdáhùn ti pé.", "Ìdáhùn ti pé, kò sì sí ohun mìíràn tó ń lọ."],
);
pub(super) const DONE: Phrase = phrase(
    ["Done.", "The demonstration is done.", "The demonstration is done. Ask for something else at any time."],
    [
        "Hecho.",
        "La demostración ha terminado.",
        "La demostración ha terminado. Pida otra cosa cuando quiera.",
    ],
    ["Ó parí.", "Àfihàn ti parí.", "Àfihàn ti parí. Béèrè ohun mìíràn nígbàkígbà."],
);

pub(super) const GREETING: Line = line(
    "Hello, this is a scripted demonstration that can show a balance, a transfer, a booking, an e-mail, a deletion, the weather, an explanation, a missing tool, a handoff, a failure and a cancellation.",
    "Hola, esta es una demostración preparada que puede mostrar un saldo, una transferencia, una reserva, un correo, un borrado, el tiempo, una explicación, una herramienta que falta, un traspaso, un fallo y una cancelación.",
    "Ẹ n lẹ́, àfihàn tí a ti múra sílẹ̀ nìyí; ó lè fi iye owó, fífi owó ránṣẹ́, gbígba yàrá, ímeèlì, píparẹ́, ojú ọjọ́, àlàyé àti ìkùnà hàn.",
);

pub(super) const LOOKING: Phrase = phrase(
    [
        "Looking up.",
        "Looking up the balance of the demonstration account.",
        "Looking up the balance of the demonstration account. This changes nothing.",
    ],
    [
        "Consultando.",
        "Consultando el saldo de la cuenta de demostración.",
        "Consultando el saldo de la cuenta de demostración. Esto no cambia nada.",
    ],
    [
        "Mo ń wò ó.",
        "Mo ń wo iye owó inú àkántì àfihàn.",
        "Mo ń wo iye owó inú àkántì àfihàn. Èyí kò yí ohunkóhun padà.",
    ],
);
pub(super) const LOOKING_AT_IT: Phrase = phrase(
    ["One of one.", "Step one of one.", "Step one of one: looking at the demonstration account."],
    ["Uno de uno.", "Paso uno de uno.", "Paso uno de uno: mirando la cuenta de demostración."],
    ["Ọ̀kan nínú ọ̀kan.", "Ìgbésẹ̀ kan nínú ọ̀kan.", "Ìgbésẹ̀ kan nínú ọ̀kan: mo ń wo àkántì àfihàn."],
);
pub(super) const LOOKED: Phrase = phrase(
    ["Found.", "The balance was found.", "The balance of the demonstration account was found."],
    ["Encontrado.", "Se encontró el saldo.", "Se encontró el saldo de la cuenta de demostración."],
    ["Mo rí i.", "Mo rí iye owó náà.", "Mo rí iye owó inú àkántì àfihàn."],
);
pub(super) const LOOKED_IN_VAIN: Phrase = phrase(
    [
        "Not found.",
        "The balance could not be read.",
        "The balance of the demonstration account could not be read.",
    ],
    ["No encontrado.", "No se pudo leer el saldo.", "No se pudo leer el saldo de la cuenta de demostración."],
    ["N kò rí i.", "N kò lè ka iye owó náà.", "N kò lè ka iye owó inú àkántì àfihàn."],
);
pub(super) const NO_ANSWER: Line = line(
    "The demonstration account did not answer, as you asked.",
    "La cuenta de demostración no respondió, como ha pedido.",
    "Àkántì àfihàn kò dáhùn, bí o ṣe béèrè.",
);
pub(super) const BALANCE: Line = line(
    "The demonstration account holds 1250 euros; no real bank was asked.",
    "La cuenta de demostración tiene 1250 euros; no se preguntó a ningún banco real.",
    "Yúrò 1250 ló wà nínú àkántì àfihàn; a kò béèrè lọ́wọ́ báńkì gidi kankan.",
);

pub(super) const TRANSFER: Question = Question {
    tool: "transfer_money",
    arguments: r#"{"amount":"250.00","currency":"EUR","from":"demonstration","to":"Ben"}"#,
    irreversible: true,
    risk: "high",
    action: line(
        "Transfer 250 euros from the demonstration account to Ben.",
        "Transferir 250 euros de la cuenta de demostración a Ben.",
        "Fi yúrò 250 ránṣẹ́ sí Ben láti inú àkántì àfihàn.",
    ),
    consequence: line(
        "In the demonstration the money is gone and cannot be called back. No real money moves.",
        "En la demostración el dinero se va y no se puede recuperar. No se mueve dinero real.",
        "Nínú àfihàn, owó náà ti lọ, a kò sì lè gbà á padà. Kò sí owó gidi tó kúrò.",
    ),
    ask: phrase(
        [
            "Transfer 250 euros to Ben?",
            "May I transfer 250 euros to Ben? It cannot be undone.",
            "May I transfer 250 euros from the demonstration account to Ben? It cannot be undone. Without an answer it is not done.",
        ],
        [
            "¿Transferir 250 euros a Ben?",
            "¿Puedo transferir 250 euros a Ben? No se puede deshacer.",
            "¿Puedo transferir 250 euros de la cuenta de demostración a Ben? No se puede deshacer. Sin respuesta no se hace.",
        ],
        [
            "Ṣé kí n fi yúrò 250 ránṣẹ́ sí Ben?",
            "Ṣé kí n fi yúrò 250 ránṣẹ́ sí Ben? A kò lè dá a padà.",
            "Ṣé kí n fi yúrò 250 ránṣẹ́ sí Ben láti inú àkántì àfihàn? A kò lè dá a padà. Bí o kò bá dáhùn, a kò ní ṣe é.",
        ],
    ),
    doing: phrase(
        [
            "Transferring.",
            "Transferring 250 euros to Ben.",
            "Transferring 250 euros from the demonstration account to Ben.",
        ],
        [
            "Transfiriendo.",
            "Transfiriendo 250 euros a Ben.",
            "Transfiriendo 250 euros de la cuenta de demostración a Ben.",
        ],
        [
            "Mo ń fi owó ránṣẹ́.",
            "Mo ń fi yúrò 250 ránṣẹ́ sí Ben.",
            "Mo ń fi yúrò 250 ránṣẹ́ sí Ben láti inú àkántì àfihàn.",
        ],
    ),
    did: phrase(
        ["Transferred.", "The transfer is done.", "The transfer of 250 euros is done, in the demonstration."],
        [
            "Transferido.",
            "La transferencia está hecha.",
            "La transferencia de 250 euros está hecha, en la demostración.",
        ],
        ["Owó ti lọ.", "A ti fi owó náà ránṣẹ́.", "A ti fi yúrò 250 ránṣẹ́, nínú àfihàn."],
    ),
    done: line(
        "In the demonstration 250 euros went to Ben; no real money moved.",
        "En la demostración 250 euros fueron a Ben; no se movió dinero real.",
        "Nínú àfihàn, yúrò 250 ti lọ sọ́dọ̀ Ben; kò sí owó gidi tó kúrò.",
    ),
    refused: line("Nothing was transferred.", "No se transfirió nada.", "A kò fi owó kankan ránṣẹ́."),
};

pub(super) const BOOKING: Question = Question {
    tool: "book_room",
    arguments: r#"{"room":"Garden","day":"tomorrow","at":"14:00"}"#,
    irreversible: false,
    risk: "medium",
    action: line(
        "Book the room Garden for tomorrow at two in the afternoon.",
        "Reservar la sala Garden para mañana a las dos de la tarde.",
        "Gba yàrá Garden sílẹ̀ fún ọ̀la ní aago méjì ọ̀sán.",
    ),
    consequence: line(
        "In the demonstration the room is kept for you. The booking can be taken back.",
        "En la demostración la sala queda reservada para usted. La reserva se puede anular.",
        "Nínú àfihàn, a máa pa yàrá náà mọ́ fún ọ. A lè fagi lé e.",
    ),
    ask: phrase(
        [
            "Book the room Garden?",
            "May I book the room Garden for tomorrow at two?",
            "May I book the room Garden for tomorrow at two in the afternoon? Without an answer it is not booked.",
        ],
        [
            "¿Reservar la sala Garden?",
            "¿Puedo reservar la sala Garden para mañana a las dos?",
            "¿Puedo reservar la sala Garden para mañana a las dos de la tarde? Sin respuesta no se reserva.",
        ],
        [
            "Ṣé kí n gba yàrá Garden?",
            "Ṣé kí n gba yàrá Garden sílẹ̀ fún ọ̀la ní aago méjì?",
            "Ṣé kí n gba yàrá Garden sílẹ̀ fún ọ̀la ní aago méjì ọ̀sán? Bí o kò bá dáhùn, a kò ní gbà á.",
        ],
    ),
    doing: phrase(
        [
            "Booking.",
            "Booking the room Garden.",
            "Booking the room Garden for tomorrow at two in the afternoon.",
        ],
        [
            "Reservando.",
            "Reservando la sala Garden.",
            "Reservando la sala Garden para mañana a las dos de la tarde.",
        ],
        ["Mo ń gba yàrá.", "Mo ń gba yàrá Garden.", "Mo ń gba yàrá Garden sílẹ̀ fún ọ̀la ní aago méjì ọ̀sán."],
    ),
    did: phrase(
        ["Booked.", "The room is booked.", "The room Garden is booked, in the demonstration."],
        ["Reservada.", "La sala está reservada.", "La sala Garden está reservada, en la demostración."],
        ["A ti gbà á.", "A ti gba yàrá náà.", "A ti gba yàrá Garden, nínú àfihàn."],
    ),
    done: line(
        "In the demonstration the room Garden is booked; no real room was.",
        "En la demostración la sala Garden está reservada; ninguna sala real lo fue.",
        "Nínú àfihàn, a ti gba yàrá Garden; kò sí yàrá gidi tí a gbà.",
    ),
    refused: line("No room was booked.", "No se reservó ninguna sala.", "A kò gba yàrá kankan."),
};

pub(super) const MAIL: Question = Question {
    tool: "send_mail",
    arguments: r#"{"to":"Ada","subject":"A greeting"}"#,
    irreversible: true,
    risk: "medium",
    action: line(
        "Send a short greeting by e-mail to Ada.",
        "Enviar un breve saludo por correo a Ada.",
        "Fi ìkíni kúkúrú ránṣẹ́ sí Ada nípa ímeèlì.",
    ),
    consequence: line(
        "In the demonstration Ada gets it and it cannot be called back. No real e-mail is sent.",
        "En la demostración Ada lo recibe y no se puede recuperar. No se envía ningún correo real.",
        "Nínú àfihàn, Ada máa gbà á, a kò sì lè pè é padà. A kò fi ímeèlì gidi ránṣẹ́.",
    ),
    ask: phrase(
        [
            "Send the e-mail?",
            "May I send the greeting to Ada? It cannot be called back.",
            "May I send a short greeting by e-mail to Ada? It cannot be called back. Without an answer it is not sent.",
        ],
        [
            "¿Enviar el correo?",
            "¿Puedo enviar el saludo a Ada? No se puede recuperar.",
            "¿Puedo enviar un breve saludo por correo a Ada? No se puede recuperar. Sin respuesta no se envía.",
        ],
        [
            "Ṣé kí n fi ímeèlì ránṣẹ́?",
            "Ṣé kí n fi ìkíni náà ránṣẹ́ sí Ada? A kò lè pè é padà.",
            "Ṣé kí n fi ìkíni kúkúrú ránṣẹ́ sí Ada nípa ímeèlì? A kò lè pè é padà. Bí o kò bá dáhùn, a kò ní fi ránṣẹ́.",
        ],
    ),
    doing: phrase(
        ["Sending.", "Sending the greeting.", "Sending a short greeting by e-mail to Ada."],
        ["Enviando.", "Enviando el saludo.", "Enviando un breve saludo por correo a Ada."],
        ["Mo ń fi ránṣẹ́.", "Mo ń fi ìkíni náà ránṣẹ́.", "Mo ń fi ìkíni kúkúrú ránṣẹ́ sí Ada nípa ímeèlì."],
    ),
    did: phrase(
        ["Sent.", "The greeting is sent.", "The greeting to Ada is sent, in the demonstration."],
        ["Enviado.", "El saludo está enviado.", "El saludo a Ada está enviado, en la demostración."],
        ["A ti fi ránṣẹ́.", "A ti fi ìkíni náà ránṣẹ́.", "A ti fi ìkíni náà ránṣẹ́ sí Ada, nínú àfihàn."],
    ),
    done: line(
        "In the demonstration Ada has your greeting; no real e-mail was sent.",
        "En la demostración Ada tiene su saludo; no se envió ningún correo real.",
        "Nínú àfihàn, Ada ti gba ìkíni rẹ; a kò fi ímeèlì gidi ránṣẹ́.",
    ),
    refused: line("No e-mail was sent.", "No se envió ningún correo.", "A kò fi ímeèlì kankan ránṣẹ́."),
};

pub(super) const DELETION: Question = Question {
    tool: "delete_record",
    arguments: r#"{"record":"demonstration"}"#,
    irreversible: true,
    risk: "high",
    action: line(
        "Delete the demonstration record.",
        "Borrar el registro de demostración.",
        "Pa àkọsílẹ̀ àfihàn rẹ́.",
    ),
    consequence: line(
        "In the demonstration the record is gone for ever. No real record is touched.",
        "En la demostración el registro desaparece para siempre. No se toca ningún registro real.",
        "Nínú àfihàn, àkọsílẹ̀ náà ti lọ títí láé. A kò fọwọ́ kan àkọsílẹ̀ gidi.",
    ),
    ask: phrase(
        [
            "Delete the record?",
            "May I delete the record? It is gone for ever.",
            "May I delete the demonstration record? It is gone for ever. Without an answer it stays.",
        ],
        [
            "¿Borrar el registro?",
            "¿Puedo borrar el registro? Desaparece para siempre.",
            "¿Puedo borrar el registro de demostración? Desaparece para siempre. Sin respuesta se queda.",
        ],
        [
            "Ṣé kí n pa àkọsílẹ̀ rẹ́?",
            "Ṣé kí n pa àkọsílẹ̀ náà rẹ́? Yóò lọ títí láé.",
            "Ṣé kí n pa àkọsílẹ̀ àfihàn rẹ́? Yóò lọ títí láé. Bí o kò bá dáhùn, a kò ní pa á rẹ́.",
        ],
    ),
    doing: phrase(
        ["Deleting.", "Deleting the record.", "Deleting the demonstration record."],
        ["Borrando.", "Borrando el registro.", "Borrando el registro de demostración."],
        ["Mo ń pa á rẹ́.", "Mo ń pa àkọsílẹ̀ náà rẹ́.", "Mo ń pa àkọsílẹ̀ àfihàn rẹ́."],
    ),
    did: phrase(
        ["Deleted.", "The record is deleted.", "The record is deleted, in the demonstration."],
        ["Borrado.", "El registro está borrado.", "El registro está borrado, en la demostración."],
        ["A ti pa á rẹ́.", "A ti pa àkọsílẹ̀ náà rẹ́.", "A ti pa àkọsílẹ̀ náà rẹ́, nínú àfihàn."],
    ),
    done: line(
        "In the demonstration the record is gone; no real record was touched.",
        "En la demostración el registro ha desaparecido; no se tocó ningún registro real.",
        "Nínú àfihàn, àkọsílẹ̀ náà ti lọ; a kò fọwọ́ kan àkọsílẹ̀ gidi.",
    ),
    refused: line("The record was not deleted.", "El registro no se borró.", "A kò pa àkọsílẹ̀ náà rẹ́."),
};

pub(super) const WHERE: Line = line(
    "For which place would you like the weather?",
    "¿De qué lugar quiere saber el tiempo?",
    "Ibo ni o fẹ́ mọ ojú ọjọ́ rẹ̀?",
);
pub(super) const WHERE_TO_ASK: Phrase = phrase(
    [
        "Which place?",
        "For which place would you like the weather?",
        "For which place would you like the weather? Say a town; nothing is looked up for real.",
    ],
    [
        "¿Qué lugar?",
        "¿De qué lugar quiere saber el tiempo?",
        "¿De qué lugar quiere saber el tiempo? Diga una ciudad; no se consulta nada real.",
    ],
    [
        "Ibo?",
        "Ibo ni o fẹ́ mọ ojú ọjọ́ rẹ̀?",
        "Ibo ni o fẹ́ mọ ojú ọjọ́ rẹ̀? Sọ orúkọ ìlú kan; a kò wo ohun gidi kankan.",
    ],
);
pub(super) const NOWHERE: Line = line(
    "Without a place there is no weather to tell.",
    "Sin un lugar no hay tiempo que contar.",
    "Láìsí ibì kan, kò sí ojú ọjọ́ tí mo lè sọ.",
);
pub(super) const WEATHER: Line = line(
    "The demonstration has the same weather everywhere: mild, with a little sun; no real forecast was asked for.",
    "La demostración tiene el mismo tiempo en todas partes: templado, con un poco de sol; no se consultó ninguna previsión real.",
    "Ojú ọjọ́ kan náà ni àfihàn ní níbi gbogbo: ó tutù díẹ̀, oòrùn díẹ̀ sì wà; a kò béèrè àsọtẹ́lẹ̀ gidi.",
);

pub(super) const EXPLANATION: Line = line(
    "This demonstration explains only itself. Before it does something that cannot be undone, it asks you. The hub tells the question to everybody who listens for you. Your answer is checked, written down and tied to exactly the action that you were asked about. Without an answer nothing is done.",
    "Esta demostración solo se explica a sí misma. Antes de hacer algo que no se puede deshacer, le pregunta. El centro comunica la pregunta a todos los que escuchan por usted. Su respuesta se comprueba, se anota y se une exactamente a la acción por la que se le preguntó. Sin respuesta no se hace nada.",
    "Àfihàn yìí ń ṣàlàyé ara rẹ̀ nìkan. Kí ó tó ṣe ohun tí a kò lè dá padà, ó máa bi ọ́ léèrè. A máa sọ ìbéèrè náà fún gbogbo ẹni tó ń gbọ́ fún ọ. A máa yẹ ìdáhùn rẹ wò, a sì máa kọ ọ́ sílẹ̀. Bí o kò bá dáhùn, a kò ní ṣe ohunkóhun.",
);

pub(super) const NO_SUCH_TOOL: Phrase = phrase(
    [
        "No such tool.",
        "There is no such tool, so nothing was done.",
        "There is no such tool among those of the demonstration, so nothing was called and nothing was done.",
    ],
    [
        "No existe.",
        "No existe esa herramienta, así que no se hizo nada.",
        "No existe esa herramienta entre las de la demostración, así que no se llamó a nada y no se hizo nada.",
    ],
    [
        "Kò sí irinṣẹ́ náà.",
        "Kò sí irú irinṣẹ́ bẹ́ẹ̀, nítorí náà a kò ṣe ohunkóhun.",
        "Kò sí irú irinṣẹ́ bẹ́ẹ̀ láàárín àwọn ti àfihàn, nítorí náà a kò pe ohunkóhun, a kò sì ṣe ohunkóhun.",
    ],
);
pub(super) const ASK_OTHERWISE: Line = line(
    "Ask for something else, for example the balance.",
    "Pida otra cosa, por ejemplo el saldo.",
    "Béèrè ohun mìíràn, fún àpẹẹrẹ iye owó.",
);
pub(super) const HANDING_OFF: Phrase = phrase(
    ["Handing over.", "Handing over to a person.", "Handing over to a person, as you asked."],
    ["Traspasando.", "Traspasando a una persona.", "Traspasando a una persona, como ha pedido."],
    ["Mo ń fà á lé ènìyàn lọ́wọ́.", "Mo ń fà á lé ènìyàn lọ́wọ́.", "Mo ń fà á lé ènìyàn lọ́wọ́, bí o ṣe béèrè."],
);
pub(super) const HANDOFF_REASON: Line = line(
    "You asked for a person. In this demonstration nobody is called.",
    "Ha pedido una persona. En esta demostración no se llama a nadie.",
    "O béèrè fún ènìyàn. Nínú àfihàn yìí, a kò pe ẹnikẹ́ni.",
);
pub(super) const HANDOFF: Phrase = phrase(
    [
        "A person is needed.",
        "A person is asked to take over. In the demonstration nobody is called.",
        "A person is asked to take over, because you asked for one. In the demonstration nobody is called.",
    ],
    [
        "Hace falta una persona.",
        "Se pide a una persona que siga. En la demostración no se llama a nadie.",
        "Se pide a una persona que siga, porque usted la pidió. En la demostración no se llama a nadie.",
    ],
    [
        "A nílò ènìyàn.",
        "A béèrè kí ènìyàn gbà á. Nínú àfihàn, a kò pe ẹnikẹ́ni.",
        "A béèrè kí ènìyàn gbà á, nítorí pé o béèrè. Nínú àfihàn, a kò pe ẹnikẹ́ni.",
    ],
);
pub(super) const HANDED_OFF: Phrase = phrase(
    [
        "Handed over.",
        "The demonstration ends here. Nobody was called.",
        "The demonstration ends here. With a real assistant a person would go on; nobody was called.",
    ],
    [
        "Traspasado.",
        "La demostración termina aquí. No se llamó a nadie.",
        "La demostración termina aquí. Con un asistente real seguiría una persona; no se llamó a nadie.",
    ],
    [
        "Ó parí.",
        "Àfihàn parí síbí. A kò pe ẹnikẹ́ni.",
        "Àfihàn parí síbí. Pẹ̀lú olùrànlọ́wọ́ gidi, ènìyàn ni yóò máa bá a lọ; a kò pe ẹnikẹ́ni.",
    ],
);
pub(super) const FAILED: Phrase = phrase(
    [
        "It failed.",
        "Looking up the balance failed, as you asked. Nothing was changed.",
        "Looking up the balance of the demonstration account failed, as you asked. Nothing was changed, and it may be tried again.",
    ],
    [
        "Falló.",
        "La consulta del saldo falló, como ha pedido. No se cambió nada.",
        "La consulta del saldo de la cuenta de demostración falló, como ha pedido. No se cambió nada, y se puede intentar de nuevo.",
    ],
    [
        "Ó kùnà.",
        "Wíwo iye owó kùnà, bí o ṣe béèrè. A kò yí ohunkóhun padà.",
        "Wíwo iye owó inú àkántì àfihàn kùnà, bí o ṣe béèrè. A kò yí ohunkóhun padà, a sì lè tún gbìyànjú.",
    ],
);
pub(super) const TRY_AGAIN: Line = line(
    "Ask for the balance to see the same call succeed.",
    "Pida el saldo para ver la misma llamada con éxito.",
    "Béèrè iye owó láti rí i pé ó ṣe é ṣe.",
);
pub(super) const CANCELLED: Phrase = phrase(
    [
        "Cancelled.",
        "Cancelled, as you asked. Nothing was done.",
        "What had begun was cancelled, as you asked. Nothing was done.",
    ],
    [
        "Cancelado.",
        "Cancelado, como ha pedido. No se hizo nada.",
        "Lo que había empezado se canceló, como ha pedido. No se hizo nada.",
    ],
    [
        "A ti fagi lé e.",
        "A ti fagi lé e, bí o ṣe béèrè. A kò ṣe ohunkóhun.",
        "A ti fagi lé ohun tó bẹ̀rẹ̀, bí o ṣe béèrè. A kò ṣe ohunkóhun.",
    ],
);
