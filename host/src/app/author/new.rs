//! `keelson plugin new`: a folder that builds, tests and renders at once.
//!
//! All of it comes out of this program. The SDK of Rust is not on crates.io, so
//! its source is written beside the plugin, with the lock file that it was
//! tested with; crates.io is asked for nothing but what that names.

mod lock;
mod sdk;

use std::fs;
use std::io::Write;

use anyhow::{Context, bail};

use super::super::cli::Exit;
use super::super::cli::author::{Lang, NewArgs};
use super::contract;
use crate::check::syntax;

/// A file in the new folder: its path, and its text, in which `__NAME__` and the like stand for what the author chose.
type Template = (&'static str, &'static str);

macro_rules! template {
    ($file:literal) => {
        include_str!(concat!("../../../templates/", $file))
    };
}

const COMMON: &[Template] = &[
    ("README.md", template!("common/README.md")),
    ("plugin.yaml", template!("common/plugin.yaml")),
    ("crd.yaml", template!("common/crd.yaml")),
    ("clusterrole.yaml", template!("common/clusterrole.yaml")),
    ("fixtures/small/object.yaml", template!("common/object.yaml")),
    ("fixtures/refused/object.yaml", template!("common/refused.yaml")),
    // The answers are the same in every language.
    ("fixtures/small/children.yaml", template!("common/children.yaml")),
    ("fixtures/refused/failure.yaml", template!("common/refused-failure.yaml")),
];

const RUST: &[Template] = &[
    (".gitignore", template!("rust/gitignore")),
    ("Cargo.toml", template!("rust/Cargo.toml")),
    ("src/lib.rs", template!("rust/lib.rs")),
    ("vendor/keelson-sdk/Cargo.toml", template!("rust/sdk.toml")),
];

const PYTHON: &[Template] = &[
    (".gitignore", template!("python/gitignore")),
    ("app.py", template!("python/app.py")),
    ("keelson.py", template!("python/keelson.py")),
];

const JS: &[Template] = &[
    (".gitignore", template!("js/gitignore")),
    ("app.js", template!("js/app.js")),
    ("keelson.js", template!("js/keelson.js")),
    ("package.json", template!("js/package.json")),
];

/// Characters of a name, so that its kind's names are valid too.
const NAME_CHARS: usize = 40;

pub(super) fn new(args: NewArgs) -> anyhow::Result<Exit> {
    let NewArgs { name, lang, group, into } = args;
    if !syntax::dns_1123_label(&name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) || name.len() > NAME_CHARS
    {
        bail!("{name:?} is no name of a plugin: a letter first, then a to z, 0 to 9 and -, at most {NAME_CHARS}");
    }
    if !syntax::dns_1123_subdomain(&group) || !group.contains('.') {
        bail!("{group:?} is no API group of one's own: a DNS name with a dot, such as example.org");
    }
    let folder = into.join(&name);
    // What stands there is somebody's work.
    fs::create_dir_all(&into)
        .and_then(|()| fs::create_dir(&folder))
        .with_context(|| format!("make {}", folder.display()))?;
    for (path, text) in files(&name, &group, lang)? {
        let file = folder.join(path);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).with_context(|| format!("make {}", parent.display()))?;
        }
        fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
    }
    contract::write(&folder.join(contract::FOLDER))?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "cd {}", folder.display())?;
    let steps = format!("{}keelson plugin build\nkeelson plugin test\n", setup(lang));
    writeln!(out, "{steps}keelson render -f fixtures/small/object.yaml --plugins out")?;
    Ok(Exit::Ok)
}

fn files(name: &str, group: &str, lang: Lang) -> anyhow::Result<Vec<(String, String)>> {
    let kind = kind(name);
    let singular = kind.to_ascii_lowercase();
    let source = match lang {
        Lang::Rust => "src/lib.rs",
        Lang::Python => "app.py",
        Lang::Js => "app.js",
    };
    let filled = |text: &str| {
        text.replace("__NAME__", name)
            .replace("__GROUP__", group)
            .replace("__KIND__", &kind)
            .replace("__PLURAL__", &format!("{singular}s"))
            .replace("__SINGULAR__", &singular)
            .replace("__SOURCE__", source)
            .replace("__SETUP__", setup(lang))
    };
    let own = match lang {
        Lang::Rust => RUST,
        Lang::Python => PYTHON,
        Lang::Js => JS,
    };
    let templates = COMMON.iter().chain(own);
    let mut files: Vec<(String, String)> = templates.map(|(path, text)| ((*path).to_owned(), filled(text))).collect();
    if lang == Lang::Rust {
        files.extend(
            sdk::FILES.iter().map(|(path, text)| (format!("vendor/keelson-sdk/src/{path}"), (*text).to_owned())),
        );
        files.extend(lock::with(name).map(|text| ("Cargo.lock".to_owned(), text)));
    }
    Ok(files)
}

/// What comes before the first build.
fn setup(lang: Lang) -> &'static str {
    match lang {
        Lang::Rust => "",
        Lang::Python => "python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1\n",
        Lang::Js => "npm install\n",
    }
}

/// `web-shop` to `WebShop`.
fn kind(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
    };
    name.split('-').map(word).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::super::document;
    use super::*;
    use crate::plugin::document::Document;

    const LANGS: [Lang; 3] = [Lang::Rust, Lang::Python, Lang::Js];
    const PLUGINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins");

    fn file<'a>(files: &'a [(String, String)], name: &str) -> &'a str {
        &files.iter().find(|(path, _)| path == name).unwrap_or_else(|| panic!("no {name}")).1
    }

    #[test]
    fn every_folder_is_filled_in_and_its_plugin_is_short() {
        for (lang, source) in LANGS.into_iter().zip(["src/lib.rs", "app.py", "app.js"]) {
            let files = files("web-shop", "example.org", lang).unwrap();
            for (path, text) in &files {
                let mark =
                    ["__NAME__", "__GROUP__", "__KIND__", "__PLURAL__", "__SINGULAR__", "__SOURCE__", "__SETUP__"];
                assert!(!mark.iter().any(|mark| text.contains(mark)), "{path}");
            }
            assert!(file(&files, source).lines().count() < 40, "{source}");
            let template = document::with_digest(file(&files, "plugin.yaml"), b"").unwrap();
            assert_eq!(Document::parse(&template).unwrap().name, "web-shop");
            let object: serde_json::Value = serde_saphyr::from_str(file(&files, "fixtures/small/object.yaml")).unwrap();
            let crd: serde_json::Value = serde_saphyr::from_str(file(&files, "crd.yaml")).unwrap();
            assert_eq!(object["kind"], "WebShop");
            assert_eq!(crd["spec"]["names"]["kind"], "WebShop");
            assert_eq!(crd["metadata"]["name"], "webshops.example.org");
            assert!(file(&files, "README.md").contains("keelson plugin test\n"));
        }
    }

    #[test]
    fn the_sdk_that_is_written_is_that_of_this_repository() {
        fn walk(folder: &Path, root: &Path, into: &mut BTreeSet<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, root, into);
                } else {
                    into.insert(path.strip_prefix(root).unwrap().display().to_string());
                }
            }
        }
        let root = Path::new(PLUGINS).join("sdk/src");
        let mut there = BTreeSet::new();
        walk(&root, &root, &mut there);
        let written: BTreeSet<String> = sdk::FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(written, there, "host/src/app/author/new/sdk.rs lists the files of plugins/sdk/src");

        // Its Cargo.toml has each line of the workspace's that the SDK's own takes.
        let read = |file: &str| fs::read_to_string(Path::new(PLUGINS).join(file)).unwrap();
        let (workspace, own, made) = (read("Cargo.toml"), read("sdk/Cargo.toml"), template!("rust/sdk.toml"));
        let own = own.split("[dev-dependencies]").next().unwrap();
        for line in own.lines().filter(|line| !line.is_empty() && !line.contains("serde-saphyr")) {
            let wanted = match line.split_once(".workspace = true") {
                Some((name, _)) => workspace.lines().find(|line| line.starts_with(&format!("{name} = "))).unwrap(),
                None => line,
            };
            assert!(made.lines().any(|line| line == wanted), "host/templates/rust/sdk.toml has no {wanted}");
        }
    }

    #[test]
    fn the_lock_file_is_that_of_this_repository() {
        let repository = fs::read_to_string(Path::new(PLUGINS).join("Cargo.lock")).unwrap();
        let packages: BTreeSet<&str> = repository.split("\n\n").map(str::trim).collect();
        let written = lock::with("web-shop").unwrap();
        let (mut own, mut last) = (Vec::new(), "");
        for package in written.split("\n\n").skip(1).map(str::trim) {
            let name = package.lines().nth(1).unwrap();
            assert!(name >= last, "{name} stands after {last}");
            last = name;
            if !packages.contains(package) {
                own.push(name);
            }
        }
        // The repository's SDK has itself as a dev-dependency.
        let wanted = [r#"name = "keelson-sdk""#, r#"name = "web-shop""#];
        assert_eq!(own, wanted, "make host/templates/rust/Cargo.lock anew from plugins/Cargo.lock");
        assert_eq!(lock::with("serde"), None);
    }

    #[test]
    fn names_that_no_kind_could_have_are_refused() {
        let into = std::env::temp_dir().join("keelson-never-made");
        let long = "a".repeat(41);
        for name in ["Shop", "a.b", "-a", "a-", "1a", "", "a/b", "..", &long] {
            let args = NewArgs { name: name.to_owned(), lang: Lang::Js, group: "a.b".to_owned(), into: into.clone() };
            assert!(new(args).unwrap_err().to_string().contains("no name of a plugin"), "{name}");
        }
        assert!(!into.exists());
    }
}
