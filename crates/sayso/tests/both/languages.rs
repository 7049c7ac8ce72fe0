//! One thing in several languages: everybody hears their own.

use sayso::{
    Action, Answer, Cancellation, Clarified, Failure, HandOff, Output, Progress, Question, Risk, State,
    StateChange, Target, Words,
};
use serde_json::{Value, json};

use crate::support::stage::{Person, Stage};

fn rain() -> Words {
    Words::new("It rains.").terse("Rain.").in_language("es", Words::new("Llueve.").terse("Lluvia."))
}

fn of<'e>(heard: &'e [Value], kind: &str) -> &'e Value {
    heard.iter().find(|event| event["type"] == format!("aaep:agent.{kind}")).unwrap()
}

fn language(event: &Value) -> &Value {
    &event["localization_hints"]["primary_language"]
}

pub(crate) async fn everybody_hears_their_own_language(mut stage: Stage) {
    let mut ana = Person::listen_in(&stage.address(), "es-MX").await;
    let begin = stage.hub.session("Weather, please.");
    let words = Words::new("Looking at the sky.")
        .in_language("es", "Mirando el cielo.")
        .in_language("pt-BR", "Olhando.");
    let session = begin.says(words).start().await.unwrap();
    let tool = session.tool("look").says(rain()).with("Oslo").start().await.unwrap();
    // A length that the other language lacks is said in its normal words.
    let done = Words::new("Seen.").terse("Done.").detailed("All was seen.").in_language("es", "Visto.");
    tool.done(done).await.unwrap();
    session.think("Only in English.").await.unwrap();
    session.fail(Failure::new(rain()).hint("Wait.")).await.unwrap();
    let (ben, ana) =
        tokio::join!(stage.person.hears_until("session.errored"), ana.hears_until("session.errored"));
    for (kind, english, spanish) in [
        ("session.started", "Looking at the sky.", "Mirando el cielo."),
        ("tool.invoked", "It rains.", "Llueve."),
        ("tool.completed", "Seen.", "Visto."),
        ("session.errored", "It rains.", "Llueve."),
    ] {
        let (ben, ana) = (of(&ben, kind), of(&ana, kind));
        assert_eq!((&ben["summary_normal"], language(ben)), (&json!(english), &json!("en")), "{kind}");
        assert_eq!((&ana["summary_normal"], language(ana)), (&json!(spanish), &json!("es")), "{kind}");
    }
    assert_eq!(of(&ben, "tool.invoked")["summary_terse"], "Rain.");
    assert_eq!(of(&ana, "tool.invoked")["summary_terse"], "Lluvia.");
    let seen = of(&ana, "tool.completed");
    assert_eq!((&seen["summary_terse"], &seen["summary_detailed"]), (&json!("Visto."), &json!("Visto.")));
    assert_eq!(of(&ben, "session.started")["summary_normal_pt_br"], "Olhando.");
    let thought = ana.iter().find(|event| event["summary_normal"] == "Only in English.").unwrap();
    assert_eq!(language(thought), "en", "what has no other words keeps its own");
}

pub(crate) async fn a_question_is_heard_in_a_language_that_all_of_it_is_in(mut stage: Stage) {
    let mut ana = Person::listen_in(&stage.address(), "es").await;
    let session = stage.session().await;
    let says = || Words::new("Send 5 euro to Ben.").in_language("es", "Enviar 5 euros a Ben.");
    let gone = Words::new("It is gone.").in_language("es", "Se va.");
    let whole = Action::new("send", r#"{"to":"Ben"}"#).says(says()).consequence(gone).irreversible();
    let half = Action::new("send", r#"{"to":"Ben"}"#).says(says()).consequence("It is gone.");
    let asks = async {
        let Answer::Granted(granted) = session.ask(whole).await.unwrap() else { panic!("refused") };
        session.begin(granted).await.unwrap().done("Sent.").await.unwrap();
        assert!(matches!(session.ask(half).await.unwrap(), Answer::Refused(_)));
    };
    let answers = async {
        let asked = ana.hears_until("awaiting.confirmation").await.pop().unwrap();
        assert_eq!(asked["action"], "Enviar 5 euros a Ben.");
        assert_eq!(asked["consequence"], "Se va.");
        assert_eq!(asked["summary_normal"], "Enviar 5 euros a Ben. Se va.");
        assert_eq!(language(&asked), "es");
        ana.answers(&asked, "accept").await;
        let called = ana.hears_until("tool.invoked").await.pop().unwrap();
        assert_eq!(called["summary_normal"], "Enviar 5 euros a Ben.");
        let asked = ana.hears_until("awaiting.confirmation").await.pop().unwrap();
        assert_eq!((&asked["action"], language(&asked)), (&json!("Send 5 euro to Ben."), &json!("en")));
        ana.answers(&asked, "reject").await;
    };
    tokio::join!(asks, answers);
    let asked = stage.person.hears_until("awaiting.confirmation").await.pop().unwrap();
    assert_eq!(asked["summary_normal"], "Send 5 euro to Ben. It is gone.");
    session.finish("Done.").await.unwrap();
}

pub(crate) async fn what_is_being_done_is_told_in_its_own_words(mut stage: Stage) {
    let mut ana = Person::listen_in(&stage.address(), "es").await;
    let session = stage.session().await;
    let both = |english: &str, spanish: &str| Words::new(english).in_language("es", spanish);
    let doing = Words::new("Booking it.")
        .terse("Booking.")
        .in_language("es", Words::new("Reservándola.").terse("Reserva."));
    let action = Action::new("book", "{}")
        .says(both("Book the room.", "Reservar la sala."))
        .consequence(both("It is kept for you.", "Queda reservada."))
        .summary(both("May I?", "¿Puedo?").terse("Book?"))
        .doing(doing)
        .risk(Risk::Medium)
        .reversible_with_effort();
    let asks = async {
        let Answer::Granted(granted) = session.ask(action).await.unwrap() else { panic!("refused") };
        session.begin(granted).await.unwrap().done(both("Booked.", "Reservada.")).await.unwrap();
    };
    let answers = async {
        let asked = ana.hears_until("awaiting.confirmation").await.pop().unwrap();
        assert_eq!(
            (&asked["summary_normal"], &asked["summary_terse"]),
            (&json!("¿Puedo?"), &json!("¿Puedo?"))
        );
        assert_eq!(asked["reversibility"], "reversible_with_effort");
        ana.answers(&asked, "accept").await;
        let called = ana.hears_until("tool.invoked").await.pop().unwrap();
        assert_eq!(
            (&called["summary_normal"], &called["summary_terse"]),
            (&json!("Reservándola."), &json!("Reserva."))
        );
        let done = ana.hears_until("tool.completed").await.pop().unwrap();
        assert_eq!(done["summary_normal"], "Reservada.");
    };
    tokio::join!(asks, answers);
    session.finish("Done.").await.unwrap();
}

pub(crate) async fn what_was_meant_is_asked_in_ones_own_language(mut stage: Stage) {
    let mut ana = Person::listen_in(&stage.address(), "es").await;
    let session = stage.session().await;
    let both = |english: &str, spanish: &str| Words::new(english).in_language("es", spanish);
    let when = Question::new(both("When?", "¿Cuándo?").terse("When?"))
        .because(both("Both are free.", "Ambos están libres."))
        .choice("now", both("At once", "Ahora mismo"))
        .choice("ben", "Ben")
        .or_in_words();
    let half = Question::new(both("Which?", "¿Cuál?"))
        .choice("a", both("This", "Este"))
        .choice("b", Words::new("That").in_language("yo", "Èyí"));
    let asks = async {
        assert_eq!(session.clarify(when).await.unwrap(), Clarified::Text("now".to_owned()));
        assert_eq!(session.clarify(half).await.unwrap(), Clarified::Text("b".to_owned()));
    };
    let answers = async {
        let asked = ana.hears_until("awaiting.clarification").await.pop().unwrap();
        assert_eq!((&asked["question"], &asked["summary_normal"]), (&json!("¿Cuándo?"), &json!("¿Cuándo?")));
        assert_eq!((&asked["context"], language(&asked)), (&json!("Ambos están libres."), &json!("es")));
        let choices = json!([{"value": "now", "label": "Ahora mismo"}, {"value": "ben", "label": "Ben"}]);
        assert_eq!(
            (&asked["choices"], &asked["accepted_response_kinds"]),
            (&choices, &json!(["freetext", "multiple_choice"]))
        );
        ana.clarifies(&asked, json!("now")).await;
        let asked = ana.hears_until("awaiting.clarification").await.pop().unwrap();
        assert_eq!(
            (&asked["question"], language(&asked)),
            (&json!("Which?"), &json!("en")),
            "one choice is not in Spanish"
        );
        ana.clarifies(&asked, json!("b")).await;
    };
    tokio::join!(asks, answers);
    let asked = stage.person.hears_until("awaiting.clarification").await.pop().unwrap();
    assert_eq!(
        asked["choices"],
        json!([{"value": "now", "label": "At once"}, {"value": "ben", "label": "Ben"}])
    );
    session.finish("Done.").await.unwrap();
}

pub(crate) async fn a_tools_failure_a_hand_off_and_progress_are_told_in_ones_own_language(mut stage: Stage) {
    let mut ana = Person::listen_in(&stage.address(), "es").await;
    let session = stage.session().await;
    let both = |english: &str, spanish: &str| Words::new(english).in_language("es", spanish);
    let tool = session
        .tool("look")
        .says(both("Looking.", "Mirando."))
        .with(both("far", "lejos"))
        .start()
        .await
        .unwrap();
    session.progress(Progress::says(both("Half.", "La mitad.")).percent(50.0)).await.unwrap();
    let why =
        both("The key sk-abc123def456ghi789jkl does not fit.", "La llave sk-abc123def456ghi789jkl no entra.");
    tool.failed(why).await.unwrap();
    let tool = session.tool("see").says(both("Looking again.", "Mirando otra vez.")).start().await.unwrap();
    tool.failed_as(both("Nothing was seen.", "No se vio nada."), both("Fog.", "Niebla.")).await.unwrap();
    session.hand_off(HandOff::to(Target::Human, both("I see nothing.", "No veo nada."))).await.unwrap();
    let other = HandOff::to(Target::SpecialistAgent, both("Fog.", "Niebla."))
        .summary(both("A seer goes on.", "Sigue quien vea."));
    session.hand_off(other.urgency(Risk::Low)).await.unwrap();
    session.fail(Failure::new(both("Fog.", "Niebla.")).hint(both("Wait.", "Espere."))).await.unwrap();
    let heard = ana.hears_until("session.errored").await;
    let all = |kind: &str| {
        heard.iter().filter(|event| event["type"] == format!("aaep:agent.{kind}")).collect::<Vec<_>>()
    };
    assert_eq!(all("tool.invoked")[0]["args_summary"], "lejos");
    let half = all("progress.updated")[0];
    assert_eq!(
        (&half["summary_normal"], &half["progress"]["description"]),
        (&json!("La mitad."), &json!("La mitad."))
    );
    let failed = all("tool.completed");
    let why = failed[0]["error_message"].as_str().unwrap();
    assert!(why.starts_with("La llave") && !why.contains("sk-abc123"), "{why}");
    assert_eq!(
        (&failed[0]["summary_normal"], failed[0].to_string().contains("sk-abc")),
        (&json!(why), false)
    );
    assert_eq!(
        (&failed[1]["summary_normal"], &failed[1]["error_message"]),
        (&json!("No se vio nada."), &json!("Niebla."))
    );
    let handed = all("handoff.requested");
    assert_eq!(
        (&handed[0]["reason"], &handed[0]["summary_normal"]),
        (&json!("No veo nada."), &json!("No veo nada."))
    );
    assert_eq!(
        (&handed[1]["reason"], &handed[1]["summary_normal"]),
        (&json!("Niebla."), &json!("Sigue quien vea."))
    );
    assert_eq!(handed[1]["urgency_for_handoff"], "low");
    assert_eq!(of(&heard, "session.errored")["remediation_hint"], "Espere.");
}

pub(crate) async fn an_output_says_its_language(mut stage: Stage) {
    let session = stage.session().await;
    session.output("In Spanish that ").await.unwrap();
    session.output("is:").await.unwrap();
    session.output(Output::new("Llueve ").language("es")).await.unwrap();
    session.output(Output::whole("en Oslo.").language("es")).await.unwrap();
    session.output(Output::whole("And so on.")).await.unwrap();
    assert!(session.output(Output::whole("?").language("no tag at all")).await.is_err());
    session.finish("Said.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    let mut outputs: Vec<(Value, Option<Value>, String)> = Vec::new();
    for event in heard.iter().filter(|event| event["type"] == "aaep:agent.output.streaming") {
        let (id, chunk) = (event["output_id"].clone(), event["chunk"].as_str().unwrap());
        match outputs.iter_mut().find(|(known, ..)| *known == id) {
            Some((.., text)) => text.push_str(chunk),
            None => outputs.push((id, event.get("language").cloned(), chunk.to_owned())),
        }
    }
    let said: Vec<_> = outputs.iter().map(|(_, language, text)| (language.clone(), text.as_str())).collect();
    let spanish = Some(json!("es"));
    assert_eq!(said, [(None, "In Spanish that is:"), (spanish, "Llueve en Oslo."), (None, "And so on.")]);
}

pub(crate) async fn the_librarys_own_words_do_not_pass_for_another_language(mut stage: Stage) {
    let session = stage.hub.session("¿Qué tiempo hace?").language("es").start().await.unwrap();
    let run = session.tool("mirar").says("Mirando.").run(async { Ok::<_, std::io::Error>(()) });
    run.await.unwrap();
    let tool = session.tool("mirar").says("Mirando.").start().await.unwrap();
    tool.failed("Hay niebla.").await.unwrap();
    let tool = session.tool("mirar").says("Mirando.").start().await.unwrap();
    tool.timed_out().await.unwrap();
    session.finish("No se sabe.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    let ends: Vec<_> = heard.iter().filter(|event| event["type"] == "aaep:agent.tool.completed").collect();
    let said =
        |at: usize| (ends[at]["summary_normal"].as_str().unwrap(), language(ends[at]).as_str().unwrap());
    assert_eq!(said(0), ("Mirar is done.", "en"));
    assert_eq!(said(1), ("Hay niebla.", "es"));
    assert_eq!(said(2), ("Mirar took too long.", "en"));
}

pub(crate) async fn a_session_says_its_languages_and_the_agents_name(mut stage: Stage) {
    let words = Words::new("I will look.").in_language("es", "Voy a mirar.").in_language("EN", "Twice.");
    let session = stage.hub.session("My secret wish.").says_only(words).start().await.unwrap();
    let started = stage.person.hears().await;
    assert_eq!(started["localization_hints"]["available_languages"], json!(["en", "es"]));
    assert!(!started.to_string().contains("secret wish"), "{started}");
    assert_eq!(started["producer"]["agent_name"], "Your bank");
    assert!(started["producer"]["agent_id"].is_string(), "the hub knows who it is: {started}");
    session.finish("Done.").await.unwrap();
    stage.person.hears_until("session.completed").await;
    let session = stage.hub.session("ما الطقس؟").language("ar").start().await.unwrap();
    session.finish("إنها تمطر.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    let hints = &of(&heard, "session.started")["localization_hints"];
    assert_eq!(hints, &json!({"primary_language": "ar", "text_direction": "rtl"}));
}

pub(crate) async fn states_are_told_in_words_of_the_agent(mut stage: Stage) {
    let session = stage.session().await;
    session.enter(StateChange::to(State::CallingTool, "Asking around.")).await.unwrap();
    session.tool("look").start().await.unwrap().done("Seen.").await.unwrap();
    session.enter(StateChange::to(State::WritingOutput, "The answer follows.")).await.unwrap();
    session.output(Output::whole("It rains.")).await.unwrap();
    session.output("It pours.").await.unwrap();
    session.enter(StateChange::to(State::HandingOff, "Handing over.")).await.unwrap();
    session.hand_off(HandOff::to(Target::Human, "Ask a human.")).await.unwrap();
    session.tool("look").start().await.unwrap().done("Seen.").await.unwrap();
    session.finish("Done.").await.unwrap();
    let heard = stage.person.hears_until("session.completed").await;
    let told = |event: &Value| match event["to_state"].as_str() {
        // The hub has words of its own for what it says itself.
        Some(state) if event["extensions"]["sayso"]["words"] == "hub" => format!("{state}: hub"),
        Some(state) => format!("{state}: {}", event["summary_normal"].as_str().unwrap_or_default()),
        None => event["type"].as_str().unwrap().trim_start_matches("aaep:agent.").to_owned(),
    };
    let told: Vec<_> = heard.iter().map(told).collect();
    let wanted = [
        "calling_tool: Asking around.",
        "tool.invoked",
        "tool.completed",
        "writing_output: The answer follows.",
        "output.streaming",
        "output.streaming",
        "handing_off: Handing over.",
        "handoff.requested",
        // By themselves.
        "calling_tool: hub",
        "tool.invoked",
        "tool.completed",
        "thinking: hub",
        "session.completed",
    ];
    assert_eq!(told, wanted, "what is entered in words is left by words");
    let thinks = heard.iter().find(|event| event["to_state"] == "thinking").unwrap();
    assert_eq!(thinks["summary_normal_es"], "El agente está pensando.");
}

pub(crate) async fn who_asked_for_a_cancellation_is_told_so(mut stage: Stage) {
    let words = Words::new("Nothing was bought.").in_language("es", "No se compró nada.");
    stage.session().await.cancel(words.clone()).await.unwrap();
    let own = stage.person.hears_until("session.cancelled").await.pop().unwrap();
    assert_eq!(
        (&own["cancelled_by"], &own["summary_normal_es"]),
        (&json!("producer"), &json!("No se compró nada."))
    );
    stage.session().await.cancel(Cancellation::new(words).at_request()).await.unwrap();
    let asked = stage.person.hears_until("session.cancelled").await.pop().unwrap();
    assert_eq!((&asked["cancelled_by"], &asked["cancellation_reason"]), (&json!("user"), &json!("asked_to")));
}

pub(crate) async fn what_is_no_language_is_refused(mut stage: Stage) {
    let session = stage.session().await;
    let refused = session.think(Words::new("Thinking.").in_language("no tag at all", "?")).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("summary_normal_no tag at all")));
    session.finish("Done.").await.unwrap();
}
