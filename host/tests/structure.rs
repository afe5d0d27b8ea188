//! The house rules that no compiler holds: layers, reading order, and that the
//! host knows no kind by name.
//!
//! A file uses earlier steps of its own layer and lower layers; never later
//! ones, and never its driver (`foo.rs` beside `foo/`). The order is that of
//! the `mod` lines.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A module path such as `["object", "apply"]`, with its file.
struct Module {
    path: Vec<String>,
    file: PathBuf,
    /// Without tests and comments.
    code: String,
    /// Its `mod` lines, in order.
    children: Vec<String>,
}

fn modules() -> Vec<Module> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut modules = Vec::new();
    collect(&root.join("lib.rs"), &root, Vec::new(), &mut modules);
    assert!(modules.len() > 40, "only {} modules were found", modules.len());
    modules
}

fn collect(file: &Path, folder: &Path, path: Vec<String>, into: &mut Vec<Module>) {
    let text = fs::read_to_string(file).unwrap();
    let code = without_comments(&without_tests(&text));
    let children: Vec<String> = code
        .lines()
        .filter_map(|line| {
            let line =
                line.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ").trim_start_matches("pub ");
            Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned())
        })
        .collect();
    for child in &children {
        let mut path = path.clone();
        path.push(child.clone());
        collect(&folder.join(format!("{child}.rs")), &folder.join(child), path, into);
    }
    into.push(Module { path, file: file.to_owned(), code, children });
}

fn without_comments(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.split("//").next().unwrap_or_default())).collect()
}

/// Drops from `#[cfg(test)]` the item that follows.
fn without_tests(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            let indent = line.len() - line.trim_start().len();
            let end = format!("{}}}", " ".repeat(indent));
            let first = lines.next().unwrap_or_default();
            if !first.trim_end().ends_with(';') {
                lines.by_ref().find(|line| **line == *end);
            }
            continue;
        }
        code.push_str(line);
        code.push('\n');
    }
    code
}

/// Every path that a file names from `crate::` or `super::`, groups taken apart, as absolute module paths.
fn references(module: &Module) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        let mut rest = module.code.as_str();
        while let Some(at) = rest.find(start) {
            let word = rest[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':');
            let tail = &rest[at..];
            // `pub(in crate::x)` says who may use it, and uses nothing.
            if !word && !rest[..at].ends_with("(in ") {
                let end = tail.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c))).unwrap_or(tail.len());
                let prefix = &tail[..end];
                if tail[end..].starts_with('{') {
                    let group = tail[end + 1..].split(['}', ';']).next().unwrap_or_default();
                    found.extend(group.split(',').map(|item| format!("{prefix}{}", item.trim())));
                } else {
                    found.push(prefix.to_owned());
                }
            }
            let end = tail.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c))).unwrap_or(tail.len());
            rest = &tail[end.max(start.len())..];
        }
    }
    found.iter().map(|path| absolute(module, path)).collect()
}

fn absolute(module: &Module, path: &str) -> Vec<String> {
    let mut at = module.path.clone();
    let mut segments = path.split("::").filter(|segment| !segment.is_empty()).peekable();
    if segments.peek() == Some(&"crate") {
        at.clear();
    }
    for segment in segments {
        match segment {
            "crate" | "self" => {}
            "super" => {
                at.pop();
            }
            name => at.push(name.split_whitespace().next().unwrap_or_default().to_owned()),
        }
    }
    at
}

#[test]
fn files_use_earlier_steps_and_lower_layers_only() {
    let modules = modules();
    let by_path: BTreeMap<&[String], &Module> = modules.iter().map(|module| (module.path.as_slice(), module)).collect();
    let mut wrong = Vec::new();
    for module in modules.iter().filter(|module| !module.path.is_empty()) {
        for reference in references(module) {
            // The longest prefix that is a file.
            let target = (1..=reference.len()).rev().find_map(|n| by_path.get(&reference[..n]));
            let Some(target) = target else { continue };
            if target.path == module.path || target.path.starts_with(&module.path) {
                continue;
            }
            let place = module.file.display();
            if module.path.starts_with(&target.path) {
                wrong.push(format!("{place} uses its driver: {}", reference.join("::")));
                continue;
            }
            let common = module.path.iter().zip(&target.path).take_while(|(a, b)| a == b).count();
            let parent = by_path[&module.path[..common]];
            let position = |path: &[String]| parent.children.iter().position(|child| *child == path[common]).unwrap();
            if position(&target.path) >= position(&module.path) {
                wrong.push(format!("{place} uses what comes later: {}", reference.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_host_knows_no_kind_by_name() {
    let mut found = Vec::new();
    for module in modules() {
        let text = fs::read_to_string(&module.file).unwrap();
        for (number, line) in without_tests(&text).lines().enumerate() {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            if words.any(|word| matches!(word.to_lowercase().as_str(), "database" | "databases" | "mongo" | "mysql")) {
                found.push(format!("{}:{}: {}", module.file.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn only_the_sandbox_knows_wasmtime() {
    for module in modules().iter().filter(|module| module.path.first().is_some_and(|layer| layer != "sandbox")) {
        assert!(!module.code.contains("wasmtime::"), "{}", module.file.display());
    }
}
