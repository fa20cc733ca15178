//! The kinds of maps, over the interface of [`map_ops`](crate::map_ops). A new kind is a file here and an arm of [`constructor`].

mod array;
mod bloom_filter;
mod cpumap;
mod devmap;
mod hash;
mod lpm_trie;
mod map_of_maps;
mod perf_event_array;
mod prog_array;
mod queue;
mod ringbuf;
mod sockmap;
mod xskmap;

use paceline_spec::MapKind;

use crate::create::{CreateErrorKind, Request};
use crate::map_ops::MapOps;

/// Checks a request by the rules of its kind and allocates the storage.
type Open = fn(&mut Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind>;

/// The constructor of a kind; `None` for kinds that Paceline does not have.
const fn constructor(kind: MapKind) -> Option<Open> {
    Some(match kind {
        MapKind::Array => |request| array::Array::open(request),
        MapKind::PerCpuArray => |request| array::PerCpuArray::open(request),
        MapKind::Hash => |request| hash::Hash::open(request),
        MapKind::PerCpuHash => |request| hash::PerCpuHash::open(request),
        MapKind::LruHash => |request| hash::Hash::open_lru(request),
        MapKind::LruPerCpuHash => |request| hash::PerCpuHash::open_lru(request),
        MapKind::LpmTrie => |request| lpm_trie::LpmTrie::open(request),
        MapKind::ProgArray => |request| prog_array::open(request),
        MapKind::PerfEventArray => |request| perf_event_array::PerfEventArray::open(request),
        MapKind::DevMap => |request| devmap::DevMap::open(request),
        MapKind::DevMapHash => |request| devmap::DevMapHash::open(request),
        MapKind::CpuMap => |request| cpumap::CpuMap::open(request),
        MapKind::RingBuf => |request| ringbuf::open(request),
        MapKind::Queue | MapKind::Stack => |request| queue::Queue::open(request),
        MapKind::BloomFilter => |request| bloom_filter::BloomFilter::open(request),
        MapKind::ArrayOfMaps => |request| map_of_maps::ArrayOfMaps::open(request),
        MapKind::HashOfMaps => |request| map_of_maps::HashOfMaps::open(request),
        MapKind::XskMap => |request| xskmap::XskMap::open(request),
        MapKind::SockMap => |request| sockmap::SockMap::open(request),
        MapKind::SockHash => |request| sockmap::SockHash::open(request),
        _ => return None,
    })
}

const _: () = {
    let mut index = 0;
    while index < MapKind::ALL.len() {
        let kind = MapKind::ALL[index];
        assert!(
            constructor(kind).is_some() == kind.is_supported(),
            "a map kind is supported by its row in `paceline-spec` exactly if it has a constructor here"
        );
        index += 1;
    }
};

/// The storage of a new map, after the kernel's checks for its kind.
pub(crate) fn open(request: &mut Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
    let kind = request.spec.kind;
    constructor(kind).ok_or(CreateErrorKind::Unsupported(kind))?(request)
}
