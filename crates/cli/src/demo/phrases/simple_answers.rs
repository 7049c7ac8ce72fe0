//! Answers that need no tool: a greeting, the possible requests, an explanation.

use crate::demo::language::{Phrase, TranslatedText, phrase, translated};

/// The answer to a request that was not understood. It is one sentence, because AAEP's published test suite reads only the
/// first sentence.
pub(in crate::demo) const UNKNOWN_REQUEST_ANSWER: TranslatedText = translated(
    "I do not know how to do that, so I did nothing; you can ask me to show your balance, send 20 euros to Ben, book a room, send an e-mail to Ada, delete a record, tell you the weather, explain something, use a tool that does not exist, hand over to a human, fail, or cancel.",
    "No sé hacer eso, así que no hice nada; puede pedirme que muestre su saldo, transfiera 20 euros a Ben, reserve una sala, envíe un correo a Ada, borre un registro, diga el tiempo, explique algo, use una herramienta que no existe, le pase con una persona, falle o cancele.",
    "N kò mọ bí a ṣe ń ṣe ìyẹn, nítorí náà n kò ṣe ohunkóhun; o lè ní kí n fi iye owó hàn, kí n fi owó ránṣẹ́ sí Ben, kí n gba yàrá, kí n fi ímeèlì ránṣẹ́ sí Ada, kí n pa àkọsílẹ̀ rẹ́, kí n sọ ojú ọjọ́, kí n ṣàlàyé, kí n lo irinṣẹ́ tí kò sí, kí n fà ọ́ lé ènìyàn lọ́wọ́, kí n kùnà, tàbí kí n fagi lé e.",
);
pub(in crate::demo) const UNKNOWN_REQUEST_SUMMARY: Phrase = phrase! {
    "Not understood.", "The request was not understood. Nothing was done.", "The request was not understood, so nothing was done. The answer says what can be asked for.";
    "No entendido.", "No se entendió la petición. No se hizo nada.", "No se entendió la petición, así que no se hizo nada. La respuesta dice qué se puede pedir.";
    "Kò yé mi.", "Ìbéèrè náà kò yé mi. A kò ṣe ohunkóhun.", "Ìbéèrè náà kò yé mi, nítorí náà a kò ṣe ohunkóhun. Ìdáhùn sọ ohun tí o lè béèrè.";
};

pub(in crate::demo) const GREETING: TranslatedText = translated(
    "Hello, this is a scripted demo that can show a balance, a transfer, a booking, an e-mail, a deletion, the weather, an explanation, a missing tool, a hand-off, a failure and a cancellation.",
    "Hola, esta es una demostración preparada que puede mostrar un saldo, una transferencia, una reserva, un correo, un borrado, el tiempo, una explicación, una herramienta que falta, un traspaso, un fallo y una cancelación.",
    "Ẹ n lẹ́, àfihàn tí a ti múra sílẹ̀ nìyí; ó lè fi iye owó, fífi owó ránṣẹ́, gbígba yàrá, ímeèlì, píparẹ́, ojú ọjọ́, àlàyé, irinṣẹ́ tí kò sí, fífà lé ènìyàn lọ́wọ́, ìkùnà àti fífagi lé nǹkan hàn.",
);

pub(in crate::demo) const EXPLANATION: TranslatedText = translated(
    "This demo only explains itself. Before it does something that cannot be undone, it asks you. The hub sends the question to everyone who listens on your behalf. Your answer is checked, stored and tied to exactly the action you were asked about. Without an answer, nothing is done.",
    "Esta demostración solo se explica a sí misma. Antes de hacer algo que no se puede deshacer, le pregunta. El centro comunica la pregunta a todos los que escuchan en su nombre. Su respuesta se comprueba, se anota y se une exactamente a la acción por la que se le preguntó. Sin respuesta no se hace nada.",
    "Àfihàn yìí ń ṣàlàyé ara rẹ̀ nìkan. Kí ó tó ṣe ohun tí a kò lè dá padà, ó máa bi ọ́ léèrè. A máa sọ ìbéèrè náà fún gbogbo ẹni tó ń gbọ́ ní orúkọ rẹ. A máa yẹ ìdáhùn rẹ wò, a sì máa kọ ọ́ sílẹ̀. Bí o kò bá dáhùn, a kò ní ṣe ohunkóhun.",
);
