//! Keys as columns of a table.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::{Arguments as _, Decode, Encode, Type};

use super::SqlDatabase;
use crate::error::BoxError;
use crate::key::Key;

/// A key that a database holds in one column or several.
///
/// Implemented for the integers that the database has, `String`, `Vec<u8>`, `Uuid` (feature
/// `uuid`; in SQLite a blob of 16 bytes), and tuples of 2 to 4 of these. A scan writes its position
/// into a [`Cursor`](crate::ports::Cursor), for which the key has to be serialisable.
///
/// A type of your own that is one column to sqlx, such as one with `#[derive(sqlx::Type)]` and
/// `#[sqlx(transparent)]`, becomes a key by [`sql_key!`](crate::sql_key).
pub trait SqlKey<DB: SqlDatabase>: Key + Serialize + DeserializeOwned {
    /// How many columns hold the key.
    const COLUMNS: usize;

    /// Adds the key's columns to the arguments of a query.
    ///
    /// # Errors
    /// When a value can't be encoded.
    fn bind(&self, arguments: &mut DB::Arguments) -> Result<(), BoxError>;

    /// Reads the key from a row, beginning at column `first` (counted from 0).
    ///
    /// # Errors
    /// When a column is missing, or doesn't hold a value of its type.
    fn decode(row: &DB::Row, first: usize) -> Result<Self, sqlx::Error>;
}

/// A type that is one column to sqlx. Implemented for all of these.
pub trait SqlColumn<DB: SqlDatabase>: Sized {
    /// Adds the value to the arguments of a query.
    ///
    /// # Errors
    /// When the value can't be encoded.
    fn bind_column(&self, arguments: &mut DB::Arguments) -> Result<(), BoxError>;

    /// Reads the value from a column of a row, counted from 0.
    ///
    /// # Errors
    /// When there is no such column, or it doesn't hold a value of this type.
    fn decode_column(row: &DB::Row, index: usize) -> Result<Self, sqlx::Error>;
}

impl<DB, T> SqlColumn<DB> for T
where
    DB: SqlDatabase,
    T: Clone + Type<DB> + for<'q> Encode<'q, DB> + for<'r> Decode<'r, DB>,
{
    fn bind_column(&self, arguments: &mut DB::Arguments) -> Result<(), BoxError> {
        arguments.add(self.clone())
    }

    fn decode_column(row: &DB::Row, index: usize) -> Result<Self, sqlx::Error> {
        DB::column(row, index)
    }
}

/// Makes types that sqlx takes for one column keys of SQL tables.
///
/// The type implements [`Key`](crate::Key) and serde's `Serialize` and `Deserialize`, and what
/// `#[derive(sqlx::Type)]` with `#[sqlx(transparent)]` implements.
///
/// ```
/// use std::borrow::Cow;
///
/// use bloomgate::Key;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
/// #[serde(transparent)]
/// #[sqlx(transparent)]
/// struct ProductId(i64);
///
/// impl Key for ProductId {
///     fn kind() -> Cow<'static, str> {
///         i64::kind()
///     }
///
///     fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
///         self.0.with_bytes(f)
///     }
/// }
///
/// bloomgate::sql_key!(ProductId);
/// ```
#[macro_export]
macro_rules! sql_key {
    ($($key:ty),+ $(,)?) => {$(
        impl<DB> $crate::sql::SqlKey<DB> for $key
        where
            DB: $crate::sql::SqlDatabase,
            $key: $crate::sql::SqlColumn<DB>,
        {
            const COLUMNS: usize = 1;

            fn bind(
                &self,
                arguments: &mut <DB as $crate::sql::sqlx::Database>::Arguments,
            ) -> ::core::result::Result<(), $crate::BoxError> {
                $crate::sql::SqlColumn::<DB>::bind_column(self, arguments)
            }

            fn decode(
                row: &<DB as $crate::sql::sqlx::Database>::Row,
                first: usize,
            ) -> ::core::result::Result<Self, $crate::sql::sqlx::Error> {
                $crate::sql::SqlColumn::<DB>::decode_column(row, first)
            }
        }
    )+};
}

sql_key!(i8, i16, i32, i64, u8, u16, u32, u64, String, Vec<u8>);
#[cfg(feature = "uuid")]
sql_key!(uuid::Uuid);

macro_rules! tuple_keys {
    ($($part:ident $at:tt),+) => {
        impl<DB: SqlDatabase, $($part: SqlKey<DB>),+> SqlKey<DB> for ($($part,)+) {
            const COLUMNS: usize = 0 $(+ $part::COLUMNS)+;

            fn bind(&self, arguments: &mut DB::Arguments) -> Result<(), BoxError> {
                $(self.$at.bind(arguments)?;)+
                Ok(())
            }

            fn decode(row: &DB::Row, first: usize) -> Result<Self, sqlx::Error> {
                let mut next = first;
                let mut skip = |columns: usize| {
                    next += columns;
                    next - columns
                };
                Ok(($($part::decode(row, skip($part::COLUMNS))?,)+))
            }
        }
    };
}

tuple_keys!(A 0, B 1);
tuple_keys!(A 0, B 1, C 2);
tuple_keys!(A 0, B 1, C 2, D 3);
