//! What is played, what the person does, and what must be heard: each once, whole, and in this order.

/// One scene.
pub(super) struct Scene {
    pub(super) title: &'static str,
    /// What the demonstration assistant is asked; nothing in the scene that opens the page.
    pub(super) request: Option<&'static str>,
    pub(super) steps: &'static [Step],
    /// It is over when this was heard.
    pub(super) until: &'static str,
    pub(super) wanted: &'static [&'static str],
}

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
            "Demonstration assistant started: Preparing an explanation.",
            "This demonstration explains only itself.",
            "Before it does something that cannot be undone, it asks you.",
            "The hub tells the question to everybody who listens for you.",
            "Your answer is checked, written down and tied to exactly the action that you were asked about.",
            "Without an answer nothing is done.",
            "Done: That was all.",
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
            "Demonstration assistant started: Preparing a transfer in the demonstration.",
            "Question from Demonstration assistant",
            "Transfer 250 euros from the demonstration account to Ben. In the demonstration the money is gone and cannot be called back.",
            "No real money moves.",
            "High risk.",
            "It cannot be undone.",
            "are left.",
            "Without an answer it counts as no.",
            "No, reject it",
            "Yes, accept it",
            "You accepted this: Transfer 250 euros from the demonstration account to Ben.",
            "Tool: Transferring 250 euros to Ben.",
            "Tool: The transfer is done.",
            "In the demonstration 250 euros went to Ben; no real money moved.",
            "Done: That was all.",
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
            "Demonstration assistant started: Looking at the weather in the demonstration.",
            "Question from Demonstration assistant",
            "For which place would you like the weather? About",
            "are left.",
            "Without an answer the agent goes on without knowing.",
            "Choose one: Lagos London Madrid Or in your own words",
            "not selected radio button",
            "entry",
            "Send the answer",
            "You answered this: For which place would you like the weather?",
            "In Lagos, as everywhere in the demonstration, it is mild with a little sun; no real forecast was asked for.",
            "Done: That was all.",
        ],
    },
];
