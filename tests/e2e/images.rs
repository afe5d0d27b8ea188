//! Plugins from a real registry, and signatures that the real cosign made. Each on a control plane of its own: Plugin
//! objects are everybody's.

use std::path::PathBuf;

use keelson_tests::{prelude::*, probe};

const SYSTEM: &str = "keelson-system";

fn script(message: &str) -> Value {
    json!({"children": [probe::pod(), probe::service()], "status": {"message": message}})
}

/// A component that says so in every status.
fn component(case: &Case, name: &str, message: &str) -> anyhow::Result<PathBuf> {
    let folder = case.dir.join("components");
    Probe::new(name, "mongo").manifest(&json!({"version": message})).write_component(&folder)?;
    Ok(folder.join(format!("{name}.wasm")))
}

/// The Plugin object `probe`, of this image.
fn plugin(oci: &Value, trust: &Value) -> anyhow::Result<String> {
    let mut document: Value = serde_json::from_str(&Probe::new("probe", "mongo").script(&script("made")).document())?;
    document["spec"]["source"] = json!({"oci": oci});
    document["spec"]["trust"] = trust.clone();
    Ok(document.to_string())
}

/// As `kubectl replace` does, so that nothing of an earlier one stays.
async fn put(case: &Case, oci: &Value, trust: &Value) -> Outcome {
    let file = case.dir.join("plugin.json");
    std::fs::write(&file, plugin(oci, trust)?)?;
    let file = file.to_string_lossy().into_owned();
    let there = case.find(PLUGIN, "probe").await?.is_some();
    case.cluster.kubectl(&[if there { "replace" } else { "create" }, "-f", &file]).await.map(drop)
}

fn builder(case: &Case) -> anyhow::Result<HostBuilder> {
    let folder = case.dir.join("none");
    std::fs::create_dir_all(&folder)?;
    Ok(case.host().plugins(&folder).arg("--plugin-source=cluster"))
}

async fn start(case: &Case) -> anyhow::Result<Host> {
    builder(case)?.start().await
}

/// Of the newest edit.
fn told(plugin: &Object) -> bool {
    plugin.at("/status/observedGeneration") == plugin.at("/metadata/generation")
}

async fn serving(case: &Case, version: &str) -> anyhow::Result<Object> {
    let serves = |plugin: &Object| {
        told(plugin) && plugin.text("/status/phase") == "Serving" && plugin.text("/status/version") == version
    };
    case.wait(PLUGIN, "probe", &format!("serving {version}"), serves).await
}

async fn refused(case: &Case, condition: &str, reason: &str) -> anyhow::Result<Object> {
    case.wait(PLUGIN, "probe", reason, |plugin| told(plugin) && plugin.is_not(condition, reason)).await
}

async fn gone(case: &Case) -> Outcome {
    case.cluster.kubectl(&["delete", "plugin", "probe"]).await?;
    case.wait_gone(PLUGIN, "probe").await
}

pub(crate) async fn what_everybody_pushes_loads(case: Case) -> Outcome {
    let registry = Registry::start(&case, RegistryOptions::default()).await?;
    let _host = start(&case).await?;
    let unsigned = json!({"unsigned": true});
    // Our own command; the same component is the same image.
    let file = component(&case, "own", "1.0.0")?;
    let pushed = registry.push(&file, "acme/own:1").await?;
    ensure!(registry.push(&file, "acme/own:2").await? == pushed, "another digest of the same component");
    put(&case, &json!({"image": registry.image("acme/own:1"), "plainHttp": true}), &unsigned).await?;
    let plugin = serving(&case, "1.0.0").await?;
    ensure!(plugin.text("/status/image") == pushed, "{pushed}: {plugin}");
    case.database("a", "mongo").await?;
    // oras, by tag.
    let file = component(&case, "oras", "2.0.0")?;
    let layer = format!("{}:application/wasm", file.display());
    let kind = "application/vnd.wasm.config.v0+json";
    let image = registry.image("acme/oras:v2");
    let args = ["push", "--plain-http", "--disable-path-validation", &image, "--artifact-type", kind, &layer];
    registry.run("oras", &args).await?;
    put(&case, &json!({"image": image, "plainHttp": true}), &unsigned).await?;
    serving(&case, "2.0.0").await?;
    // The layer type of before.
    let file = component(&case, "old", "3.0.0")?;
    let layer = format!("{}:application/vnd.wasm.content.layer.v1+wasm", file.display());
    let image = registry.image("acme/old:v3");
    registry.run("oras", &["push", "--plain-http", "--disable-path-validation", &image, &layer]).await?;
    put(&case, &json!({"image": image, "plainHttp": true}), &unsigned).await?;
    let plugin = serving(&case, "3.0.0").await?;
    // What is pulled is what was pushed.
    let out = registry.dir().join("pulled.wasm").to_string_lossy().into_owned();
    let at = plugin.text("/status/image").to_owned();
    registry.run_program(&binary(), &["plugin", "pull", &at, "-o", &out, "--plain-http"]).await?;
    ensure!(std::fs::read(&out)? == std::fs::read(&file)?, "other bytes");

    // What is no component is refused by name, and the last one serves on.
    let text = registry.dir().join("text");
    std::fs::write(&text, "no component")?;
    for (name, layer, reason) in
        [("text:1", "text:text/plain", "ImageInvalid"), ("fake:1", "text:application/wasm", "ArtifactInvalid")]
    {
        let image = registry.image(name);
        registry.run("oras", &["push", "--plain-http", &image, layer]).await?;
        put(&case, &json!({"image": image, "plainHttp": true}), &unsigned).await?;
        let condition = if reason == "ImageInvalid" { "Fetched" } else { "Compiled" };
        let plugin = refused(&case, condition, reason).await?;
        ensure!(plugin.text("/status/phase") == "Held" && plugin.text("/status/version") == "3.0.0", "{plugin}");
    }
    let index = registry.image("acme/index:1");
    registry.run("oras", &["manifest", "index", "create", "--plain-http", &index, "v3"]).await.ok();
    registry
        .run("oras", &["manifest", "index", "create", "--plain-http", &registry.image("acme/old:index"), "v3"])
        .await?;
    put(&case, &json!({"image": registry.image("acme/old:index"), "plainHttp": true}), &unsigned).await?;
    let plugin = refused(&case, "Fetched", "ImageIndex").await?;
    ensure!(plugin.message("Fetched").contains("image index"), "{plugin}");
    put(&case, &json!({"image": registry.image("acme/old:never"), "plainHttp": true}), &unsigned).await?;
    refused(&case, "Fetched", "ImageNotFound").await?;
    // Without a word TLS is wanted.
    put(&case, &json!({"image": registry.image("acme/own:1")}), &unsigned).await?;
    refused(&case, "Fetched", "RegistryUnavailable").await?;
    case.database("b", "mongo").await.map(drop)
}

pub(crate) async fn a_tag_that_moves_changes_nothing_that_serves(case: Case) -> Outcome {
    let mut registry = Registry::start(&case, RegistryOptions::default()).await?;
    let host = start(&case).await?;
    let image = json!({"image": registry.image("acme/p:stable"), "plainHttp": true});
    let first = registry.push(&component(&case, "p", "1.0.0")?, "acme/p:stable").await?;
    put(&case, &image, &json!({"unsigned": true})).await?;
    serving(&case, "1.0.0").await?;
    registry.push(&component(&case, "p", "2.0.0")?, "acme/p:stable").await?;
    // Neither an edit nor a restart resolves it anew.
    let host = host.restart().await?;
    case.database("a", "mongo").await?;
    let plugin = serving(&case, "1.0.0").await?;
    ensure!(plugin.text("/status/image") == first, "{plugin}");
    // Without the registry the recorded one cannot be had after a start: unavailable, never another.
    registry.stop();
    drop(host);
    // No plugin serves: it is not ready.
    let host = builder(&case)?.spawn().await?;
    let plugin = refused(&case, "Fetched", "RegistryUnavailable").await?;
    ensure!(plugin.text("/status/image") == first, "the record is lost: {plugin}");
    case.apply_database("b", "mongo").await?;
    case.wait(DATABASE, "b", "told", |database| database.is_not("Ready", "PluginUnavailable")).await?;
    registry.resume().await?;
    case.wait_for(seconds(60), DATABASE, "b", "Ready", |database| database.is("Ready")).await?;
    serving(&case, "1.0.0").await?;
    // Another name is another wish; one that fails leaves what was recorded, over a restart too.
    let other = registry.push(&component(&case, "p", "3.0.0")?, "acme/p:next").await?;
    put(&case, &json!({"image": registry.image("acme/p:next"), "plainHttp": true}), &json!({"unsigned": true})).await?;
    ensure!(serving(&case, "3.0.0").await?.text("/status/image") == other);
    put(&case, &json!({"image": registry.image("acme/p:missing"), "plainHttp": true}), &json!({"unsigned": true}))
        .await?;
    refused(&case, "Fetched", "ImageNotFound").await?;
    drop(host);
    let host = start(&case).await?;
    let held = |plugin: &Object| plugin.text("/status/phase") == "Held" && plugin.text("/status/version") == "3.0.0";
    case.wait(PLUGIN, "probe", "held at what was recorded", held).await?;
    case.database("c", "mongo").await?;
    drop(host);
    Ok(())
}

pub(crate) async fn case_62_a_registry_with_a_password_and_a_ca(case: Case) -> Outcome {
    let mut registry = Registry::start(&case, RegistryOptions { password: true, tls: true }).await?;
    let right = registry.docker_config("a")?;
    let at = registry.push(&component(&case, "p", "1.0.0")?, "team/p:1").await?;
    let kubectl = async |args: &[&str]| case.cluster.kubectl(&[&["-n", SYSTEM], args].concat()).await;
    let secret = async |kind: &str, key: &str, value: &str| {
        let file = registry.dir().join("secret");
        std::fs::write(&file, value)?;
        kubectl(&["delete", "secret", "pull", "--ignore-not-found"]).await?;
        let from = format!("--from-file={key}={}", file.display());
        kubectl(&["create", "secret", "generic", "pull", &format!("--type={kind}"), &from]).await.map(drop)
    };
    let host = start(&case).await?;
    let unsigned = json!({"unsigned": true});
    let mut oci = json!({"image": at});
    // Nobody vouches for it, then nobody is let in.
    put(&case, &oci, &unsigned).await?;
    let plugin = refused(&case, "Fetched", "RegistryUnavailable").await?;
    ensure!(plugin.message("Fetched").to_lowercase().contains("certificate"), "{plugin}");
    oci["caConfigMap"] = "registry-ca".into();
    put(&case, &oci, &unsigned).await?;
    let plugin = refused(&case, "Fetched", "PullSecretInvalid").await?;
    ensure!(plugin.message("Fetched").contains("ConfigMap keelson-system/registry-ca does not exist"), "{plugin}");
    let ca = format!("--from-file=ca.crt={}", registry.dir().join("ca.crt").display());
    kubectl(&["create", "configmap", "registry-ca", &ca]).await?;
    let plugin = case
        .wait_for(seconds(60), PLUGIN, "probe", "unauthorized", |p| p.is_not("Fetched", "ImageUnauthorized"))
        .await?;
    ensure!(plugin.message("Fetched").contains("who gives no credentials"), "{plugin}");
    // A wrong password: the registry is named, the secret is not.
    oci["pullSecret"] = "pull".into();
    let wrong = registry.docker_config("wr0ng-s3cret")?;
    secret("kubernetes.io/dockerconfigjson", ".dockerconfigjson", &wrong).await?;
    put(&case, &oci, &unsigned).await?;
    let of_secret =
        |p: &Object| p.is_not("Fetched", "ImageUnauthorized") && p.message("Fetched").contains("pull secret");
    let plugin = case.wait(PLUGIN, "probe", "refused", of_secret).await?;
    let message = plugin.message("Fetched");
    ensure!(message.contains(&format!("{}/team/p", registry.address)) && message.contains("401"), "{message}");
    for secret in ["wr0ng-s3cret", "a2VlbHNvbjp3"] {
        ensure!(!plugin.to_string().contains(secret) && !host.log().contains(secret), "{secret} is told");
    }
    // The right one, without a restart; then the older form.
    secret("kubernetes.io/dockerconfigjson", ".dockerconfigjson", &right).await?;
    let serves = |plugin: &Object| plugin.text("/status/phase") == "Serving";
    case.wait_for(seconds(90), PLUGIN, "probe", "serving", serves).await?;
    case.database("a", "mongo").await?;
    gone(&case).await?;
    let auths: Value = serde_json::from_str(&right)?;
    secret("kubernetes.io/dockercfg", ".dockercfg", &auths["auths"].to_string()).await?;
    put(&case, &oci, &unsigned).await?;
    serving(&case, "1.0.0").await?;
    // Rotated at the registry: the next version is refused until the Secret follows.
    let rotated = registry.docker_config("abc")?;
    registry.rotate().await?;
    let next = registry.push(&component(&case, "p", "2.0.0")?, "team/p:2").await?;
    oci["image"] = next.into();
    put(&case, &oci, &unsigned).await?;
    refused(&case, "Fetched", "ImageUnauthorized").await?;
    ensure!(case.get(PLUGIN, "probe").await?.text("/status/phase") == "Held");
    let file = registry.dir().join("secret");
    std::fs::write(&file, &rotated)?;
    kubectl(&["delete", "secret", "pull"]).await?;
    kubectl(&[
        "create",
        "secret",
        "generic",
        "pull",
        "--type=kubernetes.io/dockerconfigjson",
        &format!("--from-file=.dockerconfigjson={}", file.display()),
    ])
    .await?;
    let serves =
        |plugin: &Object| plugin.text("/status/phase") == "Serving" && plugin.text("/status/version") == "2.0.0";
    case.wait_for(seconds(90), PLUGIN, "probe", "serving the next", serves).await.map(drop)
}

pub(crate) async fn what_cosign_signed_is_trusted(case: Case) -> Outcome {
    let registry = Registry::start(&case, RegistryOptions::default()).await?;
    let (ours, theirs) = (registry.key("ours").await?, registry.key("theirs").await?);
    let _host = start(&case).await?;
    let trust = |keys: &[&str]| json!({"keys": keys});
    let image = |at: &str| json!({"image": at, "plainHttp": true});
    // Not signed at all, then by somebody else, then by us as well: as a bundle, and in the older form.
    for (i, bundle) in [true, false].into_iter().enumerate() {
        let version = format!("{}.0.0", i + 1);
        let at = registry.push(&component(&case, "p", &version)?, &format!("acme/p{i}:1")).await?;
        put(&case, &image(&at), &trust(&[&ours])).await?;
        let plugin = refused(&case, "Verified", "Unsigned").await?;
        ensure!(plugin.message("Verified").contains("is not signed") && plugin.is("Fetched"), "{plugin}");
        registry.sign(&at, "theirs", bundle).await?;
        gone(&case).await?;
        put(&case, &image(&at), &trust(&[&ours])).await?;
        refused(&case, "Verified", "SignatureInvalid").await?;
        registry.sign(&at, "ours", bundle).await?;
        gone(&case).await?;
        put(&case, &image(&at), &trust(&[&ours])).await?;
        serving(&case, &version).await?;
    }
    // By an Ed25519 key too.
    let ed = registry.ed25519_key("ed").await?;
    for (i, bundle) in [true, false].into_iter().enumerate() {
        let version = format!("2.1.{i}");
        let at = registry.push(&component(&case, "p", &version)?, &format!("acme/ed{i}:1")).await?;
        registry.sign(&at, "ed", bundle).await?;
        gone(&case).await?;
        put(&case, &image(&at), &trust(&[&ours])).await?;
        refused(&case, "Verified", "SignatureInvalid").await?;
        put(&case, &image(&at), &trust(&[&ours, &ed])).await?;
        serving(&case, &version).await?;
    }
    gone(&case).await?;
    let at = registry.image("acme/p1:1");
    put(&case, &image(&at), &trust(&[&ours])).await?;
    serving(&case, "2.0.0").await?;
    case.database("a", "mongo").await?;
    // One key of several is enough; a key that is taken away stops what only it had signed, also what serves.
    let at = case.get(PLUGIN, "probe").await?.text("/status/image").to_owned();
    put(&case, &image(&at), &trust(&[&theirs, &ours])).await?;
    serving(&case, "2.0.0").await?;
    let stranger = registry.key("stranger").await?;
    put(&case, &image(&at), &trust(&[&stranger])).await?;
    let plugin = refused(&case, "Verified", "SignatureInvalid").await?;
    ensure!(plugin.text("/status/phase") == "SignatureInvalid", "{plugin}");
    case.wait(DATABASE, "a", "unserved", |database| database.is_not("Ready", "PluginUnavailable")).await?;
    // A signature that was moved here from another image is none of this one.
    let other = registry.push(&component(&case, "p", "9.0.0")?, "acme/p1:other").await?;
    let tag = |at: &str| at.rsplit_once("sha256:").map_or_else(String::new, |(_, hex)| format!("sha256-{hex}.sig"));
    let (from, to) =
        (registry.image(&format!("acme/p1:{}", tag(&at))), registry.image(&format!("acme/p1:{}", tag(&other))));
    registry.run("oras", &["cp", "--from-plain-http", "--to-plain-http", &from, &to]).await?;
    put(&case, &image(&other), &trust(&[&ours])).await?;
    let plugin = refused(&case, "Verified", "SignatureInvalid").await?;
    ensure!(plugin.message("Verified").contains("of something else"), "{plugin}");
    // A statement about an image that is no signature of it: an attestation by the same key.
    let last = registry.push(&component(&case, "p", "8.0.0")?, "acme/p2:1").await?;
    std::fs::write(registry.dir().join("predicate.json"), "{}")?;
    let args = [
        "attest",
        "--key",
        "ours.key",
        "--tlog-upload=false",
        "--use-signing-config=false",
        "--allow-http-registry",
        "-y",
        "--type",
        "custom",
        "--predicate",
        "predicate.json",
        &last,
    ];
    registry.run("cosign", &args).await?;
    put(&case, &image(&last), &trust(&[&ours])).await?;
    refused(&case, "Verified", "SignatureInvalid").await.map(drop)
}

pub(crate) async fn case_78_a_volume_and_keys_need_no_egress(case: Case) -> Outcome {
    let registry = Registry::start(&case, RegistryOptions::default()).await?;
    let (key, ed) = (registry.key("k").await?, registry.ed25519_key("ed").await?);
    let folder = case.probes(&[Probe::new("probe", "mongo").script(&script("of the file"))])?;
    let mut document: Value = serde_json::from_slice(&std::fs::read(folder.join("probe.yaml"))?)?;
    document["spec"]["trust"] = json!({"keys": [key, ed]});
    std::fs::write(folder.join("probe.yaml"), document.to_string())?;
    let file = folder.join("probe.wasm").to_string_lossy().into_owned();
    let sign_by = async |key: &str, file: &str, bundle: &str| {
        let args = [
            "sign-blob",
            "--key",
            key,
            "--tlog-upload=false",
            "--use-signing-config=false",
            "-y",
            "--bundle",
            bundle,
            file,
        ];
        registry.run("cosign", &args).await.map(drop)
    };
    let sign = async |file: &str, bundle: &str| sign_by("k.key", file, bundle).await;
    let bundle = format!("{file}.sigstore.json");
    sign_by("ed.key", &file, &bundle).await?;
    // A folder as an image volume gives it: nobody can write there.
    let host = case.host().plugins(&folder).start().await?;
    case.database("a", "mongo").await?;
    ensure!(host.log_lines(&["\"level\":\"WARN\""]).len() <= 1, "{}", host.log());
    drop(host);
    // Without the bundle, and with one of other bytes.
    std::fs::remove_file(&bundle)?;
    let host = case.host().plugins(&folder).spawn().await?;
    case.apply_database("b", "mongo").await?;
    let told = |words: &'static str| {
        move |d: &Object| d.is_not("Ready", "PluginUnavailable") && d.message("Ready").contains(words)
    };
    case.wait(DATABASE, "b", "unsigned", told("Unsigned")).await?;
    let other = registry.dir().join("other");
    std::fs::write(&other, "other bytes")?;
    sign(&other.to_string_lossy(), &bundle).await?;
    case.wait(DATABASE, "b", "signed wrongly", told("SignatureInvalid")).await?;
    sign(&file, &bundle).await?;
    case.wait(DATABASE, "b", "Ready", |database| database.is("Ready")).await?;
    drop(host);
    Ok(())
}
