//! Kinds whose loss is a loss of data: whatever a rendering leaves out or asks
//! for, and whatever strategy is set, the host neither deletes nor replaces one.

const KINDS: [(&str, &str); 4] =
    [("", "PersistentVolumeClaim"), ("", "Secret"), ("apps", "StatefulSet"), ("", "Namespace")];

pub(crate) fn holds_data(group: &str, kind: &str) -> bool {
    KINDS.contains(&(group, kind))
}
