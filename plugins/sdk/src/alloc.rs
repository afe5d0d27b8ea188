//! An allocator for a life of microseconds: every call has a fresh instance,
//! whose memory goes as a whole. Freeing is not worth its code; the last block
//! can grow and go, which is what a growing `Vec` and a dropped one need.
#![cfg(all(target_family = "wasm", feature = "bump-allocator"))]
#![allow(unsafe_code, reason = "a global allocator is unsafe by nature; the instance has one thread")]

use core::arch::wasm32::{memory_grow, memory_size};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::alloc::{GlobalAlloc, Layout};

const PAGE: usize = 64 * 1024;

#[global_allocator]
static BUMP: Bump = Bump { next: AtomicUsize::new(0) };

struct Bump {
    /// The first free byte; 0 before the first allocation.
    next: AtomicUsize,
}

unsafe extern "C" {
    /// From the linker: where stack and data end.
    static __heap_base: u8;
}

impl Bump {
    /// Takes `size` bytes from `start` on, growing the memory where it must.
    fn take(&self, start: usize, size: usize) -> *mut u8 {
        let Some(end) = start.checked_add(size) else { return core::ptr::null_mut() };
        let held = memory_size::<0>() * PAGE;
        if end > held && memory_grow::<0>((end - held).div_ceil(PAGE)) == usize::MAX {
            return core::ptr::null_mut();
        }
        self.next.store(end, Relaxed);
        start as *mut u8
    }

    fn is_last(&self, block: *mut u8, size: usize) -> bool {
        block as usize + size == self.next.load(Relaxed)
    }
}

// SAFETY: blocks are disjoint ranges above `__heap_base` inside the memory,
// aligned as asked; only the last one is ever given back or resized in place.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let next = match self.next.load(Relaxed) {
            0 => &raw const __heap_base as usize,
            next => next,
        };
        match next.checked_next_multiple_of(layout.align()) {
            Some(start) => self.take(start, layout.size()),
            None => core::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if self.is_last(block, layout.size()) {
            self.next.store(block as usize, Relaxed);
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if self.is_last(block, layout.size()) {
            return self.take(block as usize, size);
        }
        if size <= layout.size() {
            return block;
        }
        // SAFETY: the caller's promise about `layout` holds for the new block too.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                core::ptr::copy_nonoverlapping(block, new, layout.size());
            }
            new
        }
    }
}
