//! From bytes to bytes that may run. Fails closed: trust is an enum, and only
//! this file makes a [`Verified`].

use sha2::{Digest, Sha256};

use super::document::{Trust, Yes};

/// Bytes that the Plugin document trusts.
#[derive(Debug)]
pub struct Verified {
    bytes: Vec<u8>,
    sha256: String,
}

impl Verified {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// Of these bytes, in lower-case hex. The plugin's identity.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.trust.sha256: the component has sha256 {found}, the Plugin document trusts {trusted}")]
pub struct VerifyError {
    pub found: String,
    pub trusted: String,
}

pub fn verify(bytes: Vec<u8>, trust: &Trust) -> Result<Verified, VerifyError> {
    let sha256 = digest(&bytes);
    match trust {
        Trust::Sha256(trusted) if *trusted != sha256 => Err(VerifyError { found: sha256, trusted: trusted.clone() }),
        Trust::Sha256(_) | Trust::Unsigned(Yes) => Ok(Verified { bytes, sha256 }),
    }
}

/// SHA-256, in lower-case hex.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn equal_digest_is_trusted() {
        let verified = verify(Vec::new(), &Trust::Sha256(EMPTY.to_owned())).unwrap();
        assert_eq!(verified.sha256(), EMPTY);
    }

    #[test]
    fn other_digest_is_refused_and_both_are_told() {
        let error = verify(b"x".to_vec(), &Trust::Sha256(EMPTY.to_owned())).unwrap_err();
        assert!(error.to_string().contains(EMPTY));
        assert!(error.to_string().contains("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"));
    }

    #[test]
    fn unsigned_takes_any_bytes_and_still_names_them() {
        assert_eq!(verify(Vec::new(), &Trust::Unsigned(Yes)).unwrap().sha256(), EMPTY);
    }
}
