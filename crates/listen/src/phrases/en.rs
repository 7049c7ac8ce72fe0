//! English.

use super::{Commands, Phrases};

pub(super) static ENGLISH: Phrases = Phrases {
    tag: "en",
    commands: Commands {
        yes: &["yes", "accept"],
        yes_in_short: &["y"],
        no: &["no", "n", "reject"],
        answer: &["answer"],
        more_time: &["more time"],
        details: &["details"],
        repeat: &["repeat"],
        status: &["status"],
        stop: &["stop"],
        all: &["all"],
        quieter: &["quieter"],
        louder: &["louder"],
        hush: &["hush"],
        faster: &["faster"],
        slower: &["slower"],
        quit: &["quit", "exit"],
        help: &["help", "?"],
        otherwise: &[],
    },
    the_agent: "The agent",
    it: "It",
    try_again: "Trying again is likely to work.",
    do_not_try_again: "Trying again will not work.",
    you_must_act: "You have to do something first.",
    what_you_can_do: "What you can do:",
    never_undone: "This can never be undone.",
    the_reason: "The reason:",
    it_says: "It says:",
    unknown_type: "unknown",
    words_missing: "Some words are missing here; they did not arrive.",
    no_event: "Something came that is no event; it was left out.",
    too_long: "Something came that is longer than can be taken; it was left out.",
    gap: "Some of what was said while you were away is not kept any more. What holds now follows.",
    wrong_order: "Events of this session came in the wrong order.",
    hub_lets_go: "More came than could be taken here, so the hub has let go.",
    hub_stops: "The hub is stopping.",
    hub_replaces: "Another connection listens in place of this one now.",
    hub_forgets_token: "The hub does not know your token any more, so you are not let in.",
    hub_ends: "The hub has ended the subscription.",
    what_it_would_do: "What it would do:",
    what_follows: "What follows from it:",
    why_it_asks: "Why it asks:",
    risk_low: "The risk is low",
    risk_medium: "The risk is medium",
    risk_high: "The risk is high",
    risk_unsaid: "The agent does not say how great the risk is",
    without_answer_done: "Without an answer it is done.",
    without_answer_not_done: "Without an answer it is not done.",
    without_answer_this: "Without an answer the agent takes this:",
    without_answer_on: "Without an answer the agent goes on without one.",
    is_recording: "This is a recording: it cannot be answered now.",
    answer_grave: "Type the whole word accept or yes to allow it, or reject or no to refuse it.",
    answer_light: "Type yes or 1 to allow it, no or 2 to refuse it.",
    answer_only_yes: "Only a yes is taken. Type accept or yes to allow it.",
    answer_only_no: "Only a no is taken. Type reject or no to refuse it.",
    way_choice: "the number of a choice",
    way_yes_no: "yes or no",
    way_number: "a number",
    way_words: "your answer in your own words",
    no_way: "It takes no answer that can be typed here.",
    not_answered_here: "This cannot be answered here:",
    not_open: "No question of that number is open.",
    answered_twice: "You have answered it already.",
    not_taken: "It does not take such an answer.",
    not_connected: "There is no connection, so your answer was not sent.",
    no_more_time: "It has all the time that it can have.",
    more_time_asked: "You asked for more time.",
    was_accepted: "accept",
    was_rejected: "reject",
    was_in_words: "in words",
    outcome_accept: "it may be done",
    outcome_reject: "it is not done",
    outcome_other: "the agent goes on",
    yes: "yes",
    no: "no",
    more_time: "more time",
    no_hub_for_that: "This agent has no hub, which alone could do that. Nothing was sent.",
    none_open: "No question is open. Nothing was sent.",
    none_such_open: "No such question is open.",
    one_or_two: "Type 1 for yes or 2 for no. Nothing was sent.",
    not_understood: "That was not understood. Type help for what you can type.",
    stopped_listening: "You have stopped listening.",
    agent_goes_on: "The agent goes on.",
    agents_go_on: "The agents go on.",
    nobody_at_work: "No agent is at work.",
    has_not_said: "It has not said what it does.",
    nothing_stopped: "There is no connection, so nothing was stopped.",
    hears_least: "You hear the least there is already.",
    hears_all: "You hear all there is already.",
    terse: "terse",
    normal: "normal",
    detailed: "detailed",
    help_decide: "yes or accept, no or reject: answers the open question. With several open, put its number behind: yes 2.",
    help_answer: "answer and some words: answers a question that wants words. answer 2 and some words: answers question 2.",
    help_repeat: "repeat: says the open questions again. details: says all that is known of them.",
    help_more_time: "more time: gives a question as much time again.",
    help_stop: "stop: stops the agent. With several at work, put the session's number behind: stop 2.",
    help_status: "status: says who is at work and what is open.",
    help_louder: "quieter, louder: less or more is said.",
    help_quit: "quit: ends listening.",
    help_hush: "Enter alone: stops what is being said. hush: stops what waits, too, unless it is urgent.",
    help_pace: "faster, slower: changes the pace of speech.",
    help_requests: "Anything else is taken for what you want the assistant to do.",
    again_resumed: "Connected again.",
    again_not_kept: "Connected again, but what was said meanwhile was not kept for you.",
    meanwhile_follows: "What was said meanwhile follows.",
    now_follows: "What holds now follows.",
    nothing_meanwhile: "Nothing was said meanwhile.",
    status_lost: "There is no connection now; it is tried again. This is how things stood before:",
    in_the_clear: "The connection is not encrypted: others on the way can hear and change what is said. Use https.",
    no_hub: "This is an agent by itself, without a hub: it cannot be stopped or given more time from here, and what is said while there is no connection is lost.",
    asked_too_much: "Too much was asked at once. Ask again in a moment.",
    auto_none: "With --auto none nothing is answered. Nothing was sent.",
    auto_accepts: "with --auto accept, everything is allowed without a person",
    auto_rejects: "with --auto reject, everything is refused without a person",
    auto_is_silent: "with --auto none, no question is answered",
    nothing_spoken: "Nothing is spoken here.",
    nothing_said: "Nothing is being said.",
    silence: "Silence. What was to be said stands above.",
    pace_ends: "It goes no further that way.",
    one_left_out: "One earlier announcement was not said, because more came than could be said.",
    why_nothing_listens: "nothing listens there",
    why_cut: "the connection was cut",
    why_silent: "it does not answer",
    why_hung_up: "it hung up without an answer",
    why_hung_up_within: "it hung up in the middle",
    why_not_http: "its answer is not HTTP",
    why_speaks_tls: "it speaks TLS; write https:// in place of http://",
    why_no_tls: "it does not speak TLS; write http:// in place of https://",
    why_untrusted: "its certificate is signed by nobody whom this machine trusts; give the certificate of who signed it with --ca",
    why_other_name: "its certificate is for another name",
    why_out_of_date: "its certificate does not hold at this time; look at the clock here, or ask for a new certificate",
    why_of_signer: "its certificate is one for signing others and not for a host; it has to be made with CA:FALSE",
    why_not_text: "its answer is not UTF-8",
    why_too_long: "its answer is too long",
    why_forgotten: "the hub has forgotten the subscription",
    why_ended: "the hub has ended the connection",
    why_lifeless: "the hub gives no sign of life",
    why_no_host: "that is no name of a host",
    why_no_unix: "there are no Unix sockets here",
    why_token_form: "a token is plain text",
    why_no_hub: "There is no hub at this address.",
    why_token_wanted: "The hub wants a token that it knows. Give one with --token-file, or in SAYSO_TOKEN.",
    why_token_ended: "The hub does not let this token in any more.",
    why_replaced: "Another connection listens in place of this one.",
    refused_token: "The hub does not let this token listen.",
    refused_version: "The hub speaks another version of AAEP.",
    refused_no_room: "The hub has no room for another listener now.",
    refused_wish: "The hub cannot give what was asked for.",
    refused_manifest: "The hub has no signed manifest.",
    refused_now: "The hub does not take listeners now.",
    refused: "The hub has refused the subscription.",
    not_trusted: "The hub is not who it should be, so nothing but a no is sent to it. Type status to hear why.",
    manifest_absent: "The hub has no manifest that would say who it is.",
    manifest_elsewhere: "Who the hub is, is not known: its manifest is said to be elsewhere, where it is not looked for.",
    manifest_not_understood: "Who the hub is, is not known: its manifest could not be understood.",
    fault_signature: "its manifest is not signed with a key that you trust",
    fault_no_longer: "its manifest was signed before, and is not now",
    only_no: "Nothing but a no is sent to it.",
    only_proven: "Only a hub that can prove who it is should be listened to.",
    asked_for_less: "It was asked again, for less.",
    not_every_question: "The hub does not let you answer every question from here.",
    speech_bad_address: "SPEECHD_ADDRESS names neither a unix_socket nor an inet_socket",
    kind_session: "session",
    kind_agent: "agent",
    kind_progress: "progress",
    kind_tool: "tool",
    kind_ask: "ask",
    kind_answer: "answer",
    kind_error: "error",
    kind_handoff: "handoff",
    kind_notice: "notice",
    kind_status: "status",
    kind_help: "help",

    session_began: |agent| format!("{agent} has begun."),
    session_done: |agent| format!("{agent} is done."),
    session_failed: |agent| format!("{agent} has failed."),
    session_stopped_by_person: |agent| format!("{agent} was stopped by a person."),
    session_stopped_itself: |agent| format!("{agent} has stopped by itself."),
    session_stopped_by_time: |agent| format!("{agent} was stopped because its time was over."),
    session_stopped: |agent| format!("{agent} was stopped."),
    session_over: |agent| format!("{agent} is over. How it ended was not heard."),
    in_session: |number| format!("In session {number}:"),
    state_idle: |agent| format!("{agent} is idle."),
    state_thinking: |agent| format!("{agent} is thinking."),
    state_calling: |agent| format!("{agent} is using a tool."),
    state_writing: |agent| format!("{agent} is writing."),
    state_waiting: |agent| format!("{agent} waits for an answer."),
    state_deciding: |agent| format!("{agent} is deciding what to do."),
    state_handing_off: |agent| format!("{agent} is handing over."),
    state_other: |agent, state| format!("{agent} is in a state called {state}."),
    tool_done: |tool| format!("The tool {tool} is done."),
    tool_failed: |tool| format!("The tool {tool} has failed."),
    tool_took_too_long: |tool| format!("The tool {tool} took too long."),
    tool_ended: |tool| format!("The tool {tool} has ended."),
    step_of: |step, total| format!("Step {step} of {total}."),
    step: |step| format!("Step {step}."),
    percent: |percent| format!("{percent} percent."),
    hands_to_person: |agent| format!("{agent} cannot go on alone and hands over to a person."),
    hands_to_agent: |agent| format!("{agent} cannot go on alone and hands over to another agent."),
    hands_to_queue: |agent| {
        format!("{agent} cannot go on alone and hands over to a queue where somebody will take it up.")
    },
    hands_to_somebody: |agent| format!("{agent} cannot go on alone and hands over to somebody else."),
    sent_data: |agent, kind| format!("{agent} has sent data of the type {kind}."),
    sent_malformed: |agent, kind| format!("{agent} sent a {kind} that could not be understood."),
    sent_unknown: |agent, kind| format!("{agent} sent a {kind}, which is not known here."),
    not_understood_type: |kind| format!("Something of the type {kind} came that could not be understood."),
    hub_ends_because: |reason| format!("The hub has ended the subscription: {reason}."),
    question_asks: |number, agent| format!("Question {number}, from {agent}:"),
    question_from: |number, agent| format!("Question {number}, from {agent}."),
    choice: |number| format!("Choice {number}:"),
    undone_never: |risk| format!("{risk}, and it can never be undone."),
    undone_hardly: |risk| format!("{risk}, and it is hard to undo."),
    undone_easily: |risk| format!("{risk}. It can be undone."),
    undone_unsaid: |risk| format!("{risk}. Whether it can be undone is not said."),
    agent_adds: |what| format!("The agent adds: {what}"),
    you_have: |left| format!("You have {left}."),
    there_were: |time| format!("There were {time} to answer."),
    type_only: |way| format!("Type {way}."),
    type_or: |ways, last| format!("Type {ways}, or {last}."),
    several_open: |count| format!("{count} questions are open."),
    answer_grave_to: |number| {
        format!(
            "Type accept {number} or yes {number} in whole words to allow this one, or reject {number} or no {number} to refuse it."
        )
    },
    answer_light_to: |number| format!("Type yes {number} to allow this one, or no {number} to refuse it."),
    answer_only_yes_to: |number| {
        format!("Only a yes is taken. Type accept {number} or yes {number} to allow this one.")
    },
    answer_only_no_to: |number| {
        format!("Only a no is taken. Type reject {number} or no {number} to refuse this one.")
    },
    type_only_to: |number, way| format!("Type answer {number} and {way}."),
    type_or_to: |number, ways, last| format!("Type answer {number} and {ways}, or {last}."),
    seconds: |count| many(count, "second"),
    minutes: |count| many(count, "minute"),
    hours: |count| many(count, "hour"),
    reminder: |left, number| {
        format!("You have {left} left for question {number}. Type more time if you need more.")
    },
    asks_too_much: |agent| format!("{agent} asks more than can be kept open here."),
    came_again: |number| format!("Question {number} came again in other words. The first words hold here."),
    asked_settled: |agent| format!("{agent} asked something that is settled already."),
    was_answered: |number, how| format!("Question {number} was answered: {how}."),
    counted: |number, outcome| format!("The answer to question {number} counted: {outcome}."),
    yours_counts: |number, outcome| format!("Your answer to question {number} counts: {outcome}."),
    answered_elsewhere: |number, outcome| format!("Question {number} was answered elsewhere: {outcome}."),
    too_late: |number, outcome| {
        format!("Somebody else answered question {number} first: {outcome}. Your answer came too late.")
    },
    nobody_in_time: |number, outcome| format!("Nobody answered question {number} in time: {outcome}."),
    nobody_left: |number, outcome| format!("Nobody was left to answer question {number}: {outcome}."),
    nobody_reached: |number, outcome| format!("Nobody could be asked question {number}: {outcome}."),
    withdrawn: |number, outcome| format!("Question {number} is withdrawn: {outcome}."),
    settled: |number, outcome| format!("Question {number} is settled: {outcome}."),
    closed_goes_on: |number, agent| format!("Question {number} is closed: {agent} goes on."),
    yours_was_taken: |number| format!("Your answer to question {number} was taken."),
    closed_without_you: |number, agent| {
        format!("Question {number} is closed: {agent} goes on without your answer.")
    },
    withdrawn_with_session: |number| format!("Question {number} is withdrawn, because its session is over."),
    unheard: |number| format!("Question {number} is not open any more. What became of it was not heard."),
    time_over: |number| format!("The time for question {number} is over."),
    list: |numbers, last| format!("{numbers} and {last}"),
    enter_one_open: |number, left| {
        format!("Enter alone answers nothing. Question {number} is open for {left}; type repeat to hear it.")
    },
    enter_several_open: |count, numbers| {
        format!("Enter alone answers nothing. {count} questions are open: {numbers}.")
    },
    question_not_open: |number| format!("Question {number} is not open. Nothing was sent."),
    has_just_changed: |number, typed| {
        format!(
            "What is open has just changed, so nothing was sent. Question {number} is open; put its number behind it, like: {typed} {number}."
        )
    },
    which_question: |numbers, typed, number| {
        format!(
            "Which question do you mean? Nothing was sent. Open are {numbers}. Put the number behind it, like: {typed} {number}."
        )
    },
    not_an_answer: |how| {
        format!(
            "That was not taken as an answer, and nothing was sent. {how} Type repeat to hear the question again, or help."
        )
    },
    not_an_answer_to_several: |numbers, number| {
        format!(
            "That was not taken as an answer, and nothing was sent. Questions {numbers} are open. Type yes or no and the number, like: no {number}. Type repeat to hear them again, or help."
        )
    },
    stays_unanswered: |number| format!("Question {number} stays without your answer."),
    stay_unanswered: |numbers| format!("Questions {numbers} stay without your answer."),
    too_short: |number| {
        format!(
            "This cannot be undone, or could do harm, so a short answer is not enough. Nothing was sent. Type the whole word accept to allow question {number}, or no to refuse it."
        )
    },
    you_say: |word, number| format!("You say {word} to question {number}."),
    you_answer: |number, text| format!("You answer question {number}: {text}"),
    does_not_take: |number, how| format!("Question {number} does not take that. {how}"),
    question_trouble: |number, why| format!("Question {number}: {why}"),
    more_time_had: |number, left| {
        format!("There is more time for question {number}. It now stays open for {left}.")
    },
    more_time_was_given: |number| format!("More time was given for question {number}."),
    more_time_not_given: |number, left| {
        format!("The hub has not given question {number} more time. It stays open for {left}.")
    },
    session_does: |number, agent, doing| format!("Session {number}, {agent}. {doing}"),
    began_with: |about| format!("It began with: {about}"),
    is_answered: |number| format!("Question {number} is answered; what becomes of it is not known yet."),
    is_open: |number, agent, left| format!("Question {number} from {agent} is open for {left}."),
    you_hear: |much| format!("You hear {much} texts."),
    you_will_hear: |much| format!("From now on you hear {much} texts."),
    no_such_session: |number| format!("There is no session {number} at work."),
    session_is: |number, agent| format!("{number} is {agent}"),
    session_is_about: |number, agent, about| format!("{number} is {agent}: {about}"),
    which_session: |sessions| {
        format!("Which one? {sessions}. Type stop and the number, or stop all. Nothing was stopped.")
    },
    you_stop: |agent, number| format!("You stop {agent}, session {number}."),
    listening: |url| format!("Listening to {url}. Type help for what you can type."),
    listening_only: |url| format!("Listening to {url}."),
    hub_says: |what| format!("The hub says: {what}"),
    lost: |why| format!("The connection to the hub is lost: {why}. It is tried again until it works."),
    still_open: |number, agent, left| {
        format!("Question {number} from {agent} is still open for {left}. Type repeat to hear it.")
    },
    several_still_open: |count| format!("{count} questions are still open. Type repeat to hear them."),
    cannot_reach: |url, why| format!("cannot reach {url}: {why}"),
    answer_not_sent: |number, why| {
        format!("Your answer to question {number} did not arrive: {why}. It is still open; answer again.")
    },
    wish_not_sent: |why| format!("What you asked for did not reach the hub: {why}. Try again."),
    pace: |pace| format!("From now on the pace is {pace}."),
    auto_answered: |number, word| format!("Without a person, question {number} is answered: {word}."),
    auto_not_answered: |number| {
        format!("Question {number} cannot be answered without a person; it runs out of time.")
    },
    urgent_left_out: |count| {
        format!(
            "{count} more urgent announcements came than can be said. Ask for the status to hear what is open."
        )
    },
    left_out: |count| {
        format!("{count} earlier announcements were not said, because more came than could be said.")
    },
    why_answered: |status| format!("the hub answered {status}"),
    why_no_hub_answered: |status| format!("There is no hub at this address: it answered {status}."),
    try_again_in: |seconds| format!("Try again in {seconds} seconds."),
    hub_proven: |agent| format!("The hub is {agent}: its manifest is signed with a key that you trust."),
    hub_unsigned: |agent| format!("The hub calls itself {agent}, but its manifest is not signed."),
    hub_claims: |agent| format!("The hub calls itself {agent}; no key was given to check that."),
    manifest_unread: |why| {
        format!("Who the hub is, is not known: its manifest could not be had, because {why}.")
    },
    hub_wrong: |why| format!("The hub is not who it should be: {why}."),
    fault_agent: |manifest, offer| format!("its manifest is that of {manifest}, but {offer} is who answers"),
    fault_level: |level| format!("its manifest does not claim level {level}, which it offers"),
    fault_claim: |what| format!("its manifest does not claim {what}, which it offers"),
    rate_lowered: |rate| {
        format!(
            "Because more came than could be taken here, the hub is now asked for {rate} events in a second at most. Urgent ones do not wait."
        )
    },
    rate_given: |rate| format!("The hub gives {rate} events in a second at most."),
    too_many: |rate| {
        format!(
            "More comes than the {rate} events in a second that were agreed. What is not urgent waits its turn."
        )
    },
    speech_no_folder: |name| format!("{name} cannot be found without XDG_RUNTIME_DIR or SPEECHD_ADDRESS"),
    speech_not_installed: |name| format!("{name} is not installed"),
    speech_does_not_run: |name| format!("{name} does not run"),
    speech_does_not_start: |name| format!("{name} does not start"),
    speech_did_not_start: |name| format!("{name} does not run, and did not start"),
    speech_elsewhere: |name| format!("{name} is elsewhere"),
    speech_no_answer: |name| format!("{name} does not answer"),
    speech_not_understood: |name| format!("{name} says what cannot be understood"),
    speech_ended: |name| format!("{name} has ended"),
    speech_not_taken: |name| format!("{name} does not take what is to be said"),
    speech_no_sound: |name| format!("{name} makes no sound"),
    speech_cannot: |name| format!("{name} cannot speak"),
    speech_refuses: |name, what| format!("{name} refuses {what}"),
    speech_unreachable: |name, why| format!("{name} cannot be reached ({why})"),
    speech_cannot_start: |name, why| format!("{name} cannot be started ({why})"),
    speech_gone: |name, why| format!("{name} is gone ({why})"),
    speech_fails: |name, why| format!("{name} cannot speak ({why})"),
    speech_none: |dispatcher, espeak| {
        format!(
            "Nothing can be spoken here: {dispatcher}, and {espeak}. On Debian, install the packages speech-dispatcher and speech-dispatcher-espeak-ng, or espeak-ng alone. What is said is printed only."
        )
    },
    speech_reached_again: |why| format!("Speech: {why}. It was reached again."),
    speech_goes_on: |why, name| format!("Speech: {why}. From now on {name} speaks."),
    speech_both_end: |why, also| {
        format!("Speech: {why}, and {also}. From now on nothing is spoken, only written.")
    },
    speech_ends: |why| format!("Speech: {why}. From now on nothing is spoken, only written."),
};

fn many(count: i64, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
