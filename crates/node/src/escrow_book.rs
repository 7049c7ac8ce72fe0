//! The escrow ledger of a node, and the money that is reserved but not held yet.

use std::collections::HashMap;

use asp::escrow::{
    Deposit, EscrowId, EscrowLedger, EscrowStatus, LedgerEntry, LedgerOperation, TransactionLimit,
};
use asp::message::Body;
use asp::session::{AspSession, Effect};
use asp::state_machine::{Role, State};
use asp::{AgentCard, AgentUri, Amount, Commitment, CommitmentId, Currency, Reference, SessionId};
use seal::{Digest, UnixMillis, base64url};

use crate::policy::Policy;
use crate::records::{NodeRecord, SessionInfo};

/// The ledger, rebuilt from its stored entries.
#[derive(Debug, Default)]
pub(crate) struct EscrowBook {
    ledger: EscrowLedger,
    /// The deposits of commitments that we have accepted, until the peer has stored our ACCEPT and the money is held.
    reserved: HashMap<SessionId, Deposit>,
}

impl EscrowBook {
    /// Applies a stored entry.
    pub(crate) fn apply(&mut self, entry: &str) {
        let applied = LedgerEntry::parse(entry).map_err(|error| error.to_string()).and_then(|entry| {
            if let LedgerOperation::Hold { id, .. } = &entry.operation {
                self.reserved.remove(&id.session_id);
            }
            self.ledger.apply(&entry).map_err(|error| error.to_string())
        });
        if let Err(error) = applied {
            tracing::error!(target: "sayso::log", kind = "asp.ledger_entry_ignored", %error);
        }
    }

    /// Returns the entries for the deposits in the policy file that are not recorded yet. Each line of the file is recorded once.
    pub(crate) fn new_deposits(&self, policy: &Policy, now: UnixMillis) -> Vec<NodeRecord> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let credits = policy.deposits.iter().filter_map(|(agent, amount, currency)| {
            let line = format!("{agent}:{}:{}", amount.as_str(), currency.as_str());
            let count = counts.entry(line.clone()).or_default();
            *count += 1;
            // A reference permits none of the signs that separate the parts of an agent URI.
            let hash = base64url::encode(Digest::of(line.as_bytes()).as_bytes());
            let operation = LedgerOperation::Credit {
                reference: Reference::parse(&format!("policy.{count}.{hash}")).ok()?,
                agent: agent.clone(),
                amount: amount.clone(),
                currency: currency.clone(),
            };
            self.ledger.plan(operation, now).ok()
        });
        credits.map(|entry| NodeRecord::Ledger { entry: entry.to_json() }).collect()
    }

    /// Returns whether the escrow of the pending commitment is covered and within the ceilings, or there is none. `peer` is the
    /// other side, and `level` our trust in it.
    pub(crate) fn is_funded(
        &self,
        info: &SessionInfo,
        session: Option<&AspSession>,
        body: &Body,
        policy: &Policy,
        level: asp::trust::TrustLevel,
    ) -> bool {
        if !matches!(body, Body::Accept(_)) {
            return true;
        }
        let Some(deposit) =
            session.and_then(AspSession::commitment).and_then(|commitment| deposit(info, commitment))
        else {
            return true;
        };
        let card = card_of(info, &deposit.depositor);
        let limit = TransactionLimit { max_value: card.max_transaction_value(), currency: card.currency() };
        policy.escrow_ceilings.check(level, limit, &deposit.amount, &deposit.currency).is_ok()
            && self.can_cover(info.id, &deposit)
    }

    /// Reserves the deposit of a commitment that this node accepts, so that the same money does not cover another one.
    pub(crate) fn reserve(&mut self, info: &SessionInfo, session: Option<&AspSession>) {
        let deposit = session.and_then(AspSession::commitment).and_then(|commitment| {
            let id =
                EscrowId { session_id: info.id, commitment_id: commitment.commit().commitment_id.clone() };
            deposit(info, commitment).filter(|_| self.ledger.deposit(&id).is_none())
        });
        if let Some(deposit) = deposit {
            self.reserved.insert(info.id, deposit);
        }
    }

    /// Returns the status of a commitment's escrow.
    pub(crate) fn status(&self, id: &EscrowId) -> Option<EscrowStatus> {
        self.ledger.deposit(id).map(|(_, status)| status)
    }

    /// Releases the reservation of a session whose acceptance was rolled back, or that has ended.
    pub(crate) fn forget_promise(&mut self, session: SessionId) {
        self.reserved.remove(&session);
    }

    /// Returns the pending commitment of the peer whose escrow the peer's money does not cover.
    pub(crate) fn unfunded_commitment(
        &self,
        info: &SessionInfo,
        session: Option<&AspSession>,
    ) -> Option<CommitmentId> {
        let session = session.filter(|session| session.state() == State::Agreeing)?;
        let commitment = session.commitment().filter(|commitment| commitment.sender() != info.role)?;
        let deposit = deposit(info, commitment)?;
        (!self.can_cover(info.id, &deposit)).then(|| commitment.commit().commitment_id.clone())
    }

    /// Returns the entries for escrows that are funded or paid out, in the order of the effects.
    pub(crate) fn entries_of(
        &self,
        info: &SessionInfo,
        effects: &[&Effect],
        now: UnixMillis,
    ) -> Vec<LedgerEntry> {
        let is_escrow = |effect: &&&Effect| {
            matches!(effect, Effect::ActivateEscrow { .. } | Effect::ReleaseEscrow { .. })
        };
        let mut effects = effects.iter().filter(is_escrow).peekable();
        if effects.peek().is_none() {
            return Vec::new();
        }
        // The same message can fund an escrow and pay it out, so each entry is planned after the earlier ones.
        let mut ledger = self.ledger.clone();
        let mut entries = Vec::new();
        for effect in effects {
            let Some(operation) = operation_of(info, effect, &ledger) else { continue };
            match ledger.plan(operation, now).and_then(|entry| ledger.apply(&entry).map(|()| entry)) {
                Ok(entry) => entries.push(entry),
                Err(error) => {
                    tracing::error!(target: "sayso::log", kind = "asp.escrow_failed", session = %info.id, %error);
                }
            }
        }
        entries
    }

    fn can_cover(&self, session: SessionId, deposit: &Deposit) -> bool {
        let reserved: u128 = self
            .reserved
            .iter()
            .filter(|(other, promise)| {
                **other != session
                    && promise.depositor == deposit.depositor
                    && promise.currency == deposit.currency
            })
            .map(|(_, promise)| promise.amount.billionths())
            .sum();
        let balance = self.ledger.balance(&deposit.depositor, &deposit.currency);
        balance >= reserved.saturating_add(deposit.amount.billionths())
    }
}

fn operation_of(info: &SessionInfo, effect: &Effect, ledger: &EscrowLedger) -> Option<LedgerOperation> {
    match effect {
        Effect::ActivateEscrow { commitment, depositor, amount, currency } => Some(LedgerOperation::Hold {
            id: EscrowId { session_id: info.id, commitment_id: commitment.clone() },
            deposit: new_deposit(info, *depositor, amount, currency),
        }),
        Effect::ReleaseEscrow { commitment, to } => {
            let id = EscrowId { session_id: info.id, commitment_id: commitment.clone() };
            let (deposit, _) = ledger.deposit(&id)?;
            Some(LedgerOperation::Release { deposit: deposit.clone(), id, to: *to })
        }
        _ => None,
    }
}

/// Returns the deposit of a commitment, if it has one.
fn deposit(info: &SessionInfo, commitment: &Commitment) -> Option<Deposit> {
    let escrow = commitment.commit().escrow.as_ref()?;
    Some(new_deposit(info, commitment.sender(), &escrow.amount, &escrow.currency))
}

fn new_deposit(info: &SessionInfo, depositor: Role, amount: &Amount, currency: &Currency) -> Deposit {
    let (depositor, beneficiary) =
        if depositor == info.role { (&info.own, &info.peer) } else { (&info.peer, &info.own) };
    Deposit {
        depositor: depositor.agent_id().clone(),
        beneficiary: beneficiary.agent_id().clone(),
        amount: amount.clone(),
        currency: currency.clone(),
    }
}

fn card_of<'i>(info: &'i SessionInfo, agent: &AgentUri) -> &'i AgentCard {
    if info.own.agent_id() == agent { &info.own } else { &info.peer }
}
