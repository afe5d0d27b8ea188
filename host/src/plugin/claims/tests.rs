use super::*;
use crate::check::GrantedDiscriminator;
use crate::sandbox::Discriminator;

type Table = Claims<&'static str, &'static str>;

fn serving(discriminator: Option<(&str, &str)>) -> Serving {
    Serving {
        group: "g.io".to_owned(),
        versions: vec!["v1".to_owned()],
        kind: "Db".to_owned(),
        plural: "dbs".to_owned(),
        discriminator: discriminator.map(|(path, value)| Discriminator { path: path.into(), value: value.into() }),
    }
}

fn by_type(value: &str) -> Serving {
    serving(Some(("/spec/type", value)))
}

fn granted(value: &str) -> GrantedParent {
    let discriminator = Some(GrantedDiscriminator { path: "/spec/type".into(), value: value.into() });
    GrantedParent { group: "g.io".to_owned(), kind: "Db".to_owned(), discriminator }
}

fn text<'a>(value: &'a str) -> impl Fn(&str) -> Found<'a> {
    move |path| if path == "/spec/type" { Found::Text(value.into()) } else { Found::Nothing }
}

#[test]
fn plugins_share_a_kind_by_values_of_one_path() {
    let mut table = Table::default();
    table.serve("a", &[by_type("mongo")], "a").unwrap();
    table.serve("b", &[by_type("mysql")], "b").unwrap();
    assert_eq!(table.choose("g.io", "Db", text("mongo")), Choice::Served("a"));
    assert_eq!(table.choose("g.io", "Db", text("mysql")), Choice::Served("b"));
    assert_eq!(table.kinds().len(), 1);
}

#[test]
fn what_could_match_twice_is_a_conflict_and_names_the_winner() {
    let cases: [(Serving, Serving, &str); 5] = [
        (by_type("mongo"), by_type("mongo"), "it claims /spec/type = \"mongo\" too"),
        (serving(None), by_type("mongo"), "it claims every object"),
        (by_type("mongo"), serving(None), "no discriminator"),
        (serving(None), serving(None), "it claims every object"),
        (by_type("mongo"), serving(Some(("/spec/engine", "x"))), "could match both"),
    ];
    for (first, second, words) in cases {
        let mut table = Table::default();
        table.serve("winner", &[first], "winner").unwrap();
        let conflict = table.serve("loser", &[by_type("other"), second], "loser").unwrap_err();
        assert!(conflict.contains("plugin winner") && conflict.contains(words), "{conflict}");
    }
}

#[test]
fn a_plugin_in_conflict_serves_nothing_at_all() {
    let mut table = Table::default();
    table.serve("a", &[by_type("mongo")], "a").unwrap();
    let cache = Serving { kind: "Cache".to_owned(), ..serving(None) };
    table.serve("b", &[cache, by_type("mongo")], "b").unwrap_err();
    assert!(matches!(table.choose("g.io", "Cache", text("x")), Choice::Nobody(_)));
    assert_eq!(table.kinds().len(), 1);
}

#[test]
fn a_kind_is_watched_in_a_version_that_all_read() {
    let reads = |value: &str, versions: &[&str]| Serving {
        versions: versions.iter().map(|version| (*version).to_owned()).collect(),
        ..by_type(value)
    };
    let mut table = Table::default();
    table.serve("a", &[reads("a", &["v2", "v1"])], "a").unwrap();
    table.serve("b", &[reads("b", &["v1", "v1beta1"])], "b").unwrap();
    assert_eq!(table.kinds()[0].versions, ["v1"]);
    let none = table.serve("c", &[reads("c", &["v3"])], "c").unwrap_err();
    assert!(none.contains("v1") && none.contains("v3"), "{none}");
    let plural = Serving { plural: "databases".to_owned(), ..by_type("d") };
    assert!(table.serve("d", &[plural], "d").unwrap_err().contains("dbs"));
    assert_eq!(table.kinds()[0].versions, ["v1"]);
}

#[test]
fn objects_of_a_plugin_that_does_not_serve_wait_for_it() {
    let mut table = Table::default();
    table.serve("a", &[by_type("mongo")], "a").unwrap();
    table.wait(&[granted("mysql"), granted("mongo")], "broken");
    assert_eq!(table.choose("g.io", "Db", text("mysql")), Choice::Waiting("broken"));
    assert_eq!(table.choose("g.io", "Db", text("mongo")), Choice::Served("a"), "who serves goes first");
    assert!(table.unserved_kinds().is_empty());
    table.wait(&[GrantedParent { kind: "Cache".to_owned(), discriminator: None, ..granted("") }], "broken");
    assert_eq!(table.choose("g.io", "Cache", |_| Found::Nothing), Choice::Waiting("broken"));
    assert_eq!(table.unserved_kinds().into_iter().collect::<Vec<_>>(), [("g.io".to_owned(), "Cache".to_owned())]);
}

#[test]
fn objects_that_nobody_is_meant_by_are_told_why() {
    let mut table = Table::default();
    table.serve("a", &[by_type("mongo")], "a").unwrap();
    table.wait(&[granted("mysql")], "broken");
    let ask = |found: Found<'static>| match table.choose("g.io", "Db", move |_| found.clone()) {
        Choice::Nobody(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    for (found, reason, words) in [
        (Found::Nothing, "InvalidSpec", "/spec/type is missing".to_owned()),
        (Found::Other("a number"), "InvalidSpec", "/spec/type must be a string, not a number".to_owned()),
        (Found::Text("x\n".into()), "NoPlugin", "no plugin serves /spec/type = \"x\\n\"".to_owned()),
        (Found::Text("y".repeat(300_000).into()), "NoPlugin", format!("{}…", "y".repeat(64))),
    ] {
        let refusal = ask(found);
        assert_eq!((refusal.reason, refusal.path.as_str()), (reason, "/spec/type"));
        assert!(refusal.message.contains(&words), "{}", refusal.message);
        assert_eq!(refusal.allowed, ["mongo", "mysql"]);
    }
    let Choice::Nobody(refusal) = table.choose("", "Pod", text("x")) else { panic!("a kind that nobody serves") };
    assert_eq!((refusal.reason, refusal.path.as_str()), ("NoPlugin", ""));
}
