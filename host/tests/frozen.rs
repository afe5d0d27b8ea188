//! What is released does not change: plugins are built for it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

/// Of each folder of the contract: SHA-256 of its files in the order of their names, without comments and indentation.
const FROZEN: &[(&str, &str)] =
    &[("operator-0.1.0", "b4cbb68df837321babd123f7a5417188c6fde9a733a83f65839a2446706b8aa6")];

#[test]
fn a_released_contract_stays_as_it_is() {
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
    for (folder, wanted) in FROZEN {
        let mut files: Vec<_> = fs::read_dir(wit.join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let mut hasher = Sha256::new();
        for file in files {
            hasher.update(file.file_name().unwrap().to_str().unwrap());
            for line in fs::read_to_string(&file).unwrap().lines().map(str::trim) {
                if !line.is_empty() && !line.starts_with("//") {
                    hasher.update(line);
                    hasher.update("\n");
                }
            }
        }
        let hash: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, *wanted, "wit/{folder} is released: what changes gets a folder and a version of its own");
    }
    // None is there that nobody holds.
    for entry in fs::read_dir(&wit).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(FROZEN.iter().any(|(folder, _)| *folder == name), "wit/{name} is not in FROZEN");
    }
}
