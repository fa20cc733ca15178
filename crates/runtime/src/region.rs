//! The memory that a run may access, and descriptions of addresses outside of it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use paceline_frame::Frame;
use paceline_isa::Size;
use paceline_maps::Map;
use paceline_spec::ObjectKind;

use crate::memory;

/// Kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read.
    Read,
    /// Written.
    Write,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

/// The region that an invalid address lies in or close to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultAddress {
    /// The null page: usually the unchecked result of a look-up that found nothing.
    Null,
    /// The packet.
    Packet {
        /// Offset from the packet's first byte.
        offset: i64,
        /// Length of the packet.
        len: usize,
    },
    /// The stack.
    Stack {
        /// Offset from the frame pointer `r10`.
        offset: i64,
    },
    /// The context.
    Context {
        /// Offset in the context structure.
        offset: i64,
    },
    /// A map itself, whose values are accessed through look-ups only.
    Map {
        /// Name of the map.
        name: String,
    },
    /// A map's value: past its end, or against the map's flags.
    MapValue {
        /// Name of the map.
        name: String,
    },
    /// None of the program's regions.
    Nothing,
}

impl fmt::Display for FaultAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("near the null pointer (a look-up's result that was not checked?)"),
            Self::Packet { offset, len } => {
                write!(f, "at packet offset {offset}, and the packet has {len} bytes")
            }
            Self::Stack { offset } => write!(f, "at stack offset r10{offset:+}, outside the stack in use"),
            Self::Context { offset } => write!(f, "at context offset {offset}, where there is no such field"),
            Self::Map { name } => write!(f, "in map {name} itself, which is reached through look-ups only"),
            Self::MapValue { name } => write!(f, "at a value of map {name}, outside it or against its flags"),
            Self::Nothing => f.write_str("at an address that is not the program's"),
        }
    }
}

/// Largest distance in bytes at which an address is described by a region.
const NEAR: u64 = 1 << 16;

/// Address of the context in a run whose accesses are checked: in the upper half of the address space, where no memory of a process is.
/// The frame's address does not serve, because most context structures are larger than a frame, and a map's value may follow the frame.
pub const CONTEXT_ADDRESS: u64 = 0xffff_c000_0000_0000;

/// The memory of one run. Addresses are real ones, except that of the context; ranges are half-open.
#[derive(Clone)]
pub struct Regions {
    /// The stack frames of all active functions.
    pub stack: Range<u64>,
    /// The frame pointer of the running function.
    pub frame_pointer: u64,
    /// The packet's frame; null when there is no packet.
    frame: *mut Frame,
    /// Addresses of the context: from [`CONTEXT_ADDRESS`] on, with the size of the context's structure. Empty without a packet.
    pub context: Range<u64>,
    /// Memory that the caller gave a program without packet.
    pub memory: Range<u64>,
    /// Keys that active callbacks may read.
    pub keys: Vec<Range<u64>>,
    /// Kernel objects that the program holds, by address.
    pub objects: Vec<(ObjectKind, u64)>,
    /// The program's maps.
    pub maps: Arc<[Arc<Map>]>,
    /// Inner maps that the run found in them.
    pub inner_maps: Vec<Arc<Map>>,
}

impl fmt::Debug for Regions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Regions").finish_non_exhaustive()
    }
}

impl Regions {
    /// The memory of a program that begins to run with its stack below an address: the packet of a frame, which may be null, memory of
    /// the caller, and maps.
    ///
    /// # Safety
    /// The frame must be null or that of the run, and the memory exist as long as this.
    pub unsafe fn new(
        frame: *mut Frame,
        context: Range<u64>,
        memory: Range<u64>,
        stack_top: u64,
        maps: Arc<[Arc<Map>]>,
    ) -> Self {
        let (keys, objects, inner_maps) = (Vec::new(), Vec::new(), Vec::new());
        let stack = stack_top..stack_top;
        Self { stack, frame_pointer: 0, frame, context, memory, keys, objects, maps, inner_maps }
    }

    /// Address of the packet's frame, or 0.
    pub fn frame_address(&self) -> u64 {
        self.frame as u64
    }

    /// The packet's frame.
    #[inline]
    pub fn frame(&self) -> Option<&Frame> {
        // SAFETY: `frame` is null or points to the frame this run has borrowed mutably; nothing else holds a
        // reference to it while a helper or an access check looks at it.
        unsafe { self.frame.as_ref() }
    }

    /// The maps that the run may use.
    pub fn maps(&self) -> impl Iterator<Item = &Arc<Map>> {
        self.maps.iter().chain(&self.inner_maps)
    }

    /// Adds the result of a look-up to the maps of the run, if the result is a map.
    ///
    /// # Safety
    /// `found` must be what a look-up in the map of the handle has just found, if that is one of the run's, on a pinned host.
    pub unsafe fn note_inner(&mut self, handle: u64, found: u64) {
        let holds_maps = |map: &Arc<Map>| map.spec().kind.holds_maps();
        if found == 0 || !self.map(handle).is_some_and(holds_maps) || self.map(found).is_some() {
            return;
        }
        let map = found as *const Map;
        // SAFETY: a value of such a map is the address of a map in an `Arc`, which lives as long as the host is pinned; the
        // count now has one more for the result.
        self.inner_maps.push(unsafe {
            Arc::increment_strong_count(map);
            Arc::from_raw(map)
        });
    }

    /// Whether `len` bytes at `address` may be accessed. A length of 0 is allowed anywhere.
    #[inline]
    pub fn allows(&self, address: u64, len: u64, access: Access) -> bool {
        let Some(end) = address.checked_add(len) else { return false };
        let within = |range: Range<u64>| address >= range.start && end <= range.end;
        len == 0
            || within(self.stack.clone())
            || self.frame().is_some_and(|f| within(f.data_meta() as u64..f.data_end() as u64))
            || within(self.memory.clone())
            || self.has_field(address, len, access)
            || access == Access::Read && self.keys.iter().any(|key| within(key.clone()))
            || self.maps().any(|map| {
                map.for_programs().contains(address as usize, len as usize)
                    && !map.for_programs().touches_special(address as usize, len as usize)
                    && match access {
                        Access::Read => map.for_programs().access().read,
                        Access::Write => map.for_programs().access().write,
                    }
            })
    }

    /// Whether the bytes are a field of a map or of an object that the program holds.
    fn has_field(&self, address: u64, len: u64, access: Access) -> bool {
        let maps = self.maps().map(|map| (ObjectKind::Map, Arc::as_ptr(map) as u64));
        self.objects.iter().copied().chain(maps).any(|(kind, object)| {
            let offset = address.checked_sub(object);
            offset.is_some_and(|offset| kind.field(offset, len, access == Access::Write).is_some())
        })
    }

    /// Adds an object, and the objects that it points to, to those that the program holds.
    ///
    /// # Safety
    /// There must be an object of the kind at the address.
    pub unsafe fn note_object(&mut self, kind: ObjectKind, address: u64) {
        if self.objects.contains(&(kind, address)) {
            return;
        }
        self.objects.push((kind, address));
        for field in kind.fields() {
            if let Some(to) = field.to {
                // SAFETY: the field is the object's, and points to an object of the kind.
                unsafe { self.note_object(to, memory::load(address + u64::from(field.offset), Size::Dw)) };
            }
        }
    }

    /// Index of an object of a wanted kind among those that the program holds.
    pub fn object(&self, address: u64, is_wanted: impl Fn(ObjectKind) -> bool) -> Option<usize> {
        self.objects.iter().position(|&(kind, object)| object == address && is_wanted(kind))
    }

    /// Offset of an address in the context, if it lies there.
    #[inline]
    pub fn context_offset(&self, address: u64) -> Option<u64> {
        self.context.contains(&address).then(|| address - self.context.start)
    }

    /// The map of a handle.
    pub fn map(&self, handle: u64) -> Option<&Arc<Map>> {
        self.maps().find(|map| Arc::as_ptr(map) as u64 == handle)
    }

    /// The region of an invalid address. If the pointer that it was computed from lies in a region, the access left that region;
    /// otherwise it is the nearest one.
    pub fn near(&self, address: u64, pointer: u64) -> FaultAddress {
        let map_of = |address: u64| self.maps().find(|map| map.for_programs().contains(address as usize, 1));
        let packet = self.frame().map(|f| (f, f.data_meta() as u64..f.data_end() as u64));
        let touches = |range: &Range<u64>| (range.start..=range.end).contains(&pointer);
        if address < NEAR {
            return FaultAddress::Null;
        }
        if let Some(map) = self.map(pointer) {
            return FaultAddress::Map { name: map.spec().name.clone() };
        }
        if let Some(map) = map_of(address).or(map_of(pointer)) {
            return FaultAddress::MapValue { name: map.spec().name.clone() };
        }
        if let Some(offset) = self.context_offset(pointer) {
            let offset = offset.wrapping_add(address.wrapping_sub(pointer)) as i64;
            return FaultAddress::Context { offset };
        }
        let stack_is_nearer = packet.as_ref().is_none_or(|(_, range)| {
            touches(&self.stack)
                || !touches(range) && distance(&self.stack, address) < distance(range, address)
        });
        let offset_from = |start: u64| address.wrapping_sub(start) as i64;
        match packet {
            _ if stack_is_nearer && distance(&self.stack, address) < NEAR => {
                FaultAddress::Stack { offset: offset_from(self.frame_pointer) }
            }
            Some((frame, range)) if distance(&range, address) < NEAR => {
                FaultAddress::Packet { offset: offset_from(frame.data() as u64), len: frame.len() }
            }
            _ => FaultAddress::Nothing,
        }
    }
}

/// Distance of an address from a range in bytes, 0 inside of it.
fn distance(range: &Range<u64>, address: u64) -> u64 {
    range.start.saturating_sub(address).max(address.saturating_sub(range.end))
}
