//! One call of a plugin, as it can be made again anywhere: the exact request,
//! the limits and rules, and what came of it. A file for people and for
//! `keelson render --bundle`.
//!
//! No data of a Secret is in it: a request has none, and what a rendering says
//! of a Secret to generate is left out but for its names.

use serde::{Deserialize, Serialize};

use super::golden::Answer;
use super::registry::Plugin;
use crate::check::{self, Grant, RelatedName, Violation};
use crate::clock;
use crate::limits::PluginLimits;
use crate::sandbox::{CallError, Children, Component, GeneratedSecret, Manifest, Request, SecretValue, Usage};

/// What a file is written in; another number is another shape.
const FORMAT: u32 = 1;
/// What stands for a text that may be a secret.
const LEFT_OUT: &str = "(left out)";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bundle {
    format: u32,
    /// RFC 3339.
    pub at: String,
    /// The version of the host.
    pub host: String,
    pub parent: check::Parent,
    pub plugin: Of,
    /// What the checks know beside the request.
    pub rules: Rules,
    pub request: Request,
    pub used: Used,
    pub log: Vec<Line>,
    pub outcome: Outcome,
}

/// The plugin that was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Of {
    /// Of the Plugin document.
    pub name: String,
    /// As the plugin says.
    pub version: String,
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// `REGISTRY/REPOSITORY@sha256:…`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Of the contract.
    pub contract: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rules {
    pub limits: PluginLimits,
    pub grant: Grant,
    /// Names of Secrets that the parent itself names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_secrets: Vec<String>,
    /// What was found of what the plugin looks at, and children may name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelatedName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Used {
    pub fuel: u64,
    pub microseconds: u64,
    pub memory_bytes: u64,
}

/// What the plugin logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Line {
    pub level: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
}

/// What came of the call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outcome {
    /// What the plugin gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Why it gave nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Told>,
    /// The rule that refused what it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Told>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Told {
    /// As the object's condition has it.
    pub reason: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

impl Bundle {
    pub fn new(plugin: &Plugin, parent: &check::Parent, rules: Rules, request: Request, call: Called) -> Self {
        let Called { outcome, usage } = call;
        Self {
            format: FORMAT,
            at: clock::rfc3339(clock::now()),
            host: env!("CARGO_PKG_VERSION").to_owned(),
            parent: parent.clone(),
            plugin: Of {
                name: plugin.name.clone(),
                version: plugin.manifest.version.clone(),
                digest: plugin.digest.clone(),
                image: plugin.image.as_ref().map(|image| image.at.clone()),
                contract: plugin.component.contract_version().to_owned(),
            },
            rules,
            request,
            used: Used::of(&usage),
            log: lines(&usage),
            outcome,
        }
    }

    /// The error is a sentence about the file.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let invalid = |error: &dyn std::fmt::Display| format!("is no bundle: {error}");
        let Format { format } = serde_json::from_slice(text).map_err(|error| invalid(&error))?;
        if format != FORMAT {
            return Err(format!("has format {format}, this program reads {FORMAT}"));
        }
        serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(text))
            .map_err(|error| invalid(&error))
    }

    /// The same call of a component, held against the same rules. Blocks.
    pub fn again(&self, component: &Component, manifest: &Manifest) -> Called {
        call(component, manifest, &self.plugin.name, &self.parent, &self.rules, &self.request)
    }
}

/// What one call came to.
pub struct Called {
    pub outcome: Outcome,
    pub usage: Usage,
}

/// Asks a component, and checks what it gives. Blocks.
pub fn call(
    component: &Component,
    manifest: &Manifest,
    plugin: &str,
    parent: &check::Parent,
    rules: &Rules,
    request: &Request,
) -> Called {
    let (answer, usage) = Answer::told(component, request);
    let context = check::Context {
        parent,
        plugin,
        grant: &rules.grant,
        manifest,
        selector_labels: &request.selector_labels,
        limits: &rules.limits,
        user_secrets: &rules.user_secrets,
        related: &rules.related,
    };
    // What is checked is of the type that only the sandbox makes: asked for a second time.
    let violation = match &answer {
        Err(_) | Ok(Answer::Failure(_)) => None,
        Ok(Answer::Finalization(_)) => {
            let again = component.finalize(request).0.ok();
            again.and_then(|finalized| check::finalization(finalized, &context).err())
        }
        Ok(Answer::Rendering(_)) => {
            let again = component.render(request).0.ok();
            again.and_then(|rendered| check::rendering(rendered, &context).err())
        }
    };
    Called { outcome: Outcome::of(answer, violation.as_ref()), usage }
}

/// What a person reads of a log.
pub fn lines(usage: &Usage) -> Vec<Line> {
    let line = |line: &crate::sandbox::LogLine| Line {
        level: line.level.as_str().to_ascii_lowercase(),
        message: line.message.clone(),
        fields: line.fields.clone(),
    };
    usage.log.iter().map(line).collect()
}

fn without_secrets(mut answer: Answer) -> Answer {
    let secrets: &mut [GeneratedSecret] = match &mut answer {
        Answer::Rendering(rendering) => &mut rendering.secrets,
        Answer::Finalization(finalization) => &mut finalization.secrets,
        Answer::Failure(_) => &mut [],
    };
    for key in secrets.iter_mut().flat_map(|secret| &mut secret.keys) {
        if let SecretValue::Literal(text) | SecretValue::Template(text) = &mut key.value {
            LEFT_OUT.clone_into(text);
        }
    }
    // A Secret among the children is refused, and what it holds is nobody's to read.
    let children = match &mut answer {
        Answer::Rendering(rendering) => &mut rendering.children,
        Answer::Finalization(finalization) => &mut finalization.children,
        Answer::Failure(_) => return answer,
    };
    if let Children::Exactly(children) = children {
        let secret = |child: &&mut crate::sandbox::Child| child.object.get("kind").is_some_and(|kind| kind == "Secret");
        for child in children.iter_mut().filter(secret) {
            for field in ["data", "stringData"] {
                child.object.entry(field).and_modify(|data| *data = LEFT_OUT.into());
            }
        }
    }
    answer
}

impl Outcome {
    pub fn of(answer: Result<Answer, CallError>, violation: Option<&Violation>) -> Self {
        match answer {
            Err(error) => Self::stopped(&error),
            Ok(answer) => {
                let refused = violation.map(Told::of);
                Self { answer: Some(without_secrets(answer)), stopped: None, refused }
            }
        }
    }

    pub fn stopped(error: &CallError) -> Self {
        let told = Told { reason: error.reason().to_owned(), message: error.to_string(), rule: None };
        Self { stopped: Some(told), ..Self::default() }
    }
}

impl Told {
    fn of(violation: &Violation) -> Self {
        let rule = Some(violation.rule.name().to_owned());
        Self { reason: violation.reason().to_owned(), message: violation.to_string(), rule }
    }
}

impl Used {
    pub fn of(usage: &Usage) -> Self {
        Self {
            fuel: usage.fuel,
            microseconds: u64::try_from(usage.wall.as_micros()).unwrap_or(u64::MAX),
            memory_bytes: usage.memory_bytes as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{Rendering, SecretKey};
    use serde_json::{Map, Value, json};

    #[test]
    fn no_text_of_a_secret_is_in_it() {
        let key = |value| SecretKey { name: "k".into(), value };
        let secret = json!({"kind": "Secret", "data": {"a": "aHVzaA=="}, "stringData": {"b": "hush"}});
        let child =
            crate::sandbox::Child { object: secret.as_object().cloned().unwrap(), retain: None, strategy: None };
        let rendering = Rendering {
            children: Children::Exactly(vec![child]),
            secrets: vec![GeneratedSecret {
                name: "s".into(),
                keys: vec![
                    key(SecretValue::Literal("hush".into())),
                    key(SecretValue::Template("hush {k}".into())),
                    key(SecretValue::Random { length: 24, alphabet: None }),
                ],
                secret_type: None,
                retain: None,
            }],
            status: Map::new(),
            conditions: Vec::new(),
            not_ready: None,
            look_again_after: None,
        };
        let text = serde_json::to_value(without_secrets(Answer::Rendering(rendering))).unwrap();
        assert!(!text.to_string().contains("hush") && !text.to_string().contains("aHVzaA"), "{text}");
        assert_eq!(text["rendering"]["secrets"][0]["keys"][2]["value"]["random"]["length"], json!(24));
        assert_eq!(text["rendering"]["children"]["exactly"][0]["object"]["kind"], Value::from("Secret"));
    }

    #[test]
    fn what_is_no_bundle_is_told() {
        assert!(Bundle::parse(b"{").unwrap_err().contains("is no bundle"));
        assert!(Bundle::parse(br#"{"format": 9}"#).unwrap_err().contains("format 9"));
        assert!(Bundle::parse(br#"{"format": 1}"#).unwrap_err().contains("missing field"));
    }
}
