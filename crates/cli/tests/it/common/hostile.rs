//! Requests of hostile clients.

use std::iter::repeat_n;

use fastrand::Rng;

/// Number of requests; CONTRIBUTING has a longer run.
pub(crate) fn requests() -> u64 {
    std::env::var("PACELINE_REQUESTS").ok().and_then(|text| text.parse().ok()).unwrap_or(500)
}

/// One of these requests, changed in up to three places: a byte, the end cut off, or many bytes inserted.
pub(crate) fn mutated(rng: &mut Rng, requests: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut request = requests[rng.usize(..requests.len())].as_ref().to_vec();
    for _ in 0..rng.usize(..4) {
        let at = rng.usize(..request.len());
        match rng.u8(..3) {
            0 => request[at] = rng.u8(..),
            1 => drop(request.drain(at..)),
            _ => request.splice(at..at, repeat_n(rng.u8(..), rng.usize(..100_000))).for_each(drop),
        }
        if request.is_empty() {
            request.push(b'{');
        }
    }
    request
}
