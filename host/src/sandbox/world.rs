//! What a guest can see of a world beside its request, as data of one call: two clocks that stand until it sleeps, and
//! random numbers that follow from the request. The same request meets the same world, on every host and at any time.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;

use super::model::Request;

/// Where the wall clock stands when nothing says more: 2000-01-01T00:00:00Z.
const SOME_DAY: u64 = 946_684_800;
/// By how much a look at the monotonic clock moves it, in nanoseconds: a loop that waits for a time comes to its end.
pub(super) const TICK: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

pub(super) struct World {
    start: Start,
    /// Nanoseconds, of both clocks.
    slept: u64,
    /// Nanoseconds, of the monotonic clock alone.
    looked: u64,
    random: u64,
}

/// Where the wall clock stands at first.
enum Start {
    /// Seconds since 1970.
    At(u64),
    /// When the object of this JSON text was made; read when somebody asks.
    Creation(Arc<str>),
}

impl World {
    /// For a call without a request.
    pub(super) fn nowhere() -> Self {
        Self { start: Start::At(SOME_DAY), slept: 0, looked: 0, random: 0 }
    }

    pub(super) fn of(request: &Request) -> Self {
        let start = request.now.map_or_else(|| Start::Creation(Arc::clone(&request.parent)), Start::At);
        Self { start, slept: 0, looked: 0, random: request.seed }
    }

    /// Seconds since 1970, and nanoseconds.
    pub(super) fn wall(&mut self) -> (u64, u32) {
        let start = match &self.start {
            Start::At(seconds) => *seconds,
            Start::Creation(parent) => creation(parent).unwrap_or(SOME_DAY),
        };
        self.start = Start::At(start);
        let nanoseconds = u32::try_from(self.slept % SECOND).unwrap_or_default();
        (start.saturating_add(self.slept / SECOND), nanoseconds)
    }

    /// Nanoseconds since the call began; looking moves it.
    pub(super) fn monotonic(&mut self) -> u64 {
        let now = self.elapsed();
        self.looked = self.looked.saturating_add(TICK);
        now
    }

    pub(super) fn elapsed(&self) -> u64 {
        self.slept.saturating_add(self.looked)
    }

    /// Until the monotonic clock shows so many nanoseconds.
    pub(super) fn sleep_until(&mut self, deadline: u64) {
        self.slept = self.slept.max(deadline.saturating_sub(self.looked));
    }

    /// The next of a sequence that the seed alone decides (SplitMix64). Not secret.
    pub(super) fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Seconds since 1970.
fn creation(parent: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Parent<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        #[serde(borrow)]
        creation_timestamp: Cow<'a, str>,
    }
    let parent: Parent<'_> = serde_json::from_str(parent).ok()?;
    let made: jiff::Timestamp = parent.metadata.creation_timestamp.parse().ok()?;
    u64::try_from(made.as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(parent: &str, now: Option<u64>) -> Request {
        Request {
            parent: parent.into(),
            config: "{}".into(),
            selector_labels: Vec::new(),
            children: Vec::new(),
            related: Vec::new(),
            secrets: Vec::new(),
            now,
            seed: 7,
        }
    }

    #[test]
    fn the_wall_clock_stands_where_the_request_says() {
        let made = r#"{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"}}"#;
        assert_eq!(World::of(&request(made, None)).wall(), (1_767_225_600, 0));
        assert_eq!(World::of(&request(made, Some(60))).wall(), (60, 0));
        for without in ["{}", r#"{"metadata":{}}"#, r#"{"metadata":{"creationTimestamp":null}}"#, "no JSON"] {
            assert_eq!(World::of(&request(without, None)).wall(), (SOME_DAY, 0), "{without}");
        }
        assert_eq!(World::nowhere().wall(), (SOME_DAY, 0));
    }

    #[test]
    fn sleeping_moves_both_clocks_and_looking_the_monotonic_one() {
        let mut world = World::of(&request("{}", Some(100)));
        assert_eq!((world.monotonic(), world.monotonic()), (0, TICK));
        let now = world.elapsed();
        world.sleep_until(now + 3 * SECOND + 5);
        assert_eq!((world.elapsed(), world.wall()), (now + 3 * SECOND + 5, (103, 5)));
        world.sleep_until(now);
        assert_eq!(world.elapsed(), now + 3 * SECOND + 5, "no sleep goes back");
        world.sleep_until(u64::MAX);
        assert_eq!(world.monotonic(), u64::MAX);
        assert_eq!(world.monotonic(), u64::MAX);
        assert_eq!(world.wall().0, 100 + (u64::MAX - 2 * TICK) / SECOND);
    }

    #[test]
    fn random_numbers_follow_from_the_seed() {
        let numbers = |seed| {
            let mut world = World::of(&Request { seed, ..request("{}", None) });
            [world.random(), world.random(), world.random()]
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        // As the sequence is published for the seed 1234567.
        assert_eq!(numbers(1_234_567)[..2], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }
}
