//! `keelson dev --host`: from a saved file to the child of a control plane of its own.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use keelson_tests::{binary, prelude::*, probe};

struct Dev(Mutex<Child>);

impl Drop for Dev {
    fn drop(&mut self) {
        let child = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill(); // it may have ended already
        let _ = child.wait();
    }
}

/// What kubectl of the control plane says; `None` until it can be asked.
fn kubectl(programs: &Path, folder: &Path, args: &[&str]) -> Option<String> {
    let config = folder.join(".keelson/dev/kubeconfig");
    let output = Command::new(programs.join("kubectl")).arg("--kubeconfig").arg(config).args(args).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(crate) async fn a_saved_file_becomes_a_child(case: Case) -> Outcome {
    let programs = case.cluster.programs().to_owned();
    let folder = case.probes(&[])?.join("plugin");
    fs::create_dir_all(&folder)?;
    let write = |image: &str| -> Outcome {
        let mut pod = probe::pod();
        pod["spec"]["containers"][0]["image"] = image.into();
        let plugin = Probe::new("probe", "mongo").script(&json!({"children": [probe::service(), pod]}));
        let mut document: Value = serde_json::from_str(&plugin.document())?;
        document["spec"]["trust"] = json!({"sha256": ""});
        // As an author leaves it for the build.
        let template = document.to_string().replace(r#""sha256":"""#, r#"sha256: """#);
        fs::write(folder.join("plugin.yaml"), template)?;
        plugin.write_component(&folder)
    };
    write("first:1")?;
    fs::copy(repository().join("plugins/databases.zalando.org.yaml"), folder.join("crd.yaml"))?;
    let object = folder.join("object.yaml");
    fs::write(&object, "apiVersion: zalando.org/v1\nkind: Database\nmetadata: {name: a}\nspec: {type: mongo}\n")?;
    let log = folder.with_extension("log");
    let output = fs::File::create(&log)?;
    let dev = Command::new(binary())
        .args(["dev", "--host", "--component"])
        .arg(folder.join("probe.wasm"))
        .arg("-f")
        .args([&object, &folder])
        .env("KUBEBUILDER_ASSETS", &programs)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()?;
    let dev = Dev(Mutex::new(dev));
    let image = || kubectl(&programs, &folder, &["get", "pod", "a", "-o", "jsonpath={.spec.containers[0].image}"]);
    let made = async || {
        if let Some(status) = dev.0.lock().unwrap_or_else(PoisonError::into_inner).try_wait()? {
            bail!("{status}: {}", fs::read_to_string(&log)?);
        }
        Ok(image().as_deref() == Some("first:1"))
    };
    let made = case.until("the first Pod", seconds(60), made).await;
    made.with_context(|| fs::read_to_string(&log).unwrap_or_default())?;
    write("second:2")?;
    case.until("the Pod of what was saved", seconds(20), async || Ok(image().as_deref() == Some("second:2"))).await?;
    let ready = kubectl(&programs, &folder, &["get", "databases", "a", "-o", "jsonpath={.status.children}"]);
    ensure!(ready.is_some_and(|children| children.contains("Service")), "{}", fs::read_to_string(&log)?);
    // All ends with it, though it is killed.
    drop(dev);
    let gone = async || Ok(kubectl(&programs, &folder, &["get", "--raw", "/readyz"]).is_none());
    case.until("the control plane to end", seconds(20), gone).await
}
