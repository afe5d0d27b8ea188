//! Every name that Keelson writes into a cluster. They stay in users' objects:
//! changing one is a migration.

/// Field manager of everything that is applied.
pub const FIELD_MANAGER: &str = "keelson";
/// Field manager of generated Secrets, so that no later apply takes their data away.
pub const SECRETS_FIELD_MANAGER: &str = "keelson-secrets";
/// `reportingController` of Events.
pub const CONTROLLER: &str = "keelson.dev/keelson";

/// The Lease of leader election, in the host's own namespace.
pub const LEASE: &str = "keelson";

/// Label on children: the parent's UID. What children are selected and cached by.
pub const INSTANCE_LABEL: &str = "keelson.dev/instance";
/// Label on children: the name of the Plugin document.
pub const PLUGIN_LABEL: &str = "keelson.dev/plugin";
/// Annotation on children: the hash of the rendering that was last applied.
pub const HASH_ANNOTATION: &str = "keelson.dev/hash";
/// Annotation on generated Secrets: random bytes under which their revision is computed.
pub const REVISION_KEY_ANNOTATION: &str = "keelson.dev/revision-key";
/// Annotation on parents: `"true"` stops writes to children.
pub const PAUSED_ANNOTATION: &str = "keelson.dev/paused";
/// Annotation on parents: each new value gives one render with everything read anew.
pub const RENDER_REQUESTED_ANNOTATION: &str = "keelson.dev/render-requested-at";
/// Annotation on parents: `"true"` lets a deleted one go without its finalization.
pub const FORCE_FINALIZE_ANNOTATION: &str = "keelson.dev/force-finalize";
/// Finalizer on the parents of a plugin that exports `finalize`.
pub const FINALIZER: &str = "keelson.dev/finalize";
/// The garbage collector's own finalizers: while one is there it is at work on the children.
pub const COLLECTOR_FINALIZERS: [&str; 2] = ["foregroundDeletion", "orphan"];
/// Annotation on generated Secrets: the revision that is known to users; another one is an edit to be told.
pub const REVISION_SEEN_ANNOTATION: &str = "keelson.dev/revision-seen";
/// Annotation on generated Secrets: the keys that were made; one that is gone is lost, any other is new.
pub const KEYS_ANNOTATION: &str = "keelson.dev/keys";
/// Annotations on retained objects, the record by which a later object of the same group, kind and name finds its data.
pub const RETAINED_GROUP_ANNOTATION: &str = "keelson.dev/retained-group";
pub const RETAINED_KIND_ANNOTATION: &str = "keelson.dev/retained-kind";
pub const RETAINED_NAME_ANNOTATION: &str = "keelson.dev/retained-name";
pub const RETAINED_UID_ANNOTATION: &str = "keelson.dev/retained-uid";
pub const RETAINED_PLUGIN_ANNOTATION: &str = "keelson.dev/retained-plugin";
pub const RETAINED_LINE_ANNOTATION: &str = "keelson.dev/retained-line";
pub const RETAINED_DATA_VERSION_ANNOTATION: &str = "keelson.dev/retained-data-version";
/// Annotation on what holds data: the generated Secrets that open it.
pub const CREDENTIALS_ANNOTATION: &str = "keelson.dev/credentials";
/// Annotations on parents, each a list of `KIND/NAME` of their children: those that nobody owns and that may be taken
/// over; those whose data may be deleted when they are not rendered any more.
pub const ADOPT_ANNOTATION: &str = "keelson.dev/adopt";
pub const DELETE_DATA_ANNOTATION: &str = "keelson.dev/delete-data";
/// Annotation on parents, a list of names: generated Secrets that may be made anew though there is data that they open.
pub const NEW_CREDENTIALS_ANNOTATION: &str = "keelson.dev/new-credentials";
/// Annotation on parents, a list of revisions: edits of Secrets that somebody has dealt with.
pub const ACKNOWLEDGED_ANNOTATION: &str = "keelson.dev/acknowledged-credentials";
/// Annotation that kubectl leaves; never handed to a guest.
pub const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The common labels beside ours, for people and dashboards; nothing selects by them.
pub const APP_NAME_LABEL: &str = "app.kubernetes.io/name";
pub const APP_INSTANCE_LABEL: &str = "app.kubernetes.io/instance";
pub const APP_MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
pub const APP_PART_OF_LABEL: &str = "app.kubernetes.io/part-of";

/// Label of ClusterRoles that aggregate into the host's.
pub const AGGREGATE_LABEL: &str = "keelson.dev/aggregate-to-host";

/// Group and version of the host's own documents.
pub const GROUP: &str = "keelson.dev";
pub const VERSION: &str = "v1alpha1";
