//! A request header given on the command line.

use hyper::header::{self, HeaderName, HeaderValue};

/// Headers that would change how a request or its connection is framed.
const REFUSED: [HeaderName; 8] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];

/// A header to send with every request. Its value may be a secret: `Debug` doesn't show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestHeader {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
}

/// Reads `Name: value`; spaces around the value are dropped.
pub(crate) fn parse(text: &str) -> Result<RequestHeader, String> {
    let (name, value) = text.split_once(':').ok_or("give 'Name: value'")?;
    let name: HeaderName =
        name.parse().map_err(|_| format!("{name:?} is not a header's name; give 'Name: value'"))?;
    if REFUSED.contains(&name) {
        return Err(format!("{name} is set by the connection and can't be given"));
    }
    let mut value = HeaderValue::from_str(value.trim_matches([' ', '\t']))
        .map_err(|_| format!("the value of {name} has control characters; remove them"))?;
    value.set_sensitive(true);
    Ok(RequestHeader { name, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_value_are_split_at_the_first_colon() {
        for (text, name, value) in [
            ("Authorization: Bearer a:b", "authorization", "Bearer a:b"),
            ("X-Tenant:7", "x-tenant", "7"),
            ("X-Empty:", "x-empty", ""),
            ("Host: \t shop.example ", "host", "shop.example"),
        ] {
            let header = parse(text).unwrap();
            assert_eq!((header.name.as_str(), header.value.as_bytes()), (name, value.as_bytes()));
        }
    }

    #[test]
    fn malformed_headers_are_refused_with_the_problem() {
        for (text, problem) in [
            ("", "give 'Name: value'"),
            ("Authorization", "give 'Name: value'"),
            (": value", "is not a header's name"),
            ("My Name: value", "is not a header's name"),
            ("Name : value", "is not a header's name"),
            ("Name: a\r\nOther: b", "control characters"),
            ("Content-Length: 5", "content-length is set by the connection"),
            ("transfer-encoding: chunked", "transfer-encoding is set by the connection"),
            ("Keep-Alive: 5", "keep-alive is set by the connection"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(problem), "{text:?}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn debug_output_hides_the_value() {
        assert!(!format!("{:?}", parse("Authorization: secret").unwrap()).contains("secret"));
    }
}
