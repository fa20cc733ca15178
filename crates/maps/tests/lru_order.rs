//! The order of LRU evictions, in a process of its own: slots that wait for bursts of other tests change the order.

mod common;

use paceline_maps::{Limits, Map};
use paceline_spec::{MapFlags, MapKind};

use common::spec;

#[test]
fn without_look_ups_the_oldest_go() {
    for kind in [MapKind::LruHash, MapKind::LruPerCpuHash] {
        let spec = spec(kind, 4, 8, 100, MapFlags::default());
        let map = Map::create(&spec, &Limits { cpus: 2, memory: 1 << 30 }).unwrap();
        let value = vec![0; map.user_value_size()];
        (0..1000_u32).for_each(|number| map.insert(&number.to_ne_bytes(), &value).unwrap());
        assert!((900..1000).all(|number| map.lookup(&u32::to_ne_bytes(number)).is_ok()));
    }
}
