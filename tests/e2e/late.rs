//! The one write that may still be under way when its host does not lead any more: for each kind of write, it is held
//! back, the next host acts, and only then it reaches the API server.

use http::Method;
use keelson_tests::prelude::*;

/// A Pod, and a Service that carries a version of the rendering.
fn version(v: &str) -> Value {
    let mut service = probe::service();
    service["metadata"]["labels"] = json!({"v": v});
    json!({"children": [probe::pod(), service]})
}

/// A Pod with so much CPU, which is changed by its `resize`.
fn sized(cpu: &str) -> Value {
    let mut pod = probe::pod();
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}, "limits": {"cpu": "1"}});
    json!({"children": [pod]})
}

fn without_service() -> Value {
    json!({"children": [probe::pod()]})
}

pub(crate) async fn case_39_a_write_that_comes_late_does_no_harm(case: Case) -> Outcome {
    let (a, b) = (case.rival("a").await?, case.rival("b").await?);
    let folder = case.probes(&[
        Probe::new("probe", "mongo").children(&[POD, SERVICE, SECRET]).script(&version("1")),
        Probe::new("ends", "mysql").finalizing().script(&without_service()),
    ])?;
    may_hold(&case).await?;
    let proxy = case.proxy().await?;
    let mut old = a.host().plugins(&folder).through(&proxy).start().await?;
    let new = b.host().plugins(&folder).start().await?;
    for name in ["edited", "undone", "repaired", "pruned", "back"] {
        case.database(name, "mongo").await?;
    }
    case.database("freed", "mysql").await?;
    case.scripted("resized", "mongo", &sized("100m")).await?;
    case.wait(DATABASE, "resized", "Ready", |database| database.is("Ready")).await?;
    case.quiet(seconds(1)).await?;

    // The first host begins all of this, and gets none of it done.
    let hold = |method: Method, path: &str| proxy.add(Match::method(method).path(path).times(1), Fault::HoldBack);
    hold(Method::POST, "/events?");
    case.apply_database("event", "mongo").await?;
    case.until("an Event to be on its way", seconds(20), async || Ok(proxy.held() == 1)).await?;
    for path in ["/pods/made?", "/services/gone?", "/databases/told/status?"] {
        hold(Method::PATCH, path);
    }
    for path in ["/services/edited?", "/services/undone?", "/services/repaired?fieldManager", "/pods/resized/resize?"] {
        hold(Method::PATCH, path);
    }
    for path in ["/services/pruned", "/services/back"] {
        hold(Method::DELETE, path);
    }
    hold(Method::POST, "/secrets?");
    for path in ["/databases/held?", "/databases/freed?"] {
        hold(Method::PATCH, path);
    }
    for name in ["made", "gone", "told"] {
        case.apply_database(name, "mongo").await?;
    }
    let secrets = json!({"children": [probe::pod()], "secrets": [{"name": "{name}", "key": "password"}]});
    case.scripted("secret", "mongo", &secrets).await?;
    case.scripted("edited", "mongo", &version("2")).await?;
    case.scripted("undone", "mongo", &version("2")).await?;
    case.scripted("resized", "mongo", &sized("200m")).await?;
    for name in ["pruned", "back"] {
        case.scripted(name, "mongo", &without_service()).await?;
    }
    case.apply_database("held", "mysql").await?;
    case.delete(DATABASE, "freed").await?;
    case.patch(SERVICE, "repaired", &json!({"spec": {"ports": [{"port": 81}]}})).await?;
    case.until("thirteen writes to be on their way", seconds(30), async || Ok(proxy.held() == 13)).await?;
    old.kill()?;

    // Meanwhile the user goes on, and the second host does what is to be done.
    case.scripted("edited", "mongo", &version("3")).await?;
    case.scripted("undone", "mongo", &version("1")).await?;
    case.scripted("resized", "mongo", &sized("300m")).await?;
    case.scripted("back", "mongo", &version("1")).await?;
    case.until("the second host to lead", Rival::LEASE + seconds(10), async || new.leads().await).await?;
    whole(&case).await?;
    case.wait_gone(DATABASE, "freed").await?;
    case.delete(DATABASE, "gone").await?;
    for kind in [POD, SERVICE] {
        case.wait_gone(kind, "gone").await?;
    }
    case.quiet(seconds(1)).await?;
    let password = case.get(SECRET, "secret").await?;
    let pod = case.get(POD, "made").await?;
    let edited = case.record(SERVICE, "edited").await?;
    let resized = case.record(POD, "resized").await?;

    let late = proxy.deliver().await;
    let wanted: [(&str, &[u16]); 13] = [
        // Said once, by whomever.
        ("/events?", &[201, 409]),
        // There is one already.
        ("/pods/made?", &[409]),
        ("/secrets?", &[409]),
        // Another has written since.
        ("/services/edited?", &[409]),
        ("/services/repaired?", &[409]),
        ("/pods/resized/resize?", &[409]),
        // Our finalizer: the whole list, of exactly the state that was seen.
        ("/databases/held?", &[409]),
        ("/databases/freed?", &[404]),
        // Gone already.
        ("/services/pruned", &[404]),
        // Of a Database that is no more: the garbage collector's.
        ("/services/gone?", &[201]),
        // Nobody has written since: it is taken, and put right.
        ("/databases/told/status?", &[200]),
        ("/services/undone?", &[200]),
        ("/services/back", &[200]),
    ];
    for (path, codes) in wanted {
        let met = late.iter().find(|late| late.target.contains(path)).with_context(|| format!("{path}: not there"))?;
        ensure!(codes.contains(&met.code), "{} {}: {} {}", met.method, met.target, met.code, met.answer);
    }
    case.wait_gone(SERVICE, "gone").await?;
    whole(&case).await?;
    case.quiet(seconds(2)).await?;
    whole(&case).await?;
    ensure!(case.get(SECRET, "secret").await?.version() == password.version(), "another password");
    ensure!(case.get(POD, "made").await?.uid() == pod.uid());
    ensure!(!edited.saw(|service| service.label("v") != Some("3")), "an older rendering came back: {:?}", edited.all());
    let cpu = |pod: &Object| pod.text("/spec/containers/0/resources/requests/cpu").to_owned();
    ensure!(!resized.saw(|pod| cpu(pod) != "300m"), "an older size came back: {:?}", resized.all());
    let created = case.events("event").await?;
    ensure!(created.iter().filter(|event| event.text("/reason") == "Created").count() == 1, "{created:?}");
    Ok(())
}

/// What a plugin that finalizes needs, for both accounts.
async fn may_hold(case: &Case) -> Outcome {
    let subjects = ["a", "b"].map(|name| json!({"kind": "ServiceAccount", "name": name, "namespace": case.namespace}));
    let rules = json!([{"apiGroups": ["zalando.org"], "resources": ["databases"], "verbs": ["patch"]}]);
    let (group, metadata) = ("rbac.authorization.k8s.io", json!({"name": "hold"}));
    let role = json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": metadata, "rules": rules});
    let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "hold"}, "subjects": subjects});
    case.apply(&role.to_string()).await?;
    case.apply(&binding.to_string()).await?;
    let ask = format!("--as=system:serviceaccount:{}:b", case.namespace);
    let may = ["auth", "can-i", "patch", "databases.zalando.org", "-n", &case.namespace, &ask];
    case.until("the rights to be in force", seconds(20), async || Ok(case.cluster.kubectl(&may).await.is_ok())).await
}

/// Each Database as its user wants it, with exactly what it should have.
async fn whole(case: &Case) -> Outcome {
    let service = |name: &str, v: &'static str| (name.to_owned(), Some(v));
    let wanted = [
        service("event", "1"),
        service("made", "1"),
        service("told", "1"),
        service("edited", "3"),
        service("undone", "1"),
        service("repaired", "1"),
        service("back", "1"),
        ("pruned".to_owned(), None),
        ("secret".to_owned(), None),
        ("resized".to_owned(), None),
        ("held".to_owned(), None),
    ];
    for (name, v) in &wanted {
        let ready = |database: &Object| database.is("Ready");
        let database = case.wait(DATABASE, name, "Ready", ready).await?;
        let port = |service: &Object| *service.at("/spec/ports/0/port") == json!(80);
        match v {
            Some(v) => {
                let right =
                    |s: &Object| !s.going() && s.owner() == database.uid() && s.label("v") == Some(*v) && port(s);
                case.wait(SERVICE, name, &format!("of version {v}"), right).await?;
            }
            None => case.wait_gone(SERVICE, name).await?,
        }
        case.wait(DATABASE, name, "Ready still", ready).await?;
        let pods = case.list(POD).await?.into_iter().filter(|pod| pod.owner() == database.uid()).count();
        ensure!(pods == 1, "{pods} Pods of {name}");
    }
    Ok(())
}
