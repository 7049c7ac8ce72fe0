//! The eight scenarios of `sayso asp demo` between two nodes.

use crate::script::{Script, assert_same_end, run_script};
use crate::test_node::{NodeBuilder, Storage, TestNode, Transport, card_path, start_pair};

/// Runs all scenarios except the delegated one on one pair of nodes, at the same time.
fn run_scenarios(transport: Transport, storage: Storage) {
    let pair = start_pair(|builder| builder.transport(transport).storage(storage));
    let scripts: [fn(&[TestNode; 2]) -> Script; 7] = [
        Script::agreed,
        Script::rejected,
        Script::countered_commitment,
        Script::invitation_timeout,
        Script::escalation_timeout,
        Script::withdrawn,
        Script::unilateral_close,
    ];
    std::thread::scope(|scope| {
        for script in scripts {
            let pair = &pair;
            scope.spawn(move || {
                let script = script(pair);
                let session = run_script(pair.each_ref(), &script, |_, _, _| {});
                assert_same_end(pair.each_ref(), &script, &session);
            });
        }
    });
}

#[test]
fn seven_scenarios_end_the_same_on_both_sides_over_http() {
    run_scenarios(Transport::Http, Storage::Memory);
}

#[test]
fn seven_scenarios_end_the_same_on_both_sides_over_websocket() {
    run_scenarios(Transport::WebSocket, Storage::Memory);
}

#[test]
fn seven_scenarios_end_the_same_on_both_sides_with_durable_nodes() {
    run_scenarios(Transport::Http, Storage::Disk);
}

/// The press asks a third agent, in a session of its own, between its DELEGATE and its answer.
fn run_delegated(transport: Transport) {
    let builders = ["buyer", "press", "proofreader"].map(|name| NodeBuilder::new(name).transport(transport));
    let buyer = builders[0].agent();
    let builders = builders.map(|builder| builder.deposit(&buyer));
    let folders = builders.each_ref().map(NodeBuilder::create_folder);
    let cards = folders.each_ref().map(card_path);
    let mut nodes = builders.into_iter().zip(folders).map(|(builder, folder)| builder.start(folder, &cards));
    let (pair, proofreader) = ([nodes.next().unwrap(), nodes.next().unwrap()], nodes.next().unwrap());
    let script = Script::delegated(&pair, &proofreader.agent);
    let session = run_script(pair.each_ref(), &script, |_, _, position| {
        if position == script.delegation_position() {
            let (script, pair) = (Script::proofreading(), [&pair[1], &proofreader]);
            let session = run_script(pair, &script, |_, _, _| {});
            assert_same_end(pair, &script, &session);
        }
    });
    assert_same_end(pair.each_ref(), &script, &session);
}

#[test]
fn the_delegated_scenario_runs_in_two_sessions_over_http() {
    run_delegated(Transport::Http);
}

#[test]
fn the_delegated_scenario_runs_in_two_sessions_over_websocket() {
    run_delegated(Transport::WebSocket);
}
