//! What a guest and a user learn of a Secret's data: that it has changed.
//!
//! An HMAC of the data. Of a generated Secret under random bytes that stand in
//! it, so that it is the same on every host and for as long as the Secret is
//! restored with them. Of a user's own, which is never written to, under its
//! UID: who can read that can read the data.

use hmac::{Hmac, Mac};
use serde_json::{Map, Value};
use sha2::Sha256;

use crate::plugin::source::hash::hex;

/// 16 hex digits that change exactly with the data.
pub(crate) fn revision(key: &str, data: &Map<String, Value>) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("HMAC takes a key of any length");
    // Length before text, so that no two data give the same bytes.
    for (name, value) in data {
        for text in [name.as_str(), value.as_str().unwrap_or_default()] {
            mac.update(&(text.len() as u64).to_be_bytes());
            mac.update(text.as_bytes());
        }
    }
    let mut digits = hex(&mac.finalize().into_bytes());
    digits.truncate(16);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_moves_with_the_data_only() {
        let data = |text: &str| Map::from_iter([("k".to_owned(), Value::from(text))]);
        assert_eq!(revision("key", &data("a")), revision("key", &data("a")));
        assert_ne!(revision("key", &data("a")), revision("key", &data("b")));
        assert_ne!(revision("key", &data("a")), revision("other", &data("a")));
    }
}
