//! Members of a packet's `sk_buff` by their names: those that packets arrive with, and those that are there after a run. The table is all
//! that commands, tests and bindings know of them.

use crate::context::SkBuff;

/// A member, by the name of its field in `struct __sk_buff` of `linux/bpf.h`.
#[derive(Debug)]
pub struct SkBuffMember {
    /// Name; `cb[0]` to `cb[4]` for the words of `cb`.
    pub name: &'static str,
    /// Whether packets may arrive with a value; the others are made from the packet.
    pub arrives: bool,
    /// Greatest value.
    pub max: u64,
    get: fn(&SkBuff) -> u64,
    set: fn(&mut SkBuff, u64),
}

/// The reason why a member cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemberError {
    /// There is no such member.
    #[error("`__sk_buff` has no field `{0}` that packets arrive with")]
    Unknown(String),
    /// The packet says it.
    #[error("`{0}` is computed from the packet")]
    Computed(&'static str),
    /// The value needs more bits.
    #[error("{value} is above {max}, the most of `{name}`")]
    TooLarge {
        /// Name of the member.
        name: &'static str,
        /// The value.
        value: u64,
        /// Greatest value of the member.
        max: u64,
    },
}

macro_rules! member {
    ($name:literal, $arrives:literal, $ty:ident, $($place:tt)+) => {
        SkBuffMember {
            name: $name,
            arrives: $arrives,
            max: $ty::MAX as u64,
            get: |skb| u64::from(skb.$($place)+),
            set: |skb, value| skb.$($place)+ = value as $ty,
        }
    };
}

impl SkBuffMember {
    /// All members, in the order of the fields.
    pub const ALL: &'static [Self] = &[
        member!("pkt_type", false, u8, pkt_type),
        member!("mark", true, u32, mark),
        member!("queue_mapping", false, u16, queue_mapping),
        member!("protocol", false, u16, protocol),
        member!("vlan_present", true, u8, vlan_present),
        member!("vlan_tci", true, u16, vlan_tci),
        member!("vlan_proto", true, u16, vlan_proto),
        member!("priority", true, u32, priority),
        member!("tc_index", true, u16, tc_index),
        member!("cb[0]", true, u32, cb[0]),
        member!("cb[1]", true, u32, cb[1]),
        member!("cb[2]", true, u32, cb[2]),
        member!("cb[3]", true, u32, cb[3]),
        member!("cb[4]", true, u32, cb[4]),
        // `set` of it says that the hash is there (`skb_set_hash`).
        SkBuffMember {
            set: |skb, value| (skb.hash, skb.has_hash) = (value as u32, 1),
            ..member!("hash", true, u32, hash)
        },
        member!("tc_classid", true, u16, tc_classid),
        member!("tstamp", true, u64, tstamp),
        member!("wire_len", false, u32, wire_len),
        member!("tstamp_type", true, u8, tstamp_type),
    ];

    /// The member of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|member| member.name == name)
    }

    /// Its value, as programs load it.
    #[must_use]
    pub fn of(&self, skb: &SkBuff) -> u64 {
        (self.get)(skb)
    }
}

impl SkBuff {
    /// Sets a member that packets arrive with.
    ///
    /// # Errors
    /// [`MemberError`]; nothing is changed.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), MemberError> {
        let member = SkBuffMember::named(name).ok_or_else(|| MemberError::Unknown(name.to_owned()))?;
        let SkBuffMember { name, max, .. } = *member;
        match (member.arrives, value <= max) {
            (false, _) => Err(MemberError::Computed(name)),
            (true, false) => Err(MemberError::TooLarge { name, value, max }),
            (true, true) => {
                (member.set)(self, value);
                Ok(())
            }
        }
    }

    /// The members that are not 0.
    pub fn members(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = SkBuffMember::ALL.iter().map(|member| (member.name, member.of(self)));
        all.filter(|(_, value)| *value != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Place, TC_SK_BUFF};

    #[test]
    fn each_field_of_the_area_has_a_member() {
        let fields = TC_SK_BUFF.fields.iter().filter(|field| matches!(field.place, Place::Host { .. }));
        let names = fields.flat_map(|field| match field.name {
            "cb" => (0..5).map(|word| format!("cb[{word}]")).collect(),
            name => vec![name.to_owned()],
        });
        let members: Vec<_> = SkBuffMember::ALL.iter().map(|member| member.name.to_owned()).collect();
        assert_eq!(names.collect::<Vec<_>>(), members);
    }

    #[test]
    fn computed_members_are_those_with_a_number_on_entry() {
        for field in TC_SK_BUFF.fields {
            let Place::Host { entry, .. } = field.place else { continue };
            let name = if field.name == "cb" { "cb[0]" } else { field.name };
            assert_eq!(
                SkBuffMember::named(name).map(|member| member.arrives),
                Some(entry.is_none()),
                "{name}"
            );
        }
    }

    #[test]
    fn values_are_kept_and_bounded() {
        let mut skb = SkBuff::default();
        for member in SkBuffMember::ALL {
            let set = skb.set(member.name, member.max);
            assert_eq!(set.is_ok(), member.arrives, "{}", member.name);
            assert_eq!(member.of(&skb), if member.arrives { member.max } else { 0 }, "{}", member.name);
        }
        assert_eq!(skb.members().count(), SkBuffMember::ALL.iter().filter(|member| member.arrives).count());
        assert_eq!(skb.has_hash, 1);
        let too_large = MemberError::TooLarge { name: "tc_index", value: 65_536, max: 65_535 };
        assert_eq!(skb.set("tc_index", 65_536), Err(too_large));
        assert_eq!(skb.set("wire_len", 1), Err(MemberError::Computed("wire_len")));
        assert_eq!(skb.set("gso_size", 1), Err(MemberError::Unknown("gso_size".to_owned())));
    }
}
