//! The stored form of ledger entries.

use seal::json::{JsonValue, JsonWriter, Tape, write_object};

use super::account::EscrowId;
use super::entry::{Deposit, LedgerEntry, LedgerOperation};
use crate::message::{JsonCodec, MalformedMessage, ObjectReader};
use crate::session::Payee;

impl LedgerEntry {
    /// Returns the entry as JSON, with its postings.
    pub fn to_json(&self) -> String {
        write_object(|writer| {
            writer.key("type").text(self.operation.name());
            self.at.write(writer.key("atMs"));
            match &self.operation {
                LedgerOperation::Credit { reference, agent, amount, currency }
                | LedgerOperation::Debit { reference, agent, amount, currency } => {
                    reference.write(writer.key("reference"));
                    agent.write(writer.key("agent"));
                    amount.write(writer.key("amount"));
                    currency.write(writer.key("currency"));
                }
                LedgerOperation::Hold { id, deposit } => {
                    id.write_members(writer);
                    deposit.write_members(writer);
                }
                LedgerOperation::Release { id, deposit, to } => {
                    id.write_members(writer);
                    deposit.write_members(writer);
                    to.write(writer.key("to"));
                }
            }
            writer.key("postings").array(|writer| self.write_postings(writer));
        })
    }

    /// Parses an entry. Fails if its postings are not those of its operation.
    pub fn parse(json: &str) -> Result<Self, MalformedMessage> {
        let mut tape = Tape::default();
        let doc = tape.read(json).map_err(|error| MalformedMessage::expected(format!("JSON: {error}")))?;
        Self::read(&doc.root())
    }

    /// Reads an entry from a parsed document. Fails if its postings are not those of its operation.
    pub fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let object = ObjectReader::of(value)?;
        let operation = match object.read_member::<String>("type")?.as_str() {
            "credit" => LedgerOperation::Credit {
                reference: object.read_member("reference")?,
                agent: object.read_member("agent")?,
                amount: object.read_member("amount")?,
                currency: object.read_member("currency")?,
            },
            "debit" => LedgerOperation::Debit {
                reference: object.read_member("reference")?,
                agent: object.read_member("agent")?,
                amount: object.read_member("amount")?,
                currency: object.read_member("currency")?,
            },
            "hold" => {
                LedgerOperation::Hold { id: EscrowId::read(&object)?, deposit: Deposit::read(&object)? }
            }
            "release" => LedgerOperation::Release {
                id: EscrowId::read(&object)?,
                deposit: Deposit::read(&object)?,
                to: object.read_member("to")?,
            },
            _ => return Err(MalformedMessage::expected("credit, debit, hold or release").within("type")),
        };
        let entry = Self { at: object.read_member("atMs")?, operation };
        let mut postings = JsonWriter::default();
        postings.array(|writer| entry.write_postings(writer));
        if value.member("postings").is_none_or(|stored| stored.source() != postings.finish()) {
            return Err(MalformedMessage::expected("the postings of the operation").within("postings"));
        }
        Ok(entry)
    }

    fn write_postings(&self, writer: &mut JsonWriter) {
        for posting in self.postings() {
            writer.object(|writer| {
                writer.key("account").text(&posting.account.to_string());
                writer.key("billionths").text(&posting.billionths.to_string());
                posting.currency.write(writer.key("currency"));
            });
        }
    }
}

impl LedgerOperation {
    fn name(&self) -> &'static str {
        match self {
            Self::Credit { .. } => "credit",
            Self::Debit { .. } => "debit",
            Self::Hold { .. } => "hold",
            Self::Release { .. } => "release",
        }
    }
}

impl EscrowId {
    pub(super) fn write_members(&self, writer: &mut JsonWriter) {
        self.session_id.write(writer.key("sessionId"));
        self.commitment_id.write(writer.key("commitmentId"));
    }

    pub(super) fn read(object: &ObjectReader<'_, '_>) -> Result<Self, MalformedMessage> {
        Ok(Self {
            session_id: object.read_member("sessionId")?,
            commitment_id: object.read_member("commitmentId")?,
        })
    }
}

impl Deposit {
    pub(super) fn write_members(&self, writer: &mut JsonWriter) {
        self.depositor.write(writer.key("depositor"));
        self.beneficiary.write(writer.key("beneficiary"));
        self.amount.write(writer.key("amount"));
        self.currency.write(writer.key("currency"));
    }

    pub(super) fn read(object: &ObjectReader<'_, '_>) -> Result<Self, MalformedMessage> {
        Ok(Self {
            depositor: object.read_member("depositor")?,
            beneficiary: object.read_member("beneficiary")?,
            amount: object.read_member("amount")?,
            currency: object.read_member("currency")?,
        })
    }
}

impl JsonCodec for Payee {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        match value.text().as_deref() {
            Some("depositor") => Ok(Self::Depositor),
            Some("beneficiary") => Ok(Self::Beneficiary),
            _ => Err(MalformedMessage::expected("depositor or beneficiary")),
        }
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.text(match self {
            Self::Depositor => "depositor",
            Self::Beneficiary => "beneficiary",
        });
    }
}
