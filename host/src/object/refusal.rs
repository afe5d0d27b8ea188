//! What an API server's "no" to a child means: the reason that users see and
//! when it is tried again.

use serde_json::{Map, Value};

use super::retry::Retry;
use super::structure::misfits;
use crate::check::in_child;
use crate::cluster::{ApiError, ApiErrorKind};

#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.words())]
pub(crate) struct Refusal {
    pub child: String,
    /// Plugin, and what is wrong at which place of its rendering; `None` where the server names no field of a child.
    places: Option<(String, String)>,
    pub error: ApiError,
    meaning: Meaning,
}

/// What was sent, as the plugin made it.
#[derive(Clone, Copy)]
pub(crate) struct Rendered<'a> {
    pub plugin: &'a str,
    /// The child's place in the rendering.
    pub index: usize,
    pub object: &'a Map<String, Value>,
}

/// Held by the API server, for it knows every kind's schema as it is now.
const STRUCTURE: &str = "Structure";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// It does not fit the schema that the server has of its kind.
    Structure,
    QuotaExceeded,
    NamespaceTerminating,
    NamespaceMissing,
    Forbidden,
    PortConflict,
    PortsExhausted,
    ImmutableField,
    TooLarge,
    Rejected,
    Unauthorized,
    Unavailable,
}

impl Refusal {
    pub(crate) fn new(child: String, error: ApiError) -> Self {
        let meaning = meaning(&error);
        Self { child, places: None, error, meaning }
    }

    /// Of a rendered child: what the server says of its fields is told by their places in the rendering.
    pub(crate) fn of_child(child: String, rendered: Rendered<'_>, error: ApiError) -> Self {
        let Rendered { plugin, index, object } = rendered;
        let Some(answer) = error.refusal() else { return Self::new(child, error) };
        let at = |field: &str, words: &str| format!("{}: {words}", in_child(index, field));
        let misfits: Vec<String> =
            misfits(&answer.message, object).iter().map(|misfit| at(&misfit.field, &misfit.words)).collect();
        let named = answer.causes.iter().filter(|cause| !cause.field.is_empty());
        let named: Vec<String> = named.map(|cause| at(&cause.field, line(&cause.message))).collect();
        let (places, structure) = match (misfits.as_slice(), named.as_slice()) {
            ([], []) => (None, false),
            ([], named) => (Some(format!("{} (refused by the API server)", named.join("; "))), false),
            (misfits, _) => (Some(format!("{} (rule {STRUCTURE})", misfits.join("; "))), true),
        };
        let places = places.map(|places| (plugin.to_owned(), places));
        let refusal = Self { places, ..Self::new(child, error) };
        if structure { Self { meaning: Meaning::Structure, ..refusal } } else { refusal }
    }

    fn words(&self) -> String {
        let Self { child, places, error, meaning: _ } = self;
        match places {
            Some((plugin, places)) => format!("plugin {plugin}: {child}: {places}"),
            None => format!("{child}: {error}"),
        }
    }

    /// Refused because of what stands there: by the server's words, which are not of every kind the same.
    pub(crate) fn is_immutable(&self) -> bool {
        self.meaning == Meaning::ImmutableField
    }

    /// No rule that this host knows: perhaps one about a change.
    pub(crate) fn is_rejected(&self) -> bool {
        self.meaning == Meaning::Rejected
    }

    /// The fields and the server's words, without the copy of the object that it may add.
    pub(crate) fn in_short(&self) -> String {
        if let Some((_, places)) = &self.places {
            return places.clone();
        }
        let Some(refusal) = self.error.refusal() else { return self.error.to_string() };
        let causes: Vec<String> =
            refusal.causes.iter().map(|cause| format!("{}: {}", cause.field, line(&cause.message))).collect();
        if causes.is_empty() { line(&refusal.message).to_owned() } else { causes.join("; ") }
    }

    pub(crate) fn reason(&self) -> &'static str {
        match self.meaning {
            Meaning::Structure => "InvalidChild",
            Meaning::QuotaExceeded => "QuotaExceeded",
            Meaning::NamespaceTerminating => "NamespaceTerminating",
            Meaning::NamespaceMissing => "NamespaceMissing",
            Meaning::Forbidden => "Forbidden",
            Meaning::PortConflict => "PortConflict",
            Meaning::PortsExhausted => "PortsExhausted",
            Meaning::ImmutableField => "ImmutableField",
            Meaning::TooLarge => "TooLarge",
            Meaning::Rejected => "Rejected",
            Meaning::Unauthorized => "Unauthorized",
            Meaning::Unavailable => "ApiUnavailable",
        }
    }

    pub(crate) fn retry(&self) -> Retry {
        match self.meaning {
            Meaning::QuotaExceeded
            | Meaning::NamespaceTerminating
            | Meaning::NamespaceMissing
            | Meaning::Forbidden
            | Meaning::PortConflict
            | Meaning::PortsExhausted => Retry::Blocked,
            Meaning::Structure | Meaning::ImmutableField | Meaning::TooLarge | Meaning::Rejected => Retry::Permanent,
            Meaning::Unauthorized | Meaning::Unavailable => Retry::Passing,
        }
    }
}

fn line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// What the API server says of Pods, `resize`, workloads, Services and roles.
const IMMUTABLE: [&str; 8] = [
    "immutable",
    "may not change",
    "updates to statefulset spec",
    "can not be modified",
    "cannot be removed",
    "less than or equal to previous value",
    "without support for resize",
    "cannot change roleRef",
];

/// By code, and where one code says several things by the server's words.
fn meaning(error: &ApiError) -> Meaning {
    let refusal = match &*error.kind {
        ApiErrorKind::Status(refusal) => refusal,
        ApiErrorKind::NotLeading | ApiErrorKind::Timeout(_) | ApiErrorKind::Connect(_) | ApiErrorKind::Decode(_) => {
            return Meaning::Unavailable;
        }
        ApiErrorKind::Auth(_) => return Meaning::Unauthorized,
    };
    let says = |words: &str| {
        refusal.message.contains(words) || refusal.causes.iter().any(|cause| cause.message.contains(words))
    };
    match refusal.code {
        401 => Meaning::Unauthorized,
        403 if says("exceeded quota") => Meaning::QuotaExceeded,
        403 if refusal.causes.iter().any(|cause| cause.reason == "NamespaceTerminating") => {
            Meaning::NamespaceTerminating
        }
        403 => Meaning::Forbidden,
        404 if says("namespaces \"") => Meaning::NamespaceMissing,
        404 => Meaning::Unavailable,
        413 => Meaning::TooLarge,
        422 if says("port is already allocated") => Meaning::PortConflict,
        // An admission rule of the cluster's, by whatever code it chose: somebody may change it.
        400..=499 if says("denied the request") || says("denied request") => Meaning::Forbidden,
        422 if IMMUTABLE.iter().any(|words| says(words)) => Meaning::ImmutableField,
        400 | 422 if says("too large") || says("Too long: may not be more than") => Meaning::TooLarge,
        500 if says("range is full") => Meaning::PortsExhausted,
        500 if says("etcdserver: request is too large") => Meaning::TooLarge,
        code if (400..500).contains(&code) && !matches!(code, 408 | 409 | 410 | 429) => Meaning::Rejected,
        _ => Meaning::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cause, Refusal as Answer};

    fn refusal(code: u16, message: &str, cause: &str) -> Refusal {
        let cause = Cause { reason: String::new(), field: "spec".to_owned(), message: cause.to_owned() };
        let answer = Answer { code, message: message.to_owned(), causes: vec![cause], ..Answer::default() };
        Refusal::new("Pod a".to_owned(), ApiError::new("apply pods n/a", ApiErrorKind::Status(answer)))
    }

    #[test]
    fn one_code_says_several_things() {
        for (code, message, reason, retry) in [
            (403, "exceeded quota: q", "QuotaExceeded", Retry::Blocked),
            (403, "violates PodSecurity \"restricted:latest\"", "Forbidden", Retry::Blocked),
            (422, "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", "Forbidden", Retry::Blocked),
            (400, "admission webhook \"w\" denied the request: no", "Forbidden", Retry::Blocked),
            (422, "provided port is already allocated", "PortConflict", Retry::Blocked),
            (422, "field is immutable", "ImmutableField", Retry::Permanent),
            (422, "Pod QOS Class may not change as a result of resizing", "ImmutableField", Retry::Permanent),
            (422, "must be positive", "Rejected", Retry::Permanent),
            (500, "failed to allocate a nodePort: range is full", "PortsExhausted", Retry::Blocked),
            (500, "boom", "ApiUnavailable", Retry::Passing),
        ] {
            let refusal = refusal(code, message, "");
            assert_eq!((refusal.reason(), refusal.retry()), (reason, retry), "{code} {message}");
        }
    }

    fn of_child(code: u16, message: &str, cause: Option<(&str, &str)>) -> Refusal {
        let cause =
            cause.map(|(field, message)| Cause { field: field.into(), message: message.into(), ..Cause::default() });
        let answer =
            Answer { code, message: message.to_owned(), causes: cause.into_iter().collect(), ..Answer::default() };
        let error = ApiError::new("apply services n/a", ApiErrorKind::Status(answer));
        let object = serde_json::json!({"spec": {"ports": [{"port": 80}]}});
        let rendered = Rendered { plugin: "shop", index: 1, object: object.as_object().unwrap() };
        Refusal::of_child("Service a".to_owned(), rendered, error)
    }

    #[test]
    fn a_field_of_a_child_is_told_by_its_place_in_the_rendering() {
        let typo = "failed to create typed patch object (n/a; /v1, Kind=Service): .spec.ports[port=80].x: field not declared in schema";
        let refusal = of_child(500, typo, None);
        assert_eq!((refusal.reason(), refusal.retry()), ("InvalidChild", Retry::Permanent));
        let words = "plugin shop: Service a: children[1].spec.ports[0].x: is no field that the API server knows (rule Structure)";
        assert_eq!(refusal.to_string(), words);
        let refusal =
            of_child(422, "Service \"a\" is invalid", Some(("spec.ports[0].port", "must be between 1 and 65535")));
        assert_eq!((refusal.reason(), refusal.retry()), ("Rejected", Retry::Permanent));
        let words = "plugin shop: Service a: children[1].spec.ports[0].port: must be between 1 and 65535 (refused by the API server)";
        assert_eq!(refusal.to_string(), words);
        let other = of_child(
            500,
            "failed to create typed patch object (n/a; g/v1, Kind=K): no corresponding type for it",
            None,
        );
        assert_eq!((other.reason(), other.retry()), ("ApiUnavailable", Retry::Passing));
        assert!(other.to_string().starts_with("Service a: apply services n/a: failed to"), "{other}");
    }

    #[test]
    fn the_copy_of_the_object_is_left_out() {
        let refusal =
            refusal(422, "Pod \"a\" is invalid: spec: Forbidden: …", "Forbidden: may not change\n@@ -1 +1 @@\n-secret");
        assert_eq!(refusal.in_short(), "spec: Forbidden: may not change");
    }
}
