//! A request path with a placeholder for the id.

use bytes::{BufMut, Bytes, BytesMut};
use hyper::Uri;
use hyper::http::uri::InvalidUri;

use crate::attack::ids::id::{Id, MAX_TEXT_BYTES};

/// Replaced by an id in every request.
pub(crate) const PLACEHOLDER: &str = "{id}";
/// The longest path without its id, in bytes. hyper accepts 65,534 with the id, which is at most
/// three times [`MAX_TEXT_BYTES`] when percent-encoded.
const MAX_PATH_BYTES: usize = 8 * 1024;
const _: () = assert!(MAX_PATH_BYTES + 3 * MAX_TEXT_BYTES < 65_534);

/// A path with query, split at the place of the id.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Template {
    /// Splits `path` at its only `{id}`. An error is a sentence for the user.
    pub(crate) fn new(path: &str) -> Result<Self, String> {
        if path.len() > MAX_PATH_BYTES {
            return Err(format!("the path is longer than {MAX_PATH_BYTES} bytes; shorten it"));
        }
        match path.split(PLACEHOLDER).collect::<Vec<_>>().as_slice() {
            [before, after] => {
                Ok(Self { before: before.as_bytes().to_vec(), after: after.as_bytes().to_vec() })
            }
            _ => Err("write {id} once, in the path or query, where the id belongs".to_owned()),
        }
    }

    /// The path for one id, in one allocation.
    pub(crate) fn fill(&self, id: &Id) -> Result<Uri, InvalidUri> {
        let length = self.before.len() + id.max_bytes() + self.after.len();
        let mut path = BytesMut::with_capacity(length);
        path.put_slice(&self.before);
        id.write(&mut path);
        path.put_slice(&self.after);
        Uri::from_maybe_shared::<Bytes>(path.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_placeholder_is_replaced_in_path_or_query() {
        for (path, filled) in
            [("/a/{id}", "/a/7"), ("/a/{id}/b?c=d", "/a/7/b?c=d"), ("/?id={id}", "/?id=7")]
        {
            assert_eq!(Template::new(path).unwrap().fill(&Id::Int(7)).unwrap(), filled);
        }
    }

    #[test]
    fn a_path_without_one_placeholder_is_refused() {
        for path in ["/", "/{id}/{id}", "/{ID}", "/{}"] {
            let error = Template::new(path).unwrap_err();
            assert!(error.contains("write {id} once"), "{path}: {error}");
        }
    }

    #[test]
    fn the_longest_path_holds_the_longest_id_and_a_longer_path_is_refused() {
        let path = format!("/{}{PLACEHOLDER}", "a".repeat(MAX_PATH_BYTES - 5));
        let longest = Id::Text(Bytes::from("%25".repeat(MAX_TEXT_BYTES)));
        assert!(Template::new(&path).unwrap().fill(&longest).is_ok());
        assert!(Template::new(&format!("{path}a")).unwrap_err().contains("8192"));
    }
}
