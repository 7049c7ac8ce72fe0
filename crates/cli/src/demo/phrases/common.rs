//! What every scene may say: what the assistant is at, and that it is done.

use crate::demo::language::{Phrase, phrase};

pub(in crate::demo) const THINKING: Phrase = phrase! {
    "Thinking.", "Thinking about it.", "Working out what to do. This is scripted, so it takes no time.";
    "Pensando.", "Pensándolo.", "Viendo qué hacer. Está preparado, así que no tarda.";
    "Mo ń ronú.", "Mo ń ronú nípa rẹ̀.", "Mo ń ronú ohun tí a máa ṣe. A ti múra rẹ̀ sílẹ̀, kò ní pẹ́.";
};

pub(in crate::demo) const CALLING: Phrase = phrase! {
    "Using a tool.", "Using a tool of the demonstration.", "Using a tool of the demonstration, which touches nothing real.";
    "Usando una herramienta.", "Usando una herramienta de la demostración.", "Usando una herramienta de la demostración, que no toca nada real.";
    "Mo ń lo irinṣẹ́.", "Mo ń lo irinṣẹ́ àfihàn.", "Mo ń lo irinṣẹ́ àfihàn, tí kò fọwọ́ kan ohun gidi.";
};

pub(in crate::demo) const WRITING: Phrase = phrase! {
    "Answering.", "The answer follows.", "The answer follows, and then the session ends.";
    "Respondiendo.", "Sigue la respuesta.", "Sigue la respuesta, y después termina la sesión.";
    "Mo ń dáhùn.", "Ìdáhùn ń bọ̀.", "Ìdáhùn ń bọ̀, lẹ́yìn náà ó parí.";
};

pub(in crate::demo) const IDLE: Phrase = phrase! {
    "Ready.", "The answer is complete.", "The answer is complete, and nothing else is under way.";
    "Listo.", "La respuesta está completa.", "La respuesta está completa, y no hay nada más en marcha.";
    "Ó ti ṣetán.", "Ìdáhùn ti pé.", "Ìdáhùn ti pé, kò sì sí ohun mìíràn tó ń lọ.";
};

pub(in crate::demo) const DONE: Phrase = phrase! {
    "Done.", "That was all.", "That was all. Ask for something else at any time.";
    "Hecho.", "Eso es todo.", "Eso es todo. Pida otra cosa cuando quiera.";
    "Ó parí.", "Ó tán.", "Ó tán. Béèrè ohun mìíràn nígbàkígbà.";
};
