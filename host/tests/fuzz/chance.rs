//! Chance that can be repeated.

use oorandom::Rand64;

pub(crate) struct Chance {
    random: Rand64,
    /// Most is as it should be: what is wrong everywhere is refused for the first thing that is seen.
    tame: bool,
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        let mut chance = Self { random: Rand64::new(u128::from(seed)), tame: false };
        chance.tame = !chance.one_in(3);
        chance
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.random.rand_range(0..n.max(1) as u64)).unwrap()
    }

    /// Once in so many.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn any(&mut self) -> u64 {
        self.random.rand_u64()
    }

    pub(crate) fn is_tame(&self) -> bool {
        self.tame
    }

    /// Any of them; where things are tame mostly the first.
    pub(crate) fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        if self.tame && !self.one_in(12) { &all[0] } else { self.any_of(all) }
    }

    pub(crate) fn any_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}
