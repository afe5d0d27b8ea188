//! docs/reasons.md is what people program against: every reason of the code stands in it, and no other.
//!
//! A reason is a CamelCase literal where the code gives one: in the arms of a `fn reason`, after `reason:`, as the third
//! word of `said(…)`, as the first of `why(…)` and as the reason of a piece of news.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Where reasons that users see are given.
const PLACES: [&str; 5] =
    ["src/object", "src/sandbox/model.rs", "src/check/violation.rs", "src/plugin.rs", "src/plugin"];
/// A row of the table that lists what others say ends so.
const OPEN: &str = "…";

#[test]
fn the_table_of_reasons_is_that_of_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(root.join("../docs/reasons.md")).unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let first = |row: &str| row.split('|').nth(1).unwrap().to_owned();
    let (open, closed): (Vec<String>, Vec<String>) = rows.map(first).partition(|cell| cell.contains(OPEN));
    let words = |cells: &[String]| -> BTreeSet<String> {
        cells.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
    };
    let (open, closed) = (words(&open), words(&closed));

    let mut given: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut all = String::new();
    for place in PLACES {
        for file in files(&root.join(place)) {
            let code = without_tests(&fs::read_to_string(&file).unwrap());
            for reason in reasons(&code) {
                given.entry(reason).or_insert_with(|| file.clone());
            }
            all.push_str(&code);
        }
    }
    assert!(given.len() > 30, "only {} reasons were found", given.len());
    let missing: Vec<_> =
        given.iter().filter(|(reason, _)| !closed.contains(*reason) && !open.contains(*reason)).collect();
    assert!(missing.is_empty(), "not in docs/reasons.md: {missing:?}");
    let stale: Vec<_> = closed.iter().filter(|reason| !all.contains(&format!("\"{reason}\""))).collect();
    assert!(stale.is_empty(), "in docs/reasons.md, and nowhere in the code: {stale:?}");
}

fn files(at: &Path) -> Vec<PathBuf> {
    if at.is_file() {
        return vec![at.to_owned()];
    }
    let mut found: Vec<PathBuf> = fs::read_dir(at).unwrap().flat_map(|entry| files(&entry.unwrap().path())).collect();
    found.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    found
}

fn without_tests(text: &str) -> String {
    text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned()
}

fn reasons(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("fn reason(") {
        let end = code[at..].find("\n    }\n").unwrap_or(code.len() - at);
        found.extend(literals(&code[at..at + end]));
    }
    // How many literals stand before the reason.
    for (start, skip) in [("reason: ", 0), ("said(", 2), ("why(", 0), ("say(", 1), ("News {", 0)] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let line = code[at + start.len()..].split('\n').next().unwrap();
            found.extend(quoted(line).into_iter().nth(skip).filter(|word| is_reason(word)));
        }
    }
    found
}

fn literals(text: &str) -> impl Iterator<Item = String> {
    quoted(text).into_iter().filter(|word| is_reason(word))
}

fn quoted(text: &str) -> Vec<String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

fn is_reason(word: &str) -> bool {
    !["True", "False", "Unknown"].contains(&word)
        && word.len() > 3
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().all(char::is_alphanumeric)
}
