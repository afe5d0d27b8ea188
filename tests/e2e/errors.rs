//! Errors in an output: what a user reads of them, in the words of who wrote it.

use keelson_tests::{prelude::*, probe};

/// A Service whose only port is this.
fn service(port: &Value) -> Value {
    let mut service = probe::service();
    service["spec"]["ports"] = json!([port]);
    service
}

/// A Pod with this in its container.
fn pod(more: &Value) -> Value {
    let mut pod = probe::pod();
    if let (Some(container), Value::Object(more)) = (pod["spec"]["containers"][0].as_object_mut(), more) {
        container.extend(more.clone());
    }
    pod
}

pub(crate) async fn an_error_in_an_output_names_child_place_and_rule(case: Case) -> Outcome {
    let folder = case.probes(&[Probe::new("probe", "mongo")])?;
    let host = case.host().plugins(&folder).start().await?;
    // Name, children, the condition's reason, and its message after `plugin probe: Service NAME: ` or Pod.
    let rows = [
        (
            "range",
            json!([probe::pod(), service(&json!({"port": 270_170}))]),
            "Rejected",
            "children[1].spec.ports[0].port: Invalid value: 270170: must be between 1 and 65535, inclusive",
        ),
        (
            "unknown",
            json!([probe::pod(), service(&json!({"port": 80, "prot": "TCP"}))]),
            "InvalidChild",
            "children[1].spec.ports[0].prot: is no field that the API server knows (rule Structure)",
        ),
        (
            "wrong",
            json!([probe::pod(), service(&json!({"port": "eighty"}))]),
            "InvalidChild",
            "children[1].spec.ports[0].port: must be a number (rule Structure)",
        ),
        (
            "list",
            json!([pod(&json!({"args": "one"})), probe::service()]),
            "InvalidChild",
            "children[0].spec.containers[0].args: must be a list (rule Structure)",
        ),
        (
            "typo",
            json!([probe::service(), pod(&json!({"env": [{"name": "a", "valeu": "x"}]}))]),
            "InvalidChild",
            "children[1].spec.containers[0].env[0].valeu: is no field that a plugin may set by itself",
        ),
    ];
    for (name, children, ..) in &rows {
        case.scripted(name, "mongo", &json!({"children": children})).await?;
    }
    for (name, _, reason, words) in &rows {
        let database = case.wait(DATABASE, name, "told", |database| database.is_not("Ready", reason)).await?;
        let message = database.message("Ready");
        let told =
            ["Service", "Pod"].iter().any(|kind| message.starts_with(&format!("plugin probe: {kind} {name}: {words}")));
        ensure!(told, "{name}: {message}");
        case.until("one Event", seconds(10), async || {
            Ok(case.events(name).await?.iter().filter(|event| event.text("/reason") == *reason).count() == 1)
        })
        .await?;
        let logged = host.log_lines(&[words, &format!("\"name\":\"{name}\"")]);
        ensure!(logged.len() == 1, "{name}: {logged:?}");
    }
    // The same can only be refused again: nothing is sent until the plugin renders something else.
    let sent = async || anyhow::Ok(case.writes()?.resource("services").len());
    let before = sent().await?;
    case.quiet(seconds(5)).await?;
    ensure!(sent().await? == before, "sent again what can only be refused");
    for (name, ..) in &rows {
        case.scripted(name, "mongo", &json!({"children": [probe::pod(), probe::service()]})).await?;
    }
    for (name, ..) in &rows {
        case.wait(DATABASE, name, "Ready", |database| database.is("Ready")).await?;
    }
    Ok(())
}
