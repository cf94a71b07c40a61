//! HTTP requests of the attack tester: [`target`] (the URL), [`resolve`] (its address), [`template`]
//! (the path), [`header`] (headers of the user), [`connection`] (sending and receiving).

pub(crate) mod connection;
pub(crate) mod header;
mod resolve;
pub(crate) mod target;
pub(crate) mod template;
