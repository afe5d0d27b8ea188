//! Secrets to generate: that they can be, and what their templates say.

use std::collections::HashSet;

use super::checked::Context;
use super::child;
use super::name;
use super::syntax;
use super::violation::{Fault, Rule, shown};
use crate::limits::{ALPHABET_CHARS, CHILD_BYTES, RANDOM_CHARS};
use crate::sandbox::model::{GeneratedSecret, SecretKey, SecretValue};

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    Text(&'a str),
    /// Another key of the same Secret.
    Key {
        name: &'a str,
        percent_encoded: bool,
    },
}

/// Types of Kubernetes that hold what somebody chose, and nothing that the cluster trusts. A service
/// account's token would be filled in by the cluster, for any account that an annotation names.
const TYPES: &[&str] = &[
    "Opaque",
    "kubernetes.io/basic-auth",
    "kubernetes.io/dockercfg",
    "kubernetes.io/dockerconfigjson",
    "kubernetes.io/ssh-auth",
    "kubernetes.io/tls",
];

/// Whether a type says nothing to the cluster: one of these, or one of somebody's own.
pub fn is_plain(wanted: &str) -> bool {
    let domain = wanted.split_once('/').map(|(domain, _)| domain);
    let of_kubernetes = domain.is_some_and(|domain| {
        ["kubernetes.io", "k8s.io"]
            .iter()
            .any(|suffix| domain.strip_suffix(suffix).is_some_and(|below| below.is_empty() || below.ends_with('.')))
    });
    TYPES.contains(&wanted) || (!of_kubernetes && syntax::qualified_name(wanted))
}

/// Parts of a template in their order: `{key}`, `{key|url}`, `{{`, `}}`.
pub fn template(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            pieces.push(Piece::Text(if from.starts_with('{') { "{" } else { "}" }));
            rest = after;
            continue;
        }
        let Some((inner, after)) = from.strip_prefix('{').and_then(|inner| inner.split_once('}')) else {
            return Err(format!("a brace stands alone at byte {}; write it twice", text.len() - from.len()));
        };
        let (name, filter) = match inner.split_once('|') {
            Some((name, filter)) => (name, Some(filter)),
            None => (inner, None),
        };
        let percent_encoded = match filter {
            None => false,
            Some("url") => true,
            Some(other) => return Err(format!("{} is no filter; there is url", shown(other))),
        };
        pieces.push(Piece::Key { name, percent_encoded });
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

/// Kind and name, for a message.
pub(super) fn told(secret: &GeneratedSecret) -> String {
    let GeneratedSecret { name, keys: _, secret_type: _, retain: _ } = secret;
    if syntax::dns_1123_subdomain(name) { format!("Secret {name}") } else { format!("Secret {}", shown(name)) }
}

/// The Secret's kind, name and type; then its keys.
pub(super) fn rules(secret: &GeneratedSecret, context: &Context<'_>) -> Result<(), Fault> {
    let GeneratedSecret { name, keys, secret_type, retain } = secret;
    let declared =
        context.manifest.children.iter().any(|child| child.kind.group.is_empty() && child.kind.kind == "Secret");
    if !declared || !context.grant.allows_child("", "Secret") {
        let message = "the plugin does not declare Secret as a child, which generating one needs";
        return Err(Fault::new(Rule::Kind, "", message));
    }
    name::child("/name", "", "Secret", name, &context.parent.name)?;
    if let Some(retention) = retain {
        child::retention(retention)?;
    }
    if let Some(wanted) = secret_type.as_ref().filter(|wanted| !is_plain(wanted)) {
        let message = format!("{} is no type that can be generated; there are {}", shown(wanted), TYPES.join(", "));
        return Err(Fault::new(Rule::GeneratedSecret, "/type", message));
    }
    self::keys(keys)
}

fn keys(keys: &[SecretKey]) -> Result<(), Fault> {
    let refuse = |path: String, message: String| Err(Fault::new(Rule::GeneratedSecret, path, message));
    if keys.is_empty() {
        return refuse("/keys".to_owned(), "has no keys".to_owned());
    }
    let mut seen = HashSet::new();
    let mut total = 0_usize;
    for (index, SecretKey { name, value }) in keys.iter().enumerate() {
        if !syntax::data_key(name) {
            return refuse(format!("/keys/{index}"), format!("{} is no key of a Secret", shown(name)));
        }
        let path = format!("/keys/{name}");
        if !seen.insert(name.as_str()) {
            return refuse(path, "stands twice".to_owned());
        }
        let most = match value {
            SecretValue::Random { length, alphabet } => match random(*length, alphabet.as_deref()) {
                Ok(()) => *length as usize,
                Err(message) => return refuse(path, message),
            },
            SecretValue::Literal(text) => text.len(),
            SecretValue::Template(text) => match expanded(text, keys) {
                Ok(most) => most,
                Err(message) => return refuse(path, message),
            },
        };
        total = total.saturating_add(name.len()).saturating_add(most);
    }
    if total > CHILD_BYTES {
        let message = format!("may grow to {total} bytes, of at most {CHILD_BYTES}");
        return Err(Fault::new(Rule::Size, "/keys", message));
    }
    Ok(())
}

fn random(length: u32, alphabet: Option<&str>) -> Result<(), String> {
    let (least, most) = RANDOM_CHARS;
    if !(least..=most).contains(&length) {
        return Err(format!("a random text of {length} characters, of {least} to {most}"));
    }
    let Some(alphabet) = alphabet else { return Ok(()) };
    let mut seen = HashSet::new();
    if !alphabet.bytes().all(|b| b.is_ascii_graphic() && seen.insert(b)) {
        return Err("an alphabet has printable ASCII characters, each once".to_owned());
    }
    if alphabet.len() < ALPHABET_CHARS {
        return Err(format!("an alphabet of {} characters, of at least {ALPHABET_CHARS}", alphabet.len()));
    }
    Ok(())
}

/// Bytes that a template can grow to. Known before anything is expanded: a few hundred kB of `{a}` are many GiB.
fn expanded(text: &str, keys: &[SecretKey]) -> Result<usize, String> {
    let mut sizes = std::collections::HashMap::new();
    for SecretKey { name, value } in keys {
        let size = match value {
            SecretValue::Random { length, .. } => Some(*length as usize),
            SecretValue::Literal(text) => Some(text.len()),
            SecretValue::Template(_) => None,
        };
        sizes.insert(name.as_str(), size);
    }
    template(text)?.into_iter().try_fold(0_usize, |total, piece| match piece {
        Piece::Text(text) => Ok(total.saturating_add(text.len())),
        Piece::Key { name, percent_encoded } => match sizes.get(name) {
            Some(Some(size)) => {
                let size = if percent_encoded { size.saturating_mul(3) } else { *size };
                Ok(total.saturating_add(size))
            }
            Some(None) => Err(format!("uses the key {}, which is a template itself", shown(name))),
            None => Err(format!("uses the key {}, which this Secret does not have", shown(name))),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_text_and_keys() {
        let key = |name, percent_encoded| Piece::Key { name, percent_encoded };
        let text = Piece::Text;
        let url = template("mongodb://root:{password|url}@{host}:1").unwrap();
        assert_eq!(url, [text("mongodb://root:"), key("password", true), text("@"), key("host", false), text(":1")]);
        assert_eq!(template("{{a}}").unwrap(), [text("{"), text("a"), text("}")]);
        assert_eq!(template("").unwrap(), []);
        for wrong in ["{", "}", "{a", "a}", "{a}}", "{a|base64}", "{a|}"] {
            assert!(template(wrong).is_err(), "{wrong}");
        }
    }
}
