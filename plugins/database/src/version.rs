//! Versions of servers and of data, and which may follow which.

use std::fmt;

/// Every version, the default first, each with those whose server may open its data next.
pub type Steps = &'static [(&'static str, &'static [&'static str])];

/// Where the data stands. As text it is `4.0`, or `4.0-to-4.2` from the moment
/// that a server of 4.2 may have opened it until the step is complete: then
/// there is no way back, and no way further but 4.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    At(&'static str),
    Between(&'static str, &'static str),
}

impl Data {
    /// None for what no version of this plugin has written.
    #[must_use]
    pub fn read(text: &str, steps: Steps) -> Option<Self> {
        match text.split_once("-to-") {
            None => Some(Self::At(known(steps, text)?)),
            Some((from, to)) => Some(Self::Between(known(steps, from)?, known(steps, to)?)),
        }
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(version) => f.write_str(version),
            Self::Between(from, to) => write!(f, "{from}-to-{to}"),
        }
    }
}

/// The version as the table has it.
pub(crate) fn known(steps: Steps, version: &str) -> Option<&'static str> {
    steps.iter().map(|(known, _)| *known).find(|known| *known == version)
}

pub(crate) fn next(steps: Steps, version: &str) -> &'static [&'static str] {
    steps.iter().find(|(known, _)| *known == version).map_or(&[], |(_, next)| next)
}

/// Of `docker.io/library/mongo:4.2.24-bionic` the 4.2. None for a digest, and
/// for tags that tell no version.
pub(crate) fn of_image(steps: Steps, image: &str) -> Option<&'static str> {
    let (_, last) = image.rsplit_once('/').unwrap_or(("", image));
    let (_, tag) = last.split('@').next()?.split_once(':')?;
    let covers = |version: &str| {
        tag.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with('-'))
    };
    steps.iter().map(|(version, _)| *version).find(|version| covers(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: Steps = &[("4.0", &["4.2"]), ("4.2", &["4.4"]), ("4.4", &[])];

    #[test]
    fn the_record_is_read_as_it_was_written() {
        for data in [Data::At("4.0"), Data::Between("4.0", "4.2")] {
            assert_eq!(Data::read(&data.to_string(), STEPS), Some(data));
        }
        for other in ["", "4", "4.9", "4.0-to-", "4.0-to-9.9", "4.0-to-4.2-to-4.4", "4.0+4.2"] {
            assert_eq!(Data::read(other, STEPS), None, "{other}");
        }
    }

    #[test]
    fn an_image_tells_its_version_by_its_tag() {
        for (image, version) in [
            ("mongo:4.2", Some("4.2")),
            ("docker.io/library/mongo:4.2.24-bionic", Some("4.2")),
            ("mirror.example:5000/mongo:4.2-focal@sha256:00", Some("4.2")),
            ("mongo:4.20", None),
            ("mongo:latest", None),
            ("mongo@sha256:4.2", None),
            ("localhost:5000/mongo", None),
            ("mongo", None),
        ] {
            assert_eq!(of_image(STEPS, image), version, "{image}");
        }
    }
}
