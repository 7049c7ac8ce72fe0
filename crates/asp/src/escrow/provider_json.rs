//! Requests to an external provider and its answers, as JSON.

use seal::json::{JsonValue, Tape, write_object};

use super::account::EscrowId;
use super::entry::Deposit;
use super::ledger::EscrowError;
use super::provider::{EscrowAnswer, EscrowRequest};
use crate::message::{JsonCodec, MalformedMessage, ObjectReader};

impl EscrowRequest {
    /// Returns the request as JSON.
    pub fn to_json(&self) -> String {
        write_object(|writer| match self {
            Self::Cover { depositor, amount, currency } => {
                writer.key("type").text("cover");
                depositor.write(writer.key("depositor"));
                amount.write(writer.key("amount"));
                currency.write(writer.key("currency"));
            }
            Self::Hold { id, deposit } => {
                writer.key("type").text("hold");
                id.write_members(writer);
                deposit.write_members(writer);
            }
            Self::Release { id, to } => {
                writer.key("type").text("release");
                id.write_members(writer);
                to.write(writer.key("to"));
            }
        })
    }

    /// Parses a request.
    pub fn parse(json: &str) -> Result<Self, MalformedMessage> {
        parse(json, |object| match object.read_member::<String>("type")?.as_str() {
            "cover" => Ok(Self::Cover {
                depositor: object.read_member("depositor")?,
                amount: object.read_member("amount")?,
                currency: object.read_member("currency")?,
            }),
            "hold" => Ok(Self::Hold { id: EscrowId::read(object)?, deposit: Deposit::read(object)? }),
            "release" => Ok(Self::Release { id: EscrowId::read(object)?, to: object.read_member("to")? }),
            _ => Err(MalformedMessage::expected("cover, hold or release").within("type")),
        })
    }
}

impl EscrowAnswer {
    /// Returns the answer as JSON.
    pub fn to_json(&self) -> String {
        write_object(|writer| {
            let status = writer.key("status");
            match self {
                Self::Covered => status.text("covered"),
                Self::Held => status.text("held"),
                Self::Released(to) => {
                    status.text("released");
                    to.write(writer.key("to"));
                }
                Self::Refused(error) => {
                    status.text("refused");
                    writer.key("code").text(error.code());
                }
                Self::Pending => status.text("pending"),
            }
        })
    }

    /// Parses an answer. An unknown answer is an error, never a success.
    pub fn parse(json: &str) -> Result<Self, MalformedMessage> {
        parse(json, |object| match object.read_member::<String>("status")?.as_str() {
            "covered" => Ok(Self::Covered),
            "held" => Ok(Self::Held),
            "released" => Ok(Self::Released(object.read_member("to")?)),
            "refused" => Ok(Self::Refused(object.read_member("code")?)),
            "pending" => Ok(Self::Pending),
            _ => {
                Err(MalformedMessage::expected("covered, held, released, refused or pending")
                    .within("status"))
            }
        })
    }
}

impl EscrowError {
    const ALL: [Self; 7] = [
        Self::InsufficientFunds,
        Self::AlreadyHeld,
        Self::NotHeld,
        Self::AlreadyReleased,
        Self::ReferenceUsed,
        Self::DepositMismatch,
        Self::BalanceOverflow,
    ];

    /// Returns the machine-readable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::InsufficientFunds => "insufficient_funds",
            Self::AlreadyHeld => "already_held",
            Self::NotHeld => "not_held",
            Self::AlreadyReleased => "already_released",
            Self::ReferenceUsed => "reference_used",
            Self::DepositMismatch => "deposit_mismatch",
            Self::BalanceOverflow => "balance_overflow",
        }
    }
}

impl JsonCodec for EscrowError {
    fn read(value: &JsonValue<'_>) -> Result<Self, MalformedMessage> {
        let text = value.text().unwrap_or_default();
        let known = Self::ALL.into_iter().find(|error| error.code() == text);
        known.ok_or_else(|| MalformedMessage::expected("the code of an escrow error"))
    }

    fn write(&self, writer: &mut seal::json::JsonWriter) {
        writer.text(self.code());
    }
}

fn parse<T>(
    json: &str,
    read: impl FnOnce(&ObjectReader<'_, '_>) -> Result<T, MalformedMessage>,
) -> Result<T, MalformedMessage> {
    let mut tape = Tape::default();
    let doc = tape.read(json).map_err(|error| MalformedMessage::expected(format!("JSON: {error}")))?;
    read(&ObjectReader::of(&doc.root())?)
}
