//! Signatures as cosign makes them with a key, checked offline: against the key
//! and the digest alone. No log and no certificate has a say.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::key::Key;
use crate::plugin::source::oci::Signature;

const SIMPLE_TYPE: &str = "cosign container image signature";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
const STATEMENT: &str = "application/vnd.in-toto+json";
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/";
/// What is said of the image: that it is signed. Anything else (a scan, an inventory) is no approval.
const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";

/// What must have been signed.
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    /// A manifest, by the hex of its SHA-256.
    Manifest(&'a str),
    /// These very bytes.
    Bytes(&'a [u8]),
}

/// Why one signature does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It cannot be read.
    Malformed(&'static str),
    /// By none of the keys.
    OtherKey,
    /// By one of the keys, and of something else.
    OtherSubject,
}

/// Whether one of the keys has signed it.
pub(super) fn check(keys: &[Key], signature: &Signature, subject: Subject<'_>) -> Result<(), Flaw> {
    match signature {
        Signature::Simple { payload, signature } => simple(keys, payload, signature, subject),
        Signature::Bundle(json) => bundle(keys, json, subject),
    }
}

fn simple(keys: &[Key], payload: &[u8], signature: &str, subject: Subject<'_>) -> Result<(), Flaw> {
    #[derive(Deserialize)]
    struct Payload {
        critical: Critical,
    }
    #[derive(Deserialize)]
    struct Critical {
        image: Image,
        #[serde(rename = "type")]
        kind: String,
    }
    #[derive(Deserialize)]
    struct Image {
        #[serde(rename = "docker-manifest-digest")]
        digest: String,
    }
    let signature = decode(signature)?;
    if !keys.iter().any(|key| key.verifies(payload, &signature)) {
        return Err(Flaw::OtherKey);
    }
    let Payload { critical } = serde_json::from_slice(payload).map_err(|_| Flaw::Malformed("its payload"))?;
    match subject {
        Subject::Manifest(hex) if critical.kind == SIMPLE_TYPE && critical.image.digest == format!("sha256:{hex}") => {
            Ok(())
        }
        _ => Err(Flaw::OtherSubject),
    }
}

fn bundle(keys: &[Key], json: &[u8], subject: Subject<'_>) -> Result<(), Flaw> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Bundle {
        media_type: String,
        dsse_envelope: Option<Envelope>,
        message_signature: Option<Message>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Envelope {
        payload: String,
        payload_type: String,
        signatures: Vec<Signed>,
    }
    #[derive(Deserialize)]
    struct Signed {
        sig: String,
    }
    #[derive(Deserialize)]
    struct Message {
        signature: String,
    }
    let Bundle { media_type, dsse_envelope, message_signature } =
        serde_json::from_slice(json).map_err(|_| Flaw::Malformed("its bundle"))?;
    if !media_type.starts_with(BUNDLE) {
        return Err(Flaw::Malformed("the type of its bundle"));
    }
    match (dsse_envelope, message_signature, subject) {
        (Some(envelope), None, subject) => {
            let payload = decode(&envelope.payload)?;
            let message = encoding(&envelope.payload_type, &payload);
            let signatures = envelope.signatures.iter().take(8).filter_map(|signed| decode(&signed.sig).ok());
            let signed = signatures.into_iter().any(|sig| keys.iter().any(|key| key.verifies(&message, &sig)));
            match signed {
                true if envelope.payload_type == STATEMENT && names(&payload, subject)? => Ok(()),
                true => Err(Flaw::OtherSubject),
                false => Err(Flaw::OtherKey),
            }
        }
        (None, Some(message), Subject::Bytes(bytes)) => {
            let signature = decode(&message.signature)?;
            // Of the bytes themselves: that they are others, and that the key is another, look the same.
            if keys.iter().any(|key| key.verifies(bytes, &signature)) { Ok(()) } else { Err(Flaw::OtherKey) }
        }
        _ => Err(Flaw::Malformed("what its bundle holds")),
    }
}

/// Whether a statement says of this subject that it is signed.
fn names(payload: &[u8], subject: Subject<'_>) -> Result<bool, Flaw> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Statement {
        #[serde(rename = "_type")]
        kind: String,
        subject: Vec<Named>,
        predicate_type: String,
    }
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        digest: Digests,
    }
    #[derive(Deserialize, Default)]
    struct Digests {
        #[serde(default)]
        sha256: String,
    }
    let Statement { kind, subject: named, predicate_type } =
        serde_json::from_slice(payload).map_err(|_| Flaw::Malformed("its statement"))?;
    let hex = match subject {
        Subject::Manifest(hex) => hex.to_owned(),
        Subject::Bytes(bytes) => crate::plugin::source::hash::sha256(bytes),
    };
    let says = kind.starts_with(STATEMENT_TYPE) && predicate_type == SIGNED;
    Ok(says && named.iter().any(|named| named.digest.sha256 == hex))
}

/// What an envelope's signature is of, so that neither type nor payload can be taken for another.
fn encoding(kind: &str, payload: &[u8]) -> Vec<u8> {
    let mut message = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    message.extend_from_slice(payload);
    message
}

fn decode(text: &str) -> Result<Vec<u8>, Flaw> {
    STANDARD.decode(text.trim()).map_err(|_| Flaw::Malformed("its base64"))
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
    use serde_json::json;

    use super::*;

    const HEX: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    struct Signer(EcdsaKeyPair);

    impl Signer {
        fn new() -> Self {
            let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new()).unwrap();
            Self(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.as_ref(), &SystemRandom::new()).unwrap())
        }
        fn key(&self) -> Key {
            let der = [
                &[
                    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
                    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
                ][..],
                self.0.public_key().as_ref(),
            ]
            .concat();
            let pem = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der));
            Key::parse(&pem).unwrap()
        }
        fn sign(&self, message: &[u8]) -> String {
            STANDARD.encode(self.0.sign(&SystemRandom::new(), message).unwrap())
        }
        fn simple(&self, digest: &str, kind: &str) -> Signature {
            let payload =
                json!({"critical": {"identity": {}, "image": {"docker-manifest-digest": digest}, "type": kind}});
            let payload = payload.to_string().into_bytes();
            Signature::Simple { signature: self.sign(&payload), payload }
        }
        fn bundle(&self, hex: &str, predicate: &str, payload_type: &str, signed_type: &str) -> Signature {
            let statement = json!({"_type": "https://in-toto.io/Statement/v1", "predicateType": predicate, "predicate": {},
                "subject": [{"name": "x", "digest": {"sha256": hex}}]});
            let payload = statement.to_string().into_bytes();
            let sig = self.sign(&encoding(signed_type, &payload));
            let envelope = json!({"payload": STANDARD.encode(&payload), "payloadType": payload_type,
                "signatures": [{"sig": "AAAA"}, {"sig": sig}]});
            bundled(&json!({"dsseEnvelope": envelope}))
        }
    }

    fn bundled(rest: &serde_json::Value) -> Signature {
        let mut bundle = rest.clone();
        bundle["mediaType"] = "application/vnd.dev.sigstore.bundle.v0.3+json".into();
        Signature::Bundle(bundle.to_string().into_bytes())
    }

    #[test]
    fn only_the_right_key_on_the_right_digest_counts() {
        let (signer, other) = (Signer::new(), Signer::new());
        let keys = [Signer::new().key(), signer.key()];
        let subject = Subject::Manifest(HEX);
        let digest = format!("sha256:{HEX}");
        assert_eq!(check(&keys, &signer.simple(&digest, SIMPLE_TYPE), subject), Ok(()));
        assert_eq!(check(&keys, &other.simple(&digest, SIMPLE_TYPE), subject), Err(Flaw::OtherKey));
        let elsewhere = signer.simple(&format!("sha256:{}", "b".repeat(64)), SIMPLE_TYPE);
        assert_eq!(check(&keys, &elsewhere, subject), Err(Flaw::OtherSubject));
        assert_eq!(check(&keys, &signer.simple(&digest, "atomic"), subject), Err(Flaw::OtherSubject));

        assert_eq!(check(&keys, &signer.bundle(HEX, SIGNED, STATEMENT, STATEMENT), subject), Ok(()));
        assert_eq!(check(&keys, &other.bundle(HEX, SIGNED, STATEMENT, STATEMENT), subject), Err(Flaw::OtherKey));
        let elsewhere = signer.bundle(&"b".repeat(64), SIGNED, STATEMENT, STATEMENT);
        assert_eq!(check(&keys, &elsewhere, subject), Err(Flaw::OtherSubject));
        // A statement of something else about the very image is no approval; nor one whose type was exchanged.
        let scan = signer.bundle(HEX, "https://cosign.sigstore.dev/attestation/vuln/v1", STATEMENT, STATEMENT);
        assert_eq!(check(&keys, &scan, subject), Err(Flaw::OtherSubject));
        assert_eq!(
            check(&keys, &signer.bundle(HEX, SIGNED, "text/plain", "text/plain"), subject),
            Err(Flaw::OtherSubject)
        );
        assert_eq!(check(&keys, &signer.bundle(HEX, SIGNED, STATEMENT, "text/plain"), subject), Err(Flaw::OtherKey));
        assert_eq!(check(&[], &signer.simple(&digest, SIMPLE_TYPE), subject), Err(Flaw::OtherKey));
    }

    #[test]
    fn a_blobs_signature_is_of_its_bytes() {
        let signer = Signer::new();
        let keys = [signer.key()];
        let of = |bytes: &[u8]| bundled(&json!({"messageSignature": {"signature": signer.sign(bytes)}}));
        assert_eq!(check(&keys, &of(b"x"), Subject::Bytes(b"x")), Ok(()));
        assert_eq!(check(&keys, &of(b"y"), Subject::Bytes(b"x")), Err(Flaw::OtherKey));
        // What signs bytes signs no manifest, even of these bytes.
        let hex = crate::plugin::source::hash::sha256(b"x");
        assert!(matches!(check(&keys, &of(b"x"), Subject::Manifest(&hex)), Err(Flaw::Malformed(_))));
    }

    #[test]
    fn garbage_is_malformed() {
        let keys = [Signer::new().key()];
        for json in ["", "{}", "[]", "{\"mediaType\":\"x\"}", "{\"mediaType\":\"application/vnd.dev.sigstore.bundle\"}"]
        {
            let flaw = check(&keys, &Signature::Bundle(json.into()), Subject::Manifest(HEX));
            assert!(matches!(flaw, Err(Flaw::Malformed(_))), "{json}: {flaw:?}");
        }
        let simple = Signature::Simple { payload: b"{}".to_vec(), signature: "!".into() };
        assert!(matches!(check(&keys, &simple, Subject::Manifest(HEX)), Err(Flaw::Malformed(_))));
    }
}
