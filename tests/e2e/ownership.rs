//! Who owns what, and what becomes of it.

use keelson_tests::prelude::*;

pub(crate) async fn case_01_deleted_children_come_back(case: Case) -> Outcome {
    let _host = case.host().start().await?;
    let database = case.database("a", "mongo").await?;
    let states = case.record(DATABASE, "a").await?;
    for kind in [SERVICE, POD] {
        let old = case.get(kind, "a").await?;
        case.delete(kind, "a").await?;
        let back = |new: &Object| new.uid() != old.uid() && new.owner() == database.uid() && !new.going();
        case.wait_for(seconds(10), kind, "a", "back and owned by the Database", back).await?;
    }
    case.until("Ready to go False", seconds(10), async || {
        Ok(states.saw(|d| d.condition("Ready").is_some_and(|c| c.status == "False")))
    })
    .await?;
    case.wait(DATABASE, "a", "Ready again", |d| d.is("Ready")).await?;
    Ok(())
}
