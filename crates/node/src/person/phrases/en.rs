//! English.

use asp::dispute::DisputeReason;
use asp::trust::TrustLevel;

use super::{Phrases, SpokenDate, currency_name, trimmed};

pub(super) struct English;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const CURRENCIES: [(&str, &str); 5] =
    [("EUR", "euros"), ("USD", "US dollars"), ("GBP", "pounds"), ("NGN", "naira"), ("CHF", "Swiss francs")];

fn agent(who: Option<&str>) -> &str {
    who.unwrap_or("Your agent")
}

impl Phrases for English {
    fn name_at_host(&self, name: &str, host: &str) -> String {
        format!("{name} at {host}")
    }

    fn amount(&self, number: &str, currency: &str) -> String {
        format!("{number} {}", currency_name(&CURRENCIES, currency))
    }

    fn date(&self, date: &SpokenDate) -> String {
        let (month, weekday) = date.names(&MONTHS, &WEEKDAYS);
        let year = date.year.map(|year| format!(" {year}")).unwrap_or_default();
        format!("{weekday}, {} {month}{year}, {} UTC", date.day, date.clock())
    }

    fn trust(&self, name: &str, level: TrustLevel) -> String {
        match level {
            TrustLevel::Unverified => format!("There is no reason to trust {name} yet: too little is known."),
            TrustLevel::Verified => format!("Trust in {name} is low: there is little history."),
            TrustLevel::Established => format!("Trust in {name} is medium: the history so far is good."),
            TrustLevel::Trusted => format!("Trust in {name} is high: the history is long and good."),
            TrustLevel::Premium => {
                format!("Trust in {name} is very high: the history is long and without faults.")
            }
        }
    }

    fn identity(&self, name: &str, is_pinned_by_operator: bool) -> String {
        if is_pinned_by_operator {
            format!("The operator of your agent confirmed who {name} is.")
        } else {
            format!("Nobody confirmed who {name} is; it is the same as when your agent first met it.")
        }
    }

    fn may_commit(&self, peer: &str, subject: &str) -> String {
        format!("Make a binding offer to {peer}: {}.", trimmed(subject))
    }

    fn may_accept(&self, peer: &str, subject: &str) -> String {
        format!("Accept the binding offer of {peer}: {}.", trimmed(subject))
    }

    fn own_promise(&self, action: &str, deadline: &str) -> String {
        format!("You promise: {}, by {deadline}.", trimmed(action))
    }

    fn promise(&self, name: &str, action: &str, deadline: &str) -> String {
        format!("{name} promises: {}, by {deadline}.", trimmed(action))
    }

    fn no_own_promise(&self) -> &'static str {
        "You promise nothing."
    }

    fn own_escrow(&self, name: &str, amount: &str, is_payment: bool) -> String {
        if is_payment {
            format!("You pay {amount} into escrow. {name} gets it for keeping its promises.")
        } else {
            format!("You pay {amount} into escrow. {name} gets it only if you break the agreement.")
        }
    }

    fn escrow(&self, name: &str, amount: &str, is_payment: bool) -> String {
        if is_payment {
            format!("{name} pays {amount} into escrow. You get it for keeping your promises.")
        } else {
            format!("{name} pays {amount} into escrow. You get it only if {name} breaks the agreement.")
        }
    }

    fn no_escrow(&self) -> &'static str {
        "No money is held in escrow."
    }

    fn penalty_late(&self, penalty: &str) -> String {
        format!("If it is late: {}.", trimmed(penalty))
    }

    fn penalty_not_done(&self, penalty: &str) -> String {
        format!("If it is not done: {}.", trimmed(penalty))
    }

    fn no_penalty(&self) -> &'static str {
        "No penalty is agreed."
    }

    fn needs_answer(&self, name: &str) -> String {
        format!("An agreement with {name} needs your yes or no.")
    }

    fn agent_address(&self, name: &str, uri: &str) -> String {
        format!("The address of {name} is {uri}.")
    }

    fn trust_score(&self, score: &str) -> String {
        format!("Its trust score is {score} of 100.")
    }

    fn verification(&self, action: &str, method: &str) -> String {
        format!("How it is checked that this is done, {}: {}.", trimmed(action), trimmed(method))
    }

    fn release_condition(&self, condition: &str) -> String {
        format!("The escrow is paid out when: {}.", trimmed(condition))
    }

    fn overall_deadline(&self, deadline: &str) -> String {
        format!("Everything must be done by {deadline}.")
    }

    fn escalation(&self, peer: &str, subject: &str, reason: &str) -> String {
        format!(
            "Your agent needs your decision in its talks with {peer} about {}. It says: {}. What do you decide?",
            trimmed(subject),
            trimmed(reason)
        )
    }

    fn escalation_summary(&self, name: &str) -> String {
        format!("The talks with {name} need your decision.")
    }

    fn dispute(&self, peer: &str, subject: &str) -> String {
        format!("Your agent complains about {peer}, in the agreement about {}.", trimmed(subject))
    }

    fn dispute_reason(&self, reason: DisputeReason, name: &str) -> String {
        match reason {
            DisputeReason::DeadlinePassed => format!("It says that a deadline of {name} has passed."),
            DisputeReason::FulfillmentMismatch => {
                format!("It says that {name} did not deliver what was agreed.")
            }
            DisputeReason::NonDelivery => format!("It says that {name} delivered nothing."),
            DisputeReason::ReleaseWithoutFulfillment => {
                format!("It says that {name} got the money without doing its part.")
            }
            DisputeReason::TermsChanged => format!("It says that {name} changed the terms without consent."),
        }
    }

    fn promised(&self, name: &str, action: &str, deadline: &str) -> String {
        format!("{name} promised: {}, by {deadline}.", trimmed(action))
    }

    fn dispute_statement(&self, statement: &str) -> String {
        format!("Your agent adds: {}.", trimmed(statement))
    }

    fn dispute_question(&self) -> &'static str {
        "Is the complaint justified?"
    }

    fn dispute_choices(&self) -> [&'static str; 2] {
        ["Justified", "Not justified"]
    }

    fn dispute_consequence(&self, name: &str) -> String {
        format!("If the complaint is justified, your agent trusts {name} less. Nothing else happens.")
    }

    fn dispute_summary(&self, name: &str) -> String {
        format!("A complaint about {name} needs your decision.")
    }

    fn dispute_upheld(&self) -> &'static str {
        "The complaint counts as justified."
    }

    fn dispute_closed(&self) -> &'static str {
        "The complaint is closed."
    }

    fn dispute_open(&self) -> &'static str {
        "The complaint stays open."
    }

    fn sending(&self, name: &str) -> String {
        format!("Sending the binding offer to {name}.")
    }

    fn accepting(&self, name: &str) -> String {
        format!("Accepting the binding offer of {name}.")
    }

    fn call_failed(&self, name: &str) -> String {
        format!("Nothing was sent to {name}.")
    }

    fn session_title(&self, peer: &str, subject: &str) -> String {
        format!("Talks with {peer} about {}.", trimmed(subject))
    }

    fn invited_peer(&self, peer: &str, subject: &str) -> String {
        format!("Your agent invites {peer} to talk about {}.", trimmed(subject))
    }

    fn invited_us(&self, peer: &str, subject: &str) -> String {
        format!("{peer} invites your agent to talk about {}.", trimmed(subject))
    }

    fn accepted_invitation(&self, who: Option<&str>) -> String {
        format!("{} accepts the invitation.", agent(who))
    }

    fn identified(&self, name: &str) -> String {
        format!("{name} has proven its identity.")
    }

    fn proposed(&self, who: Option<&str>, offer: &str) -> String {
        format!("{} proposes: {offer}.", agent(who))
    }

    fn countered(&self, who: Option<&str>, offer: &str) -> String {
        format!("{} makes another offer: {offer}.", agent(who))
    }

    fn offer(&self, subject: &str, price: &str) -> String {
        format!("{} for {price}", trimmed(subject))
    }

    fn accepted_proposal(&self, who: Option<&str>) -> String {
        format!("{} likes the proposal. Nothing is binding yet.", agent(who))
    }

    fn rejected(&self, who: Option<&str>, reason: &str) -> String {
        format!("{} says no: {}.", agent(who), trimmed(reason))
    }

    fn committed(&self, who: Option<&str>, name: &str) -> String {
        match who {
            Some(name) => format!("{name} makes a binding offer. It waits for your side."),
            None => format!("The binding offer is sent. {name} has not accepted it yet."),
        }
    }

    fn agreed(&self, name: &str) -> String {
        format!("Agreed: the agreement with {name} is now binding.")
    }

    fn progress(&self, who: Option<&str>, percent: u8) -> String {
        format!("{} is {percent} percent done.", agent(who))
    }

    fn result(&self, who: Option<&str>) -> String {
        format!("{} says that its part is done.", agent(who))
    }

    fn problem(&self, who: Option<&str>) -> String {
        format!("{} reports a problem.", agent(who))
    }

    fn resolved(&self, who: Option<&str>) -> String {
        match who {
            Some(name) => format!("{name} has a decision. The talks continue."),
            None => "Your decision is sent. The talks continue.".to_owned(),
        }
    }

    fn escalated(&self, who: Option<&str>, reason: &str) -> String {
        match who {
            Some(name) => format!("{name} waits for a decision on its side: {}.", trimmed(reason)),
            None => format!("Your agent needs a decision: {}.", trimmed(reason)),
        }
    }

    fn closing(&self, who: Option<&str>) -> String {
        format!("{} wants to end the talks.", agent(who))
    }

    fn refused_by_peer(&self, name: &str, reason: &str) -> String {
        format!("{name} did not take the last message of your agent: {}.", trimmed(reason))
    }

    fn undeliverable(&self, name: &str) -> String {
        format!("Your agent cannot reach {name} and has stopped trying.")
    }

    fn response_overdue(&self, name: &str) -> String {
        format!("{name} has not answered in time.")
    }

    fn some_events_not_reported(&self) -> &'static str {
        "Some of what happened in these talks could not be reported."
    }

    fn ended_completed(&self, name: &str) -> String {
        format!("The talks with {name} are over. Both sides say that everything is done.")
    }

    fn ended_closed(&self, who: Option<&str>, name: &str) -> String {
        match who {
            Some(name) => format!("{name} has ended the talks."),
            None => format!("Your agent has ended the talks with {name}."),
        }
    }

    fn ended_withdrawn(&self, who: Option<&str>, name: &str) -> String {
        match who {
            Some(name) => format!("{name} has withdrawn."),
            None => format!("Your agent has withdrawn from the talks with {name}."),
        }
    }

    fn ended_rejected(&self, who: Option<&str>) -> String {
        format!("{} declines the invitation.", agent(who))
    }

    fn ended_timeout(&self, name: &str) -> String {
        format!("The time for the talks with {name} has run out.")
    }

    fn ended_failed(&self, name: &str) -> String {
        format!("The talks with {name} have failed.")
    }

    fn reason(&self, reason: &str) -> String {
        format!("The reason given: {}.", trimmed(reason))
    }

    fn broke_agreement(&self, who: Option<&str>) -> String {
        match who {
            Some(name) => format!("{name} has broken the agreement."),
            None => "Your side has broken the agreement.".to_owned(),
        }
    }

    fn obligation_open(&self) -> &'static str {
        "Not everything that was promised is done."
    }

    fn own_money_back(&self, amount: &str) -> String {
        format!("You get the {amount} in escrow back.")
    }

    fn money_to_us(&self, amount: &str) -> String {
        format!("You get the {amount} from escrow.")
    }

    fn money_to_peer(&self, name: &str, amount: &str) -> String {
        format!("{name} gets the {amount} from escrow.")
    }
}
