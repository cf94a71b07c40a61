//! Random ids of leases, writes and instances.

use std::fmt;

macro_rules! random_ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// Draws a fresh id.
            #[must_use]
            pub fn fresh() -> Self {
                Self(rand::random())
            }

            /// Reads what [`to_hex`](Self::to_hex) writes.
            #[must_use]
            pub fn parse_hex(text: &str) -> Option<Self> {
                let digits: &[u8; 32] = text.as_bytes().try_into().ok()?;
                let mut bytes = [0; 16];
                // `from_str_radix` takes a sign.
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
                    let pair = std::str::from_utf8(pair).ok()?;
                    *byte = u8::from_str_radix(pair, 16).ok()?;
                }
                Some(Self(bytes))
            }

            /// The bytes of the id.
            #[must_use]
            pub fn to_bytes(self) -> [u8; 16] {
                self.0
            }

            /// The id with these bytes.
            #[must_use]
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// 32 lower-case hexadecimal digits.
            #[must_use]
            pub fn to_hex(self) -> String {
                to_hex(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.to_hex())
            }
        }
    )+};
}

random_ids! {
    /// Names one attempt to lease a slot; random, fresh for each.
    LeaseId,
    /// Names one write; random, fresh for each.
    WriteId,
    /// Names one process in its namespace; random, fresh at each start.
    InstanceId,
}

fn to_hex(bytes: &[u8; 16]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(32), |mut text, byte| {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
