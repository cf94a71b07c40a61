//! The view that the fleet's script returns, read.

use std::collections::HashMap;
use std::time::Duration;

use redis::{FromRedisValue, ParsingError, Value};

use crate::ports::{FleetView, InstanceId, LogIdentity, LogPosition, MemberRow, Registration};

/// What the script returns.
pub(super) struct Reply {
    /// Whether the step took effect.
    pub(super) done: bool,
    pub(super) view: FleetView,
}

impl FromRedisValue for Reply {
    fn from_redis_value(value: Value) -> Result<Self, ParsingError> {
        let (done, run, replication, length, fields): (
            bool,
            String,
            String,
            u64,
            HashMap<String, Vec<u8>>,
        ) = FromRedisValue::from_redis_value(value)?;
        let fields = Fields(fields);
        let identity = LogIdentity::new(fields.text("epoch"), run, replication);
        let mut view = FleetView::new(identity, fields.position("last")?);
        view.length = length;
        view.settled = fields.0.contains_key("settled");
        view.open_set_known = fields.0.contains_key("open_set_known");
        view.trimmed = fields.position("trimmed")?;
        // The order of a hash is no order.
        let mut ids: Vec<&str> =
            fields.0.keys().filter_map(|field| field.strip_prefix("i:")).collect();
        ids.sort_unstable();
        for id in ids {
            view.members.push(fields.row(id)?);
        }
        Ok(Self { done, view })
    }
}

/// The fields of the table.
struct Fields(HashMap<String, Vec<u8>>);

impl Fields {
    fn text(&self, field: &str) -> String {
        let bytes = self.0.get(field).map_or(&[][..], Vec::as_slice);
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// A position; the start if there is none.
    fn position(&self, field: &str) -> Result<LogPosition, ParsingError> {
        match self.0.get(field) {
            None => Ok(LogPosition::START),
            Some(_) => LogPosition::parse(&self.text(field))
                .ok_or_else(|| ParsingError::from(format!("{field} is not a position"))),
        }
    }

    /// A number; 0 if there is none.
    fn number(&self, field: &str) -> Result<u64, ParsingError> {
        match self.0.get(field) {
            None => Ok(0),
            Some(_) => self
                .text(field)
                .parse()
                .map_err(|_| ParsingError::from(format!("{field} is not a number"))),
        }
    }

    fn row(&self, id: &str) -> Result<MemberRow, ParsingError> {
        let instance = InstanceId::parse_hex(id)
            .ok_or_else(|| ParsingError::from("a member's id is not one".to_owned()))?;
        let lease = Duration::from_millis(self.number(&format!("l:{id}"))?);
        let label = self.text(&format!("b:{id}"));
        let mut registration = Registration::new(instance, lease, label);
        registration.incarnation = self.number(&format!("i:{id}"))?;
        let mut row = MemberRow::new(&registration, self.position(&format!("a:{id}"))?);
        row.renewals = self.number(&format!("n:{id}"))?;
        row.fenced = self.0.contains_key(&format!("f:{id}"));
        Ok(row)
    }
}
