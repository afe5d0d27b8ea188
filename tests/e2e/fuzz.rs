//! Specs that nobody would write, and what they do in a plugin that puts them everywhere.

use crate::specs::{create, install_loose};
use keelson_tests::prelude::*;
use std::collections::BTreeSet;

pub(crate) async fn case_45_a_fuzzed_spec_ends_in_a_condition(case: Case) -> Outcome {
    install_loose(&case).await?;
    // What stands in the spec goes into names, numbers and lists of the children, as far as a plugin lets it.
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "{name}", "labels": {"fuzz": "{/spec/text}"}},
        "spec": {"hostname": "{/spec/host}", "containers": [{"name": "c", "image": "{/spec/image}"}]}});
    let probe = Probe::new("probe", "probe").script(&json!({"children": [pod], "status": {"message": "{/spec}"}}));
    let folder = case.plugin_folder()?;
    probe.write(&folder)?;
    let mut host = case.host().plugins(&folder).start().await?;
    let mut random = Random(0x5eed);
    const OBJECTS: usize = 60;
    for i in 0..OBJECTS {
        let mut spec = random.value(4);
        if let (Some(spec), true) = (spec.as_object_mut(), i % 4 > 0) {
            spec.insert("type".to_owned(), json!(["", "mongo", "mysql", "probe"].get(i % 4)));
            for field in ["text", "image", "host"] {
                spec.insert(field.to_owned(), random.value(1));
            }
        }
        create(&case, &format!("f{i}"), spec).await?;
    }
    // Deeper than most readers of JSON go, this test's included.
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    let object = format!(
        r#"{{"apiVersion":"zalando.org/v1","kind":"Database","metadata":{{"name":"deep"}},"spec":{{"type":"mongo","affinity":{{"x":{deep}}}}}}}"#
    );
    let file = case.dir.join("deep.json");
    std::fs::write(&file, object)?;
    let kubectl = async |words: &[&str]| case.cluster.kubectl(&[&["-n", &case.namespace], words].concat()).await;
    kubectl(&["create", "-f", &file.to_string_lossy()]).await?;
    let judged = |database: &Object| database.condition("Ready").is_some_and(|ready| !ready.reason.is_empty());
    let mut reasons = BTreeSet::new();
    for i in 0..OBJECTS {
        let database = case.wait(DATABASE, &format!("f{i}"), "judged", judged).await?;
        reasons.extend(database.condition("Ready").map(|ready| ready.reason));
    }
    ensure!(reasons.len() >= 3, "the specs differ, and all that becomes of them is {reasons:?}");
    kubectl(&["wait", "--for=condition=Ready=False", "database/deep", "--timeout=20s"]).await?;
    let reason = kubectl(&["get", "database/deep", "-o", "jsonpath={.status.conditions[0].reason}"]).await?;
    ensure!(reason == "InvalidSpec", "{reason:?}");
    kubectl(&["delete", "database", "deep"]).await?;
    case.database("good", "mongo").await?;
    host.ready().await?;
    ensure!(host.log_lines(&["panicked"]).is_empty(), "{:?}", host.log_lines(&["panicked"]));
    ensure!(host.log_lines(&["no status"]).is_empty(), "{:?}", host.log_lines(&["no status"]));
    Ok(())
}

/// The same values in every run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    fn value(&mut self, depth: u64) -> Value {
        match self.below(if depth == 0 { 8 } else { 12 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 1),
            2 => json!(self.below(u64::MAX) as i64),
            3 => json!(1.5e300 * self.below(9) as f64),
            4 => json!("ü\u{0}\u{7f}\n{{name}}/../~1\u{10ffff}".repeat(self.below(9) as usize)),
            5 => json!("x".repeat(self.below(5000) as usize)),
            6 => json!(["", "-", "a", "A", "a-b", "{/spec}", "10.0.0.1", "mongo:4.0"].get(self.below(8) as usize)),
            7 => json!("good"),
            8 | 9 => (0..self.below(6)).map(|_| self.value(depth - 1)).collect(),
            _ => (0..self.below(6))
                .map(|i| (format!("{i}{}", ["a/b", "~", "é"].get(i as usize).unwrap_or(&"x")), self.value(depth - 1)))
                .collect(),
        }
    }
}
