//! The weather, and the question about a place.

use crate::demo::language::{Phrase, TranslatedText, phrase, translated};

pub(in crate::demo) const ASK_PLACE: Phrase = phrase! {
    "Which place?", "Which place would you like the weather for?", "Which place would you like the weather for? Name a town; nothing real is looked up.";
    "¿Qué lugar?", "¿De qué lugar quiere saber el tiempo?", "¿De qué lugar quiere saber el tiempo? Diga una ciudad; no se consulta nada real.";
    "Ibo?", "Ibo ni o fẹ́ mọ ojú ọjọ́ rẹ̀?", "Ibo ni o fẹ́ mọ ojú ọjọ́ rẹ̀? Sọ orúkọ ìlú kan; a kò wo ohun gidi kankan.";
};

/// Suggested answers for people who prefer not to type.
pub(in crate::demo) const PLACES: [&str; 3] = ["Lagos", "London", "Madrid"];

pub(in crate::demo) const NO_PLACE: TranslatedText = translated(
    "Without a place, I cannot tell you the weather.",
    "Sin un lugar no hay tiempo que contar.",
    "Láìsí ibì kan, kò sí ojú ọjọ́ tí mo lè sọ.",
);

pub(in crate::demo) const WEATHER: TranslatedText = translated(
    "In {place}, as everywhere in the demo, it is mild with a little sun; no real forecast was used.",
    "En {place}, como en todas partes en la demostración, está templado con un poco de sol; no se consultó ninguna previsión real.",
    "Ní {place}, bíi níbi gbogbo nínú àfihàn, ó tutù díẹ̀, oòrùn díẹ̀ sì wà; a kò béèrè àsọtẹ́lẹ̀ gidi.",
);
pub(in crate::demo) const WEATHER_WITHOUT_PLACE: TranslatedText = translated(
    "The demo has the same weather everywhere: mild, with a little sun; no real forecast was used.",
    "La demostración tiene el mismo tiempo en todas partes: templado, con un poco de sol; no se consultó ninguna previsión real.",
    "Ojú ọjọ́ kan náà ni àfihàn ní níbi gbogbo: ó tutù díẹ̀, oòrùn díẹ̀ sì wà; a kò béèrè àsọtẹ́lẹ̀ gidi.",
);
