//! The hook `finalize` as its author sees it.

use keelson_sdk::finalize::{Finalization, Finalizer};
use keelson_sdk::prelude::*;
use keelson_sdk::testing::Fixture;

struct Shop;

impl Plugin for Shop {
    type Spec = Unread;
    type Config = NoConfig;

    fn manifest() -> Manifest {
        Manifest::new("shop", "1.0.0")
            .serves(Serving::new("example.org", "v1", "Shop", "shops"))
            .child(CONFIG_MAP)
            .child(JOB)
    }

    fn render(shop: &Request<Self>) -> Result<Rendering, Failure> {
        let name = shop.name();
        Ok(Rendering::of([json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})]))
    }
}

impl Finalizer for Shop {
    fn finalize(shop: &Request<Self>) -> Result<Finalization, Failure> {
        let name = shop.name_with("dump");
        match shop.child(JOB, &name) {
            Some(job) if job.is("Complete") => Ok(Finalization::done()),
            Some(job) if job.is("Failed") => Err(Failure::internal("the dump failed").reason("DumpFailed")),
            Some(_) => Ok(Finalization::waiting("Dumping", "its data is being dumped").look_again_after(60)),
            None => {
                let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}});
                Ok(Finalization::waiting("Dumping", "a dump is started").with(Self::render(shop)?.child(job)))
            }
        }
    }
}

keelson_sdk::export_with_finalizer!(Shop);

fn with_job(condition: &str) -> Fixture<Shop> {
    Fixture::of::<Shop>("one").child(json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "one-dump"}, "status": {"conditions": [{"type": condition, "status": "True"}]}}))
}

#[test]
fn what_is_there_meanwhile_and_what_it_waits_for() {
    let first = Fixture::of::<Shop>("one").finalize().unwrap();
    assert_eq!(first.rendered.child(JOB, "one-dump")["metadata"]["name"], "one-dump");
    assert_eq!(first.rendered.child(CONFIG_MAP, "one")["kind"], "ConfigMap", "the usual children are still named");
    assert_eq!(first.waiting.unwrap().reason, "Dumping");
    let running = with_job("Suspended").finalize().unwrap();
    assert!(running.rendered.children.is_empty() && running.waiting.is_some());
    assert!(with_job("Complete").finalize().unwrap().waiting.is_none());
    assert!(with_job("Failed").finalize().is_err());
}
