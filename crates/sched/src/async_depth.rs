//! `async_depth`, how many tags all but synchronous reads may use, where it is a part of
//! `nr_requests` and follows it.

/// The depth and the number of requests that it is a part of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AsyncDepth {
    value: i64,
    requests: i64,
}

impl AsyncDepth {
    /// So many of so many requests.
    pub fn of(value: i64, requests: i64) -> AsyncDepth {
        AsyncDepth { value, requests }
    }

    /// The depth, in requests.
    pub fn value(self) -> i64 {
        self.value
    }

    /// Somebody sets it: at least one, at most all requests.
    pub fn set(&mut self, value: i64) {
        self.value = value.clamp(1, self.requests.max(1));
    }

    /// There are so many requests now, and it is as large a part of them as before; whether their
    /// number has changed. Observed on 7.3.4: 32 of 64 become 64 of 128 and then 16 of 32, and 100
    /// of 128 become 46 of 60.
    pub fn follow(&mut self, requests: i64) -> bool {
        let before = core::mem::replace(&mut self.requests, requests);
        self.value = (self.value * requests / before.max(1)).max(1);
        requests != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_its_ratio_and_is_never_more_than_all() {
        let mut depth = AsyncDepth::of(32, 64);
        let mut after = |requests| (depth.follow(requests), depth.value());
        assert_eq!([128, 32, 32].map(&mut after), [(true, 64), (true, 16), (false, 16)]);
        for (written, kept) in [(5_000, 32), (0, 1), (7, 7)] {
            depth.set(written);
            assert_eq!(depth.value(), kept);
        }
    }
}
