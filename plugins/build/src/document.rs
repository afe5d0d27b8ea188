//! The template of a Plugin document, with the digest of its component.

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::path::Path;

const BLANK: &str = r#"sha256: """#;

pub(crate) fn with_digest(template: &Path, component: &[u8]) -> Result<String> {
    let text = std::fs::read_to_string(template).with_context(|| format!("cannot read {}", template.display()))?;
    fill(&text, component).with_context(|| template.display().to_string())
}

/// By text, so that comments stay.
fn fill(template: &str, component: &[u8]) -> Result<String> {
    let Some((before, after)) = template.split_once(BLANK) else { bail!("has no {BLANK} to fill in") };
    if after.contains(BLANK) {
        bail!("has {BLANK} twice");
    }
    let digest: String = Sha256::digest(component).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!(r#"{before}sha256: "{digest}"{after}"#))
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn the_digest_is_filled_in_and_comments_stay() {
        let filled = fill("trust:\n  sha256: \"\" # by the build\n", b"abc").unwrap();
        assert_eq!(
            filled,
            "trust:\n  sha256: \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\" # by the build\n"
        );
    }

    #[test]
    fn a_template_without_a_blank_or_with_two_is_refused() {
        assert_eq!(fill("trust: {}", b"").unwrap_err().to_string(), "has no sha256: \"\" to fill in");
        assert_eq!(fill(r#"{sha256: "", sha256: ""}"#, b"").unwrap_err().to_string(), "has sha256: \"\" twice");
    }
}
