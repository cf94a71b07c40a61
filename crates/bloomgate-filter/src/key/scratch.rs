//! A byte buffer on the stack that spills to the heap.

/// Bytes that fit on the stack.
const INLINE: usize = 128;

/// Collects the parts of a tuple, on the stack up to [`INLINE`] bytes.
pub(super) struct Scratch {
    stack: [u8; INLINE],
    /// The used length of `stack`; unused once the bytes are in `heap`.
    len: usize,
    /// Empty while the bytes are in `stack`.
    heap: Vec<u8>,
}

impl Scratch {
    #[inline]
    pub(super) fn new() -> Self {
        Self { stack: [0; INLINE], len: 0, heap: Vec::new() }
    }

    /// Appends the length of `bytes` in LEB128, then `bytes`.
    ///
    /// LEB128 is prefix-free, so the encoding determines the boundaries of the parts: different
    /// tuples have different encodings.
    #[inline]
    pub(super) fn push_part(&mut self, bytes: &[u8]) {
        // Ten groups of seven bits hold any 64-bit length.
        let mut prefix = [0_u8; 10];
        let mut used = 0;
        let mut rest = bytes.len() as u64;
        loop {
            let group = (rest & 0x7f) as u8;
            rest >>= 7;
            prefix[used] = if rest == 0 { group } else { group | 0x80 };
            used += 1;
            if rest == 0 {
                break;
            }
        }
        self.push(&prefix[..used]);
        self.push(bytes);
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if self.heap.is_empty() && end <= INLINE {
            self.stack[self.len..end].copy_from_slice(bytes);
            self.len = end;
        } else {
            self.spill(bytes);
        }
    }

    #[cold]
    fn spill(&mut self, bytes: &[u8]) {
        if self.heap.is_empty() {
            self.heap.reserve(self.len + bytes.len());
            self.heap.extend_from_slice(&self.stack[..self.len]);
        }
        self.heap.extend_from_slice(bytes);
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        if self.heap.is_empty() { &self.stack[..self.len] } else { &self.heap }
    }
}
