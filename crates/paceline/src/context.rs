//! The contexts of programs: which fields `xdp_md` and `__sk_buff` have, and which may be written by whom.
//!
//! [`XDP_MD`], [`SK_BUFF`] and [`TC_SK_BUFF`] are the tables that the verifier and the engines work by.

pub use paceline_spec::context::{
    Field, FieldKind, Layout, Permission, Place, Rule, SK_BUFF, Sizes, SkBuff, TC_SK_BUFF, XDP_MD,
};
