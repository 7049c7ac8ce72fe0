//! The scenarios. Each has a start, actions of the person and of others, and the speech that is expected, in order.

/// One scenario.
pub(super) struct ScreenReaderScenario {
    pub(super) title: &'static str,
    pub(super) start: ScenarioStart,
    pub(super) steps: &'static [Step],
    /// The scenario ends once this text has been heard.
    pub(super) until: &'static str,
    pub(super) expectations: &'static [SpeechExpectation],
}

/// The start of a scenario.
#[derive(Clone, Copy, Debug)]
pub(super) enum ScenarioStart {
    /// The page is opened.
    OpenPage,
    /// The request to the demo agent.
    Request(&'static str),
    /// Another agent asks whether it may send money. Another person listens, too.
    Question,
    /// Somebody does this.
    Action(ScenarioAction),
}

/// An action of the person or of somebody else.
#[derive(Clone, Copy, Debug)]
pub(super) enum ScenarioAction {
    /// The person presses a key, as xdotool names it.
    Press(&'static str),
    /// Another person accepts the latest question.
    AcceptElsewhere,
    /// The hub is killed.
    KillHub,
    /// The hub is restarted with the same data.
    RestartHub,
}

/// A text that must be heard to its end, after all earlier expectations.
#[derive(Clone, Copy, Debug)]
pub(super) enum SpeechExpectation {
    /// A question, its consequence, a sentence or an outcome, which must be heard exactly once.
    Once(&'static str),
    /// A control or the title of a dialog, which a screen reader announces whenever it gets the focus.
    AtLeastOnce(&'static str),
}

use SpeechExpectation::{AtLeastOnce, Once};

/// An action that happens once a text was heard completely.
pub(super) struct Step {
    /// The text to hear first.
    pub(super) after: &'static str,
    pub(super) action: ScenarioAction,
}

const fn press(after: &'static str, key: &'static str) -> Step {
    Step { after, action: ScenarioAction::Press(key) }
}

impl ScenarioStart {
    /// Describes the start for the documentation.
    pub(super) fn describe(self) -> String {
        match self {
            Self::OpenPage => String::new(),
            Self::Request(request) => format!("The assistant is asked: \"{request}\".\n\n"),
            Self::Question => {
                "Another agent asks whether it may send money. Another person listens, too.\n\n".to_owned()
            }
            Self::Action(action) => format!("{}\n\n", action.describe()),
        }
    }
}

impl ScenarioAction {
    /// Describes the action in a sentence.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Press(key) => format!("The person presses {key}."),
            Self::AcceptElsewhere => "Another person accepts.".to_owned(),
            Self::KillHub => "The hub is killed.".to_owned(),
            Self::RestartHub => "The hub is started again.".to_owned(),
        }
    }
}

pub(super) const SCENARIOS: [ScreenReaderScenario; 9] = [
    ScreenReaderScenario {
        title: "The page is opened",
        start: ScenarioStart::OpenPage,
        // Orca starts to read the entire page, and the person interrupts it.
        steps: &[press("Skip to the questions", "Control_L")],
        until: "Skip to the questions",
        expectations: &[],
    },
    ScreenReaderScenario {
        title: "An explanation of several sentences",
        start: ScenarioStart::Request("explain yourself"),
        steps: &[],
        until: "Demo assistant has finished.",
        expectations: &[
            // The text cuts off the start of the session, because it arrives at the same time.
            Once("This demo only explains itself."),
            Once("Before it does something that cannot be undone, it asks you."),
            Once("The hub sends the question to everyone who listens on your behalf."),
            Once("Your answer is checked, stored and tied to exactly the action you were asked about."),
            Once("Without an answer, nothing is done."),
            Once("Demo assistant has finished."),
        ],
    },
    ScreenReaderScenario {
        title: "A transfer that the person accepts",
        start: ScenarioStart::Request("transfer 250 euros to Ben"),
        steps: &[press("left.", "Tab"), press("No, reject it", "Tab"), press("Yes, accept it", "Return")],
        until: "Demo assistant has finished.",
        expectations: &[
            // The question interrupts the start of the session, because it opens at once.
            Once("Question from Demo assistant"),
            Once("Transfer 250 euros to Ben. The money leaves the account at once."),
            Once("High risk."),
            Once("This cannot be undone."),
            Once("left."),
            AtLeastOnce("No, reject it"),
            AtLeastOnce("Yes, accept it"),
            // The answer has overtaken the steps of the transfer.
            Once("Accepted."),
            Once("In the demo, 250 euros went to Ben; no real money moved."),
            Once("Demo assistant has finished."),
        ],
    },
    ScreenReaderScenario {
        title: "A question with choices",
        start: ScenarioStart::Request("How is the weather?"),
        steps: &[
            press("left.", "Tab"),
            press("radio button", "space"),
            press("space", "Tab"),
            press("entry", "Tab"),
            press("Send the answer", "Return"),
        ],
        until: "Demo assistant has finished.",
        expectations: &[
            Once("Question from Demo assistant"),
            Once("Which place would you like the weather for? About"),
            Once("left."),
            Once("Choose one: Lagos London Madrid Or in your own words"),
            AtLeastOnce("not selected radio button"),
            AtLeastOnce("entry"),
            AtLeastOnce("Send the answer"),
            Once("You answered Lagos: Which place would you like the weather for?"),
            Once(
                "In Lagos, as everywhere in the demo, it is mild with a little sun; no real forecast was used.",
            ),
            Once("Demo assistant has finished."),
        ],
    },
    ScreenReaderScenario {
        title: "A question that the person rejects",
        start: ScenarioStart::Request("delete the record"),
        steps: &[press("left.", "Tab"), press("No, reject it", "Return")],
        until: "Demo assistant has finished.",
        expectations: &[
            Once("Question from Demo assistant"),
            Once("Delete the demo record. The record is gone forever."),
            Once("This cannot be undone: delete record, record demonstration."),
            AtLeastOnce("No, reject it"),
            Once("Rejected."),
            Once("The record was not deleted."),
            Once("Demo assistant has finished."),
        ],
    },
    ScreenReaderScenario {
        title: "A question that somebody else answers",
        start: ScenarioStart::Question,
        steps: &[
            Step { after: "left.", action: ScenarioAction::AcceptElsewhere },
            press("Someone else accepted this: Send 5 euros to Ben.", "Tab"),
            press("Close", "Return"),
        ],
        until: "Close",
        expectations: &[
            Once("Question from local"),
            Once("This cannot be undone: send, amount 5.00."),
            Once("Someone else accepted this: Send 5 euros to Ben."),
            AtLeastOnce("Close"),
        ],
    },
    ScreenReaderScenario {
        title: "A question that the person leaves for later",
        start: ScenarioStart::Question,
        steps: &[press("left.", "Escape")],
        until: "The question stays open.",
        expectations: &[
            Once("Question from local"),
            Once("left."),
            Once("The question stays open. It is in the list of questions."),
        ],
    },
    ScreenReaderScenario {
        title: "The page is opened while a question is open",
        start: ScenarioStart::Action(ScenarioAction::Press("F5")),
        steps: &[],
        until: "left.",
        expectations: &[
            // After the page has loaded, Orca may also read the whole page, of which only the dialog is accessible. It does not if its
            // option sayAllOnLoad is off.
            AtLeastOnce("Question from local Send 5 euros to Ben."),
            AtLeastOnce("This cannot be undone: send, amount 5.00."),
            AtLeastOnce("left."),
        ],
    },
    ScreenReaderScenario {
        title: "The hub is lost and found again while a question is open",
        start: ScenarioStart::Action(ScenarioAction::KillHub),
        steps: &[Step { after: "Connection to the hub lost.", action: ScenarioAction::RestartHub }],
        until: "This question is still open: Send 5 euros to Ben.",
        expectations: &[
            Once("Connection to the hub lost. Trying to reconnect."),
            Once("Reconnected."),
            Once("This question is still open: Send 5 euros to Ben."),
        ],
    },
];
