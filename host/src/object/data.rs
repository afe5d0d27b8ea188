//! Kinds whose loss is a loss of data: never deleted or replaced but on the
//! word of a person.

/// Group and kind.
pub(crate) const DATA_KINDS: [(&str, &str); 4] =
    [("", "PersistentVolumeClaim"), ("", "Secret"), ("apps", "StatefulSet"), ("", "Namespace")];

pub(crate) fn is_data(group: &str, kind: &str) -> bool {
    DATA_KINDS.contains(&(group, kind))
}

/// Where a claim says how much it wants.
pub(crate) const REQUESTED_STORAGE: &str = "/spec/resources/requests/storage";
