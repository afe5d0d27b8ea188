//! An election against a scripted server.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::{Candidate, Leader, Lost, Standing, Terms};
use crate::clock;
use crate::cluster::Fence;
use crate::cluster::fake::{Call, DEADLINE, Fake};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";

fn terms(milliseconds: [u64; 2]) -> Terms {
    let [renew, retry] = milliseconds.map(Duration::from_millis);
    Terms::new(Duration::from_secs(1), renew, retry).unwrap()
}

fn candidate(terms: Terms) -> (Candidate, Fence, Fake) {
    let fence = Fence::shut();
    let (api, server) = Fake::fenced(fence.clone(), DEADLINE);
    (Candidate::new(api, "ns", "l", "me".to_owned(), terms), fence, server)
}

fn written(call: &Call) -> Value {
    serde_json::from_slice(&call.body).unwrap()
}

/// The server takes what was written.
fn take(call: Call) {
    let mut lease = written(&call);
    lease["metadata"]["resourceVersion"] = json!("8");
    call.answer(200, &lease.to_string());
}

/// Since the machine's start.
fn end(fence: &Fence) -> Duration {
    fence.left().unwrap() + clock::since_boot()
}

fn of(holder: &str) -> String {
    let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 1, "renewTime": "2026-01-01T00:00:00.000000Z"});
    json!({"metadata": {"name": "l", "namespace": "ns", "resourceVersion": "7"}, "spec": spec}).to_string()
}

async fn leader(terms: Terms) -> (Leader, Fence, Fake) {
    let (candidate, fence, mut server) = candidate(terms);
    let (leader, ()) = tokio::join!(candidate.at_once(), async {
        server.expect(&format!("{LEASE}/l")).await.refuse(404, "NotFound", "no lease");
        let call = server.next().await;
        assert_eq!((&call.method, call.uri.as_str()), (&Method::POST, LEASE));
        take(call);
    });
    (leader.unwrap_or_else(|_| panic!("not elected")), fence, server)
}

#[tokio::test]
async fn who_finds_no_lease_makes_it_and_writes_from_then_on() {
    let (mut leader, fence, mut server) = leader(terms([900, 20])).await;
    assert!(fence.left().is_some());
    assert_eq!(*leader.candidate.standing().borrow(), Standing::Leads);
    let lost = tokio::select! {
        lost = leader.hold() => Some(lost),
        () = async {
            let call = server.next().await;
            assert_eq!((&call.method, call.uri.clone()), (&Method::PUT, format!("{LEASE}/l")));
            let before = end(&fence);
            assert_eq!(written(&call)["spec"]["holderIdentity"], "me");
            take(call);
            let _next = server.next().await;
            assert!(end(&fence) > before + Duration::from_millis(10), "a renewal moves the end");
        } => None,
    };
    assert!(lost.is_none(), "{lost:?}");
    let (_, ()) = tokio::join!(leader.release(), async {
        let call = server.next().await;
        assert_eq!(fence.left(), None, "what follows is not sent");
        assert_eq!(written(&call)["spec"]["holderIdentity"], "");
        assert_eq!(written(&call)["metadata"]["resourceVersion"], "8");
        take(call);
    });
    assert!(server.metrics.encode().contains(r#"leader_election_master_status{name="l"} 0"#));
}

#[tokio::test]
async fn a_lease_of_another_is_waited_for() {
    let (candidate, fence, mut server) = candidate(terms([900, 20]));
    let (standby, ()) = tokio::join!(candidate.at_once(), async {
        server.next().await.answer(200, &of("other"));
    });
    let Err(standby) = standby else { panic!("two lead") };
    assert_eq!(*standby.standing().borrow(), Standing::Standby { leader: "other".to_owned() });
    let script = async {
        let seen = tokio::time::Instant::now();
        loop {
            let call = server.next().await;
            if call.method == Method::PUT {
                assert_eq!(written(&call)["metadata"]["resourceVersion"], "7", "exactly what was seen is replaced");
                assert_eq!(written(&call)["spec"]["leaseTransitions"], 1);
                take(call);
                return seen.elapsed();
            }
            assert!(fence.left().is_none());
            call.answer(200, &of("other"));
        }
    };
    let (_leader, waited) = tokio::join!(standby.elected(), script);
    assert!(waited >= Duration::from_millis(950), "{waited:?}");
}

#[tokio::test]
async fn who_cannot_renew_ends_in_time() {
    let (mut leader, fence, mut server) = leader(terms([100, 20])).await;
    let (lost, _open) = tokio::join!(leader.hold(), async {
        server.next().await.refuse(500, "InternalError", "etcd is away");
        server.next().await
    });
    assert!(matches!(&lost, Lost::Expired { last: Some(_), .. }), "{lost}");
    assert_eq!(fence.left(), None);
    assert!(lost.to_string().starts_with("the lease ns/l was not renewed within 100ms: "), "{lost}");
}

#[tokio::test]
async fn who_finds_another_in_its_place_ends_at_once() {
    let (mut leader, fence, mut server) = leader(terms([900, 20])).await;
    let (lost, ()) = tokio::join!(leader.hold(), async {
        server.next().await.refuse(409, "Conflict", "the object has been modified");
        server.next().await.answer(200, &of("other"));
    });
    assert_eq!(lost.to_string(), "the lease ns/l was taken by \"other\"");
    assert_eq!(fence.left(), None);
}

#[tokio::test]
async fn who_finds_its_own_lost_answer_goes_on() {
    let (mut leader, fence, mut server) = leader(terms([900, 20])).await;
    let lost = tokio::select! {
        lost = leader.hold() => Some(lost),
        () = async {
            server.next().await.refuse(409, "Conflict", "the object has been modified");
            server.next().await.answer(200, &of("me"));
            take(server.next().await);
            let _next = server.next().await;
        } => None,
    };
    assert!(lost.is_none() && fence.left().is_some(), "{lost:?}");
}

#[tokio::test]
async fn what_keeps_it_from_standing_is_told() {
    let (candidate, _fence, mut server) = candidate(terms([900, 20]));
    let (standby, ()) = tokio::join!(candidate.at_once(), async {
        server.next().await.refuse(403, "Forbidden", "leases is forbidden");
    });
    let Err(standby) = standby else { panic!("it leads") };
    let standing = standby.standing().borrow().clone();
    assert!(matches!(&standing, Standing::Unknown(Some(words)) if words.contains("forbidden")), "{standing:?}");
}
