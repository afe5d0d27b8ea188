//! Versions of a plugin that follow each other while its objects are edited: renders that came to nothing because of it.

use anyhow::ensure;
use keelson_tests::{DATABASE, Probe, probe, state};
use serde_json::json;
use tokio::time::Instant;

use crate::{NAMESPACE, PATIENCE, Row, Setup, metrics};

const VERSIONS: usize = 10;
const OBJECTS: usize = 20;

pub(crate) async fn run(setup: &Setup) -> anyhow::Result<Vec<Row>> {
    let folder = state("bench-fair-plugins")?.join("swap");
    let write = |number: usize| {
        let script = json!({"children": [probe::service()], "status": {"message": format!("version {number}")}});
        let version = json!({"version": format!("0.0.{number}")});
        Probe::new("swaps", "mongo").manifest(&version).script(&script).write(&folder)
    };
    write(1)?;
    let cluster = &setup.cluster;
    for i in 0..OBJECTS {
        let object = json!({"metadata": {"name": format!("s{i}")}, "spec": {"type": "mongo"}});
        cluster.create(DATABASE, NAMESPACE, &object).await?;
    }
    let (process, _) = setup.start(&folder, "swap").await?;
    let begin = Instant::now();
    let mut edits = 0;
    for number in 2..=VERSIONS {
        write(number)?;
        let version = format!("\"version\":\"0.0.{number}\"");
        while !process.log().lines().any(|line| line.contains("\"serving\"") && line.contains(&version)) {
            let name = format!("s{}", edits % OBJECTS);
            let edit = json!({"metadata": {"annotations": {"edit": edits.to_string()}}});
            cluster.patch(DATABASE, NAMESPACE, &name, &edit).await?;
            edits += 1;
            ensure!(begin.elapsed() < PATIENCE, "version {number} never came: {}", process.last_words());
        }
    }
    let metrics = metrics(&process).await?;
    let renders = |labels: &[(&str, &str)]| metrics.sum("keelson_renders_total", labels);
    let (all, good) = (renders(&[]), renders(&[("result", "ok")]));
    ensure!(good > 0.0, "nothing was rendered");
    let row = |what: String, measured, bound| Row { what, measured, bound };
    Ok(vec![
        row(format!("{} swaps under {edits} edits: failed renders", VERSIONS - 1), all - good, Some(0.0)),
        row("renders meanwhile".to_owned(), all, None),
    ])
}
