//! A gate that is not told where its hub is.

use super::actors::{Gate, Listener, delete_call, once_options, selected};
use crate::personal_hub::User;

#[test]
fn without_an_address_the_gate_asks_through_the_personal_hub() {
    let user = User::new();
    let hub = user.serve(&[]);
    let mut listener = Listener::connect(&hub);
    let mut gate = Gate::start_for_user(&user);
    gate.initialize();
    gate.prompt("s1", "Clean up.");
    for (id, decision, option) in [(1, "reject", "no"), (2, "accept", "go")] {
        gate.request(id, &delete_call(), &once_options());
        let question = listener.next("awaiting.confirmation");
        listener.decide(&question, decision);
        assert_eq!(gate.agent.next(), selected(id, option));
        // The editor closes its dialog.
        assert_eq!(gate.editor.next()["method"], "$/cancel_request");
    }
    assert_eq!(gate.finish(), Some(0));
}
