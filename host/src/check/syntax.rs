//! What Kubernetes takes for a name, in one place. ASCII and short, so bytes do.

pub(super) fn dns_1035_label(text: &str) -> bool {
    text.bytes().next().is_some_and(|first| first.is_ascii_lowercase()) && dns_1123_label(text)
}

pub(crate) fn dns_1123_label(text: &str) -> bool {
    text.len() <= 63
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
        && !text.is_empty()
}

pub(crate) fn dns_1123_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(dns_1123_label)
}

/// `kind` of an object, for instance `StatefulSet`.
pub(crate) fn kind(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// `apiVersion` into group and version.
pub(super) fn api_version(text: &str) -> Option<(&str, &str)> {
    let (group, version) = text.split_once('/').unwrap_or(("", text));
    ((group.is_empty() && !text.starts_with('/') || dns_1123_subdomain(group)) && dns_1035_label(version))
        .then_some((group, version))
}

/// Key of a label or an annotation: an optional DNS prefix, and a name.
pub(crate) fn qualified_name(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    prefix.is_none_or(dns_1123_subdomain) && !name.is_empty() && label_value(name)
}

pub(super) fn label_value(text: &str) -> bool {
    let ends = |c: Option<u8>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    text.len() <= 63
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && ends(text.bytes().next())
        && ends(text.bytes().next_back())
}

/// Key of a Secret or a ConfigMap.
pub(super) fn data_key(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && text != "."
        && !text.starts_with("..")
}

/// A JSON pointer (RFC 6901) that is not the whole document.
pub(crate) fn pointer(text: &str) -> bool {
    let escapes = |text: &str| text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    text.len() <= 512 && text.starts_with('/') && !text.contains(char::is_control) && escapes(text)
}

/// Reason of a condition, as the contract has it: CamelCase, at most 64 characters.
pub(super) fn reason(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kubernetes() {
        let long = "a".repeat(63);
        let longer = "a".repeat(64);
        type Is = fn(&str) -> bool;
        let table: &[(Is, &[&str], &[&str])] = &[
            (dns_1035_label, &["a", "a-1", &long], &["", "1a", "a.b", "A", "a-", "-a", "a_b", "é", &longer]),
            (dns_1123_label, &["1a", "1"], &["", "a.b", "-", &longer]),
            (dns_1123_subdomain, &["a.b", "1.2", "a"], &["", ".", "a.", "a..b", "a/b"]),
            (kind, &["Pod", "APIService", "X9"], &["", "pod", "Pod/log", "Po d", "9X"]),
            (qualified_name, &["a", "a.b/C_d.e", "A"], &["", "/", "a/", "/a", "a/b/c", "A.b/c", "-a", "a/-b"]),
            (label_value, &["", "a", "A.b_c-1"], &["-", "a-", "a b", "a/b", &longer]),
            (data_key, &["a", ".dockerconfigjson", "A_b-c.d", "a..b"], &["", ".", "..", "..a", "a/b", "a b"]),
            (pointer, &["/a", "/", "/a~0~1/0", "/a/*"], &["", "a", "/a~", "/a~2", "/a\n"]),
            (reason, &["Ready", "X1"], &["", "ready", "Not Ready", "Not_Ready", &longer]),
        ];
        for (row, (is, valid, invalid)) in table.iter().enumerate() {
            for text in *valid {
                assert!(is(text), "row {row}: {text:?} is valid");
            }
            for text in *invalid {
                assert!(!is(text), "row {row}: {text:?} is not valid");
            }
        }
    }

    #[test]
    fn an_api_version_has_at_most_one_slash() {
        assert_eq!(api_version("v1"), Some(("", "v1")));
        assert_eq!(api_version("apps/v1"), Some(("apps", "v1")));
        for text in ["", "/v1", "apps/", "a/b/v1", "apps/V1", "../v1", "v1/.."] {
            assert_eq!(api_version(text), None, "{text}");
        }
    }
}
