//! Whole sessions for somebody who hears Spanish or Yoruba: not a word of ours in English, and answers in that language.

use testing::http::Client;
use testing::hub::Hub;
use testing::terminal::{Agent, Person};

/// Words of which every English sentence has one. None of them is a word of what agents here say, of an address or of an
/// option.
const ENGLISH: &[&str] = &[
    "the", "is", "are", "was", "not", "and", "or", "it", "you", "your", "to", "of", "with", "without",
    "question", "answer", "type", "nothing", "this", "that", "what", "has", "have", "agent", "from", "for",
    "hub", "again",
];

/// The English words in lines of ours, behind the word that begins each line.
fn english(lines: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for line in lines {
        let (word, text) = line.split_once(": ").unwrap_or(("", line));
        assert!(word.chars().all(|letter| letter.is_ascii_lowercase()), "{line}");
        let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '-');
        let known = |word: &&str| ENGLISH.contains(&word.to_lowercase().as_str());
        found.extend(words.filter(known).map(|word| format!("{word} in {line}")));
    }
    found
}

fn starts(client: Client, hints: &str, summary: &str) -> Agent {
    let said = format!(r#"{{"summary_normal":"{summary}","localization_hints":{hints}}}"#);
    let answer = client.post("/agent/v1/sessions", &said);
    assert_eq!(answer.status, 201, "{answer:?}");
    let session = answer.text("session_id");
    Agent { client, session }
}

/// Asks for a payment, with its texts in one language.
fn asks(agent: &Agent, action: &str, consequence: &str) -> String {
    let said = format!(
        r#"{{"action":"{action}","consequence":"{consequence}","summary_normal":"{action}","timeout_seconds":120,"default_decision":"reject","risk_level":"high","irreversible":true,"tool":"send","arguments":{{"amount":"5.00"}}}}"#
    );
    let answer = agent.client.post(&format!("/agent/v1/sessions/{}/confirmations", agent.session), &said);
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.text("reply_token")
}

#[test]
fn a_session_in_spanish_is_in_spanish() {
    let hub = Hub::open();
    let mut person = Person::listens(&hub.address, &["--lang", "es-MX,en", "--verbosity", "detailed"]);
    let mut lines = person.hears("Escuchando a");
    let agent = starts(hub.client(), r#"{"primary_language":"es"}"#, "Pago a Ben.");
    agent.says(r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#);
    let token = asks(&agent, "Enviar 5 euros a Ben", "El dinero sale de la cuenta.");
    lines.extend(person.hears("ask: Escriba la palabra entera"));
    for (typed, heard) in [
        ("", "ask: Enter solo no responde a nada. La pregunta 1 sigue abierta 2 minutos"),
        ("y", "y no se envió nada. Escriba la palabra entera aceptar"),
        ("s", "error: Esto no se puede deshacer, o podría hacer daño"),
        ("1", "error: Esto no se puede deshacer, o podría hacer daño"),
        ("sí 2", "error: La pregunta 2 no está abierta. No se envió nada."),
        ("estado", "status: Oye textos detallados."),
        ("repetir", "ask: Escriba la palabra entera"),
        ("detalles", "ask: Escriba la palabra entera"),
        ("más bajo", "status: Desde ahora oye textos normales."),
        ("mas alto", "status: Desde ahora oye textos detallados."),
        ("ayuda", "help: salir: deja de escuchar."),
    ] {
        person.types(typed);
        lines.extend(person.hears(heard));
    }
    person.types("Sí");
    assert!(agent.waits(&token, 30).contains(r#""decision":"accept""#));
    lines.extend(person.hears("answer: Su respuesta a la pregunta 1 vale: se puede hacer."));
    agent.says(r#"{"type":"aaep:agent.tool.invoked","tool":"send","irreversible":true,"risk_level":"high","arguments":{"amount":"5.00"},"summary_normal":"Enviando 5 euros a Ben.","tool_call_id":"call_1"}"#);
    agent.says(r#"{"type":"aaep:agent.progress.updated","progress":{"step":1,"total_steps":2}}"#);
    agent.says(
        r#"{"type":"aaep:agent.tool.completed","tool":"send","tool_call_id":"call_1","status":"success"}"#,
    );
    agent.says(r#"{"type":"aaep:agent.session.completed","summary_normal":"Ben tiene su dinero."}"#);
    lines.extend(person.hears("session: local ha terminado."));
    assert_eq!(english(&lines), Vec::<String>::new());
    for line in [
        "session: local ha empezado. Pago a Ben.",
        "agent: local está pensando.",
        "ask: Pregunta 1, de local.",
        "ask: Lo que haría: Enviar 5 euros a Ben.",
        "ask: Lo que resulta de ello: El dinero sale de la cuenta.",
        "ask: El riesgo es alto, y no se podrá deshacer nunca.",
        "ask: Tiene 2 minutos. Sin respuesta, no se hace.",
        "ask: Escriba la palabra entera aceptar o sí para permitirlo, o rechazar o no para impedirlo.",
        "answer: Usted dice sí a la pregunta 1.",
        "tool: Enviando 5 euros a Ben. Esto no se podrá deshacer nunca.",
        "progress: Paso 1 de 2.",
        "tool: La herramienta send ha terminado.",
    ] {
        assert!(lines.iter().any(|one| one == line), "{line}: {lines:#?}");
    }
    person.types("salir");
    let (rest, code) = person.ends();
    assert_eq!((english(&rest), code), (Vec::new(), 0));
}

#[test]
fn a_session_in_yoruba_is_in_yoruba() {
    let hub = Hub::open();
    let mut person = Person::listens(&hub.address, &["--lang", "yo", "--verbosity", "detailed"]);
    let mut lines = person.hears("Mo ń gbọ́");
    let agent = starts(hub.client(), r#"{"primary_language":"yo"}"#, "Mo ń fi owó ránṣẹ́.");
    let token = asks(&agent, "Fi yúrò 5 ránṣẹ́ sí Ben", "A kò lè dá a padà.");
    lines.extend(person.hears("ask: Tẹ odindi ọ̀rọ̀"));
    for (typed, heard) in [
        ("sí", "a kò sì fi ohunkóhun ránṣẹ́. Tẹ odindi ọ̀rọ̀ bẹ́ẹ̀ni"),
        ("ipo", "status: Ọ̀rọ̀ kíkún lo ń gbọ́."),
        ("tún sọ", "ask: Tẹ odindi ọ̀rọ̀"),
        ("ìrànlọ́wọ́", "help: jáde: ó parí gbígbọ́."),
    ] {
        person.types(typed);
        lines.extend(person.hears(heard));
    }
    person.types("rara");
    assert!(agent.waits(&token, 30).contains(r#""decision":"reject""#));
    lines.extend(person.hears("answer: Ìdáhùn rẹ sí ìbéèrè 1 ti wọlé: a kò ní ṣe é."));
    let token = asks(&agent, "Fi yúrò 6 ránṣẹ́ sí Ben", "A kò lè dá a padà.");
    lines.extend(person.hears("ask: Tẹ odindi ọ̀rọ̀"));
    person.types("beeni");
    assert!(agent.waits(&token, 30).contains(r#""decision":"accept""#));
    lines.extend(person.hears("answer: Ìdáhùn rẹ sí ìbéèrè 2 ti wọlé: a lè ṣe é."));
    assert_eq!(english(&lines), Vec::<String>::new());
    person.types("jade");
    assert_eq!(person.ends().1, 0);
}

#[test]
fn the_end_of_a_connection_is_told_in_the_persons_language() {
    let gone = {
        let hub = Hub::open();
        let mut person = Person::listens(&hub.address, &["--lang", "es"]);
        person.hears("Escuchando a");
        drop(hub);
        let mut lines = person.hears("Se intenta de nuevo hasta que funcione.");
        person.types("parar");
        lines.extend(person.hears("error: Ningún agente está trabajando."));
        lines
    };
    assert_eq!(english(&gone), Vec::<String>::new());
    let nowhere = Person::listens("127.0.0.1:1", &["--lang", "es"]);
    let (lines, code) = nowhere.ends();
    assert_eq!(
        (lines.as_slice(), code),
        (&["sayso: no se puede llegar a http://127.0.0.1:1: allí no escucha nadie".to_owned()][..], 2)
    );
}
