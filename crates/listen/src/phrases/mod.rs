//! What sayso itself says, and what can be typed, in each language: one file a language, one field a phrase.
//!
//! Every phrase of the catalogue is a field of [`Phrases`], so that a language that lacks one does not compile; what is put into
//! a phrase are the arguments of a function, so that one that leaves something out is warned of, and one that wants something
//! else does not compile either.

mod commands;
mod en;
mod es;
#[cfg(test)]
mod tests;
mod yo;

use crate::Kind;
pub(crate) use commands::Command;
use commands::Commands;

/// Declares the catalogue: texts that are always the same, and sentences with something put in.
macro_rules! catalogue {
    (
        texts { $($(#[$text_doc:meta])* $text:ident,)* }
        sentences { $($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),+),)* }
    ) => {
        /// What sayso itself says, in one language. [`Phrases::of`] finds the one for a person.
        #[derive(Debug)]
        pub struct Phrases {
            /// The language, as a tag.
            tag: &'static str,
            /// What can be typed.
            commands: Commands,
            $($(#[$text_doc])* pub(crate) $text: &'static str,)*
            $($(#[$doc])* $name: fn($($argument: $type),+) -> String,)*
        }

        impl Phrases {
            $(
                $(#[$doc])*
                pub(crate) fn $name(&self, $($argument: $type),+) -> String {
                    (self.$name)($($argument),+)
                }
            )*

            /// Every phrase: its name, its text with samples in it, and the samples.
            #[cfg(test)]
            fn samples(&self) -> Vec<(&'static str, String, Vec<String>)> {
                let mut all = vec![$((stringify!($text), self.$text.to_owned(), Vec::new())),*];
                $({
                    let mut at = 0;
                    let mut written = Vec::new();
                    $(
                        at += 1;
                        let $argument = <$type as tests::Sample>::sample(at);
                        written.push($argument.to_string());
                    )+
                    all.push((stringify!($name), self.$name($($argument),+), written));
                })*
                all
            }
        }
    };
}

catalogue! {
    texts {
        // Of an event.
        /// An agent without a name.
        the_agent,
        /// An agent that was named just before, as the subject of a sentence.
        it,
        try_again,
        do_not_try_again,
        you_must_act,
        /// In front of a hint of the agent.
        what_you_can_do,
        never_undone,
        /// In front of the agent's reason.
        the_reason,
        /// In front of what an unknown event says.
        it_says,
        /// A type that was not named.
        unknown_type,
        words_missing,
        no_event,
        too_long,
        gap,
        wrong_order,
        hub_lets_go,
        hub_stops,
        hub_replaces,
        hub_forgets_token,
        hub_ends,
        // Of a question.
        what_it_would_do,
        what_follows,
        why_it_asks,
        /// The beginnings of a sentence that goes on with whether it can be undone.
        risk_low,
        risk_medium,
        risk_high,
        risk_unsaid,
        without_answer_done,
        without_answer_not_done,
        /// In front of the answer that the agent takes.
        without_answer_this,
        without_answer_on,
        is_recording,
        answer_grave,
        answer_light,
        answer_only_yes,
        answer_only_no,
        /// What can be typed, as parts of a sentence.
        way_choice,
        way_yes_no,
        way_number,
        way_words,
        no_way,
        /// In front of a question that cannot be kept open.
        not_answered_here,
        // What became of an answer.
        not_open,
        answered_twice,
        not_taken,
        not_connected,
        no_more_time,
        more_time_asked,
        /// How a question of a recording was answered, at the end of a sentence.
        was_accepted,
        was_rejected,
        was_in_words,
        /// What follows from a decision, at the end of a sentence.
        outcome_accept,
        outcome_reject,
        outcome_other,
        // Of what is typed.
        /// What is typed for a yes, a no and more time.
        yes,
        no,
        more_time,
        no_hub_for_that,
        none_open,
        none_such_open,
        one_or_two,
        not_understood,
        stopped_listening,
        agent_goes_on,
        agents_go_on,
        nobody_at_work,
        has_not_said,
        nothing_stopped,
        hears_least,
        hears_all,
        // How much is heard, as a part of a sentence.
        terse,
        normal,
        detailed,
        // What can be typed, a line each.
        help_decide,
        help_answer,
        help_repeat,
        help_more_time,
        help_stop,
        help_status,
        help_louder,
        help_quit,
        help_hush,
        help_pace,
        help_requests,
        // Of the connection and the voice.
        again_resumed,
        again_not_kept,
        /// What follows on a return.
        meanwhile_follows,
        now_follows,
        nothing_meanwhile,
        /// How things stood before the connection was lost follows.
        status_lost,
        in_the_clear,
        no_hub,
        asked_too_much,
        auto_none,
        // What is done without a person, at the end of a sentence of the command line.
        auto_accepts,
        auto_rejects,
        auto_is_silent,
        nothing_spoken,
        nothing_said,
        silence,
        pace_ends,
        one_left_out,
        // Why there is no connection; the first of them are parts of a sentence.
        why_nothing_listens,
        why_cut,
        why_silent,
        why_hung_up,
        why_hung_up_within,
        why_not_http,
        why_speaks_tls,
        why_no_tls,
        why_untrusted,
        why_other_name,
        why_out_of_date,
        why_of_signer,
        why_not_text,
        why_too_long,
        why_forgotten,
        why_ended,
        why_lifeless,
        why_no_host,
        why_no_unix,
        why_token_form,
        why_no_hub,
        why_token_wanted,
        why_token_ended,
        why_replaced,
        refused_token,
        refused_version,
        refused_no_room,
        refused_wish,
        refused_manifest,
        refused_now,
        refused,
        // Who the hub is, and what it gives.
        not_trusted,
        manifest_absent,
        manifest_elsewhere,
        manifest_not_understood,
        /// What is wrong with a manifest, as a part of a sentence.
        fault_signature,
        fault_no_longer,
        only_no,
        only_proven,
        asked_for_less,
        not_every_question,
        // Why an engine cannot speak, as a part of a sentence.
        speech_bad_address,
        // What a line is about, as it is said aloud in front of it.
        kind_session,
        kind_agent,
        kind_progress,
        kind_tool,
        kind_ask,
        kind_answer,
        kind_error,
        kind_handoff,
        kind_notice,
        kind_status,
        kind_help,
    }
    sentences {
        // Of an event.
        session_began(agent: &str),
        session_done(agent: &str),
        session_failed(agent: &str),
        session_stopped_by_person(agent: &str),
        session_stopped_itself(agent: &str),
        session_stopped_by_time(agent: &str),
        session_stopped(agent: &str),
        session_over(agent: &str),
        in_session(number: u32),
        state_idle(agent: &str),
        state_thinking(agent: &str),
        state_calling(agent: &str),
        state_writing(agent: &str),
        state_waiting(agent: &str),
        state_deciding(agent: &str),
        state_handing_off(agent: &str),
        state_other(agent: &str, state: &str),
        tool_done(tool: &str),
        tool_failed(tool: &str),
        tool_took_too_long(tool: &str),
        tool_ended(tool: &str),
        step_of(step: u64, total: u64),
        step(step: u64),
        percent(percent: &str),
        hands_to_person(agent: &str),
        hands_to_agent(agent: &str),
        hands_to_queue(agent: &str),
        hands_to_somebody(agent: &str),
        sent_data(agent: &str, kind: &str),
        sent_malformed(agent: &str, kind: &str),
        sent_unknown(agent: &str, kind: &str),
        not_understood_type(kind: &str),
        hub_ends_because(reason: &str),
        // Of a question.
        /// What the question is follows.
        question_asks(number: u32, agent: &str),
        question_from(number: u32, agent: &str),
        choice(number: usize),
        undone_never(risk: &str),
        undone_hardly(risk: &str),
        undone_easily(risk: &str),
        undone_unsaid(risk: &str),
        agent_adds(what: &str),
        you_have(left: &str),
        there_were(time: &str),
        type_only(way: &str),
        type_or(ways: &str, last: &str),
        // How to answer one of several.
        several_open(count: usize),
        answer_grave_to(number: u32),
        answer_light_to(number: u32),
        answer_only_yes_to(number: u32),
        answer_only_no_to(number: u32),
        type_only_to(number: u32, way: &str),
        type_or_to(number: u32, ways: &str, last: &str),
        seconds(count: i64),
        minutes(count: i64),
        hours(count: i64),
        reminder(left: &str, number: u32),
        asks_too_much(agent: &str),
        came_again(number: u32),
        asked_settled(agent: &str),
        was_answered(number: u32, how: &str),
        // What became of a question.
        counted(number: u32, outcome: &str),
        yours_counts(number: u32, outcome: &str),
        answered_elsewhere(number: u32, outcome: &str),
        too_late(number: u32, outcome: &str),
        nobody_in_time(number: u32, outcome: &str),
        nobody_left(number: u32, outcome: &str),
        nobody_reached(number: u32, outcome: &str),
        withdrawn(number: u32, outcome: &str),
        settled(number: u32, outcome: &str),
        closed_goes_on(number: u32, agent: &str),
        yours_was_taken(number: u32),
        closed_without_you(number: u32, agent: &str),
        withdrawn_with_session(number: u32),
        unheard(number: u32),
        time_over(number: u32),
        // Of what is typed.
        /// Numbers behind each other, and the last of them.
        list(numbers: &str, last: &str),
        enter_one_open(number: u32, left: &str),
        enter_several_open(count: usize, numbers: &str),
        question_not_open(number: u32),
        has_just_changed(number: u32, typed: &str),
        which_question(numbers: &str, typed: &str, number: u32),
        /// How to answer follows.
        not_an_answer(how: &str),
        not_an_answer_to_several(numbers: &str, number: u32),
        stays_unanswered(number: u32),
        stay_unanswered(numbers: &str),
        too_short(number: u32),
        you_say(word: &str, number: u32),
        you_answer(number: u32, text: &str),
        /// How to answer follows.
        does_not_take(number: u32, how: &str),
        question_trouble(number: u32, why: &str),
        more_time_had(number: u32, left: &str),
        more_time_was_given(number: u32),
        more_time_not_given(number: u32, left: &str),
        session_does(number: u32, agent: &str, doing: &str),
        /// What it is about, where several are at work.
        began_with(about: &str),
        is_answered(number: u32),
        is_open(number: u32, agent: &str, left: &str),
        you_hear(much: &str),
        you_will_hear(much: &str),
        no_such_session(number: u32),
        /// One of several sessions.
        session_is(number: u32, agent: &str),
        session_is_about(number: u32, agent: &str, about: &str),
        which_session(sessions: &str),
        you_stop(agent: &str, number: u32),
        // Of the connection and the voice.
        listening(url: &str),
        listening_only(url: &str),
        hub_says(what: &str),
        lost(why: &str),
        still_open(number: u32, agent: &str, left: &str),
        several_still_open(count: usize),
        cannot_reach(url: &str, why: &str),
        answer_not_sent(number: u32, why: &str),
        wish_not_sent(why: &str),
        pace(pace: &str),
        auto_answered(number: u32, word: &str),
        auto_not_answered(number: u32),
        urgent_left_out(count: u64),
        left_out(count: u64),
        why_answered(status: u16),
        why_no_hub_answered(status: u16),
        try_again_in(seconds: u64),
        // Who the hub is, and what it gives.
        hub_proven(agent: &str),
        hub_unsigned(agent: &str),
        hub_claims(agent: &str),
        manifest_unread(why: &str),
        hub_wrong(why: &str),
        /// What is wrong with a manifest, as a part of a sentence.
        fault_agent(manifest: &str, offer: &str),
        fault_level(level: u64),
        fault_claim(what: &str),
        rate_lowered(rate: u64),
        rate_given(rate: u64),
        too_many(rate: u64),
        // Why an engine cannot speak, as a part of a sentence.
        speech_no_folder(name: &str),
        speech_not_installed(name: &str),
        speech_does_not_run(name: &str),
        speech_does_not_start(name: &str),
        speech_did_not_start(name: &str),
        speech_elsewhere(name: &str),
        speech_no_answer(name: &str),
        speech_not_understood(name: &str),
        speech_ended(name: &str),
        speech_not_taken(name: &str),
        speech_no_sound(name: &str),
        speech_cannot(name: &str),
        speech_refuses(name: &str, what: &str),
        speech_unreachable(name: &str, why: &str),
        speech_cannot_start(name: &str, why: &str),
        speech_gone(name: &str, why: &str),
        speech_fails(name: &str, why: &str),
        // What follows from it.
        speech_none(dispatcher: &str, espeak: &str),
        speech_reached_again(why: &str),
        speech_goes_on(why: &str, name: &str),
        speech_both_end(why: &str, also: &str),
        speech_ends(why: &str),
    }
}

/// Every language that sayso speaks itself. The first is spoken to whoever wants none of them.
static ALL: [&Phrases; 3] = [&en::ENGLISH, &es::SPANISH, &yo::YORUBA];

impl Phrases {
    /// The phrases for somebody who wants these languages, the dearest first: the first of them that there is, whatever its
    /// region; else English.
    ///
    /// ```
    /// use listen::Phrases;
    /// assert_eq!(Phrases::of(&["fr".to_owned(), "en-GB".to_owned()]).language(), "en");
    /// ```
    pub fn of(languages: &[String]) -> &'static Self {
        let spoken = |language: &String| Self::every().find(|phrases| phrases.speaks(language));
        languages.iter().find_map(spoken).unwrap_or(&en::ENGLISH)
    }

    /// All of them, one for each language.
    pub(crate) fn every() -> impl Iterator<Item = &'static Self> {
        ALL.into_iter()
    }

    /// Whether a tag names this language, whatever its region.
    pub(crate) fn speaks(&self, tag: &str) -> bool {
        tag.split('-').next().is_some_and(|primary| primary.eq_ignore_ascii_case(self.tag))
    }

    /// The language, as a tag.
    pub fn language(&self) -> &'static str {
        self.tag
    }

    /// What an announcement is about, as it is said aloud. The word that is printed is always the same ([`Kind::word`]).
    pub(crate) fn kind(&self, kind: Kind) -> &'static str {
        match kind {
            Kind::Session => self.kind_session,
            Kind::Agent => self.kind_agent,
            Kind::Progress => self.kind_progress,
            Kind::Tool => self.kind_tool,
            Kind::Ask => self.kind_ask,
            Kind::Answer => self.kind_answer,
            Kind::Error => self.kind_error,
            Kind::Handoff => self.kind_handoff,
            Kind::Notice => self.kind_notice,
            Kind::Status => self.kind_status,
            Kind::Help => self.kind_help,
        }
    }
}
