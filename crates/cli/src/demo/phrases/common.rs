//! Texts that every scenario may use: the agent's states, and the end of the session.

use crate::demo::language::{Phrase, phrase};

pub(in crate::demo) const THINKING: Phrase = phrase! {
    "Thinking.", "Thinking about it.", "Working out what to do.";
    "Pensando.", "Pensándolo.", "Viendo qué hacer.";
    "Mo ń ronú.", "Mo ń ronú nípa rẹ̀.", "Mo ń ronú ohun tí a máa ṣe.";
};

pub(in crate::demo) const CALLING: Phrase = phrase! {
    "Using a tool.", "Using a demo tool.", "Using a demo tool, which touches nothing real.";
    "Usando una herramienta.", "Usando una herramienta de la demostración.", "Usando una herramienta de la demostración, que no toca nada real.";
    "Mo ń lo irinṣẹ́.", "Mo ń lo irinṣẹ́ àfihàn.", "Mo ń lo irinṣẹ́ àfihàn, tí kò fọwọ́ kan ohun gidi.";
};

pub(in crate::demo) const WRITING: Phrase = phrase! {
    "Answering.", "Here is the answer.", "Here is the answer, and then the session ends.";
    "Respondiendo.", "Esta es la respuesta.", "Esta es la respuesta, y después termina la sesión.";
    "Mo ń dáhùn.", "Ìdáhùn ń bọ̀.", "Ìdáhùn ń bọ̀, lẹ́yìn náà ó parí.";
};

pub(in crate::demo) const IDLE: Phrase = phrase! {
    "Ready.", "The answer is complete.", "The answer is complete, and nothing else is running.";
    "Listo.", "La respuesta está completa.", "La respuesta está completa, y no hay nada más en marcha.";
    "Ó ti ṣetán.", "Ìdáhùn ti pé.", "Ìdáhùn ti pé, kò sì sí ohun mìíràn tó ń lọ.";
};

pub(in crate::demo) const DONE: Phrase = phrase! {
    "That is all.", "That is all.", "That is all. You can ask for something else at any time.";
    "Es todo.", "Eso es todo.", "Eso es todo. Pida otra cosa cuando quiera.";
    "Ó tán.", "Ó tán.", "Ó tán. Béèrè ohun mìíràn nígbàkígbà.";
};
