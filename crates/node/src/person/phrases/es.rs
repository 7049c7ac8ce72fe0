//! Spanish.

use asp::dispute::DisputeReason;
use asp::trust::TrustLevel;

use super::{Phrases, SpokenDate, currency_name, trimmed};

pub(super) struct Spanish;

const MONTHS: [&str; 12] = [
    "enero",
    "febrero",
    "marzo",
    "abril",
    "mayo",
    "junio",
    "julio",
    "agosto",
    "septiembre",
    "octubre",
    "noviembre",
    "diciembre",
];
const WEEKDAYS: [&str; 7] = ["domingo", "lunes", "martes", "miércoles", "jueves", "viernes", "sábado"];
const CURRENCIES: [(&str, &str); 5] = [
    ("EUR", "euros"),
    ("USD", "dólares estadounidenses"),
    ("GBP", "libras"),
    ("NGN", "nairas"),
    ("CHF", "francos suizos"),
];

fn agent(who: Option<&str>) -> &str {
    who.unwrap_or("Tu agente")
}

impl Phrases for Spanish {
    fn name_at_host(&self, name: &str, host: &str) -> String {
        format!("{name}, de {host},")
    }

    fn amount(&self, number: &str, currency: &str) -> String {
        format!("{number} {}", currency_name(&CURRENCIES, currency))
    }

    fn date(&self, date: &SpokenDate) -> String {
        let (month, weekday) = date.names(&MONTHS, &WEEKDAYS);
        let year = date.year.map(|year| format!(" de {year}")).unwrap_or_default();
        format!("{weekday} {} de {month}{year} a las {} UTC", date.day, date.clock())
    }

    fn trust(&self, name: &str, level: TrustLevel) -> String {
        match level {
            TrustLevel::Unverified => format!("Aún no hay motivos para confiar en {name}: se sabe muy poco."),
            TrustLevel::Verified => format!("La confianza en {name} es baja: hay poco historial."),
            TrustLevel::Established => {
                format!("La confianza en {name} es media: el historial es bueno hasta ahora.")
            }
            TrustLevel::Trusted => format!("La confianza en {name} es alta: el historial es largo y bueno."),
            TrustLevel::Premium => {
                format!("La confianza en {name} es muy alta: el historial es largo y sin faltas.")
            }
        }
    }

    fn identity(&self, name: &str, is_pinned_by_operator: bool) -> String {
        if is_pinned_by_operator {
            format!("Quien administra tu agente confirmó quién es {name}.")
        } else {
            format!("Nadie confirmó quién es {name}; es la misma parte que en el primer contacto.")
        }
    }

    fn may_commit(&self, peer: &str, subject: &str) -> String {
        format!("Hacer a {peer} una oferta vinculante: {}.", trimmed(subject))
    }

    fn may_accept(&self, peer: &str, subject: &str) -> String {
        format!("Aceptar de {peer} la oferta vinculante: {}.", trimmed(subject))
    }

    fn own_promise(&self, action: &str, deadline: &str) -> String {
        format!("Tú prometes: {}, hasta el {deadline}.", trimmed(action))
    }

    fn promise(&self, name: &str, action: &str, deadline: &str) -> String {
        format!("{name} promete: {}, hasta el {deadline}.", trimmed(action))
    }

    fn no_own_promise(&self) -> &'static str {
        "Tú no prometes nada."
    }

    fn own_escrow(&self, name: &str, amount: &str, is_payment: bool) -> String {
        if is_payment {
            format!("Depositas {amount} en garantía. {name} los recibe si cumple lo que promete.")
        } else {
            format!("Depositas {amount} en garantía. {name} solo los recibe si tú incumples el acuerdo.")
        }
    }

    fn escrow(&self, name: &str, amount: &str, is_payment: bool) -> String {
        if is_payment {
            format!("{name} deposita {amount} en garantía. Tú los recibes si cumples lo que prometes.")
        } else {
            format!(
                "{name} deposita {amount} en garantía. Tú solo los recibes si {name} incumple el acuerdo."
            )
        }
    }

    fn no_escrow(&self) -> &'static str {
        "No hay dinero en garantía."
    }

    fn penalty_late(&self, penalty: &str) -> String {
        format!("Si se retrasa: {}.", trimmed(penalty))
    }

    fn penalty_not_done(&self, penalty: &str) -> String {
        format!("Si no se hace: {}.", trimmed(penalty))
    }

    fn no_penalty(&self) -> &'static str {
        "No se ha acordado ninguna penalización."
    }

    fn needs_answer(&self, name: &str) -> String {
        format!("Un acuerdo con {name} necesita tu sí o tu no.")
    }

    fn agent_address(&self, name: &str, uri: &str) -> String {
        format!("La dirección de {name} es {uri}.")
    }

    fn trust_score(&self, score: &str) -> String {
        format!("Su puntuación de confianza es {score} de 100.")
    }

    fn verification(&self, action: &str, method: &str) -> String {
        format!("Cómo se comprueba que esto está hecho, {}: {}.", trimmed(action), trimmed(method))
    }

    fn release_condition(&self, condition: &str) -> String {
        format!("La garantía se paga cuando: {}.", trimmed(condition))
    }

    fn overall_deadline(&self, deadline: &str) -> String {
        format!("Todo debe estar hecho antes del {deadline}.")
    }

    fn escalation(&self, peer: &str, subject: &str, reason: &str) -> String {
        format!(
            "Tu agente habla con {peer} sobre {} y necesita tu decisión. Dice: {}. ¿Qué decides?",
            trimmed(subject),
            trimmed(reason)
        )
    }

    fn escalation_summary(&self, name: &str) -> String {
        format!("La conversación con {name} necesita tu decisión.")
    }

    fn dispute(&self, peer: &str, subject: &str) -> String {
        format!("Tu agente se queja de {peer}, en el acuerdo sobre {}.", trimmed(subject))
    }

    fn dispute_reason(&self, reason: DisputeReason, name: &str) -> String {
        match reason {
            DisputeReason::DeadlinePassed => format!("Dice que ha pasado un plazo de {name}."),
            DisputeReason::FulfillmentMismatch => format!("Dice que {name} no entregó lo acordado."),
            DisputeReason::NonDelivery => format!("Dice que {name} no entregó nada."),
            DisputeReason::ReleaseWithoutFulfillment => {
                format!("Dice que {name} recibió el dinero sin hacer su parte.")
            }
            DisputeReason::TermsChanged => format!("Dice que {name} cambió las condiciones sin permiso."),
        }
    }

    fn promised(&self, name: &str, action: &str, deadline: &str) -> String {
        format!("{name} prometió: {}, antes del {deadline}.", trimmed(action))
    }

    fn dispute_statement(&self, statement: &str) -> String {
        format!("Tu agente añade: {}.", trimmed(statement))
    }

    fn dispute_question(&self) -> &'static str {
        "¿Está justificada la queja?"
    }

    fn dispute_choices(&self) -> [&'static str; 2] {
        ["Justificada", "No justificada"]
    }

    fn dispute_consequence(&self, name: &str) -> String {
        format!("Si la queja está justificada, tu agente confía menos en {name}. No pasa nada más.")
    }

    fn dispute_summary(&self, name: &str) -> String {
        format!("Una queja sobre {name} necesita tu decisión.")
    }

    fn dispute_upheld(&self) -> &'static str {
        "La queja cuenta como justificada."
    }

    fn dispute_closed(&self) -> &'static str {
        "La queja está cerrada."
    }

    fn dispute_open(&self) -> &'static str {
        "La queja sigue abierta."
    }

    fn sending(&self, name: &str) -> String {
        format!("Enviando la oferta vinculante a {name}.")
    }

    fn accepting(&self, name: &str) -> String {
        format!("Aceptando la oferta vinculante de {name}.")
    }

    fn call_failed(&self, name: &str) -> String {
        format!("No se ha enviado nada a {name}.")
    }

    fn session_title(&self, peer: &str, subject: &str) -> String {
        format!("Conversación con {peer} sobre {}.", trimmed(subject))
    }

    fn invited_peer(&self, peer: &str, subject: &str) -> String {
        format!("Tu agente invita a {peer} a hablar de {}.", trimmed(subject))
    }

    fn invited_us(&self, peer: &str, subject: &str) -> String {
        format!("{peer} invita a tu agente a hablar de {}.", trimmed(subject))
    }

    fn accepted_invitation(&self, who: Option<&str>) -> String {
        format!("{} acepta la invitación.", agent(who))
    }

    fn identified(&self, name: &str) -> String {
        format!("{name} ha demostrado su identidad.")
    }

    fn proposed(&self, who: Option<&str>, offer: &str) -> String {
        format!("{} propone: {offer}.", agent(who))
    }

    fn countered(&self, who: Option<&str>, offer: &str) -> String {
        format!("{} hace otra oferta: {offer}.", agent(who))
    }

    fn offer(&self, subject: &str, price: &str) -> String {
        format!("{} por {price}", trimmed(subject))
    }

    fn accepted_proposal(&self, who: Option<&str>) -> String {
        format!("A {} le parece bien la propuesta. Aún no obliga a nadie.", who.unwrap_or("tu agente"))
    }

    fn rejected(&self, who: Option<&str>, reason: &str) -> String {
        format!("{} dice que no: {}.", agent(who), trimmed(reason))
    }

    fn committed(&self, who: Option<&str>, name: &str) -> String {
        match who {
            Some(name) => format!("{name} hace una oferta vinculante y espera tu respuesta."),
            None => format!("La oferta vinculante está enviada. {name} todavía no la ha aceptado."),
        }
    }

    fn agreed(&self, name: &str) -> String {
        format!("De acuerdo: el acuerdo con {name} ya obliga a las dos partes.")
    }

    fn progress(&self, who: Option<&str>, percent: u8) -> String {
        format!("{} lleva hecho el {percent} por ciento.", agent(who))
    }

    fn result(&self, who: Option<&str>) -> String {
        format!("{} dice que su parte está hecha.", agent(who))
    }

    fn problem(&self, who: Option<&str>) -> String {
        format!("{} informa de un problema.", agent(who))
    }

    fn resolved(&self, who: Option<&str>) -> String {
        match who {
            Some(name) => format!("{name} tiene una decisión. La conversación sigue."),
            None => "Tu decisión está enviada. La conversación sigue.".to_owned(),
        }
    }

    fn escalated(&self, who: Option<&str>, reason: &str) -> String {
        match who {
            Some(name) => format!("{name} espera una decisión de los suyos: {}.", trimmed(reason)),
            None => format!("Tu agente necesita una decisión: {}.", trimmed(reason)),
        }
    }

    fn closing(&self, who: Option<&str>) -> String {
        format!("{} quiere terminar la conversación.", agent(who))
    }

    fn refused_by_peer(&self, name: &str, reason: &str) -> String {
        format!("{name} no admitió el último mensaje de tu agente: {}.", trimmed(reason))
    }

    fn undeliverable(&self, name: &str) -> String {
        format!("Tu agente no consigue contactar con {name} y ha dejado de intentarlo.")
    }

    fn response_overdue(&self, name: &str) -> String {
        format!("{name} no ha respondido a tiempo.")
    }

    fn some_events_not_reported(&self) -> &'static str {
        "No se pudo contar todo lo que pasó en esta conversación."
    }

    fn ended_completed(&self, name: &str) -> String {
        format!("La conversación con {name} ha terminado. Las dos partes dicen que todo está hecho.")
    }

    fn ended_closed(&self, who: Option<&str>, name: &str) -> String {
        match who {
            Some(name) => format!("{name} ha terminado la conversación."),
            None => format!("Tu agente ha terminado la conversación con {name}."),
        }
    }

    fn ended_withdrawn(&self, who: Option<&str>, name: &str) -> String {
        match who {
            Some(name) => format!("{name} se ha retirado."),
            None => format!("Tu agente se ha retirado de la conversación con {name}."),
        }
    }

    fn ended_rejected(&self, who: Option<&str>) -> String {
        format!("{} rechaza la invitación.", agent(who))
    }

    fn ended_timeout(&self, name: &str) -> String {
        format!("Se ha acabado el tiempo para hablar con {name}.")
    }

    fn ended_failed(&self, name: &str) -> String {
        format!("La conversación con {name} ha fracasado.")
    }

    fn reason(&self, reason: &str) -> String {
        format!("Motivo indicado: {}.", trimmed(reason))
    }

    fn broke_agreement(&self, who: Option<&str>) -> String {
        match who {
            Some(name) => format!("{name} ha incumplido el acuerdo."),
            None => "Tu parte ha incumplido el acuerdo.".to_owned(),
        }
    }

    fn obligation_open(&self) -> &'static str {
        "No está hecho todo lo que se prometió."
    }

    fn own_money_back(&self, amount: &str) -> String {
        format!("Recuperas los {amount} de la garantía.")
    }

    fn money_to_us(&self, amount: &str) -> String {
        format!("Recibes los {amount} de la garantía.")
    }

    fn money_to_peer(&self, name: &str, amount: &str) -> String {
        format!("{name} recibe los {amount} de la garantía.")
    }
}
