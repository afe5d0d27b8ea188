//! MongoDB for a Database with `spec.type: mongo`: a Pod, a Service in front of
//! it and, with storage, a claim; between two versions a Job that raises the
//! feature compatibility version.

mod compatibility;

use keelson_database::{Data, Plan, Server, Spec, State};
use keelson_sdk::prelude::*;

pub struct Mongo;

/// As the release notes of each version have it: only from the version before,
/// and with its feature compatibility version.
const MONGO: Server = Server {
    name: "mongo",
    port: 27017,
    data: "/data/db",
    steps: &[
        ("4.0", &["4.2"]),
        ("4.2", &["4.4"]),
        ("4.4", &["5.0"]),
        ("5.0", &["6.0"]),
        ("6.0", &["7.0"]),
        ("7.0", &["8.0"]),
        ("8.0", &[]),
    ],
};

impl Plugin for Mongo {
    type Spec = Spec;
    type Config = NoConfig;

    fn manifest() -> Manifest {
        MONGO.manifest(env!("CARGO_PKG_VERSION")).child(JOB)
    }

    fn render(db: &Request<Self>) -> Result<Rendering, Failure> {
        let job = |to: &str| db.child(JOB, &compatibility::job_name(db, to));
        // The Job has asked the server itself, so its word is enough.
        let plan = Plan::of(db, &MONGO, |to| job(to).is_some_and(|job| job.is("Complete")))?;
        let rendering = keelson_database::render(db, &MONGO, &plan, &env(db));
        let Some(Data::Between(from, to)) = plan.data else { return Ok(rendering) };
        if plan.back {
            return Ok(keelson_database::taken_back(rendering, db, from, to));
        }
        let starting = plan.version != to || keelson_database::server(db).is_none();
        let (rendering, state) = match job(to) {
            None if starting => (rendering, State::Waits(format!("until a server of {to} is ready"))),
            Some(job) if job.is("Failed") => {
                (rendering.child(compatibility::job(db, to)), State::NeedsAction(compatibility::by_hand(db, to)))
            }
            // Once there it stays, also while the Pod is not ready.
            _ => {
                let name = compatibility::job_name(db, to);
                let state = State::Waits(format!("until Job {name} has raised the feature compatibility version"));
                (rendering.child(compatibility::job(db, to)), state)
            }
        };
        Ok(keelson_database::upgrading(rendering, db, from, to, state))
    }
}

const USERNAME: &str = "MONGO_INITDB_ROOT_USERNAME";
const PASSWORD: &str = "MONGO_INITDB_ROOT_PASSWORD";

/// Without a Secret of the user's there is no authentication.
fn env(db: &Request<Mongo>) -> Value {
    let Some(secret) = db.spec.own_secret() else { return Value::Null };
    let env = |variable, key| keelson_database::secret_env(variable, secret, key);
    json!([env(USERNAME, "username"), env(PASSWORD, "password")])
}

keelson_sdk::export!(Mongo);

#[cfg(test)]
mod tests;
