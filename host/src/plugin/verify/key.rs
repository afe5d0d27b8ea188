//! Public keys as people keep them: PEM, of ECDSA on P-256 or of Ed25519.

use ed25519_dalek::{Signature, VerifyingKey};
use ring::signature::{ECDSA_P256_SHA256_ASN1, ED25519, UnparsedPublicKey, VerificationAlgorithm};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha512};

/// What stands before the key itself in a SubjectPublicKeyInfo: exactly this for each of the two.
const P256: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const P256_BYTES: usize = 65;
const ED: &[u8] = &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const ED_BYTES: usize = 32;

/// A key that may sign; of one algorithm only, so that a signature cannot choose another.
pub struct Key {
    algorithm: &'static dyn VerificationAlgorithm,
    bytes: Vec<u8>,
    /// By an Ed25519 key cosign signs a hash of the message (Ed25519ph), or, without a log, the message itself. Neither
    /// can be taken for the other.
    hashed: Option<VerifyingKey>,
}

impl Key {
    /// The error is a rule, as for a field.
    pub fn parse(pem: &str) -> Result<Self, &'static str> {
        const RULE: &str =
            "must be PEM of a public key (BEGIN PUBLIC KEY), ECDSA P-256 or Ed25519, as cosign writes it";
        let key = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).map_err(|_| RULE)?;
        let with = |prefix: &[u8], length: usize| key.strip_prefix(prefix).filter(|bytes| bytes.len() == length);
        if let Some(bytes) = with(P256, P256_BYTES) {
            return Ok(Self { algorithm: &ECDSA_P256_SHA256_ASN1, bytes: bytes.to_vec(), hashed: None });
        }
        let bytes = with(ED, ED_BYTES).ok_or(RULE)?;
        let point = bytes.try_into().ok().and_then(|bytes| VerifyingKey::from_bytes(bytes).ok());
        Ok(Self { algorithm: &ED25519, bytes: bytes.to_vec(), hashed: Some(point.ok_or(RULE)?) })
    }

    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        if UnparsedPublicKey::new(self.algorithm, &self.bytes).verify(message, signature).is_ok() {
            return true;
        }
        let (Some(key), Ok(signature)) = (&self.hashed, Signature::from_slice(signature)) else { return false };
        key.verify_prehashed_strict(Sha512::new_with_prefix(message), None, &signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_ed25519_takes_both_of_its_forms() {
        use base64::Engine;
        use base64::engine::general_purpose::STANDARD;
        use ed25519_dalek::{Signer, SigningKey};

        let signer = SigningKey::from_bytes(&[7; 32]);
        let der = [ED, signer.verifying_key().as_bytes()].concat();
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der));
        let key = Key::parse(&pem).unwrap();
        let plain = signer.sign(b"message").to_bytes();
        let hashed = signer.sign_prehashed(Sha512::new_with_prefix(b"message"), None).unwrap().to_bytes();
        assert_ne!(plain, hashed);
        for signature in [plain, hashed] {
            assert!(key.verifies(b"message", &signature));
            assert!(!key.verifies(b"another", &signature));
        }
        assert!(!key.verifies(b"message", &plain[..63]) && !key.verifies(b"message", &[0; 64]));
    }

    #[test]
    fn other_keys_are_refused() {
        for pem in [
            "",
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            // RSA, 512 bits.
            "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf\n9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWit+CqvjWYzvQwECAwEAAQ==\n-----END PUBLIC KEY-----\n",
        ] {
            assert!(Key::parse(pem).is_err(), "{pem}");
        }
    }
}
