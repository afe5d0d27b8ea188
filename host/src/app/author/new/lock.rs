//! The lock file of a new plugin in Rust.

/// Without the plugin itself.
const TEMPLATE: &str = include_str!("../../../../templates/rust/Cargo.lock");

/// With a package of this name, in the place where cargo puts it. `None` where
/// another package has that name: cargo then has to find its own.
pub(super) fn with(name: &str) -> Option<String> {
    let (header, packages) = TEMPLATE.split_once("\n\n")?;
    let own = format!(
        "[[package]]\nname = \"{name}\"\nversion = \"0.1.0\"\ndependencies = [\n \"keelson-sdk\",\n \"serde\",\n]"
    );
    let mut packages: Vec<&str> = packages.trim_end().split("\n\n").collect();
    if packages.iter().any(|package| called(package) == name) {
        return None;
    }
    let place = packages.partition_point(|package| called(package) < name);
    packages.insert(place, &own);
    Some(format!("{header}\n\n{}\n", packages.join("\n\n")))
}

fn called(package: &str) -> &str {
    let line = package.lines().find_map(|line| line.strip_prefix("name = "));
    line.unwrap_or_default().trim_matches('"')
}
