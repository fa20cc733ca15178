//! The types of objects, as an object file's CO-RE relocations are resolved against: so a program finds a field where it lies here,
//! whatever kernel's types it was compiled with.

use std::sync::OnceLock;

use super::kind::{ObjectField, ObjectKind};
use paceline_btf::{Btf, Composite, Enum, Int, IntEncoding, Member, Type, TypeId};

/// The structures that programs are given pointers to, with those of their members that say something here.
#[must_use]
pub fn types() -> &'static Btf {
    static TYPES: OnceLock<Btf> = OnceLock::new();
    TYPES.get_or_init(|| {
        let mut draft = Draft::default();
        draft.connection();
        draft.map();
        draft.kernel_context();
        draft.btf
    })
}

#[derive(Default)]
struct Draft {
    btf: Btf,
}

impl Draft {
    fn unsigned(&mut self, name: &str, size: u32) -> TypeId {
        let name = self.btf.add_name(name);
        let int = Int { name, size, encoding: IntEncoding::Unsigned, bit_offset: 0, bits: (size * 8) as u8 };
        self.btf.add(Type::Int(int))
    }

    fn array(&mut self, element: TypeId, index: TypeId, count: u32) -> TypeId {
        self.btf.add(Type::Array { element, index, count })
    }

    /// A structure or union of members at offsets in bytes.
    fn composite(&mut self, name: &str, size: u32, members: &[(&str, TypeId, u32)]) -> Composite {
        let name = self.btf.add_name(name);
        let member = |&(name, ty, offset): &(&str, TypeId, u32)| {
            let name = self.btf.add_name(name);
            Member { name, ty, bit_offset: offset * 8, bit_size: 0 }
        };
        Composite { name, size, members: members.iter().map(member).collect() }
    }

    fn structure(&mut self, name: &str, size: u32, members: &[(&str, TypeId, u32)]) -> TypeId {
        let composite = self.composite(name, size, members);
        self.btf.add(Type::Struct(composite))
    }

    fn union(&mut self, name: &str, size: u32, members: &[(&str, TypeId, u32)]) -> TypeId {
        let composite = self.composite(name, size, members);
        self.btf.add(Type::Union(composite))
    }

    /// `struct bpf_map` as in Linux 6.18.
    fn map(&mut self) {
        let (byte, word) = (self.unsigned("unsigned char", 1), self.unsigned("unsigned int", 4));
        let long = self.unsigned("unsigned long long", 8);
        let hash = self.array(byte, word, 32);
        let name = self.btf.add_name("bpf_map_type");
        let kind =
            self.btf.add(Type::Enum(Enum { name, size: 4, signed: false, wide: false, values: [].into() }));
        let types = |field: &ObjectField| match (field.name, field.size) {
            ("map_type", _) => kind,
            ("sha", _) => hash,
            (_, 8) => long,
            _ => word,
        };
        let fields = ObjectKind::Map.fields().iter();
        let members: Vec<_> = fields.map(|field| (field.name, types(field), field.offset.into())).collect();
        self.structure(ObjectKind::Map.structure(), 256, &members);
    }

    /// `struct xdp_buff` and what it points to.
    fn kernel_context(&mut self) {
        let (anything, word) = (self.btf.add(Type::Ptr(0)), self.unsigned("unsigned int", 4));
        let mut to = None;
        for kind in [ObjectKind::Device, ObjectKind::RxQueue, ObjectKind::XdpBuff] {
            let ty = |field: &ObjectField| match (field.to, field.size) {
                (Some(_), _) => to.unwrap_or(anything),
                (None, 8) => anything,
                (None, _) => word,
            };
            let members: Vec<_> =
                kind.fields().iter().map(|field| (field.name, ty(field), field.offset.into())).collect();
            let end = kind.fields().last().map_or(0, |field| u32::from(field.offset + field.size));
            let structure = self.structure(kind.structure(), end.next_multiple_of(8), &members);
            to = Some(self.btf.add(Type::Ptr(structure)));
        }
    }

    /// `struct nf_conn` of Linux 6.18 on machines of 64 bits.
    fn connection(&mut self) {
        let (byte, half, word) = (
            self.unsigned("unsigned char", 1),
            self.unsigned("unsigned short", 2),
            self.unsigned("unsigned int", 4),
        );
        let long = self.unsigned("unsigned long", 8);
        let four = self.array(word, word, 4);
        let in6 = self.structure("in6_addr", 16, &[]);
        let in4 = self.structure("in_addr", 4, &[("s_addr", word, 0)]);
        let address = self.union(
            "nf_inet_addr",
            16,
            &[("all", four, 0), ("ip", word, 0), ("ip6", four, 0), ("in", in4, 0), ("in6", in6, 0)],
        );
        let port = self.structure("", 2, &[("port", half, 0)]);
        let from =
            self.union("nf_conntrack_man_proto", 2, &[("all", half, 0), ("tcp", port, 0), ("udp", port, 0)]);
        let to = self.union("", 2, &[("all", half, 0), ("tcp", port, 0), ("udp", port, 0)]);
        let source = self.structure(
            "nf_conntrack_man",
            20,
            &[("u3", address, 0), ("u", from, 16), ("l3num", half, 18)],
        );
        let destination =
            self.structure("", 20, &[("u3", address, 0), ("u", to, 16), ("protonum", byte, 18)]);
        let tuple = self.structure("nf_conntrack_tuple", 40, &[("src", source, 0), ("dst", destination, 20)]);
        let hash = self.structure("nf_conntrack_tuple_hash", 56, &[("tuple", tuple, 16)]);
        let hashes = self.array(hash, word, 2);
        let zone = self.structure("nf_conntrack_zone", 4, &[("id", half, 0)]);
        let tcp = self.structure("ip_ct_tcp", 56, &[("state", byte, 40)]);
        let proto = self.union("nf_conntrack_proto", 64, &[("tcp", tcp, 0)]);
        let members = [
            ("timeout", word, 8),
            ("zone", zone, 12),
            ("tuplehash", hashes, 16),
            ("status", long, 128),
            ("mark", word, 168),
            ("proto", proto, 184),
        ];
        self.structure("nf_conn", 248, &members);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_lie_where_fields_do() {
        let of_connection = ["timeout", "status", "mark"].map(|name| (ObjectKind::Connection, name));
        let of_context = [
            (ObjectKind::XdpBuff, "data_end"),
            (ObjectKind::XdpBuff, "rxq"),
            (ObjectKind::XdpBuff, "frame_sz"),
            (ObjectKind::RxQueue, "dev"),
            (ObjectKind::RxQueue, "queue_index"),
            (ObjectKind::Device, "ifindex"),
        ];
        let btf = types();
        for (kind, name) in of_connection.into_iter().chain(of_context) {
            let found = btf.types().find_map(|(_, ty)| match ty {
                Type::Struct(found) if btf.is_named(found.name, kind.structure()) => Some(found),
                _ => None,
            });
            let structure = found.expect("it is there");
            let member = structure.members.iter().find(|m| btf.is_named(m.name, name)).expect(name);
            let size = btf.size_of(member.ty).expect("a size");
            let field = kind.field(u64::from(member.bit_offset) / 8, size, false);
            assert_eq!(field.map(|field| field.name), Some(name));
        }
    }
}
