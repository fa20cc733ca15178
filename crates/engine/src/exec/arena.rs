//! The arena: memory for code, close to the process's own text.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use crate::exec::block::CodeBlock;
use crate::exec::code::{Code, MAX_ALIGNMENT, Relocation};
use crate::exec::error::ExecError;
use crate::exec::memory::{CHUNK, GUARD_BYTE, Memory};
use crate::exec::names::{self, Registration};
use crate::exec::place::within_reach;
use crate::exec::registry::Installed;
use crate::exec::serialize;
use crate::exec::space::{Extent, Space};
use crate::exec::sync::lock;
use paceline_epoch::Domain;

/// Size of the process-wide arena in bytes: enough for some ten thousand programs of the size of a load balancer. It is only
/// address space until code is installed, and small compared to the 2 GiB reach of displacements, so that a suitable place nearly
/// always exists.
const GLOBAL_CAPACITY: usize = 64 << 20;

/// Memory for code. Clones are handles to the same arena, which lives until the last handle and the last block are dropped.
///
/// The arena is one contiguous range of addresses, reserved at creation; memory is committed in pieces of 64 KiB as code is
/// installed, and reused, but not returned to the system before the end. Any thread may install and drop code.
#[derive(Clone)]
pub struct Arena {
    space: Arc<Space>,
    domain: Domain,
}

impl Arena {
    /// The default arena: 64 MiB, close to the text of the process, with the domain [`Domain::global`].
    ///
    /// # Errors
    /// [`ExecError::Refused`] if the process may not have executable memory. A failed call is retried by the next one.
    pub fn global() -> Result<&'static Self, ExecError> {
        static ARENA: OnceLock<Arena> = OnceLock::new();
        static MAKING: Mutex<()> = Mutex::new(());
        if let Some(arena) = ARENA.get() {
            return Ok(arena);
        }
        let _making = lock(&MAKING);
        match ARENA.get() {
            Some(arena) => Ok(arena),
            None => {
                let arena = Self::new(GLOBAL_CAPACITY, Domain::global().clone())?;
                Ok(ARENA.get_or_init(|| arena))
            }
        }
    }

    /// Creates an arena of `capacity` bytes, rounded up to 64 KiB, as close to the text of the process as possible. Its blocks are
    /// freed after a grace period of `domain`.
    ///
    /// # Errors
    /// [`ExecError::Refused`] if the process may not have executable memory or lacks contiguous address space of this size,
    /// [`ExecError::Capacity`] if the size exceeds any address space.
    pub fn new(capacity: usize, domain: Domain) -> Result<Self, ExecError> {
        let rounded = capacity.max(1).checked_next_multiple_of(CHUNK);
        let Some(rounded) = rounded.filter(|&bytes| isize::try_from(bytes).is_ok()) else {
            return Err(ExecError::Capacity { bytes: capacity });
        };
        let anchor = text_address();
        let mut memory = Memory::new(rounded, anchor)?;
        if names::perf_map_announced() {
            memory = memory.pass_for_anonymous()?;
        }
        serialize::register();
        Ok(Self { space: Space::new(memory)?, domain })
    }

    /// Copies code into the arena, applies its relocations, and registers the names of its functions.
    ///
    /// # Errors
    /// [`ExecError::Exhausted`] if no extent is large enough even after a collection of the domain; others as documented there. On
    /// error nothing is installed.
    pub fn install(&self, code: &Code<'_>) -> Result<CodeBlock, ExecError> {
        if cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "s390x"))) {
            return Err(ExecError::Architecture);
        }
        if !code.alignment.is_power_of_two() || code.alignment > MAX_ALIGNMENT {
            return Err(ExecError::Alignment { bytes: code.alignment });
        }
        for function in &*code.functions {
            let end = function.start.checked_add(function.len).and_then(|end| usize::try_from(end).ok());
            if end.is_none_or(|end| end > code.bytes.len()) {
                return Err(ExecError::FunctionRange { name: function.name.clone(), len: code.bytes.len() });
            }
        }
        let extent = match Extent::allocate(&self.space, code.bytes.len(), code.alignment) {
            Err(ExecError::Exhausted { .. }) if self.domain.collect() > 0 => {
                Extent::allocate(&self.space, code.bytes.len(), code.alignment)
            }
            result => result,
        }?;
        let address = extent.address();
        let mut image = vec![GUARD_BYTE; extent.len()];
        image[..code.bytes.len()].copy_from_slice(code.bytes);
        for &relocation in code.relocations {
            relocate(&mut image[..code.bytes.len()], address, relocation)?;
        }
        extent.write(&image)?;
        serialize::all_cores();
        let range = address..address + code.bytes.len();
        let installed = Installed { range: range.clone(), functions: Arc::clone(&code.functions) };
        let names = Registration::new(installed, &image[..range.len()]);
        Ok(CodeBlock::new(extent, range, names, self.domain.clone()))
    }

    /// The address range of all present and future code of the arena.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.space.range()
    }

    /// Whether all present and future code of the arena reaches an address with a 32-bit displacement.
    #[must_use]
    pub fn is_near(&self, address: usize) -> bool {
        within_reach(&self.range(), &(address..address))
    }

    /// The domain whose grace periods the arena's blocks wait for.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Number of committed bytes, used and free.
    #[must_use]
    pub fn committed(&self) -> usize {
        self.space.committed()
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").field("range", &self.range()).finish_non_exhaustive()
    }
}

/// An address within the text of the process.
fn text_address() -> usize {
    text_address as fn() -> usize as usize
}

/// Applies a relocation to code that will be at `address`.
fn relocate(code: &mut [u8], address: usize, relocation: Relocation) -> Result<(), ExecError> {
    let Relocation { offset, target } = relocation;
    let len = code.len();
    let field = offset.checked_add(4).and_then(|end| code.get_mut(offset..end));
    let Some(field) = field else { return Err(ExecError::RelocationOffset { offset, len }) };
    let distance = target.wrapping_sub(address + offset + 4).cast_signed();
    match i32::try_from(distance) {
        Ok(distance) => field.copy_from_slice(&distance.to_ne_bytes()),
        Err(_) => return Err(ExecError::OutOfReach { offset, address: address + offset, target }),
    }
    Ok(())
}
