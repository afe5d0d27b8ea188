//! What is written into a generated Secret.

use std::collections::BTreeMap;

use crate::check::{self, Piece};
use crate::cluster::resource::escape;
use crate::sandbox::model::{GeneratedSecret, SecretKey, SecretValue};

const DEFAULT_ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The texts of all keys, where `there` has none yet. Templates refer to other
/// keys, never to templates: that was checked.
pub(crate) fn generate(
    secret: &GeneratedSecret,
    there: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, getrandom::Error> {
    let mut texts = there;
    let missing: Vec<&SecretKey> = secret.keys.iter().filter(|key| !texts.contains_key(&key.name)).collect();
    for key in &missing {
        match &key.value {
            SecretValue::Random { length, alphabet } => {
                let alphabet = alphabet.as_deref().unwrap_or(DEFAULT_ALPHABET);
                texts.insert(key.name.clone(), random_text(*length, alphabet.as_bytes())?);
            }
            SecretValue::Literal(text) => {
                texts.insert(key.name.clone(), text.clone());
            }
            SecretValue::Template(_) => {}
        }
    }
    for key in missing {
        if let SecretValue::Template(template) = &key.value {
            let text = fill_in(template, &texts);
            texts.insert(key.name.clone(), text);
        }
    }
    Ok(texts)
}

/// Each character with the same probability: bytes beyond the last whole
/// multiple of the alphabet are drawn again.
fn random_text(length: u32, alphabet: &[u8]) -> Result<String, getrandom::Error> {
    let fair = 256 - 256 % alphabet.len().max(1);
    let mut text = String::with_capacity(length as usize);
    let mut bytes = [0; 64];
    while text.len() < length as usize {
        getrandom::fill(&mut bytes)?;
        let left = length as usize - text.len();
        let chosen = bytes.iter().map(|byte| usize::from(*byte)).filter(|byte| *byte < fair);
        text.extend(
            chosen.filter_map(|byte| alphabet.get(byte % alphabet.len())).take(left).map(|byte| char::from(*byte)),
        );
    }
    Ok(text)
}

/// A template that was checked has no errors left.
fn fill_in(template: &str, texts: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(template.len());
    for piece in check::template(template).unwrap_or_default() {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Key { name, percent_encoded } => {
                let text = texts.get(name).map_or("", String::as_str);
                if percent_encoded { escape(&mut out, text) } else { out.push_str(text) }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_text_is_of_its_length_and_alphabet_and_never_the_same() {
        let text = random_text(200, b"0123456789").unwrap();
        assert_eq!(text.len(), 200);
        assert!(text.bytes().all(|byte| byte.is_ascii_digit()));
        assert!((b'0'..=b'9').all(|digit| text.as_bytes().contains(&digit)), "every character comes up");
        assert_ne!(text, random_text(200, b"0123456789").unwrap());
    }

    fn secret() -> GeneratedSecret {
        let key = |name: &str, value| SecretKey { name: name.into(), value };
        GeneratedSecret {
            name: "s".into(),
            keys: vec![
                key("uri", SecretValue::Template("db://root:{password|url}@{host}/{{x}}".into())),
                key("password", SecretValue::Literal("a/b@c".into())),
                key("host", SecretValue::Literal("h".into())),
            ],
            secret_type: None,
            retain: None,
        }
    }

    #[test]
    fn templates_are_filled_from_the_other_keys() {
        assert_eq!(generate(&secret(), BTreeMap::new()).unwrap()["uri"], "db://root:a%2Fb%40c@h/{x}");
    }

    #[test]
    fn what_is_there_is_kept_and_used() {
        let there = BTreeMap::from([("password".to_owned(), "p".to_owned()), ("old".to_owned(), "o".to_owned())]);
        let texts = generate(&secret(), there).unwrap();
        assert_eq!((texts["password"].as_str(), texts["old"].as_str()), ("p", "o"));
        assert_eq!(texts["uri"], "db://root:p@h/{x}");
    }
}
