//! Actions that need consent: a transfer, a booking, an e-mail, a deletion.

use sayso::Risk;

use crate::demo::language::{Phrase, TranslatedText, phrase, translated};

/// An action that needs consent.
pub(in crate::demo) struct ConfirmedAction {
    pub(in crate::demo) tool: &'static str,
    pub(in crate::demo) arguments: &'static str,
    pub(in crate::demo) is_irreversible: bool,
    pub(in crate::demo) risk: Risk,
    pub(in crate::demo) action: TranslatedText,
    pub(in crate::demo) consequence: TranslatedText,
    pub(in crate::demo) question: Phrase,
    pub(in crate::demo) tool_invoked: Phrase,
    pub(in crate::demo) tool_completed: Phrase,
    pub(in crate::demo) answer: TranslatedText,
    pub(in crate::demo) refused_answer: TranslatedText,
}

pub(in crate::demo) const TRANSFER: ConfirmedAction = ConfirmedAction {
    tool: "transfer",
    arguments: r#"{"euros":"{amount}","to":"{recipient}"}"#,
    is_irreversible: true,
    risk: Risk::High,
    action: translated(
        "Transfer {euros} to {recipient}.",
        "Transferir {euros} a {recipient}.",
        "Fi yúrò {amount} ránṣẹ́ sí {recipient}.",
    ),
    consequence: translated(
        "The money leaves the account at once.",
        "El dinero sale enseguida.",
        "Owó náà máa kúrò nínú àkántì lẹ́sẹ̀kẹsẹ̀.",
    ),
    question: phrase! {
        "Transfer {euros} to {recipient}?", "May I transfer {euros} to {recipient}? It cannot be undone.", "May I transfer {euros} from the demo account to {recipient}? It cannot be undone.";
        "¿Transferir {euros} a {recipient}?", "¿Puedo transferir {euros} a {recipient}? No se puede deshacer.", "¿Puedo transferir {euros} de la cuenta de demostración a {recipient}? No se puede deshacer.";
        "Ṣé kí n fi yúrò {amount} ránṣẹ́ sí {recipient}?", "Ṣé kí n fi yúrò {amount} ránṣẹ́ sí {recipient}? A kò lè dá a padà.", "Ṣé kí n fi yúrò {amount} ránṣẹ́ sí {recipient} láti inú àkántì àfihàn? A kò lè dá a padà.";
    },
    tool_invoked: phrase! {
        "Transferring.", "Transferring {euros} to {recipient}.", "Transferring {euros} from the demo account to {recipient}.";
        "Transfiriendo.", "Transfiriendo {euros} a {recipient}.", "Transfiriendo {euros} de la cuenta de demostración a {recipient}.";
        "Mo ń fi owó ránṣẹ́.", "Mo ń fi yúrò {amount} ránṣẹ́ sí {recipient}.", "Mo ń fi yúrò {amount} ránṣẹ́ sí {recipient} láti inú àkántì àfihàn.";
    },
    tool_completed: phrase! {
        "Transferred.", "The transfer is complete.", "The transfer of {euros} is complete, in the demo.";
        "Transferido.", "La transferencia está hecha.", "La transferencia de {euros} está hecha, en la demostración.";
        "Owó ti lọ.", "A ti fi owó náà ránṣẹ́.", "A ti fi yúrò {amount} ránṣẹ́, nínú àfihàn.";
    },
    answer: translated(
        "In the demo, {euros} went to {recipient}; no real money moved.",
        "En la demostración {euros} fueron a {recipient}; no se movió dinero real.",
        "Nínú àfihàn, yúrò {amount} ti lọ sọ́dọ̀ {recipient}; kò sí owó gidi tó kúrò.",
    ),
    refused_answer: translated(
        "Nothing was transferred.",
        "No se transfirió nada.",
        "A kò fi owó kankan ránṣẹ́.",
    ),
};

pub(in crate::demo) const BOOKING: ConfirmedAction = ConfirmedAction {
    tool: "book_room",
    arguments: r#"{"room":"Garden","day":"tomorrow","at":"14:00"}"#,
    is_irreversible: false,
    risk: Risk::Medium,
    action: translated(
        "Book the Garden room for tomorrow at two.",
        "Reservar la sala Garden para mañana a las dos.",
        "Gba yàrá Garden sílẹ̀ fún ọ̀la ní aago méjì ọ̀sán.",
    ),
    consequence: translated(
        "The room is reserved for you.",
        "La sala queda reservada para usted.",
        "A máa pa yàrá náà mọ́ fún ọ.",
    ),
    question: phrase! {
        "Book the Garden room?", "May I book the Garden room for tomorrow at two?", "May I book the Garden room for tomorrow at two in the afternoon?";
        "¿Reservar la sala Garden?", "¿Puedo reservar la sala Garden para mañana a las dos?", "¿Puedo reservar la sala Garden para mañana a las dos de la tarde?";
        "Ṣé kí n gba yàrá Garden?", "Ṣé kí n gba yàrá Garden sílẹ̀ fún ọ̀la ní aago méjì?", "Ṣé kí n gba yàrá Garden sílẹ̀ fún ọ̀la ní aago méjì ọ̀sán?";
    },
    tool_invoked: phrase! {
        "Booking.", "Booking the Garden room.", "Booking the Garden room for tomorrow at two in the afternoon.";
        "Reservando.", "Reservando la sala Garden.", "Reservando la sala Garden para mañana a las dos de la tarde.";
        "Mo ń gba yàrá.", "Mo ń gba yàrá Garden.", "Mo ń gba yàrá Garden sílẹ̀ fún ọ̀la ní aago méjì ọ̀sán.";
    },
    tool_completed: phrase! {
        "Booked.", "The room is booked.", "The Garden room is booked, in the demo.";
        "Reservada.", "La sala está reservada.", "La sala Garden está reservada, en la demostración.";
        "A ti gbà á.", "A ti gba yàrá náà.", "A ti gba yàrá Garden, nínú àfihàn.";
    },
    answer: translated(
        "In the demo, the Garden room is booked; no real room was booked.",
        "En la demostración la sala Garden está reservada; ninguna sala real lo fue.",
        "Nínú àfihàn, a ti gba yàrá Garden; kò sí yàrá gidi tí a gbà.",
    ),
    refused_answer: translated("No room was booked.", "No se reservó ninguna sala.", "A kò gba yàrá kankan."),
};

pub(in crate::demo) const MAIL: ConfirmedAction = ConfirmedAction {
    tool: "send_mail",
    arguments: r#"{"to":"{recipient}","subject":"A greeting"}"#,
    is_irreversible: true,
    risk: Risk::Medium,
    action: translated(
        "Send a short greeting by e-mail to {recipient}.",
        "Enviar un breve saludo por correo a {recipient}.",
        "Fi ìkíni kúkúrú ránṣẹ́ sí {recipient} nípa ímeèlì.",
    ),
    consequence: translated(
        "{recipient} gets it at once.",
        "{recipient} lo recibe enseguida.",
        "{recipient} máa gbà á lẹ́sẹ̀kẹsẹ̀.",
    ),
    question: phrase! {
        "Send the e-mail to {recipient}?", "May I send the greeting to {recipient}? It cannot be undone.", "May I send a short greeting by e-mail to {recipient}? It cannot be undone.";
        "¿Enviar el correo a {recipient}?", "¿Puedo enviar el saludo a {recipient}? No se puede deshacer.", "¿Puedo enviar un breve saludo por correo a {recipient}? No se puede deshacer.";
        "Ṣé kí n fi ímeèlì ránṣẹ́ sí {recipient}?", "Ṣé kí n fi ìkíni náà ránṣẹ́ sí {recipient}? A kò lè dá a padà.", "Ṣé kí n fi ìkíni kúkúrú ránṣẹ́ sí {recipient} nípa ímeèlì? A kò lè dá a padà.";
    },
    tool_invoked: phrase! {
        "Sending.", "Sending the greeting.", "Sending a short greeting by e-mail to {recipient}.";
        "Enviando.", "Enviando el saludo.", "Enviando un breve saludo por correo a {recipient}.";
        "Mo ń fi ránṣẹ́.", "Mo ń fi ìkíni náà ránṣẹ́.", "Mo ń fi ìkíni kúkúrú ránṣẹ́ sí {recipient} nípa ímeèlì.";
    },
    tool_completed: phrase! {
        "Sent.", "The greeting was sent.", "The greeting to {recipient} was sent, in the demo.";
        "Enviado.", "El saludo está enviado.", "El saludo a {recipient} está enviado, en la demostración.";
        "A ti fi ránṣẹ́.", "A ti fi ìkíni náà ránṣẹ́.", "A ti fi ìkíni náà ránṣẹ́ sí {recipient}, nínú àfihàn.";
    },
    answer: translated(
        "In the demo, {recipient} has your greeting; no real e-mail was sent.",
        "En la demostración {recipient} tiene su saludo; no se envió ningún correo real.",
        "Nínú àfihàn, {recipient} ti gba ìkíni rẹ; a kò fi ímeèlì gidi ránṣẹ́.",
    ),
    refused_answer: translated(
        "No e-mail was sent.",
        "No se envió ningún correo.",
        "A kò fi ímeèlì kankan ránṣẹ́.",
    ),
};

pub(in crate::demo) const DELETION: ConfirmedAction = ConfirmedAction {
    tool: "delete_record",
    arguments: r#"{"record":"demonstration"}"#,
    is_irreversible: true,
    risk: Risk::High,
    action: translated(
        "Delete the demo record.",
        "Borrar el registro de demostración.",
        "Pa àkọsílẹ̀ àfihàn rẹ́.",
    ),
    consequence: translated(
        "The record is gone forever.",
        "El registro desaparece para siempre.",
        "Àkọsílẹ̀ náà máa lọ títí láé.",
    ),
    question: phrase! {
        "Delete the record?", "May I delete the record? It cannot be undone.", "May I delete the demo record? It cannot be undone.";
        "¿Borrar el registro?", "¿Puedo borrar el registro? No se puede deshacer.", "¿Puedo borrar el registro de demostración? No se puede deshacer.";
        "Ṣé kí n pa àkọsílẹ̀ rẹ́?", "Ṣé kí n pa àkọsílẹ̀ náà rẹ́? A kò lè dá a padà.", "Ṣé kí n pa àkọsílẹ̀ àfihàn rẹ́? A kò lè dá a padà.";
    },
    tool_invoked: phrase! {
        "Deleting.", "Deleting the record.", "Deleting the demo record.";
        "Borrando.", "Borrando el registro.", "Borrando el registro de demostración.";
        "Mo ń pa á rẹ́.", "Mo ń pa àkọsílẹ̀ náà rẹ́.", "Mo ń pa àkọsílẹ̀ àfihàn rẹ́.";
    },
    tool_completed: phrase! {
        "Deleted.", "The record was deleted.", "The record was deleted, in the demo.";
        "Borrado.", "El registro está borrado.", "El registro está borrado, en la demostración.";
        "A ti pa á rẹ́.", "A ti pa àkọsílẹ̀ náà rẹ́.", "A ti pa àkọsílẹ̀ náà rẹ́, nínú àfihàn.";
    },
    answer: translated(
        "In the demo, the record is gone; no real record was touched.",
        "En la demostración el registro ha desaparecido; no se tocó ningún registro real.",
        "Nínú àfihàn, àkọsílẹ̀ náà ti lọ; a kò fọwọ́ kan àkọsílẹ̀ gidi.",
    ),
    refused_answer: translated(
        "The record was not deleted.",
        "El registro no se borró.",
        "A kò pa àkọsílẹ̀ náà rẹ́.",
    ),
};
