//! Lines out of chunks that end anywhere.

use crate::limits;

/// A line that no object of a real server makes.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("a line of a watch is larger than {} bytes", limits::WATCH_LINE_BYTES)]
pub(super) struct TooLong;

#[derive(Default)]
pub(super) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Hands each whole line to `each`; what is left waits for the next chunk.
    pub(super) fn push<E: From<TooLong>>(
        &mut self,
        mut data: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some((line, rest)) = memchr::memchr(b'\n', data).and_then(|end| data.split_at_checked(end)) {
            data = rest.get(1..).unwrap_or_default();
            if self.rest.is_empty() {
                if !line.is_empty() {
                    each(line)?;
                }
                continue;
            }
            self.rest.extend_from_slice(line);
            each(&self.rest)?;
            self.rest.clear();
            // One large object must not keep its size for the life of the stream.
            self.rest.shrink_to(limits::WATCH_LINE_KEPT);
        }
        if self.rest.len() + data.len() > limits::WATCH_LINE_BYTES {
            return Err(TooLong.into());
        }
        self.rest.extend_from_slice(data);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Result<Vec<String>, TooLong> {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for chunk in chunks {
            lines.push::<TooLong>(chunk, |line| {
                seen.push(String::from_utf8_lossy(line).into_owned());
                Ok(())
            })?;
        }
        Ok(seen)
    }

    #[test]
    fn chunks_end_anywhere() {
        let text = b"one\ntwo\n\nthree\nrest";
        for cut in 0..text.len() {
            let (head, tail) = text.split_at(cut);
            assert_eq!(lines(&[head, tail]).unwrap(), ["one", "two", "three"], "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(lines(&bytes).unwrap(), ["one", "two", "three"]);
    }

    #[test]
    fn a_line_has_a_limit() {
        let half = vec![b'x'; limits::WATCH_LINE_BYTES / 2];
        assert_eq!(lines(&[&half, &half]).unwrap(), Vec::<String>::new());
        assert_eq!(lines(&[&half, &half, b"x"]), Err(TooLong));
    }
}
