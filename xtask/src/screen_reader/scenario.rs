//! The scenarios. Each has a request, key presses, and the speech that is expected, in order.

/// One scenario.
pub(super) struct ScreenReaderScenario {
    pub(super) title: &'static str,
    /// The request to the demo agent. `None` in the scenario that opens the page.
    pub(super) request: Option<&'static str>,
    pub(super) steps: &'static [KeyStep],
    /// The scenario ends once this text has been heard.
    pub(super) until: &'static str,
    pub(super) expectations: &'static [SpeechExpectation],
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

/// A key that the person presses after hearing a text to its end.
pub(super) struct KeyStep {
    /// The text to hear first.
    pub(super) after: &'static str,
    /// The key, as xdotool names it.
    pub(super) key: &'static str,
}

pub(super) const SCENARIOS: [ScreenReaderScenario; 4] = [
    ScreenReaderScenario {
        title: "The page is opened",
        request: None,
        // Orca starts to read the entire page, and the person interrupts it.
        steps: &[KeyStep { after: "Skip to the questions", key: "Control_L" }],
        until: "Skip to the questions",
        expectations: &[],
    },
    ScreenReaderScenario {
        title: "An explanation of several sentences",
        request: Some("explain yourself"),
        steps: &[],
        until: "Finished: That is all.",
        expectations: &[
            Once("Demo assistant has started: Preparing an explanation."),
            Once("This demo only explains itself."),
            Once("Before it does something that cannot be undone, it asks you."),
            Once("The hub sends the question to everyone who listens on your behalf."),
            Once("Your answer is checked, stored and tied to exactly the action you were asked about."),
            Once("Without an answer, nothing is done."),
            Once("Finished: That is all."),
        ],
    },
    ScreenReaderScenario {
        title: "A transfer that the person accepts",
        request: Some("transfer 250 euros to Ben"),
        steps: &[
            KeyStep { after: "Without an answer, it will not be done.", key: "Tab" },
            KeyStep { after: "No, reject it", key: "Tab" },
            KeyStep { after: "Yes, accept it", key: "Return" },
        ],
        until: "Finished: That is all.",
        expectations: &[
            Once("Demo assistant has started: Preparing a demo transfer."),
            AtLeastOnce("Question from Demo assistant"),
            Once(
                "Transfer 250 euros from the demo account to Ben. The money leaves the demo account at once.",
            ),
            Once("No real money moves."),
            Once("High risk."),
            Once("This cannot be undone."),
            Once("left."),
            Once("Without an answer, it will not be done."),
            AtLeastOnce("No, reject it"),
            AtLeastOnce("Yes, accept it"),
            Once("You accepted this: Transfer 250 euros from the demo account to Ben."),
            Once("Tool: Transferring 250 euros to Ben."),
            Once("Tool: The transfer is complete."),
            Once("In the demo, 250 euros went to Ben; no real money moved."),
            Once("Finished: That is all."),
        ],
    },
    ScreenReaderScenario {
        title: "A question with choices",
        request: Some("How is the weather?"),
        steps: &[
            KeyStep { after: "Without an answer, the agent continues without one.", key: "Tab" },
            KeyStep { after: "radio button", key: "space" },
            KeyStep { after: "space", key: "Tab" },
            KeyStep { after: "entry", key: "Tab" },
            KeyStep { after: "Send the answer", key: "Return" },
        ],
        until: "Finished: That is all.",
        expectations: &[
            Once("Demo assistant has started: Looking up the demo weather."),
            AtLeastOnce("Question from Demo assistant"),
            Once("Which place would you like the weather for? You have about"),
            Once("left."),
            Once("Without an answer, the agent continues without one."),
            Once("Choose one: Lagos London Madrid Or in your own words"),
            AtLeastOnce("not selected radio button"),
            AtLeastOnce("entry"),
            AtLeastOnce("Send the answer"),
            Once("You answered this: Which place would you like the weather for?"),
            Once(
                "In Lagos, as everywhere in the demo, it is mild with a little sun; no real forecast was used.",
            ),
            Once("Finished: That is all."),
        ],
    },
];
