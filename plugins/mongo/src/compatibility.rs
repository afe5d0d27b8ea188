//! The feature compatibility version: a server of a new version keeps that of
//! the old one until it is told, and the next version does not open the data
//! before.

use super::{MONGO, Mongo, PASSWORD, USERNAME};
use keelson_sdk::prelude::*;

/// `NAME-fcv-4-2`: one for each step, so that its success means this step.
pub(crate) fn job_name(db: &Request<Mongo>, to: &str) -> String {
    db.name_with(&format!("fcv-{}", to.replace('.', "-")))
}

/// Asks the server for its version first: a Pod may be Ready still while its
/// old server has not been stopped yet. Setting it again changes nothing.
pub(crate) fn job(db: &Request<Mongo>, to: &str) -> Child {
    let script = format!(
        "var end = Date.now() + 120000, raised = false, last = 'no answer'; \
         while (!raised && Date.now() < end) {{ \
         try {{ last = db.version(); \
         if (last.indexOf('{to}.') === 0) {{ last = {}; raised = last.ok === 1; }} }} catch (e) {{ last = '' + e; }} \
         if (!raised) sleep(2000); }} \
         if (!raised) throw new Error('not raised to {to}: ' + JSON.stringify(last));",
        command(to)
    );
    let host = format!("{}.{}.svc", db.name(), db.namespace());
    let mut shell = vec![shell(to).to_owned(), "--host".into(), host, "--port".into(), MONGO.port.to_string()];
    let env = super::env(db);
    if !env.is_null() {
        let user =
            ["--username", &format!("$({USERNAME})"), "--password", &format!("$({PASSWORD})")].map(str::to_owned);
        shell.extend(user.into_iter().chain(["--authenticationDatabase".into(), "admin".into()]));
    }
    shell.extend(["--quiet".into(), "--eval".into(), script]);
    Child::from(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name(db, to)},
        "spec": {"backoffLimit": 2, "template": {"spec": {
            "containers": [{
                "name": "compatibility",
                "image": format!("{}:{to}", MONGO.name),
                "command": shell,
                "env": env,
                // For namespaces whose quota wants them said.
                "resources": {
                    "requests": {"cpu": "50m", "memory": "128Mi"},
                    "limits": {"cpu": "500m", "memory": "512Mi"},
                },
                "securityContext": keelson_database::no_rights(),
            }],
            "securityContext": keelson_database::as_nobody(false),
            "nodeSelector": db.spec.node_selector,
            "tolerations": db.spec.tolerations,
            "affinity": db.spec.affinity,
            // A failed Pod stays, with its log.
            "restartPolicy": "Never",
        }}},
    }))
    .strategy("Recreate")
}

/// What a person can do when the Job has failed.
pub(crate) fn by_hand(db: &Request<Mongo>, to: &str) -> String {
    let (name, namespace, job, shell) = (db.name(), db.namespace(), job_name(db, to), shell(to));
    let command = command(to);
    let run = match db.spec.own_secret() {
        None => format!("{shell} --quiet --eval '{command}'"),
        Some(_) => {
            let command = command.replace('"', "\\\"");
            format!("sh -c '{shell} -u \"${USERNAME}\" -p \"${PASSWORD}\" --quiet --eval \"{command}\"'")
        }
    };
    format!(
        "Job {job} has failed, kubectl -n {namespace} logs job/{job} says why. Run by hand: kubectl -n {namespace} exec \
         {name} -- {run} and then, so that it is tried again: kubectl -n {namespace} delete job {job}"
    )
}

fn command(to: &str) -> String {
    // From 7.0 on, since there may be no way back.
    let confirm = if matches!(to, "7.0" | "8.0") { ", confirm: true" } else { "" };
    format!("db.adminCommand({{setFeatureCompatibilityVersion: \"{to}\"{confirm}}})")
}

/// What the image of this version brings: both in 5.0, the old one not since 6.0.
fn shell(to: &str) -> &'static str {
    if matches!(to, "4.2" | "4.4" | "5.0") { "mongo" } else { "mongosh" }
}
