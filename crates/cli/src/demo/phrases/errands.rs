//! What is asked before it is done: a transfer, a booking, an e-mail, a deletion.

use sayso::Risk;

use crate::demo::language::{Line, Phrase, line, phrase};

/// Something that it asks before it does it.
pub(in crate::demo) struct Errand {
    pub(in crate::demo) tool: &'static str,
    pub(in crate::demo) arguments: &'static str,
    pub(in crate::demo) irreversible: bool,
    pub(in crate::demo) risk: Risk,
    pub(in crate::demo) action: Line,
    pub(in crate::demo) consequence: Line,
    pub(in crate::demo) ask: Phrase,
    pub(in crate::demo) doing: Phrase,
    pub(in crate::demo) did: Phrase,
    pub(in crate::demo) done: Line,
    pub(in crate::demo) refused: Line,
}

pub(in crate::demo) const TRANSFER: Errand = Errand {
    tool: "transfer_money",
    arguments: r#"{"amount":"{exact}","currency":"EUR","from":"demonstration","to":"{whom}"}"#,
    irreversible: true,
    risk: Risk::High,
    action: line(
        "Transfer {euros} from the demonstration account to {whom}.",
        "Transferir {euros} de la cuenta de demostración a {whom}.",
        "Fi yúrò {amount} ránṣẹ́ sí {whom} láti inú àkántì àfihàn.",
    ),
    consequence: line(
        "In the demonstration the money is gone and cannot be called back. No real money moves.",
        "En la demostración el dinero se va y no se puede recuperar. No se mueve dinero real.",
        "Nínú àfihàn, owó náà ti lọ, a kò sì lè gbà á padà. Kò sí owó gidi tó kúrò.",
    ),
    ask: phrase! {
        "Transfer {euros} to {whom}?", "May I transfer {euros} to {whom}? It cannot be undone.", "May I transfer {euros} from the demonstration account to {whom}? It cannot be undone. Without an answer it is not done.";
        "¿Transferir {euros} a {whom}?", "¿Puedo transferir {euros} a {whom}? No se puede deshacer.", "¿Puedo transferir {euros} de la cuenta de demostración a {whom}? No se puede deshacer. Sin respuesta no se hace.";
        "Ṣé kí n fi yúrò {amount} ránṣẹ́ sí {whom}?", "Ṣé kí n fi yúrò {amount} ránṣẹ́ sí {whom}? A kò lè dá a padà.", "Ṣé kí n fi yúrò {amount} ránṣẹ́ sí {whom} láti inú àkántì àfihàn? A kò lè dá a padà. Bí o kò bá dáhùn, a kò ní ṣe é.";
    },
    doing: phrase! {
        "Transferring.", "Transferring {euros} to {whom}.", "Transferring {euros} from the demonstration account to {whom}.";
        "Transfiriendo.", "Transfiriendo {euros} a {whom}.", "Transfiriendo {euros} de la cuenta de demostración a {whom}.";
        "Mo ń fi owó ránṣẹ́.", "Mo ń fi yúrò {amount} ránṣẹ́ sí {whom}.", "Mo ń fi yúrò {amount} ránṣẹ́ sí {whom} láti inú àkántì àfihàn.";
    },
    did: phrase! {
        "Transferred.", "The transfer is done.", "The transfer of {euros} is done, in the demonstration.";
        "Transferido.", "La transferencia está hecha.", "La transferencia de {euros} está hecha, en la demostración.";
        "Owó ti lọ.", "A ti fi owó náà ránṣẹ́.", "A ti fi yúrò {amount} ránṣẹ́, nínú àfihàn.";
    },
    done: line(
        "In the demonstration {euros} went to {whom}; no real money moved.",
        "En la demostración {euros} fueron a {whom}; no se movió dinero real.",
        "Nínú àfihàn, yúrò {amount} ti lọ sọ́dọ̀ {whom}; kò sí owó gidi tó kúrò.",
    ),
    refused: line("Nothing was transferred.", "No se transfirió nada.", "A kò fi owó kankan ránṣẹ́."),
};

pub(in crate::demo) const BOOKING: Errand = Errand {
    tool: "book_room",
    arguments: r#"{"room":"Garden","day":"tomorrow","at":"14:00"}"#,
    irreversible: false,
    risk: Risk::Medium,
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
    ask: phrase! {
        "Book the room Garden?", "May I book the room Garden for tomorrow at two?", "May I book the room Garden for tomorrow at two in the afternoon? Without an answer it is not booked.";
        "¿Reservar la sala Garden?", "¿Puedo reservar la sala Garden para mañana a las dos?", "¿Puedo reservar la sala Garden para mañana a las dos de la tarde? Sin respuesta no se reserva.";
        "Ṣé kí n gba yàrá Garden?", "Ṣé kí n gba yàrá Garden sílẹ̀ fún ọ̀la ní aago méjì?", "Ṣé kí n gba yàrá Garden sílẹ̀ fún ọ̀la ní aago méjì ọ̀sán? Bí o kò bá dáhùn, a kò ní gbà á.";
    },
    doing: phrase! {
        "Booking.", "Booking the room Garden.", "Booking the room Garden for tomorrow at two in the afternoon.";
        "Reservando.", "Reservando la sala Garden.", "Reservando la sala Garden para mañana a las dos de la tarde.";
        "Mo ń gba yàrá.", "Mo ń gba yàrá Garden.", "Mo ń gba yàrá Garden sílẹ̀ fún ọ̀la ní aago méjì ọ̀sán.";
    },
    did: phrase! {
        "Booked.", "The room is booked.", "The room Garden is booked, in the demonstration.";
        "Reservada.", "La sala está reservada.", "La sala Garden está reservada, en la demostración.";
        "A ti gbà á.", "A ti gba yàrá náà.", "A ti gba yàrá Garden, nínú àfihàn.";
    },
    done: line(
        "In the demonstration the room Garden is booked; no real room was.",
        "En la demostración la sala Garden está reservada; ninguna sala real lo fue.",
        "Nínú àfihàn, a ti gba yàrá Garden; kò sí yàrá gidi tí a gbà.",
    ),
    refused: line("No room was booked.", "No se reservó ninguna sala.", "A kò gba yàrá kankan."),
};

pub(in crate::demo) const MAIL: Errand = Errand {
    tool: "send_mail",
    arguments: r#"{"to":"{whom}","subject":"A greeting"}"#,
    irreversible: true,
    risk: Risk::Medium,
    action: line(
        "Send a short greeting by e-mail to {whom}.",
        "Enviar un breve saludo por correo a {whom}.",
        "Fi ìkíni kúkúrú ránṣẹ́ sí {whom} nípa ímeèlì.",
    ),
    consequence: line(
        "In the demonstration {whom} gets it and it cannot be called back. No real e-mail is sent.",
        "En la demostración {whom} lo recibe y no se puede recuperar. No se envía ningún correo real.",
        "Nínú àfihàn, {whom} máa gbà á, a kò sì lè pè é padà. A kò fi ímeèlì gidi ránṣẹ́.",
    ),
    ask: phrase! {
        "Send the e-mail to {whom}?", "May I send the greeting to {whom}? It cannot be called back.", "May I send a short greeting by e-mail to {whom}? It cannot be called back. Without an answer it is not sent.";
        "¿Enviar el correo a {whom}?", "¿Puedo enviar el saludo a {whom}? No se puede recuperar.", "¿Puedo enviar un breve saludo por correo a {whom}? No se puede recuperar. Sin respuesta no se envía.";
        "Ṣé kí n fi ímeèlì ránṣẹ́ sí {whom}?", "Ṣé kí n fi ìkíni náà ránṣẹ́ sí {whom}? A kò lè pè é padà.", "Ṣé kí n fi ìkíni kúkúrú ránṣẹ́ sí {whom} nípa ímeèlì? A kò lè pè é padà. Bí o kò bá dáhùn, a kò ní fi ránṣẹ́.";
    },
    doing: phrase! {
        "Sending.", "Sending the greeting.", "Sending a short greeting by e-mail to {whom}.";
        "Enviando.", "Enviando el saludo.", "Enviando un breve saludo por correo a {whom}.";
        "Mo ń fi ránṣẹ́.", "Mo ń fi ìkíni náà ránṣẹ́.", "Mo ń fi ìkíni kúkúrú ránṣẹ́ sí {whom} nípa ímeèlì.";
    },
    did: phrase! {
        "Sent.", "The greeting is sent.", "The greeting to {whom} is sent, in the demonstration.";
        "Enviado.", "El saludo está enviado.", "El saludo a {whom} está enviado, en la demostración.";
        "A ti fi ránṣẹ́.", "A ti fi ìkíni náà ránṣẹ́.", "A ti fi ìkíni náà ránṣẹ́ sí {whom}, nínú àfihàn.";
    },
    done: line(
        "In the demonstration {whom} has your greeting; no real e-mail was sent.",
        "En la demostración {whom} tiene su saludo; no se envió ningún correo real.",
        "Nínú àfihàn, {whom} ti gba ìkíni rẹ; a kò fi ímeèlì gidi ránṣẹ́.",
    ),
    refused: line("No e-mail was sent.", "No se envió ningún correo.", "A kò fi ímeèlì kankan ránṣẹ́."),
};

pub(in crate::demo) const DELETION: Errand = Errand {
    tool: "delete_record",
    arguments: r#"{"record":"demonstration"}"#,
    irreversible: true,
    risk: Risk::High,
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
    ask: phrase! {
        "Delete the record?", "May I delete the record? It is gone for ever.", "May I delete the demonstration record? It is gone for ever. Without an answer it stays.";
        "¿Borrar el registro?", "¿Puedo borrar el registro? Desaparece para siempre.", "¿Puedo borrar el registro de demostración? Desaparece para siempre. Sin respuesta se queda.";
        "Ṣé kí n pa àkọsílẹ̀ rẹ́?", "Ṣé kí n pa àkọsílẹ̀ náà rẹ́? Yóò lọ títí láé.", "Ṣé kí n pa àkọsílẹ̀ àfihàn rẹ́? Yóò lọ títí láé. Bí o kò bá dáhùn, a kò ní pa á rẹ́.";
    },
    doing: phrase! {
        "Deleting.", "Deleting the record.", "Deleting the demonstration record.";
        "Borrando.", "Borrando el registro.", "Borrando el registro de demostración.";
        "Mo ń pa á rẹ́.", "Mo ń pa àkọsílẹ̀ náà rẹ́.", "Mo ń pa àkọsílẹ̀ àfihàn rẹ́.";
    },
    did: phrase! {
        "Deleted.", "The record is deleted.", "The record is deleted, in the demonstration.";
        "Borrado.", "El registro está borrado.", "El registro está borrado, en la demostración.";
        "A ti pa á rẹ́.", "A ti pa àkọsílẹ̀ náà rẹ́.", "A ti pa àkọsílẹ̀ náà rẹ́, nínú àfihàn.";
    },
    done: line(
        "In the demonstration the record is gone; no real record was touched.",
        "En la demostración el registro ha desaparecido; no se tocó ningún registro real.",
        "Nínú àfihàn, àkọsílẹ̀ náà ti lọ; a kò fọwọ́ kan àkọsílẹ̀ gidi.",
    ),
    refused: line("The record was not deleted.", "El registro no se borró.", "A kò pa àkọsílẹ̀ náà rẹ́."),
};
