//! English.

use super::Phrases;

pub(super) static ENGLISH: Phrases = Phrases {
    tag: "en",
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
    not_understood_open: "That was not understood, and nothing was sent. Type yes or no, repeat to hear the question, or help.",
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
    again_resumed: "Connected again. What was said meanwhile follows.",
    again_not_kept: "Connected again, but what was said meanwhile was not kept for you. What holds now follows.",
    in_the_clear: "The connection is not encrypted: others on the way can hear and change what is said. Use https.",
    no_hub: "This is an agent by itself, without a hub: it cannot be stopped or given more time from here, and what is said while there is no connection is lost.",
    asked_too_much: "Too much was asked at once. Ask again in a moment.",
    auto_none: "With --auto none nothing is answered. Nothing was sent.",
    nothing_spoken: "Nothing is spoken here.",
    nothing_said: "Nothing is being said.",
    silence: "Silence. What was to be said stands above.",
    pace_ends: "It goes no further that way.",
    one_left_out: "One earlier announcement was not said, because more came than could be said.",

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
    too_short: |number| {
        format!(
            "This cannot be undone, or could do harm, so a short answer is not enough. Nothing was sent. Type the whole word accept to allow question {number}, or no to refuse it."
        )
    },
    you_say: |word, number| format!("You say {word} to question {number}."),
    you_answer: |number, text| format!("You answer question {number}: {text}"),
    does_not_take: |number, how| format!("Question {number} does not take that. {how}"),
    question_trouble: |number, why| format!("Question {number}: {why}"),
    more_time_asked: |number, left| {
        format!("You asked for more time. Question {number} now stays open for {left}.")
    },
    session_does: |number, agent, doing| format!("Session {number}, {agent}. {doing}"),
    is_answered: |number| format!("Question {number} is answered; what becomes of it is not known yet."),
    is_open: |number, agent, left| format!("Question {number} from {agent} is open for {left}."),
    you_hear: |much| format!("You hear {much} texts."),
    you_will_hear: |much| format!("From now on you hear {much} texts."),
    no_such_session: |number| format!("There is no session {number} at work."),
    session_is: |number, agent| format!("{number} is {agent}"),
    which_session: |sessions| {
        format!("Which one? {sessions}. Type stop and the number, or stop all. Nothing was stopped.")
    },
    you_stop: |agent, number| format!("You stop {agent}, session {number}."),
    listening: |url| format!("Listening to {url}. Type help for what you can type."),
    hub_says: |what| format!("The hub says: {what}"),
    lost: |why| format!("The connection to the hub is lost: {why}. It is tried again until it works."),
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
};

fn many(count: i64, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
