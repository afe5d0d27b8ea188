//! Where in an object a walk stands. Costs nothing until it must be told.

/// A JSON pointer as a chain on the stack.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

/// Characters of a pointer in a message; keys are the guest's.
const SHOWN_CHARS: usize = 256;

impl<'a> Path<'a> {
    pub(super) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }

    pub(super) fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }

    /// As a JSON pointer (RFC 6901), cut and free of control characters.
    pub(super) fn pointer(&self) -> String {
        self.text(|index| index.to_string())
    }

    /// As it would stand in `allowedFields`: `*` for indices.
    pub(super) fn pattern(&self) -> String {
        self.text(|_| "*".to_owned())
    }

    /// Whether a pointer with `*` for indices means this place.
    pub(super) fn is(&self, pattern: &str) -> bool {
        let mut segments = pattern.rsplit('/');
        let mut at = self;
        loop {
            let segment = segments.next();
            match (at, segment) {
                (Path::Root, Some("")) => return segments.next().is_none(),
                (Path::Key(parent, key), Some(segment)) if escaped(key) == segment => at = parent,
                (Path::Index(parent, index), Some(segment)) if segment == "*" || index.to_string() == segment => {
                    at = parent;
                }
                _ => return false,
            }
        }
    }

    fn text(&self, index: impl Fn(usize) -> String) -> String {
        let mut segments = Vec::new();
        let mut at = self;
        loop {
            match at {
                Path::Root => break,
                Path::Key(parent, key) => {
                    segments.push(escaped(key));
                    at = parent;
                }
                Path::Index(parent, place) => {
                    segments.push(index(*place));
                    at = parent;
                }
            }
        }
        let mut text = String::new();
        for segment in segments.iter().rev() {
            text.push('/');
            text.extend(segment.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }));
        }
        if text.chars().count() > SHOWN_CHARS {
            text = text.chars().take(SHOWN_CHARS).chain(['…']).collect();
        }
        text
    }
}

/// A JSON pointer as Kubernetes writes fields: `spec.ports[0].port`, `metadata.labels[app.kubernetes.io/name]`.
pub fn field(pointer: &str) -> String {
    let mut field = String::new();
    for segment in pointer.split('/').skip(1) {
        let key = segment.replace("~1", "/").replace("~0", "~");
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-_$…".contains(c);
        if key.starts_with(|c: char| c.is_ascii_digit()) || key.is_empty() || !key.chars().all(is_word) {
            field.push_str(&format!("[{key}]"));
            continue;
        }
        if !field.is_empty() {
            field.push('.');
        }
        field.push_str(&key);
    }
    field
}

/// A field of an item, for instance `children[1]`; either may be empty.
pub(super) fn place(item: &str, field: &str) -> String {
    let dot = if item.is_empty() || field.is_empty() || field.starts_with('[') { "" } else { "." };
    format!("{item}{dot}{field}")
}

/// Where a field of a child stands in a rendering: `children[1].spec.ports[0].port`. `field` is as Kubernetes writes it.
pub fn in_child(index: usize, field: &str) -> String {
    place(&format!("children[{index}]"), field)
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::{Path, field, in_child};

    #[test]
    fn a_place_is_written_as_kubernetes_writes_fields() {
        for (pointer, written) in [
            ("", ""),
            ("/spec/ports/0/port", "spec.ports[0].port"),
            ("/metadata/labels/app.kubernetes.io~1name", "metadata.labels[app.kubernetes.io/name]"),
            ("/data/a~0b/x", "data[a~b].x"),
            ("/keys/", "keys[]"),
        ] {
            assert_eq!(field(pointer), written);
        }
        assert_eq!(in_child(2, "spec.ports[0]"), "children[2].spec.ports[0]");
        assert_eq!((in_child(2, ""), in_child(2, "[x]")), ("children[2]".to_owned(), "children[2][x]".to_owned()));
    }

    #[test]
    fn a_pattern_means_exactly_one_depth() {
        let spec = Path::Root.key("spec");
        let list = spec.key("containers");
        let item = list.index(12);
        let leaf = item.key("a/b~c");
        assert_eq!(leaf.pointer(), "/spec/containers/12/a~1b~0c");
        assert_eq!(leaf.pattern(), "/spec/containers/*/a~1b~0c");
        assert!(leaf.is("/spec/containers/*/a~1b~0c"));
        assert!(leaf.is("/spec/containers/12/a~1b~0c"));
        for other in
            ["", "/", "/spec", "/spec/containers/*", "/spec/containers/1/a~1b~0c", "/x/spec/containers/*/a~1b~0c"]
        {
            assert!(!leaf.is(other), "{other}");
        }
        assert!(Path::Root.is(""));
        assert!(!list.is("/spec/*"), "a star is no key");
    }
}
