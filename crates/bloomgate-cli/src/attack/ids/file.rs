//! A file of ids, one a line.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::attack::ids::id::{Id, MAX_TEXT_BYTES};

/// The largest file, in bytes: all ids are held in memory.
const MAX_FILE_BYTES: u64 = 1 << 30;
/// Everything but the unreserved characters of RFC 3986, so that an id stays within its segment of
/// the path, or its parameter of the query.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Distinct ids in the order of their file, percent-encoded. At least one; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct IdFile {
    text: Bytes,
    /// Where each id ends in the text.
    ends: Arc<[usize]>,
}

impl IdFile {
    /// Reads a file of at most 1 GiB. An error is a sentence for the user.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let unreadable = |error: std::io::Error| format!("can't read the file {shown} ({error})");
        let mut content = Vec::new();
        let file = File::open(path).map_err(unreadable)?;
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content).map_err(unreadable)?;
        if content.len() as u64 > MAX_FILE_BYTES {
            return Err(format!("the file {shown} is larger than 1 GiB; give fewer ids"));
        }
        Self::parse(&content).map_err(|problem| format!("the file {shown} {problem}"))
    }

    /// Empty and repeated lines are skipped; a line may end with CR LF; any bytes make an id.
    fn parse(content: &[u8]) -> Result<Self, String> {
        let content = content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(content);
        let mut seen = HashSet::new();
        let (mut text, mut ends) = (Vec::with_capacity(content.len()), Vec::new());
        for (number, line) in (1_u64..).zip(content.split(|&byte| byte == b'\n')) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() || !seen.insert(line) {
                continue;
            }
            if line.len() > MAX_TEXT_BYTES {
                return Err(format!(
                    "has an id of more than {MAX_TEXT_BYTES} bytes in line {number}; write one id \
                     a line"
                ));
            }
            for part in percent_encode(line, RESERVED) {
                text.extend_from_slice(part.as_bytes());
            }
            ends.push(text.len());
        }
        if ends.is_empty() {
            return Err("has no ids; write one id a line".to_owned());
        }
        Ok(Self { text: text.into(), ends: ends.into() })
    }

    /// How many ids there are.
    pub(crate) fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    /// The id number `index`, from 0; indexes beyond the end start over.
    pub(crate) fn get(&self, index: u64) -> Id {
        let index = (index % self.len()) as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Id::Text(self.text.slice(start..self.ends[index]))
    }

    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(self.ends.iter()).map(|(start, &end)| &self.text[start..end])
    }

    /// The first id that is an integer from `first` to `last`.
    pub(crate) fn find_int(&self, first: u64, last: u64) -> Option<u64> {
        let ints = self.texts().filter_map(|text| std::str::from_utf8(text).ok()?.parse().ok());
        ints.into_iter().find(|id| (first..=last).contains(id))
    }

    /// The first id that is also in `other`, percent-encoded.
    pub(crate) fn find_common(&self, other: &Self) -> Option<String> {
        let others: HashSet<&[u8]> = other.texts().collect();
        let common = self.texts().find(|text| others.contains(text))?;
        Some(String::from_utf8_lossy(common).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(content: &[u8]) -> Vec<String> {
        let file = IdFile::parse(content).unwrap();
        let text = |index| match file.get(index) {
            Id::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
            id => panic!("{id:?} is not text"),
        };
        (0..file.len()).map(text).collect()
    }

    #[test]
    fn each_line_is_an_id_once_and_empty_lines_are_skipped() {
        assert_eq!(texts(b"a\nbc\n\na\n\nd"), ["a", "bc", "d"]);
        assert_eq!(texts("\u{feff}a\r\n\r\nb\r\n".as_bytes()), ["a", "b"]);
    }

    #[test]
    fn reserved_characters_are_percent_encoded() {
        let lines = "A-z.0_9~\na/b?c#d\n50% off\n\u{fc}\n\"{}";
        assert_eq!(
            texts(lines.as_bytes()),
            ["A-z.0_9~", "a%2Fb%3Fc%23d", "50%25%20off", "%C3%BC", "%22%7B%7D"]
        );
        assert_eq!(texts(b"\xff\0"), ["%FF%00"]);
    }

    #[test]
    fn files_without_usable_ids_are_refused() {
        assert!(IdFile::parse(b"\n\r\n").unwrap_err().contains("has no ids"));
        let long = [b"a\n".to_vec(), vec![b'b'; MAX_TEXT_BYTES + 1]].concat();
        assert!(IdFile::parse(&long).unwrap_err().contains("in line 2"));
        assert!(IdFile::parse(&vec![b'b'; MAX_TEXT_BYTES]).is_ok());
    }

    #[test]
    fn an_unreadable_file_is_named() {
        let error = IdFile::read(Path::new("/no/such/file")).unwrap_err();
        assert!(error.starts_with("can't read the file /no/such/file ("), "{error}");
        let error = IdFile::read(&std::env::temp_dir()).unwrap_err();
        assert!(error.starts_with("can't read the file "), "{error}");
    }

    #[test]
    fn common_ids_are_found() {
        let file = |content: &str| IdFile::parse(content.as_bytes()).unwrap();
        let ids = file("x\n17\na b");
        assert_eq!(ids.find_common(&file("c\na b")), Some("a%20b".to_owned()));
        assert_eq!(ids.find_common(&file("c\nab")), None);
        assert_eq!((ids.find_int(1, 17), ids.find_int(18, 99)), (Some(17), None));
    }
}
