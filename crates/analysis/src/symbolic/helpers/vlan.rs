//! VLAN tags of classifiers.

use std::rc::Rc;

use crate::solver::Answer;
use paceline_isa::Reg;

use crate::symbolic::bounds::Assumption;
use crate::symbolic::explorer::Explorer;
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::source::Source;
use crate::symbolic::state::{Assignment, State};
use crate::symbolic::value::Value;

impl Explorer<'_> {
    /// `bpf_skb_vlan_push` for a packet without a tag beside it: the tag is kept there, and put into the packet after the run. Packets are
    /// taken to come in with their tags in them.
    pub(super) fn vlan_push(&mut self, state: &mut State, name: &'static str) -> Result<Value, GiveUp> {
        const VLAN: u16 = 0x8100;
        const SERVICE_VLAN: u16 = 0x88a8;
        if self.claim.is_some() {
            // What leaves has the tag in it.
            return Err(GiveUp::Helper(name));
        }
        self.assume(Assumption::TagsInPacket);
        let field = self.field_offset("vlan_present");
        let present = match state.context.get(&field) {
            Some(&number) => number,
            None => self.sources.term(&mut self.terms, Source::Context(field)),
        };
        let zero = self.terms.constant(64, 0);
        let has_none = self.terms.eq(present, zero);
        match self.ask(&state.path, &state.assignment.model, has_none) {
            Answer::Sat(model) => {
                if self.terms.value(has_none).is_none() {
                    state.path.push(has_none);
                }
                state.assignment = Assignment::new(model);
            }
            Answer::Unsat => return Err(GiveUp::HelperUse(name, "for a second tag")),
            Answer::Unknown(unknown) => return Err(GiveUp::Solver(unknown)),
        }
        let (protocol, tci) = (self.number(state, Reg::R2)?, self.number(state, Reg::R3)?);
        let protocol = self.terms.extract(protocol, 0, 16);
        let [vlan, service] = [VLAN, SERVICE_VLAN].map(|tag| self.terms.constant(16, u64::from(tag.to_be())));
        let is_service = self.terms.eq(protocol, service);
        let protocol = self.terms.ite(is_service, service, vlan);
        let tci = self.terms.extract(tci, 0, 16);
        let (protocol, tci) = (self.terms.resize(protocol, 64), self.terms.resize(tci, 64));
        let one = self.terms.constant(64, 1);
        for (field, number) in [("vlan_present", one), ("vlan_tci", tci), ("vlan_proto", protocol)] {
            let field = self.field_offset(field);
            Rc::make_mut(&mut state.context).insert(field, number);
        }
        Ok(self.returned(0))
    }
}
