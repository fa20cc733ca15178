//! What is in a map, and in which order it gives it up.

use paceline_maps::Map;
use paceline_spec::MapFlags;

/// A key and its value.
type Element = (Vec<u8>, Vec<u8>);

/// The elements in the map's order, or by their keys where that depends on a random number.
pub(super) fn elements(map: &Map) -> Result<Vec<Element>, String> {
    let keys = map.keys().map_err(|errno| errno.to_string())?;
    let element = |key: Vec<u8>| {
        let value = map.lookup(&key).map_err(|errno| errno.to_string())?;
        Ok((key, value))
    };
    let mut elements = keys.map(element).collect::<Result<Vec<_>, String>>()?;
    if !map.spec().flags.contains(MapFlags::ZERO_SEED) {
        elements.sort();
    }
    Ok(elements)
}

/// Adds new elements until all that were there have gone: their keys in the order in which they go.
pub(super) fn evicted(map: &Map) -> Result<Vec<Vec<u8>>, String> {
    let keys =
        || -> Result<Vec<Vec<u8>>, String> { Ok(map.keys().map_err(|errno| errno.to_string())?.collect()) };
    let (mut old, mut gone) = (keys()?, Vec::new());
    let (key_size, value) = (map.spec().key_size as usize, vec![0; map.user_value_size()]);
    for number in 0..4 * map.spec().max_entries {
        let mut key = vec![0xee; key_size];
        key[..4].copy_from_slice(&(0xee00_0000 | number).to_ne_bytes());
        map.insert(&key, &value).map_err(|errno| errno.to_string())?;
        let left = keys()?;
        let (stay, go) = old.into_iter().partition(|key| left.contains(key));
        gone.extend(go);
        old = stay;
    }
    Ok(gone)
}
