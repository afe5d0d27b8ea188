//! From bytes to bytes that may run. Fails closed: trust is an enum, and only
//! this file makes a [`Verified`].

mod key;
mod cosign;

pub use cosign::Subject;
pub use key::Key;

use cosign::Flaw;

use super::document::{Trust, Yes};
use super::source::hash::sha256;
use super::source::oci::Signature;

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

/// What was found beside the bytes, and what it is said to sign.
pub enum Evidence {
    /// Bundles of a file.
    File(Vec<Signature>),
    /// What signs an image, whose manifest has this digest, in hex.
    Image { manifest: String, signatures: Vec<Signature> },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    #[error("spec.trust.sha256: the component has sha256 {found}, the Plugin document trusts {trusted}")]
    Digest { found: String, trusted: String },
    #[error("spec.trust.keys: {what} is not signed")]
    Unsigned { what: String },
    #[error("spec.trust.keys: of {count} signatures of {what} none counts: {why}")]
    Signature { what: String, count: usize, why: String },
    #[error("spec.trust.keys[{index}]: {rule}")]
    Key { index: usize, rule: &'static str },
}

impl VerifyError {
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Digest { .. } => "DigestMismatch",
            Self::Unsigned { .. } => "Unsigned",
            Self::Signature { .. } => "SignatureInvalid",
            Self::Key { .. } => "DocumentInvalid",
        }
    }
}

pub fn verify(bytes: Vec<u8>, trust: &Trust, evidence: &Evidence) -> Result<Verified, VerifyError> {
    let sha256 = sha256(&bytes);
    match trust {
        Trust::Sha256(trusted) if *trusted != sha256 => {
            return Err(VerifyError::Digest { found: sha256, trusted: trusted.clone() });
        }
        Trust::Sha256(_) | Trust::Unsigned(Yes) => {}
        Trust::Keys(keys) => signed(keys, &bytes, evidence)?,
    }
    Ok(Verified { bytes, sha256 })
}

/// Whether one signature at least is by one of the keys, and of this.
fn signed(keys: &[String], bytes: &[u8], evidence: &Evidence) -> Result<(), VerifyError> {
    let parsed =
        keys.iter().enumerate().map(|(index, pem)| Key::parse(pem).map_err(|rule| VerifyError::Key { index, rule }));
    let keys = parsed.collect::<Result<Vec<_>, _>>()?;
    let (what, subject, signatures) = match evidence {
        Evidence::File(signatures) => ("the file".to_owned(), Subject::Bytes(bytes), signatures),
        Evidence::Image { manifest, signatures } => {
            (format!("the image sha256:{manifest}"), Subject::Manifest(manifest), signatures)
        }
    };
    if signatures.is_empty() {
        return Err(VerifyError::Unsigned { what });
    }
    let mut why = String::new();
    for signature in signatures {
        match cosign::check(&keys, signature, subject) {
            Ok(()) => return Ok(()),
            Err(Flaw::OtherSubject) => why = "one is by a trusted key, and of something else".to_owned(),
            Err(Flaw::OtherKey) if why.is_empty() => why = "they are by other keys, or of other bytes".to_owned(),
            Err(Flaw::Malformed(part)) if why.is_empty() => why = format!("{part} cannot be read"),
            Err(_) => {}
        }
    }
    Err(VerifyError::Signature { what, count: signatures.len(), why })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const NONE: Evidence = Evidence::File(Vec::new());

    #[test]
    fn equal_digest_is_trusted() {
        let verified = verify(Vec::new(), &Trust::Sha256(EMPTY.to_owned()), &NONE).unwrap();
        assert_eq!(verified.sha256(), EMPTY);
    }

    #[test]
    fn other_digest_is_refused_and_both_are_told() {
        let error = verify(b"x".to_vec(), &Trust::Sha256(EMPTY.to_owned()), &NONE).unwrap_err();
        assert!(error.to_string().contains(EMPTY));
        assert!(error.to_string().contains("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"));
    }

    #[test]
    fn unsigned_takes_any_bytes_and_still_names_them() {
        assert_eq!(verify(Vec::new(), &Trust::Unsigned(Yes), &NONE).unwrap().sha256(), EMPTY);
    }

    #[test]
    fn without_a_signature_or_a_key_nothing_is_trusted() {
        let error = verify(Vec::new(), &Trust::Keys(Vec::new()), &NONE).unwrap_err();
        assert_eq!(error.reason(), "Unsigned");
        let some = Evidence::File(vec![Signature::Bundle(b"{}".to_vec())]);
        assert_eq!(verify(Vec::new(), &Trust::Keys(Vec::new()), &some).unwrap_err().reason(), "SignatureInvalid");
        assert_eq!(verify(Vec::new(), &Trust::Keys(vec!["x".into()]), &some).unwrap_err().reason(), "DocumentInvalid");
    }
}
