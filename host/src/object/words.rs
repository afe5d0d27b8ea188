//! What the owner of an object has said of its children and Secrets, by
//! annotations: lists of names, with commas or spaces.

use crate::cluster::ObjectView;
use crate::names;

/// Most objects have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Words(Box<[(&'static str, Box<str>)]>);

/// `KIND/NAME`, as these lists name a child.
pub(crate) fn child(kind: &str, name: &str) -> String {
    format!("{kind}/{name}")
}

impl Words {
    const LISTS: [&str; 4] = [
        names::ADOPT_ANNOTATION,
        names::DELETE_DATA_ANNOTATION,
        names::NEW_CREDENTIALS_ANNOTATION,
        names::ACKNOWLEDGED_ANNOTATION,
    ];

    pub(crate) fn read(object: &ObjectView<'_>) -> Self {
        let said = Self::LISTS.into_iter().filter_map(|list| Some((list, Box::from(&**object.annotations.get(list)?))));
        Self(said.collect())
    }

    /// Whether a list names it.
    pub(crate) fn say(&self, annotation: &str, word: &str) -> bool {
        self.0.iter().filter(|(name, _)| *name == annotation).any(|(_, list)| {
            list.split(|c: char| c == ',' || c.is_whitespace()).any(|said| said.eq_ignore_ascii_case(word))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_what_stands_in_it_and_no_more() {
        let of = |list: &str| {
            let object = serde_json::json!({"metadata": {"annotations": {names::ADOPT_ANNOTATION: list}}}).to_string();
            Words::read(&ObjectView::parse(&object).unwrap())
        };
        let words = of("Service/a, pod/b\nPod/c");
        for child in ["Service/a", "Pod/b", "Pod/c"] {
            assert!(words.say(names::ADOPT_ANNOTATION, child), "{child}");
        }
        assert!(!words.say(names::ADOPT_ANNOTATION, "Service/b"));
        assert!(!words.say(names::DELETE_DATA_ANNOTATION, "Service/a"));
        assert!(!of("").say(names::ADOPT_ANNOTATION, "Service/a"));
        assert_ne!(of("a"), of("b"));
    }
}
