//! What a plugin may not do, said so that its author can mend it: rule, plugin,
//! child, path, and one sentence.

use std::fmt;

use super::path::{field, place};

/// One broken rule. Nothing of a rendering with a violation is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub rule: Rule,
    pub plugin: String,
    /// Kind and name, for instance `Service db-read`; `None` where it is not about a child.
    pub child: Option<String>,
    /// Where the child stands in the output, for instance `children[1]`; empty where `child` is `None`.
    pub item: String,
    /// JSON pointer into the child, or into what else the message is about.
    pub path: String,
    pub message: String,
}

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $rule:ident,)+) => {
        /// Why something was refused. The name stands in messages and metrics.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule { $($(#[doc = $doc])+ $rule,)+ }

        impl Rule {
            pub const ALL: &[Rule] = &[$(Rule::$rule,)+];

            pub fn name(self) -> &'static str {
                match self { $(Rule::$rule => stringify!($rule),)+ }
            }
        }
    };
}

rules! {
    /// A line of the grant itself is wrong.
    InvalidGrant,
    /// The manifest names what cannot be, for instance a kind in lower case.
    InvalidManifest,
    /// The manifest wants more than the grant gives.
    NotGranted,
    /// A kind that no grant can give.
    NeverGranted,
    /// Children live in their parent's namespace.
    ClusterScoped,
    /// The parent's namespace is not granted.
    ParentNamespace,
    /// The parent's name leaves no valid names for its children.
    ParentName,
    /// A field is missing, or of another type than it must be.
    Shape,
    /// A kind that the manifest does not declare.
    Kind,
    /// Children live in their parent's namespace.
    Namespace,
    /// Metadata that the API server or the host sets.
    ServerField,
    /// A child's status is its controller's.
    Status,
    /// The child's name is not the parent's, or not valid for every kind.
    ChildName,
    /// Syntax and size of labels and annotations.
    Labels,
    /// Labels and annotations that the host sets.
    ReservedName,
    /// Two children, or two Secrets, of one name.
    Duplicate,
    /// `null` is no value.
    Null,
    /// More bytes than an API server takes.
    Size,
    /// More children and Secrets than the plugin's limit.
    Count,
    /// Keeping data when the parent goes.
    Retain,
    /// An unknown strategy.
    Strategy,
    /// Credentials never come from a guest.
    RenderedSecret,
    /// The Pod Security Standard `baseline`.
    PodSecurity,
    /// A field that is the grant's to give, by `allowedFields`.
    Field,
    /// A question of the hook `related` that is not well-formed.
    Related,
    /// A name of an object that is not this rendering's own.
    Reference,
    /// Selects more than this parent's Pods.
    Selector,
    /// A Secret to generate that cannot be generated.
    GeneratedSecret,
    /// A field of the parent's status that is the host's, or one that is too large.
    ParentStatus,
    /// A condition or an explanation that is not well-formed.
    Condition,
}

impl Rule {
    /// The reason of the parent's condition, or of the plugin's state.
    fn reason(self, in_child: bool) -> &'static str {
        match self {
            Self::Size | Self::Count => "TooLarge",
            Self::ParentName => "InvalidName",
            Self::InvalidGrant | Self::NotGranted | Self::ParentNamespace => "NotGranted",
            Self::NeverGranted | Self::ClusterScoped if !in_child => "NotGranted",
            Self::InvalidManifest | Self::ParentStatus | Self::Condition | Self::Related => "OutputInvalid",
            _ => "InvalidChild",
        }
    }
}

impl Violation {
    pub fn reason(&self) -> &'static str {
        self.rule.reason(self.child.is_some())
    }

    /// Item and path as one, for instance `children[1].spec.ports[0].port`; empty where it is about all of an output.
    pub fn place(&self) -> String {
        place(&self.item, &field(&self.path))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, plugin, child, item: _, path: _, message } = self;
        write!(f, "plugin {plugin}: ")?;
        if let Some(child) = child {
            write!(f, "{child}: ")?;
        }
        let place = self.place();
        if !place.is_empty() {
            write!(f, "{place}: ")?;
        }
        write!(f, "{message} (rule {})", rule.name())
    }
}

impl std::error::Error for Violation {}

/// A violation before it is known whose: what the rules return.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) rule: Rule,
    pub(super) path: String,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(rule: Rule, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { rule, path: path.into(), message: message.into() }
    }

    /// About the whole output, or about what is no output.
    pub(super) fn of(self, plugin: &str) -> Violation {
        let Self { rule, path, message } = self;
        Violation { rule, plugin: plugin.to_owned(), child: None, item: String::new(), path, message }
    }

    /// `item`: `children[1]`; `child`: kind and name.
    pub(super) fn in_item(self, plugin: &str, item: String, child: String) -> Violation {
        Violation { child: Some(child), item, ..self.of(plugin) }
    }
}

/// A guest's text as it may stand in a message: quoted, escaped, cut.
pub(super) fn shown(text: &str) -> String {
    const CHARS: usize = 80;
    let cut: String = text.chars().take(CHARS).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("\"{}{dots}\"", cut.escape_debug())
}
