//! Every kind of call, against a scripted server.

use std::time::Duration;

use serde_json::{Value, json};

use super::fake::{DEADLINE, Fake, pods};
use super::fence::Fence;
use super::{ApiErrorKind, Resource};

fn databases() -> Resource {
    Resource {
        group: "zalando.org".into(),
        version: "v1".into(),
        kind: "Database".into(),
        plural: "databases".into(),
        namespaced: true,
        has_status: true,
    }
}

#[tokio::test]
async fn writes_say_who_and_what() {
    let (api, mut server) = Fake::new(DEADLINE);
    let calls = async {
        api.apply(&pods(), None, Some("ns"), "a", "keelson", b"{}".to_vec()).await.unwrap();
        api.apply(&databases(), Some("status"), Some("ns"), "d", "keelson", b"{}".to_vec()).await.unwrap();
        api.create(&pods(), Some("ns"), "keelson-secrets", b"{}".to_vec()).await.unwrap();
        api.delete(&pods(), Some("ns"), "a", ("u1", Some("7"))).await.unwrap();
    };
    let script = async {
        let mut seen = Vec::new();
        for _ in 0..4 {
            let call = server.next().await;
            seen.push((call.method.to_string(), call.uri.clone(), call.content_type.clone(), call.body.clone()));
            call.answer(200, "{}");
        }
        seen
    };
    let ((), seen) = tokio::join!(calls, script);
    let line = |at: usize| format!("{} {} {}", seen[at].0, seen[at].1, seen[at].2);
    assert_eq!(
        line(0),
        "PATCH /api/v1/namespaces/ns/pods/a?force=true&fieldManager=keelson application/apply-patch+yaml"
    );
    assert!(line(1).starts_with("PATCH /apis/zalando.org/v1/namespaces/ns/databases/d/status?force=true&"));
    assert_eq!(line(2), "POST /api/v1/namespaces/ns/pods?fieldManager=keelson-secrets application/json");
    assert!(line(3).starts_with("DELETE /api/v1/namespaces/ns/pods/a application/json"));
    let options: Value = serde_json::from_slice(&seen[3].3).unwrap();
    assert_eq!(options["preconditions"], json!({"uid": "u1", "resourceVersion": "7"}));
    assert_eq!(options["propagationPolicy"], "Background");
    let metrics = server.metrics.encode();
    for line in [
        r#"keelson_writes_total{kind="databases.zalando.org",verb="apply-subresource"} 1"#,
        r#"keelson_writes_total{kind="pods",verb="delete"} 1"#,
        r#"rest_client_requests_total{code="200",method="PATCH",host="fake:6443"} 2"#,
    ] {
        assert!(metrics.contains(line), "{line}");
    }
}

#[tokio::test]
async fn an_error_names_the_call() {
    let (api, mut server) = Fake::new(DEADLINE);
    let pods = pods();
    let (answer, ()) = tokio::join!(api.get(&pods, Some("ns"), "a"), async {
        server.next().await.refuse(409, "AlreadyExists", "pods \"a\" already exists");
    });
    let error = answer.unwrap_err();
    assert!(error.is_conflict() && error.is_already_exists());
    assert_eq!(error.to_string(), "get pods ns/a: pods \"a\" already exists (409 AlreadyExists)");
    let (answer, ()) = tokio::join!(api.get(&pods, Some("ns"), "a"), async {
        server.next().await.fail("Connection refused (os error 111)");
    });
    let text = answer.unwrap_err().to_string();
    assert_eq!(text, "get pods ns/a: https://fake:6443: Connection refused (os error 111)");
}

#[tokio::test]
async fn no_call_outlives_its_time_out() {
    let (api, mut server) = Fake::new(Duration::from_millis(20));
    let pods = pods();
    let (answer, _open) = tokio::join!(api.get(&pods, Some("ns"), "a"), server.next());
    assert!(answer.unwrap_err().is_timeout());
    // The head alone is no answer.
    let (answer, _open) = tokio::join!(api.get(&pods, Some("ns"), "a"), async {
        let stream = server.next().await.stream();
        stream.send("{");
        stream
    });
    assert!(answer.unwrap_err().is_timeout());
}

#[tokio::test]
async fn an_answer_in_many_chunks_is_whole_and_has_a_limit() {
    let (api, mut server) = Fake::new(DEADLINE);
    let pods = pods();
    let (answer, ()) = tokio::join!(api.get(&pods, Some("ns"), "a"), async {
        let stream = server.next().await.stream();
        for part in ["{\"a\"", ":", "1}"] {
            stream.send(part);
        }
    });
    assert_eq!(&answer.unwrap()[..], b"{\"a\":1}");
    let (answer, ()) = tokio::join!(api.get(&pods, Some("ns"), "a"), async {
        let stream = server.next().await.stream();
        for _ in 0..9 {
            stream.send(&"x".repeat(1024 * 1024));
        }
    });
    assert!(answer.unwrap_err().to_string().contains("larger than"));
}

#[tokio::test]
async fn discovery_says_scope_and_status_and_what_is_missing() {
    let (api, mut server) = Fake::new(DEADLINE);
    let list = r#"{"kind":"APIResourceList","groupVersion":"zalando.org/v1","resources":[
        {"name":"databases","kind":"Database","namespaced":true,"verbs":["get"]},
        {"name":"databases/status","kind":"Database","namespaced":true,"verbs":["get"]},
        {"name":"plain","kind":"Plain","namespaced":false,"verbs":["get"]}]}"#;
    let discover = async |plural: &str| api.discover("zalando.org", "v1", plural).await;
    for (plural, expected) in [("databases", Some((true, true))), ("plain", Some((false, false))), ("nope", None)] {
        let (found, ()) =
            tokio::join!(discover(plural), async { server.expect("/apis/zalando.org/v1").await.answer(200, list) });
        assert_eq!(found.unwrap().map(|resource| (resource.namespaced, resource.has_status)), expected, "{plural}");
    }
    let (found, ()) =
        tokio::join!(discover("databases"), async { server.next().await.answer(404, "404 page not found\n") });
    assert_eq!(found.unwrap(), None);
    let (found, ()) = tokio::join!(discover("databases"), async { server.next().await.answer(404, "<html></html>") });
    assert!(found.unwrap_err().is_not_found());
}

#[tokio::test]
async fn rights_are_asked_for() {
    let (api, mut server) = Fake::new(DEADLINE);
    let databases = databases();
    let (allowed, asked) = tokio::join!(api.may("patch", &databases, Some("status"), Some("ns")), async {
        let call = server.expect("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").await;
        let asked: Value = serde_json::from_slice(&call.body).unwrap();
        call.answer(201, r#"{"status":{"allowed":false,"reason":"no"}}"#);
        asked
    });
    assert!(!allowed.unwrap());
    let expected = json!({"verb": "patch", "group": "zalando.org", "version": "v1", "resource": "databases",
        "subresource": "status", "namespace": "ns"});
    assert_eq!(asked["spec"]["resourceAttributes"], expected);
}

#[tokio::test]
async fn who_does_not_lead_reads_and_asks_and_writes_nothing() {
    let fence = Fence::shut();
    let (api, mut server) = Fake::fenced(fence.clone(), DEADLINE);
    let (pods, databases) = (pods(), databases());
    let writes = async || {
        let body = || b"{}".to_vec();
        vec![
            api.apply(&pods, None, Some("ns"), "a", "m", body()).await.map(drop),
            api.apply(&databases, Some("status"), Some("ns"), "d", "m", body()).await.map(drop),
            api.patch(&pods, Some("ns"), "a", "m", body()).await.map(drop),
            api.create(&pods, Some("ns"), "m", body()).await.map(drop),
            api.delete(&pods, Some("ns"), "a", ("u", None)).await,
        ]
    };
    for answer in writes().await {
        let error = answer.unwrap_err();
        assert_eq!(*error.kind, ApiErrorKind::NotLeading, "{error}");
    }
    assert!(server.is_idle(), "something was sent");
    let (answers, ()) = tokio::join!(
        async { (api.get(&pods, Some("ns"), "a").await, api.may("get", &pods, None, None).await) },
        async {
            server.next().await.answer(200, "{}");
            server.next().await.answer(201, r#"{"status":{"allowed":true}}"#);
        }
    );
    assert!(answers.0.is_ok() && answers.1.unwrap());
    fence.open_until(crate::clock::since_boot() + DEADLINE);
    let (answers, ()) = tokio::join!(writes(), async {
        for _ in 0..5 {
            server.next().await.answer(200, "{}");
        }
    });
    assert!(answers.iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_write_under_way_ends_with_the_lease_as_it_then_is() {
    let fence = Fence::shut();
    let (api, mut server) = Fake::fenced(fence.clone(), DEADLINE);
    let pods = pods();
    let now = crate::clock::since_boot();
    fence.open_until(now + Duration::from_millis(40));
    let (answer, _open) = tokio::join!(api.create(&pods, Some("ns"), "m", b"{}".to_vec()), async {
        let call = server.next().await;
        fence.open_until(now + Duration::from_millis(80));
        call
    });
    assert!(answer.unwrap_err().is_timeout());
    assert!(crate::clock::since_boot() >= now + Duration::from_millis(80));
}

/// Between the question and the first byte lie a token and a connection, and a stopped process may lie there for hours.
#[tokio::test]
async fn what_waits_for_a_connection_is_not_sent_when_the_lease_is_over() {
    use hyper_util::client::legacy::Client;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};
    use tower::util::BoxCloneSyncService;
    use tower::{BoxError, ServiceExt, service_fn};

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let fence = Fence::shut();
    fence.open_until(crate::clock::since_boot() + DEADLINE);
    let closing = fence.clone();
    let connector = service_fn(move |_: http::Uri| {
        let closing = closing.clone();
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            closing.open_until(crate::clock::since_boot());
            Ok::<_, std::io::Error>(TokioIo::new(stream))
        })
    });
    let client = Client::builder(TokioExecutor::new()).build::<_, super::transport::RequestBody>(connector);
    let answers = client.map_response(|answer| {
        answer.map(|body| http_body_util::BodyExt::boxed_unsync(http_body_util::BodyExt::map_err(body, BoxError::from)))
    });
    let transport = BoxCloneSyncService::new(
        answers
            .map_request(move |mut request: http::Request<super::transport::RequestBody>| {
                *request.uri_mut() = format!("http://{address}{}", request.uri()).parse().unwrap();
                request
            })
            .map_err(BoxError::from),
    );
    let metrics = crate::metrics::Metrics::new();
    let api = super::Api::over(transport, "http://x", "default", fence, &metrics, DEADLINE);
    let (pods, mut sent) = (pods(), Vec::new());
    let (answer, read) = tokio::join!(api.create(&pods, Some("ns"), "m", b"{}".to_vec()), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_to_end(&mut sent).await
    });
    assert_eq!(*answer.unwrap_err().kind, ApiErrorKind::NotLeading);
    assert!(read.is_ok() && sent.is_empty(), "sent: {:?}", String::from_utf8_lossy(&sent));
}
