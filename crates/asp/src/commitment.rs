//! Commitments and their status.

use seal::UnixMillis;

use crate::id::{AgentUri, MessageId, Reference};
use crate::message::{Commit, Obligation};
use crate::state_machine::Role;

seal::string_enum! {
    /// The status of a commitment.
    CommitmentStatus {
        /// The commitment was sent, but not answered yet.
        Pending "pending",
        /// The commitment was accepted and is binding.
        Accepted "accepted",
        /// All obligations were fulfilled in time.
        Fulfilled "fulfilled",
        /// All obligations were fulfilled, some after their deadline.
        Late "late",
        /// The other side contested the result of an obligation (D22).
        Contested "contested",
        /// A side broke the agreement, for example by not fulfilling an obligation.
        Broken "broken",
        /// The session ended before the commitment was accepted.
        Withdrawn "withdrawn",
    }
}

/// A party's report that an obligation is fulfilled: its INFORM(result).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResultReport {
    /// When the party reported the result.
    pub reported_at: UnixMillis,
    /// What the other side says about it.
    pub verdict: ResultVerdict,
}

seal::string_enum! {
    /// What the other side says about a result (D22).
    ResultVerdict {
        /// The other side has said nothing yet.
        Unanswered "unanswered",
        /// The other side accepted the result: INFORM(answer) with the result's id as `inReplyTo`.
        Accepted "accepted",
        /// The other side contested the result: INFORM(error) with the result's id as `inReplyTo`.
        Contested "contested",
    }
}

/// A commitment and its status. Once accepted, it is also called an agreement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Commitment {
    commit: Commit,
    sender: Role,
    status: CommitmentStatus,
    /// For each obligation, the report that it is fulfilled, if there is one.
    reports: Vec<Option<ResultReport>>,
    /// The messages that reported a result, with their senders.
    result_ids: Vec<(Role, MessageId)>,
}

impl Commitment {
    pub(crate) fn new(commit: Commit, sender: Role) -> Self {
        let reports = vec![None; commit.terms.obligations.len()];
        Self { commit, sender, status: CommitmentStatus::Pending, reports, result_ids: Vec::new() }
    }

    /// Returns the COMMIT.
    pub fn commit(&self) -> &Commit {
        &self.commit
    }

    /// Returns the side that sent the COMMIT.
    pub fn sender(&self) -> Role {
        self.sender
    }

    /// Returns the status.
    pub fn status(&self) -> CommitmentStatus {
        self.status
    }

    /// Returns each obligation, with the report that it is fulfilled, if there is one.
    pub fn obligations(&self) -> impl Iterator<Item = (&Obligation, Option<&ResultReport>)> {
        self.commit.terms.obligations.iter().zip(self.reports.iter().map(Option::as_ref))
    }

    pub(crate) fn accept(&mut self) {
        self.status = CommitmentStatus::Accepted;
    }

    pub(crate) fn set_status(&mut self, status: CommitmentStatus) {
        self.status = status;
    }

    /// Records the INFORM(result) of a party, which covers all its obligations. A contested result is replaced; otherwise the
    /// first result counts. A party without obligations has no result.
    pub(crate) fn report_result(&mut self, sender: Role, party: &AgentUri, id: MessageId, at: UnixMillis) {
        let has_obligations = self.reports_of(party).next().is_some();
        if has_obligations && !self.result_ids.contains(&(sender, id)) {
            self.result_ids.push((sender, id));
        }
        for report in self.reports_of(party) {
            if report.is_none_or(|report| report.verdict == ResultVerdict::Contested) {
                *report = Some(ResultReport { reported_at: at, verdict: ResultVerdict::Unanswered });
            }
        }
    }

    /// Returns whether this side reported a result in a message with this id.
    pub(crate) fn has_result(&self, sender: Role, reference: &Reference) -> bool {
        MessageId::parse(reference.as_str()).is_ok_and(|id| self.result_ids.contains(&(sender, id)))
    }

    /// Records that the other side contests the results of a party. An accepted result cannot be contested.
    pub(crate) fn contest_results(&mut self, party: &AgentUri) {
        for report in self.reports_of(party).flatten() {
            if report.verdict == ResultVerdict::Unanswered {
                report.verdict = ResultVerdict::Contested;
            }
        }
    }

    /// Records that the other side accepts the results of a party.
    pub(crate) fn accept_results(&mut self, party: &AgentUri) {
        for report in self.reports_of(party).flatten() {
            report.verdict = ResultVerdict::Accepted;
        }
    }

    fn reports_of(&mut self, party: &AgentUri) -> impl Iterator<Item = &mut Option<ResultReport>> {
        let reports = self.commit.terms.obligations.iter().zip(&mut self.reports);
        reports.filter(move |(obligation, _)| &obligation.party == party).map(|(_, report)| report)
    }
}
