//! What is played, what the person does, and what must be heard, in this order.

/// One scene.
pub(super) struct Scene {
    pub(super) title: &'static str,
    /// What the demonstration assistant is asked; nothing in the scene that opens the page.
    pub(super) request: Option<&'static str>,
    pub(super) steps: &'static [Step],
    /// It is over when this was heard.
    pub(super) until: &'static str,
    pub(super) wanted: &'static [Demand],
}

/// Words that must be heard whole, after those demanded before them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Demand {
    /// A question, its consequence, a sentence or an outcome: twice would be as wrong as never.
    Once(&'static str),
    /// A control or the title of a dialog: a screen reader names it whenever the focus enters it.
    AtLeastOnce(&'static str),
}

use Demand::{AtLeastOnce, Once};

/// What the person does once they have heard something to its end.
pub(super) struct Step {
    pub(super) hears: &'static str,
    pub(super) presses: &'static str,
}

pub(super) const SCENES: [Scene; 4] = [
    Scene {
        title: "The page is opened",
        request: None,
        // Orca begins to read the whole page; the person stops it.
        steps: &[Step { hears: "Skip to the questions", presses: "Control_L" }],
        until: "Skip to the questions",
        wanted: &[],
    },
    Scene {
        title: "An explanation of several sentences",
        request: Some("explain yourself"),
        steps: &[],
        until: "Done: That was all.",
        wanted: &[
            Once("Demonstration assistant started: Preparing an explanation."),
            Once("This demonstration explains only itself."),
            Once("Before it does something that cannot be undone, it asks you."),
            Once("The hub tells the question to everybody who listens for you."),
            Once(
                "Your answer is checked, written down and tied to exactly the action that you were asked about.",
            ),
            Once("Without an answer nothing is done."),
            Once("Done: That was all."),
        ],
    },
    Scene {
        title: "A transfer that the person accepts",
        request: Some("transfer 250 euros to Ben"),
        steps: &[
            Step { hears: "Without an answer it counts as no.", presses: "Tab" },
            Step { hears: "No, reject it", presses: "Tab" },
            Step { hears: "Yes, accept it", presses: "Return" },
        ],
        until: "Done: That was all.",
        wanted: &[
            Once("Demonstration assistant started: Preparing a transfer in the demonstration."),
            AtLeastOnce("Question from Demonstration assistant"),
            Once(
                "Transfer 250 euros from the demonstration account to Ben. In the demonstration the money is gone and cannot be called back.",
            ),
            Once("No real money moves."),
            Once("High risk."),
            Once("It cannot be undone."),
            Once("are left."),
            Once("Without an answer it counts as no."),
            AtLeastOnce("No, reject it"),
            AtLeastOnce("Yes, accept it"),
            Once("You accepted this: Transfer 250 euros from the demonstration account to Ben."),
            Once("Tool: Transferring 250 euros to Ben."),
            Once("Tool: The transfer is done."),
            Once("In the demonstration 250 euros went to Ben; no real money moved."),
            Once("Done: That was all."),
        ],
    },
    Scene {
        title: "A question with choices",
        request: Some("How is the weather?"),
        steps: &[
            Step { hears: "Without an answer the agent goes on without knowing.", presses: "Tab" },
            Step { hears: "radio button", presses: "space" },
            Step { hears: "space", presses: "Tab" },
            Step { hears: "entry", presses: "Tab" },
            Step { hears: "Send the answer", presses: "Return" },
        ],
        until: "Done: That was all.",
        wanted: &[
            Once("Demonstration assistant started: Looking at the weather in the demonstration."),
            AtLeastOnce("Question from Demonstration assistant"),
            Once("For which place would you like the weather? About"),
            Once("are left."),
            Once("Without an answer the agent goes on without knowing."),
            Once("Choose one: Lagos London Madrid Or in your own words"),
            AtLeastOnce("not selected radio button"),
            AtLeastOnce("entry"),
            AtLeastOnce("Send the answer"),
            Once("You answered this: For which place would you like the weather?"),
            Once(
                "In Lagos, as everywhere in the demonstration, it is mild with a little sun; no real forecast was asked for.",
            ),
            Once("Done: That was all."),
        ],
    },
];
