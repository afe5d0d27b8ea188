//! Secrets of the user's own, that the object names where the grant says. Read
//! by name; never written to, owned, labelled or deleted.

use super::error::SecretError;
use super::there::read;
use crate::check;
use crate::object::gather::UserSecret;
use crate::object::host::Host;
use crate::object::parents::Parent;

/// Its revision.
pub(crate) async fn look(host: &Host, parent: &Parent, secret: &UserSecret) -> Result<String, SecretError> {
    let UserSecret { path, name } = secret;
    let (path, name) = (path.clone(), name.clone());
    match read(host, parent, &secret.name).await? {
        None => Err(SecretError::Missing { path, name }),
        Some(there) if !check::is_plain_secret(&there.kind) => {
            Err(SecretError::Trusted { path, name, kind: there.kind })
        }
        Some(there) => Ok(there.revision()),
    }
}
