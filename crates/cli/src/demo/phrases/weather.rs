//! The weather, and the question for a place.

use crate::demo::language::{Line, Phrase, line, phrase};

pub(in crate::demo) const WHERE: Phrase = phrase! {
    "Which place?", "For which place would you like the weather?", "For which place would you like the weather? Say a town; nothing is looked up for real.";
    "¿Qué lugar?", "¿De qué lugar quiere saber el tiempo?", "¿De qué lugar quiere saber el tiempo? Diga una ciudad; no se consulta nada real.";
    "Ibo?", "Ibo ni o fẹ́ mọ ojú ọjọ́ rẹ̀?", "Ibo ni o fẹ́ mọ ojú ọjọ́ rẹ̀? Sọ orúkọ ìlú kan; a kò wo ohun gidi kankan.";
};

/// For whoever would rather choose than type.
pub(in crate::demo) const PLACES: [&str; 3] = ["Lagos", "London", "Madrid"];

pub(in crate::demo) const NOWHERE: Line = line(
    "Without a place there is no weather to tell.",
    "Sin un lugar no hay tiempo que contar.",
    "Láìsí ibì kan, kò sí ojú ọjọ́ tí mo lè sọ.",
);

pub(in crate::demo) const WEATHER: Line = line(
    "In {place}, as everywhere in the demonstration, it is mild with a little sun; no real forecast was asked for.",
    "En {place}, como en todas partes en la demostración, está templado con un poco de sol; no se consultó ninguna previsión real.",
    "Ní {place}, bíi níbi gbogbo nínú àfihàn, ó tutù díẹ̀, oòrùn díẹ̀ sì wà; a kò béèrè àsọtẹ́lẹ̀ gidi.",
);
pub(in crate::demo) const WEATHER_ANYWHERE: Line = line(
    "The demonstration has the same weather everywhere: mild, with a little sun; no real forecast was asked for.",
    "La demostración tiene el mismo tiempo en todas partes: templado, con un poco de sol; no se consultó ninguna previsión real.",
    "Ojú ọjọ́ kan náà ni àfihàn ní níbi gbogbo: ó tutù díẹ̀, oòrùn díẹ̀ sì wà; a kò béèrè àsọtẹ́lẹ̀ gidi.",
);
