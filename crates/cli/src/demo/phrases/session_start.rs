//! The first text of a session, which says what the session is about.

use crate::demo::language::{Phrase, phrase};
use crate::demo::request::DemoScenario;

pub(in crate::demo) fn session_start_phrase(scenario: DemoScenario) -> &'static Phrase {
    match scenario {
        DemoScenario::Greeting | DemoScenario::Unknown => &STARTED,
        DemoScenario::Balance | DemoScenario::Failure => &STARTED_BALANCE,
        DemoScenario::Transfer => &STARTED_TRANSFER,
        DemoScenario::Booking => &STARTED_BOOKING,
        DemoScenario::Mail => &STARTED_MAIL,
        DemoScenario::Deletion => &STARTED_DELETION,
        DemoScenario::Weather => &STARTED_WEATHER,
        DemoScenario::Explanation => &STARTED_EXPLANATION,
        DemoScenario::NoSuchTool => &STARTED_TOOL,
        DemoScenario::Handoff => &STARTED_HANDOFF,
        DemoScenario::Cancellation => &STARTED_CANCELLATION,
    }
}

const STARTED: Phrase = phrase! {
    "Demo.", "The demo begins.", "The demo begins with a scripted answer.";
    "Demostración.", "Empieza la demostración.", "Empieza la demostración: sigue una respuesta preparada.";
    "Àfihàn.", "Àfihàn bẹ̀rẹ̀.", "Àfihàn bẹ̀rẹ̀: ìdáhùn tí a ti múra sílẹ̀ ń bọ̀.";
};

const STARTED_BALANCE: Phrase = phrase! {
    "Balance.", "Checking the balance.", "Checking the balance of the demo account. No real bank is contacted.";
    "Saldo.", "Se va a consultar el saldo.", "Se va a consultar el saldo de la cuenta de demostración. No se contacta con ningún banco real.";
    "Iye owó.", "A máa wo iye owó náà.", "A máa wo iye owó inú àkántì àfihàn. A kò béèrè lọ́wọ́ báńkì gidi kankan.";
};

const STARTED_TRANSFER: Phrase = phrase! {
    "Transfer.", "Preparing a demo transfer.", "Preparing a demo transfer. You will be asked first, and no real money moves.";
    "Transferencia.", "Preparando una transferencia de demostración.", "Preparando una transferencia de demostración. Se le pregunta antes, y no se mueve dinero real.";
    "Fífi owó ránṣẹ́.", "Mo ń múra láti fi owó ránṣẹ́ nínú àfihàn.", "Mo ń múra láti fi owó ránṣẹ́ nínú àfihàn. A óò bi ọ́ léèrè kí ó tó ṣẹlẹ̀, kò sì sí owó gidi tó máa kúrò.";
};

const STARTED_BOOKING: Phrase = phrase! {
    "Booking.", "Preparing a demo booking.", "Preparing to book a demo room. You will be asked first, and no real room is booked.";
    "Reserva.", "Preparando una reserva de demostración.", "Preparando la reserva de una sala de demostración. Se le pregunta antes, y no se reserva ninguna sala real.";
    "Gbígba yàrá.", "Mo ń múra láti gba yàrá sílẹ̀ nínú àfihàn.", "Mo ń múra láti gba yàrá sílẹ̀ nínú àfihàn. A óò bi ọ́ léèrè kí ó tó ṣẹlẹ̀, kò sì sí yàrá gidi tí a máa gbà.";
};

const STARTED_MAIL: Phrase = phrase! {
    "E-mail.", "Preparing a demo e-mail.", "Preparing a demo e-mail. You will be asked first, and no real e-mail is sent.";
    "Correo.", "Preparando un correo de demostración.", "Preparando un correo de demostración. Se le pregunta antes de enviarlo, y no se envía ninguno real.";
    "Ímeèlì.", "Mo ń múra ímeèlì sílẹ̀ nínú àfihàn.", "Mo ń múra ímeèlì sílẹ̀ nínú àfihàn. A óò bi ọ́ léèrè kí a tó fi ránṣẹ́, kò sì sí èyí tó jẹ́ gidi.";
};

const STARTED_DELETION: Phrase = phrase! {
    "Deletion.", "Preparing to delete a demo record.", "Preparing to delete a demo record. You will be asked first, and no real record is touched.";
    "Borrado.", "Preparando el borrado de un registro de demostración.", "Preparando el borrado de un registro de demostración. Se le pregunta antes, y no se toca ningún registro real.";
    "Píparẹ́.", "Mo ń múra láti pa àkọsílẹ̀ àfihàn kan rẹ́.", "Mo ń múra láti pa àkọsílẹ̀ àfihàn kan rẹ́. A óò bi ọ́ léèrè kí ó tó ṣẹlẹ̀, a kò sì ní fọwọ́ kan àkọsílẹ̀ gidi.";
};

const STARTED_WEATHER: Phrase = phrase! {
    "Weather.", "Looking up the demo weather.", "Looking up the demo weather. No real forecast is used.";
    "Tiempo.", "Mirando el tiempo en la demostración.", "Mirando el tiempo en la demostración. No se consulta ninguna previsión real.";
    "Ojú ọjọ́.", "Mo ń wo ojú ọjọ́ nínú àfihàn.", "Mo ń wo ojú ọjọ́ nínú àfihàn. A kò béèrè àsọtẹ́lẹ̀ ojú ọjọ́ gidi.";
};

const STARTED_EXPLANATION: Phrase = phrase! {
    "Explanation.", "Preparing an explanation.", "Preparing an explanation of how this demo asks before it acts.";
    "Explicación.", "Preparando una explicación.", "Preparando una explicación de cómo esta demostración pregunta antes de actuar.";
    "Àlàyé.", "Mo ń múra àlàyé sílẹ̀.", "Mo ń múra àlàyé sílẹ̀ lórí bí àfihàn yìí ṣe ń béèrè kí ó tó ṣe nǹkan.";
};

const STARTED_TOOL: Phrase = phrase! {
    "Looking for a tool.", "Looking for the tool you named.", "Looking for the tool you named among the demo tools.";
    "Buscando una herramienta.", "Buscando la herramienta que ha nombrado.", "Buscando la herramienta que ha nombrado entre las de la demostración.";
    "Mo ń wá irinṣẹ́.", "Mo ń wá irinṣẹ́ tí o dárúkọ.", "Mo ń wá irinṣẹ́ tí o dárúkọ láàárín àwọn ti àfihàn.";
};

const STARTED_HANDOFF: Phrase = phrase! {
    "Handing over.", "Preparing to hand over to a person.", "Preparing to hand over to a person. In the demo, nobody is called.";
    "Traspaso.", "Preparando el traspaso a una persona.", "Preparando el traspaso a una persona. En la demostración no se llama a nadie.";
    "Mo ń fà á lé ènìyàn lọ́wọ́.", "Mo ń múra láti fà á lé ènìyàn lọ́wọ́.", "Mo ń múra láti fà á lé ènìyàn lọ́wọ́. Nínú àfihàn, a kò pe ẹnikẹ́ni.";
};

const STARTED_CANCELLATION: Phrase = phrase! {
    "Starting a task in order to cancel it.", "Starting a task that will be cancelled.", "Starting a task that will be cancelled immediately, as you asked.";
    "Empezando una tarea para cancelarla.", "Empezando una tarea que se va a cancelar.", "Empezando una tarea que se va a cancelar enseguida, como ha pedido.";
    "Mo bẹ̀rẹ̀ iṣẹ́ kan láti fagi lé e.", "Mo bẹ̀rẹ̀ iṣẹ́ tí a máa fagi lé.", "Mo bẹ̀rẹ̀ iṣẹ́ tí a máa fagi lé lẹ́sẹ̀kẹsẹ̀, bí o ṣe béèrè.";
};
