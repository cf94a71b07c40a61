//! Tests of the key encodings.

use proptest::prelude::*;

use super::*;

fn bytes(key: &impl Key) -> Vec<u8> {
    key.with_bytes(<[u8]>::to_vec)
}

fn check<K: Key>(key: K, kind: &str, expected: &[u8]) {
    assert_eq!(K::kind(), kind);
    assert_eq!(bytes(&key), expected, "{key:?}");
}

#[test]
fn case_07_golden_vectors_of_integers() {
    check(0_i64, "int", &[0; 8]);
    check(1_u8, "int", &[1, 0, 0, 0, 0, 0, 0, 0]);
    check(-2_i8, "int", &[254, 255, 255, 255, 255, 255, 255, 255]);
    check(255_u8, "int", &[255, 0, 0, 0, 0, 0, 0, 0]);
    check(-2_i16, "int", &[254, 255, 255, 255, 255, 255, 255, 255]);
    check(0x1234_u16, "int", &[0x34, 0x12, 0, 0, 0, 0, 0, 0]);
    check(i32::MIN, "int", &[0, 0, 0, 128, 255, 255, 255, 255]);
    check(u32::MAX, "int", &[255, 255, 255, 255, 0, 0, 0, 0]);
    check(i64::MIN, "int", &[0, 0, 0, 0, 0, 0, 0, 128]);
    check(0x0102_0304_0506_0708_u64, "int", &[8, 7, 6, 5, 4, 3, 2, 1]);
    check(1_u128 << 64, "int128", &[0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    check(-1_i128, "int128", &[255; 16]);
}

#[test]
fn case_07_golden_vectors_of_text_and_bytes() {
    check(String::from("käse"), "text", b"k\xc3\xa4se");
    check(Box::<str>::from(""), "text", b"");
    check(Arc::<str>::from("a\0b"), "text", b"a\0b");
    check(vec![1_u8, 0, 255], "bytes", &[1, 0, 255]);
    check(Box::<[u8]>::from([9]), "bytes", &[9]);
    check(Arc::<[u8]>::from([]), "bytes", &[]);
    check([5_u8; 3], "bytes", &[5, 5, 5]);
}

#[test]
fn case_07_golden_vectors_of_tuples() {
    let text = String::from;
    check((1_u8, text("ab")), "(int,text)", &[8, 1, 0, 0, 0, 0, 0, 0, 0, 2, b'a', b'b']);
    check((text(""), text("")), "(text,text)", &[0, 0]);
    check((text("a"), [7_u8], text("")), "(text,bytes,text)", &[1, b'a', 1, 7, 0]);
    check(([1_u8], [2_u8], [3_u8], [4_u8]), "(bytes,bytes,bytes,bytes)", &[1, 1, 1, 2, 1, 3, 1, 4]);
    check((text("x"), ([1_u8], [2_u8])), "(text,(bytes,bytes))", &[1, b'x', 4, 1, 1, 1, 2]);
    // A length of 300 takes two groups: 300 = 0b10_0101100.
    let long = (vec![6_u8; 300], [1_u8]);
    let expected = [vec![0b1010_1100, 0b10], vec![6; 300], vec![1, 1]].concat();
    check(long, "(bytes,bytes)", &expected);
}

#[cfg(feature = "uuid")]
#[test]
fn case_07_golden_vector_of_uuids() {
    let id = uuid::Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    let expected = [
        0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
    ];
    check(id, "uuid", &expected);
}

#[test]
fn tuple_encoding_is_equal_on_stack_and_heap() {
    for len in 0..300 {
        let (one, other) = (vec![1_u8; len], vec![2_u8; 300 - len]);
        let got = bytes(&(one.clone(), other.clone()));
        let prefix = |len: usize| match len {
            0..128 => vec![len as u8],
            _ => vec![(len & 127) as u8 | 128, (len >> 7) as u8],
        };
        assert_eq!(got, [prefix(len), one, prefix(300 - len), other].concat());
    }
}

/// Checks that keys have equal bytes exactly if they are equal.
fn injective<K: Key>(one: &K, other: &K) -> Result<(), TestCaseError> {
    prop_assert_eq!(one == other, bytes(one) == bytes(other));
    prop_assert_eq!(bytes(one), bytes(&one.clone()));
    Ok(())
}

/// Short strings over few characters, so that equal strings and shifted boundaries occur.
fn texts() -> impl Strategy<Value = String> {
    "[a\\x00\\x01\\x02é]{0,4}"
}

proptest! {
    #[test]
    fn integers_of_every_width_encode_equally(n: i8) {
        for got in [bytes(&i16::from(n)), bytes(&i32::from(n)), bytes(&i64::from(n))] {
            prop_assert_eq!(got, bytes(&n));
        }
        if let Ok(n) = u8::try_from(n) {
            for got in [bytes(&u16::from(n)), bytes(&u32::from(n)), bytes(&u64::from(n))] {
                prop_assert_eq!(got, bytes(&n));
            }
            prop_assert_eq!(bytes(&n), bytes(&i64::from(n)));
        }
    }

    #[test]
    fn integers_are_injective(a: i64, b: i64, c: u128, d: u128) {
        injective(&a, &b)?;
        injective(&(a as i8), &(b as i8))?;
        injective(&(a as u8), &(b as u8))?;
        injective(&(a as i16), &(b as i16))?;
        injective(&(a as u16), &(b as u16))?;
        injective(&(a as i32), &(b as i32))?;
        injective(&(a as u32), &(b as u32))?;
        injective(&(a as u64), &(b as u64))?;
        injective(&c, &d)?;
        injective(&(c as i128), &(d as i128))?;
    }

    #[test]
    fn text_and_bytes_are_injective(a in texts(), b in texts()) {
        injective(&a, &b)?;
        injective(&Box::<str>::from(a.as_str()), &Box::<str>::from(b.as_str()))?;
        injective(&Arc::<str>::from(a.as_str()), &Arc::<str>::from(b.as_str()))?;
        let (a, b) = (a.into_bytes(), b.into_bytes());
        injective(&Box::<[u8]>::from(a.as_slice()), &Box::<[u8]>::from(b.as_slice()))?;
        injective(&Arc::<[u8]>::from(a.as_slice()), &Arc::<[u8]>::from(b.as_slice()))?;
        injective(&a, &b)?;
    }

    #[test]
    fn tuples_are_injective(
        a in (texts(), texts(), texts(), texts()),
        b in (texts(), texts(), texts(), texts()),
        n in 0_u8..3,
        m in 0_u8..3,
    ) {
        injective(&(a.0.clone(), a.1.clone()), &(b.0.clone(), b.1.clone()))?;
        injective(&(n, a.1.clone()), &(m, b.1.clone()))?;
        injective(&((a.0.clone(), n), a.1.clone()), &((b.0.clone(), m), b.1.clone()))?;
        injective(&(a.0.clone(), a.1.clone(), n), &(b.0.clone(), b.1.clone(), m))?;
        injective(&a, &b)?;
    }

    #[test]
    fn tuple_parts_split_elsewhere_encode_differently(text in "[ab]{1,200}", at: prop::sample::Index, to: prop::sample::Index) {
        let split = |at: usize| (text[..at].to_owned(), text[at..].to_owned());
        let (one, other) = (split(at.index(text.len() + 1)), split(to.index(text.len() + 1)));
        injective(&one, &other)?;
    }
}
