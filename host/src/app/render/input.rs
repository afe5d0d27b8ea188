//! The objects of a file: YAML or JSON, several documents, or a List.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::check::Parent;

/// UID of a parent that has none, so that the same file gives the same output.
pub(crate) const NO_UID: &str = "00000000-0000-0000-0000-000000000000";
/// Bytes of a file; more than any cluster would take in one apply.
const INPUT_BYTES: u64 = 64 << 20;

pub(crate) struct Object {
    pub(crate) group: String,
    pub(crate) version: String,
    /// With namespace `default` and [`NO_UID`] where the file has none.
    pub(crate) parent: Parent,
    pub(crate) value: Value,
    /// The file says in which namespace it is.
    pub(crate) placed: bool,
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parent { api_version: _, kind, namespace, name, uid: _ } = &self.parent;
        write!(f, "{kind} {namespace}/{}", name.escape_debug())
    }
}

pub(crate) fn read(file: &Path) -> anyhow::Result<Vec<Object>> {
    let stdin = file == Path::new("-");
    let shown = if stdin { "stdin".to_owned() } else { file.display().to_string() };
    let mut text = String::new();
    let reader: Box<dyn Read> = if stdin {
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(file).with_context(|| format!("cannot read {shown}"))?)
    };
    reader.take(INPUT_BYTES + 1).read_to_string(&mut text).with_context(|| format!("cannot read {shown}"))?;
    if text.len() as u64 > INPUT_BYTES {
        bail!("{shown} is larger than {INPUT_BYTES} bytes");
    }
    objects(&text).with_context(|| format!("cannot read {shown}"))
}

fn objects(text: &str) -> anyhow::Result<Vec<Object>> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|error| anyhow::anyhow!("not YAML: {}", error.without_snippet()))?;
    let mut objects = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        let at = format!("document {}", index + 1);
        match document {
            Value::Object(mut list) if list.get("kind").is_some_and(|kind| kind == "List") => {
                let Some(Value::Array(items)) = list.remove("items") else { bail!("{at}: a List without items") };
                for (index, item) in items.into_iter().enumerate() {
                    objects.push(object(item).with_context(|| format!("{at}, item {}", index + 1))?);
                }
            }
            other => objects.push(object(other).context(at)?),
        }
    }
    if objects.is_empty() {
        bail!("it holds no object");
    }
    Ok(objects)
}

fn object(mut value: Value) -> anyhow::Result<Object> {
    // `namespace: n` is a boolean in YAML, to kubectl as well.
    let text = |path: &str| match value.pointer(path) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => bail!("{} must be a string, not {other}", path.trim_start_matches('/').replace('/', ".")),
    };
    let api_version = text("/apiVersion")?.context("apiVersion is missing")?;
    let kind = text("/kind")?.context("kind is missing")?;
    let name = text("/metadata/name")?.context("metadata.name is missing")?;
    let namespace = text("/metadata/namespace")?;
    let placed = namespace.is_some();
    let namespace = namespace.unwrap_or_else(|| "default".to_owned());
    let uid = text("/metadata/uid")?.unwrap_or_else(|| NO_UID.to_owned());
    if let Some(metadata) = value.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), namespace.clone().into());
        metadata.insert("uid".to_owned(), uid.clone().into());
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let (group, version) = (group.to_owned(), version.to_owned());
    Ok(Object { group, version, parent: Parent { api_version, kind, namespace, name, uid }, value, placed })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "apiVersion: g.io/v1\nkind: K\nmetadata: {name: a}\n";

    #[test]
    fn documents_and_lists_are_each_read() {
        let list = "---\nkind: List\nitems:\n- {apiVersion: v1, kind: L, metadata: {name: b, namespace: ns, uid: u}}\n";
        let objects = objects(&format!("# nothing\n---\n{ONE}{list}")).unwrap();
        let shown: Vec<String> = objects.iter().map(Object::to_string).collect();
        assert_eq!(shown, ["K default/a", "L ns/b"]);
        assert_eq!((objects[0].group.as_str(), objects[0].version.as_str()), ("g.io", "v1"));
        assert_eq!(objects[0].parent.uid, NO_UID);
        assert_eq!((objects[1].group.as_str(), objects[1].parent.uid.as_str()), ("", "u"));
    }

    #[test]
    fn what_is_no_object_is_told_where() {
        for (text, told) in [
            ("", "no object"),
            ("a: [", "not YAML"),
            ("- 1\n", "document 1: apiVersion is missing"),
            (&format!("{ONE}---\nkind: X\napiVersion: v1\n"), "document 2: metadata.name is missing"),
            ("{apiVersion: v1, kind: X, metadata: {name: a, namespace: n}}", "metadata.namespace must be a string"),
            ("kind: List\nitems: [{apiVersion: v1}]\n", "document 1, item 1: kind is missing"),
        ] {
            let error = format!("{:#}", objects(text).err().unwrap());
            assert!(error.contains(told), "{error}");
        }
    }
}
