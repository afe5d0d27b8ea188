//! MySQL for a Database with `spec.type: mysql`: a Pod, a Service in front of
//! it, with storage a claim, and a Secret with the password of root, which the
//! host generates and keeps unless the user has brought one.

use keelson_database::{Data, Plan, Server, Spec, State};
use keelson_sdk::prelude::*;

struct MySql;

/// As the manual has it under "Upgrade Paths": to the next LTS, or to an
/// innovation release before that. 8.0 counts as an LTS; none can be skipped.
const MYSQL: Server = Server {
    name: "mysql",
    port: 3306,
    data: "/var/lib/mysql",
    steps: &[
        ("8.0", &["8.4"]),
        ("8.4", &["9.0", "9.1", "9.2", "9.3", "9.4", "9.5", "9.6", "9.7"]),
        ("9.0", &["9.1", "9.2", "9.3", "9.4", "9.5", "9.6", "9.7"]),
        ("9.1", &["9.2", "9.3", "9.4", "9.5", "9.6", "9.7"]),
        ("9.2", &["9.3", "9.4", "9.5", "9.6", "9.7"]),
        ("9.3", &["9.4", "9.5", "9.6", "9.7"]),
        ("9.4", &["9.5", "9.6", "9.7"]),
        ("9.5", &["9.6", "9.7"]),
        ("9.6", &["9.7"]),
        ("9.7", &[]),
    ],
};

const PASSWORD: &str = "MYSQL_ROOT_PASSWORD";

impl Plugin for MySql {
    type Spec = Spec;
    type Config = NoConfig;

    fn manifest() -> Manifest {
        MYSQL.manifest(env!("CARGO_PKG_VERSION")).child(SECRET)
    }

    fn render(db: &Request<Self>) -> Result<Rendering, Failure> {
        // The server upgrades its data when it starts, and listens after that. An image without a
        // telling tag is taken at the Pod's word.
        let upgraded = |to| {
            keelson_database::server(db).is_some()
                && keelson_database::running(db, &MYSQL).is_none_or(|running| running == to)
        };
        let plan = Plan::of(db, &MYSQL, upgraded)?;
        let render = |env: Value| keelson_database::render(db, &MYSQL, &plan, &json!([env]));
        let rendering = match db.spec.own_secret() {
            Some(secret) => render(keelson_database::secret_env(PASSWORD, secret, "password")),
            None => {
                let secret = keelson_database::credentials(db, &MYSQL, &plan).random("password", 24);
                render(secret.env(PASSWORD, "password")).secret(secret)
            }
        };
        Ok(match plan.data {
            Some(Data::Between(from, to)) if plan.back => keelson_database::taken_back(rendering, db, from, to),
            Some(Data::Between(from, to)) => {
                let state = State::Waits(format!("until a server of {to} is ready, which upgrades the data"));
                keelson_database::upgrading(rendering, db, from, to, state)
            }
            _ => rendering,
        })
    }
}

keelson_sdk::export!(MySql);

#[cfg(test)]
mod tests;
