//! Components as toolchains make them, and what becomes of them when bytes are
//! changed, cut off, or whole sections change places.

use std::path::PathBuf;

use crate::chance::Chance;
use crate::guest::Guest;

pub(crate) struct Artifact {
    pub(crate) bytes: Vec<u8>,
}

/// One in WAT, which compiles in a moment; then the plugins that are shipped.
pub(crate) fn artifacts() -> Vec<Artifact> {
    let folder = std::env::var_os("KEELSON_PLUGINS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/plugins"), PathBuf::from);
    let real = ["mongo", "mysql"].map(|name| {
        let file = folder.join(name).with_extension("wasm");
        std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}; make build", file.display()))
    });
    let mut small = Guest::default();
    let pod = small.text(
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"db"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#,
    );
    small.returns_children(&[pod]);
    std::iter::once(small.component()).chain(real).map(|bytes| Artifact { bytes }).collect()
}

/// The small one nine times in ten: the others take a hundred times as long to compile.
pub(crate) fn which(chance: &mut Chance, count: usize) -> usize {
    if chance.one_in(10) { 1 + chance.below(count - 1) } else { 0 }
}

const HEAD: usize = 8;
/// Of a component's section that holds a core module.
const CORE_MODULE: u8 = 1;

pub(crate) fn mutated(chance: &mut Chance, whole: &[u8]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..*chance.any_of(&[1, 1, 1, 2, 3]) {
        match chance.below(10) {
            0 => bytes.truncate(1 + chance.below(bytes.len())),
            1 => bytes = rearranged(chance, &bytes),
            2 => bytes = within(chance, &bytes, rearranged),
            3..=5 => bytes = within(chance, &bytes, changed),
            6 => {
                let (at, more) = (chance.below(bytes.len()), chance.below(64));
                let filled = vec![chance.any() as u8; more];
                bytes.splice(at..at, filled);
            }
            _ => bytes = changed(chance, &bytes),
        }
        if bytes.len() <= HEAD {
            break;
        }
    }
    bytes
}

/// A few bytes, mostly behind the head: without that nothing else is looked at.
fn changed(chance: &mut Chance, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..*chance.any_of(&[1, 1, 2, 3]) {
        let from = if chance.one_in(20) { 0 } else { HEAD.min(bytes.len() - 1) };
        let at = from + chance.below(bytes.len() - from);
        bytes[at] = if chance.one_in(2) { chance.any() as u8 } else { bytes[at] ^ (1 << chance.below(8)) };
    }
    bytes
}

/// Two sections change places, one is there twice, or one is gone.
fn rearranged(chance: &mut Chance, bytes: &[u8]) -> Vec<u8> {
    let mut sections = sections(bytes);
    if sections.is_empty() {
        return bytes.to_vec();
    }
    let (a, b) = (chance.below(sections.len()), chance.below(sections.len()));
    match chance.below(3) {
        0 => sections.swap(a, b),
        1 => sections.insert(a, sections[b]),
        _ => drop(sections.remove(a)),
    }
    [&bytes[..HEAD], &sections.concat()].concat()
}

/// The same to a core module in it, with its new length.
fn within(chance: &mut Chance, bytes: &[u8], change: fn(&mut Chance, &[u8]) -> Vec<u8>) -> Vec<u8> {
    let sections = sections(bytes);
    let modules: Vec<usize> = (0..sections.len()).filter(|at| sections[*at][0] == CORE_MODULE).collect();
    if modules.is_empty() {
        return bytes.to_vec();
    }
    let chosen = *chance.of(&modules);
    let mut whole = bytes[..HEAD].to_vec();
    for (at, section) in sections.iter().enumerate() {
        let head = 1 + leb(&section[1..]).map_or(0, |(_, length)| length);
        if at != chosen || section.len() <= head + HEAD {
            whole.extend_from_slice(section);
            continue;
        }
        let module = change(chance, &section[head..]);
        whole.push(CORE_MODULE);
        let mut left = module.len();
        while left >= 0x80 {
            whole.push((left & 0x7f) as u8 | 0x80);
            left >>= 7;
        }
        whole.push(left as u8);
        whole.extend_from_slice(&module);
    }
    whole
}

/// Each with its id and length, as far as they can be told apart.
fn sections(bytes: &[u8]) -> Vec<&[u8]> {
    let mut sections = Vec::new();
    let mut at = HEAD;
    while let Some((length, bytes_of_length)) = bytes.get(at + 1..).and_then(leb) {
        let end = at + 1 + bytes_of_length + length;
        let Some(section) = bytes.get(at..end) else { break };
        sections.push(section);
        at = end;
    }
    sections
}

/// An unsigned LEB128 and how many bytes it takes.
fn leb(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}
