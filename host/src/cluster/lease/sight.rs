//! Whether a Lease is held, as far as one host can see: by how long it has seen
//! the same words in it, never by the times that stand there.

use std::time::Duration;

use super::record::{Record, Said};

#[derive(Default)]
pub(super) struct Sight(Option<Seen>);

struct Seen {
    said: Said,
    /// When these words were first seen, since the machine's start.
    since: Duration,
    lasts: Duration,
}

impl Sight {
    /// `now` is a time after it was read; `lasts` goes where the Lease does not say how long it does.
    pub(super) fn see(&mut self, record: &Record, now: Duration, lasts: Duration) {
        let (said, lasts) = (record.said(), record.lasts().unwrap_or(lasts));
        let since = self.0.as_ref().filter(|seen| seen.said == said).map_or(now, |seen| seen.since);
        self.0 = Some(Seen { said, since, lasts });
    }

    /// Who holds it, at the least by what was seen last.
    pub(super) fn holder(&self, now: Duration) -> Option<&str> {
        let Seen { said, since, lasts } = self.0.as_ref()?;
        (!said.holder.is_empty() && now < since.saturating_add(*lasts)).then_some(said.holder.as_str())
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    const LASTS: Duration = Duration::from_secs(15);
    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn held(by: &str, renewed: &str) -> Record {
        let mut record = Record::vacant("ns", "keelson");
        record.hold(by, LASTS, renewed.parse::<Timestamp>().unwrap());
        record
    }

    #[test]
    fn the_same_words_for_the_leases_time_free_it_whatever_the_clocks_say() {
        let mut sight = Sight::default();
        assert_eq!(sight.holder(at(0)), None);
        // A holder whose clock is years behind, then one whose clock was set back.
        sight.see(&held("a", "2001-01-01T00:00:00Z"), at(100), LASTS);
        sight.see(&held("a", "2001-01-01T00:00:00Z"), at(110), LASTS);
        assert_eq!(sight.holder(at(114)), Some("a"));
        sight.see(&held("a", "2000-01-01T00:00:00Z"), at(114), LASTS);
        assert_eq!(sight.holder(at(128)), Some("a"));
        assert_eq!(sight.holder(at(129)), None);
    }

    #[test]
    fn the_holders_own_promise_counts_and_a_lease_given_back_is_free_at_once() {
        let mut sight = Sight::default();
        let mut long = held("a", "2026-01-01T00:00:00Z");
        long.hold("a", Duration::from_secs(60), "2026-01-01T00:00:01Z".parse().unwrap());
        sight.see(&long, at(0), LASTS);
        assert_eq!(sight.holder(at(59)), Some("a"));
        long.release("2026-01-01T00:00:02Z".parse().unwrap());
        sight.see(&long, at(1), LASTS);
        assert_eq!(sight.holder(at(1)), None);
    }
}
