//! Frames of pools: they are placed in bursts, taken out and given back, and none is lost or used twice.

use std::collections::HashSet;
use std::sync::Arc;

use paceline_frame::{
    BUFFER_LEN, Burst, Chunk, FrameMeta, FramePool, HEADROOM, PlaceError, PoolCache, Span, TAILROOM, Verdict,
};

fn meta(timestamp_ns: u64) -> FrameMeta {
    FrameMeta { timestamp_ns, ..FrameMeta::default() }
}

fn filled(pool: &FramePool, cache: &mut PoolCache, packet: &[u8]) -> (Chunk, Span) {
    let mut chunk = cache.alloc().expect("a free frame");
    let span = pool.fill(&mut chunk, &[], packet).expect("it fits");
    (chunk, span)
}

/// Frames that the caches of a burst hold go back when it is dropped.
fn all_are_back(pool: &Arc<FramePool>) {
    assert_eq!(pool.free(), pool.frames() as usize);
    let mut cache = PoolCache::new(pool);
    let indices: Vec<Chunk> = std::iter::from_fn(|| cache.alloc()).collect();
    let different: HashSet<u32> = indices.iter().map(Chunk::index).collect();
    assert_eq!((indices.len(), different.len()), (pool.frames() as usize, pool.frames() as usize));
    indices.into_iter().for_each(|chunk| cache.free(chunk));
}

#[test]
fn a_placed_packet_is_not_copied_and_its_frame_goes_back() {
    let pool = FramePool::on_heap(8);
    let mut cache = PoolCache::new(&pool);
    let mut burst = Burst::new(4);
    burst.push(&[1; 60], meta(1)).unwrap();
    let (chunk, span) = filled(&pool, &mut cache, &[2; 70]);
    let address = pool.buffer(&chunk).0;
    burst.place(&pool, chunk, span, meta(2)).unwrap();
    burst.push(&[3; 80], meta(3)).unwrap();
    assert_eq!(burst.frame(1).hard_start(), address);
    let packets: Vec<_> =
        burst.iter().map(|frame| (frame.packet().to_vec(), frame.meta().timestamp_ns)).collect();
    assert_eq!(packets, [(vec![1; 60], 1), (vec![2; 70], 2), (vec![3; 80], 3)]);
    burst.swap(0, 1);
    assert_eq!(burst.frame(0).hard_start(), address);
    burst.clear();
    (0..4).for_each(|_| burst.push(&[4; 60], meta(4)).unwrap());
    assert!(burst.iter().all(|frame| frame.hard_start() != address), "its slot has its own buffer again");
    drop((burst, cache));
    all_are_back(&pool);
}

#[test]
fn a_taken_packet_belongs_to_who_took_it() {
    let pool = FramePool::on_heap(8);
    let mut cache = PoolCache::new(&pool);
    let (mut from, mut to) = (Burst::new(2), Burst::new(2));
    let (chunk, span) = filled(&pool, &mut cache, &[7; 60]);
    from.place(&pool, chunk, span, meta(0)).unwrap();
    from.push(&[8; 60], meta(0)).unwrap();
    let taken = from.take(0, &pool).expect("it is the pool's");
    assert!(from.take(1, &pool).is_none(), "a buffer of the burst");
    assert!(from.take(0, &pool).is_none(), "it is gone");
    assert!(from.frame(0).is_empty());
    from.clear();
    assert_eq!(pool.packet(&taken.chunk, taken.span), Some(&[7; 60][..]));
    to.place(&pool, taken.chunk, taken.span, meta(0)).unwrap();
    assert_eq!(to.frame(0).packet(), [7; 60]);
    drop((from, to, cache));
    all_are_back(&pool);
}

#[test]
fn packets_that_were_copied_into_a_pool_can_be_taken() {
    let pool = FramePool::on_heap(5);
    assert!(Burst::in_pool(6, &pool).is_none());
    all_are_back(&pool);
    let mut burst = Burst::in_pool(4, &pool).unwrap();
    (0..4).for_each(|byte| burst.push(&[byte; 60], meta(0)).unwrap());
    let first = burst.take(0, &pool).expect("one frame is free to replace it");
    assert!(burst.take(1, &pool).is_none(), "none is left");
    assert_eq!(pool.packet(&first.chunk, first.span), Some(&[0; 60][..]));
    assert_eq!(burst.frame(1).packet(), [1; 60]);
    let mut cache = PoolCache::new(&pool);
    cache.free(first.chunk);
    drop((burst, cache));
    all_are_back(&pool);
}

#[test]
fn a_long_packet_gets_a_buffer_of_the_burst() {
    let pool = FramePool::on_heap(4);
    let mut burst = Burst::in_pool(2, &pool).unwrap();
    burst.push(&vec![1; pool.capacity() + 1], meta(0)).unwrap();
    assert!(burst.take(0, &pool).is_none());
    burst.push(&vec![2; pool.capacity()], meta(0)).unwrap();
    let taken = burst.take(1, &pool).unwrap();
    assert_eq!(taken.span.len as usize, pool.capacity());
    let mut cache = PoolCache::new(&pool);
    cache.free(taken.chunk);
    drop((burst, cache));
    all_are_back(&pool);
}

#[test]
fn spans_keep_the_reserved_areas() {
    let pool = FramePool::on_heap(64);
    let (mut cache, mut burst) = (PoolCache::new(&pool), Burst::new(8));
    let most = (BUFFER_LEN - HEADROOM - TAILROOM) as u32;
    let mut place = |offset, len, metadata| {
        let chunk = cache.alloc().expect("a free frame");
        let placed = burst.place(&pool, chunk, Span { offset, len, metadata }, meta(0));
        placed
            .map_err(|error| {
                assert!(matches!(error, PlaceError::NoRoom(_)), "{error}");
                cache.free(error.into_chunk());
            })
            .is_ok()
    };
    assert!(place(256, most, 0) && !place(256, most + 1, 0) && !place(u32::MAX, u32::MAX, 0));
    assert!(place(40, 60, 0) && !place(39, 60, 0));
    assert!(place(256, 60, 216) && !place(256, 60, 220) && place(300, 60, 252) && !place(600, 60, 256));
    assert!(!place(256, 60, 3) && !place(256, 60, u32::MAX));
    assert!(!place(70_000, 0, 0));
}

/// A chunk that is given with the wrong pool comes back, and no frame of the burst points to it.
#[test]
fn a_chunk_of_another_pool_is_refused() {
    let (pool, other) = (FramePool::on_heap(4), FramePool::on_heap(4));
    let (mut cache, mut burst) = (PoolCache::new(&other), Burst::new(8));
    let chunk = cache.alloc().unwrap();
    let error = burst.place(&pool, chunk, Span { offset: 256, len: 60, metadata: 0 }, meta(0)).unwrap_err();
    assert!(matches!(error, PlaceError::OtherPool(_)), "{error}");
    assert!(burst.is_empty());
    cache.free(error.into_chunk());
    drop(cache);
    all_are_back(&other);
}

#[test]
fn the_headroom_of_a_placed_packet_is_zero() {
    let pool = FramePool::on_heap(4);
    let mut cache = PoolCache::new(&pool);
    let (mut chunk, span) = filled(&pool, &mut cache, &[9; 3000]);
    // A packet after another one, further back in the same chunk.
    let _ = pool.fill(&mut chunk, &[8; 200], &[7; 60]).expect("it fits");
    let mut burst = Burst::new(1);
    burst.place(&pool, chunk, Span { offset: 1256, len: 60, metadata: 0 }, meta(0)).unwrap();
    let mut frame = burst.frame_mut(0);
    // SAFETY: the frame is neither moved nor swapped, only adjusted.
    let frame = unsafe { frame.descriptor_mut() };
    frame.adjust_head(-1100).unwrap();
    assert_eq!(frame.packet()[..1100], [0; 1100], "not the packet before");
    assert_eq!(frame.packet()[1100..], [9; 60]);
    frame.packet_mut()[0] = 5;
    frame.adjust_head(1100).unwrap();
    frame.adjust_meta(-8).unwrap();
    assert_eq!(frame.metadata(), [0; 8], "seen before, and zero");
    frame.adjust_head(-1092).unwrap();
    assert_eq!(frame.packet()[8], 0, "metadata moves along");
    let _ = span;
    frame.set_code(Verdict::Pass as u32);
}

#[test]
fn threads_pass_frames_on_and_none_is_lost() {
    const PACKETS: usize = 20_000;
    let pool = FramePool::on_heap(300);
    let (to, from) = std::sync::mpsc::sync_channel::<(Chunk, Span)>(100);
    let sender = {
        let pool = Arc::clone(&pool);
        std::thread::spawn(move || {
            let mut cache = PoolCache::new(&pool);
            for number in 0..PACKETS {
                let mut chunk = loop {
                    match cache.alloc() {
                        Some(chunk) => break chunk,
                        None => std::thread::yield_now(),
                    }
                };
                let span = pool.fill(&mut chunk, &[], &number.to_le_bytes()).unwrap();
                to.send((chunk, span)).unwrap();
            }
        })
    };
    let mut burst = Burst::new(32);
    for (number, (chunk, span)) in from.iter().enumerate() {
        if burst.is_full() {
            burst.clear();
        }
        burst.place(&pool, chunk, span, meta(0)).unwrap();
        assert_eq!(burst.frame(burst.len() - 1).packet(), number.to_le_bytes());
    }
    sender.join().unwrap();
    drop(burst);
    all_are_back(&pool);
}

#[test]
fn a_chunk_is_found_by_its_address() {
    let pool = FramePool::on_heap(5);
    let (start, len) = pool.memory();
    let mut cache = PoolCache::new(&pool);
    let chunks: Vec<_> = (0..5).map(|_| cache.alloc().expect("a frame")).collect();
    for chunk in &chunks {
        let (buffer, _) = pool.buffer(chunk);
        assert_eq!(pool.index_at(buffer), Some(chunk.index()));
        assert!((start as usize..start as usize + len).contains(&(buffer as usize)));
    }
    let found = (0..len).filter_map(|at| Some((at, pool.index_at(start.wrapping_add(at))?)));
    let stride = len / chunks.len();
    assert!(found.eq((0..5).map(|index| (index as usize * stride, index))), "other addresses have no chunk");
    for outside in [start.wrapping_sub(1), start.wrapping_add(len), std::ptr::null_mut()] {
        assert_eq!(pool.index_at(outside), None);
    }
    chunks.into_iter().for_each(|chunk| cache.free(chunk));
}
