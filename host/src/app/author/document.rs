//! The template of a Plugin document, with the digest of its component.

use anyhow::bail;

use crate::plugin::source::hash::sha256;

const BLANK: &str = r#"sha256: """#;

/// By text, so that comments stay. A template that trusts `unsigned` has nothing to fill in.
pub(super) fn with_digest(template: &str, component: &[u8]) -> anyhow::Result<String> {
    let Some((before, after)) = template.split_once(BLANK) else {
        if template.contains("unsigned: true") {
            return Ok(template.to_owned());
        }
        bail!("it has no {BLANK} to fill in");
    };
    if after.contains(BLANK) {
        bail!("it has {BLANK} twice");
    }
    Ok(format!(r#"{before}sha256: "{}"{after}"#, digest(component)))
}

/// SHA-256, in hex.
pub(super) fn digest(component: &[u8]) -> String {
    sha256(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_filled_in_and_comments_stay() {
        let filled = with_digest("trust:\n  sha256: \"\" # by the build\n", b"abc").unwrap();
        assert_eq!(
            filled,
            "trust:\n  sha256: \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\" # by the build\n"
        );
        let unsigned = "trust: {unsigned: true}\n";
        assert_eq!(with_digest(unsigned, b"abc").unwrap(), unsigned);
    }

    #[test]
    fn a_template_without_a_blank_or_with_two_is_refused() {
        assert_eq!(with_digest("trust: {}", b"").unwrap_err().to_string(), "it has no sha256: \"\" to fill in");
        let twice = with_digest(r#"{sha256: "", sha256: ""}"#, b"");
        assert_eq!(twice.unwrap_err().to_string(), "it has sha256: \"\" twice");
    }
}
