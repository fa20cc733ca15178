//! Helpers, as far as they are modelled.

mod calls;
mod events;
mod inner;
mod packet;
mod record;
mod route;
mod time;
mod vlan;

use crate::solver::Term;
use paceline_isa::Reg;
use paceline_spec::helper::{Helper, HelperId};
use paceline_spec::{ElementKind, Errno};

use crate::symbolic::alu;
use crate::symbolic::clock::Clock;
use crate::symbolic::csum;
use crate::symbolic::explorer::{Explorer, Next};
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::goal::Meets;
use crate::symbolic::source::Source;
use crate::symbolic::state::{Redirect, State};
use crate::symbolic::step::clear_arguments;
use crate::symbolic::value::{Pointer, Value};

const REDIRECT: u64 = 4;
const XDP_ABORTED: i64 = 0;
const TC_ACT_SHOT: i64 = 2;
const TC_ACT_REDIRECT: i64 = 7;

impl Explorer<'_> {
    /// Calls a helper.
    pub(crate) fn helper(&mut self, state: &mut State, id: i32, next: usize) -> Result<Next, GiveUp> {
        let helper = Helper::from_imm(id).ok_or(GiveUp::Instruction("an unknown helper"))?;
        let result = match helper.id {
            HelperId::Loop => return self.bpf_loop(state, next),
            id => self.result(state, id, helper.name)?,
        };
        self.called(state, state.slot, self.result_of(result));
        clear_arguments(state);
        Self::set(state, Reg::R0, result);
        state.slot = next;
        Ok(Next::On)
    }

    fn result(&mut self, state: &mut State, id: HelperId, name: &'static str) -> Result<Value, GiveUp> {
        match id {
            HelperId::MapLookupElem => self.map_look_up(state),
            HelperId::MapUpdateElem => self.map_update(state),
            HelperId::MapDeleteElem => {
                let (map, key) = self.map_and_key(state)?;
                let result = self.delete(state, map, key)?;
                self.met(state, if result == 0 { Meets::Found } else { Meets::NotFound });
                Ok(self.returned(result))
            }
            HelperId::CsumDiff => self.csum_diff(state),
            HelperId::Redirect => self.redirect(state),
            HelperId::RedirectMap => self.redirect_map(state),
            HelperId::FibLookup => self.fib_lookup(state, name),
            HelperId::RingbufReserve => self.reserve(state, name),
            HelperId::RingbufSubmit => self.give_back(state, true),
            HelperId::RingbufDiscard => self.give_back(state, false),
            HelperId::XdpAdjustHead => self.adjust_head(state),
            HelperId::XdpAdjustMeta => self.adjust_meta(state),
            HelperId::XdpAdjustTail => self.adjust_tail(state),
            HelperId::XdpGetBuffLen => Ok(Value::Number(self.packet_length(state))),
            HelperId::XdpLoadBytes => self.load_bytes(state),
            HelperId::SkbLoadBytes => self.skb_load_bytes(state),
            HelperId::SkbStoreBytes => self.skb_store_bytes(state, name),
            HelperId::SkbVlanPush => self.vlan_push(state, name),
            HelperId::XdpStoreBytes => self.store_bytes(state),
            HelperId::L3CsumReplace => self.l3_csum_replace(state, name),
            id => self.of_the_host(state, id, name).map(Value::Number),
        }
    }

    /// A number of the host, of 64 bits.
    fn of_the_host(&mut self, state: &mut State, id: HelperId, name: &'static str) -> Result<Term, GiveUp> {
        const TICK_NS: u64 = 4_000_000;
        if let Some(clock) = Clock::of(id) {
            let time = self.time(state, clock);
            let tick = self.terms.constant(64, TICK_NS);
            return Ok(if id == HelperId::Jiffies64 { self.terms.udiv(time, tick) } else { time });
        }
        let source = match id {
            HelperId::GetPrandomU32 => {
                state.drawn.randoms += 1;
                Source::Random(state.drawn.randoms - 1)
            }
            HelperId::GetSmpProcessorId => Source::Cpu,
            HelperId::GetNumaNodeId => Source::Node,
            // What they return is the machine's, and mostly not looked at.
            HelperId::TracePrintk | HelperId::PerfEventOutput | HelperId::RingbufOutput => {
                self.send(state, id, name)?;
                if id == HelperId::RingbufOutput {
                    self.note_record(state, name)?;
                }
                state.drawn.results += 1;
                Source::Machine(state.drawn.results - 1, name)
            }
            _ => return Err(GiveUp::Helper(name)),
        };
        let number = self.sources.term(&mut self.terms, source);
        Ok(self.terms.resize(number, 64))
    }

    fn map_look_up(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        let (map, key) = self.map_and_key(state)?;
        if self.spec(map)?.kind.rules().elements == ElementKind::Maps {
            return self.inner_map(state, map, &key);
        }
        let found = self.look_up(state, map, key)?;
        self.met(state, if found.is_some() { Meets::Found } else { Meets::NotFound });
        let zero = self.terms.constant(64, 0);
        Ok(match found {
            Some(region) => Value::Pointer(Pointer { region, offset: zero }),
            None => Value::Number(zero),
        })
    }

    fn map_update(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        let (map, key) = self.map_and_key(state)?;
        let size = self.maps.get(map).map_or(0, |map| map.value_size as usize);
        let value = self.pointer(state, Reg::R3)?;
        let value = self.read_numbers(state, value, size)?;
        let flags = self.number(state, Reg::R4)?;
        let flags = self.concrete(state, flags);
        let (result, meets) = self.update(state, map, key, &value, flags)?;
        self.met(state, meets);
        Ok(self.returned(result))
    }

    fn returned(&mut self, result: i64) -> Value {
        Value::Number(self.terms.constant(64, result.cast_unsigned()))
    }

    fn failed(&mut self, errno: Errno) -> Value {
        Value::Number(self.terms.constant(64, errno.to_return()))
    }

    pub(crate) fn pointer(&self, state: &State, reg: Reg) -> Result<Pointer, GiveUp> {
        match Self::register(state, reg) {
            Value::Pointer(pointer) => Ok(pointer),
            _ => Err(GiveUp::Address),
        }
    }

    fn map(&self, state: &State, reg: Reg) -> Result<usize, GiveUp> {
        match Self::register(state, reg) {
            Value::Map(map) if map < self.maps.len() => Ok(map),
            _ => Err(GiveUp::Address),
        }
    }

    fn map_and_key(&mut self, state: &mut State) -> Result<(usize, Vec<Term>), GiveUp> {
        let map = self.map(state, Reg::R1)?;
        let size = self.maps.get(map).map_or(0, |map| map.key_size as usize);
        let key = self.pointer(state, Reg::R2)?;
        Ok((map, self.read_numbers(state, key, size)?))
    }

    /// Memory of a known size, or none where a pointer is null.
    fn memory(&mut self, state: &mut State, at: Reg, size: Reg) -> Result<Vec<Term>, GiveUp> {
        let size = self.number(state, size)?;
        let low = self.terms.extract(size, 0, 32);
        let size = self.concrete(state, low) as usize;
        match Self::register(state, at) {
            _ if size == 0 => Ok(Vec::new()),
            Value::Number(_) => Ok(Vec::new()),
            _ => {
                let pointer = self.pointer(state, at)?;
                self.read_numbers(state, pointer, size)
            }
        }
    }

    fn csum_diff(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        let from = self.memory(state, Reg::R1, Reg::R2)?;
        let to = self.memory(state, Reg::R3, Reg::R4)?;
        let seed = self.number(state, Reg::R5)?;
        Ok(Value::Number(csum::diff(&mut self.terms, &from, &to, seed)))
    }

    /// `bpf_redirect`.
    fn redirect(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        let (index, flags) = (self.number(state, Reg::R1)?, self.number(state, Reg::R2)?);
        let number = self.terms.extract(index, 0, 32);
        let is_xdp = matches!(self.verified.program().kind, paceline_spec::ProgramKind::Xdp { .. });
        // XDP has no flags; classifiers have BPF_F_INGRESS.
        let (most, wrong, redirects) = match is_xdp {
            true => (0, XDP_ABORTED, REDIRECT as i64),
            false => (1, TC_ACT_SHOT, TC_ACT_REDIRECT),
        };
        let most = self.terms.constant(64, most);
        let is_allowed = self.terms.ule(flags, most);
        if !self.decide(state, is_allowed, 0) {
            return Ok(self.returned(wrong));
        }
        let flags = self.terms.extract(flags, 0, 32);
        state.redirect = Some(Redirect { map: None, number, flags });
        Ok(self.returned(redirects))
    }

    fn redirect_map(&mut self, state: &mut State) -> Result<Value, GiveUp> {
        const ACTIONS: u64 = 3;
        let map = self.map(state, Reg::R1)?;
        let (key, flags) = (self.number(state, Reg::R2)?, self.number(state, Reg::R3)?);
        let flags = self.concrete(state, flags);
        if flags & !ACTIONS != 0 {
            return Err(GiveUp::HelperUse("bpf_redirect_map", "with such flags"));
        }
        let number = self.terms.extract(key, 0, 32);
        let key = alu::bytes(&mut self.terms, key, 4);
        let found = self.has_target(state, map, key)?;
        // Flags say what is returned where there is no target.
        let none = self.terms.constant(32, 0);
        state.redirect = found.then_some(Redirect { map: Some(map), number, flags: none });
        self.met(state, if found { Meets::Found } else { Meets::NotFound });
        Ok(self.returned(if found { REDIRECT } else { flags } as i64))
    }
}
