//! Yoruba, with its tone marks. It still needs review by a native speaker, like the phrases of `listen`.

use asp::dispute::DisputeReason;
use asp::trust::TrustLevel;

use super::{Phrases, SpokenDate, currency_name, trimmed};

pub(super) struct Yoruba;

const MONTHS: [&str; 12] =
    ["Ṣẹ́rẹ́", "Èrèlè", "Ẹrẹ́nà", "Igbe", "Èbìbí", "Òkúdù", "Agẹmọ", "Ògún", "Owérẹ̀", "Ọ̀wàrà", "Belú", "Ọ̀pẹ̀"];
const WEEKDAYS: [&str; 7] =
    ["ọjọ́ Àìkú", "ọjọ́ Ajé", "ọjọ́ Ìṣẹ́gun", "ọjọ́ Rú", "ọjọ́ Bọ̀", "ọjọ́ Ẹtì", "ọjọ́ Àbámẹ́ta"];
const CURRENCIES: [(&str, &str); 4] =
    [("EUR", "yúrò"), ("USD", "dọ́là Amẹ́ríkà"), ("GBP", "pọ́n-ùn"), ("NGN", "náírà")];

fn agent(who: Option<&str>) -> &str {
    who.unwrap_or("Aṣojú rẹ")
}

impl Phrases for Yoruba {
    fn name_at_host(&self, name: &str, host: &str) -> String {
        format!("{name} ní {host}")
    }

    fn amount(&self, number: &str, currency: &str) -> String {
        match currency_name(&CURRENCIES, currency) {
            code if code == currency => format!("{number} {code}"),
            name => format!("{name} {number}"),
        }
    }

    fn date(&self, date: &SpokenDate) -> String {
        let (month, weekday) = date.names(&MONTHS, &WEEKDAYS);
        let year = date.year.map(|year| format!(", ọdún {year}")).unwrap_or_default();
        format!("{weekday}, ọjọ́ {} oṣù {month}{year}, aago {} UTC", date.day, date.clock())
    }

    fn trust(&self, name: &str, level: TrustLevel) -> String {
        match level {
            TrustLevel::Unverified => format!("Kò tíì sí ìdí láti fọkàn tán {name}: ohun tí a mọ̀ kéré jù."),
            TrustLevel::Verified => format!("Ìfọkàntán nínú {name} kéré: ohun tí ẹ ti ṣe pọ̀ kò tíì pọ̀."),
            TrustLevel::Established => {
                format!("Ìfọkàntán nínú {name} mọ níwọ̀n: ó ti ṣe dáadáa títí di ìsinsìnyí.")
            }
            TrustLevel::Trusted => format!("Ìfọkàntán nínú {name} pọ̀: ó ti pẹ́ tó ti ń ṣe dáadáa."),
            TrustLevel::Premium => {
                format!("Ìfọkàntán nínú {name} pọ̀ gan-an: ó ti pẹ́ tó ti ń ṣe dáadáa láìsí àṣìṣe.")
            }
        }
    }

    fn identity(&self, name: &str, is_pinned_by_operator: bool) -> String {
        if is_pinned_by_operator {
            format!("Ẹni tó ń bójú tó aṣojú rẹ ti jẹ́rìí sí ẹni tí {name} jẹ́.")
        } else {
            format!("Kò sí ẹni tó jẹ́rìí sí ẹni tí {name} jẹ́; òun náà ni aṣojú rẹ kọ́kọ́ pàdé.")
        }
    }

    fn may_commit(&self, peer: &str, subject: &str) -> String {
        format!("Ṣe àdéhùn tó de ni pẹ̀lú {peer}: {}.", trimmed(subject))
    }

    fn may_accept(&self, peer: &str, subject: &str) -> String {
        format!("Gba àdéhùn tó de ni tí {peer} fi lọ̀ ọ́: {}.", trimmed(subject))
    }

    fn own_promise(&self, action: &str, deadline: &str) -> String {
        format!("Ìlérí tìrẹ: {}, kó tó di {deadline}.", trimmed(action))
    }

    fn promise(&self, name: &str, action: &str, deadline: &str) -> String {
        format!("Ìlérí {name}: {}, kó tó di {deadline}.", trimmed(action))
    }

    fn no_own_promise(&self) -> &'static str {
        "Ìwọ kò ṣe ìlérí kankan."
    }

    fn own_escrow(&self, name: &str, amount: &str, is_payment: bool) -> String {
        if is_payment {
            format!("O máa fi {amount} pamọ́ gẹ́gẹ́ bí ẹ̀rí. {name} máa gbà á bí ó bá mú ìlérí rẹ̀ ṣẹ.")
        } else {
            format!("O máa fi {amount} pamọ́ gẹ́gẹ́ bí ẹ̀rí. {name} máa gbà á kìkì bí o bá da àdéhùn náà.")
        }
    }

    fn escrow(&self, name: &str, amount: &str, is_payment: bool) -> String {
        if is_payment {
            format!("{name} máa fi {amount} pamọ́ gẹ́gẹ́ bí ẹ̀rí. O máa gbà á bí o bá mú ìlérí rẹ ṣẹ.")
        } else {
            format!("{name} máa fi {amount} pamọ́ gẹ́gẹ́ bí ẹ̀rí. O máa gbà á kìkì bí {name} bá da àdéhùn náà.")
        }
    }

    fn no_escrow(&self) -> &'static str {
        "A kò fi owó kankan pamọ́."
    }

    fn penalty_late(&self, penalty: &str) -> String {
        format!("Bí ó bá pẹ́: {}.", trimmed(penalty))
    }

    fn penalty_not_done(&self, penalty: &str) -> String {
        format!("Bí a kò bá ṣe é: {}.", trimmed(penalty))
    }

    fn no_penalty(&self) -> &'static str {
        "Kò sí ìjìyà kankan nínú àdéhùn náà."
    }

    fn needs_answer(&self, name: &str) -> String {
        format!("Àdéhùn pẹ̀lú {name} ń dúró de bẹ́ẹ̀ni tàbí rárá rẹ.")
    }

    fn agent_address(&self, name: &str, uri: &str) -> String {
        format!("Àdírẹ́sì {name} ni {uri}.")
    }

    fn trust_score(&self, score: &str) -> String {
        format!("Máàkì ìfọkàntán rẹ̀ jẹ́ {score} nínú 100.")
    }

    fn verification(&self, action: &str, method: &str) -> String {
        format!("Bí a ṣe máa mọ̀ pé a ti ṣe èyí, {}: {}.", trimmed(action), trimmed(method))
    }

    fn release_condition(&self, condition: &str) -> String {
        format!("A máa san owó tí a fi pamọ́ nígbà tí: {}.", trimmed(condition))
    }

    fn overall_deadline(&self, deadline: &str) -> String {
        format!("Gbogbo rẹ̀ gbọ́dọ̀ parí kó tó di {deadline}.")
    }

    fn escalation(&self, peer: &str, subject: &str, reason: &str) -> String {
        format!(
            "Aṣojú rẹ ń bá {peer} sọ̀rọ̀ nípa {}, ó sì nílò ìpinnu rẹ. Ó ní: {}. Kí ni ìpinnu rẹ?",
            trimmed(subject),
            trimmed(reason)
        )
    }

    fn escalation_summary(&self, name: &str) -> String {
        format!("Ọ̀rọ̀ pẹ̀lú {name} nílò ìpinnu rẹ.")
    }

    fn dispute(&self, peer: &str, subject: &str) -> String {
        format!("Aṣojú rẹ fi ẹjọ́ {peer} sùn, lórí àdéhùn nípa {}.", trimmed(subject))
    }

    fn dispute_reason(&self, reason: DisputeReason, name: &str) -> String {
        match reason {
            DisputeReason::DeadlinePassed => format!("Ó ní àkókò tí {name} dá ti kọjá."),
            DisputeReason::FulfillmentMismatch => {
                format!("Ó ní {name} kò fi ohun tí ẹ jọ fohùn ṣọ̀kan lé lórí ránṣẹ́.")
            }
            DisputeReason::NonDelivery => format!("Ó ní {name} kò fi ohunkóhun ránṣẹ́."),
            DisputeReason::ReleaseWithoutFulfillment => format!("Ó ní {name} gba owó náà láìṣe ipa tirẹ̀."),
            DisputeReason::TermsChanged => format!("Ó ní {name} yí àdéhùn padà láìgba àṣẹ."),
        }
    }

    fn promised(&self, name: &str, action: &str, deadline: &str) -> String {
        format!("{name} ṣe ìlérí: {}, kí ó tó di {deadline}.", trimmed(action))
    }

    fn dispute_statement(&self, statement: &str) -> String {
        format!("Aṣojú rẹ fi kún un: {}.", trimmed(statement))
    }

    fn dispute_question(&self) -> &'static str {
        "Ṣé ẹjọ́ náà tọ́?"
    }

    fn dispute_choices(&self) -> [&'static str; 2] {
        ["Ó tọ́", "Kò tọ́"]
    }

    fn dispute_consequence(&self, name: &str) -> String {
        format!("Bí ẹjọ́ náà bá tọ́, ìfọkàntán aṣojú rẹ nínú {name} yóò dín kù. Kò sí ohun mìíràn tí yóò ṣẹlẹ̀.")
    }

    fn dispute_summary(&self, name: &str) -> String {
        format!("Ẹjọ́ nípa {name} nílò ìpinnu rẹ.")
    }

    fn dispute_upheld(&self) -> &'static str {
        "Ẹjọ́ náà tọ́."
    }

    fn dispute_closed(&self) -> &'static str {
        "A ti parí ẹjọ́ náà."
    }

    fn dispute_open(&self) -> &'static str {
        "Ẹjọ́ náà ṣì wà nílẹ̀."
    }

    fn sending(&self, name: &str) -> String {
        format!("A ń fi àdéhùn náà ránṣẹ́ sí {name}.")
    }

    fn accepting(&self, name: &str) -> String {
        format!("A ń gba àdéhùn {name}.")
    }

    fn call_failed(&self, name: &str) -> String {
        format!("A kò fi ohunkóhun ránṣẹ́ sí {name}.")
    }

    fn session_title(&self, peer: &str, subject: &str) -> String {
        format!("Ọ̀rọ̀ pẹ̀lú {peer} nípa {}.", trimmed(subject))
    }

    fn invited_peer(&self, peer: &str, subject: &str) -> String {
        format!("Aṣojú rẹ pe {peer} láti sọ̀rọ̀ nípa {}.", trimmed(subject))
    }

    fn invited_us(&self, peer: &str, subject: &str) -> String {
        format!("{peer} pe aṣojú rẹ láti sọ̀rọ̀ nípa {}.", trimmed(subject))
    }

    fn accepted_invitation(&self, who: Option<&str>) -> String {
        format!("{} ti gba ìpè náà.", agent(who))
    }

    fn identified(&self, name: &str) -> String {
        format!("{name} ti fi ìdánimọ̀ rẹ̀ hàn.")
    }

    fn proposed(&self, who: Option<&str>, offer: &str) -> String {
        format!("{} dábàá pé: {offer}.", agent(who))
    }

    fn countered(&self, who: Option<&str>, offer: &str) -> String {
        format!("{} mú àbá mìíràn wá: {offer}.", agent(who))
    }

    fn offer(&self, subject: &str, price: &str) -> String {
        format!("{} ní {price}", trimmed(subject))
    }

    fn accepted_proposal(&self, who: Option<&str>) -> String {
        format!("{} fara mọ́ àbá náà. Kò tíì de ẹnikẹ́ni.", agent(who))
    }

    fn rejected(&self, who: Option<&str>, reason: &str) -> String {
        format!("{} sọ pé rárá: {}.", agent(who), trimmed(reason))
    }

    fn committed(&self, who: Option<&str>, name: &str) -> String {
        match who {
            Some(name) => format!("{name} fi àdéhùn tó de ni lọ̀ ọ́. Ó ń dúró de ìdáhùn rẹ."),
            None => format!("A ti fi àdéhùn náà ránṣẹ́. {name} kò tíì gbà á."),
        }
    }

    fn agreed(&self, name: &str) -> String {
        format!("A ti fohùn ṣọ̀kan: àdéhùn pẹ̀lú {name} ti de ẹ̀yin méjèèjì báyìí.")
    }

    fn progress(&self, who: Option<&str>, percent: u8) -> String {
        format!("{} ti ṣe ìdá {percent} nínú ọgọ́rùn-ún.", agent(who))
    }

    fn result(&self, who: Option<&str>) -> String {
        format!("{} sọ pé iṣẹ́ tòun ti parí.", agent(who))
    }

    fn problem(&self, who: Option<&str>) -> String {
        format!("{} sọ pé ìṣòro kan wà.", agent(who))
    }

    fn resolved(&self, who: Option<&str>) -> String {
        match who {
            Some(name) => format!("{name} ti ní ìpinnu. Ọ̀rọ̀ náà ń bá a lọ."),
            None => "A ti fi ìpinnu rẹ ránṣẹ́. Ọ̀rọ̀ náà ń bá a lọ.".to_owned(),
        }
    }

    fn escalated(&self, who: Option<&str>, reason: &str) -> String {
        match who {
            Some(name) => format!("{name} ń dúró de ìpinnu àwọn tirẹ̀: {}.", trimmed(reason)),
            None => format!("Aṣojú rẹ nílò ìpinnu: {}.", trimmed(reason)),
        }
    }

    fn closing(&self, who: Option<&str>) -> String {
        format!("{} fẹ́ parí ọ̀rọ̀ náà.", agent(who))
    }

    fn refused_by_peer(&self, name: &str, reason: &str) -> String {
        format!("{name} kò gba ọ̀rọ̀ ìkẹyìn aṣojú rẹ: {}.", trimmed(reason))
    }

    fn undeliverable(&self, name: &str) -> String {
        format!("Aṣojú rẹ kò lè kàn sí {name}, kò sì gbìyànjú mọ́.")
    }

    fn response_overdue(&self, name: &str) -> String {
        format!("{name} kò tíì dáhùn, àkókò rẹ̀ sì ti kọjá.")
    }

    fn some_events_not_reported(&self) -> &'static str {
        "A kò lè sọ díẹ̀ nínú ohun tó ṣẹlẹ̀ nínú ọ̀rọ̀ yìí."
    }

    fn ended_completed(&self, name: &str) -> String {
        format!("Ọ̀rọ̀ pẹ̀lú {name} ti parí. Ẹ̀yin méjèèjì sọ pé gbogbo rẹ̀ ti ṣe.")
    }

    fn ended_closed(&self, who: Option<&str>, name: &str) -> String {
        match who {
            Some(name) => format!("{name} ti parí ọ̀rọ̀ náà."),
            None => format!("Aṣojú rẹ ti parí ọ̀rọ̀ pẹ̀lú {name}."),
        }
    }

    fn ended_withdrawn(&self, who: Option<&str>, name: &str) -> String {
        match who {
            Some(name) => format!("{name} ti yọwọ́."),
            None => format!("Aṣojú rẹ ti yọwọ́ nínú ọ̀rọ̀ pẹ̀lú {name}."),
        }
    }

    fn ended_rejected(&self, who: Option<&str>) -> String {
        format!("{} kọ ìpè náà.", agent(who))
    }

    fn ended_timeout(&self, name: &str) -> String {
        format!("Àkókò fún ọ̀rọ̀ pẹ̀lú {name} ti parí.")
    }

    fn ended_failed(&self, name: &str) -> String {
        format!("Ọ̀rọ̀ pẹ̀lú {name} ti kùnà.")
    }

    fn reason(&self, reason: &str) -> String {
        format!("Ìdí tí wọ́n sọ: {}.", trimmed(reason))
    }

    fn broke_agreement(&self, who: Option<&str>) -> String {
        match who {
            Some(name) => format!("{name} ti da àdéhùn náà."),
            None => "Ẹ̀gbẹ́ tìrẹ ti da àdéhùn náà.".to_owned(),
        }
    }

    fn obligation_open(&self) -> &'static str {
        "A kò tíì ṣe gbogbo ohun tí a ṣèlérí."
    }

    fn own_money_back(&self, amount: &str) -> String {
        format!("O gba {amount} tí o fi pamọ́ padà.")
    }

    fn money_to_us(&self, amount: &str) -> String {
        format!("O gba {amount} tí a fi pamọ́.")
    }

    fn money_to_peer(&self, name: &str, amount: &str) -> String {
        format!("{name} gba {amount} tí a fi pamọ́.")
    }
}
