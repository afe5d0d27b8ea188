//! The record on a retained object: whose data it is, and what can open it.
//!
//! Such an object carries no owner reference, so that it stays when its parent
//! goes. A later parent of the same group, kind and name finds it again by this
//! record, which stands in annotations.

use crate::check;
use crate::cluster::ObjectView;
use crate::cluster::meta::Owner;
use crate::names;
use crate::sandbox::model::Retention;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub group: String,
    pub kind: String,
    pub name: String,
    /// Of the parent that it was last made or taken over for.
    pub uid: String,
    /// Name of the Plugin document.
    pub plugin: String,
    pub line: String,
    pub data_version: String,
}

/// Whose data it is, beside the namespace: what the cache finds retained objects by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Heir {
    pub namespace: String,
    pub group: String,
    pub kind: String,
    pub name: String,
}

/// Every annotation of a record.
pub(crate) const ANNOTATIONS: [&str; 7] = [
    names::RETAINED_GROUP_ANNOTATION,
    names::RETAINED_KIND_ANNOTATION,
    names::RETAINED_NAME_ANNOTATION,
    names::RETAINED_UID_ANNOTATION,
    names::RETAINED_PLUGIN_ANNOTATION,
    names::RETAINED_LINE_ANNOTATION,
    names::RETAINED_DATA_VERSION_ANNOTATION,
];

impl Record {
    pub(crate) fn new(parent: &check::Parent, plugin: &str, retention: &Retention) -> Self {
        let Heir { namespace: _, group, kind, name } = Heir::of(parent);
        let Retention { data_version, line } = retention.clone();
        Self { group, kind, name, uid: parent.uid.clone(), plugin: plugin.to_owned(), line, data_version }
    }

    /// `None` where any part is missing: then it is nobody's to find.
    pub(crate) fn read(object: &ObjectView<'_>) -> Option<Self> {
        object.annotations.get(names::RETAINED_UID_ANNOTATION)?;
        let [group, kind, name, uid, plugin, line, data_version] =
            ANNOTATIONS.map(|annotation| object.annotations.get(annotation).map(|text| text.clone().into_owned()));
        Some(Self {
            group: group?,
            kind: kind?,
            name: name?,
            uid: uid?,
            plugin: plugin?,
            line: line?,
            data_version: data_version?,
        })
    }

    pub(crate) fn annotations(&self) -> [(&'static str, &str); 7] {
        let Self { group, kind, name, uid, plugin, line, data_version } = self;
        let [a, b, c, d, e, f, g] = ANNOTATIONS;
        [(a, group), (b, kind), (c, name), (d, uid), (e, plugin), (f, line), (g, data_version)]
    }

    pub(crate) fn heir(&self, namespace: &str) -> Heir {
        let Self { group, kind, name, .. } = self;
        Heir { namespace: namespace.to_owned(), group: group.clone(), kind: kind.clone(), name: name.clone() }
    }

    /// Kept for an object of this group, kind and name.
    pub(crate) fn is_for(&self, parent: &check::Parent) -> bool {
        self.heir(&parent.namespace) == Heir::of(parent)
    }

    /// Why this rendering must not use the data. Its own plugin may move it to
    /// another line, which is an upgrade; a later parent must name the same.
    pub(crate) fn mismatch(
        &self,
        parent: &check::Parent,
        plugin: &str,
        retention: Option<&Retention>,
    ) -> Option<String> {
        if self.plugin != plugin {
            return Some(format!("it was kept by plugin {}, and this object is served by {plugin}", self.plugin));
        }
        if self.uid == parent.uid {
            return None;
        }
        match retention {
            None => Some(format!(
                "it was kept (version line {}) when an earlier {} of this name went, and this object would not keep it; let it keep its data first",
                self.line, self.kind
            )),
            Some(wanted) if wanted.line != self.line => Some(format!(
                "it is of version line {} (data version {}), and this object asks for line {}",
                self.line, self.data_version, wanted.line
            )),
            Some(_) => None,
        }
    }
}

/// Whether an owner is an earlier object of the same name.
pub(crate) fn is_earlier_self(owner: &Owner<'_>, parent: &check::Parent) -> bool {
    let group = |api_version: &str| api_version.rsplit_once('/').map(|(group, _)| group.to_owned());
    owner.kind == parent.kind
        && owner.name == parent.name
        && owner.uid != parent.uid
        && group(&owner.api_version) == group(&parent.api_version)
}

impl Heir {
    pub(crate) fn of(parent: &check::Parent) -> Self {
        let group = parent.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        Self {
            namespace: parent.namespace.clone(),
            group: group.to_owned(),
            kind: parent.kind.clone(),
            name: parent.name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(uid: &str) -> check::Parent {
        check::Parent {
            api_version: "example.org/v1".into(),
            kind: "Widget".into(),
            namespace: "n".into(),
            name: "a".into(),
            uid: uid.into(),
        }
    }

    fn retention(line: &str) -> Retention {
        Retention { data_version: "4.2".into(), line: line.into() }
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let record = Record::new(&parent("u"), "p", &retention("p-4"));
        let annotations: serde_json::Map<String, serde_json::Value> =
            record.annotations().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let mut object = serde_json::json!({"metadata": {"name": "a-data", "annotations": annotations}});
        let text = object.to_string();
        assert_eq!(Record::read(&ObjectView::parse(&text).unwrap()), Some(record.clone()));
        assert!(record.is_for(&parent("another")));
        assert!(!record.is_for(&check::Parent { name: "b".into(), ..parent("u") }));
        object["metadata"]["annotations"].as_object_mut().unwrap().remove(names::RETAINED_LINE_ANNOTATION);
        let text = object.to_string();
        assert_eq!(Record::read(&ObjectView::parse(&text).unwrap()), None, "a part is missing");
    }

    #[test]
    fn a_later_parent_must_be_of_the_same_plugin_and_line() {
        let record = Record::new(&parent("old"), "p", &retention("p-4"));
        let differs = |uid: &str, plugin: &str, line: Option<&str>| {
            record.mismatch(&parent(uid), plugin, line.map(retention).as_ref()).unwrap_or_default()
        };
        assert_eq!(differs("new", "p", Some("p-4")), "");
        assert!(differs("new", "p", Some("p-5")).contains("line p-4 (data version 4.2)"));
        assert!(differs("new", "q", Some("p-4")).contains("plugin p"));
        assert!(differs("new", "p", None).contains("would not keep"));
        assert_eq!(differs("old", "p", Some("p-5")), "", "its own plugin upgrades it");
        assert_eq!(differs("old", "p", None), "", "its own parent gives it up");
        assert!(differs("old", "q", Some("p-4")).contains("plugin p"), "another plugin cannot open it");
    }
}
