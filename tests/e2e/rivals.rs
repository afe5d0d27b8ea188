//! Others who do the same thing again and again: it is put right ever more rarely, said, and forgotten when they stop.

use crate::finalize;
use keelson_tests::{prelude::*, probe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A controller of somebody else's.
struct Rival {
    goes_on: Arc<AtomicBool>,
    acts: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Rival {
    /// `act` says whether it had anything to do.
    fn start<F: Future<Output = bool> + Send>(case: &Case, act: impl Fn(Case) -> F + Send + 'static) -> Self {
        let (goes_on, acts) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let (case, on, count) = (case.clone(), goes_on.clone(), acts.clone());
        let task = tokio::spawn(async move {
            while on.load(Ordering::Relaxed) {
                count.fetch_add(usize::from(act(case.clone()).await), Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Self { goes_on, acts, task }
    }

    fn acts(&self) -> usize {
        self.acts.load(Ordering::Relaxed)
    }

    async fn stop(self) -> Outcome {
        self.goes_on.store(false, Ordering::Relaxed);
        Ok(self.task.await?)
    }
}

async fn told(case: &Case, reason: &str, words: &[&str]) -> Outcome {
    let told = async || {
        let events = case.events("a").await?;
        let is = |event: &Object| {
            event.text("/reason") == reason && words.iter().all(|word| event.text("/note").contains(word))
        };
        Ok(events.iter().any(is))
    };
    case.until(&format!("an Event {reason} with {words:?}"), seconds(30), told).await
}

/// Somebody writes its own opinion into our condition.
pub(crate) async fn a_fight_about_the_status_is_told(case: Case) -> Outcome {
    let host = case.host().start().await?;
    case.database("a", "mongo").await?;
    case.quiet(seconds(1)).await?;
    let statuses = || anyhow::Ok(case.writes()?.filter(|call| call.subresource == "status").len());
    let before = statuses()?;
    let rival = Rival::start(&case, |case| async move {
        let theirs = |database: &Object| database.text("/status/message") == "theirs";
        if case.get(DATABASE, "a").await.is_ok_and(|database| theirs(&database)) {
            return false;
        }
        let path = DATABASE.path(&case.namespace, "a/status") + "?fieldManager=other-controller";
        let patch = json!({"status": {"message": "theirs"}});
        case.cluster.send(http::Method::PATCH, &path, "application/merge-patch+json", &patch).await.is_ok()
    });
    told(&case, "FieldConflict", &["status", "other-controller"]).await?;
    let first = statuses()? - before;
    ensure!(first <= 6, "{first} writes before it was told");
    let rarely = async || Ok(statuses()? - before <= first + 2);
    case.throughout("it is hardly fought", seconds(20), rarely).await?;
    ensure!(rival.acts() >= 5, "the other wrote {} times only", rival.acts());
    // An edit is answered at once all the same.
    case.patch(DATABASE, "a", &json!({"spec": {"service": {"type": "ClusterIP"}}})).await?;
    let generation = case.get(DATABASE, "a").await?.at("/metadata/generation").clone();
    let seen = |database: &Object| *database.at("/status/observedGeneration") == generation;
    case.wait_for(seconds(8), DATABASE, "a", "observed", seen).await?;
    // The other stops: nobody has to do anything.
    rival.stop().await?;
    let ours = |database: &Object| database.is("Ready") && database.text("/status/message") != "theirs";
    case.wait_for(seconds(90), DATABASE, "a", "ours again", ours).await?;
    case.quiet(seconds(3)).await?;
    ensure!(host.log_lines(&["panicked"]).is_empty());
    Ok(())
}

/// Somebody takes our finalizer off, again and again.
pub(crate) async fn a_fight_about_the_finalizer_is_told(case: Case) -> Outcome {
    finalize::rights(&case).await?;
    let script = json!({"children": [probe::service(), probe::pod()]});
    let folder = case.probes(&[Probe::new("probe", "mongo").finalizing().script(&script)])?;
    let _host = case.host().plugins(&folder).start().await?;
    case.database("a", "mongo").await?;
    case.quiet(seconds(1)).await?;
    let held = |database: &Object| database.at("/metadata/finalizers").to_string().contains("keelson.dev/finalize");
    let patches = || {
        let main = |call: &Call| call.verb == "patch" && call.subresource.is_empty();
        anyhow::Ok(case.writes()?.resource("databases").filter(main).len())
    };
    let before = patches()?;
    let rival = Rival::start(&case, move |case| async move {
        if !case.get(DATABASE, "a").await.is_ok_and(|database| held(&database)) {
            return false;
        }
        case.patch(DATABASE, "a", &json!({"metadata": {"finalizers": null}})).await.is_ok()
    });
    let conflict = |database: &Object| database.is_not("Ready", "FieldConflict");
    let database = case.wait(DATABASE, "a", "told", conflict).await?;
    ensure!(database.message("Ready").contains("keelson.dev/finalize"), "{database}");
    let first = patches()? - before;
    ensure!(first <= 6, "{first} writes before it was told");
    let rarely = async || Ok(patches()? - before <= first + 2);
    case.throughout("it is hardly fought", seconds(15), rarely).await?;
    rival.stop().await?;
    let healed = |database: &Object| held(database) && database.is("Ready");
    case.wait_for(seconds(60), DATABASE, "a", "held and Ready", healed).await?;
    // Of what is deleted the fight is over.
    case.delete(DATABASE, "a").await?;
    case.wait_gone(DATABASE, "a").await
}

/// Somebody deletes each Service that it sees.
pub(crate) async fn a_controller_that_deletes_children_is_told(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    case.database("a", "mongo").await?;
    case.quiet(seconds(1)).await?;
    // One delete is a person's: repaired at once, without a word.
    case.delete(SERVICE, "a").await?;
    case.wait_for(seconds(5), SERVICE, "a", "back", |service| !service.going()).await?;
    case.wait(DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    let warned = case.events("a").await?.iter().any(|event| event.text("/type") == "Warning");
    ensure!(!warned, "{:?}", case.events("a").await?);
    let pod = case.get(POD, "a").await?;
    let rival = Rival::start(&case, |case| async move {
        case.find(SERVICE, "a").await.is_ok_and(|it| it.is_some()) && case.delete(SERVICE, "a").await.is_ok()
    });
    let told = |database: &Object| database.is_not("Ready", "DeletedRepeatedly") && database.is("Degraded");
    let database = case.wait(DATABASE, "a", "told", told).await?;
    ensure!(database.message("Ready").contains("Service a"), "{database}");
    let made = || anyhow::Ok(case.writes()?.resource("services").filter(|call| call.code == 201).len());
    let first = made()?;
    ensure!(first <= 7, "made {first} times before it was told");
    let rarely = async || Ok(told(&case.get(DATABASE, "a").await?) && made()? <= first + 2);
    case.throughout("it is told, and hardly made", seconds(20), rarely).await?;
    ensure!(case.get(POD, "a").await?.uid() == pod.uid(), "the other children stand");
    // Once it stops, nobody has to do anything.
    rival.stop().await?;
    case.wait_for(seconds(60), SERVICE, "a", "back", |service| !service.going()).await?;
    case.wait_for(seconds(90), DATABASE, "a", "Ready", |database| database.is("Ready")).await?;
    case.quiet(seconds(2)).await
}
