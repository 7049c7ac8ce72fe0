//! Complete sessions in Spanish and Yoruba: no narration in English, and answers in that language.

use testing::http::TestClient;
use testing::hub::HubProcess;
use testing::terminal::{AgentSession, ListenProcess};

/// Every English narration contains at least one of these words. None of them occurs in the texts of the agents, the
/// addresses or the options of these tests.
const ENGLISH_WORDS: &[&str] = &[
    "the", "is", "are", "was", "not", "and", "or", "it", "you", "your", "to", "of", "with", "without",
    "question", "answer", "type", "nothing", "this", "that", "what", "has", "have", "agent", "from", "for",
    "hub", "again",
];

/// Returns each English word with its line. Also checks that the label of each line is one lower-case word.
fn find_english_words(lines: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for line in lines {
        let (label, _) = line.split_once(": ").unwrap_or(("", line));
        assert!(!label.chars().any(char::is_uppercase) && !label.contains(' '), "{line}");
        let words = line.split(|character: char| !character.is_alphanumeric() && character != '-');
        let is_english = |word: &&str| ENGLISH_WORDS.contains(&word.to_lowercase().as_str());
        found.extend(words.filter(is_english).map(|word| format!("{word} in {line}")));
    }
    found
}

fn start_session(client: TestClient, hints: &str, summary: &str) -> AgentSession {
    let body = format!(r#"{{"summary_normal":"{summary}","localization_hints":{hints}}}"#);
    let response = client.post("/agent/v1/sessions", &body);
    assert_eq!(response.status, 201, "{response:?}");
    let session = response.json_str("session_id");
    AgentSession { client, session_id: session }
}

/// Asks for confirmation of a payment and returns the reply token.
fn ask_payment(agent: &AgentSession, action: &str, consequence: &str) -> String {
    let body = format!(
        r#"{{"action":"{action}","consequence":"{consequence}","summary_normal":"{action}","timeout_seconds":120,"default_decision":"reject","risk_level":"high","irreversible":true,"tool":"send","arguments":{{"amount":"5.00"}}}}"#
    );
    let response =
        agent.client.post(&format!("/agent/v1/sessions/{}/confirmations", agent.session_id), &body);
    assert_eq!(response.status, 201, "{response:?}");
    response.json_str("reply_token")
}

#[test]
fn a_spanish_session_contains_no_english() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start(&hub.address, &["--lang", "es-MX,en", "--verbosity", "detailed"]);
    let mut lines = person.read_until("Escuchando");
    let agent = start_session(hub.client(), r#"{"primary_language":"es"}"#, "Pago a Ben.");
    agent.publish(r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#);
    let token = ask_payment(&agent, "Enviar 5 euros a Ben", "El dinero sale de la cuenta.");
    lines.extend(person.read_until("pregunta: ¿Sí o no?"));
    for (typed, expected) in [
        ("", "pregunta: Enter solo no responde. Pregunta 1: 2 minutos para responder."),
        ("y", "así que no se envió nada. ¿Sí o no?"),
        ("s", "fallo: No se envió nada. Escriba la palabra entera: sí 1 o no 1."),
        ("1", "fallo: No se envió nada. Escriba la palabra entera: sí 1 o no 1."),
        ("sí 2", "fallo: La pregunta 2 no está abierta. No se envió nada."),
        ("estado", "estado: Oye todos los detalles."),
        ("repetir 1", "pregunta: ¿Sí o no?"),
        ("detalles", "pregunta: Sin respuesta, no se hará."),
        ("más bajo", "estado: Detalle normal desde ahora."),
        ("mas alto", "estado: Todos los detalles desde ahora."),
        ("ayuda", "ayuda: salir: deja de escuchar."),
    ] {
        person.type_line(typed);
        lines.extend(person.read_until(expected));
    }
    person.type_line("Sí");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"accept""#));
    lines.extend(person.read_until("respuesta: Aceptado."));
    agent.publish(r#"{"type":"aaep:agent.tool.invoked","tool":"send","irreversible":true,"risk_level":"high","arguments":{"amount":"5.00"},"summary_normal":"Enviando 5 euros a Ben.","tool_call_id":"call_1"}"#);
    agent.publish(r#"{"type":"aaep:agent.progress.updated","progress":{"step":1,"total_steps":2}}"#);
    agent.publish(
        r#"{"type":"aaep:agent.tool.completed","tool":"send","tool_call_id":"call_1","status":"success"}"#,
    );
    agent.publish(r#"{"type":"aaep:agent.session.completed","summary_normal":"Ben tiene su dinero."}"#);
    lines.extend(person.read_until("sesión: local ha terminado."));
    assert_eq!(find_english_words(&lines), Vec::<String>::new());
    for line in [
        "sesión: local ha empezado. Pago a Ben.",
        "agente: local está pensando.",
        "pregunta: local: Enviar 5 euros a Ben.",
        "pregunta: El dinero sale de la cuenta.",
        "pregunta: Irreversible: send, amount 5.00.",
        "pregunta: Tiene 2 minutos.",
        "pregunta: ¿Sí o no?",
        "pregunta: Riesgo alto.",
        "respuesta: Pregunta 1: sí.",
        "herramienta: Enviando 5 euros a Ben.",
        "progreso: Paso 1 de 2.",
        "herramienta: La herramienta send ha terminado.",
    ] {
        assert!(lines.iter().any(|printed| printed == line), "{line}: {lines:#?}");
    }
    person.type_line("salir");
    let (rest, code) = person.wait_for_exit();
    assert_eq!((find_english_words(&rest), code), (Vec::new(), 0));
}

#[test]
fn a_yoruba_session_contains_no_english() {
    let hub = HubProcess::start_in_memory();
    let mut person = ListenProcess::start(&hub.address, &["--lang", "yo", "--verbosity", "detailed"]);
    let mut lines = person.read_until("Mo ń gbọ́");
    let agent = start_session(hub.client(), r#"{"primary_language":"yo"}"#, "Mo ń fi owó ránṣẹ́.");
    let token = ask_payment(&agent, "Fi yúrò 5 ránṣẹ́ sí Ben", "A kò lè dá a padà.");
    lines.extend(person.read_until("ìbéèrè: Bẹ́ẹ̀ni tàbí rárá?"));
    for (typed, expected) in [
        ("sí", "a kò sì fi ohunkóhun ránṣẹ́. Bẹ́ẹ̀ni"),
        ("ipo", "ipò: Ọ̀rọ̀ kíkún lo ń gbọ́."),
        ("tún sọ 1", "ìbéèrè: Bẹ́ẹ̀ni tàbí rárá?"),
        ("ìrànlọ́wọ́", "ìrànlọ́wọ́: jáde: ó parí gbígbọ́."),
    ] {
        person.type_line(typed);
        lines.extend(person.read_until(expected));
    }
    person.type_line("rara");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"reject""#));
    lines.extend(person.read_until("ìdáhùn: A ti kọ̀ ọ́."));
    let token = ask_payment(&agent, "Fi yúrò 6 ránṣẹ́ sí Ben", "A kò lè dá a padà.");
    lines.extend(person.read_until("ìbéèrè: Bẹ́ẹ̀ni tàbí rárá?"));
    person.type_line("beeni");
    assert!(agent.wait_for_reply(&token, 30).contains(r#""decision":"accept""#));
    lines.extend(person.read_until("ìdáhùn: A ti gbà á."));
    assert_eq!(find_english_words(&lines), Vec::<String>::new());
    person.type_line("jade");
    assert_eq!(person.wait_for_exit().1, 0);
}

#[test]
fn connection_errors_are_localized() {
    let lines_after_loss = {
        let hub = HubProcess::start_in_memory();
        let mut person = ListenProcess::start(&hub.address, &["--lang", "es"]);
        person.read_until("Escuchando");
        drop(hub);
        let mut lines = person.read_until("Se intenta conectar de nuevo.");
        person.type_line("parar");
        lines.extend(person.read_until("fallo: Ningún agente está trabajando."));
        lines
    };
    assert_eq!(find_english_words(&lines_after_loss), Vec::<String>::new());
    let listener = ListenProcess::start("127.0.0.1:1", &["--lang", "es"]);
    let (lines, code) = listener.wait_for_exit();
    assert_eq!(
        (lines.as_slice(), code),
        (&["sayso: no se puede llegar a http://127.0.0.1:1: allí no escucha nadie".to_owned()][..], 2)
    );
}
