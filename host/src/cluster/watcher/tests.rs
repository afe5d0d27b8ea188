use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;
use crate::cluster::fake::{Call, DEADLINE, Fake, pods, status};

/// Fast where the table says minutes; silence is long but where a test is about it.
const FAST: Timing = Timing {
    silence: Duration::from_secs(20),
    short: Duration::ZERO,
    backoff: (Duration::from_millis(1), Duration::from_millis(20)),
    forbidden: Duration::ZERO,
};

/// A stream, the server that it talks to, and what it hands to its consumer.
struct Case {
    server: Fake,
    events: mpsc::UnboundedReceiver<String>,
    handle: WatchHandle,
}

impl Case {
    fn new(timing: Timing) -> Case {
        let (api, server) = Fake::new(Duration::from_secs(20));
        let (sender, events) = mpsc::unbounded_channel();
        let watch = Watch { resource: pods(), namespace: Some("ns".into()), selector: Some("a=b".into()) };
        let handle = start(api, watch, timing, move |event| {
            let line = match event {
                WatchEvent::ListStarted => "started".to_owned(),
                WatchEvent::Listed(object) => format!("listed {}", object.name),
                WatchEvent::ListDone { resource_version } => format!("done {resource_version}"),
                WatchEvent::Changed(object) if object.name == "panic" => panic!("the consumer's own"),
                WatchEvent::Changed(object) => format!("changed {}", object.name),
                WatchEvent::Deleted(object) => format!("deleted {}", object.name),
            };
            let _ = sender.send(line);
        });
        Case { server, events, handle }
    }

    async fn see(&mut self, expected: &[&str]) {
        for expected in expected {
            let event = timeout(DEADLINE, self.events.recv()).await;
            assert_eq!(event.expect("an event was expected").as_deref(), Some(*expected));
        }
    }

    async fn state(&mut self, expected: impl Fn(&WatchState) -> bool) -> WatchState {
        let mut state = self.handle.state();
        let found = timeout(DEADLINE, state.wait_for(|state| expected(state))).await;
        found.unwrap_or_else(|_| panic!("state is {:?}", self.handle.state().borrow())).unwrap().clone()
    }

    /// Answers a list of these Pods at version 10, and takes the watch that follows.
    async fn filled(&mut self, names: &[&str]) -> Call {
        self.server.expect("/api/v1/namespaces/ns/pods?limit=").await.answer(200, &list("10", "", names));
        self.see(&["started"]).await;
        for name in names {
            self.see(&[&format!("listed {name}")]).await;
        }
        self.see(&["done 10"]).await;
        self.server.expect("resourceVersion=10").await
    }
}

fn list(version: &str, token: &str, names: &[&str]) -> String {
    let items: Vec<_> = names.iter().map(|name| serde_json::json!({"metadata": {"name": name}})).collect();
    serde_json::json!({"metadata": {"resourceVersion": version, "continue": token}, "items": items}).to_string()
}

fn event(kind: &str, name: &str, version: &str) -> String {
    let object = serde_json::json!({"metadata": {"name": name, "resourceVersion": version}});
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn gone() -> String {
    status(410, "Expired", "too old resource version: 10 (20)")
}

#[tokio::test]
async fn lists_by_pages_then_follows_and_goes_on_at_once_where_it_was() {
    let mut case = Case::new(Timing { short: Duration::ZERO, backoff: (DEADLINE, DEADLINE), ..FAST });
    case.server.expect("?limit=500&labelSelector=a%3Db").await.answer(200, &list("9", "t/1", &["a"]));
    case.server.expect("continue=t%2F1").await.answer(200, &list("10", "", &["b"]));
    case.see(&["started", "listed a", "listed b", "done 10"]).await;
    let watch = case.server.next().await;
    for part in ["watch=1", "allowWatchBookmarks=true", "resourceVersion=10", "labelSelector=a%3Db", "timeoutSeconds="]
    {
        assert!(watch.uri.contains(part), "{}", watch.uri);
    }
    case.state(|state| state.filled && state.problem.is_none()).await;
    let stream = watch.stream();
    stream.send(&event("ADDED", "c", "11"));
    stream.send(&event("MODIFIED", "c", "12"));
    // As no server writes it today.
    stream.send("{ \"object\": {\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"13\"}}, \"type\": \"DELETED\" }\n");
    stream.send(&event("BOOKMARK", "", "19"));
    case.see(&["changed c", "changed c", "deleted a"]).await;
    drop(stream);
    // The back-off of this case is longer than its deadline: there was none. The bookmark counted.
    let stream = case.server.expect("resourceVersion=19").await.stream();
    stream.send(&event("MODIFIED", "c", "20"));
    case.see(&["changed c"]).await;
}

#[tokio::test]
async fn events_cut_anywhere_are_whole() {
    let mut case = Case::new(FAST);
    let stream = case.filled(&[]).await.stream();
    let text = event("ADDED", "a", "11") + &event("ADDED", "b", "12") + &event("ADDED", "ö", "13");
    let (head, tail) = text.split_at(text.find('ö').unwrap() - 70);
    stream.send(head);
    for part in tail.split_inclusive('e') {
        stream.send(part);
    }
    case.see(&["changed a", "changed b", "changed ö"]).await;
    // A line that the end has cut is asked for again.
    stream.send(r#"{"type":"ADDED","obj"#);
    drop(stream);
    case.server.expect("resourceVersion=13").await;
}

#[tokio::test]
async fn a_410_at_the_start_of_a_watch_lists_anew_and_what_went_meanwhile_is_noticed() {
    let mut case = Case::new(FAST);
    case.filled(&["a", "b"]).await.refuse(410, "Expired", "too old");
    case.filled(&["b"]).await;
    case.state(|state| state.filled).await;
}

#[tokio::test]
async fn a_410_as_an_event_lists_anew_and_the_list_stays_usable() {
    let mut case = Case::new(FAST);
    let stream = case.filled(&["a", "b"]).await.stream();
    stream.send(&format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", gone()));
    let list_again = case.server.expect("?limit=").await;
    let state = case.handle.state().borrow().clone();
    assert!(state.filled && state.problem.is_none(), "{state:?}");
    list_again.answer(200, &list("30", "", &["b"]));
    case.see(&["started", "listed b", "done 30"]).await;
    case.server.expect("resourceVersion=30").await;
}

#[tokio::test]
async fn a_410_in_the_middle_of_a_list_starts_the_list_anew() {
    let mut case = Case::new(FAST);
    case.server.expect("?limit=").await.answer(200, &list("9", "token", &["a"]));
    case.server.expect("continue=token").await.answer(410, &gone());
    let again = case.server.next().await;
    assert!(!again.uri.contains("continue="), "{}", again.uri);
    assert!(!case.handle.state().borrow().filled);
    again.answer(200, &list("20", "", &["b"]));
    case.see(&["started", "listed a", "started", "listed b", "done 20"]).await;
    case.state(|state| state.filled).await;
}

#[tokio::test]
async fn silence_asks_anew_at_once_where_it_was_and_only_the_answer_can_be_a_problem() {
    let mut case = Case::new(Timing { silence: Duration::from_millis(50), ..FAST });
    let quiet = case.filled(&["a"]).await.stream();
    quiet.send(&event("MODIFIED", "a", "11"));
    case.see(&["changed a"]).await;
    let again = case.server.expect("resourceVersion=11").await;
    let state = case.handle.state().borrow().clone();
    assert!(state.filled && state.problem.is_none(), "{state:?}");
    again.fail("no route to host");
    let state = case.state(|state| state.problem.is_some()).await;
    assert!(state.filled, "{state:?}");
    let stream = case.server.expect("resourceVersion=11").await.stream();
    case.state(|state| state.filled && state.problem.is_none()).await;
    stream.send(&event("MODIFIED", "a", "12"));
    case.see(&["changed a"]).await;
}

#[tokio::test]
async fn a_broken_connection_goes_on_where_it_was() {
    let mut case = Case::new(FAST);
    let stream = case.filled(&["a"]).await.stream();
    stream.send(&event("MODIFIED", "a", "11"));
    stream.fail("connection reset by peer");
    case.see(&["changed a"]).await;
    case.server.expect("resourceVersion=11").await.fail("connection refused");
    let state = case.state(|state| state.problem.is_some()).await;
    assert!(state.filled && matches!(state.problem, Some(WatchProblem::Unreachable(_))));
    case.server.expect("resourceVersion=11").await.stream();
    case.state(|state| state.problem.is_none()).await;
}

#[tokio::test]
async fn forbidden_is_not_filled_until_the_server_lets_us_again() {
    let mut case = Case::new(FAST);
    case.server.next().await.refuse(403, "Forbidden", "pods is forbidden");
    let state = case.state(|state| state.problem.is_some()).await;
    assert!(!state.filled && state.is_classified());
    let message = "list pods ns: pods is forbidden (403 Forbidden)".to_owned();
    assert_eq!(state.problem, Some(WatchProblem::Forbidden(message)));
    let watch = case.filled(&["a"]).await;
    case.state(|state| state.filled && state.problem.is_none()).await;
    // Withdrawn later: what we have may be old. Given again: go on from the same version.
    watch.refuse(403, "Forbidden", "pods is forbidden");
    case.state(|state| !state.filled).await;
    case.server.expect("resourceVersion=10").await.stream();
    case.state(|state| state.filled && state.problem.is_none()).await;
}

#[tokio::test]
async fn a_server_that_has_not_read_its_roles_yet_forbids_nothing() {
    let mut case = Case::new(Timing { forbidden: Duration::from_millis(300), ..FAST });
    let watch = case.filled(&["a"]).await;
    watch.refuse(403, "Forbidden", "pods is forbidden");
    let state = case.state(|state| state.problem.is_some()).await;
    assert!(state.filled && matches!(state.problem, Some(WatchProblem::Unreachable(_))), "{state:?}");
    let mut refusals = 0;
    loop {
        case.server.expect("resourceVersion=10").await.refuse(403, "Forbidden", "pods is forbidden");
        refusals += 1;
        let forbidden = |state: &WatchState| matches!(state.problem, Some(WatchProblem::Forbidden(_)));
        if forbidden(&case.handle.state().borrow()) {
            break;
        }
    }
    assert!(refusals > 3, "{refusals}");
    // Given and withdrawn again: it has its time once more.
    let stream = case.server.expect("resourceVersion=10").await.stream();
    case.state(|state| state.filled && state.problem.is_none()).await;
    drop(stream);
    case.server.expect("resourceVersion=10").await.refuse(403, "Forbidden", "pods is forbidden");
    case.state(|state| state.filled && matches!(state.problem, Some(WatchProblem::Unreachable(_)))).await;
}

#[tokio::test]
async fn a_missing_kind_works_without_a_restart_once_it_is_there() {
    let mut case = Case::new(FAST);
    case.server.next().await.answer(404, "404 page not found\n");
    let state = case.state(|state| state.problem.is_some()).await;
    assert!(!state.filled && matches!(state.problem, Some(WatchProblem::Missing(_))));
    let watch = case.filled(&["a"]).await;
    case.state(|state| state.filled).await;
    // Deleted under the watch, made again: nothing of the old ones is left.
    watch.refuse(404, "NotFound", "the server could not find the requested resource");
    case.state(|state| !state.filled && matches!(state.problem, Some(WatchProblem::Missing(_)))).await;
    case.filled(&[]).await;
    case.state(|state| state.filled && state.problem.is_none()).await;
}

#[tokio::test]
async fn a_server_that_is_down_is_never_a_kind_that_is_missing() {
    let mut case = Case::new(FAST);
    for answer in 0..4 {
        let call = case.server.next().await;
        match answer {
            0 => call.fail("tcp connect error"),
            1 => call.answer(404, "<html>no such backend</html>"),
            2 => call.answer(503, "upstream connect error"),
            _ => call.refuse(401, "Unauthorized", "Unauthorized"),
        }
        let state = case.state(|state| state.problem.is_some()).await;
        assert!(!state.is_classified(), "{state:?}");
    }
}

#[tokio::test]
async fn one_unreadable_object_does_not_stop_the_rest() {
    let mut case = Case::new(FAST);
    let bad = r#"{"metadata":{"resourceVersion":"10"},"items":[{"metadata":{"name":"a","labels":5}},{"metadata":{"name":"b"}}]}"#;
    case.server.next().await.answer(200, bad);
    case.see(&["started", "listed b", "done 10"]).await;
    let stream = case.server.next().await.stream();
    stream.send("{\"type\":\"MODIFIED\",\"object\":{\"metadata\":[]}}\n");
    stream.send(&event("MODIFIED", "b", "11"));
    case.see(&["changed b"]).await;
}

#[tokio::test]
async fn a_line_that_is_no_json_lists_anew() {
    let mut case = Case::new(FAST);
    for line in [
        "<html>a proxy's error page</html>",
        r#"{"type":"ADDED","object":{"metadata":{"name":"b"}}"#,
        r#"{"type":"ADDED","object":{"metadata":{"name":"b"}},{}}"#,
    ] {
        let stream = case.filled(&["a"]).await.stream();
        stream.send(&format!("{line}\n"));
    }
    case.filled(&["a"]).await;
}

#[tokio::test]
async fn a_consumer_that_panics_gets_everything_anew() {
    let mut case = Case::new(FAST);
    let stream = case.filled(&["a"]).await.stream();
    stream.send(&event("MODIFIED", "panic", "11"));
    case.filled(&["a"]).await;
}

#[tokio::test]
async fn a_watch_that_is_hung_up_at_once_is_not_asked_without_end() {
    let mut case = Case::new(Timing { short: DEADLINE, ..FAST });
    drop(case.filled(&["a"]).await.stream());
    let state = case.state(|state| state.problem.is_some()).await;
    assert!(state.filled && state.problem.unwrap().message().contains("ended the watch at once"));
    case.server.expect("resourceVersion=10").await;
}

#[tokio::test]
async fn the_servers_retry_after_is_honoured() {
    let mut case = Case::new(Timing { backoff: (Duration::from_millis(1), Duration::from_secs(1)), ..FAST });
    let body = r#"{"kind":"Status","code":429,"reason":"TooManyRequests","message":"slow down","details":{"retryAfterSeconds":1}}"#;
    case.server.next().await.answer(429, body);
    let asked = std::time::Instant::now();
    case.server.next().await;
    assert!(asked.elapsed() > Duration::from_millis(950));
}

#[tokio::test]
async fn a_dropped_handle_ends_the_stream_and_its_metric() {
    let mut case = Case::new(FAST);
    let _watch = case.filled(&[]).await;
    let metric = r#"keelson_watch_state{kind="pods",state="filled"}"#;
    assert!(case.server.metrics.encode().contains(&format!("{metric} 1")));
    let Case { server, mut events, handle } = case;
    drop(handle);
    assert_eq!(timeout(DEADLINE, events.recv()).await.unwrap(), None);
    assert!(server.is_idle());
    assert!(server.metrics.encode().contains(&format!("{metric} 0")));
}
