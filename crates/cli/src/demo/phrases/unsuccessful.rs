//! Unsuccessful endings: a missing tool, a hand-off to a person, a cancellation.

use crate::demo::language::{Phrase, TranslatedText, phrase, translated};

pub(in crate::demo) const NO_SUCH_TOOL: Phrase = phrase! {
    "No such tool.", "There is no such tool, so nothing was done.", "There is no such tool in the demo, so nothing was called and nothing was done.";
    "No existe.", "No existe esa herramienta, así que no se hizo nada.", "No existe esa herramienta entre las de la demostración, así que no se llamó a nada y no se hizo nada.";
    "Kò sí irinṣẹ́ náà.", "Kò sí irú irinṣẹ́ bẹ́ẹ̀, nítorí náà a kò ṣe ohunkóhun.", "Kò sí irú irinṣẹ́ bẹ́ẹ̀ láàárín àwọn ti àfihàn, nítorí náà a kò pe ohunkóhun, a kò sì ṣe ohunkóhun.";
};

pub(in crate::demo) const ASK_FOR_SOMETHING_ELSE: TranslatedText = translated(
    "Ask for something else, for example the balance.",
    "Pida otra cosa, por ejemplo el saldo.",
    "Béèrè ohun mìíràn, fún àpẹẹrẹ iye owó.",
);

pub(in crate::demo) const HANDING_OFF: Phrase = phrase! {
    "Handing over.", "Handing over to a person.", "Handing over to a person, as you asked.";
    "Traspasando.", "Traspasando a una persona.", "Traspasando a una persona, como ha pedido.";
    "Mo ń fà á lé ènìyàn lọ́wọ́.", "Mo ń fà á lé ènìyàn lọ́wọ́.", "Mo ń fà á lé ènìyàn lọ́wọ́, bí o ṣe béèrè.";
};

pub(in crate::demo) const HANDOFF_REASON: TranslatedText =
    translated("You asked for a person.", "Ha pedido una persona.", "O béèrè fún ènìyàn.");

pub(in crate::demo) const HANDOFF: Phrase = phrase! {
    "A person is needed.", "A person is needed. In the demo, nobody is called.", "A person is asked to take over from the assistant. In the demo, nobody is called.";
    "Hace falta una persona.", "Hace falta una persona. En la demostración no se llama a nadie.", "Se pide a una persona que siga en lugar del asistente. En la demostración no se llama a nadie.";
    "A nílò ènìyàn.", "A nílò ènìyàn. Nínú àfihàn, a kò pe ẹnikẹ́ni.", "A béèrè kí ènìyàn gbà á lọ́wọ́ olùrànlọ́wọ́. Nínú àfihàn, a kò pe ẹnikẹ́ni.";
};

pub(in crate::demo) const HANDED_OFF: Phrase = phrase! {
    "Handed over.", "The demo ends here.", "The demo ends here. With a real assistant, a person would continue.";
    "Traspasado.", "La demostración termina aquí.", "La demostración termina aquí. Con un asistente real seguiría una persona.";
    "Ó parí.", "Àfihàn parí síbí.", "Àfihàn parí síbí. Pẹ̀lú olùrànlọ́wọ́ gidi, ènìyàn ni yóò máa bá a lọ.";
};

pub(in crate::demo) const CANCELLED: Phrase = phrase! {
    "Cancelled.", "Cancelled, as you asked. Nothing was done.", "The task was cancelled before it finished, as you asked. Nothing was done.";
    "Cancelado.", "Cancelado, como ha pedido. No se hizo nada.", "La tarea se canceló antes de terminar, como ha pedido. No se hizo nada.";
    "A ti fagi lé e.", "A ti fagi lé e, bí o ṣe béèrè. A kò ṣe ohunkóhun.", "A ti fagi lé iṣẹ́ náà kí ó tó parí, bí o ṣe béèrè. A kò ṣe ohunkóhun.";
};
