//! Look-ups by a specialized function of one map. Keys of up to a word are passed by value, composed in a register: the function
//! need not wait for store forwarding of parts.

use paceline_isa::{Insn, Reg};

use crate::defer::{Base, Kept, StackStore, Value};
use crate::emitter::Emitter;
use crate::inline::MAP_LOOKUP_ELEM;
use crate::links::{Links, LookUpLink};
use crate::plan::{SCRATCH, SCRATCH_2};
use crate::source::{Source, known_map};
use crate::x64::{Alu, Mem, OpSize, Shift, Width};

/// The specialized function of a look-up's map, if the map is known and has one.
pub(crate) fn look_up_link(source: &Source<'_>, links: &Links, slot: usize, id: i32) -> Option<LookUpLink> {
    let map = known_map(source, slot).filter(|_| id == MAP_LOOKUP_ELEM)?;
    links.maps.get(map as usize)?.look_up
}

impl Emitter<'_> {
    /// Calls the specialized function of a map.
    pub(crate) fn call_look_up(&mut self, slot: usize, insn: &Insn, link: LookUpLink) {
        self.flush_memory();
        self.deferred.set(Reg::R1, Value::Const(link.context));
        // Materializing these may overwrite the stored register: the key is taken from the store only afterwards.
        for reg in insn.writes().iter() {
            self.save_dependents(reg);
        }
        let just_stored = self.stored().filter(|_| link.key_bytes == Some(4));
        match (link.key_bytes, just_stored) {
            (Some(_), Some(what)) => {
                self.make_store_after(slot, insn);
                self.take_stored(what);
            }
            (Some(bytes), None) => {
                self.end_store();
                self.load_key(bytes);
            }
            (None, _) => {
                self.end_store();
                self.materialize(Reg::R2);
            }
        }
        for reg in insn.writes().iter() {
            self.before_write(reg);
        }
        self.materialize(Reg::R1);
        if let Some(member) = link.member {
            let (member, argument) = (Mem::at(self.plan.host, member), self.gpr(Reg::R3));
            self.asm.load(OpSize::Q64, argument, member);
        }
        self.call_runtime(link.address);
        for reg in insn.writes().iter() {
            self.hold(reg, 64);
        }
    }

    /// Moves the key that was just stored into the register of the key's address (`r2`).
    fn take_stored(&mut self, what: Kept) {
        let key = self.gpr(Reg::R2);
        match what {
            Kept::Number(number) => self.set(key, u64::from(number.cast_unsigned())),
            Kept::Reg(_, held, _) => {
                let gpr = self.asm.held(held);
                self.asm.mov_rr(Width::D32, key, gpr);
            }
        }
        self.hold(Reg::R2, 64);
    }

    /// Loads the key into the register of its address (`r2`).
    fn load_key(&mut self, bytes: u8) {
        let on_stack = self.stack_offset(Reg::R2, 0);
        let start = on_stack.unwrap_or(0);
        let stored = if on_stack.is_some() { self.deferred.stores } else { Default::default() };
        let key = self.gpr(Reg::R2);
        let (base, disp) = match self.deferred.get(Reg::R2) {
            Value::Sum(base, disp) if !base.is(Reg::R2) => (base, disp),
            _ => {
                self.materialize(Reg::R2);
                self.asm.mov_rr(Width::Q64, SCRATCH_2, key);
                (Base::Native(self.asm.hold(SCRATCH_2)), 0)
            }
        };
        let mut number = 0;
        let mut loaded = false;
        for part in stored.of(start, bytes) {
            let (from, shift) = (part.at - start, 8 * (part.at - start) as u8);
            if let Some(known) = part.number {
                number |= known << shift;
                continue;
            }
            let into = if loaded { SCRATCH } else { key };
            let mem = self.place(base, disp.wrapping_add(from));
            self.asm.load(size_of_store(part), into, mem);
            if shift != 0 {
                self.asm.shift_ri(Shift::Shl, Width::Q64, into, shift);
            }
            if loaded {
                self.asm.alu_rr(Alu::Or, Width::Q64, key, SCRATCH);
            }
            loaded = true;
        }
        match i32::try_from(number) {
            _ if !loaded => self.set(key, number),
            Ok(0) => {}
            Ok(number) => self.asm.alu_ri(Alu::Or, Width::Q64, key, number),
            Err(_) => {
                self.asm.mov_ri(SCRATCH, number);
                self.asm.alu_rr(Alu::Or, Width::Q64, key, SCRATCH);
            }
        }
        self.hold(Reg::R2, 64);
    }
}

fn size_of_store(part: StackStore) -> OpSize {
    match part.bytes {
        1 => OpSize::B8,
        2 => OpSize::W16,
        4 => OpSize::D32,
        _ => OpSize::Q64,
    }
}
