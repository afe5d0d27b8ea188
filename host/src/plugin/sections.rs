//! What stands in a component beside its code: two custom sections, read from
//! and added to any component, whatever made it.
//!
//! After the preamble of 8 bytes a component is a list of sections: an id, the
//! size as LEB128, the content. Custom ones have id 0 and begin with their name.

/// JSON of what `describe` gives, for whoever wants to know it without running the component.
pub const MANIFEST: &str = "keelson:manifest";
/// JSON of the golden fixtures.
pub const FIXTURES: &str = "keelson:fixtures";

const PREAMBLE: usize = 8;
const CUSTOM: u8 = 0;

/// The content of each, where it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sections<'a> {
    pub manifest: Option<&'a [u8]>,
    pub fixtures: Option<&'a [u8]>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SectionError {
    #[error("its sections are cut off after {0} bytes")]
    CutOff(usize),
    #[error("it has two sections {0}")]
    Twice(&'static str),
}

/// One section: where it begins and ends, and its name and content if it is a custom one.
struct Section<'a> {
    start: usize,
    end: usize,
    custom: Option<(&'a [u8], &'a [u8])>,
}

pub fn read(component: &[u8]) -> Result<Sections<'_>, SectionError> {
    let mut sections = Sections::default();
    for section in all(component)? {
        let Some((name, content)) = section.custom else { continue };
        let (place, known) = match name {
            _ if name == MANIFEST.as_bytes() => (&mut sections.manifest, MANIFEST),
            _ if name == FIXTURES.as_bytes() => (&mut sections.fixtures, FIXTURES),
            _ => continue,
        };
        if place.replace(content).is_some() {
            return Err(SectionError::Twice(known));
        }
    }
    Ok(sections)
}

/// The component with these sections at its end, in place of those that it has.
pub fn with(component: &[u8], sections: Sections<'_>) -> Result<Vec<u8>, SectionError> {
    let Sections { manifest, fixtures } = sections;
    let mut bytes = component.get(..PREAMBLE).unwrap_or_default().to_vec();
    for Section { start, end, custom } in all(component)? {
        let ours = custom.is_some_and(|(name, _)| [MANIFEST, FIXTURES].iter().any(|known| known.as_bytes() == name));
        if !ours {
            bytes.extend_from_slice(component.get(start..end).unwrap_or_default());
        }
    }
    for (name, content) in [(MANIFEST, manifest), (FIXTURES, fixtures)] {
        let Some(content) = content else { continue };
        let mut body = leb128(name.len());
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(content);
        bytes.push(CUSTOM);
        bytes.extend(leb128(body.len()));
        bytes.extend(body);
    }
    Ok(bytes)
}

fn all(component: &[u8]) -> Result<Vec<Section<'_>>, SectionError> {
    let mut sections = Vec::new();
    let mut at = PREAMBLE;
    while at < component.len() {
        let section = section(component, at).ok_or(SectionError::CutOff(at))?;
        at = section.end;
        sections.push(section);
    }
    Ok(sections)
}

fn section(component: &[u8], start: usize) -> Option<Section<'_>> {
    let id = *component.get(start)?;
    let (size, content) = number(component, start.checked_add(1)?)?;
    let end = content.checked_add(size)?;
    let body = component.get(content..end)?;
    let custom = match id {
        CUSTOM => {
            let (length, from) = number(body, 0)?;
            let to = from.checked_add(length)?;
            Some((body.get(from..to)?, body.get(to..)?))
        }
        _ => None,
    };
    Some(Section { start, end, custom })
}

/// An unsigned LEB128 of at most 32 bits, and where what follows it begins.
fn number(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut value: u64 = 0;
    for index in 0..5 {
        let byte = *bytes.get(at.checked_add(index)?)?;
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let value = u32::try_from(value).ok()?;
            return Some((value as usize, at + index + 1));
        }
    }
    None
}

fn leb128(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component() -> Vec<u8> {
        wat::parse_str(
            r#"(component (core module (@custom "keelson:manifest" "not at the top")) (@custom "other" "x"))"#,
        )
        .unwrap()
    }

    #[test]
    fn what_is_added_is_read_and_all_else_stays() {
        let bare = component();
        assert_eq!(read(&bare), Ok(Sections::default()));
        let long = vec![b' '; 300];
        let sections = Sections { manifest: Some(b"{}"), fixtures: Some(&long) };
        let added = with(&bare, sections).unwrap();
        assert_eq!(read(&added), Ok(sections));
        assert_eq!(added.get(..bare.len()), Some(bare.as_slice()));
        assert_eq!(with(&added, sections).unwrap(), added, "twice is once");
        assert_eq!(with(&added, Sections::default()).unwrap(), bare);
        // It is valid as far as it goes, and no plugin.
        let error = crate::sandbox::Engine::new(1).unwrap().compile(&added, Default::default()).unwrap_err();
        assert!(error.to_string().contains("exports no keelson:operator"), "{error}");
    }

    #[test]
    fn a_section_twice_is_an_error() {
        let mut twice = with(&component(), Sections { manifest: Some(b"{}"), fixtures: None }).unwrap();
        let section = twice.get(component().len()..).unwrap().to_vec();
        twice.extend(section);
        assert_eq!(read(&twice), Err(SectionError::Twice(MANIFEST)));
    }

    #[test]
    fn whatever_is_cut_off_is_an_error_and_no_panic() {
        let whole = with(&component(), Sections { manifest: Some(b"{}"), fixtures: Some(b"[]") }).unwrap();
        let ends: Vec<usize> = all(&whole).unwrap().iter().map(|section| section.end).collect();
        for length in 9..whole.len() {
            let read = read(whole.get(..length).unwrap());
            assert_eq!(read.is_ok(), ends.contains(&length), "{length}: {read:?}");
        }
        for wrong in
            [&[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0][..], &[0, 1, 9], &[0, 0], &[7, 0xff, 0xff, 0xff, 0xff, 0x0f]]
        {
            let bytes = [&whole[..8], wrong].concat();
            assert_eq!(read(&bytes), Err(SectionError::CutOff(8)), "{wrong:?}");
        }
    }
}
