//! Localized texts: each listener receives its own language.

use sayso::{
    Action, Answer, Cancellation, ClarificationAnswer, ClarificationRequest, Failure, HandOff, HandOffTarget,
    LocalizedText, OutputText, ProgressUpdate, ReportedState, Risk, StateChange,
};
use serde_json::{Value, json};

use crate::support::fixture::{HubFixture, TestListener};

fn rain() -> LocalizedText {
    LocalizedText::new("It rains.")
        .terse("Rain.")
        .in_language("es", LocalizedText::new("Llueve.").terse("Lluvia."))
}

fn find_event<'e>(events: &'e [Value], kind: &str) -> &'e Value {
    events.iter().find(|event| event["type"] == format!("aaep:agent.{kind}")).unwrap()
}

fn language(event: &Value) -> &Value {
    &event["localization_hints"]["primary_language"]
}

pub(crate) async fn each_listener_receives_its_own_language(mut fixture: HubFixture) {
    let mut ana = TestListener::listen_in_language(&fixture.address(), "es-MX").await;
    let builder = fixture.hub.session("Weather, please.");
    let text = LocalizedText::new("Looking at the sky.")
        .in_language("es", "Mirando el cielo.")
        .in_language("pt-BR", "Olhando.");
    let session = builder.says(text).start().await.unwrap();
    let tool = session.tool("look").says(rain()).args_summary("Oslo").start().await.unwrap();
    // If a translation has no terse or detailed summary, its normal summary is used.
    let done =
        LocalizedText::new("Seen.").terse("Done.").detailed("All was seen.").in_language("es", "Visto.");
    tool.succeed(done).await.unwrap();
    session.think("Only in English.").await.unwrap();
    session.fail(Failure::new(rain()).remediation_hint("Wait.")).await.unwrap();
    let (ben, ana) =
        tokio::join!(fixture.listener.events_until("session.errored"), ana.events_until("session.errored"));
    for (kind, english, spanish) in [
        ("session.started", "Looking at the sky.", "Mirando el cielo."),
        ("tool.invoked", "It rains.", "Llueve."),
        ("tool.completed", "Seen.", "Visto."),
        ("session.errored", "It rains.", "Llueve."),
    ] {
        let (ben, ana) = (find_event(&ben, kind), find_event(&ana, kind));
        assert_eq!((&ben["summary_normal"], language(ben)), (&json!(english), &json!("en")), "{kind}");
        assert_eq!((&ana["summary_normal"], language(ana)), (&json!(spanish), &json!("es")), "{kind}");
    }
    assert_eq!(find_event(&ben, "tool.invoked")["summary_terse"], "Rain.");
    assert_eq!(find_event(&ana, "tool.invoked")["summary_terse"], "Lluvia.");
    let seen = find_event(&ana, "tool.completed");
    assert_eq!((&seen["summary_terse"], &seen["summary_detailed"]), (&json!("Visto."), &json!("Visto.")));
    assert_eq!(find_event(&ben, "session.started")["summary_normal_pt_br"], "Olhando.");
    let thought = ana.iter().find(|event| event["summary_normal"] == "Only in English.").unwrap();
    assert_eq!(language(thought), "en", "a text without translations keeps its language");
}

pub(crate) async fn a_question_uses_a_language_that_covers_all_its_texts(mut fixture: HubFixture) {
    let mut ana = TestListener::listen_in_language(&fixture.address(), "es").await;
    let session = fixture.session().await;
    let action_text =
        || LocalizedText::new("Send 5 euros to Ben.").in_language("es", "Enviar 5 euros a Ben.");
    let consequence = LocalizedText::new("It is gone.").in_language("es", "Se va.");
    let complete =
        Action::new("send", r#"{"to":"Ben"}"#).says(action_text()).consequence(consequence).irreversible();
    let partial = Action::new("send", r#"{"to":"Ben"}"#).says(action_text()).consequence("It is gone.");
    let asking = async {
        let Answer::Granted(granted) = session.ask(complete).await.unwrap() else { panic!("refused") };
        session.start_call(granted).await.unwrap().succeed("Sent.").await.unwrap();
        assert!(matches!(session.ask(partial).await.unwrap(), Answer::Refused(_)));
    };
    let answering = async {
        let question = ana.events_until("awaiting.confirmation").await.pop().unwrap();
        assert_eq!(question["action"], "Enviar 5 euros a Ben.");
        assert_eq!(question["consequence"], "Se va.");
        assert_eq!(question["summary_normal"], "Enviar 5 euros a Ben. Se va.");
        assert_eq!(language(&question), "es");
        ana.decide(&question, "accept").await;
        let called = ana.events_until("tool.invoked").await.pop().unwrap();
        assert_eq!(called["summary_normal"], "Enviar 5 euros a Ben.");
        let question = ana.events_until("awaiting.confirmation").await.pop().unwrap();
        assert_eq!(
            (&question["action"], language(&question)),
            (&json!("Send 5 euros to Ben."), &json!("en"))
        );
        ana.decide(&question, "reject").await;
    };
    tokio::join!(asking, answering);
    let question = fixture.listener.events_until("awaiting.confirmation").await.pop().unwrap();
    assert_eq!(question["summary_normal"], "Send 5 euros to Ben. It is gone.");
    session.finish("Done.").await.unwrap();
}

pub(crate) async fn the_invocation_summary_announces_the_call(mut fixture: HubFixture) {
    let mut ana = TestListener::listen_in_language(&fixture.address(), "es").await;
    let session = fixture.session().await;
    let localized = |english: &str, spanish: &str| LocalizedText::new(english).in_language("es", spanish);
    let invocation_summary = LocalizedText::new("Booking it.")
        .terse("Booking.")
        .in_language("es", LocalizedText::new("Reservándola.").terse("Reserva."));
    let action = Action::new("book", "{}")
        .says(localized("Book the room.", "Reservar la sala."))
        .consequence(localized("It is kept for you.", "Queda reservada."))
        .summary(localized("May I?", "¿Puedo?").terse("Book?"))
        .invocation_summary(invocation_summary)
        .risk(Risk::Medium)
        .reversible_with_effort();
    let asking = async {
        let Answer::Granted(granted) = session.ask(action).await.unwrap() else { panic!("refused") };
        session.start_call(granted).await.unwrap().succeed(localized("Booked.", "Reservada.")).await.unwrap();
    };
    let answering = async {
        let question = ana.events_until("awaiting.confirmation").await.pop().unwrap();
        assert_eq!(
            (&question["summary_normal"], &question["summary_terse"]),
            (&json!("¿Puedo?"), &json!("¿Puedo?"))
        );
        assert_eq!(question["reversibility"], "reversible_with_effort");
        ana.decide(&question, "accept").await;
        let called = ana.events_until("tool.invoked").await.pop().unwrap();
        assert_eq!(
            (&called["summary_normal"], &called["summary_terse"]),
            (&json!("Reservándola."), &json!("Reserva."))
        );
        let done = ana.events_until("tool.completed").await.pop().unwrap();
        assert_eq!(done["summary_normal"], "Reservada.");
    };
    tokio::join!(asking, answering);
    session.finish("Done.").await.unwrap();
}

pub(crate) async fn clarifications_are_localized(mut fixture: HubFixture) {
    let mut ana = TestListener::listen_in_language(&fixture.address(), "es").await;
    let session = fixture.session().await;
    let localized = |english: &str, spanish: &str| LocalizedText::new(english).in_language("es", spanish);
    let when = ClarificationRequest::new(localized("When?", "¿Cuándo?").terse("When?"))
        .context(localized("Both are free.", "Ambos están libres."))
        .choice("now", localized("At once", "Ahora mismo"))
        .choice("ben", "Ben")
        .accept_free_text();
    let partial = ClarificationRequest::new(localized("Which?", "¿Cuál?"))
        .choice("a", localized("This", "Este"))
        .choice("b", LocalizedText::new("That").in_language("yo", "Èyí"));
    let asking = async {
        assert_eq!(session.clarify(when).await.unwrap(), ClarificationAnswer::Text("now".to_owned()));
        assert_eq!(session.clarify(partial).await.unwrap(), ClarificationAnswer::Text("b".to_owned()));
    };
    let answering = async {
        let question = ana.events_until("awaiting.clarification").await.pop().unwrap();
        assert_eq!(
            (&question["question"], &question["summary_normal"]),
            (&json!("¿Cuándo?"), &json!("¿Cuándo?"))
        );
        assert_eq!(
            (&question["context"], language(&question)),
            (&json!("Ambos están libres."), &json!("es"))
        );
        let choices = json!([{"value": "now", "label": "Ahora mismo"}, {"value": "ben", "label": "Ben"}]);
        assert_eq!(
            (&question["choices"], &question["accepted_response_kinds"]),
            (&choices, &json!(["freetext", "multiple_choice"]))
        );
        ana.clarify(&question, json!("now")).await;
        let question = ana.events_until("awaiting.clarification").await.pop().unwrap();
        assert_eq!(
            (&question["question"], language(&question)),
            (&json!("Which?"), &json!("en")),
            "one choice is not in Spanish"
        );
        ana.clarify(&question, json!("b")).await;
    };
    tokio::join!(asking, answering);
    let question = fixture.listener.events_until("awaiting.clarification").await.pop().unwrap();
    assert_eq!(
        question["choices"],
        json!([{"value": "now", "label": "At once"}, {"value": "ben", "label": "Ben"}])
    );
    session.finish("Done.").await.unwrap();
}

pub(crate) async fn tool_failures_hand_offs_and_progress_are_localized(mut fixture: HubFixture) {
    let mut ana = TestListener::listen_in_language(&fixture.address(), "es").await;
    let session = fixture.session().await;
    let localized = |english: &str, spanish: &str| LocalizedText::new(english).in_language("es", spanish);
    let tool = session
        .tool("look")
        .says(localized("Looking.", "Mirando."))
        .args_summary(localized("far", "lejos"))
        .start()
        .await
        .unwrap();
    session.progress(ProgressUpdate::new(localized("Half.", "La mitad.")).percent(50.0)).await.unwrap();
    let reason = localized(
        "The key sk-abc123def456ghi789jkl does not fit.",
        "La llave sk-abc123def456ghi789jkl no entra.",
    );
    tool.fail(reason).await.unwrap();
    let tool =
        session.tool("see").says(localized("Looking again.", "Mirando otra vez.")).start().await.unwrap();
    tool.fail_with_summary(localized("Nothing was seen.", "No se vio nada."), localized("Fog.", "Niebla."))
        .await
        .unwrap();
    session
        .announce_hand_off(HandOff::new(HandOffTarget::Human, localized("I see nothing.", "No veo nada.")))
        .await
        .unwrap();
    let other = HandOff::new(HandOffTarget::SpecialistAgent, localized("Fog.", "Niebla."))
        .summary(localized("Somebody else takes over.", "Sigue otra persona."));
    session.announce_hand_off(other.urgency(Risk::Low)).await.unwrap();
    session
        .fail(Failure::new(localized("Fog.", "Niebla.")).remediation_hint(localized("Wait.", "Espere.")))
        .await
        .unwrap();
    let events = ana.events_until("session.errored").await;
    let all = |kind: &str| {
        events.iter().filter(|event| event["type"] == format!("aaep:agent.{kind}")).collect::<Vec<_>>()
    };
    assert_eq!(all("tool.invoked")[0]["args_summary"], "lejos");
    let progress = all("progress.updated")[0];
    assert_eq!(
        (&progress["summary_normal"], &progress["progress"]["description"]),
        (&json!("La mitad."), &json!("La mitad."))
    );
    let failed = all("tool.completed");
    let message = failed[0]["error_message"].as_str().unwrap();
    assert!(message.starts_with("La llave") && !message.contains("sk-abc123"), "{message}");
    assert_eq!(
        (&failed[0]["summary_normal"], failed[0].to_string().contains("sk-abc")),
        (&json!(message), false)
    );
    assert_eq!(
        (&failed[1]["summary_normal"], &failed[1]["error_message"]),
        (&json!("No se vio nada."), &json!("Niebla."))
    );
    let hand_offs = all("handoff.requested");
    assert_eq!(
        (&hand_offs[0]["reason"], &hand_offs[0]["summary_normal"]),
        (&json!("No veo nada."), &json!("No veo nada."))
    );
    assert_eq!(
        (&hand_offs[1]["reason"], &hand_offs[1]["summary_normal"]),
        (&json!("Niebla."), &json!("Sigue otra persona."))
    );
    assert_eq!(hand_offs[1]["urgency_for_handoff"], "low");
    assert_eq!(find_event(&events, "session.errored")["remediation_hint"], "Espere.");
}

pub(crate) async fn an_output_carries_its_language(mut fixture: HubFixture) {
    let session = fixture.session().await;
    session.output("In Spanish that ").await.unwrap();
    session.output("is:").await.unwrap();
    session.output(OutputText::new("Llueve ").language("es")).await.unwrap();
    session.output(OutputText::complete("en Oslo.").language("es")).await.unwrap();
    session.output(OutputText::complete("And so on.")).await.unwrap();
    assert!(session.output(OutputText::complete("?").language("no tag at all")).await.is_err());
    session.finish("Said.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let mut outputs: Vec<(Value, Option<Value>, String)> = Vec::new();
    for event in events.iter().filter(|event| event["type"] == "aaep:agent.output.streaming") {
        let (id, chunk) = (event["output_id"].clone(), event["chunk"].as_str().unwrap());
        match outputs.iter_mut().find(|(known, ..)| *known == id) {
            Some((.., text)) => text.push_str(chunk),
            None => outputs.push((id, event.get("language").cloned(), chunk.to_owned())),
        }
    }
    let language_and_text: Vec<_> =
        outputs.iter().map(|(_, language, text)| (language.clone(), text.as_str())).collect();
    let spanish = Some(json!("es"));
    assert_eq!(
        language_and_text,
        [(None, "In Spanish that is:"), (spanish, "Llueve en Oslo."), (None, "And so on.")]
    );
}

pub(crate) async fn the_librarys_own_texts_are_tagged_as_english(mut fixture: HubFixture) {
    let session = fixture.hub.session("¿Qué tiempo hace?").language("es").start().await.unwrap();
    let run = session.tool("mirar").says("Mirando.").run(async { Ok::<_, std::io::Error>(()) });
    run.await.unwrap();
    let tool = session.tool("mirar").says("Mirando.").start().await.unwrap();
    tool.fail("Hay niebla.").await.unwrap();
    let tool = session.tool("mirar").says("Mirando.").start().await.unwrap();
    tool.time_out().await.unwrap();
    session.finish("No se sabe.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let ends: Vec<_> = events.iter().filter(|event| event["type"] == "aaep:agent.tool.completed").collect();
    let summary_and_language =
        |at: usize| (ends[at]["summary_normal"].as_str().unwrap(), language(ends[at]).as_str().unwrap());
    assert_eq!(summary_and_language(0), ("Mirar has finished.", "en"));
    assert_eq!(summary_and_language(1), ("Hay niebla.", "es"));
    assert_eq!(summary_and_language(2), ("Mirar took too long.", "en"));
}

pub(crate) async fn a_session_reports_its_languages_and_the_agent_name(mut fixture: HubFixture) {
    let text = LocalizedText::new("I will look.")
        .in_language("es", "Voy a mirar.")
        .in_language("EN", "English again.");
    let session =
        fixture.hub.session("My secret wish.").summary_instead_of_request(text).start().await.unwrap();
    let started = fixture.listener.next_event().await;
    assert_eq!(started["localization_hints"]["available_languages"], json!(["en", "es"]));
    assert!(!started.to_string().contains("secret wish"), "{started}");
    assert_eq!(started["producer"]["agent_name"], "Your bank");
    assert!(started["producer"]["agent_id"].is_string(), "the hub adds the agent id: {started}");
    session.finish("Done.").await.unwrap();
    fixture.listener.events_until("session.completed").await;
    let session = fixture.hub.session("ما الطقس؟").language("ar").start().await.unwrap();
    session.finish("إنها تمطر.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let hints = &find_event(&events, "session.started")["localization_hints"];
    assert_eq!(hints, &json!({"primary_language": "ar", "text_direction": "rtl"}));
}

pub(crate) async fn reported_states_use_the_agents_summaries(mut fixture: HubFixture) {
    let session = fixture.session().await;
    session.change_state(StateChange::new(ReportedState::CallingTool, "Asking around.")).await.unwrap();
    session.tool("look").start().await.unwrap().succeed("Seen.").await.unwrap();
    session
        .change_state(StateChange::new(ReportedState::WritingOutput, "The answer follows."))
        .await
        .unwrap();
    session.output(OutputText::complete("It rains.")).await.unwrap();
    session.output("It pours.").await.unwrap();
    session.change_state(StateChange::new(ReportedState::HandingOff, "Handing over.")).await.unwrap();
    session.announce_hand_off(HandOff::new(HandOffTarget::Human, "Ask a human.")).await.unwrap();
    session.tool("look").start().await.unwrap().succeed("Seen.").await.unwrap();
    session.finish("Done.").await.unwrap();
    let events = fixture.listener.events_until("session.completed").await;
    let describe = |event: &Value| match event["to_state"].as_str() {
        // The hub writes the summaries of its own state changes.
        Some(state) if event["extensions"]["sayso"]["text_by"] == "hub" => format!("{state}: hub"),
        Some(state) => format!("{state}: {}", event["summary_normal"].as_str().unwrap_or_default()),
        None => event["type"].as_str().unwrap().trim_start_matches("aaep:agent.").to_owned(),
    };
    let descriptions: Vec<_> = events.iter().map(describe).collect();
    let expected = [
        "calling_tool: Asking around.",
        "tool.invoked",
        "tool.completed",
        "writing_output: The answer follows.",
        "output.streaming",
        "output.streaming",
        "handing_off: Handing over.",
        "handoff.requested",
        // State changes of the hub.
        "calling_tool: hub",
        "tool.invoked",
        "tool.completed",
        "thinking: hub",
        "session.completed",
    ];
    assert_eq!(descriptions, expected, "the hub adds state changes only where the agent reported none");
    let thinking = events.iter().find(|event| event["to_state"] == "thinking").unwrap();
    assert_eq!(thinking["summary_normal_es"], "El agente está pensando.");
}

pub(crate) async fn a_cancellation_reports_who_requested_it(mut fixture: HubFixture) {
    let text = LocalizedText::new("Nothing was bought.").in_language("es", "No se compró nada.");
    fixture.session().await.cancel(text.clone()).await.unwrap();
    let by_agent = fixture.listener.events_until("session.cancelled").await.pop().unwrap();
    assert_eq!(
        (&by_agent["cancelled_by"], &by_agent["summary_normal_es"]),
        (&json!("producer"), &json!("No se compró nada."))
    );
    fixture.session().await.cancel(Cancellation::new(text).requested_by_user()).await.unwrap();
    let by_user = fixture.listener.events_until("session.cancelled").await.pop().unwrap();
    assert_eq!(
        (&by_user["cancelled_by"], &by_user["cancellation_reason"]),
        (&json!("user"), &json!("user_requested"))
    );
}

pub(crate) async fn an_invalid_language_tag_is_refused(mut fixture: HubFixture) {
    let session = fixture.session().await;
    let refused = session.think(LocalizedText::new("Thinking.").in_language("no tag at all", "?")).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("summary_normal_no tag at all")));
    session.finish("Done.").await.unwrap();
}

pub(crate) async fn a_custom_state_is_announced_with_its_defined_text(mut fixture: HubFixture) {
    let mut ana = TestListener::listen_in_language(&fixture.address(), "es").await;
    let words = LocalizedText::new("Comparing prices.").in_language("es", "Comparando precios.");
    let builder = fixture.hub.session("Buy a lamp.").state("comparing", "Replaced below.");
    let session = builder.state("comparing", words).state("baking", "Baking.").start().await.unwrap();
    let change = StateChange::custom("comparing").expected_duration(std::time::Duration::from_secs(20));
    session.change_state(change).await.unwrap();
    session.change_state(StateChange::custom("baking").says("Baking bread.")).await.unwrap();
    session.change_state(StateChange::custom("not_defined")).await.unwrap();
    session.think("Thinking.").await.unwrap();
    session.cancel("Nothing was bought.").await.unwrap();
    let (ben, ana) = tokio::join!(
        fixture.listener.events_until("session.cancelled"),
        ana.events_until("session.cancelled")
    );
    let states = json!([
        { "state": "comparing", "words": { "en": "Comparing prices.", "es": "Comparando precios." } },
        { "state": "baking", "words": { "en": "Baking." } },
    ]);
    assert_eq!(ben[0]["extensions"]["sayso"]["states"], states);
    let entered: Vec<_> = ben.iter().filter(|event| event["to_state"].is_string()).collect();
    assert_eq!(entered[0]["summary_normal"], "Comparing prices.");
    assert_eq!(entered[0]["expected_duration_ms"], 20_000);
    assert_eq!(entered[1]["summary_normal"], "Baking bread.");
    assert_eq!(
        (&entered[2]["to_state"], &entered[2]["summary_normal"]),
        (&json!("not_defined"), &json!("Not defined."))
    );
    assert_eq!(find_event(&ana, "state.changed")["summary_normal"], "Comparando precios.");
}
