//! A kind as the API serves it, and the paths under which.

/// One served resource: what discovery says of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub namespaced: bool,
    /// Whether there is a status subresource; a write to a missing one is a 404 that looks like a deleted object.
    pub has_status: bool,
}

impl Resource {
    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `pods`, `deployments.apps`: how RBAC and kubectl name it.
    pub fn dotted(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The URL's path. A namespace is left out for a cluster-scoped kind.
    pub fn path(&self, namespace: Option<&str>, name: Option<&str>, subresource: Option<&str>) -> String {
        let mut path = group_version_path(&self.group, &self.version);
        if let Some(namespace) = namespace.filter(|_| self.namespaced) {
            path.push_str("/namespaces");
            segment(&mut path, namespace);
        }
        segment(&mut path, &self.plural);
        for part in [name, subresource].into_iter().flatten() {
            segment(&mut path, part);
        }
        path
    }

    /// `pods ns/name/status`, for messages.
    pub(crate) fn describe(&self, namespace: Option<&str>, name: Option<&str>, subresource: Option<&str>) -> String {
        let mut text = self.dotted();
        let parts = [namespace.filter(|_| self.namespaced), name, subresource];
        for (at, part) in parts.into_iter().flatten().enumerate() {
            text.push(if at == 0 { ' ' } else { '/' });
            text.push_str(part);
        }
        text
    }
}

pub(crate) fn group_version_path(group: &str, version: &str) -> String {
    let mut path = String::with_capacity(128);
    if group.is_empty() {
        path.push_str("/api");
    } else {
        path.push_str("/apis");
        segment(&mut path, group);
    }
    segment(&mut path, version);
    path
}

fn segment(path: &mut String, text: &str) {
    path.push('/');
    escape(path, text);
}

/// Percent-encodes all but the unreserved characters, so that no text leaves its segment or parameter.
pub(crate) fn escape(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().map_or('0', char::from);
    // A segment of dots alone would be resolved away.
    let dots = !text.is_empty() && text.bytes().all(|byte| byte == b'.');
    for byte in text.bytes() {
        match byte {
            b'.' if !dots => out.push('.'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => out.push(char::from(byte)),
            _ => {
                out.push('%');
                out.push(digit(byte >> 4));
                out.push(digit(byte & 15));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(group: &str, plural: &str, namespaced: bool) -> Resource {
        Resource {
            group: group.into(),
            version: "v1".into(),
            kind: "K".into(),
            plural: plural.into(),
            namespaced,
            has_status: false,
        }
    }

    #[test]
    fn paths_of_core_groups_scopes_and_subresources() {
        let pods = resource("", "pods", true);
        assert_eq!(pods.path(Some("ns"), Some("a"), Some("status")), "/api/v1/namespaces/ns/pods/a/status");
        assert_eq!(pods.path(None, None, None), "/api/v1/pods");
        let roles = resource("rbac.authorization.k8s.io", "clusterroles", false);
        let expected = "/apis/rbac.authorization.k8s.io/v1/clusterroles/a";
        assert_eq!(roles.path(Some("ignored"), Some("a"), None), expected);
        assert_eq!(pods.describe(Some("ns"), Some("a"), None), "pods ns/a");
        assert_eq!(roles.describe(None, Some("a"), None), "clusterroles.rbac.authorization.k8s.io a");
    }

    #[test]
    fn no_text_leaves_its_segment() {
        let path = resource("", "pods", true).path(Some(".."), Some("a/../../secrets?x=1#"), None);
        assert_eq!(path, "/api/v1/namespaces/%2E%2E/pods/a%2F..%2F..%2Fsecrets%3Fx%3D1%23");
    }
}
