//! What the owner of an object has said by its annotations: lists of names,
//! with commas or spaces.

use super::parents::Parent;
use crate::cluster::ObjectView;

/// Whether a list names it. Asked rarely, so it is read when it is.
pub(crate) fn says(parent: &Parent, annotation: &str, word: &str) -> bool {
    ObjectView::parse(&parent.guest).is_ok_and(|object| {
        object.annotations.get(annotation).is_some_and(|list| {
            list.split(|c: char| c == ',' || c.is_whitespace()).any(|said| said.eq_ignore_ascii_case(word))
        })
    })
}

/// `KIND/NAME`, as these lists name a child.
pub(crate) fn child(kind: &str, name: &str) -> String {
    format!("{kind}/{name}")
}
