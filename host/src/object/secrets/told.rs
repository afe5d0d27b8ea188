//! What users are told of their credentials, and by what a user's own Secret is
//! known to have been edited: neither it nor the object is the host's to write
//! to, so its first revision is remembered in the status.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::names;
use crate::object::parents::Parent;
use crate::sandbox::model::Condition;

pub(crate) const CONDITION: &str = "CredentialsChanged";
const FIRST_SEEN: &str = "first seen: ";

/// Edits that nobody has acknowledged: name of the Secret to its revision.
pub(crate) type Edits = BTreeMap<String, String>;
/// Pointer into the parent to the revision of the Secret that it names, when it was first used.
pub(crate) type FirstSeen = BTreeMap<String, String>;

/// `None` where there is nothing to say.
pub(crate) fn condition(edits: &Edits, first_seen: &FirstSeen) -> Option<Condition> {
    let mut parts = Vec::new();
    if !first_seen.is_empty() {
        let list: Vec<String> = first_seen.iter().map(|(path, revision)| format!("{path}={revision}")).collect();
        parts.push(format!("{FIRST_SEEN}{}", list.join(", ")));
    }
    for (name, revision) in edits {
        parts.push(format!(
            "Secret {name} is another than the one that the data was made with: that does not change the credentials inside the data; set them to the same there, or put the old ones back into the Secret, then annotate this object with {}={revision}",
            names::ACKNOWLEDGED_ANNOTATION
        ));
    }
    let (status, reason) = if edits.is_empty() { ("False", "AsExpected") } else { ("True", "SecretEdited") };
    let message = parts.join("; ");
    (!parts.is_empty()).then(|| Condition { kind: CONDITION.to_owned(), status, reason: reason.to_owned(), message })
}

/// The condition as it stands in the status.
pub(crate) fn standing(parent: &Parent) -> Option<Condition> {
    let status = parent.status.fields();
    let conditions = status.get("conditions")?.as_array()?;
    let condition = conditions.iter().find(|condition| condition.get("type").is_some_and(|kind| kind == CONDITION))?;
    let text = |field: &str| condition.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let status = if text("status") == "True" { "True" } else { "False" };
    Some(Condition { kind: CONDITION.to_owned(), status, reason: text("reason"), message: text("message") })
}

/// What an earlier process wrote into it.
pub(crate) fn first_seen(parent: &Parent) -> FirstSeen {
    standing(parent).map(|condition| parse(&condition.message)).unwrap_or_default()
}

fn parse(message: &str) -> FirstSeen {
    let list = message.strip_prefix(FIRST_SEEN).and_then(|rest| rest.split(';').next()).unwrap_or_default();
    let entry = |entry: &str| entry.rsplit_once('=').map(|(path, revision)| (path.to_owned(), revision.to_owned()));
    list.split(", ").filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_first_seen_is_read_back() {
        let first: FirstSeen =
            [("/spec/a=b".to_owned(), "01".to_owned()), ("/spec/c".to_owned(), "02".to_owned())].into();
        let quiet = condition(&Edits::new(), &first).unwrap();
        assert_eq!((quiet.status, parse(&quiet.message)), ("False", first.clone()));
        let edited = condition(&Edits::from([("s".to_owned(), "03".to_owned())]), &first).unwrap();
        assert_eq!((edited.status, parse(&edited.message)), ("True", first));
        assert!(edited.message.contains("keelson.dev/acknowledged-credentials=03"), "{}", edited.message);
        assert!(!edited.message.contains("rotat"), "an edit is no rotation");
        assert_eq!(condition(&Edits::new(), &FirstSeen::new()), None);
    }
}
