//! Names, and the errors that end a connection.

mod error_codes;
mod names;
