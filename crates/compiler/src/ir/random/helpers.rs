//! The helpers that random modules call.

use paceline_spec::helper::HelperId;

pub(super) const LOOK_UP: i32 = HelperId::MapLookupElem.imm();
pub(super) const UPDATE: i32 = HelperId::MapUpdateElem.imm();
pub(super) const RANDOM: i32 = HelperId::GetPrandomU32.imm();
pub(super) const ADJUST: i32 = HelperId::XdpAdjustHead.imm();
pub(super) const LOAD: i32 = HelperId::XdpLoadBytes.imm();
pub(super) const FIB: i32 = HelperId::FibLookup.imm();
pub(super) const LOOP: i32 = HelperId::Loop.imm();
